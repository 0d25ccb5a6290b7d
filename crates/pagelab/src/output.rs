//! What is printed: lines, and one JSON object with its schema's version, on standard output; remarks and
//! errors on standard error. All of it passes [`Visible`], for names of processes, of cgroups, of mounts and
//! of other people's runs reach the terminal of whoever looks at them, often root's.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use anyhow::Result;
use pagelab_counters::Root;
use pagelab_counters::visible::{acts, escape};
use pagelab_experiment::Failure;
use pagelab_report::text::Style;
pub use pagelab_report::text::wrapped;
use serde_json::{Value, json};

use crate::context::Context;
use crate::terminal;

/// The version of every JSON form that pagelab prints; it grows when a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// `println!` whose reader may go away (`pagelab list | head`): that ends the program, and is no failure.
macro_rules! say {
    () => { $crate::output::line(format_args!("")) };
    ($($text:tt)+) => { $crate::output::line(format_args!($($text)+)) };
}
pub(crate) use say;

/// `eprintln!` with the program's name before it, for people: where nobody reads it, nothing is lost.
macro_rules! remark {
    ($($text:tt)+) => { $crate::output::remark_line(format_args!($($text)+)) };
}
pub(crate) use remark;

/// The exit status if the reader of the output goes away.
static STATUS: AtomicU8 = AtomicU8::new(0);

/// Ends the program with this status where the reader of its output goes away: for commands whose
/// exit status is an answer, before they print it.
pub fn set_status(status: u8) {
    STATUS.store(status, Ordering::Relaxed);
}

/// The exit status of a program whose reader went away.
pub fn closed() -> ExitCode {
    ExitCode::from(STATUS.load(Ordering::Relaxed))
}

/// The words of the warnings that commands print on stderr, and what they mean.
pub const WARNINGS: [(&str, &str); 4] = [MISSING, REACHABLE, UNJUDGED, CAPPED];
pub const MISSING: (&str, &str) = (
    "figures are missing",
    "Counters could not be read, for the reason given, so the output is incomplete and the \
     exit status is 3",
);
pub const REACHABLE: (&str, &str) = (
    "other machines can reach",
    "The server has neither password nor encryption, and listens on an address that is not \
     local. Give localhost:PORT, or put a proxy in front of it",
);
pub const UNJUDGED: (&str, &str) = (
    "but --fail-on does not judge them",
    "Only the metrics of --metric, by default the primary one, decide the exit status. These \
     others got worse as well",
);
pub const CAPPED: (&str, &str) = (
    "the working set is capped by the memory limit of the cgroup",
    "The process cannot hold more than its limit, so the figure is the limit and not what it \
     needs. Measure it with a higher limit",
);

/// Why counters are missing: this process may not open more files.
pub fn unread(root: &Root) -> Option<String> {
    let files = root.out_of_files();
    (files > 0).then(|| format!("{files} files could not be opened: too many open files (raise 'ulimit -n')"))
}

/// The exit status of a view that is complete, or 3 after a warning.
pub fn complete(root: &Root) -> ExitCode {
    match unread(root) {
        Some(why) => {
            remark!("warning: {}: {why}", MISSING.0);
            ExitCode::from(3)
        }
        None => ExitCode::SUCCESS,
    }
}

/// Prints a line; see [`say!`]. Only for what comes after the work is done and undone.
pub fn line(text: fmt::Arguments<'_>) {
    if let Err(error) = writeln!(stdout(), "{text}") {
        if error.kind() == io::ErrorKind::BrokenPipe {
            std::process::exit(STATUS.load(Ordering::Relaxed).into());
        }
        remark!("{error}");
        std::process::exit(3);
    }
}

/// Prints a line about the figures: with them, or on standard error where these are JSON.
pub fn aside(text: &str, json: bool) {
    if json { remark_text(text) } else { say!("{text}") }
}

/// Prints a remark; see [`remark!`]. A warning says so itself.
pub fn remark_line(text: fmt::Arguments<'_>) {
    let text = text.to_string().replace(HINT, "; ");
    if text.starts_with("warning: ") { remark_text(&text) } else { remark_text(&format!("pagelab: {text}")) }
}

/// What separates the problem from its remedy in the text of an error.
pub const HINT: &str = "\nhint: ";

/// Prints why a command failed: the problem, and on a line of its own the remedy if the error has one.
pub fn error(error: &anyhow::Error) {
    let (problem, remedy) = in_two(error);
    remark_text(&format!("error: {problem}"));
    if let Some(remedy) = remedy {
        remark_text(&format!("hint: {remedy}"));
    }
}

/// The problem with its causes, and the remedy of whichever of them has one.
fn in_two(error: &anyhow::Error) -> (String, Option<String>) {
    let (mut problem, mut remedy) = (String::new(), None);
    for cause in error.chain() {
        let text = cause.to_string();
        let of_failure = cause.downcast_ref::<Failure>().and_then(Failure::remedy);
        let (what, hint) = match (text.split_once(HINT), of_failure) {
            (Some((what, hint)), _) => (what.to_owned(), Some(hint.to_owned())),
            (None, Some(hint)) => {
                let what = text.strip_suffix(hint).and_then(|what| what.strip_suffix("; "));
                (what.unwrap_or(&text).to_owned(), Some(hint.to_owned()))
            }
            (None, None) => (text, None),
        };
        // A cause may be part of the text of what it caused.
        if !problem.ends_with(&what) {
            problem += if problem.is_empty() { "" } else { ": " };
            problem += &what;
        }
        remedy = remedy.or(hint);
    }
    (problem, remedy)
}

/// The same without the program's name.
fn remark_text(text: &str) {
    let text = match terminal::error_columns() {
        Some(width) => wrapped(text, "", "  ", &Style { color: false, width: width.clamp(40, 240) }),
        None => text.to_owned(),
    };
    // In one piece, so that remarks of several processes do not mix.
    let _ = Visible::new(io::stderr().lock()).write_all(format!("{text}\n").as_bytes());
}

/// Standard output, for everything that is printed.
pub fn stdout() -> Visible<io::Stdout> {
    Visible::new(io::stdout())
}

/// Whether the escape sequences of our own bold type and colours may pass.
static STYLED: AtomicBool = AtomicBool::new(false);

/// Lets our own bold type and colours pass from now on, where `style` has them.
pub fn set_style(style: &Style) {
    STYLED.store(style.color, Ordering::Relaxed);
}

/// The sequences of a table: bold type of its heading; red, green and yellow of a verdict; the end of each.
const OWN_SEQUENCES: [&str; 6] =
    ["\u{1b}[1m", "\u{1b}[0m", "\u{1b}[38;5;1m", "\u{1b}[38;5;2m", "\u{1b}[38;5;3m", "\u{1b}[39m"];

/// A writer of texts in which nothing acts but ends of lines and tabulators: control characters come out
/// visible, as JSON has them, and so does what is no UTF-8.
pub struct Visible<W> {
    to: W,
    /// The beginning of a character whose end was not written yet.
    begun: Vec<u8>,
}

impl<W: Write> Visible<W> {
    /// Writes to `to`.
    pub fn new(to: W) -> Self {
        Self { to, begun: Vec::new() }
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        let harmless = |c: char| !acts(c) || matches!(c, '\n' | '\t');
        if text.chars().all(harmless) {
            return self.to.write_all(text.as_bytes());
        }
        let mut shown = String::with_capacity(text.len() + 64);
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let sequence = OWN_SEQUENCES.iter().find(|sequence| rest.starts_with(**sequence));
            if let Some(sequence) = sequence.filter(|_| STYLED.load(Ordering::Relaxed)) {
                shown.push_str(sequence);
                rest = &rest[sequence.len()..];
                continue;
            }
            if harmless(c) {
                shown.push(c)
            } else {
                escape(c, &mut shown)
            }
            rest = &rest[c.len_utf8()..];
        }
        self.to.write_all(shown.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let joined;
        let mut rest = bytes;
        if !self.begun.is_empty() {
            joined = [std::mem::take(&mut self.begun).as_slice(), bytes].concat();
            rest = &joined;
        }
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => return self.text(text),
                Err(error) => {
                    let (text, tail) = rest.split_at(error.valid_up_to());
                    self.text(&String::from_utf8_lossy(text))?;
                    let Some(wrong) = error.error_len() else {
                        self.begun = tail.to_vec();
                        return Ok(());
                    };
                    for byte in &tail[..wrong] {
                        write!(self.to, "\\x{byte:02x}")?;
                    }
                    rest = &tail[wrong..];
                }
            }
        }
    }
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes(bytes).map(|()| bytes.len()).map_err(unwritten)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().map_err(unwritten)
    }
}

/// The same error with what it is about.
fn unwritten(error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the output cannot be written: {error}"))
}

/// Prints sentences, broken at spaces where the terminal ends, never within a name or before a unit; the
/// lines after the first are indented by `rest`.
pub fn sentences(text: &str, first: &str, rest: &str, style: &Style) {
    say!("{}", wrapped(text, first, rest, style));
}

/// A line broken at spaces where lines have an end; the lines after the first are indented by `rest`.
pub fn bounded(line: &str, rest: &str, context: &Context) -> String {
    let words = line.trim_start();
    let indent = &line[..line.len() - words.len()];
    if terminal::bounded() { wrapped(words, indent, rest, &context.style) } else { line.to_owned() }
}

/// Prints a finished text of several lines.
pub fn text(text: &str) {
    text.lines().for_each(|line| say!("{line}"));
}

/// Writes an interval of a live view as a line of JSON: the time, and the object `figures`.
pub fn write_interval(out: &mut impl Write, since_boot: bool, mut figures: Value) -> io::Result<()> {
    figures["schema_version"] = SCHEMA_VERSION.into();
    figures["time"] = jiff::Timestamp::now().to_string().into();
    figures["since_boot"] = since_boot.into();
    writeln!(out, "{figures}")
}

/// Prints `{"schema_version": …, KEY: VALUE}`.
pub fn print_json(key: &str, value: Value) -> Result<ExitCode> {
    let mut object = json!({ "schema_version": SCHEMA_VERSION });
    object[key] = value;
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, &object).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use pagelab_analysis::figure::Tone;

    use super::*;

    fn printed(parts: &[&[u8]]) -> String {
        let mut out = Visible::new(Vec::new());
        parts.iter().for_each(|part| out.write_all(part).unwrap());
        String::from_utf8(out.to).unwrap()
    }

    #[test]
    fn a_hint_ends_before_the_cause_begins() {
        let of = |error: anyhow::Error| in_two(&error);
        let cause = || anyhow::Error::from(io::Error::other("no such file"));
        let both = of(cause().context("cannot read 7\nhint: run as root"));
        assert_eq!(both, ("cannot read 7: no such file".into(), Some("run as root".into())));
        let failure = Failure::unsupported("no cgroup", "give --memory");
        let both = of(anyhow::Error::from(failure).context("oom on host"));
        assert_eq!(both, ("oom on host: no cgroup".into(), Some("give --memory".into())));
        assert_eq!(of(cause()), ("no such file".into(), None));
    }

    #[test]
    fn nothing_printed_acts_on_the_terminal() {
        assert_eq!(printed(&[b"a\tb\n"]), "a\tb\n");
        assert_eq!(printed(&["µs – 内存".as_bytes()]), "µs – 内存");
        assert_eq!(printed(&[b"\x1b[2J\x1b]0;x\x07"]), "\\u001b[2J\\u001b]0;x\\u0007");
        assert_eq!(printed(&["\u{9b}31m\u{202e}".as_bytes()]), "\\u009b31m\\u202e");
        assert_eq!(printed(&[b"\xff\xfe."]), "\\xff\\xfe.");
        let micro = "µ".as_bytes();
        assert_eq!(printed(&[&micro[..1], &micro[1..], b"s"]), "µs", "a character in two parts");
    }

    #[test]
    fn only_our_own_bold_type_and_colours_pass_and_only_where_they_are_wanted() {
        let bold = "\u{1b}[1mname\u{1b}[0m \u{1b}[31m";
        assert_eq!(printed(&[bold.as_bytes()]), "\\u001b[1mname\\u001b[0m \\u001b[31m");
        let style = Style { color: true, width: 80 };
        let rows = ["reproduced", "partly", "not"].map(|word| vec![word.to_owned()]);
        let tones = [Tone::Good, Tone::Fair, Tone::Bad];
        let made = pagelab_report::text::toned(&["verdict"], &rows, &tones, &style);
        set_style(&style);
        let (table, other) = (printed(&[made.as_bytes()]), printed(&[bold.as_bytes()]));
        set_style(&Style { color: false, ..style });
        assert!(table == made && made.matches('\u{1b}').count() >= 8, "{made:?}");
        assert_eq!(other, "\u{1b}[1mname\u{1b}[0m \\u001b[31m");
    }
}
