//! Policies and systems as players of an experiment.

use pagelab_experiment::Failure;
use pagelab_experiment::observation::PageSet;

use super::PAGE_SIZE;
use super::play::{Access, Met, Player};
use crate::paging::machine::Tally;
use crate::paging::{Costs, Machine, OutOfMemory, System};
use crate::policy::Policy;
use crate::policy::residents::Residents;

/// The failure of a run whose system can free no frame.
#[cold]
fn no_memory(error: &OutOfMemory) -> Box<Failure> {
    Box::new(Failure::out_of_memory(u64::from(error.frames) * PAGE_SIZE).because(error))
}

/// A replacement policy.
pub struct PolicyPlayer<'a> {
    pub pages: u32,
    /// With a log of evictions, the pages that were resident before the last reference.
    pub residents: Option<Residents>,
    /// Whether every page was written before the first reference.
    pub populated: bool,
    pub policy: &'a mut (dyn Policy + 'a),
    pub costs: Costs,
    /// Virtual time so far, ns.
    pub time: u64,
    pub tally: Tally,
}

impl Player for PolicyPlayer<'_> {
    fn populate(&mut self, page: u32) -> Result<(), Box<Failure>> {
        self.policy.reference(page);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Box<Failure>> {
        Ok(())
    }

    fn reference(&mut self, page: u32, _write: bool) -> Result<Access, Box<Failure>> {
        self.tally.references += 1;
        let access = if self.policy.reference(page) {
            Access { time: self.costs.hit, met: Met::Hit }
        } else {
            self.tally.major += 1;
            self.tally.swapped_in += 1;
            self.tally.system += self.costs.major;
            self.tally.waited += self.costs.seek + self.costs.transfer;
            let time = self.costs.hit + self.costs.major + self.costs.seek + self.costs.transfer;
            if let Some(residents) = &mut self.residents {
                residents.miss(page);
            }
            Access { time, met: Met::Major }
        };
        self.time += access.time;
        Ok(access)
    }

    fn tally(&self) -> Tally {
        self.tally
    }

    fn swapped_out(&self) -> Option<u64> {
        None
    }

    fn time(&self) -> u64 {
        self.time
    }

    fn present(&self) -> u64 {
        self.policy.resident() as u64
    }

    fn note_evictions(&mut self) {
        self.residents = Some(Residents::of(self.policy, self.pages));
    }

    fn evicted(&mut self, gone: &mut dyn FnMut(u32)) {
        if let Some(residents) = &mut self.residents {
            residents.leave(self.policy, gone);
        }
    }

    fn map(&self) -> Option<(PageSet, PageSet)> {
        let present: Option<Vec<bool>> = (0..self.pages).map(|page| self.policy.contains(page)).collect();
        let present = present?;
        let swapped = PageSet::from_flags(present.iter().map(|&inside| self.populated && !inside));
        Some((PageSet::from_flags(present), swapped))
    }
}

/// A system.
pub struct SystemPlayer<'a> {
    pub machine: Machine,
    pub system: &'a mut dyn System,
    /// The tally before the first reference.
    pub before: Tally,
    /// Virtual time at the first reference, ns.
    pub start: u64,
}

impl Player for SystemPlayer<'_> {
    fn populate(&mut self, page: u32) -> Result<(), Box<Failure>> {
        self.machine.reference(self.system, page, true).map(|_| ()).map_err(|e| no_memory(&e))
    }

    fn note_evictions(&mut self) {
        self.machine.note_unmapped();
    }

    fn evicted(&mut self, gone: &mut dyn FnMut(u32)) {
        self.machine.unmapped().for_each(gone);
    }

    fn begin(&mut self) -> Result<(), Box<Failure>> {
        self.before = *self.machine.tally();
        self.start = self.machine.now();
        Ok(())
    }

    fn reference(&mut self, page: u32, write: bool) -> Result<Access, Box<Failure>> {
        let (minor, major) = (self.machine.tally().minor, self.machine.tally().major);
        let time = self.machine.reference(self.system, page, write).map_err(|e| no_memory(&e))?;
        let met = match (self.machine.tally().minor - minor, self.machine.tally().major - major) {
            (_, 1..) => Met::Major,
            (1.., _) => Met::Minor,
            _ => Met::Hit,
        };
        Ok(Access { time, met })
    }

    fn tally(&self) -> Tally {
        self.machine.tally().since(&self.before)
    }

    fn swapped_out(&self) -> Option<u64> {
        Some(self.tally().swapped_out)
    }

    fn time(&self) -> u64 {
        self.machine.now() - self.start
    }

    fn present(&self) -> u64 {
        (0..self.machine.pages()).filter(|&page| self.machine.mapped(page)).count() as u64
    }

    fn map(&self) -> Option<(PageSet, PageSet)> {
        let pages = 0..self.machine.pages();
        let present = PageSet::from_flags(pages.clone().map(|page| self.machine.mapped(page)));
        Some((present, PageSet::from_flags(pages.map(|page| self.machine.swapped(page)))))
    }
}
