//! What standard output can show: its width and whether it takes colour.

use std::io::IsTerminal;

use clap::ValueEnum;
use pagelab_counters::views::Width;
use pagelab_report::text::Style;

/// When to print colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The width of what is not a terminal.
const PIPE_WIDTH: usize = 100;

/// Whether lines have an end: on a terminal, or where COLUMNS says so.
pub fn bounded() -> bool {
    columns().is_some()
}

/// How wide the lines of a view may be that is `whole` columns wide by itself.
pub fn width(whole: usize) -> Width {
    Width::of(columns(), whole)
}

/// The columns asked for, else the terminal's that standard output is.
fn columns() -> Option<usize> {
    columns_of(std::io::stdout().is_terminal())
}

/// The same of standard error.
pub fn error_columns() -> Option<usize> {
    columns_of(std::io::stderr().is_terminal())
}

fn columns_of(terminal: bool) -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let seen = || crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    asked.or_else(|| terminal.then(seen).flatten())
}

/// The style for standard output.
pub fn style(color: Color) -> Style {
    let terminal = std::io::stdout().is_terminal();
    let color = match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            terminal
                && std::env::var_os("NO_COLOR").is_none()
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        }
    };
    Style { color, width: columns().unwrap_or(PIPE_WIDTH).clamp(40, 240) }
}
