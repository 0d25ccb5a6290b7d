//! Page replacement policies from the literature, each in a file with its source.
//!
//! They answer one question: with this many frames, which references of a stream miss? Pages are
//! dense numbers, so a policy indexes arrays and needs no hash; 4 to 16 bytes a page for most, 40
//! for CLOCK-Pro. Systems with reserves, dirty pages and time are composed elsewhere; nothing here
//! has a clock.

pub mod aging;
pub mod arc;
pub mod cacheus;
pub mod car;
mod catalogue;
pub mod cflru;
pub mod clock;
pub mod clock_pro;
pub mod fifo;
pub mod gclock;
pub(crate) mod heap;
pub mod hyperbolic;
mod kind;
pub mod le_car;
pub mod lfu;
pub mod lfuda;
pub mod lirs;
pub mod lru;
pub mod lru_k;
pub(crate) mod lru_sizes;
pub mod mq;
pub mod mru;
pub mod nru;
pub mod opt;
mod parameters;
pub mod pff;
pub mod plugged;
mod queue;
pub mod random;
pub mod residents;
pub mod s3_fifo;
pub mod sieve;
pub mod slru;
mod time_line;
pub mod tiny_lfu;
pub mod two_q;
pub mod ws;
pub mod wsclock;

#[cfg(test)]
mod naive;

pub use catalogue::Described;
pub use kind::PolicyKind;
pub use parameters::PolicyError;

use pagelab_reference::Stream;
use prefetch_index::prefetch_index;

/// Page replacement in a number of frames that is fixed when the policy is made.
///
/// All policies page on demand: a miss brings in the page that was referenced and no other.
pub trait Policy: Send {
    /// References a page; whether it was resident.
    ///
    /// # Panics
    /// When the page is not below the number of pages the policy was made for.
    fn reference(&mut self, page: u32) -> bool;

    /// As [`Policy::reference`], of which is known whether it is a write. Most policies treat both
    /// alike.
    ///
    /// # Panics
    /// As there.
    fn access(&mut self, page: u32, _write: bool) -> bool {
        self.reference(page)
    }

    /// References these pages in turn and counts the misses: [`Policy::reference`] without a
    /// dynamic call for each. Long slices are faster.
    fn misses(&mut self, references: &[u32]) -> u64 {
        references.iter().map(|&page| u64::from(!self.reference(page))).sum()
    }

    /// There are `pages` pages from now on, of which the new ones are not resident. Fewer change
    /// nothing.
    fn grow(&mut self, pages: u32);

    /// Pages resident now.
    fn resident(&self) -> usize;

    /// Whether this page is resident; `None` from a policy that keeps no names: OPT knows when what
    /// it holds is wanted, and the working set forgets by time.
    fn contains(&self, _page: u32) -> Option<bool> {
        None
    }

    /// What the policy counts of its own work, in words.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Writes so far of dirty pages, and of those that are dirty now, from a policy that also
    /// writes them before they are evicted.
    fn write_backs(&self) -> Option<u64> {
        None
    }

    /// Mean number of resident pages over the references so far, for policies of variable space.
    fn mean_resident(&self) -> Option<f64> {
        None
    }
}

/// [`Policy::grow`] for a table of one entry a page.
pub(crate) fn grow<T: Clone + Default>(table: &mut Vec<T>, pages: u32) {
    if table.len() < pages as usize {
        table.resize(pages as usize, T::default());
    }
}

/// As [`grow`] where a new page is not the default.
pub(crate) fn grow_with<T: Clone>(table: &mut Vec<T>, pages: u32, new: T) {
    if table.len() < pages as usize {
        table.resize(pages as usize, new);
    }
}

/// So many references ahead what a policy will look at is fetched into the processor's cache.
pub(crate) const AHEAD: usize = 32;

/// [`Policy::misses`] of a policy whose first look at a page is at its entry in a table: the
/// entries are fetched some references ahead, so that their cache misses overlap.
#[inline(always)]
fn count_fetching<P: Policy, T>(policy: &mut P, references: &[u32], table: impl Fn(&P) -> &[T]) -> u64 {
    count_after(policy, references, |policy, page, _| prefetch_index(table(policy), page as usize))
}

/// [`Policy::misses`] where `fetch` is told the pages that are referenced [`AHEAD`] references
/// later, and half as many.
#[inline(always)]
fn count_after<P: Policy>(policy: &mut P, references: &[u32], fetch: impl Fn(&P, u32, u32)) -> u64 {
    let Some(&last) = references.last() else { return 0 };
    let at = |n: usize| references.get(n).copied().unwrap_or(last);
    let each = |(n, &page): (usize, &u32)| {
        fetch(policy, at(n + AHEAD), at(n + AHEAD / 2));
        u64::from(!policy.reference(page))
    };
    references.iter().enumerate().map(each).sum()
}

/// Misses of exact LRU on this stream with `frames` frames (at least 1), the first references to
/// each page included.
pub fn lru_misses(stream: &Stream, frames: u32) -> u64 {
    lru::Lru::new(stream.pages(), frames.max(1)).misses(stream.references())
}

/// Misses of exact OPT, the fewest any policy can have, counted as for [`lru_misses`].
///
/// # Panics
/// When the stream has 2^32 − 1 references or more.
pub fn opt_misses(stream: &Stream, frames: u32) -> u64 {
    let future = opt::NextUse::of(stream.pages(), stream.references());
    opt::Opt::new(frames.max(1), &future).misses(stream.references())
}
