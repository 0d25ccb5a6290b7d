//! Dense page numbers: 0, 1, 2, … in the order of first reference.
//!
//! Numbering is most of the work of loading a trace, so the table is made for it: open addressing with
//! linear probing (D. E. Knuth, The Art of Computer Programming, volume 3, 6.4, algorithm L), key and
//! number side by side, so that a look-up costs one cache miss, and pages are looked up in batches so
//! that these misses overlap.

/// A key and its number; `id` is [`FREE`] in an empty slot.
#[derive(Clone, Copy)]
struct Slot {
    page: u64,
    id: u32,
}

const FREE: u32 = u32::MAX;

/// Pages looked up together.
const BATCH: usize = 64;

/// Numbers the pages of a trace in the order in which they first appear. 16 bytes a slot, and at least
/// 1.5 slots a page.
pub struct Densifier {
    slots: Vec<Slot>,
    /// 64 minus the logarithm of the number of slots.
    shift: u32,
    pages: u32,
}

impl Default for Densifier {
    fn default() -> Self {
        Self { slots: vec![Slot { page: 0, id: FREE }; 1 << 10], shift: 54, pages: 0 }
    }
}

/// There are 2^32 − 2 different pages already.
#[derive(Debug)]
pub struct TooManyPages;

impl Densifier {
    /// Where to look first: Fibonacci hashing of the folded page number. Traces are not adversaries.
    #[inline]
    fn home(&self, page: u64) -> usize {
        ((page ^ page >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// The dense number of `page`.
    ///
    /// # Errors
    /// When there are too many pages for 32 bits.
    #[inline]
    pub fn number(&mut self, page: u64) -> Result<u32, TooManyPages> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(page);
        loop {
            let slot = &mut self.slots[at & mask];
            if slot.id == FREE {
                let id = self.pages;
                if id == FREE - 1 {
                    return Err(TooManyPages);
                }
                *slot = Slot { page, id };
                self.pages += 1;
                if self.pages as usize > self.slots.len() / 3 * 2 {
                    self.grow();
                }
                return Ok(id);
            }
            if slot.page == page {
                return Ok(slot.id);
            }
            at += 1;
        }
    }

    /// Appends the numbers of `pages` to `list`.
    ///
    /// # Errors
    /// As [`Self::number`]; the numbers before that are appended.
    pub fn number_all(&mut self, pages: &[u64], list: &mut Vec<u32>) -> Result<(), TooManyPages> {
        for batch in pages.chunks(BATCH) {
            // Touch all first slots: these loads do not wait for each other, as the look-ups do.
            let touched = batch.iter().fold(0, |sum, &page| sum ^ self.slots[self.home(page)].id);
            std::hint::black_box(touched);
            for &page in batch {
                list.push(self.number(page)?);
            }
        }
        Ok(())
    }

    #[cold]
    fn grow(&mut self) {
        self.shift -= 1;
        let size = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![Slot { page: 0, id: FREE }; size]);
        for slot in old.into_iter().filter(|slot| slot.id != FREE) {
            let mut at = self.home(slot.page);
            while self.slots[at & (size - 1)].id != FREE {
                at += 1;
            }
            self.slots[at & (size - 1)] = slot;
        }
    }

    /// How many pages have a number.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}
