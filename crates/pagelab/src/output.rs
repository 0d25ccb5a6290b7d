//! Standard output: lines, and one JSON object with its schema's version.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use pagelab_report::text::Style;
use serde_json::{Value, json};

/// The version of every JSON form that pagelab prints; it grows when a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// `println!` whose reader may go away (`pagelab list | head`): that ends the program, and is no failure.
macro_rules! say {
    () => { $crate::output::line(format_args!("")) };
    ($($text:tt)+) => { $crate::output::line(format_args!($($text)+)) };
}
pub(crate) use say;

/// Prints a line; see [`say!`]. Only for what comes after the work is done and undone.
pub fn line(text: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(io::stdout(), "{text}") {
        if error.kind() == io::ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        eprintln!("pagelab: standard output cannot be written: {error}");
        std::process::exit(3);
    }
}

/// What belongs to the figure before it.
const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "%", "instr", "KiB", "MiB", "GiB"];

/// Prints sentences, broken at spaces where the terminal ends, never within a name or before a unit; the
/// lines after the first are indented by `rest`.
pub fn sentences(text: &str, first: &str, rest: &str, style: &Style) {
    say!("{}", wrapped(text, first, rest, style));
}

/// The same as a text.
pub fn wrapped(text: &str, first: &str, rest: &str, style: &Style) -> String {
    let options = textwrap::Options::new(style.width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    // A space that the wrapping does not know.
    textwrap::fill(&with_units_joined(text), options).replace('\u{a0}', " ")
}

/// The text with a no-break space between figures and their units.
fn with_units_joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = UNITS.contains(&word.trim_end_matches([';', ',', '.', ':', ')']));
        let behind_figure = joined.ends_with(|c: char| c.is_ascii_digit());
        if !joined.is_empty() {
            joined.push(if unit && behind_figure { '\u{a0}' } else { ' ' });
        }
        joined.push_str(word);
    }
    joined
}

/// Prints `{"schema_version": …, KEY: VALUE}`.
pub fn print_json(key: &str, value: Value) -> Result<ExitCode> {
    let mut object = json!({ "schema_version": SCHEMA_VERSION });
    object[key] = value;
    let mut out = std::io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, &object).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_stays_with_its_figure() {
        let text = "20.1 µs each; 911 ns, with 85 % of 20,274 s and  s";
        let joined = with_units_joined(text);
        assert_eq!(joined.replace('\u{a0}', " "), text);
        assert_eq!(joined.matches('\u{a0}').count(), 4);
    }
}
