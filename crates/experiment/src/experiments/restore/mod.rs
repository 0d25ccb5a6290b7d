//! `restore`: the time until a process that reads its memory lazily from a snapshot file has its
//! first answer, and the gain of prefetching by order.
//!
//! Prefetching a recorded working set: Ustiugov et al., "Benchmarking, Analysis, and Optimization
//! of Serverless Function Snapshots" (REAP), ASPLOS 2021. A loader that runs while the restored
//! process does: Ao, Porter and Voelker, "FaaSnap: FaaS Made Fast Using Snapshot-based VMs",
//! EuroSys 2022.

pub mod metrics;

use pagelab_reference::rng::Rng;
use pagelab_reference::{Pattern, PatternError};
use serde::{Deserialize, Serialize};

use super::declaration::{Contradiction, Declaration, FAULT, Feature, Footprint, Tasks};
use super::paging::text;
use super::share::Share;
use crate::declaration::{declared, words};
use crate::metrics::{
    IO_READ, MetricId, RESTORE_ANSWER, RESTORE_ANSWER_LRU, RESTORE_ANSWER_RECORDED,
    RESTORE_ANSWER_SEQUENTIAL, RESTORE_VAIN_LRU, RESTORE_VAIN_RECORDED, RESTORE_VAIN_SEQUENTIAL,
};
use crate::setting::Setting;
use crate::tables::{TableId, tables};

tables! {
    restore = "restore", "prefetch order", compare(ANSWER, FAULTS, PREFETCHED, VAIN), chart(ANSWER, VAIN) {
        ORDER = "order", Text, "none, recorded, sequential or lru";
        TOUCHED = "touched", Pages, "pages that the answer touches";
        ANSWER = "answer", Nanoseconds, "time to the first answer";
        FAULTS = "faults", Pages, "pages served on demand, after a fault";
        PREFETCHED = "prefetched", Pages, "pages that the prefetcher copied before the answer";
        VAIN = "vain", Pages, "prefetched pages that the answer never touched";
        LATE = "late", Count, "faults on pages that the prefetcher copied first";
        IO_READ;
        TIME_CPU;
        CACHED_BEFORE = "cached.before", Bytes, "part of the file in the page cache before the pass";
    }
}

/// The order in which a thread copies pages while the load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Prefetch {
    /// No page: every page is read on demand.
    None,
    /// The pages of the recording, in the order of their first touch.
    Recorded,
    /// All pages, from page 0 upward.
    Sequential,
    /// The pages of the recording that LRU would hold in half as many frames, the most recently
    /// used one first.
    Lru,
}
words!(Prefetch);

/// What a recording keeps of an earlier run of the restored process.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// Its references.
    pub references: &'a [u32],
    /// The pages that it touched, in the order of their first touch.
    pub touched: &'a [u32],
}

impl Prefetch {
    /// The pages to copy, of `0..pages`, in order.
    pub fn order(self, recorded: Recorded<'_>, pages: u32) -> Vec<u32> {
        match self {
            Self::None => Vec::new(),
            Self::Recorded => recorded.touched.to_vec(),
            Self::Sequential => (0..pages).collect(),
            // LRU holds the pages that were used last, whatever came before.
            Self::Lru => {
                let mut recent = first_touches(recorded.references.iter().rev(), pages);
                recent.truncate(recorded.touched.len().div_ceil(2));
                recent
            }
        }
    }

    /// The metrics of the time to the answer and of the share fetched in vain.
    pub fn metrics(self) -> (MetricId, Option<MetricId>) {
        match self {
            Self::None => (RESTORE_ANSWER, None),
            Self::Recorded => (RESTORE_ANSWER_RECORDED, Some(RESTORE_VAIN_RECORDED)),
            Self::Sequential => (RESTORE_ANSWER_SEQUENTIAL, Some(RESTORE_VAIN_SEQUENTIAL)),
            Self::Lru => (RESTORE_ANSWER_LRU, Some(RESTORE_VAIN_LRU)),
        }
    }
}

/// The distinct pages of `references`, all below `pages`, in the order of their first touch.
pub fn first_touches<'a>(references: impl IntoIterator<Item = &'a u32>, pages: u32) -> Vec<u32> {
    let mut seen = vec![false; pages as usize];
    let first = |page: &&u32| !std::mem::replace(&mut seen[**page as usize], true);
    references.into_iter().filter(first).copied().collect()
}

/// How many of the `prefetched` pages are none of the `touched` ones; all are below `pages`.
pub fn in_vain(prefetched: &[u32], touched: &[u32], pages: u32) -> u64 {
    let mut used = vec![false; pages as usize];
    touched.iter().for_each(|&page| used[page as usize] = true);
    prefetched.iter().filter(|&&page| !used[page as usize]).count() as u64
}

/// Maximum number of pages and of references.
const MAX: u64 = 1 << 24;

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Restore {
    /// Pages of the snapshot file
    #[arg(long, value_name = "PAGES", default_value = "16384", value_parser = clap::value_parser!(u64).range(1..=MAX))]
    pub pages: u64,
    /// References of the restored process until its first answer
    #[arg(long, value_name = "N", default_value = "4000", value_parser = clap::value_parser!(u64).range(1..=MAX))]
    pub references: u64,
    /// The order of references (see: pagelab patterns); trace:FILE repeats a recorded program
    #[arg(long, value_name = "PATTERN", default_value = "zipf:0.8")]
    #[serde(with = "text")]
    pub pattern: Pattern,
    /// The orders in which pages are prefetched, each in a pass of its own
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none,recorded,sequential")]
    pub prefetch: Vec<Prefetch>,
    /// Pages that the prefetcher reads ahead of the page that it copies
    #[arg(long, value_name = "N", default_value = "32", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub depth: u32,
    /// Share of the recording's references that the restored process does not repeat
    #[arg(long, value_name = "SHARE", default_value = "10%")]
    pub changed: Share,
    /// The seed of the pattern
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Restore);

/// Separates the pages of changed references from those of the pattern.
const CHANGED: u64 = 0x6368_616e_6765;

impl Restore {
    /// The references of the restored process and those of the recording. The recording has a
    /// random page in place of each reference that the restored process does not repeat.
    ///
    /// # Errors
    /// When the stream cannot be made.
    pub fn streams(&self) -> Result<[Vec<u32>; 2], PatternError> {
        let answer = self.pattern.stream(self.pages, self.references, self.seed)?;
        let (mut draws, mut rng) = (self.changed.drawn(self.seed), Rng::new(self.seed ^ CHANGED));
        let other = |&page: &u32| if draws.draw() { rng.below(self.pages) as u32 } else { page };
        let recording = answer.references().iter().map(other).collect();
        Ok([answer.into_references(), recording])
    }
}

impl Declaration for Restore {
    /// The snapshot and the memory that it is restored to.
    fn footprint(&self, page_size: u64) -> Footprint {
        let bytes = self.pages.saturating_mul(page_size);
        Footprint { anonymous: bytes, file: bytes, ..Footprint::default() }
    }

    fn primary(&self) -> Option<MetricId> {
        Some(RESTORE_ANSWER)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[RESTORE_ANSWER_RECORDED, RESTORE_VAIN_RECORDED, RESTORE_ANSWER_SEQUENTIAL, IO_READ]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    /// One thread serves faults, another one prefetches.
    fn tasks(&self, _: u64) -> Tasks {
        Tasks::threads(2)
    }

    fn contradiction(&self) -> Option<Contradiction> {
        let twice = (1..self.prefetch.len()).any(|n| self.prefetch[..n].contains(&self.prefetch[n]));
        twice.then_some(("prefetch", "names an order twice", "name each order once"))
    }

    fn requires(&self) -> Vec<Feature> {
        let trace = match &self.pattern {
            Pattern::Trace(file) => Some(Feature::File("pattern", file.clone())),
            _ => None,
        };
        std::iter::once(Feature::Userfault).chain(trace).collect()
    }

    /// Reclaim under a limit would add faults of its own.
    fn usual(&self) -> Setting {
        Setting::unlimited()
    }

    /// Both streams, and what is kept per page.
    fn buffers(&self, _: u64) -> u64 {
        /// Orders and marks.
        const A_PAGE: u64 = 4 * 4 + 4;
        /// The pages that both threads copied in a pass.
        const COPIED: u64 = 2 * 4;
        let passes = self.prefetch.len() as u64 + 1;
        let streams = self.references.saturating_mul(2 * 4);
        self.pattern
            .memory(self.pages, self.references)
            .saturating_add(streams)
            .saturating_add(self.pages.saturating_mul(A_PAGE + passes * COPIED))
    }

    fn seconds(&self, _: Option<u64>, _: u64) -> Option<f64> {
        let touched = self.references.min(self.pages) as f64;
        Some((self.prefetch.len() + 1) as f64 * touched * 2.0 * FAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Restore {
        crate::declaration::default(words)
    }

    #[test]
    fn orders_follow_the_recording() {
        let references = [3, 1, 3, 4, 1, 5, 9, 2];
        let touched = first_touches(&references, 10);
        assert_eq!(touched, [3, 1, 4, 5, 9, 2]);
        let recorded = Recorded { references: &references, touched: &touched };
        let order = |prefetch: Prefetch| prefetch.order(recorded, 10);
        assert!(order(Prefetch::None).is_empty());
        assert_eq!(order(Prefetch::Recorded), touched);
        assert_eq!(order(Prefetch::Sequential), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(order(Prefetch::Lru), [2, 9, 5], "three of six pages, the last one first");
    }

    #[test]
    fn untouched_prefetched_pages_are_in_vain() {
        assert_eq!(in_vain(&[7, 1, 0, 2], &[2, 1, 3], 8), 2);
        assert_eq!(in_vain(&[], &[2, 1, 3], 8), 0);
    }

    #[test]
    fn the_recording_differs_by_its_share_alone() {
        let [answer, same] = of(&["--changed", "0%"]).streams().unwrap();
        assert_eq!(answer, same);
        let [again, other] = of(&[]).streams().unwrap();
        assert_eq!(answer, again, "the answer does not depend on the recording");
        let differ = answer.iter().zip(&other).filter(|(one, other)| one != other).count();
        // Five standard deviations of a binomial distribution.
        assert!(differ.abs_diff(400) < 5 * 19, "{differ} of 4000");
        assert!(other.iter().all(|&page| page < 16384));
    }

    #[test]
    fn an_order_is_named_once() {
        assert_eq!(of(&[]).contradiction(), None);
        let twice = of(&["--prefetch", "none,recorded,none"]).contradiction();
        assert_eq!(twice.map(|(name, ..)| name), Some("prefetch"));
    }
}
