//! PFF, page fault frequency: a fault that comes more than τ references after the one before says that there is more
//! memory than is needed, and every page that was not referenced since that fault goes; one that comes sooner takes
//! another frame.
//!
//! Source: W. W. Chu and H. Opderbeck, "The page fault frequency replacement algorithm", AFIPS Fall Joint Computer
//! Conference 1972. A policy of variable space, like the working set: the frames of a replay do not matter, and the mean
//! number of resident pages, over the references just after each of them, is reported beside its misses.

use super::Policy;

/// PFF; 8 bytes a page.
#[derive(Debug)]
pub struct Pff {
    /// The release after which the page is known to be resident; 0 for never.
    kept: Vec<u32>,
    /// The fault after which the page was referenced last.
    referenced: Vec<u32>,
    /// Pages that were referenced since the last fault, that page included.
    since: Vec<u32>,
    /// Releases and faults so far, from 1.
    release: u32,
    fault: u32,
    resident: usize,
    tau: u64,
    now: u64,
    last_fault: u64,
    /// The sum of the resident pages after each reference.
    residence: u64,
}

impl Pff {
    /// An interval of `tau` references (at least 1) over the pages `0..pages`.
    pub fn new(pages: u32, tau: u64) -> Self {
        Self {
            kept: vec![0; pages as usize],
            referenced: vec![0; pages as usize],
            since: Vec::new(),
            release: 1,
            fault: 1,
            resident: 0,
            tau,
            now: 0,
            last_fault: 0,
            residence: 0,
        }
    }

    fn note(&mut self, page: u32) {
        if self.referenced[page as usize] != self.fault {
            self.referenced[page as usize] = self.fault;
            self.since.push(page);
        }
    }
}

impl Policy for Pff {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let hit = self.kept[page as usize] == self.release;
        if !hit {
            if self.now - self.last_fault > self.tau && self.last_fault > 0 {
                self.release += 1;
                self.resident = self.since.len();
                for &page in &self.since {
                    self.kept[page as usize] = self.release;
                }
            }
            self.last_fault = self.now;
            self.fault += 1;
            self.since.clear();
            self.kept[page as usize] = self.release;
            self.resident += 1;
        }
        self.note(page);
        self.residence += self.resident as u64;
        hit
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.kept, pages);
        super::grow(&mut self.referenced, pages);
    }

    fn resident(&self) -> usize {
        self.resident
    }

    fn mean_resident(&self) -> Option<f64> {
        (self.now > 0).then(|| self.residence as f64 / self.now as f64)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("releases", u64::from(self.release - 1))]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    /// A list of (page, use bit), as the paper puts it: bits are cleared at every fault.
    fn plain(references: &[u32], tau: usize) -> (Vec<bool>, f64) {
        let mut list: Vec<(u32, bool)> = Vec::new();
        let (mut last, mut sum, mut all) = (None, 0, Vec::new());
        for (now, &page) in references.iter().enumerate() {
            let found = list.iter().position(|one| one.0 == page);
            all.push(found.is_some());
            match found {
                Some(place) => list[place].1 = true,
                None => {
                    if last.is_some_and(|last| now - last > tau) {
                        list.retain(|one| one.1);
                    }
                    list.iter_mut().for_each(|one| one.1 = false);
                    list.push((page, true));
                    last = Some(now);
                }
            }
            sum += list.len();
        }
        (all, sum as f64 / references.len() as f64)
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), tau in 1_usize..40) {
            let mut policy = Pff::new(stream.pages(), tau as u64);
            let (wanted, mean) = plain(stream.references(), tau);
            prop_assert_eq!(hits(&mut policy, &stream), wanted);
            prop_assert!((policy.mean_resident().unwrap() - mean).abs() < 1e-9);
        }
    }
}
