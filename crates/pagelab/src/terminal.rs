//! What standard output can show: its width and whether it takes colour.

use std::io::IsTerminal;

use clap::ValueEnum;
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
    let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let seen = || terminal.then(|| crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns)));
    let width = asked.or_else(|| seen().flatten()).unwrap_or(PIPE_WIDTH);
    Style { color, width: width.clamp(40, 240) }
}
