//! WSClock: a hand over the frames that takes a page only when it has left the working set, that is, when the hand has
//! not found it referenced for more than τ references; a dirty one is written first, and taken when the hand comes
//! back.
//!
//! Source: R. W. Carr and J. L. Hennessy, "WSClock: a simple and effective algorithm for virtual memory management", SOSP
//! 1981; what happens after a whole round as in A. S. Tanenbaum and H. Bos, "Modern Operating Systems", 4th edition,
//! 2014, section 3.4.9: where writes were begun, the hand goes on to a page that has been written; else the first
//! clean page that it met goes, or, where all are dirty, the page under the hand. A write that was begun is done when the hand
//! comes back. τ is a share of the frames, counted in references; where it is more than what a round takes, every miss
//! takes a round.

use super::Policy;

const RESIDENT: u8 = 1;
const REFERENCED: u8 = 2;
const DIRTY: u8 = 4;

/// WSClock on an array of frames; 9 bytes a page.
#[derive(Debug)]
pub struct WsClock {
    state: Vec<u8>,
    /// When the hand last found the page referenced, or it came in.
    used: Vec<u64>,
    slots: Vec<u32>,
    frames: usize,
    hand: usize,
    tau: u64,
    now: u64,
    rounds: u64,
    /// Dirty pages that were written: before they were taken, and as they were.
    written: u64,
}

impl WsClock {
    /// `frames` empty frames for the pages `0..pages`; τ is `tau` times as many references as there are frames.
    pub fn new(pages: u32, frames: u32, tau: f64) -> Self {
        Self {
            state: vec![0; pages as usize],
            used: vec![0; pages as usize],
            slots: Vec::new(),
            frames: frames as usize,
            hand: 0,
            tau: (f64::from(frames) * tau) as u64,
            now: 0,
            rounds: 0,
            written: 0,
        }
    }

    /// The slot that becomes free.
    #[inline]
    fn evict(&mut self) -> usize {
        let mut clean = None;
        let mut writes = false;
        // A second round meets pages that the first has written.
        for step in 0..2 * self.frames {
            if step == self.frames {
                self.rounds += 1;
                if !writes {
                    break;
                }
            }
            let at = self.hand;
            self.hand = if at + 1 == self.frames { 0 } else { at + 1 };
            let page = self.slots[at] as usize;
            let state = &mut self.state[page];
            if *state & REFERENCED != 0 {
                *state &= !REFERENCED;
                self.used[page] = self.now;
            } else if self.now - self.used[page] > self.tau {
                if *state & DIRTY == 0 {
                    return at;
                }
                *state &= !DIRTY;
                self.written += 1;
                writes = true;
                continue;
            }
            if clean.is_none() && self.state[page] & DIRTY == 0 {
                clean = Some(at);
            }
        }
        let at = clean.unwrap_or(self.hand);
        self.written += u64::from(self.state[self.slots[at] as usize] & DIRTY != 0);
        self.hand = if at + 1 == self.frames { 0 } else { at + 1 };
        at
    }
}

impl Policy for WsClock {
    fn reference(&mut self, page: u32) -> bool {
        self.access(page, false)
    }

    #[inline]
    fn access(&mut self, page: u32, write: bool) -> bool {
        self.now += 1;
        let dirty = if write { DIRTY } else { 0 };
        if self.state[page as usize] != 0 {
            self.state[page as usize] |= REFERENCED | dirty;
            return true;
        }
        if self.slots.len() < self.frames {
            self.slots.push(page);
        } else {
            let at = self.evict();
            let victim = std::mem::replace(&mut self.slots[at], page);
            self.state[victim as usize] = 0;
        }
        self.state[page as usize] = RESIDENT | dirty;
        self.used[page as usize] = self.now;
        false
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.state, pages);
        super::grow(&mut self.used, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.state[page as usize] != 0)
    }

    fn resident(&self) -> usize {
        self.slots.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("whole rounds", self.rounds)]
    }

    fn write_backs(&self) -> Option<u64> {
        let dirty = self.slots.iter().filter(|&&page| self.state[page as usize] & DIRTY != 0);
        Some(self.written + dirty.count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::streams;
    use super::*;
    use proptest::prelude::*;

    /// A page in a frame.
    #[derive(Clone, Copy)]
    struct Frame {
        page: u32,
        referenced: bool,
        dirty: bool,
        used: usize,
    }

    /// The frames in a list, the one under the hand first; (hits, writes).
    fn plain(references: &[u32], frames: usize, tau: usize, every: usize) -> (Vec<bool>, usize) {
        let mut list: Vec<Frame> = Vec::new();
        let (mut all, mut written) = (Vec::new(), 0);
        for (now, &page) in references.iter().enumerate() {
            let write = now % every == 0;
            if let Some(one) = list.iter_mut().find(|one| one.page == page) {
                (one.referenced, one.dirty) = (true, one.dirty || write);
                all.push(true);
                continue;
            }
            all.push(false);
            let new = Frame { page, referenced: false, dirty: write, used: now };
            if list.len() < frames {
                list.push(new);
                continue;
            }
            let (mut victim, mut first_clean, mut begun) = (None, None, false);
            for step in 0..2 * frames {
                if step == frames && !begun {
                    break;
                }
                let one = &mut list[step % frames];
                let old = !one.referenced && now - one.used > tau;
                if one.referenced {
                    (one.referenced, one.used) = (false, now);
                }
                if old && !one.dirty {
                    victim = Some(step % frames);
                    break;
                }
                if old {
                    (one.dirty, begun) = (false, true);
                    written += 1;
                } else if !one.dirty {
                    first_clean = first_clean.or(Some(step % frames));
                }
            }
            let victim = victim.or(first_clean).unwrap_or(0);
            written += usize::from(list[victim].dirty);
            list[victim] = new;
            list.rotate_left(victim + 1);
        }
        (all, written + list.iter().filter(|one| one.dirty).count())
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_u32..70, tau in 0_u32..3, every in 1_usize..5) {
            let mut policy = WsClock::new(stream.pages(), frames, f64::from(tau) / 2.0);
            let tau = (f64::from(frames) * f64::from(tau) / 2.0) as usize;
            let (wanted, written) = plain(stream.references(), frames as usize, tau, every);
            for (now, &page) in stream.references().iter().enumerate() {
                prop_assert_eq!(policy.access(page, now % every == 0), wanted[now], "reference {}", now);
            }
            prop_assert_eq!(policy.write_backs(), Some(written as u64));
        }
    }
}
