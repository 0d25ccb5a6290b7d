//! OPT: the page whose next reference lies farthest ahead goes. No policy has fewer misses.
//!
//! Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer",
//! IBM Systems Journal 5(2), 1966 (MIN). Exact, from the whole stream.
//!
//! The resident set is kept as the set of times at which its pages are next referenced. Times are
//! distinct, so the set is one bit for each reference, with a summary bit for every 64: whether the
//! page referenced at time t is resident is bit t, and the victim is the highest bit set. No
//! table of pages and no heap is needed: 4 bytes (next use) and about 1 bit a reference. Whoever must know which pages
//! are resident asks for their names, which takes a table.

use std::collections::HashMap;

use super::{AHEAD, Policy};
use prefetch_index::prefetch_index;

/// For each reference of a stream, when its page is referenced next.
#[derive(Debug)]
pub struct NextUse {
    next: Vec<u32>,
}

/// The next use of a page that is not referenced again.
const NEVER: u32 = u32::MAX;

impl NextUse {
    /// Reads the stream backwards once. 4 bytes a reference are kept, 4 bytes a page while it runs.
    ///
    /// # Panics
    /// When there are 2^32 − 1 references or more, or a reference is not below `pages`.
    pub fn of(pages: u32, references: &[u32]) -> Self {
        assert!(references.len() < NEVER as usize, "too many references for OPT: at most {}", NEVER - 1);
        let mut upcoming = vec![NEVER; pages as usize];
        let mut next = vec![NEVER; references.len()];
        for (time, &page) in references.iter().enumerate().rev() {
            prefetch_index(&upcoming, references[time.saturating_sub(AHEAD)] as usize);
            next[time] = std::mem::replace(&mut upcoming[page as usize], time as u32);
        }
        Self { next }
    }
}

/// Belady's OPT over a stream whose future is known.
#[derive(Debug)]
pub struct Opt<'a> {
    next: &'a [u32],
    now: usize,
    frames: usize,
    resident: usize,
    /// Resident pages that are not referenced again: the first to go.
    dead: usize,
    due: BitTree,
    names: Option<Names>,
}

/// Which pages are resident, where that is asked for.
#[derive(Debug)]
struct Names {
    resident: Vec<bool>,
    /// Whose next reference is at this time.
    due: HashMap<u32, u32>,
    /// Those that are not referenced again.
    dead: Vec<u32>,
}

impl<'a> Opt<'a> {
    /// `frames` empty frames; the references must then be those that `future` was made from, in order.
    pub fn new(frames: u32, future: &'a NextUse) -> Self {
        let next = &future.next[..];
        let due = BitTree::new(next.len());
        Self { next, now: 0, frames: frames as usize, resident: 0, dead: 0, due, names: None }
    }

    /// The same, which also knows [which](Policy::contains) of the pages `0..pages` are resident.
    pub fn naming(pages: u32, frames: u32, future: &'a NextUse) -> Self {
        let names = Names { resident: vec![false; pages as usize], due: HashMap::new(), dead: Vec::new() };
        Self { names: Some(names), ..Self::new(frames, future) }
    }
}

/// What a miss evicts.
enum Victim {
    /// There is a frame that is free.
    None,
    /// A page that is not referenced again.
    Dead,
    /// That which is referenced at this time.
    Due(u32),
}

impl Opt<'_> {
    /// The next reference: whether its page was resident, and else what goes for it.
    #[inline(always)]
    fn step(&mut self) -> Result<(), Victim> {
        let hit = self.due.take(self.now);
        let next = self.next[self.now];
        self.now += 1;
        let step = if hit {
            Ok(())
        } else if self.resident < self.frames {
            self.resident += 1;
            Err(Victim::None)
        } else if self.dead > 0 {
            self.dead -= 1;
            Err(Victim::Dead)
        } else {
            Err(Victim::Due(self.due.take_highest() as u32))
        };
        match next {
            NEVER => self.dead += 1,
            next => self.due.insert(next as usize),
        }
        step
    }
}

impl Opt<'_> {
    /// References a page. Returns whether it was resident, and the page evicted for it if this policy
    /// [names](Self::naming) its pages.
    ///
    /// # Panics
    /// If the stream has no further reference.
    pub fn reference_naming(&mut self, page: u32) -> (bool, Option<u32>) {
        let time = self.now as u32;
        let step = self.step();
        let Some(names) = &mut self.names else { return (step.is_ok(), None) };
        names.due.remove(&time);
        let gone = match step {
            Ok(()) | Err(Victim::None) => None,
            Err(Victim::Dead) => names.dead.pop(),
            Err(Victim::Due(time)) => names.due.remove(&time),
        };
        if let Some(gone) = gone {
            names.resident[gone as usize] = false;
        }
        names.resident[page as usize] = true;
        match self.next[time as usize] {
            NEVER => names.dead.push(page),
            next => drop(names.due.insert(next, page)),
        }
        (step.is_ok(), gone)
    }
}

impl Policy for Opt<'_> {
    /// # Panics
    /// After the end of the stream.
    fn reference(&mut self, page: u32) -> bool {
        self.reference_naming(page).0
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        if self.names.is_some() {
            return references.iter().map(|&page| u64::from(!self.reference(page))).sum();
        }
        let miss = |_| {
            // Where the bit of a later reference's page will be set.
            let later = self.next.get(self.now + AHEAD).copied().unwrap_or(0);
            prefetch_index(&self.due.levels[0], later as usize / 64);
            u64::from(self.step().is_err())
        };
        references.iter().map(miss).sum()
    }

    /// The future knows all pages.
    fn grow(&mut self, _pages: u32) {}

    fn resident(&self) -> usize {
        self.resident
    }

    fn contains(&self, page: u32) -> Option<bool> {
        self.names.as_ref().map(|names| names.resident[page as usize])
    }
}

/// A set of whole numbers as a bitmap with summaries: a bit of level n + 1 says that a word of level
/// n is not empty. All operations touch one word a level, five levels for 10^9.
#[derive(Debug)]
struct BitTree {
    levels: Vec<Vec<u64>>,
}

impl BitTree {
    fn new(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound.div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
            words = words.div_ceil(64);
        }
    }

    #[inline]
    fn insert(&mut self, mut item: usize) {
        for level in &mut self.levels {
            let word = &mut level[item / 64];
            let was_empty = *word == 0;
            *word |= 1 << (item % 64);
            if !was_empty {
                return;
            }
            item /= 64;
        }
    }

    /// Takes `item` out; whether it was there.
    #[inline]
    fn take(&mut self, mut item: usize) -> bool {
        if self.levels[0][item / 64] >> (item % 64) & 1 == 0 {
            return false;
        }
        for level in &mut self.levels {
            let word = &mut level[item / 64];
            *word &= !(1 << (item % 64));
            if *word != 0 {
                break;
            }
            item /= 64;
        }
        true
    }

    /// Takes out the highest item of a set that is not empty.
    #[inline]
    fn take_highest(&mut self) -> usize {
        let mut index = 0;
        for level in self.levels.iter().rev() {
            index = index * 64 + 63 - level[index].leading_zeros() as usize;
        }
        self.take(index);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_bit_tree_is_a_set(operations in proptest::collection::vec((0u8..3, 0usize..5000), 0..500)) {
            let mut tree = BitTree::new(5000);
            let mut set = BTreeSet::new();
            for (operation, item) in operations {
                match operation {
                    0 => prop_assert_eq!(tree.take(item), set.remove(&item)),
                    1 if !set.is_empty() => {
                        prop_assert_eq!(Some(tree.take_highest()), set.pop_last());
                    }
                    _ => {
                        tree.insert(item);
                        set.insert(item);
                    }
                }
            }
            for item in 0..5000 {
                prop_assert_eq!(tree.take(item), set.contains(&item));
            }
        }
    }
}
