//! What is shown: tables for a terminal, and one self-contained page of plots.
//!
//! This crate draws what it is given: runs, finished comparisons, sentences. It computes no statistics
//! but a median.

pub mod page;
pub mod text;

pub use page::plot;
pub use page::{Curve, PageInput, Section, TextTable, document, page};
