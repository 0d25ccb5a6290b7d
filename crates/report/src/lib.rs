//! What is shown: findings, comparisons and runs as text for a terminal, as JSON, and as one
//! self-contained page of plots.
//!
//! This crate draws what it is given: runs and what the analysis made of them.

pub mod comparisons;
pub mod curves;
pub mod findings;
pub mod ladder;
pub mod page;
pub mod runs;
pub mod text;

pub use page::curve::plots as curve_plots;
pub use page::{Score, Section, TextTable, document, page};
