//! The working set policy: a page is resident while it was referenced within the last τ references.
//!
//! Source: P. J. Denning, "The working set model for program behavior", Communications of the ACM
//! 11(5), 1968. It is a policy of variable space: the number of frames follows the program and is
//! not bounded, so the frames of a replay do not matter. What it held on average is reported beside
//! its misses: the mean, over the references, of the working set's size just after each of them.

use super::Policy;

/// The working set policy; 4 bytes a page.
#[derive(Debug)]
pub struct WorkingSet {
    /// Time of the last reference plus 1; 0 for never.
    last: Vec<u32>,
    tau: u64,
    now: u64,
    /// Residence of the pages up to their latest references, in references.
    residence: u64,
}

impl WorkingSet {
    /// A window of `tau` references (at least 1) over the pages `0..pages`.
    pub fn new(pages: u32, tau: u64) -> Self {
        Self { last: vec![0; pages as usize], tau, now: 0, residence: 0 }
    }

    fn open(&self) -> impl Iterator<Item = u64> {
        self.last.iter().filter(|&&l| l > 0).map(|&l| self.now + 1 - u64::from(l))
    }
}

impl Policy for WorkingSet {
    /// # Panics
    /// After 2^32 − 1 references.
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let now = u32::try_from(self.now).expect("at most 2^32 - 1 references");
        let last = std::mem::replace(&mut self.last[page as usize], now);
        if last == 0 {
            return false;
        }
        let gap = u64::from(now - last);
        self.residence += gap.min(self.tau);
        gap <= self.tau
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.last, pages);
    }

    fn resident(&self) -> usize {
        self.open().filter(|&age| age <= self.tau).count()
    }

    fn mean_resident(&self) -> Option<f64> {
        let open: u64 = self.open().map(|age| age.min(self.tau)).sum();
        (self.now > 0).then(|| (self.residence + open) as f64 / self.now as f64)
    }
}
