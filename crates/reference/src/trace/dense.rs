//! Dense page numbers: 0, 1, 2, … in the order of first reference.
//!
//! Numbering is most of the work of loading a trace, so the table is made for it. While page numbers are
//! small beside the number of pages, they index a table of 4 bytes an entry. From the first that is not, they
//! are hashed: open addressing with linear probing (D. E. Knuth, The Art of Computer Programming, volume 3, 6.4,
//! algorithm L), key and number side by side, so that a look-up costs one cache miss. Pages are looked up in
//! batches so that these misses overlap.

/// A key and its number; `id` is [`FREE`] in an empty slot.
#[derive(Clone, Copy)]
struct Slot {
    page: u64,
    id: u32,
}

const FREE: u32 = u32::MAX;

/// Pages looked up together.
const BATCH: usize = 64;

/// Page numbers below this index a table however few pages there are: 16 MiB at most.
const SMALL: u64 = 1 << 22;

/// Page numbers below this many times the number of pages index a table: 32 bytes a page at most, as much as
/// the hash table takes.
const SPARSE: u64 = 8;

/// Numbers the pages of a trace in the order in which they first appear. Up to 32 bytes a page where
/// their numbers index a table; else 16 bytes a slot, and at least 1.5 slots a page.
pub struct Densifier {
    /// By page number; empty once pages are hashed.
    direct: Vec<u32>,
    /// Empty until pages are hashed.
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
        loop {
            if self.direct.is_empty() {
                return self.hashed(page);
            }
            if let Some(id) = usize::try_from(page).ok().and_then(|page| self.direct.get_mut(page)) {
                if *id == FREE {
                    if self.pages == FREE - 1 {
                        return Err(TooManyPages);
                    }
                    *id = self.pages;
                    self.pages += 1;
                }
                return Ok(*id);
            }
            self.widen(page);
        }
    }

    /// Makes the table long enough for a page number, or hashes from now on.
    #[cold]
    fn widen(&mut self, page: u64) {
        if page < SMALL.max(SPARSE * u64::from(self.pages)) {
            self.direct.resize((page as usize + 1).next_power_of_two(), FREE);
            return;
        }
        let size = (2 * self.pages as usize).next_power_of_two().max(1 << 10);
        self.shift = 64 - size.trailing_zeros();
        self.slots = vec![Slot { page: 0, id: FREE }; size];
        for (page, id) in (0..).zip(std::mem::take(&mut self.direct)).filter(|(_, id)| *id != FREE) {
            self.place(Slot { page, id });
        }
    }

    #[inline]
    fn hashed(&mut self, page: u64) -> Result<u32, TooManyPages> {
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
            // Touch all first entries: these loads do not wait for each other, as the look-ups do.
            let touched = if self.direct.is_empty() {
                batch.iter().fold(0, |sum, &page| sum ^ self.slots[self.home(page)].id)
            } else {
                let entry = |page: u64| self.direct.get(page as usize).copied().unwrap_or(0);
                batch.iter().fold(0, |sum, &page| sum ^ entry(page))
            };
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
        old.into_iter().filter(|slot| slot.id != FREE).for_each(|slot| self.place(slot));
    }

    /// Puts a page that is in no slot into one.
    fn place(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = self.home(slot.page);
        while self.slots[at & mask].id != FREE {
            at += 1;
        }
        self.slots[at & mask] = slot;
    }

    /// How many pages have a number.
    pub fn pages(&self) -> u32 {
        self.pages
    }
}
