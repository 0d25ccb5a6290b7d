//! Dense page numbers: 0, 1, 2, … in the order of first reference.
//!
//! Numbering is most of the work of loading a trace, so the table is made for it. While page numbers are
//! small beside the number of pages, they index a table of 4 bytes an entry. From the first that is not, they
//! are hashed: open addressing with linear probing (D. E. Knuth, The Art of Computer Programming, volume 3, 6.4,
//! algorithm L), key and number side by side, so that a look-up costs one cache miss. What the processor will need some pages later
//! it is told to fetch, so that these misses overlap.

use prefetch_index::prefetch_index;

/// A key in two halves and its number, counted from 1, so that a slot of zeroes is empty: fresh memory of the kernel is a table. Without a
/// gap: the fewer bytes, the more pages in the processor's caches.
type Slot = [u32; 3];

/// What a slot holds.
#[inline(always)]
fn page_of(slot: Slot) -> u64 {
    u64::from(slot[0]) | u64::from(slot[1]) << 32
}

/// A page and its number counted from 1.
#[inline(always)]
fn slot_of(page: u64, number: u32) -> Slot {
    [page as u32, (page >> 32) as u32, number]
}

/// No number, in the table that page numbers index.
const FREE: u32 = u32::MAX;

/// Pages looked up between two samples whether the table has room for them.
const BATCH: usize = 1024;

/// So many pages ahead slots are fetched.
const AHEAD: usize = 48;

/// Of four slots, those that may be taken.
const TAKEN: usize = 3;

/// Page numbers below this index a table however few pages there are: 16 MiB at most.
const SMALL: u64 = 1 << 22;

/// Page numbers below this many times the number of pages index a table: 32 bytes a page at most, as much as
/// the hash table takes.
const SPARSE: u64 = 8;

/// Numbers the pages of a trace in the order in which they first appear. Up to 32 bytes a page where
/// their numbers index a table; else 12 bytes a slot, and 1.3 to 2.7 slots a page.
pub struct Densifier {
    /// By page number; empty once pages are hashed.
    direct: Vec<u32>,
    /// Empty until pages are hashed; then a power of two of them.
    slots: Vec<Slot>,
    /// 64 minus the logarithm of the number of slots.
    shift: u32,
    pages: u32,
}

impl Default for Densifier {
    fn default() -> Self {
        Self { direct: vec![FREE; 1 << 10], slots: Vec::new(), shift: 64, pages: 0 }
    }
}

/// There are 2^32 − 2 different pages already.
#[derive(Debug)]
pub struct TooManyPages;

/// Where to look first: Fibonacci hashing of the folded page number. Traces are not adversaries.
#[inline]
fn home(page: u64, shift: u32) -> usize {
    ((page ^ page >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

/// The page that comes [`AHEAD`] pages later, or last.
#[inline(always)]
fn ahead(pages: &[u64], n: usize) -> u64 {
    pages[(n + AHEAD).min(pages.len() - 1)]
}

/// The slot of a page, or the first empty one on the way to it. There is one.
#[inline]
fn find(slots: &mut [Slot], home: usize, page: u64) -> &mut Slot {
    let mask = slots.len() - 1;
    let mut at = home & mask;
    while !(page_of(slots[at]) == page || slots[at][2] == 0) {
        at = (at + 1) & mask;
    }
    &mut slots[at]
}

/// Has the processor fetch where a page is looked for first, and the two cache lines behind: in a full table some looks go on
/// so far, a new page's more than others.
#[inline]
fn fetch(slots: &[Slot], home: usize) {
    for behind in [0, 5, 10] {
        prefetch_index(slots, home + behind);
    }
}

impl Densifier {
    /// The dense number of `page`.
    ///
    /// # Errors
    /// When there are too many pages for 32 bits.
    #[inline]
    pub fn number(&mut self, page: u64) -> Result<u32, TooManyPages> {
        let mut list = [0];
        self.batch(&[page], &mut list)?;
        Ok(list[0])
    }

    /// Appends the numbers of `pages` to `list`.
    ///
    /// # Errors
    /// As [`Self::number`]; the numbers before that are appended.
    pub fn number_all(&mut self, pages: &[u64], list: &mut Vec<u32>) -> Result<(), TooManyPages> {
        let mut ids = [0; BATCH];
        for batch in pages.chunks(BATCH) {
            if self.batch(batch, &mut ids).is_ok() {
                list.extend_from_slice(&ids[..batch.len()]);
                continue;
            }
            for &page in batch {
                list.push(self.number(page)?);
            }
        }
        Ok(())
    }

    /// Puts the numbers of up to [`BATCH`] pages into `ids`.
    #[inline]
    fn batch(&mut self, pages: &[u64], ids: &mut [u32]) -> Result<(), TooManyPages> {
        if self.pages >= FREE - 1 - pages.len() as u32 && !self.known(pages) {
            return Err(TooManyPages);
        }
        if !self.direct.is_empty() {
            for &page in pages {
                while !self.direct.is_empty() && page >= self.direct.len() as u64 {
                    self.widen(page);
                }
            }
        }
        if self.direct.is_empty() {
            self.hashed(pages, ids);
        } else {
            self.indexed(pages, ids);
        }
        Ok(())
    }

    /// Whether all of these have numbers.
    #[cold]
    fn known(&mut self, pages: &[u64]) -> bool {
        pages.iter().all(|&page| match self.direct.get(page as usize) {
            Some(id) => *id != FREE,
            None if self.slots.is_empty() => false,
            None => find(&mut self.slots, home(page, self.shift), page)[2] != 0,
        })
    }

    /// Makes the table long enough for a page number, or hashes from now on.
    #[cold]
    fn widen(&mut self, page: u64) {
        if page < SMALL.max(SPARSE * u64::from(self.pages)) {
            self.direct.resize((page as usize + 1).next_power_of_two(), FREE);
            return;
        }
        let direct = std::mem::take(&mut self.direct);
        self.resize(((self.pages as usize + BATCH) * 4 / TAKEN).next_power_of_two());
        for (page, id) in (0..).zip(direct).filter(|(_, id)| *id != FREE) {
            *find(&mut self.slots, home(page, self.shift), page) = slot_of(page, id + 1);
        }
    }

    #[inline]
    fn indexed(&mut self, pages: &[u64], ids: &mut [u32]) {
        for (n, (&page, number)) in pages.iter().zip(ids).enumerate() {
            prefetch_index(&self.direct, ahead(pages, n) as usize);
            let id = &mut self.direct[page as usize];
            if *id == FREE {
                *id = self.pages;
                self.pages += 1;
            }
            *number = *id;
        }
    }

    #[inline]
    fn hashed(&mut self, pages: &[u64], ids: &mut [u32]) {
        if self.pages as usize + pages.len() > self.slots.len() / 4 * TAKEN {
            self.resize(2 * self.slots.len());
        }
        let (slots, shift) = (&mut self.slots[..], self.shift);
        for &page in pages.iter().take(AHEAD) {
            fetch(slots, home(page, shift));
        }
        let mut next = self.pages;
        for (n, (&page, number)) in pages.iter().zip(ids).enumerate() {
            fetch(slots, home(ahead(pages, n), shift));
            let slot = find(slots, home(page, shift), page);
            if slot[2] == 0 {
                next += 1;
                *slot = slot_of(page, next);
            }
            *number = slot[2] - 1;
        }
        self.pages = next;
    }

    /// As many slots, a power of two.
    #[cold]
    fn resize(&mut self, size: usize) {
        self.shift = 64 - size.trailing_zeros();
        let old = std::mem::replace(&mut self.slots, vec![[0; 3]; size]);
        for slot in old.into_iter().filter(|slot| slot[2] != 0) {
            let page = page_of(slot);
            *find(&mut self.slots, home(page, self.shift), page) = slot;
        }
    }

    /// How many pages have a number.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn dense_numbers_keep_equality(
            pages in proptest::collection::vec(
                prop_oneof![4 => 0u64..50, 2 => 1000u64..5_000_000, 1 => (1u64 << 40)..(1 << 40) + 50, 1 => any::<u64>()],
                1..300,
            ),
        ) {
            let mut densifier = Densifier::default();
            let mut all = Vec::new();
            Densifier::default().number_all(&pages, &mut all).unwrap();
            let dense: Vec<u32> = pages.iter().map(|&p| densifier.number(p).unwrap()).collect();
            for i in 0..pages.len() {
                let first = pages.iter().position(|&p| p == pages[i]).unwrap();
                prop_assert_eq!(dense[i], dense[first]);
                let before = pages[..first].iter().collect::<std::collections::BTreeSet<_>>().len();
                prop_assert_eq!(dense[i] as usize, before);
            }
            prop_assert_eq!(all, dense);
        }
    }
}
