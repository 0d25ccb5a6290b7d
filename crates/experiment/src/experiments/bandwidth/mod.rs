//! `bandwidth`: how many bytes a second memory gives, by working set and threads (John McCalpin,
//! STREAM, 1995).
//!
//! Three arrays of 64-bit floating point numbers, each a third of the working set, and STREAM's
//! four loops: copy `c = a`, scale `b = s c`, add `c = a + b`, triad `a = b + s c`. Bytes are
//! counted as STREAM counts them: those that the loop reads and writes, 16 or 24 for each element,
//! without what a cache reads in order to write.

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Bounds, Declaration, Feature, Footprint, Tasks};
use crate::declaration::declared;
use crate::metrics::{BANDWIDTH_COPY, BANDWIDTH_TRIAD, BANDWIDTH_TRIAD_THREADS, MetricId};
use crate::setting::Setting;
use crate::sizes::Sizes;
use crate::tables::{TableId, tables};

tables! {
    bandwidth = "bandwidth", "working set and number of threads", compare(TRIAD, COPY) {
        WORKING_SET = "working-set", Text, "the working set and the threads";
        SIZE = "size", Bytes, "the working set";
        THREADS = "threads", Count, "the threads";
        COPY = "copy", BytesPerSecond, "c = a";
        SCALE = "scale", BytesPerSecond, "b = s c";
        ADD = "add", BytesPerSecond, "c = a + b";
        TRIAD = "triad", BytesPerSecond, "a = b + s c";
    }
}

/// STREAM's rule: each of the three arrays at least four times the last-level cache.
pub const TIMES: u64 = 12;
/// The smallest working set where none is asked for: beyond most first-level caches, within most of
/// the second level.
const FROM: u64 = 256 << 10;

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Bandwidth {
    /// The working sets, all three arrays together: 256K..384M:1 (points per doubling), 64M, or
    /// 16384p (pages) [default: from 256K to twelve times the last-level cache]
    #[arg(long, value_name = "SIZES")]
    pub sizes: Option<Sizes>,
    /// Numbers of threads; each thread has a CPU and a share of the working set
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', default_value = "1,2", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,
    /// Timed rounds of each loop; figures are the median
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,
}
declared!(Bandwidth);

impl Bandwidth {
    /// The default working sets under this memory limit (at most half of it) and beyond this
    /// last-level cache.
    pub fn sizes_for(limit: Option<u64>, last_cache: Option<u64>) -> Sizes {
        Sizes::beyond_caches(FROM, TIMES, limit, last_cache)
    }

    /// The working sets that are swept: those asked for, else those of a machine without a limit.
    pub fn sweep(&self) -> Sizes {
        self.sizes.clone().unwrap_or_else(|| Self::sizes_for(None, None))
    }
}

impl Declaration for Bandwidth {
    /// The greatest working set.
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::anonymous(self.sweep().greatest(page_size))
    }

    fn primary(&self) -> Option<MetricId> {
        Some(BANDWIDTH_TRIAD)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[BANDWIDTH_COPY, BANDWIDTH_TRIAD_THREADS]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn tasks(&self, _: u64) -> Tasks {
        Tasks::threads(u64::from(self.threads.iter().copied().max().unwrap_or(0)))
    }

    fn settle(&mut self, bounds: &Bounds) {
        self.sizes.get_or_insert_with(|| Self::sizes_for(bounds.limit, bounds.last_cache));
    }

    fn requires(&self) -> Vec<Feature> {
        vec![Feature::MemoryTime]
    }

    fn usual(&self) -> Setting {
        Setting::unlimited()
    }

    /// Rounds of 32 MiB and of the working set, of four loops, and as many threads at once.
    fn seconds(&self, _: Option<u64>, page_size: u64) -> Option<f64> {
        let bytes = |size: u64| (size.max(32 << 20) * 4 * u64::from(self.rounds)) as f64;
        let all: f64 = self.sweep().bytes(page_size).into_iter().map(bytes).sum();
        Some(all * self.threads.len() as f64 / 8e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_set_follows_streams_rule_within_the_limit() {
        let greatest = |limit, cache| Bandwidth::sizes_for(limit, cache).greatest(4096);
        assert_eq!(greatest(None, None), 128 << 20);
        assert_eq!(greatest(None, Some(32 << 20)), 384 << 20);
        assert_eq!(greatest(None, Some(1 << 30)), 1 << 30);
        assert_eq!(greatest(Some(64 << 20), Some(32 << 20)), 32 << 20);
        assert_eq!(greatest(Some(4096), None), 256 << 10);
    }
}
