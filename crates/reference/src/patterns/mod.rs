//! The generators, one file for each family. Each function's documentation is its specification.

pub mod simple;
pub mod sine;
pub mod zipf;
