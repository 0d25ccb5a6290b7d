//! Denning's working set of a stream: the different pages among the last τ references.
//!
//! Source: P. J. Denning, "The working set model for program behavior", Communications of the ACM
//! 11(5), 1968.

/// The working set over time.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkingSetSizes {
    /// The window in references.
    pub tau: usize,
    /// References made, and the size in pages just after the last of them: every `step` references and
    /// at the end.
    pub sizes: Vec<(u64, u32)>,
    /// Mean size over all references, in pages; `None` for an empty stream.
    pub mean: Option<f64>,
    /// The greatest size, in pages.
    pub peak: u32,
}

/// The working set of a window of `tau` references to the pages `0..pages`, noted every `step` (both at least 1). Exact; one
/// pass and 8 bytes a page.
///
/// # Panics
/// When a reference is not below `pages`.
pub fn working_set(pages: u32, all: &[u32], tau: usize, step: usize) -> WorkingSetSizes {
    let (tau, step) = (tau.max(1), step.max(1));
    // The number of references made up to and including the last one to each page; 0 for none.
    let mut last = vec![0usize; pages as usize];
    let (mut size, mut peak, mut sum) = (0u32, 0, 0u64);
    let mut sizes = Vec::new();
    for (i, &page) in all.iter().enumerate() {
        let made = i + 1;
        // The page referenced τ references ago leaves, unless it was referenced since.
        if let Some(left) = made.checked_sub(tau.saturating_add(1))
            && last[all[left] as usize] == left + 1
        {
            size -= 1;
        }
        let before = std::mem::replace(&mut last[page as usize], made);
        if before == 0 || made - before >= tau {
            size += 1;
        }
        peak = peak.max(size);
        sum += u64::from(size);
        if made.is_multiple_of(step) || made == all.len() {
            sizes.push((made as u64, size));
        }
    }
    let mean = (!all.is_empty()).then(|| sum as f64 / all.len() as f64);
    WorkingSetSizes { tau, sizes, mean, peak }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_working_set_is_what_the_window_holds(
            list in proptest::collection::vec(0u32..30, 1..400), tau in 1usize..100,
        ) {
            let found = working_set(30, &list, tau, 1);
            let wanted: Vec<(u64, u32)> = (1..=list.len())
                .map(|made| {
                    let window: BTreeSet<_> = list[made.saturating_sub(tau)..made].iter().collect();
                    (made as u64, window.len() as u32)
                })
                .collect();
            prop_assert_eq!(&found.sizes, &wanted);
            prop_assert_eq!(found.peak, wanted.iter().map(|w| w.1).max().unwrap());
            let mean = wanted.iter().map(|w| f64::from(w.1)).sum::<f64>() / wanted.len() as f64;
            prop_assert!((found.mean.unwrap() - mean).abs() < 1e-9);
            let rough = working_set(30, &list, tau, 7);
            prop_assert!(rough.sizes.iter().all(|s| wanted.contains(s)));
            prop_assert_eq!(rough.sizes.last(), wanted.last());
        }
    }
}
