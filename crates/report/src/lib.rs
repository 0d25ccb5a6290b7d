//! What is shown: tables for a terminal, and one self-contained page of plots.

pub mod text;

use pagelab_experiment::Run;

/// What a page is drawn from.
pub struct PageInput<'a> {
    /// The page's title.
    pub title: String,
    /// Sentences for the top.
    pub verdict: Vec<String>,
    /// The runs, drawn side by side.
    pub runs: Vec<&'a Run>,
    /// Finished comparisons.
    pub comparisons: Vec<ComparisonTable>,
}

/// A finished comparison.
pub struct ComparisonTable {
    /// What is compared with what.
    pub title: String,
    /// The columns.
    pub headings: Vec<String>,
    /// A row for each metric, a cell for each column.
    pub rows: Vec<Vec<String>>,
    /// What spoils the comparison.
    pub warnings: Vec<String>,
}

/// The page (being drawn elsewhere).
pub fn page(input: &PageInput) -> String {
    input.title.replace('<', "&lt;")
}
