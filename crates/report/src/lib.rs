//! What is shown: findings, comparisons and runs as text for a terminal, as JSON, as one
//! self-contained page of plots, and in the formats of other tools.
//!
//! This crate draws what it is given: runs and what the analysis made of them.

pub mod comparisons;
pub mod curves;
pub mod exchange;
pub mod findings;
pub mod fuzz;
pub mod gate;
pub mod history;
pub mod ladder;
pub mod live;
pub mod mechanisms;
pub mod need;
pub mod page;
pub mod portrait;
pub mod runs;
pub mod shadow;
pub mod site;
mod table;
pub mod text;

pub use page::curve::plots as curve_plots;
pub use page::{Score, Section, document, page};
pub use table::TextTable;
