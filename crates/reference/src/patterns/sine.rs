//! VM Regress's sine patterns (Mel Gorman, 2002): `smooth_sin` of version 0.37, the form that
//! version 0.6 used, and the random shuffle.

use std::f64::consts::PI;

use super::{Generator, each};
use crate::progress::{Progress, Stopped};
use crate::rng::Rng;

/// How often each page is referenced: the sine part, then the fill that makes the sum exact.
struct Counts {
    sine: Vec<u32>,
    sine_total: u64,
}

/// The sine part for `references` references over `pages` pages.
///
/// With `step` = 1, 2, 4, …: page `i` has `⌊step · (1 + sin(3π · i / pages))⌋` references (one and a
/// half periods over the region); the doubling stops when the sum is above half of the references
/// asked for. `sin` is `libm::sin`. A sum above the number asked for is cut by the callers.
///
/// Where a region is so much larger than the number of references that even `step` = 1 exceeds
/// it, that first step stands and is cut.
fn counts(pages: u32, references: u64) -> Counts {
    let shape: Vec<f64> =
        (0..pages).map(|i| 1.0 + libm::sin(3.0 * PI * f64::from(i) / f64::from(pages))).collect();
    let mut step = 1.0;
    loop {
        let sine: Vec<u32> = shape.iter().map(|s| (step * s) as u32).collect();
        let sine_total = sine.iter().map(|&c| u64::from(c)).sum();
        if sine_total > references / 2 {
            return Counts { sine, sine_total };
        }
        step *= 2.0;
    }
}

/// Each page its number of times consecutively, pages in ascending order.
fn in_page_order(counts: Vec<u32>) -> impl Iterator<Item = u32> + Send {
    (0..).zip(counts).flat_map(|(page, count)| std::iter::repeat_n(page, count as usize))
}

/// The counts of [`smooth_sin`].
fn filled(pages: u32, references: u64) -> Vec<u32> {
    let mut counts = counts(pages, references);
    let fill = references.saturating_sub(counts.sine_total);
    let (each, rest) = (fill / u64::from(pages), fill % u64::from(pages));
    for (page, count) in (0..).zip(&mut counts.sine) {
        *count += each as u32 + u32::from(page < rest);
    }
    counts.sine
}

/// `smooth_sin` of VM Regress 0.37: the sine part (see the module), then one reference more for
/// page 0, 1, 2, … (and again from 0) until the sum is `references`; all references of a page
/// follow one another, and pages ascend. One sweep over the region.
pub fn smooth_sin(pages: u32, references: u64) -> Generator {
    each(in_page_order(filled(pages, references)))
}

/// `smooth_sin` of VM Regress 0.6: the sine part in page order, then the fill as ordered sweeps
/// 0, 1, 2, … appended at the end.
pub fn smooth_sin_tail(pages: u32, references: u64) -> Generator {
    each(in_page_order(counts(pages, references).sine).chain((0..pages).cycle()))
}

/// The multiset of [`smooth_sin`], shuffled by [`Rng::shuffle`] from a generator started at `seed`. A shuffle
/// needs all of it: 4 bytes a reference.
///
/// # Errors
/// [`Stopped`] where `progress` ends it.
pub fn smooth_sin_random(
    pages: u32,
    references: u64,
    seed: u64,
    progress: Progress,
) -> Result<Generator, Stopped> {
    let mut list = Vec::with_capacity(references as usize);
    list.extend(in_page_order(filled(pages, references)).take(references as usize));
    Rng::new(seed).shuffle(&mut list, progress)?;
    Ok(each(list.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;
    use crate::progress::unwatched;

    fn smooth_sin(pages: u32, references: usize) -> Vec<u32> {
        list(super::smooth_sin(pages, references as u64), references)
    }

    fn smooth_sin_tail(pages: u32, references: usize) -> Vec<u32> {
        list(super::smooth_sin_tail(pages, references as u64), references)
    }

    fn histogram(list: &[u32], pages: usize) -> Vec<u32> {
        let mut counts = vec![0; pages];
        for &page in list {
            counts[page as usize] += 1;
        }
        counts
    }

    /// The test vectors: pages, sine part, largest count and its first page, smallest and its
    /// first page, the page at reference 1,000,000, counts of the first and the last page.
    #[test]
    fn the_test_vectors_of_vm_regress() {
        for (pages, sine, max, min, middle, ends) in [
            (25_000, 1_926_848, (130, 3_698), (3, 12_031), 12_181, (67, 66)),
            (50_000, 1_914_014, (65, 7_004), (2, 23_671), 22_489, (34, 33)),
        ] {
            assert_eq!(counts(pages, 2_000_000).sine_total, sine);
            let list = smooth_sin(pages, 2_000_000);
            assert_eq!(list.len(), 2_000_000);
            assert!(list.is_sorted());
            let counts = histogram(&list, pages as usize);
            let most = *counts.iter().max().unwrap();
            let least = *counts.iter().min().unwrap();
            assert_eq!((most, counts.iter().position(|&c| c == most).unwrap()), max);
            assert_eq!((least, counts.iter().position(|&c| c == least).unwrap()), min);
            assert_eq!(list[1_000_000], middle);
            assert_eq!((counts[0], counts[pages as usize - 1]), ends);
        }
    }

    #[test]
    fn the_06_form_has_the_same_multiset_and_a_tail_of_sweeps() {
        let mut tail = smooth_sin_tail(25_000, 2_000_000);
        assert_eq!(tail[1_926_848..1_926_851], [0, 1, 2]);
        tail.sort_unstable();
        assert_eq!(tail, smooth_sin(25_000, 2_000_000));
    }

    #[test]
    fn the_shuffle_has_the_same_multiset() {
        let mut list = list(smooth_sin_random(500, 10_000, 9, &mut unwatched).unwrap(), 10_000);
        assert!(!list.is_sorted());
        list.sort_unstable();
        assert_eq!(list, smooth_sin(500, 10_000));
    }

    #[test]
    fn fewer_references_than_pages_are_cut() {
        assert_eq!(smooth_sin(1000, 10).len(), 10);
        assert_eq!(smooth_sin_tail(1000, 10).len(), 10);
    }
}
