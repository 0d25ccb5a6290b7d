//! What happened before the interval, from what the kernel has counted since boot, or since a
//! cgroup was made; and who takes memory now: processes that grow, and tasks that are forked.

use serde::Serialize;

use crate::Sample;
use crate::tree::{Snapshot, of_group};
use crate::views::prstat::{self, Moment};

/// OOM kills, limits met and pressure of the machine or of a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Recent {
    /// The cgroup; None for the machine.
    pub cgroup: Option<String>,
    /// OOM kills since boot, or since the cgroup was made.
    pub kills: f64,
    /// How often the limit was met since the cgroup was made.
    pub met: f64,
    /// Percent of the last five minutes in which some task waited for memory.
    pub pressure: Option<f64>,
    /// The seconds within which all of it happened: since boot.
    pub within: Option<f64>,
}

/// A process that grows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Growing {
    /// Its number.
    pub pid: u64,
    /// Its command's name.
    pub name: String,
    /// Growth of its resident set and its swapped pages, bytes per second.
    pub rate: f64,
}

/// New tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Forks {
    /// Forks per second.
    pub rate: f64,
    /// The commands of the tasks that ended within the interval, the most frequent first, and how
    /// many each.
    pub ended: Vec<(String, u64)>,
}

/// Pressure of the last five minutes from which on it is reported, percent.
const PRESSURE: f64 = 1.0;
/// Growth that is reported, bytes per second.
const GROWTH: f64 = 1_048_576.0;
/// Forks per second that are reported.
const FORKS: f64 = 20.0;
/// How many of a kind are named.
const NAMED: usize = 5;

/// The machine's OOM kills and pressure, and the cgroups with OOM kills or with pressure at their
/// limits.
pub(super) fn events(now: &Snapshot) -> Vec<Recent> {
    let within = now.number("system", 0, "clock", "uptime").map(|ns| ns / 1e9);
    let machine = Recent {
        kills: now.number("vmstat", 0, "vm", "oom_kill").unwrap_or(0.0),
        pressure: now.number("pressure", 0, "memory", "some_avg300"),
        within,
        ..Recent::default()
    };
    let of_cgroup = |(_, path, group): (u64, &std::sync::Arc<str>, &[Sample])| {
        let own = |statistic| of_group(group, statistic);
        let met = own("max_failures").or_else(|| own("max_events")).unwrap_or(0.0);
        let kills = own("oom_kill").unwrap_or(0.0);
        Recent { cgroup: Some(path.to_string()), kills, met, pressure: own("memory_some_avg300"), within }
    };
    let happened = |r: &Recent| {
        let waited = r.pressure.is_some_and(|share| share >= PRESSURE);
        r.kills > 0.0 || waited && (r.met > 0.0 || r.cgroup.is_none())
    };
    let mut groups: Vec<Recent> = now.groups("cgroup").map(of_cgroup).filter(happened).collect();
    groups.sort_by(|a, b| b.kills.total_cmp(&a.kills).then(b.met.total_cmp(&a.met)));
    groups.truncate(NAMED);
    Some(machine).filter(happened).into_iter().chain(groups).collect()
}

/// The processes whose memory grew the fastest.
pub(super) fn growing(before: &Snapshot, now: &Snapshot) -> Vec<Growing> {
    let Some(seconds) = now.seconds_since(before) else { return Vec::new() };
    let held = |group: &[Sample]| Some(of_group(group, "rss")? + of_group(group, "swap").unwrap_or(0.0));
    let grown = |(pid, name, group): (u64, &std::sync::Arc<str>, &[Sample])| {
        let earlier = before.instance("process", pid);
        let same = of_group(earlier, "start") == of_group(group, "start");
        let start = if same { held(earlier).unwrap_or(0.0) } else { 0.0 };
        let rate = (held(group)? - start) / seconds;
        (rate >= GROWTH).then(|| Growing { pid, name: name.to_string(), rate })
    };
    let mut found: Vec<Growing> = now.groups("process").filter_map(grown).collect();
    found.sort_by(|a, b| b.rate.total_cmp(&a.rate));
    found.truncate(NAMED);
    found
}

/// The forks per second, and what ended, where that is many.
pub(super) fn forks(before: &Moment, now: &Moment, rates: &Snapshot) -> Option<Forks> {
    let rate = rates.number("stat", 0, "all", "forks").filter(|rate| *rate >= FORKS)?;
    let ended = prstat::ended(before, now).map(|ended| ended.names).unwrap_or_default();
    Some(Forks { rate, ended })
}
