//! A time line of pages: the building block of LRU, 2Q and ARC.
//!
//! A queue whose pages leave at the old end, or because they are referenced, needs no links and no list of its pages. Each page knows
//! the place on the line at which it came in, a bit says that a place is still taken, and a mark stands before the oldest: a page at
//! or behind the mark is in the queue, and the oldest leaves by moving the mark behind the next taken place. So an
//! eviction touches one bit and no page, and a reference the page's own entry, its old bit and the next one in turn. The bits of one and a
//! half million pages fit the second cache of a processor. Of two queues, the second of which takes what leaves the first (the memory of what was evicted), both are on one line,
//! with a mark for each. The idea of places on a line of time is that of B. T. Bennett and V. J. Kruskal, "LRU stack processing", IBM
//! Journal of Research and Development 19(4), 1975.

/// The place of a page that is on no line; marks are behind it.
pub(super) const NEVER: u32 = 0;

/// What tells the second of two lines in an entry of the table that they share; the other bits are the place.
pub(super) const SECOND: u32 = 1 << 31;

/// The most pages: twice as many places can be told apart.
const MAX_PAGES: usize = 1 << 30;

/// Places of the line for each page, once it is moved together.
const ROOM: usize = 4;

/// Places of a new line.
const SHORT: usize = 1 << 10;

/// Taken places in the order of time; half a byte a page.
#[derive(Debug)]
pub(super) struct TimeLine {
    /// A bit for each place, set where it is taken.
    taken: Vec<u64>,
    /// The place that is taken next.
    now: u32,
}

impl TimeLine {
    /// No place is taken; marks are at the first, 1.
    pub fn new() -> Self {
        Self { taken: vec![0; SHORT / 64], now: 1 }
    }

    /// Whether the line must be [moved together](Self::move_together) before another place is taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.now as usize == self.taken.len() * 64
    }

    /// Takes the next place.
    ///
    /// # Panics
    /// When the line is full.
    #[inline]
    pub fn take(&mut self) -> u32 {
        let place = self.now;
        self.taken[place as usize / 64] |= 1 << (place % 64);
        self.now += 1;
        place
    }

    /// Leaves a place; of none, and of those before all marks, nothing comes.
    #[inline]
    pub fn leave(&mut self, place: u32) {
        self.taken[place as usize / 64] &= !(1 << (place % 64));
    }

    /// Has the processor fetch the bit of a place.
    #[inline]
    pub fn fetch(&self, place: u32) {
        prefetch_index::prefetch_index(&self.taken, place as usize / 64);
    }

    /// The mark behind the oldest place that is taken at this one or later; there is one.
    #[inline]
    pub fn behind_oldest(&self, mark: u32) -> u32 {
        let mut word = mark as usize / 64;
        let mut bits = self.taken[word] >> (mark % 64) << (mark % 64);
        while bits == 0 {
            word += 1;
            bits = self.taken[word];
        }
        (word * 64) as u32 + bits.trailing_zeros() + 1
    }

    /// Moves the taken places together, on a longer line where this one has too little room. Places before the last of the
    /// marks, the oldest, are forgotten. Of the table the entries with this `line` ([`SECOND`] or 0) are rewritten.
    ///
    /// # Panics
    /// When there are more than 2^30 pages.
    #[cold]
    pub fn move_together(&mut self, line: u32, table: &mut [u32], marks: &mut [u32]) {
        assert!(table.len() <= MAX_PAGES, "at most {MAX_PAGES} pages");
        let first = marks.iter().copied().min().unwrap_or(1);
        self.taken[..first as usize / 64].fill(0);
        if let Some(word) = self.taken.get_mut(first as usize / 64) {
            *word = *word >> (first % 64) << (first % 64);
        }
        let mut sum = 0;
        let mut before: Vec<u32> = Vec::with_capacity(self.taken.len() + 1);
        for word in &self.taken {
            before.push(sum);
            sum += word.count_ones();
        }
        before.push(sum);
        let moved = |place: u32| {
            let (word, bit) = (place as usize / 64, place % 64);
            let within = self.taken.get(word).map_or(0, |bits| (bits & ((1 << bit) - 1)).count_ones());
            before[word] + within + 1
        };
        for entry in table.iter_mut().filter(|entry| **entry & SECOND == line) {
            let place = *entry & !SECOND;
            *entry = if place < first { NEVER } else { line | moved(place) };
        }
        marks.iter_mut().for_each(|mark| *mark = moved(*mark));
        let places = (ROOM * table.len()).clamp(SHORT, SECOND as usize).next_multiple_of(64);
        self.taken.clear();
        self.taken.resize(places / 64, 0);
        // The places begin at 1.
        self.now = sum + 1;
        let (words, rest) = (self.now as usize / 64, self.now % 64);
        self.taken[..words].fill(u64::MAX);
        self.taken[words] = (1 << rest) - 1;
        self.taken[0] &= !1;
    }
}

/// A line of pages that are resident, the younger part, and of pages that are remembered, the older part: what is evicted is
/// remembered in the order in which it came in.
#[derive(Debug)]
pub(super) struct List {
    pub line: TimeLine,
    /// Where what is resident begins, and what is remembered.
    pub marks: [u32; 2],
    pub resident: usize,
    pub remembered: usize,
}

impl List {
    /// Nothing is in it.
    pub fn new() -> Self {
        Self { line: TimeLine::new(), marks: [1; 2], resident: 0, remembered: 0 }
    }

    /// Pages resident and remembered.
    pub fn len(&self) -> usize {
        self.resident + self.remembered
    }

    /// Evicts the oldest page, and remembers it.
    #[inline]
    pub fn evict(&mut self) {
        self.marks[0] = self.line.behind_oldest(self.marks[0]);
        self.resident -= 1;
        self.remembered += 1;
    }

    /// Forgets the page that was evicted first.
    #[inline]
    pub fn forget(&mut self) {
        self.marks[1] = self.line.behind_oldest(self.marks[1]);
        self.remembered -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Two queues on one line, the second takes what leaves the first; another line shares the table.
        #[test]
        fn behaves_as_plain_queues(operations in proptest::collection::vec((0u8..4, 0u32..40), 0..4000)) {
            let mut table = vec![NEVER; 40];
            let mut line = TimeLine::new();
            let mut marks = [1, 1];
            let (mut young, mut old) = (VecDeque::new(), VecDeque::new());
            table[39] = SECOND | 7;
            for (operation, page) in operations {
                let place = table[page as usize];
                match operation {
                    _ if page == 39 => {}
                    0 if !old.is_empty() => {
                        marks[1] = line.behind_oldest(marks[1]);
                        old.pop_front();
                    }
                    1 if !young.is_empty() => {
                        marks[0] = line.behind_oldest(marks[0]);
                        old.extend(young.pop_front());
                    }
                    _ => {
                        young.retain(|other| *other != page);
                        old.retain(|other| *other != page);
                        line.leave(place);
                        if line.is_full() {
                            table[page as usize] = NEVER;
                            line.move_together(0, &mut table, &mut marks);
                        }
                        table[page as usize] = line.take();
                        young.push_back(page);
                    }
                }
                for page in 0..39 {
                    let place = table[page as usize];
                    prop_assert_eq!(young.contains(&page), place >= marks[0]);
                    prop_assert_eq!(old.contains(&page), place >= marks[1] && place < marks[0]);
                }
            }
            prop_assert_eq!(table[39], SECOND | 7);
            prop_assert_eq!(line.taken.len() * 64, SHORT, "the line of few pages stays short");
        }
    }
}
