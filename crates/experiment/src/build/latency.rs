//! What a level of the memory hierarchy costs, picked from the loads over working sets of `latency`.
//!
//! | level | the loads of |
//! |---|---|
//! | first-level cache | the greatest working set up to half of it |
//! | second-level cache | the greatest up to half of it, beyond the first |
//! | third-level cache | the smallest from twice the second on; none where that costs as much as memory |
//! | memory | the greatest, where it has twice the last cache |
//! | TLB miss | one line of each page, of twice as many pages as the second level of TLBs has entries |
//!
//! What a third-level cache gives one of its processors is not known where others share it, so it is looked at
//! where it begins.

use super::{Figure, Sheet};
use crate::failure::Failure;
use crate::metrics;
use crate::recorder::Recorder;
use crate::tables::latency;

/// The note where no working set showed the third-level cache. Where a clock counts instructions it
/// is not true: no cache shows there.
pub const SHARED_CACHE: &str = "no time of the third-level cache: a working set of twice the second-level \
    cache costs about as much as memory, so other CPUs fill the shared cache; repeat on an idle machine";

/// A third-level cache that costs more than this share of memory's time was not met: others use it.
const NOT_MET: f64 = 0.8;

/// The sizes that decide which working set stands for which level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a base page.
    pub page_size: u64,
    /// Bytes of the data caches, the first level first.
    pub caches: [Option<u64>; 3],
    /// Entries of the last level of TLBs for base pages.
    pub tlb: Option<u64>,
}

/// The mean times of a load in one working set, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loads {
    /// Bytes of the working set.
    pub size: u64,
    /// Over all of its cache lines.
    pub lines: Option<f64>,
    /// Over one line of each of its pages.
    pub pages: Option<f64>,
}

/// The figures of the levels, each none where no working set stands for it.
pub fn latencies(loads: &[Loads], geometry: &Geometry) -> [Figure; 5] {
    let [l1, l2, l3] = geometry.caches;
    let greatest = |above: u64, upto: u64| loads.iter().rev().find(|l| l.size > above && l.size <= upto);
    let memory = loads.last().filter(|l| {
        let last = l3.or(l2).unwrap_or(16 << 20);
        l.size >= last.saturating_mul(2)
    });
    let memory = memory.and_then(|l| l.lines);
    let third = l3.and(l2).and_then(|l2| loads.iter().find(|l| l.size >= l2.saturating_mul(2)));
    let third = third.and_then(|l| l.lines).filter(|&time| memory.is_some_and(|m| time < NOT_MET * m));
    let pages = geometry.tlb.map(|entries| entries.saturating_mul(2 * geometry.page_size));
    let missed = pages.and_then(|pages| loads.iter().find(|l| l.size >= pages));
    [
        (metrics::LATENCY_L1, l1.and_then(|l1| greatest(0, l1 / 2)?.lines)),
        (metrics::LATENCY_L2, l1.zip(l2).and_then(|(l1, l2)| greatest(l1, l2 / 2)?.lines)),
        (metrics::LATENCY_L3, third),
        (metrics::LATENCY_DRAM, memory),
        (metrics::LATENCY_TLB_MISS, missed.and_then(|l| l.pages)),
    ]
}

/// Records the loads as the table `latency`.
///
/// # Errors
/// When it cannot be kept.
pub fn loads(loads: &[Loads], recorder: &mut dyn Recorder) -> Result<(), Failure> {
    let mut sheet = Sheet::new(latency::TABLE);
    loads.iter().for_each(|l| sheet.row([Some(l.size as f64), l.lines, l.pages]));
    sheet.record(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swept() -> Vec<Loads> {
        let lines = [1.0, 1.0, 3.0, 3.0, 3.5, 4.0, 9.0, 13.0, 30.0, 60.0, 90.0, 120.0, 190.0, 200.0];
        let size = |n: usize| (16u64 << 10) << n;
        let load = |(n, &time): (usize, &f64)| Loads {
            size: size(n),
            lines: Some(time),
            pages: Some(time / 10.0 + n as f64),
        };
        lines.iter().enumerate().map(load).collect()
    }

    const GEOMETRY: Geometry = Geometry {
        page_size: 4096,
        caches: [Some(48 << 10), Some(1 << 20), Some(32 << 20)],
        tlb: Some(4096),
    };

    fn values(loads: &[Loads], geometry: &Geometry) -> [Option<f64>; 5] {
        latencies(loads, geometry).map(|(_, value)| value)
    }

    #[test]
    fn each_level_is_the_working_set_that_stands_for_it() {
        // 16 KiB, 512 KiB, 2 MiB, 128 MiB; and the pages of 32 MiB.
        let wanted = [Some(1.0), Some(4.0), Some(13.0), Some(200.0), Some(12.0 + 11.0)];
        assert_eq!(values(&swept(), &GEOMETRY), wanted);
    }

    #[test]
    fn what_the_machine_does_not_show_or_nothing_stands_for_is_none() {
        assert_eq!(values(&[], &GEOMETRY), [None; 5]);
        let unknown = Geometry { page_size: 4096, ..Geometry::default() };
        assert_eq!(values(&swept(), &unknown), [None, None, None, Some(200.0), None]);
        let short = &swept()[..12];
        assert_eq!(values(short, &GEOMETRY)[2..], [None, None, Some(23.0)], "32 MiB are no memory yet");
    }

    #[test]
    fn a_third_level_that_costs_as_much_as_memory_is_none() {
        let mut busy = swept();
        busy[7].lines = Some(170.0);
        assert_eq!(values(&busy, &GEOMETRY)[2], None);
    }
}
