//! The cgroups that met their limits, and how short of memory each is by its own signs.
//!
//! A cgroup may be short on a machine that has plenty. Its reclaim is in the machine's sums of pages scanned,
//! reclaimed and refaulted and in its pressure, but not in `pgscan_kswapd`, `pgscan_direct` and `allocstall` of
//! /proc/vmstat, which count the machine's own reclaim alone: where that is small beside the sums, these are
//! the cgroups' doing.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::Level;
use super::shortage::{REFAULTS_NOISE, level};
use crate::Sample;
use crate::tree::{Snapshot, of_group};
use crate::views::memstat::Holder;

/// A cgroup that met its limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limited {
    /// The path.
    pub path: String,
    /// 1 or 2.
    pub version: u64,
    /// Whether it is short of memory.
    pub level: Level,
    /// Bytes it is charged.
    pub current: f64,
    /// Bytes it may be charged.
    pub max: f64,
    /// How often a second the limit was met; each time a task of it reclaimed directly.
    pub met: f64,
    /// Pages a second that had been evicted and were wanted again.
    pub refaults: f64,
    /// Percent of the time in which some task of it waited for memory; None for version 1.
    pub pressure: Option<f64>,
    /// Processes that the kernel killed in it for want of memory, in the interval.
    pub kills: f64,
    /// Who holds its memory, the largest first.
    pub holding: Vec<Holder>,
}

/// Refaults a second from which on a cgroup is short: at 0.1 ms a page a tenth of a task's time.
const REFAULTS_SHORT: f64 = 1000.0;
/// How many cgroups are named at most.
const NAMED: usize = 5;
/// The machine's own share of scanning up to which the sums are the cgroups' doing, and pages a second that are
/// nothing.
const OWN_SCANNING: (f64, f64) = (0.1, 100.0);

/// The cgroups that met their limit in the interval while pages they had lost were wanted again or processes of
/// theirs were killed, the worst first.
pub(super) fn limited(before: &Snapshot, now: &Snapshot, rates: &Snapshot) -> Vec<Limited> {
    let kills = kills(before, now);
    let one = |(version, path, group): (u64, &Arc<str>, &[Sample])| {
        let own = |statistic| of_group(group, statistic);
        let met = own("max_failures").or_else(|| own("max_events"))?;
        let refaults =
            own("workingset_refault_anon").unwrap_or(0.0) + own("workingset_refault_file").unwrap_or(0.0);
        let kills = kills.get(&(version, &**path)).copied().unwrap_or(0.0);
        let pressure = own("memory_some_total").map(|ns| ns / 1e7);
        let signs = [
            level(refaults, REFAULTS_NOISE, REFAULTS_SHORT),
            pressure.map_or(Level::Fine, |share| level(share, 1.0, 10.0)),
            level(kills, 1.0, 1.0),
        ];
        let found = Limited {
            path: path.to_string(),
            version,
            level: signs.into_iter().max().unwrap_or_default(),
            current: own("current")?,
            max: own("max")?,
            met,
            refaults,
            pressure,
            kills,
            holding: Vec::new(),
        };
        (met > 0.0 && refaults > 0.0 || kills > 0.0).then_some(found)
    };
    let mut found: Vec<Limited> = rates.groups("cgroup").filter_map(one).collect();
    found.sort_by(|a, b| b.level.cmp(&a.level).then(b.refaults.total_cmp(&a.refaults)));
    found.truncate(NAMED);
    found
}

/// Processes killed for want of memory in each cgroup with a limit, where any were: (version, path).
fn kills<'a>(before: &Snapshot, now: &'a Snapshot) -> HashMap<(u64, &'a str), f64> {
    let of = |(version, path, group): (u64, &'a Arc<str>, &[Sample])| {
        let then = before.number("cgroup", version, path, "oom_kill").unwrap_or(0.0);
        let killed = of_group(group, "oom_kill")? - then;
        (killed > 0.0).then_some(((version, &**path), killed))
    };
    now.groups("cgroup").filter_map(of).collect()
}

/// How many of the kernel's kills in the interval were inside cgroups. Version 2 counts those of a cgroup's
/// descendants with its own.
pub(super) fn killed_inside(before: &Snapshot, now: &Snapshot) -> f64 {
    let counted = |&(version, path): &(u64, &str)| match version {
        1 => path != "/",
        _ => path.matches('/').count() == 1 && path != "/",
    };
    0.0 + kills(before, now).iter().filter(|(group, _)| counted(group)).map(|(_, killed)| killed).sum::<f64>()
}

/// Whether what is scanned, reclaimed and refaulted is the cgroups' doing and not the machine's.
pub(super) fn reclaim_by_limits(rates: &Snapshot) -> bool {
    let rate = |statistic: &str| rates.number("vmstat", 0, "vm", statistic);
    let by = ["kswapd", "direct", "khugepaged", "proactive"].map(|by| rate(&format!("pgscan_{by}")));
    let Some(own) = by.into_iter().flatten().reduce(|a, b| a + b) else { return false };
    let all = rate("pgscan_anon").zip(rate("pgscan_file")).map_or(own, |(anon, file)| anon + file);
    own <= (OWN_SCANNING.0 * all).max(OWN_SCANNING.1)
}
