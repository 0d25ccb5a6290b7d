//! The lists of pages that a system keeps: doubly linked, a page in one at most.

/// No page, no list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
    list: u8,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: u32,
    tail: u32,
    len: u32,
}

/// A number of lists, numbered from 0, over the pages `0..pages`. Pages enter at the head (the young
/// end) or at the tail; reclaim looks at the tail.
#[derive(Clone, Debug)]
pub struct Lists {
    links: Vec<Link>,
    ends: Vec<Ends>,
}

/// The `list` of a page that is in none.
const NOWHERE: u8 = u8::MAX;

impl Lists {
    /// `lists` empty lists (at most 255).
    pub fn new(pages: u32, lists: u8) -> Self {
        Self {
            links: vec![Link { newer: NONE, older: NONE, list: NOWHERE }; pages as usize],
            ends: vec![Ends { head: NONE, tail: NONE, len: 0 }; usize::from(lists)],
        }
    }

    /// There are `pages` pages from now on, of which the new ones are in no list.
    pub fn grow(&mut self, pages: u32) {
        crate::policy::grow_with(&mut self.links, pages, Link { newer: NONE, older: NONE, list: NOWHERE });
    }

    /// The list that holds `page`.
    pub fn of(&self, page: u32) -> Option<u8> {
        Some(self.links[page as usize].list).filter(|&list| list != NOWHERE)
    }

    /// The number of pages in `list`.
    pub fn len(&self, list: u8) -> u32 {
        self.ends[usize::from(list)].len
    }

    /// The oldest page of `list`.
    pub fn tail(&self, list: u8) -> Option<u32> {
        Some(self.ends[usize::from(list)].tail).filter(|&page| page != NONE)
    }

    /// The page behind `page` in its list, towards the young end.
    pub fn newer(&self, page: u32) -> Option<u32> {
        let Link { newer, list, .. } = self.links[page as usize];
        Some(newer).filter(|&newer| list != NOWHERE && newer != NONE)
    }

    /// Puts `page` at the young end of `list`, out of whatever list it is in.
    pub fn to_head(&mut self, list: u8, page: u32) {
        self.remove(page);
        let ends = &mut self.ends[usize::from(list)];
        self.links[page as usize] = Link { newer: NONE, older: ends.head, list };
        match ends.head {
            NONE => ends.tail = page,
            head => self.links[head as usize].newer = page,
        }
        ends.head = page;
        ends.len += 1;
    }

    /// Puts `page` at the old end of `list`, out of whatever list it is in.
    pub fn to_tail(&mut self, list: u8, page: u32) {
        self.remove(page);
        let ends = &mut self.ends[usize::from(list)];
        self.links[page as usize] = Link { newer: ends.tail, older: NONE, list };
        match ends.tail {
            NONE => ends.head = page,
            tail => self.links[tail as usize].older = page,
        }
        ends.tail = page;
        ends.len += 1;
    }

    /// Takes `page` out of its list, if it is in one.
    pub fn remove(&mut self, page: u32) {
        let Link { newer, older, list } = self.links[page as usize];
        if list == NOWHERE {
            return;
        }
        let ends = &mut self.ends[usize::from(list)];
        match newer {
            NONE => ends.head = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NONE => ends.tail = newer,
            older => self.links[older as usize].newer = newer,
        }
        ends.len -= 1;
        self.links[page as usize].list = NOWHERE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_as_plain_queues(operations in proptest::collection::vec((0u8..3, 0u8..2, 0u32..12), 0..400)) {
            let mut lists = Lists::new(12, 2);
            let mut plain = [VecDeque::new(), VecDeque::new()];
            for (operation, list, page) in operations {
                plain.iter_mut().for_each(|p| p.retain(|&q| q != page));
                match operation {
                    0 => {
                        lists.to_head(list, page);
                        plain[usize::from(list)].push_front(page);
                    }
                    1 => {
                        lists.to_tail(list, page);
                        plain[usize::from(list)].push_back(page);
                    }
                    _ => lists.remove(page),
                }
                for list in 0..2u8 {
                    prop_assert_eq!(lists.len(list) as usize, plain[usize::from(list)].len());
                    prop_assert_eq!(lists.tail(list), plain[usize::from(list)].back().copied());
                    let mut all = Vec::new();
                    let mut page = lists.tail(list);
                    while let Some(next) = page {
                        all.push(next);
                        page = lists.newer(next);
                    }
                    prop_assert!(all.iter().rev().eq(&plain[usize::from(list)]));
                }
            }
        }
    }
}
