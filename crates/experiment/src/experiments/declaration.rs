//! What an experiment declares of itself: everything that plans, guests, comparisons and reports
//! know of it.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::command::Command;
use super::paging::{Backing, Paging};
use crate::metrics::MetricId;
use crate::setting::{Limit, Mode, Setting, Value};
use crate::size::Size;
use crate::tables::TableId;

/// The memory limit of an experiment where nothing else is asked for.
pub const USUAL_LIMIT: Size = Size::Bytes(64 << 20);

/// What a reference without a fault costs on a machine of today, in seconds; for estimates of time.
pub(super) const HIT: f64 = 200e-9;
/// A reference with a major fault.
pub(super) const FAULT: f64 = 50e-6;
/// A load that misses the caches.
pub(super) const LOAD: f64 = 100e-9;
/// The first touch of a page.
pub(super) const TOUCH: f64 = 2e-6;

/// The most that an experiment holds at once, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Anonymous memory: without memory enough, this goes to swap.
    pub anonymous: u64,
    /// Files of its own.
    pub file: u64,
    /// Huge pages that are set aside for it (hugetlb): no limit is charged for them, and they are
    /// never swapped.
    pub hugetlb: u64,
}

impl Footprint {
    /// So many pages of `page_size` bytes, of anonymous memory.
    pub fn pages(pages: u64, page_size: u64) -> Self {
        Self::anonymous(pages.saturating_mul(page_size))
    }

    /// So many bytes of anonymous memory.
    pub fn anonymous(bytes: u64) -> Self {
        Self { anonymous: bytes, ..Self::default() }
    }

    /// So many bytes of files.
    pub fn file(bytes: u64) -> Self {
        Self { file: bytes, ..Self::default() }
    }

    /// All together.
    pub fn total(self) -> u64 {
        self.anonymous.saturating_add(self.file).saturating_add(self.hugetlb)
    }
}

/// The processes and threads that a load has at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tasks {
    /// Processes.
    pub processes: u64,
    /// Threads of all processes, the first one of each included.
    pub threads: u64,
}

impl Default for Tasks {
    /// The worker alone.
    fn default() -> Self {
        Self::processes(0)
    }
}

impl Tasks {
    /// The worker and so many processes of one thread each.
    pub fn processes(count: u64) -> Self {
        let all = count.saturating_add(1);
        Self { processes: all, threads: all }
    }

    /// The worker with so many threads beside its first.
    pub fn threads(count: u64) -> Self {
        Self { processes: 1, threads: count.saturating_add(1) }
    }
}

impl fmt::Display for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted =
            |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        let processes = counted(self.processes, "process", "processes");
        write!(f, "{processes}, {}", counted(self.threads, "thread", "threads"))
    }
}

/// A parameter that means nothing with the others: its name, why as a clause that follows "it", and
/// what to do instead.
pub type Contradiction = (&'static str, &'static str, &'static str);

/// Why a target does not honour a condition: (why, remedy), as [`Unsupported`](crate::Unsupported)
/// has them.
pub type Dishonoured = (String, String);

/// What sizes that nobody asked for depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The memory limit that was meant, in bytes.
    pub limit: Option<u64>,
    /// The last-level cache, in bytes.
    pub last_cache: Option<u64>,
    /// Pages of a mapping that the free memory of the fast node cannot hold.
    pub beyond_fast_node: Option<u64>,
}

/// The kinds of load that several targets can perform, each in its own way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load<'a> {
    /// References to one mapping.
    References(&'a Paging, Backing),
    /// A program of the user's.
    Program(&'a Command),
    /// One of its own, which the running kernel performs.
    Own,
    /// None: it holds what another command computed or recorded.
    None,
}

/// Something that not every machine or kernel has.
#[derive(Clone, Debug, PartialEq)]
pub enum Feature {
    /// A machine that nobody uses, all of whose memory may be filled.
    Disposable,
    /// The memory controller in cgroup version 2.
    CgroupTwo,
    /// Merging of equal pages.
    Ksm,
    /// The data access monitor.
    Damon,
    /// Huge pages that can be set aside.
    Hugetlb,
    /// Page faults that user space resolves (userfaultfd).
    Userfault,
    /// Two nodes of memory.
    TwoNodes,
    /// A clock in which accesses to memory take time.
    MemoryTime,
    /// Processors that work at once.
    Parallel,
    /// A network, for this parameter.
    Network(&'static str),
    /// A file of the user's, which this parameter names.
    File(&'static str, PathBuf),
    /// Programs of the user's.
    Programs(Programs),
}

/// Programs that an experiment starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// The parameter that names them.
    pub parameter: &'static str,
    /// The program and its arguments, which may name others.
    pub words: Vec<String>,
    /// A script that the program reads.
    pub script: Option<PathBuf>,
    /// Whether it calls many more, which no argument names.
    pub many: bool,
}

/// An experiment's declaration. All but its footprint, its primary metric and its headline metrics
/// have defaults that suit a load of one process without needs of its own.
pub trait Declaration {
    /// What it holds at once where a page has `page_size` bytes.
    fn footprint(&self, page_size: u64) -> Footprint;

    /// The metric that says most of it, which `compare --fail-on` judges.
    fn primary(&self) -> Option<MetricId>;

    /// The few metrics beside the primary one that a comparison is most likely made for: they share
    /// most of what the others' p values are corrected for. Of processor time the sum, which the
    /// kernel counts exactly, and no part of it, which it samples.
    fn headline(&self) -> &'static [MetricId];

    /// Metrics that decide together with the primary one, where a change may show in them alone:
    /// the p values of all that decide are corrected for their number.
    fn also_decide(&self) -> &'static [MetricId] {
        &[]
    }

    /// The tables of its own.
    fn tables(&self) -> &'static [TableId] {
        &[]
    }

    /// What kind of load it is.
    fn load(&self) -> Load<'_> {
        Load::Own
    }

    /// The processes and threads that it has at once.
    fn tasks(&self, _page_size: u64) -> Tasks {
        Tasks::default()
    }

    /// A parameter that means nothing with the others, on any target.
    fn contradiction(&self) -> Option<Contradiction> {
        None
    }

    /// Chooses the sizes that nobody asked for.
    fn settle(&mut self, _bounds: &Bounds) {}

    /// What a machine must have for it.
    fn requires(&self) -> Vec<Feature> {
        Vec::new()
    }

    /// Why it can only be performed under a memory limit, as a clause that follows "it".
    fn needs_limit(&self) -> Option<&'static str> {
        None
    }

    /// Whether it is meant to run out of memory: its swap is none unless asked for, and then as
    /// large as its limit.
    fn runs_out_of_memory(&self) -> bool {
        false
    }

    /// Its conditions where nothing else is asked for.
    fn usual(&self) -> Setting {
        Setting { memory: Some(Limit::Of(USUAL_LIMIT)), ..Setting::default() }
    }

    /// Which huge pages its own memory gets where none are asked for; `None`: those that the
    /// machine gives.
    fn own_huge_pages(&self) -> Option<Mode> {
        None
    }

    /// Whether a condition means anything for it, on any kernel.
    ///
    /// # Errors
    /// Why not, and what to do instead.
    fn honours(&self, _condition: &Value) -> Result<(), Dishonoured> {
        Ok(())
    }

    /// Whether it takes `--functions` and `--profile`, which show the kernel during its load.
    fn profiles_kernel(&self) -> bool {
        false
    }

    /// Whether its load is forks of the worker, of which nothing of the harness may be a part.
    fn forks_itself(&self) -> bool {
        false
    }

    /// Files of the kernel that it writes itself, and that are put back, the last first.
    fn kernel_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Bytes that the harness takes for it beside its load, where that grows with the parameters.
    fn buffers(&self, _page_size: u64) -> u64 {
        0
    }

    /// About how long a repetition takes under this limit of bytes, in seconds, where that can be
    /// told.
    fn seconds(&self, _limit: Option<u64>, _page_size: u64) -> Option<f64> {
        None
    }
}

/// What declares an experiment.
pub enum Declared<'a> {
    /// Its parameters.
    Parameters(&'a dyn Declaration),
    /// One of several that share the type of their parameters.
    One(Box<dyn Declaration + 'a>),
}

impl<'a> Deref for Declared<'a> {
    type Target = dyn Declaration + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Parameters(declaration) => *declaration,
            Self::One(declaration) => &**declaration,
        }
    }
}
