//! One answer in plain words: is memory short now, who waits for it, who holds it, what would
//! relieve it; and is this machine fit to measure on.
//!
//! The answer is drawn from two moments, so it speaks of the time between them. Every threshold stands
//! beside its reason in [`shortage`] and [`fitness`].

pub mod fitness;
pub mod shortage;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::memstat::{self, Holder};
use super::prstat::{self, Moment, Row};
use crate::Sample;
use crate::select::Selection;
use crate::tree::{Snapshot, of_group, text_of_group};
use fitness::Check;
use shortage::Evidence;

/// What to read for the doctor: everything here twice, and after the second time [`share_selection`].
pub fn selection() -> Selection {
    super::constant(&[
        "vmstat",
        "pressure",
        "meminfo",
        "zoneinfo:::/^(free|min|low|high|managed|present)$/",
        "cgroup:::/^(current|max|max_failures|max_events|anon|rss|oom_kill|memory_some_total)$/",
        "cgroup:::workingset_refault*",
        "settings",
        "stat",
        "swaps",
        "system",
        "process:::/^(state|threads|rss|swap|virtual_size|uid|cgroup|start|utime|stime|minor_faults|major_faults)$/",
        "thread:::/^(pid|start|utime|stime|minor_faults|major_faults|run_time|run_delay)$/",
        "thread:::*_switches",
    ])
}

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

/// How bad it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing to say.
    #[default]
    Fine,
    /// Signs of it.
    Strained,
    /// A shortage.
    Short,
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

/// A cgroup that met its limit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limited {
    /// The path.
    pub path: String,
    /// 1 or 2.
    pub version: u64,
    /// Bytes it is charged.
    pub current: f64,
    /// Bytes it may be charged.
    pub max: f64,
    /// How often a second the limit was met.
    pub met: f64,
    /// Pages a second that had been evicted and were wanted again.
    pub refaults: f64,
    /// Percent of the time in which some task of it waited for memory; None for version 1.
    pub pressure: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// Seconds it speaks of.
    pub seconds: f64,
    /// Whether memory is short.
    pub level: Level,
    /// Why.
    pub evidence: Vec<Evidence>,
    /// The cgroups that met their limits and suffered from it, the worst first.
    pub limited: Vec<Limited>,
    /// Who waits for memory, the longest first.
    pub waiting: Vec<Waiting>,
    /// Who holds it, the largest first: in the worst limited cgroup where the shortage is one's own.
    pub holding: Vec<Holder>,
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
    let evidence = shortage::evidence(&before.counters, &now.counters, &rates);
    let level = evidence.iter().map(|e| e.level).max().unwrap_or_default();
    let limited = limited(&rates);
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
    let culprit = limited.first().filter(|_| level > Level::Fine);
    let holding = holding(&now.counters, shares, culprit, &cgroup_of);
    let relief = if level > Level::Fine { relief(&now.counters, culprit, &holding) } else { Vec::new() };
    Report {
        seconds: now.counters.seconds_since(&before.counters).unwrap_or(0.0),
        level,
        evidence,
        limited,
        waiting,
        holding,
        relief,
        fitness: fitness::checks(&before.counters, &now.counters, page_size),
    }
}

/// The cgroups that met their limit in the interval while pages they had lost were wanted again.
fn limited(rates: &Snapshot) -> Vec<Limited> {
    let one = |(version, path, group): (u64, &std::sync::Arc<str>, &[Sample])| {
        let own = |statistic| of_group(group, statistic);
        let met = own("max_failures").or_else(|| own("max_events"))?;
        let refaults =
            own("workingset_refault_anon").unwrap_or(0.0) + own("workingset_refault_file").unwrap_or(0.0);
        let found = Limited {
            path: path.to_string(),
            version,
            current: own("current")?,
            max: own("max")?,
            met,
            refaults,
            pressure: own("memory_some_total").map(|ns| ns / 1e7),
        };
        (met > 0.0 && refaults > 0.0).then_some(found)
    };
    let mut found: Vec<Limited> = rates.groups("cgroup").filter_map(one).collect();
    found.sort_by(|a, b| b.refaults.total_cmp(&a.refaults));
    found.truncate(NAMES);
    found
}

/// The largest processes of the limited cgroup, or of the machine.
fn holding(
    now: &Snapshot,
    shares: &Snapshot,
    culprit: Option<&Limited>,
    cgroup_of: &dyn Fn(u64) -> Option<String>,
) -> Vec<Holder> {
    let mut samples = shares.samples().to_vec();
    samples.extend_from_slice(now.module("process"));
    let mut found = memstat::by_process(&Snapshot::new(now.at_ns, samples));
    if let Some(culprit) = culprit {
        let below = format!("{}/", culprit.path.trim_end_matches('/'));
        found.retain(|holder| {
            let cgroup = holder.pid.and_then(cgroup_of);
            cgroup.is_some_and(|path| path == culprit.path || path.starts_with(&below))
        });
    }
    found.retain(|holder| holder.total.is_some_and(|bytes| bytes > 0.0));
    found.truncate(NAMES);
    found
}

fn relief(now: &Snapshot, culprit: Option<&Limited>, holding: &[Holder]) -> Vec<String> {
    let mut advice = Vec::new();
    let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
    let size = |bytes: f64| prstat::size(Some(bytes));
    if let Some(group) = culprit {
        let file = if group.version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
        advice.push(format!(
            "raise {file} of the cgroup {}: it is at {} of {} and met the limit {:.0} times a second",
            group.path,
            size(group.current),
            size(group.max),
            group.met
        ));
    }
    if let Some(first) = holding.first() {
        let total = first.total.unwrap_or(0.0);
        let whole = culprit.map(|g| g.max).or_else(|| mem("MemTotal")).unwrap_or(f64::INFINITY);
        if total > whole / 10.0 {
            let place = culprit
                .map_or_else(|| "of the memory".to_owned(), |g| format!("of what {} may have", g.path));
            advice.push(format!(
                "limit or stop {} (process {}): it holds {}, {:.0} % {place}",
                first.name,
                first.pid.unwrap_or(0),
                size(total),
                100.0 * total / whole
            ));
        }
    }
    match (mem("SwapTotal"), mem("SwapFree")) {
        (Some(0.0), _) if holding.first().is_some_and(|h| h.anonymous > h.file) => advice.push(
            "add swap, on zram for example: most of what is held is anonymous and has nowhere to go"
                .to_owned(),
        ),
        (Some(total), Some(free)) if total > 0.0 && free < total / 20.0 => {
            advice.push(format!("add swap: {} of {} are used", size(total - free), size(total)));
        }
        _ => {}
    }
    if advice.is_empty() {
        advice.push("give the machine more memory, or run less at a time".to_owned());
    }
    advice
}
