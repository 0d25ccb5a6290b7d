//! Misses on a stream that begins with an opening: the references that put a mapping in memory before
//! the measured ones.

use pagelab_model::policy::PolicyKind;
use pagelab_model::policy::opt::NextUse;

/// Misses of `policy` on `references` to the pages `0..pages`, the first `opening` references not
/// counted but replayed. `frames` of 0 counts as 1.
///
/// # Panics
/// For `opt`, when there are 2^32 − 1 references or more.
pub fn misses_after(opening: usize, pages: u32, references: &[u32], policy: &PolicyKind, frames: u32) -> u64 {
    let future = policy.needs_future().then(|| NextUse::of(pages, references));
    let mut state = policy.build(pages, frames.max(1), future.as_ref());
    let mut misses = 0;
    for (number, &page) in references.iter().enumerate() {
        misses += u64::from(!state.reference(page) && number >= opening);
    }
    misses
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages 0 and 1 of three are in memory after the opening; page 2 takes the place of page 0.
    #[test]
    fn misses_of_the_opening_do_not_count() {
        let references = [0, 1, 1, 2, 0];
        assert_eq!(misses_after(0, 3, &references, &PolicyKind::Lru, 2), 4);
        assert_eq!(misses_after(2, 3, &references, &PolicyKind::Lru, 2), 2);
        assert_eq!(misses_after(2, 3, &references, &PolicyKind::Opt, 2), 1);
        assert_eq!(misses_after(5, 3, &references, &PolicyKind::Opt, 2), 0);
    }
}
