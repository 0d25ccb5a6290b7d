//! `ksm`: what merging equal pages takes and gives (Linux, Documentation/admin-guide/mm/ksm.rst;
//! Arcangeli, Eidus and Wright, "Increasing memory density by using KSM", Ottawa Linux Symposium,
//! 2009).
//!
//! A mapping of which some pages are equal is offered to ksmd (`MADV_MERGEABLE`) until a whole scan
//! merges no more. Then every other page of each content is written, which copies it, and the rest
//! is parted with `MADV_UNMERGEABLE`.

pub mod metrics;

use serde::{Deserialize, Serialize};

use super::declaration::{Contradiction, Declaration, Feature, Footprint, TOUCH};
use super::share::Share;
use crate::declaration::{declared, positive};
use crate::metrics::{KSM_COPY, KSM_CPU, KSM_SHARING, KSM_UNMERGE, MetricId};
use crate::setting::Setting;
use crate::tables::{TableId, tables};

tables! {
    merging = "merging", "scan of ksmd" {
        SCAN = "scan", Count, "the number of the scan";
        ELAPSED = "elapsed", Nanoseconds, "its end, since the start";
        PROCESS = "process", Pages, "merged pages of this process by the kernel's count";
        SHARING = "sharing", Pages, "growth of the machine's pages_sharing";
        SHARED = "shared", Pages, "growth of the machine's pages_shared";
        KSMD = "ksmd", Nanoseconds, "CPU time of ksmd";
    }
    unmerging = "unmerging", "operation", compare(PAGE_MEAN) {
        OPERATION = "operation", Text, "the operation";
        PAGES = "pages", Pages, "its pages";
        PAGE_MEAN = "page.mean", Nanoseconds, "CPU time per page, mean";
        FAULTS = "faults", Count, "page faults per page";
    }
}

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Ksm {
    /// Pages of the mapping, anonymous memory
    #[arg(long, value_name = "PAGES", default_value = "16384", value_parser = clap::value_parser!(u64).range(8..=1 << 24))]
    pub pages: u64,
    /// Share of the pages that equal others; the rest all differ
    #[arg(long, value_name = "SHARE", default_value = "50%")]
    pub equal: Share,
    /// Different contents among the equal pages
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub contents: u64,
    /// Pages that ksmd scans between two sleeps (pages_to_scan)
    #[arg(long, value_name = "PAGES", default_value = "1000", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub scan: u32,
    /// Milliseconds that ksmd sleeps between scans (sleep_millisecs)
    #[arg(long, value_name = "MS", default_value = "20", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub sleep: u32,
    /// Seconds after which to give up merging
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = positive, alias = "patience")]
    #[serde(alias = "patience")]
    pub timeout: f64,
    /// The seed of what the pages hold
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(0..=1 << 20))]
    pub seed: u64,
}
declared!(Ksm);

/// Files that are changed and put back, the last first: the number of pages can be written only
/// while no advisor chooses it.
pub const SETTINGS: [&str; 4] = [
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/mm/ksm/advisor_mode",
    "/sys/kernel/mm/ksm/sleep_millisecs",
    "/sys/kernel/mm/ksm/pages_to_scan",
];

impl Declaration for Ksm {
    fn footprint(&self, page_size: u64) -> Footprint {
        Footprint::pages(self.pages, page_size)
    }

    fn primary(&self) -> Option<MetricId> {
        Some(KSM_CPU)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[KSM_SHARING, KSM_COPY, KSM_UNMERGE]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    /// Fewer than two pages of a content.
    fn contradiction(&self) -> Option<Contradiction> {
        let equal = self.equal.of(self.pages);
        (equal > 0 && equal < self.contents.saturating_mul(2)).then_some((
            "contents",
            "has fewer than two equal pages for each content",
            "give at most half as many as there are equal pages",
        ))
    }

    fn requires(&self) -> Vec<Feature> {
        vec![Feature::Ksm]
    }

    fn usual(&self) -> Setting {
        Setting::unlimited()
    }

    fn kernel_settings(&self) -> &'static [&'static str] {
        &SETTINGS
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        let scans = 3.0 * self.pages as f64;
        Some(scans / f64::from(self.scan) * f64::from(self.sleep) / 1e3 + scans * TOUCH)
    }
}
