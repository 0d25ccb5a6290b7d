//! NRU, not recently used: two bits a page, referenced and modified, the first cleared at every tick; the victim is any
//! page of the lowest class that there is (neither; modified; referenced; both).
//!
//! Source: A. S. Tanenbaum and H. Bos, "Modern Operating Systems", 4th edition, 2014, section 3.4.2. Time is counted in
//! references, and a tick is so many of them as there are frames unless `tick` says another share. The page within
//! the class is drawn from a seeded generator. Where writes are not known every page is clean.

use super::Policy;
use pagelab_reference::rng::Rng;

const MODIFIED: u8 = 1;
const REFERENCED: u8 = 2;
const ABSENT: u8 = 4;

/// NRU on one list for each class; 5 bytes a page.
#[derive(Debug)]
pub struct Nru {
    class: Vec<u8>,
    /// Place in the list of its class.
    place: Vec<u32>,
    classes: [Vec<u32>; 4],
    frames: usize,
    tick: u64,
    left: u64,
    rng: Rng,
}

impl Nru {
    /// `frames` empty frames for the pages `0..pages`; a tick is `tick` times as many references as there are frames.
    pub fn new(pages: u32, frames: u32, tick: f64, seed: u64) -> Self {
        let tick = ((f64::from(frames) * tick) as u64).max(1);
        Self {
            class: vec![ABSENT; pages as usize],
            place: vec![0; pages as usize],
            classes: Default::default(),
            frames: frames as usize,
            tick,
            left: tick,
            rng: Rng::new(seed),
        }
    }

    fn put(&mut self, page: u32, class: u8) {
        let list = &mut self.classes[usize::from(class)];
        self.class[page as usize] = class;
        self.place[page as usize] = list.len() as u32;
        list.push(page);
    }

    fn take(&mut self, class: u8, place: usize) {
        let list = &mut self.classes[usize::from(class)];
        list.swap_remove(place);
        if let Some(&moved) = list.get(place) {
            self.place[moved as usize] = place as u32;
        }
    }

    /// Clears the reference bits.
    fn end_tick(&mut self) {
        self.left = self.tick;
        for class in [REFERENCED, REFERENCED | MODIFIED] {
            let mut list = std::mem::take(&mut self.classes[usize::from(class)]);
            for page in list.drain(..) {
                self.put(page, class & MODIFIED);
            }
            self.classes[usize::from(class)] = list;
        }
    }

    fn evict(&mut self) {
        let Some(class) = (0..4_u8).find(|&class| !self.classes[usize::from(class)].is_empty()) else {
            return;
        };
        let place = self.rng.below(self.classes[usize::from(class)].len() as u64) as usize;
        let victim = self.classes[usize::from(class)][place];
        self.take(class, place);
        self.class[victim as usize] = ABSENT;
    }
}

impl Policy for Nru {
    fn reference(&mut self, page: u32) -> bool {
        self.access(page, false)
    }

    #[inline]
    fn access(&mut self, page: u32, write: bool) -> bool {
        if self.left == 0 {
            self.end_tick();
        }
        self.left -= 1;
        let before = self.class[page as usize];
        if before == ABSENT {
            if self.resident() == self.frames {
                self.evict();
            }
            self.put(page, REFERENCED | u8::from(write));
            return false;
        }
        let after = before | REFERENCED | u8::from(write);
        if after != before {
            self.take(before, self.place[page as usize] as usize);
            self.put(page, after);
        }
        true
    }

    fn grow(&mut self, pages: u32) {
        super::grow_with(&mut self.class, pages, ABSENT);
        super::grow(&mut self.place, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.class[page as usize] != ABSENT)
    }

    fn resident(&self) -> usize {
        self.classes.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever goes is of the lowest class, by bits that are kept here as the book says.
    #[test]
    fn the_victim_is_of_the_lowest_class() {
        let (pages, frames) = (60_u32, 20_u32);
        let mut policy = Nru::new(pages, frames, 1.5, 3);
        let mut bits = vec![None; pages as usize];
        let mut rng = Rng::new(9);
        let mut evictions = [0; 4];
        for now in 0..20_000_u64 {
            if now > 0 && now % 30 == 0 {
                bits.iter_mut().flatten().for_each(|(referenced, _)| *referenced = false);
            }
            let most = 1 + rng.below(u64::from(pages));
            let page = rng.below(most) as usize;
            let write = rng.below(4) == 0;
            let hit = policy.access(page as u32, write);
            assert_eq!(hit, bits[page].is_some());
            let gone: Vec<usize> = (0..pages as usize)
                .filter(|&p| bits[p].is_some() && policy.contains(p as u32) == Some(false))
                .collect();
            assert!(gone.len() <= 1 && (gone.is_empty() || !hit));
            let class = |bits: (bool, bool)| 2 * usize::from(bits.0) + usize::from(bits.1);
            if let Some(&victim) = gone.first() {
                let lowest = bits.iter().flatten().map(|&b| class(b)).min().unwrap();
                let its = class(bits[victim].take().unwrap());
                assert_eq!(its, lowest);
                evictions[its] += 1;
            }
            let modified = bits[page].is_some_and(|(_, modified)| modified);
            bits[page] = Some((true, modified || write));
        }
        assert!(evictions[0] > 100 && evictions[1] > 100 && evictions[2] > 10, "{evictions:?}");
    }
}
