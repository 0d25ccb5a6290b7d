//! What an administrator looks at, computed from snapshots. Nothing here reads a file: each view says
//! what it needs as a [`Selection`], and its formulas stand beside its columns.

pub mod doctor;
pub mod iostat;
pub mod memstat;
pub mod prstat;
pub mod series;
pub mod stat;
pub mod vmstat;

use crate::select::Selection;

/// The selection of operands that are written in the code.
fn constant(operands: &[&str]) -> Selection {
    Selection::parse(operands.iter().copied())
        .expect("operands in the code are well formed, as the tests read every view")
}

/// A figure in a column: whole, or with decimals, or a dash where there is none.
fn cell(value: Option<f64>, width: usize, decimals: usize) -> String {
    match value {
        Some(v) => format!("{v:>width$.decimals$} "),
        None => format!("{:>width$} ", "-"),
    }
}
