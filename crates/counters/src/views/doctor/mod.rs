//! One answer in plain words: is memory short now, who waits for it, who holds it, what would
//! relieve it; and is this machine fit to measure on.
//!
//! The answer is drawn from two moments, so it speaks of the time between them. Every threshold stands
//! beside its reason in [`shortage`], `cgroups` and [`fitness`].

mod cgroups;
pub mod fitness;
mod holders;
mod level;
mod recent;
mod relief;
pub mod shortage;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::memstat::Holder;
use super::prstat::{self, Moment, Row};
use crate::select::Selection;
use crate::tree::{Snapshot, of_group, text_of_group};
pub use cgroups::Limited;
use fitness::Check;
use holders::Holders;
pub use recent::{Forks, Growing, Recent};
use shortage::{Evidence, Scope};

pub use level::Level;

/// What to read for the doctor: everything here twice, and after the second time [`share_selection`].
pub fn selection() -> Selection {
    let tasks = [
        "process:::/^(state|threads|rss|swap|virtual_size|uid|cgroup|start|utime|stime|minor_faults|major_faults)$/",
        "thread:::/^(pid|start|utime|stime|minor_faults|major_faults|run_time|run_delay)$/",
        "thread:::*_switches",
    ];
    super::constant(&[&MACHINE, tasks.as_slice()].concat())
}

/// The same with the processes as [`prstat::processes`] reads them.
///
/// [`prstat::processes`]: super::prstat::processes
pub fn processes() -> Selection {
    super::constant(&[&MACHINE, [super::prstat::PROCESSES].as_slice()].concat())
}

const MACHINE: [&str; 11] = [
    "vmstat",
    "pressure",
    "meminfo",
    "zoneinfo:::/^(free|min|low|high|managed|present)$/",
    "cgroup:::/^(current|max|max_failures|max_events|anon|rss|oom_kill|memory_some_total|memory_some_avg300)$/",
    "cgroup:::/^(file|cache|shmem|file_mapped|mapped_file|slab|kernel)$/",
    "cgroup:::workingset_refault*",
    "settings",
    "stat",
    "swaps",
    "system",
];

/// How many of the largest processes have their exact share looked up.
const LOOKED_UP: usize = 8;

/// What else to read to know what the largest processes hold: their smaps_rollup.
pub fn share_selection(now: &Snapshot) -> Selection {
    let mut sizes: Vec<(u64, f64)> =
        now.groups("process").filter_map(|(pid, _, group)| Some((pid, of_group(group, "rss")?))).collect();
    sizes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let operands: Vec<String> = sizes.iter().take(LOOKED_UP).map(|(pid, _)| format!("smaps:{pid}")).collect();
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    if operands.is_empty() { super::constant(&["smaps:0"]) } else { super::constant(&operands) }
}

/// A process that waits for memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waiting {
    /// Its microstates.
    #[serde(flatten)]
    pub row: Row,
    /// The cgroup its memory is charged to.
    pub cgroup: Option<String>,
}

/// How short memory is, and whose.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// The worst of all.
    pub level: Level,
    /// Whether the machine's memory is short.
    pub machine: Level,
    /// Percent of the machine's memory that is available.
    pub available: Option<f64>,
    /// Why.
    pub evidence: Vec<Evidence>,
    /// The cgroups that met their limits and suffered from it, the worst first.
    pub limited: Vec<Limited>,
    /// Why nothing is known of the machine.
    pub unknown: Option<String>,
}

impl Verdict {
    /// From the time between two moments; `rates` is the second's growth per second.
    pub fn of(before: &Snapshot, now: &Snapshot, rates: &Snapshot) -> Self {
        let evidence = shortage::evidence(before, now, rates);
        let mut limited = cgroups::limited(before, now, rates);
        let worst = |scope: Scope| {
            let levels = evidence.iter().filter(|e| e.scope == scope).map(|e| e.level);
            levels.filter(|level| *level != Level::Unknown).max().unwrap_or_default()
        };
        let (own, all) = (worst(Scope::Machine), worst(Scope::All));
        // What the machine and its cgroups share counts for the machine, unless only cgroups reclaim.
        let by_limits = own == Level::Fine && !limited.is_empty() && cgroups::reclaim_by_limits(rates);
        let machine = if by_limits { own } else { own.max(all) };
        if let (true, Some(first)) = (by_limits, limited.first_mut()) {
            first.level = first.level.max(all);
        }
        let level = limited.iter().map(|group| group.level).fold(machine, Level::max);
        let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
        let available = mem("MemAvailable").zip(mem("MemTotal")).map(|(some, all)| 100.0 * some / all);
        let mut verdict = Self { level, machine, available, evidence, limited, unknown: None };
        let known = |e: &Evidence| shortage::DECISIVE.contains(&e.sign) && e.value.is_some();
        if !verdict.evidence.iter().any(known) {
            verdict.doubt("neither /proc/pressure/memory nor /proc/vmstat can be read");
        }
        verdict
    }

    /// Takes back that memory is not short, because what would tell is missing.
    pub fn doubt(&mut self, why: &str) {
        if self.machine == Level::Fine {
            self.machine = Level::Unknown;
            self.unknown = Some(why.to_owned());
        }
        self.level = self.level.max(self.machine);
    }

    /// Whose memory is short, in a sentence without its full stop.
    pub fn headline(&self) -> String {
        let word = |level| if level == Level::Short { "SHORT of memory" } else { "strained for memory" };
        let available = self.available.map_or_else(String::new, |share| format!(" ({share:.0}% available)"));
        let at = |level: Level| {
            let paths: Vec<&str> =
                self.limited.iter().filter(|g| g.level == level).map(|g| g.path.as_str()).collect();
            match paths.as_slice() {
                [] => None,
                [one] => Some(format!("cgroup {one} is")),
                [first @ .., last] => Some(format!("cgroups {} and {last} are", first.join(", "))),
            }
        };
        match (self.machine, self.level) {
            (_, Level::Fine) => format!("Memory is not short{available}"),
            (_, Level::Unknown) => {
                format!("Whether memory is short is unknown: {}", self.unknown.as_deref().unwrap_or_default())
            }
            (Level::Fine, level) => {
                let who = at(level).unwrap_or_default();
                format!("{who} {}; the machine is not{available}", word(level))
            }
            (Level::Unknown, level) => {
                let (who, why) = (at(level).unwrap_or_default(), self.unknown.as_deref().unwrap_or_default());
                format!("{who} {}; of the machine it is unknown: {why}", word(level))
            }
            (machine, _) => {
                let worse =
                    at(Level::Short).map_or_else(String::new, |who| format!("; {who} SHORT of memory"));
                format!("the machine is {}{available}{worse}", word(machine))
            }
        }
    }
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Seconds it speaks of.
    pub seconds: f64,
    /// Whether memory is short, and whose.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Who waits for memory, the longest first.
    pub waiting: Vec<Waiting>,
    /// Who holds the machine's memory, the largest first; where only cgroups are short, who holds the worst one's.
    pub holding: Vec<Holder>,
    /// What happened before the interval, as far as the kernel's counters tell.
    pub recent: Vec<Recent>,
    /// The processes that grow, the fastest first.
    pub growing: Vec<Growing>,
    /// New tasks, where there are many.
    pub forks: Option<Forks>,
    /// What would relieve it.
    pub relief: Vec<String>,
    /// Whether the machine is fit to measure on.
    pub fitness: Vec<Check>,
}

/// Waiting for less than this share of the time is not worth a name, in percent.
const WORTH_NAMING: f64 = 1.0;
/// Major faults per second that stand for waiting where delays are not accounted: at 0.1 ms each, the
/// same share of the time.
const FAULTS_WORTH_NAMING: f64 = 100.0;
const NAMES: usize = 5;

/// Examines the time between two moments; `shares` holds [`share_selection`].
pub fn examine(before: &Moment, now: &Moment, shares: &Snapshot, page_size: u64) -> Report {
    let rates = now.counters.rates_since(&before.counters);
    let mut verdict = Verdict::of(&before.counters, &now.counters, &rates);
    let cgroup_of = |pid: u64| {
        let group = now.counters.instance("process", pid);
        text_of_group(group, "cgroup").map(str::to_owned)
    };
    let waits =
        |row: &Row| row.dfl.map_or(row.major_faults >= FAULTS_WORTH_NAMING, |dfl| dfl >= WORTH_NAMING);
    let waiting: Vec<Waiting> = prstat::rows(before, now, false)
        .into_iter()
        .filter(waits)
        .take(NAMES)
        .map(|row| Waiting { cgroup: cgroup_of(row.pid), row })
        .collect();
    let holders = Holders { now: &now.counters, shares, cgroup_of: &cgroup_of };
    for group in verdict.limited.iter_mut().filter(|group| group.level >= Level::Strained) {
        group.holding = holders.of(Some(group));
    }
    let only_cgroups = verdict.machine < Level::Strained && verdict.level >= Level::Strained;
    let holding = match verdict.limited.first() {
        Some(worst) if only_cgroups => worst.holding.clone(),
        _ => holders.of(None),
    };
    let relief = relief::advice(&now.counters, &verdict, &holding);
    let fitness = fitness::checks(&before.counters, &now.counters, verdict.level, page_size);
    Report {
        seconds: now.counters.seconds_since(&before.counters).unwrap_or(0.0),
        verdict,
        waiting,
        holding,
        recent: recent::events(&now.counters),
        growing: recent::growing(&before.counters, &now.counters),
        forks: recent::forks(before, now, &rates),
        relief,
        fitness,
    }
}
