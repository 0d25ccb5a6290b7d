//! Pages in a line, of which any can leave: a doubly linked list in two tables.

/// No page.
const NONE: u32 = u32::MAX;

/// The line. A page stands in it once at most.
#[derive(Debug)]
pub struct Line {
    /// For each page who stands before it and behind it; itself where it does not stand in the line.
    links: Vec<(u32, u32)>,
    first: u32,
    last: u32,
    count: usize,
}

impl Line {
    /// An empty line of the pages `0..pages`.
    pub fn new(pages: u32) -> Self {
        Self { links: (0..pages).map(|page| (page, page)).collect(), first: NONE, last: NONE, count: 0 }
    }

    /// There are `pages` pages from now on.
    pub fn grow(&mut self, pages: u32) {
        let known = self.links.len() as u32;
        self.links.extend((known..pages).map(|page| (page, page)));
    }

    /// Pages in it.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the page stands in it.
    pub fn contains(&self, page: u32) -> bool {
        self.links[page as usize].0 != page
    }

    /// The page that has stood there longest.
    pub fn first(&self) -> Option<u32> {
        Some(self.first).filter(|&page| page != NONE)
    }

    /// The page behind this one.
    pub fn after(&self, page: u32) -> Option<u32> {
        Some(self.links[page as usize].1).filter(|&page| page != NONE)
    }

    /// Puts a page that does not stand in the line at its end.
    pub fn push(&mut self, page: u32) {
        self.links[page as usize] = (self.last, NONE);
        match self.last {
            NONE => self.first = page,
            last => self.links[last as usize].1 = page,
        }
        self.last = page;
        self.count += 1;
    }

    /// Takes a page out; whether it stood there.
    pub fn remove(&mut self, page: u32) -> bool {
        if !self.contains(page) {
            return false;
        }
        let (before, behind) = self.links[page as usize];
        match before {
            NONE => self.first = behind,
            before => self.links[before as usize].1 = behind,
        }
        match behind {
            NONE => self.last = before,
            behind => self.links[behind as usize].0 = before,
        }
        self.links[page as usize] = (page, page);
        self.count -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue(operations in proptest::collection::vec((any::<bool>(), 0u32..20), 0..300)) {
            let mut line = Line::new(10);
            line.grow(20);
            let mut queue = VecDeque::new();
            for (enters, page) in operations {
                let there = queue.iter().position(|&other| other == page);
                prop_assert_eq!(line.contains(page), there.is_some());
                match (enters, there) {
                    (true, None) => {
                        line.push(page);
                        queue.push_back(page);
                    }
                    (false, _) => {
                        prop_assert_eq!(line.remove(page), there.is_some());
                        there.map(|at| queue.remove(at));
                    }
                    _ => {}
                }
                prop_assert_eq!(line.len(), queue.len());
                let all: Vec<u32> = std::iter::successors(line.first(), |&page| line.after(page)).collect();
                prop_assert_eq!(&all, &queue.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
