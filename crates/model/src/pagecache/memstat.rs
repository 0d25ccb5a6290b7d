//! `::memstat`'s figures: pages, MB and percent in whole numbers, as `mdb` computes them
//! (`cmd/mdb/common/modules/genunix/memory.c` of OpenSolaris), and the scanner's thresholds as
//! `kstat -n system_pages` shows them.

use crate::systems::two_handed::Tunables;

/// MB of so many pages, rounded down.
pub fn megabytes(pages: u64, page_size: u64) -> u64 {
    (pages * page_size) >> 20
}

/// Percent of `physmem` pages; `total` is the number of pages that the kernel keeps track of.
pub fn percent(pages: u64, total: u64, physmem: u64) -> u64 {
    (5 * total + 1000 * pages) / (10 * physmem)
}

/// The thresholds once the scanner has measured how fast it can go, `measured` pages a second.
pub fn sampled(pages: u32, page_size: u32, measured: u32) -> Tunables {
    let fastscan = (pages / 2).min(measured);
    Tunables {
        fastscan,
        slowscan: (fastscan / 10).min(100),
        handspread: fastscan.min(pages.saturating_sub(1)),
        ..Tunables::solaris(pages, page_size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_rounds_to_the_nearest_with_a_bias_of_the_pages_not_tracked() {
        assert_eq!(percent(0, 1000, 1000), 0);
        assert_eq!(percent(1000, 1000, 1000), 100);
        assert_eq!(percent(15, 1000, 1000), 2);
        assert_eq!(percent(14, 1000, 1000), 1);
    }
}
