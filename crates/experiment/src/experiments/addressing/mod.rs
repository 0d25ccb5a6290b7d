//! `unmap`, `mremap` and `populate`: what the kernel's operations on a mapping cost for each page,
//! alone and while other threads run in the same address space, whose translations it then has to
//! take back.
//!
//! The three have the same parameters and differ in their operations. The source of each
//! operation's meaning is its page of the Linux manual: munmap(2), mprotect(2), madvise(2),
//! mremap(2), mmap(2).

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Feature, Footprint, TOUCH, Tasks};
use crate::declaration::declared;
use crate::metrics::{
    MREMAP_ALIGNED, MREMAP_MOVE, MREMAP_MOVE_SHARED, MetricId, POPULATE_ADVISE, POPULATE_MAP, POPULATE_TOUCH,
    UNMAP_DONTNEED, UNMAP_MUNMAP, UNMAP_MUNMAP_SHARED, UNMAP_PROTECT,
};
use crate::setting::Setting;
use crate::tables::{TableId, tables};

tables! {
    operations_cost = "operations.cost", "operation and number of sharers", compare(PAGE_MEDIAN) {
        OPERATION = "operation", Text, "the operation, and the sharers";
        SHARERS = "sharers", Count, "other threads in the address space";
        PAGE_MEDIAN = "page.median", Nanoseconds, "CPU time of the calling thread per page, median";
        PAGE_LEAST = "page.least", Nanoseconds, "CPU time of the calling thread per page, minimum";
        FAULTS = "faults", Count, "page faults per operation";
        SHOOTDOWNS = "shootdowns", Count, "interrupts of the whole machine that drop translations, per operation";
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Addressing {
    /// Base pages of the mapping that each operation is done to
    #[arg(long, value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub pages: u64,
    /// Rounds of each operation, each on a fresh mapping; figures are the median
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Other threads in the address space, each on a CPU of its own; operations are measured
    /// without and with them
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub sharers: u32,
}
declared!(Addressing);

/// One of the three with these parameters: its primary metric and its headline metrics.
pub(super) struct One<'a>(&'a Addressing, MetricId, &'static [MetricId]);

/// `unmap`.
pub(super) fn unmap(addressing: &Addressing) -> One<'_> {
    let headline = &[UNMAP_MUNMAP_SHARED, UNMAP_PROTECT, UNMAP_DONTNEED];
    One(addressing, UNMAP_MUNMAP, headline)
}

/// `mremap`.
pub(super) fn mremap(addressing: &Addressing) -> One<'_> {
    One(addressing, MREMAP_MOVE, &[MREMAP_ALIGNED, MREMAP_MOVE_SHARED])
}

/// `populate`.
pub(super) fn populate(addressing: &Addressing) -> One<'_> {
    One(addressing, POPULATE_TOUCH, &[POPULATE_MAP, POPULATE_ADVISE])
}

impl Declaration for One<'_> {
    /// The mapping, of which there is one at a time.
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::pages(self.0.pages, page_size)
    }

    fn primary(&self) -> Option<MetricId> {
        Some(self.1)
    }

    fn headline(&self) -> &'static [MetricId] {
        self.2
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn tasks(&self, _: u64) -> Tasks {
        Tasks::threads(u64::from(self.0.sharers))
    }

    fn requires(&self) -> Vec<Feature> {
        if self.0.sharers > 0 { vec![Feature::Parallel] } else { Vec::new() }
    }

    fn usual(&self) -> Setting {
        Setting::unlimited()
    }

    /// Some six operations, without sharers and with them.
    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        Some(12.0 * f64::from(self.0.rounds) * self.0.pages as f64 * TOUCH)
    }
}
