//! What the options before every command say. It knows no command, so that all of them can use it.

use std::path::PathBuf;

use pagelab_report::text::Style;

/// What every command needs to know.
pub struct Context {
    /// The notebook's file.
    pub notebook: PathBuf,
    /// How to print to standard output.
    pub style: Style,
    /// Whether progress and remarks are unwanted.
    pub quiet: bool,
}
