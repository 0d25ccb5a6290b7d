//! The generators, one file for each family. Each function's documentation is its specification.

pub mod phases;
pub mod recorded;
pub mod simple;
pub mod sine;
pub mod zipf;

use crate::trace::TraceError;

/// Appends the next references to a list, as many as are asked for: what was appended before needs not be kept.
pub type Generator = Box<dyn FnMut(usize, &mut Vec<u32>) -> Result<(), TraceError> + Send>;

/// The references of an iterator, which has as many as are ever asked for.
fn each(mut references: impl Iterator<Item = u32> + Send + 'static) -> Generator {
    Box::new(move |count, list| {
        list.extend(references.by_ref().take(count));
        Ok(())
    })
}

#[cfg(test)]
fn list(mut generator: Generator, count: usize) -> Vec<u32> {
    let mut list = Vec::new();
    generator(count, &mut list).unwrap();
    list
}
