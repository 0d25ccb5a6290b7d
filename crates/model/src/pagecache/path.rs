//! One read of 8 KiB from a file: through a window of segmap, or through segkpm.
//!
//! Segmap is a cache of windows into the kernel's address space. A read whose page has no window takes the
//! one used longest ago: its old mapping must go, on every processor, and a new one be made. Segkpm has
//! all memory mapped once, with large pages: the window is then only a name, and nothing is unmapped.

use pagelab_reference::rng::Rng;

use crate::paging::lists::Lists;

/// How the kernel reaches a page of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Windows that are mapped and unmapped.
    Segmap,
    /// All of memory mapped at once.
    Kpm,
}

/// Processor time of the parts of a read, in µs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// The call, finding the window, copying 8 KiB.
    pub call: f64,
    /// Finding the page and taking it from the cache list; the window's old page goes there.
    pub reclaim: f64,
    /// Unmapping a window and mapping it anew, without the other processors.
    pub map: f64,
    /// What each other processor adds to the wait for all of them to unmap.
    pub cross_call: f64,
    /// What an unmap costs each other processor.
    pub interrupted: f64,
    /// Starting input and taking its interrupt.
    pub input: f64,
}

/// What share of reads found what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// The page had a window.
    pub window: f64,
    /// It had none, but was in memory.
    pub cached: f64,
}

/// The cost of a read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Read {
    /// µs of the processor that reads.
    pub own: f64,
    /// µs of all the others together.
    pub others: f64,
    /// Processors called.
    pub cross_calls: f64,
}

impl Costs {
    /// Solaris 8 and 10 alike: four of the six published cells; cross-calls assumed, with two processors in the
    /// test. The releases differ by their path alone.
    pub const SOLARIS: Self =
        Self { call: 89.0, reclaim: 9.0, map: 81.0, cross_call: 2.0, interrupted: 3.0, input: 55.0 };

    /// The mean cost of a read on a machine of `processors` processors.
    pub fn read(&self, path: Path, shares: &Shares, processors: u32) -> Read {
        let others = f64::from(processors.saturating_sub(1));
        let recycled = 1.0 - shares.window;
        let missed = 1.0 - shares.window - shares.cached;
        let (map, calls) = match path {
            Path::Segmap => (self.map + self.cross_call * others, others),
            Path::Kpm => (0.0, 0.0),
        };
        Read {
            own: self.call + recycled * (self.reclaim + map) + missed * self.input,
            others: recycled * calls * self.interrupted,
            cross_calls: recycled * calls,
        }
    }
}

const WINDOWS: u8 = 0;
const CACHE: u8 = 1;

/// Reads `reads` pages at random from a file of `file` pages, after as many to warm up, with `windows`
/// windows and `memory` pages for the file, the windows' included.
pub fn random_reads(file: u32, windows: u32, memory: u32, reads: u64, seed: u64) -> Shares {
    assert!(windows > 0 && memory > windows);
    let mut rng = Rng::new(seed);
    let mut lists = Lists::new(file, 2);
    let (mut hits, mut cached) = (0u64, 0u64);
    for turn in 0..2 * reads {
        let page = rng.below(u64::from(file)) as u32;
        let found = lists.of(page);
        if turn >= reads {
            hits += u64::from(found == Some(WINDOWS));
            cached += u64::from(found == Some(CACHE));
        }
        lists.to_head(WINDOWS, page);
        // The window used longest ago loses its page to the cache list, and that its oldest.
        if lists.len(WINDOWS) > windows
            && let Some(old) = lists.tail(WINDOWS)
        {
            lists.to_head(CACHE, old);
        }
        if lists.len(CACHE) > memory - windows
            && let Some(old) = lists.tail(CACHE)
        {
            lists.remove(old);
        }
    }
    let all = reads as f64;
    Shares { window: hits as f64 / all, cached: cached as f64 / all }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_within_the_windows_is_always_found_there() {
        let shares = random_reads(100, 200, 1000, 2000, 1);
        assert_eq!(shares, Shares { window: 1.0, cached: 0.0 });
    }

    #[test]
    fn shares_are_those_of_uniform_reads() {
        let shares = random_reads(10_000, 500, 5000, 100_000, 1);
        assert!((shares.window - 0.05).abs() < 0.005, "{shares:?}");
        assert!((shares.cached - 0.45).abs() < 0.01, "{shares:?}");
    }

    #[test]
    fn only_segmap_calls_other_processors() {
        let costs =
            Costs { call: 80.0, reclaim: 15.0, map: 70.0, cross_call: 2.0, interrupted: 3.0, input: 55.0 };
        let shares = Shares { window: 0.0, cached: 1.0 };
        let few = costs.read(Path::Segmap, &shares, 2);
        let many = costs.read(Path::Segmap, &shares, 64);
        assert_eq!((few.cross_calls, many.cross_calls), (1.0, 63.0));
        assert!(many.own > few.own && many.others > few.others);
        let kpm = costs.read(Path::Kpm, &shares, 64);
        assert_eq!((kpm.own, kpm.others), (95.0, 0.0));
    }
}
