//! The machines: page size, entries in a pmeg, pmegs and hardware contexts.
//!
//! Pmegs and contexts are those that the BSD kernels read from the machine's type (NetBSD
//! `arch/sparc/sparc/cpu.c`, Linux `arch/sparc/mm/sun4c.c`); the reach agrees with Irlam's text.

/// A machine of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub name: &'static str,
    /// Bytes of a page.
    pub page: u32,
    /// Entries in a pmeg, 64 at most.
    pub entries: u32,
    /// Pmegs in all.
    pub pmegs: u32,
    /// Hardware contexts, the kernel's included.
    pub contexts: u32,
}

/// Bytes that one pmeg maps, on every machine.
pub const SEGMENT: u64 = 256 << 10;

/// The machine of the published table.
pub const SPARCSTATION_1: Machine =
    Machine { name: "SPARCstation 1", page: 4096, entries: 64, pmegs: 128, contexts: 8 };

/// The successor of the SPARCstation 1.
pub const SPARCSTATION_2: Machine =
    Machine { name: "SPARCstation 2", page: 4096, entries: 64, pmegs: 256, contexts: 16 };

/// All machines.
pub const FAMILY: &[Machine] = &[
    SPARCSTATION_1,
    SPARCSTATION_2,
    Machine { name: "4/1xx", page: 8192, entries: 32, pmegs: 256, contexts: 8 },
    Machine { name: "4/2xx", page: 8192, entries: 32, pmegs: 512, contexts: 16 },
    Machine { name: "4/3xx", page: 8192, entries: 32, pmegs: 256, contexts: 16 },
    Machine { name: "4/4xx", page: 8192, entries: 32, pmegs: 1024, contexts: 64 },
];

impl Machine {
    /// Bytes that all pmegs together map.
    pub fn reach(&self) -> u64 {
        u64::from(self.pmegs) * SEGMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pmeg_maps_256_kib_everywhere() {
        for machine in FAMILY {
            assert_eq!(u64::from(machine.page * machine.entries), SEGMENT, "{}", machine.name);
        }
        let reach: Vec<u64> = FAMILY.iter().map(|m| m.reach() >> 20).collect();
        assert_eq!(reach, [32, 64, 64, 128, 64, 256]);
    }
}
