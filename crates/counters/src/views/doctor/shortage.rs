//! The signs of a shortage of memory, each with its thresholds and their reason.
//!
//! Scanning alone is none on Linux: a page cache that fills memory is scanned all the time and costs
//! nobody anything. What tells a shortage is time lost waiting (pressure) and pages that are wanted
//! again soon after they were evicted (refaults, swap-ins).

use serde::Serialize;

use super::{Level, cgroups};
use crate::tree::{Snapshot, of_group};

/// Whose memory a sign speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The machine's alone.
    Machine,
    /// The machine's and its cgroups' together.
    All,
    /// The cgroups' alone.
    Cgroups,
}

/// One sign.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evidence {
    /// What was looked at.
    pub sign: &'static str,
    /// The figure; None where this kernel does not keep it.
    pub value: Option<f64>,
    /// What one of the figure is.
    pub unit: &'static str,
    /// From here on strained; None for a figure that only accompanies the others.
    pub strained: Option<f64>,
    /// From here on short.
    pub short: Option<f64>,
    /// What this sign alone says.
    pub level: Level,
    /// Whose memory it speaks of.
    pub scope: Scope,
    /// What the thresholds rest on.
    pub reason: &'static str,
}

/// The signs without any of which nothing is known: time lost, and pages wanted again.
pub(super) const DECISIVE: [&str; 3] =
    ["tasks waiting for memory", "refaults of reclaimed pages", "swapped in"];

/// Fewer refaults a second than this are noise, whatever share of reclaim they are.
pub(super) const REFAULTS_NOISE: f64 = 100.0;

/// Every sign between two moments; `rates` is the second's growth per second.
pub fn evidence(before: &Snapshot, now: &Snapshot, rates: &Snapshot) -> Vec<Evidence> {
    let pressure = |who: &str| {
        // Nanoseconds waited per second, in percent.
        rates.number("pressure", 0, "memory", &format!("{who}_total")).map(|ns| ns / 1e7)
    };
    let vm = |statistic: &str| rates.number("vmstat", 0, "vm", statistic);
    let sum = |prefix: &str| {
        let of = |s: &&crate::Sample| s.statistic.starts_with(prefix);
        let found: Vec<f64> =
            rates.module("vmstat").iter().filter(of).filter_map(|s| s.value.number()).collect();
        (!found.is_empty()).then(|| found.iter().sum::<f64>())
    };
    let both = |what: &str| vm(&format!("{what}_anon")).zip(vm(&format!("{what}_file"))).map(|(a, f)| a + f);
    let refaults = both("workingset_refault").or_else(|| vm("workingset_refault"));
    let steals = both("pgsteal").or_else(|| Some(vm("pgsteal_kswapd")? + vm("pgsteal_direct")?));
    let scans = both("pgscan").or_else(|| Some(vm("pgscan_kswapd")? + vm("pgscan_direct")?));
    let returned =
        refaults.zip(steals).map(|(r, s)| if r < REFAULTS_NOISE || s <= 0.0 { 0.0 } else { 100.0 * r / s });
    let kills = {
        let count = |s: &Snapshot| s.number("vmstat", 0, "vm", "oom_kill");
        count(now).zip(count(before)).map(|(end, start)| end - start)
    };
    let inside = cgroups::killed_inside(before, now);
    let met = |(_, _, group): (u64, &std::sync::Arc<str>, &[crate::Sample])| {
        of_group(group, "max_failures").or_else(|| of_group(group, "max_events"))
    };
    // Version 2 counts a cgroup's with its children's, so the sum is an upper bound there.
    let met = rates.groups("cgroup").filter_map(met).reduce(|a, b| a + b);
    vec![
        sign(
            Scope::All,
            "tasks waiting for memory",
            pressure("some"),
            "% of the time",
            1.0,
            10.0,
            "10% is lost time that anybody notices; lmkd calls 7% pressure, systemd-oomd kills at 60%",
        ),
        sign(
            Scope::All,
            "all tasks waiting for memory",
            pressure("full"),
            "% of the time",
            0.5,
            5.0,
            "nothing at all is done meanwhile, so half of what some tasks may wait",
        ),
        sign(
            Scope::All,
            "refaults of reclaimed pages",
            returned,
            "% of reclaimed",
            10.0,
            50.0,
            "streaming through files gives a few; when half comes back, reclaim works for nothing",
        ),
        figure("refaults", refaults, "pages/s"),
        sign(
            Scope::All,
            "swapped in",
            vm("pswpin"),
            "pages/s",
            10.0,
            1000.0,
            "at 0.1 ms per page from a solid-state disk 1000/s is a tenth of a task's time",
        ),
        figure("scanned", scans, "pages/s"),
        figure("reclaimed", steals, "pages/s"),
        sign(
            Scope::Machine,
            "direct reclaim stalls, global",
            sum("allocstall"),
            "/s",
            1.0,
            100.0,
            "the background reclaimer should be ahead of them; a short burst is none",
        ),
        Evidence {
            scope: Scope::Cgroups,
            reason: "each time a task reclaims in its cgroup directly",
            ..figure("cgroup limits met", met, "/s")
        },
        watermarks(now),
        sign(
            Scope::Machine,
            "OOM kills, global",
            kills.map(|kills| (kills - inside).max(0.0)),
            "processes",
            1.0,
            1.0,
            "the kernel had nothing left to reclaim",
        ),
        sign(
            Scope::Cgroups,
            "OOM kills in cgroups",
            kills.map(|kills| kills.min(inside)),
            "processes",
            1.0,
            1.0,
            "a limit with nothing left to reclaim inside it",
        ),
    ]
}

pub(super) fn level(value: f64, strained: f64, short: f64) -> Level {
    if value >= short {
        Level::Short
    } else if value >= strained {
        Level::Strained
    } else {
        Level::Fine
    }
}

fn sign(
    scope: Scope,
    sign: &'static str,
    value: Option<f64>,
    unit: &'static str,
    strained: f64,
    short: f64,
    reason: &'static str,
) -> Evidence {
    let level = value.map_or(Level::Unknown, |v| level(v, strained, short));
    Evidence { sign, value, unit, strained: Some(strained), short: Some(short), level, scope, reason }
}

fn figure(sign: &'static str, value: Option<f64>, unit: &'static str) -> Evidence {
    Evidence {
        sign,
        value,
        unit,
        strained: None,
        short: None,
        level: Level::Fine,
        scope: Scope::All,
        reason: "accompanies the others",
    }
}

/// A zone smaller than this share of the machine is not looked at: low zones are kept full on purpose.
const SMALL_ZONE: f64 = 0.05;

/// The fullest zone's free pages as a share of its low watermark: below it the background reclaimer
/// works, below the minimum every allocation does.
fn watermarks(now: &Snapshot) -> Evidence {
    let zones: Vec<[f64; 4]> = now
        .groups("zoneinfo")
        .filter_map(|(_, _, group)| {
            let of = |statistic| of_group(group, statistic);
            Some([of("free")?, of("min")?, of("low")?, of("managed")?])
        })
        .collect();
    let all: f64 = zones.iter().map(|z| z[3]).sum();
    let tightest = zones
        .into_iter()
        .filter(|[_, _, low, managed]| *low > 0.0 && *managed > all * SMALL_ZONE)
        .min_by(|a, b| (a[0] / a[2]).total_cmp(&(b[0] / b[2])));
    let value = tightest.map(|[free, _, low, _]| free / low);
    let level = match tightest {
        None => Level::Unknown,
        Some([free, min, _, _]) if free < min => Level::Short,
        Some([free, _, low, _]) if free < low => Level::Strained,
        _ => Level::Fine,
    };
    Evidence {
        sign: "free in the fullest zone",
        value,
        unit: "times its low watermark",
        strained: None,
        short: None,
        level,
        scope: Scope::Machine,
        reason: "below 1 the background reclaimer works; below the minimum watermark allocations wait",
    }
}
