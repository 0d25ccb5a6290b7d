//! The generators, one file for each family. Each function's documentation is its specification.

pub mod simple;
pub mod sine;
pub mod zipf;

/// Told now and then how far a generator is, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// References between two words of progress.
const CHUNK: usize = 1 << 20;

/// `references` page numbers, the i-th from `next(i)`.
pub(crate) fn draw(references: usize, progress: Progress, mut next: impl FnMut(usize) -> u32) -> Vec<u32> {
    let mut list = Vec::with_capacity(references);
    while list.len() < references {
        progress(list.len() as f64 / references as f64);
        let end = references.min(list.len() + CHUNK);
        list.extend((list.len()..end).map(&mut next));
    }
    list
}
