//! Whole systems of page replacement, one file each, composed from [`crate::paging`].

pub mod linux_2_4_19;
pub mod linux_2_4_19_rmap14a;
pub mod linux_file_lru;
pub mod linux_file_mglru;
pub mod linux_lru;
pub mod linux_mglru;
pub mod two_handed;

use self::two_handed::{Scanner, Tunables, TwoHanded};
use crate::paging::costs;
pub(crate) use crate::paging::system::SECOND;
use crate::paging::{Costs, Machine, OutOfMemory, System};
use crate::parameter::{Parameter, Parts};
use crate::parameter_table;

/// A system by name.
#[derive(Clone, Copy, Debug)]
pub struct SystemKind {
    /// The name on the command line, behind `model:`.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// The costs that belong to its time.
    pub costs: Costs,
    /// Slots that one fault reads at once.
    pub read_ahead: u32,
    /// Whether the system has the scanner of Solaris.
    scans: bool,
    make: fn(u32, u32, Tunables) -> Box<dyn System>,
}

/// All systems.
pub const SYSTEMS: &[SystemKind] = &[
    SystemKind {
        name: "linux-2.4.19",
        help: "Linux 2.4.19: two lists, swap_out walking the page tables in address order",
        costs: Costs::PC_2002,
        read_ahead: 16,
        scans: false,
        make: |pages, frames, _| Box::new(linux_2_4_19::Linux2419::new(pages, frames)),
    },
    SystemKind {
        name: "linux-2.4.19-rmap14a",
        help: "Linux 2.4.19 with rmap14a: page aging through reverse maps, three lists",
        costs: Costs::PC_2002,
        read_ahead: 16,
        scans: false,
        make: |pages, frames, _| Box::new(linux_2_4_19_rmap14a::Rmap14a::new(pages, frames)),
    },
    SystemKind {
        name: "linux-lru",
        help: "Linux since 5.9, classic lists: active, inactive, refault distance",
        costs: Costs::TODAY,
        read_ahead: 8,
        scans: false,
        make: |pages, _, _| Box::new(linux_lru::LinuxLru::new(pages)),
    },
    SystemKind {
        name: "linux-mglru",
        help: "Linux since 6.1, multi-generational LRU",
        costs: Costs::TODAY,
        read_ahead: 8,
        scans: false,
        make: |pages, _, _| Box::new(linux_mglru::LinuxMglru::new(pages)),
    },
    SystemKind {
        name: "svr4-two-handed",
        help: "SunOS and System V Release 4: the two-handed clock",
        costs: Costs::PC_2002,
        read_ahead: 1,
        scans: true,
        make: |pages, _, tunables| Box::new(TwoHanded::svr4(pages, tunables)),
    },
    SystemKind {
        name: "solaris7-priority-paging",
        help: "Solaris 7 with priority paging: the scanner starts at cachefree",
        costs: Costs::PC_2002,
        read_ahead: 1,
        scans: true,
        make: |pages, _, tunables| Box::new(TwoHanded::priority_paging(pages, tunables)),
    },
    SystemKind {
        name: "solaris8-cyclic",
        help: "Solaris 8: free list, cache list, and the scanner only when both run out",
        costs: Costs::PC_2002,
        read_ahead: 1,
        scans: true,
        make: |pages, _, tunables| Box::new(TwoHanded::cyclic(pages, tunables)),
    },
];

/// A system with the values of its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Configuration {
    /// The system.
    pub kind: &'static SystemKind,
    /// The costs of its operations.
    pub costs: Costs,
    /// Swap slots read by one fault.
    pub read_ahead: Slots,
    /// The parameters of the scanner, if the system has one.
    pub scanner: Scanner,
}

/// A number of swap slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots(pub u32);

/// The parameter of systems with swap read-ahead.
const READ_AHEAD: &[Parameter<Slots>] = parameter_table! {
    whole "read-ahead" "slots" [1.0, 64.0] "swap slots read by one fault, rounded up to a power of 2",
        documented("page-cluster: 4 in Linux 2.4, 3 since 2.6"), (0);
};

impl Configuration {
    /// Its parameters.
    pub fn parts(&mut self) -> Parts<'_> {
        let mut parts = Parts::default().and(costs::PARAMETERS, &mut self.costs);
        if self.kind.read_ahead > 1 {
            parts = parts.and(READ_AHEAD, &mut self.read_ahead);
        }
        if self.kind.scans {
            parts = parts.and(two_handed::PARAMETERS, &mut self.scanner);
        }
        parts
    }

    /// The machine under the system.
    pub fn machine(&self, pages: u32, frames: u32) -> Machine {
        Machine::new(pages, frames, self.costs, self.read_ahead.0)
    }

    /// The system for an address space of `pages` pages in `frames` frames.
    pub fn build(&self, pages: u32, frames: u32) -> Box<dyn System> {
        (self.kind.make)(pages, frames, Tunables::of(&self.scanner, frames, crate::BASE_PAGE as u32))
    }
}

impl PartialEq for SystemKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl SystemKind {
    /// The system of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SYSTEMS.iter().find(|system| system.name == name)
    }

    /// The system as published.
    pub fn configuration(&'static self) -> Configuration {
        Configuration {
            kind: self,
            costs: self.costs,
            read_ahead: Slots(self.read_ahead),
            scanner: Scanner::SOLARIS,
        }
    }

    /// The system for an address space of `pages` pages in `frames` frames.
    pub fn build(&'static self, pages: u32, frames: u32) -> Box<dyn System> {
        self.configuration().build(pages, frames)
    }

    /// What the system makes of `references` to the pages `0..pages` with `frames` frames: with
    /// pages read on demand only, as the policies do it, and with its own read-ahead.
    ///
    /// # Errors
    /// When the system cannot run in so few frames.
    pub fn replay(&'static self, pages: u32, references: &[u32], frames: u32) -> Result<Replay, OutOfMemory> {
        let perform = |read_ahead: u32| -> Result<(u64, u64), OutOfMemory> {
            let mut machine = Machine::new(pages, frames, self.costs, read_ahead);
            let mut system = self.build(pages, frames);
            let mut first = vec![true; pages as usize];
            let mut firsts = 0;
            for &page in references {
                firsts += u64::from(std::mem::take(&mut first[page as usize]));
                machine.reference(system.as_mut(), page, false)?;
            }
            Ok((firsts + machine.tally().major, firsts + machine.tally().swapped_in))
        };
        let (misses, _) = perform(1)?;
        let read_ahead = if self.read_ahead > 1 { Some(perform(self.read_ahead)?) } else { None };
        Ok(Replay {
            misses,
            read_ahead: read_ahead.map(|(waits, pages_read)| ReadAhead { waits, pages_read }),
        })
    }
}

/// What a system made of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// References to pages that are not in memory, the first ones included, when nothing is read ahead: comparable with
    /// the policies' misses, and never fewer than OPT's.
    pub misses: u64,
    /// The same with the system's read-ahead, where it has one.
    pub read_ahead: Option<ReadAhead>,
}

/// A replay with read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadAhead {
    /// References that wait for a read; a page that was read ahead is in memory.
    pub waits: u64,
    /// Pages read, on demand and ahead.
    pub pages_read: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::Pattern;
    use proptest::prelude::*;

    fn run(
        kind: &'static SystemKind,
        pages: u32,
        frames: u32,
        pattern: &str,
        references: u64,
        write: bool,
    ) -> Machine {
        let stream = pattern.parse::<Pattern>().unwrap().stream(u64::from(pages), references, 1).unwrap();
        let mut machine = Machine::new(pages, frames, kind.costs, kind.read_ahead);
        let mut system = kind.build(pages, frames);
        for page in (0..pages).chain(stream.references().iter().copied()) {
            machine.reference(system.as_mut(), page, write).unwrap();
        }
        machine
    }

    #[test]
    fn memory_that_suffices_has_no_input() {
        for kind in SYSTEMS {
            let machine = run(kind, 1000, 1800, "uniform", 20_000, true);
            assert_eq!((machine.tally().major, machine.tally().swapped_in), (0, 0), "{}", kind.name);
        }
    }

    #[test]
    fn no_system_beats_opt_and_none_is_worse_than_missing_always() {
        let (pages, frames) = (3000u32, 2000u32);
        let stream = "zipf:0.8".parse::<Pattern>().unwrap().stream(u64::from(pages), 60_000, 1).unwrap();
        let populated: Vec<u32> = (0..pages).chain(stream.references().iter().copied()).collect();
        let all = pagelab_reference::Stream::new(pages, populated);
        let opt = crate::policy::opt_misses(&all, frames) - u64::from(pages);
        for kind in SYSTEMS {
            let mut machine = Machine::new(pages, frames, kind.costs, 1);
            let mut system = kind.build(pages, frames);
            for &page in all.references() {
                machine.reference(system.as_mut(), page, true).unwrap();
            }
            let major = machine.tally().major;
            assert!(major >= opt, "{}: {major} faults, OPT {opt}", kind.name);
            assert!(major < 40_000, "{}: {major} faults", kind.name);
        }
    }

    #[test]
    fn a_replay_on_demand_has_no_fewer_misses_than_opt() {
        let stream = "linear".parse::<Pattern>().unwrap().stream(3000, 30_000, 1).unwrap();
        let opt = crate::policy::opt_misses(&stream, 2000);
        let mut ahead = 0;
        for kind in SYSTEMS {
            let replay = kind.replay(3000, stream.references(), 2000).unwrap();
            assert!(replay.misses >= opt, "{}: {} misses, OPT {opt}", kind.name, replay.misses);
            if let Some(read_ahead) = replay.read_ahead {
                assert!(
                    read_ahead.waits < replay.misses && read_ahead.pages_read >= read_ahead.waits,
                    "{} {replay:?}",
                    kind.name
                );
                ahead += usize::from(read_ahead.waits < opt);
            }
        }
        assert!(ahead > 0, "read-ahead of a linear stream saves waits that OPT on demand has");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        /// Frames are neither made nor lost, faults and references add up, and time only advances.
        #[test]
        fn frames_are_conserved(seed: u64, frames in 64u32..400, write: bool, pattern in "uniform|zipf:1|drift|linear|smooth-sin") {
            let pages = 500;
            let stream = pattern.parse::<Pattern>().unwrap().stream(pages, 4000, seed).unwrap();
            for kind in SYSTEMS {
                let mut machine = Machine::new(pages as u32, frames, kind.costs, kind.read_ahead);
                let mut system = kind.build(pages as u32, frames);
                let mut last = 0;
                for &page in stream.references() {
                    machine.reference(system.as_mut(), page, write).unwrap();
                    prop_assert!(machine.now() > last);
                    last = machine.now();
                }
                let resident = (0..pages as u32).filter(|&p| machine.resident(p)).count() as u32;
                prop_assert_eq!(resident + machine.free_frames(), frames, "{}", kind.name);
                let tally = machine.tally();
                prop_assert!(tally.swapped_in >= tally.major && tally.major + tally.minor <= tally.references);
            }
        }
    }
}
