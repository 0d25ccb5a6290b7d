//! `mapanon` and `mapfile`: references to one mapping, each timed (Mel Gorman, VM Regress, 2002).
//!
//! One mapping of `pages` pages, anonymous or of a file, is referenced `references` times in the
//! order of `pattern`. The pages are populated first (anonymous memory by writing every page once,
//! a file by being written to disk): a read of anonymous memory that was never written only maps
//! the kernel's shared zero page and consumes nothing.

pub mod metrics;

use std::str::FromStr;

use pagelab_reference::Pattern;
use serde::{Deserialize, Serialize};

use super::declaration::{
    Contradiction, Declaration, Dishonoured, FAULT, Feature, Footprint, HIT, Load, USUAL_LIMIT,
};
use super::{Content, Draws, Share};
use crate::declaration::{declared, words};
use crate::metrics::{ACCESS_HIT_P50, ACCESS_MAJOR_P50, ACCESS_MEAN, FAULTS_MAJOR, MetricId};
use crate::setting::{Limit, Mode, Setting, Value};
use crate::tables::{TableId, tables};

/// Maximum number of evictions in a log.
pub const MAX_EVICTIONS: usize = 1 << 18;

tables! {
    windows = "windows", "window of the references" {
        REFERENCE = "reference", Count, "the last reference of the window";
        TIME = "time", Nanoseconds, "time since the first reference";
        ACCESS_MEAN;
        ACCESS_MAX;
        FAULTS_MINOR;
        FAULTS_MAJOR;
        SWAP_IN;
        SWAP_OUT;
        PAGES_PRESENT;
    }
    huge_pages = "huge-pages", "kernel counter of huge pages that grew", compare(POPULATING) {
        COUNTER = "counter", Text, "the kernel's name";
        WHAT = "what", Text, "its meaning";
        POPULATING = "populating", Count, "growth while the mapping was populated";
        REFERENCES = "references", Count, "growth during the references";
    }
    folios = "folios", "folio size", compare(FIRST) {
        FOLIO = "folio", Text, "the size in KiB";
        SIZE = "size", Bytes, "the size";
        FIRST = "pages.first", Pages, "pages in such folios before the first reference";
        LAST = "pages.last", Pages, "pages in such folios after the last reference";
    }
    evictions = "evictions", "eviction of a page, of runs with --evictions" {
        BY = "by", Text, "who freed the page: kswapd, direct (reclaim), cgroup (limit), task; or swap-cache";
        REFERENCE = "reference", Count, "references made when the page was first known to be gone";
        PAGE = "page", Count, "the page of the mapping, from 0";
        PAGES = "pages", Pages, "number of pages from this one on; 1 if it is missing";
        WORKINGSET = "workingset", Count, "1 if the kernel had flagged the page as workingset, else 0";
    }
    arrivals = "arrivals", "page that entered the page cache, of mapfile with --evictions" {
        REFERENCE = "reference", Count, "the reference during which the page entered, from 1";
        PAGE = "page", Count, "the page of the mapping, from 0";
        PAGES = "pages", Pages, "number of pages from this one on";
    }
    writeback = "writeback", "sample of dirty and writeback bytes, of runs with writes" {
        REFERENCE = "reference", Count, "the last reference before the sample";
        TIME = "time", Nanoseconds, "time since the start";
        DIRTY = "dirty", Bytes, "dirty bytes";
        WRITEBACK = "writeback", Bytes, "bytes under writeback";
    }
}

/// What a mapping is backed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Backing {
    /// Private anonymous memory.
    #[serde(rename = "anon")]
    #[value(name = "anon")]
    Anonymous,
    /// A shared mapping of the kernel's own tmpfs, swapped like anonymous memory.
    Shmem,
    /// Huge pages that are set aside for the run; never swapped, and no limit is charged.
    Hugetlb,
    /// A shared mapping of a file of the mapping's size.
    #[value(skip)]
    File,
}
words!(Backing);

/// What one reference does to its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Touch {
    /// Reads every byte of the page.
    Page,
    /// Reads one machine word.
    Word,
    /// Writes one machine word.
    Write,
}
words!(Touch);

/// The parameters of `mapanon` and `mapfile`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Paging {
    /// The mapping's size in pages
    #[arg(long, value_name = "PAGES", default_value = "24576", value_parser = clap::value_parser!(u64).range(1..))]
    pub pages: u64,
    /// The number of references
    #[arg(long, value_name = "N", default_value = "2000000", value_parser = clap::value_parser!(u64).range(1..))]
    pub references: u64,
    /// The order of references (see: pagelab patterns)
    #[arg(long, value_name = "PATTERN", default_value = "smooth-sin")]
    #[serde(with = "text")]
    pub pattern: Pattern,
    /// The access of a reference: read the page, read a word, or write a word
    #[arg(long, value_enum, default_value = "page")]
    pub touch: Touch,
    /// The share of references that write a word, such as 5%, chosen by the seed
    #[arg(long, value_name = "PERCENT", default_value = "0%")]
    pub writes: Share,
    /// With writes: call fsync(2) this many times at equal distances, the last time after the last
    /// reference
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(0..=240))]
    pub syncs: u32,
    /// Time one in N references, chosen at random; the mean comes from total throughput
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub sample: u64,
    /// The seed of the pattern
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// The content of pages: compressible:SHARE (the share of each that repeats one word), zero,
    /// random or file:PATH
    #[arg(long, value_name = "CONTENT", default_value = "compressible:0.5")]
    pub content: Content,
    /// Touch every page twice (last to first) before the measured references
    #[arg(long)]
    pub warm: bool,
    /// The mapping's memory: anonymous, shared (shmem), or huge pages set aside for the run
    /// (hugetlb)
    #[arg(long, value_enum, default_value = "anon")]
    pub backing: Backing,
    /// Log each page that leaves memory, and judge its eviction against OPT and other policies
    #[arg(long)]
    pub evictions: bool,
}
declared!(Paging);

impl Paging {
    /// The share of references that write.
    pub fn write_share(&self) -> Share {
        if self.touch == Touch::Write { Share::ALL } else { self.writes }
    }

    /// Which references write, in the order of the stream.
    pub fn drawn_writes(&self) -> Draws {
        self.write_share().drawn(self.seed)
    }

    /// The pages that are touched before the first reference, in order: every page once where the
    /// memory is `populated` (anonymous), then the warm-up, where there is one.
    pub fn opening(&self, pages: u32, populated: bool) -> impl Iterator<Item = u32> {
        let populated = if populated { pages } else { 0 };
        (0..populated).chain(self.warming(pages))
    }

    /// The warm-up: every page twice, from the last down; empty without one.
    pub fn warming(&self, pages: u32) -> impl Iterator<Item = u32> {
        let warm = if self.warm { pages } else { 0 };
        (0..warm).rev().flat_map(|page| [page, page])
    }
}

/// A pattern in its text form.
pub(super) mod text {
    use super::{FromStr, Pattern};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(pattern: &Pattern, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(pattern)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pattern, D::Error> {
        let text = String::deserialize(deserializer)?;
        Pattern::from_str(&text).map_err(de::Error::custom)
    }
}

/// `mapanon` or `mapfile` of these parameters.
pub(super) struct Mapped<'a>(&'a Paging, Backing);

/// `mapanon`.
pub(super) fn anonymous(paging: &Paging) -> Mapped<'_> {
    Mapped(paging, paging.backing)
}

/// `mapfile`.
pub(super) fn file(paging: &Paging) -> Mapped<'_> {
    Mapped(paging, Backing::File)
}

impl Declaration for Mapped<'_> {
    fn footprint(&self, page_size: u64) -> Footprint {
        let bytes = self.0.pages.saturating_mul(page_size);
        match self.1 {
            Backing::Anonymous | Backing::Shmem => Footprint::anonymous(bytes),
            Backing::Hugetlb => Footprint { hugetlb: bytes, ..Footprint::default() },
            Backing::File => Footprint::file(bytes),
        }
    }

    fn primary(&self) -> Option<MetricId> {
        Some(ACCESS_MEAN)
    }

    fn headline(&self) -> &'static [MetricId] {
        &[ACCESS_HIT_P50, ACCESS_MAJOR_P50, FAULTS_MAJOR]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn load(&self) -> Load<'_> {
        Load::References(self.0, self.1)
    }

    fn contradiction(&self) -> Option<Contradiction> {
        let Self(paging, backing) = self;
        for (name, count) in [("pages", paging.pages), ("references", paging.references)] {
            if count > u64::from(u32::MAX) {
                return Some((name, "numbers at most 4294967295 of them", "use fewer"));
            }
        }
        if paging.touch == Touch::Write && !paging.writes.is_none() {
            return Some((
                "writes",
                "writes with every reference where --touch is write",
                "give one of the two",
            ));
        }
        // One bit of a reference says whether it writes.
        if paging.writes.is_mixed() && paging.pages > 1 << 31 {
            return Some((
                "pages",
                "numbers at most 2147483648 of them where some references write",
                "use fewer",
            ));
        }
        let syncs = paging.syncs != Paging::default().syncs;
        if *backing == Backing::File && paging.backing != Backing::Anonymous {
            return Some(("backing", "is the file in mapfile", "use mapanon"));
        }
        if paging.evictions && !matches!(backing, Backing::Anonymous | Backing::File) {
            return Some((
                "evictions",
                "logs evictions of private anonymous memory and of files only",
                "use mapanon --backing anon, or mapfile",
            ));
        }
        if paging.evictions && *backing == Backing::Anonymous && paging.writes.is_mixed() {
            return Some((
                "evictions",
                "cannot tell a fault of a first write from a return to memory",
                "use --touch write, or leave out --writes",
            ));
        }
        if paging.evictions && paging.sample != 1 {
            return Some((
                "evictions",
                "needs the fault counters after every reference",
                "leave out --sample",
            ));
        }
        if syncs && *backing != Backing::File {
            return Some(("syncs", "has no file to bring to the disk in mapanon", "use mapfile"));
        }
        (syncs && paging.write_share().is_none()).then_some((
            "syncs",
            "has nothing to bring to the disk where no reference writes",
            "give --writes 5%",
        ))
    }

    fn requires(&self) -> Vec<Feature> {
        let trace = match &self.0.pattern {
            Pattern::Trace(file) => Some(Feature::File("pattern", file.clone())),
            _ => None,
        };
        let content = match &self.0.content {
            Content::File(file) => Some(Feature::File("content", file.clone())),
            _ => None,
        };
        let hugetlb = (self.1 == Backing::Hugetlb).then_some(Feature::Hugetlb);
        trace.into_iter().chain(content).chain(hugetlb).collect()
    }

    /// No limit is charged for huge pages that are set aside.
    fn usual(&self) -> Setting {
        match self.1 {
            Backing::Hugetlb => Setting::unlimited(),
            _ => Setting { memory: Some(Limit::Of(USUAL_LIMIT)), ..Setting::default() },
        }
    }

    fn honours(&self, condition: &Value) -> Result<(), Dishonoured> {
        let (why, remedy) = match (self.1, condition) {
            (Backing::Hugetlb, Value::Memory(Limit::Of(_))) => {
                ("charges no memory limit for hugetlb pages", "use --memory none or --backing shmem")
            }
            (Backing::Hugetlb, Value::Swap(_) | Value::SwapSize(_) | Value::Swappiness(_)) => {
                ("never swaps hugetlb pages", "leave it out, or use --backing shmem")
            }
            (Backing::Shmem | Backing::Hugetlb, Value::Thp(_)) => (
                "sets transparent huge pages for anonymous memory only",
                "leave it out, or use --backing anon",
            ),
            (_, Value::Thp(thp)) if self.0.evictions && thp.modes().any(|mode| mode != Mode::Never) => {
                ("logs evictions of base pages only", "use --thp never, or leave out --evictions")
            }
            _ => return Ok(()),
        };
        Err((why.to_owned(), remedy.to_owned()))
    }

    fn own_huge_pages(&self) -> Option<Mode> {
        matches!(self.1, Backing::Anonymous | Backing::Shmem).then_some(Mode::Never)
    }

    fn profiles_kernel(&self) -> bool {
        true
    }

    /// Page maps and counts in the worker, on their way and as they are kept.
    fn buffers(&self, _: u64) -> u64 {
        /// Counts, their copy in a map, its sets and the map as it is packed, on both sides.
        const A_PAGE: u64 = 128;
        /// The maps of a run as the notebook gives them back, which it bounds.
        const MAPS: u64 = 16 * 16;
        const READ_BACK: u64 = 1 << 30;
        /// A row of the log of evictions, and of its table with a text; the same of arrivals.
        const A_ROW: u64 = 20 + 4 * 16 + 32 + 20 + 3 * 16;
        let pages = self.0.pages;
        let log = if self.0.evictions { MAX_EVICTIONS as u64 * A_ROW } else { 0 };
        log.saturating_add(pages.saturating_mul(A_PAGE))
            .saturating_add(pages.saturating_mul(MAPS).min(READ_BACK))
    }

    fn seconds(&self, limit: Option<u64>, page_size: u64) -> Option<f64> {
        let size = self.0.pages as f64 * page_size as f64;
        let outside = limit.map_or(0.0, |limit| (1.0 - limit as f64 / size).max(0.0));
        Some(self.0.references as f64 * (HIT + outside * FAULT) + size / 1e9)
    }
}
