//! Standard output: lines, and one JSON object with its schema's version.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use pagelab_report::text::Style;
pub use pagelab_report::text::wrapped;
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

/// Prints a line about the figures: with them, or on standard error where these are JSON.
pub fn aside(text: &str, json: bool) {
    if json { eprintln!("{text}") } else { say!("{text}") }
}

/// Prints sentences, broken at spaces where the terminal ends, never within a name or before a unit; the
/// lines after the first are indented by `rest`.
pub fn sentences(text: &str, first: &str, rest: &str, style: &Style) {
    say!("{}", wrapped(text, first, rest, style));
}

/// Prints a finished text of several lines.
pub fn text(text: &str) {
    text.lines().for_each(|line| say!("{line}"));
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
