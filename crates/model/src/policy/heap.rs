//! A heap of pages by a key, in which each page is found: the building block of policies that rank pages.

const NOWHERE: u32 = u32::MAX;

/// The page with the least key is on top. 4 bytes a page, and the keys of those inside.
#[derive(Debug)]
pub(crate) struct Heap<K> {
    /// (key, page), each at most its children.
    list: Vec<(K, u32)>,
    /// Place in the list.
    place: Vec<u32>,
}

impl<K: Copy + PartialOrd> Heap<K> {
    /// An empty heap for the pages `0..pages`.
    pub fn new(pages: u32) -> Self {
        Self { list: Vec::new(), place: vec![NOWHERE; pages as usize] }
    }

    pub fn grow(&mut self, pages: u32) {
        super::grow_with(&mut self.place, pages, NOWHERE);
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn contains(&self, page: u32) -> bool {
        self.place[page as usize] != NOWHERE
    }

    /// The page on top, with its key.
    pub fn least(&self) -> Option<(K, u32)> {
        self.list.first().copied()
    }

    /// The page with the least key of all where keys have grown since they were set: those on top are set to what
    /// `key` says until one is.
    pub fn least_by(&mut self, key: impl Fn(u32) -> K) -> Option<u32> {
        loop {
            let (set, page) = self.least()?;
            let grown = key(page);
            if grown == set {
                return Some(page);
            }
            self.set(page, grown);
        }
    }

    /// Puts a page in, or moves it to where its new key belongs.
    pub fn set(&mut self, page: u32, key: K) {
        let at = match self.place[page as usize] {
            NOWHERE => {
                self.list.push((key, page));
                self.list.len() - 1
            }
            at => {
                self.list[at as usize].0 = key;
                at as usize
            }
        };
        let at = self.up(at);
        self.down(at);
    }

    /// Takes a page out, where it is inside.
    pub fn remove(&mut self, page: u32) {
        let at = std::mem::replace(&mut self.place[page as usize], NOWHERE);
        if at == NOWHERE {
            return;
        }
        self.list.swap_remove(at as usize);
        if (at as usize) < self.list.len() {
            let at = self.up(at as usize);
            self.down(at);
        }
    }

    /// Moves parents down into the hole until what stands there fits; where it ends.
    fn up(&mut self, mut at: usize) -> usize {
        let moving = self.list[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            let above = self.list[parent];
            if above.0 <= moving.0 {
                break;
            }
            self.put(at, above);
            at = parent;
        }
        self.put(at, moving);
        at
    }

    /// Moves children up into the hole until what stands there fits.
    fn down(&mut self, mut at: usize) {
        let moving = self.list[at];
        let last = self.list.len() - 1;
        while 2 * at < last {
            let mut child = 2 * at + 1;
            if child < last && self.list[child + 1].0 < self.list[child].0 {
                child += 1;
            }
            let below = self.list[child];
            if moving.0 <= below.0 {
                break;
            }
            self.put(at, below);
            at = child;
        }
        self.put(at, moving);
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (K, u32)) {
        self.list[at] = entry;
        self.place[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(operations in proptest::collection::vec((0_u8..3, 0_u32..30, 0_u64..50), 0..800)) {
            let mut heap = Heap::new(30);
            let mut plain: BTreeMap<u32, u64> = BTreeMap::new();
            for (n, (operation, page, key)) in operations.into_iter().enumerate() {
                // Keys are distinct, as the policies' are.
                let key = key * 1000 + n as u64;
                if operation == 0 {
                    heap.remove(page);
                    plain.remove(&page);
                } else {
                    heap.set(page, key);
                    plain.insert(page, key);
                }
                prop_assert_eq!(heap.len(), plain.len());
                prop_assert_eq!(heap.contains(page), plain.contains_key(&page));
                prop_assert_eq!(heap.least(), plain.iter().map(|(&page, &key)| (key, page)).min());
            }
        }
    }
}
