//! What an administrator looks at, computed from snapshots. Nothing here reads a file: each view
//! says what it needs as a [`Selection`], and its formulas stand beside its columns.

pub mod cachestat;
pub mod capped;
pub mod doctor;
pub mod files;
pub mod iostat;
pub mod memstat;
pub mod prstat;
pub mod series;
pub mod stat;
pub mod vmstat;
pub mod xcalls;

use crate::select::Selection;

/// A column of a view: its name in the heading, and its meaning.
pub type Described = (&'static str, &'static str);

/// The columns as lines for a help, names and meanings below one another.
pub fn described(columns: &[Described]) -> String {
    let width = columns.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    columns.iter().map(|(name, help)| format!("  {name:<width$}  {help}\n")).collect()
}

/// The selection of operands that are written in the code.
fn constant(operands: &[&str]) -> Selection {
    Selection::parse(operands.iter().copied())
        .expect("operands in the code are well formed, as the tests read every view")
}

/// A figure in a column: whole, or with decimals, or a dash where there is none.
fn cell(value: Option<f64>, width: usize, decimals: usize) -> String {
    match value {
        Some(v) => format!("{:>width$.decimals$} ", positive_zero(v, decimals)),
        None => format!("{:>width$} ", "-"),
    }
}

/// The value, but 0 instead of one that would be printed as -0.
fn positive_zero(value: f64, decimals: usize) -> f64 {
    if value.abs() * 10f64.powi(decimals as i32) < 0.5 { 0.0 } else { value }
}

/// How wide the lines of a view may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// As wide as the view is.
    Whole,
    /// At most so many columns, of which a view takes at least [`NARROWEST`].
    Columns(usize),
}

/// What a view fits into.
pub const NARROWEST: usize = 80;

impl Width {
    /// The columns of a terminal that has so many; None: of none.
    pub fn of(columns: Option<usize>, whole: usize) -> Self {
        match columns {
            Some(columns) if columns < whole => Self::Columns(columns.max(NARROWEST)),
            _ => Self::Whole,
        }
    }

    /// The end of a name that has room beside `taken` columns, or its beginning where that says
    /// more.
    pub fn cut(self, name: &str, taken: usize) -> String {
        let Self::Columns(columns) = self else { return name.to_owned() };
        let room = columns.saturating_sub(taken);
        let length = name.chars().count();
        if length <= room {
            return name.to_owned();
        }
        // Of a path the end tells which it is.
        let kept = room.saturating_sub(1);
        if name.starts_with('/') {
            ['…'].into_iter().chain(name.chars().skip(length - kept)).collect()
        } else {
            name.chars().take(kept).chain(['…']).collect()
        }
    }
}

/// A whole figure in a column, in thousands (`base`) and so on with their letters where it is too
/// long.
fn fitting(value: Option<f64>, width: usize, base: f64, letters: &[&str]) -> String {
    let Some(value) = value else { return cell(None, width, 0) };
    let texts = letters
        .iter()
        .enumerate()
        .map(|(n, letter)| format!("{:.0}{letter}", positive_zero(value / base.powi(n as i32), 0)));
    let mut last = String::new();
    for text in texts {
        let fits = text.len() <= width;
        last = text;
        if fits {
            break;
        }
    }
    format!("{last:>width$} ")
}
