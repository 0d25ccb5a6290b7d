//! What a size of `vmtest` means, and the figures of its sweep.

use super::Figure;
use crate::experiments::Vmtest;
use crate::metrics;

impl Vmtest {
    /// Processes at this size and pages of each: whole segments, or one process with a smaller one.
    pub fn processes(&self, size: u64, page_size: u64) -> (u64, u64) {
        let segment = self.segment(page_size);
        let pages = size / page_size;
        if pages <= segment { (1, pages.max(1)) } else { (pages / segment, segment) }
    }

    /// The pages of a whole segment.
    pub fn segment(&self, page_size: u64) -> u64 {
        (self.process_size.bytes(page_size) / page_size).max(1)
    }

    /// Reads that a process with `pages` pages makes at most: as many as its passes over a whole segment
    /// would be, so that each size makes the same number.
    pub fn reads(&self, pages: u64, page_size: u64) -> u64 {
        self.passes.saturating_mul(self.segment(page_size).max(pages)).max(pages)
    }
}

/// Reads a second at the first and the last size.
pub fn speeds(speeds: &[f64]) -> [Figure; 2] {
    [(metrics::SPEED_FIRST, speeds.first().copied()), (metrics::SPEED_LAST, speeds.last().copied())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_segments_or_a_smaller_one() {
        let vmtest = Vmtest { process_size: "2M".parse().unwrap(), passes: 3, ..Vmtest::default() };
        assert_eq!(vmtest.processes(16 << 20, 4096), (8, 512));
        assert_eq!(vmtest.processes(64 << 10, 4096), (1, 16));
        assert_eq!(vmtest.processes(3 << 20, 4096), (1, 512));
        assert_eq!(vmtest.processes(64 << 10, 65536), (1, 1));
        assert_eq!((vmtest.reads(16, 4096), vmtest.reads(512, 4096)), (1536, 1536));
    }
}
