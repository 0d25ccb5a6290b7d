//! A simulated memory that can be asked for its pages and for the evicted ones between references.

use pagelab_model::paging::{Costs, Machine, OutOfMemory, System};
use pagelab_model::policy::residents::Residents;
use pagelab_model::policy::{Policy, PolicyKind};
use pagelab_model::systems::linux_file_lru::LinuxFileLru;
use pagelab_model::systems::linux_file_mglru::LinuxFileMglru;
use pagelab_model::systems::{Slots, SystemKind};

/// The memory of one address space, under a policy or a system.
pub struct Memory {
    pages: u32,
    kind: Kind,
}

enum Kind {
    /// With the pages that were resident before the last reference, once evictions are noted.
    Policy(Box<dyn Policy>, Option<Residents>),
    System(Box<Machine>, Box<dyn System>),
}

/// The swap device of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwapDevice {
    /// The system's own: a disk with the costs of its time and read-ahead.
    Disk,
    /// Memory, such as zram: transfers take no time, so evicted pages do not occupy frames while
    /// they are written, and there is no read-ahead (`SWP_SYNCHRONOUS_IO` in `do_swap_page`).
    Memory,
}

impl Memory {
    /// Creates an empty memory for the pages `0..pages`: `frames` frames under the policy `name`,
    /// or `limit` frames and a swap device under the system `name`. Neither number may be 0. A
    /// system may hold unmapped pages and keep frames free. `None` if there is no such model, or if
    /// the policy needs the future or does not know its pages.
    pub fn named(name: &str, pages: u32, frames: u32, limit: u32, swap: SwapDevice) -> Option<Self> {
        if let Some(system) = SystemKind::named(name) {
            let mut configuration = system.configuration();
            if swap == SwapDevice::Memory {
                configuration.costs = Costs { seek: 0, transfer: 0, ..configuration.costs };
                configuration.read_ahead = Slots(1);
            }
            let machine = Box::new(configuration.machine(pages, limit));
            let kind = Kind::System(machine, configuration.build(pages, limit));
            return Some(Self { pages, kind });
        }
        let kind: PolicyKind = name.parse().ok()?;
        let policy = (!kind.needs_future()).then(|| kind.build(pages, frames, None))?;
        policy.contains(0).is_some().then_some(Self { pages, kind: Kind::Policy(policy, None) })
    }

    /// Creates an empty page cache of one file: as [`Self::named`], with the models of the Linux
    /// page cache as `linux-lru` and `linux-mglru`. Other systems do not cache files.
    pub fn of_file(name: &str, pages: u32, frames: u32) -> Option<Self> {
        let policy: Box<dyn Policy> = match name {
            "linux-lru" => Box::new(LinuxFileLru::new(pages, frames)),
            "linux-mglru" => Box::new(LinuxFileMglru::new(pages, frames)),
            name if SystemKind::named(name).is_some() => return None,
            name => return Self::named(name, pages, frames, frames, SwapDevice::Disk),
        };
        policy.contains(0).is_some().then_some(Self { pages, kind: Kind::Policy(policy, None) })
    }

    /// References a page.
    ///
    /// # Errors
    /// If the system cannot free a frame.
    ///
    /// # Panics
    /// If there is no such page.
    pub fn reference(&mut self, page: u32, write: bool) -> Result<(), OutOfMemory> {
        match &mut self.kind {
            Kind::Policy(policy, residents) => {
                if !policy.reference(page)
                    && let Some(residents) = residents
                {
                    residents.miss(page);
                }
                Ok(())
            }
            Kind::System(machine, system) => machine.reference(system.as_mut(), page, write).map(|_| ()),
        }
    }

    /// Begins to collect evicted pages.
    pub fn note_evictions(&mut self) {
        match &mut self.kind {
            Kind::Policy(policy, residents) => *residents = Some(Residents::of(policy.as_ref(), self.pages)),
            Kind::System(machine, _) => machine.note_unmapped(),
        }
    }

    /// Passes the pages evicted by the last reference to `gone`, in any order.
    pub fn evicted(&mut self, gone: &mut dyn FnMut(u32)) {
        match &mut self.kind {
            Kind::Policy(policy, Some(residents)) => residents.leave(policy.as_ref(), gone),
            Kind::Policy(_, None) => {}
            Kind::System(machine, _) => machine.unmapped().for_each(gone),
        }
    }

    /// Whether a reference to this page would be a hit.
    pub fn contains(&self, page: u32) -> bool {
        match &self.kind {
            Kind::Policy(policy, _) => policy.contains(page) == Some(true),
            Kind::System(machine, _) => machine.mapped(page),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_holds_the_pages_that_its_policy_keeps() {
        for name in ["lru", "fifo", "linux-lru"] {
            let mut memory = Memory::named(name, 500, 100, 100, SwapDevice::Disk).unwrap();
            memory.note_evictions();
            let mut evicted = 0;
            for page in 0..500 {
                memory.reference(page, true).unwrap();
                memory.evicted(&mut |_| evicted += 1);
            }
            let held = (0..500).filter(|&page| memory.contains(page)).count();
            assert!((1..=100).contains(&held) && memory.contains(499), "{name}: {held}");
            assert_eq!(evicted + held, 500, "{name}");
        }
        assert!(
            ["opt", "ws:10", "nothing"]
                .iter()
                .all(|name| Memory::named(name, 10, 5, 5, SwapDevice::Disk).is_none())
        );
    }

    /// Without read-ahead and writes in flight, every frame of a full memory holds a mapped page,
    /// except those of the last batch of reclaim.
    #[test]
    fn swap_in_memory_leaves_no_frame_to_unmapped_pages() {
        let mapped = |name, swap| {
            let mut memory = Memory::named(name, 2000, 1000, 1000, swap).unwrap();
            (0..2000u32).for_each(|page| memory.reference(page, true).unwrap());
            let stream = (0..20_000u32).map(|n| n.wrapping_mul(2_654_435_761) >> 12);
            stream.for_each(|n| memory.reference(n % 2000, false).unwrap());
            (0..2000).filter(|&page| memory.contains(page)).count()
        };
        for name in ["linux-lru", "linux-mglru"] {
            assert!(mapped(name, SwapDevice::Memory) >= 1000 - 64, "{name}");
        }
        assert!(mapped("linux-lru", SwapDevice::Disk) < 900);
    }
}
