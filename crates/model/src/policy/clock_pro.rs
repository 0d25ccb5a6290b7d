//! CLOCK-Pro: LIRS's idea with the cost of CLOCK. Hot and cold pages stand on one clock with three
//! hands; a cold page has a test period, which outlives its residence, and becomes hot when it is
//! referenced within it.
//!
//! Source: S. Jiang, F. Chen and X. Zhang, "CLOCK-Pro: an effective improvement of the CLOCK
//! replacement", USENIX 2005, section 4.3. At most as many non-resident pages are tested as there are
//! frames. The number of frames for cold pages adapts: one more for a reference within a test period,
//! one less for a test period that ends without. It starts at all frames (a choice of this
//! implementation), is at least 1 and at most all.
//!
//! libCacheSim's clockpro differs: on its sample trace it has up to 16 % more misses at some sizes, and
//! is never ahead by more than 0.2 %.

use super::Policy;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Not on the clock.
    Off,
    Hot,
    Cold,
    /// Cold, not resident, in its test period.
    Tested,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    before: u32,
    after: u32,
    kind: Kind,
    referenced: bool,
    in_test: bool,
}

/// CLOCK-Pro; 12 bytes a page.
#[derive(Debug)]
pub struct ClockPro {
    nodes: Box<[Node]>,
    hand_hot: u32,
    hand_cold: u32,
    hand_test: u32,
    frames: usize,
    cold_target: usize,
    hot: usize,
    cold: usize,
    tested: usize,
}

impl ClockPro {
    /// `frames` empty frames for the pages `0..pages`.
    pub fn new(pages: u32, frames: u32) -> Self {
        let off = Node { before: NONE, after: NONE, kind: Kind::Off, referenced: false, in_test: false };
        Self {
            nodes: vec![off; pages as usize].into(),
            hand_hot: NONE,
            hand_cold: NONE,
            hand_test: NONE,
            frames: frames as usize,
            cold_target: frames as usize,
            hot: 0,
            cold: 0,
            tested: 0,
        }
    }

    fn node(&mut self, page: u32) -> &mut Node {
        &mut self.nodes[page as usize]
    }

    /// Puts a page at the head of the list: just behind the hot hand.
    fn insert(&mut self, page: u32, kind: Kind) {
        let head = self.hand_hot;
        if head == NONE {
            (self.hand_hot, self.hand_cold, self.hand_test) = (page, page, page);
            *self.node(page) =
                Node { before: page, after: page, kind, referenced: false, in_test: kind == Kind::Cold };
        } else {
            let before = self.nodes[head as usize].before;
            *self.node(page) =
                Node { before, after: head, kind, referenced: false, in_test: kind == Kind::Cold };
            self.node(before).after = page;
            self.node(head).before = page;
        }
    }

    /// Takes a page off the clock; hands that point at it move on.
    fn remove(&mut self, page: u32) {
        let Node { before, after, .. } = self.nodes[page as usize];
        let next = if after == page { NONE } else { after };
        for hand in [&mut self.hand_hot, &mut self.hand_cold, &mut self.hand_test] {
            if *hand == page {
                *hand = next;
            }
        }
        self.node(before).after = after;
        self.node(after).before = before;
        self.node(page).kind = Kind::Off;
    }

    fn more_cold(&mut self) {
        self.cold_target = (self.cold_target + 1).min(self.frames);
    }

    /// Ends the test period of a cold page without a reference.
    fn end_test(&mut self, page: u32) {
        if self.nodes[page as usize].in_test {
            self.node(page).in_test = false;
            self.cold_target = (self.cold_target - 1).max(1);
            if self.nodes[page as usize].kind == Kind::Tested {
                self.tested -= 1;
                self.remove(page);
            }
        }
    }

    /// Turns hot pages cold until there are no more than their frames.
    fn run_hot(&mut self) {
        while self.hot > self.frames - self.cold_target {
            let page = self.hand_hot;
            let Node { after, kind, referenced, .. } = self.nodes[page as usize];
            self.hand_hot = after;
            match kind {
                Kind::Hot if referenced => self.node(page).referenced = false,
                Kind::Hot => {
                    self.node(page).kind = Kind::Cold;
                    self.node(page).in_test = false;
                    self.hot -= 1;
                    self.cold += 1;
                }
                Kind::Cold if referenced => {}
                _ => self.end_test(page),
            }
        }
    }

    /// Ends test periods until no more non-resident pages are tested than there are frames.
    fn run_test(&mut self) {
        while self.tested > self.frames {
            let page = self.hand_test;
            let Node { after, kind, referenced, .. } = self.nodes[page as usize];
            self.hand_test = after;
            if kind == Kind::Tested || (kind == Kind::Cold && !referenced) {
                self.end_test(page);
            }
        }
    }

    /// Moves the cold hand until a frame is free.
    fn run_cold(&mut self) {
        while self.hot + self.cold >= self.frames {
            let page = self.hand_cold;
            let Node { after, kind, referenced, in_test, .. } = self.nodes[page as usize];
            self.hand_cold = after;
            if kind != Kind::Cold {
                continue;
            }
            if referenced {
                self.remove(page);
                if in_test {
                    self.cold -= 1;
                    self.hot += 1;
                    self.more_cold();
                    self.insert(page, Kind::Hot);
                    self.run_hot();
                } else {
                    self.insert(page, Kind::Cold);
                }
            } else {
                self.cold -= 1;
                if in_test {
                    self.node(page).kind = Kind::Tested;
                    self.tested += 1;
                    self.run_test();
                } else {
                    self.remove(page);
                }
            }
        }
    }
}

impl Policy for ClockPro {
    fn reference(&mut self, page: u32) -> bool {
        if matches!(self.nodes[page as usize].kind, Kind::Hot | Kind::Cold) {
            self.node(page).referenced = true;
            return true;
        }
        self.run_cold();
        // Looked up again: making room may have ended the page's test period.
        if self.nodes[page as usize].kind == Kind::Tested {
            self.tested -= 1;
            self.remove(page);
            self.more_cold();
            self.hot += 1;
            self.insert(page, Kind::Hot);
            self.run_hot();
        } else {
            self.cold += 1;
            self.insert(page, Kind::Cold);
        }
        false
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count(self, references)
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(matches!(self.nodes[page as usize].kind, Kind::Hot | Kind::Cold))
    }

    fn resident(&self) -> usize {
        self.hot + self.cold
    }
}
