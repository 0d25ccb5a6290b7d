//! What would relieve a shortage: for every cgroup that is short, and for the machine where that is.

use super::holders::{SHARED, SLAB};
use super::{Level, Limited, Verdict};
use crate::tree::Snapshot;
use crate::views::memstat::Holder;
use crate::views::prstat;

/// A holder of less than this share of what there is gets no advice.
const WORTH: f64 = 0.1;

/// The advice, the worst cgroup's first; `holding` are the machine's largest holders where it is short.
pub(super) fn advice(now: &Snapshot, verdict: &Verdict, holding: &[Holder]) -> Vec<String> {
    let mut advice = Vec::new();
    let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
    for group in verdict.limited.iter().filter(|group| group.level >= Level::Strained) {
        advice.push(raise(group));
        let place = format!("of what {} may have", group.path);
        advice.extend(about_largest(&group.holding, group.max, &place));
    }
    if verdict.machine >= Level::Strained {
        let total = mem("MemTotal").unwrap_or(f64::INFINITY);
        advice.extend(about_largest(holding, total, "of the memory"));
    }
    if verdict.level >= Level::Strained {
        let processes = holding.iter().filter(|holder| holder.pid.is_some());
        let sum = |of: fn(&Holder) -> Option<f64>| processes.clone().filter_map(of).sum::<f64>();
        match (mem("SwapTotal"), mem("SwapFree")) {
            (Some(0.0), _) if sum(|h| h.anonymous) > sum(|h| h.file) => advice.push(
                "add swap, on zram for example: most of what processes hold is anonymous and has nowhere to go"
                    .to_owned(),
            ),
            (Some(total), Some(free)) if total > 0.0 && free < total / 20.0 => {
                advice.push(format!("add swap: {} of {} are used", size(total - free), size(total)));
            }
            _ => {}
        }
        if advice.is_empty() {
            advice.push("give the machine more memory, or run fewer programs at once".to_owned());
        }
    }
    advice
}

fn size(bytes: f64) -> String {
    prstat::size(Some(bytes))
}

fn raise(group: &Limited) -> String {
    let file = if group.version == 1 { "memory.limit_in_bytes" } else { "memory.max" };
    let killed = match group.kills {
        0.0 => String::new(),
        kills => format!(", and the kernel killed {kills:.0} in it"),
    };
    format!(
        "raise {file} of the cgroup {}: it is at {} of {} and met the limit {:.0} times per second{killed}",
        group.path,
        size(group.current),
        size(group.max),
        group.met
    )
}

/// What to do about the largest holder that something can be done about, of `whole` bytes.
fn about_largest(holding: &[Holder], whole: f64, place: &str) -> Option<String> {
    let held = |holder: &&Holder| holder.total.is_some_and(|bytes| bytes > whole * WORTH);
    // The page cache is given up where it is wanted; nobody has to stop it.
    let largest = holding
        .iter()
        .filter(held)
        .find(|holder| holder.pid.is_some() || holder.name != super::holders::CACHE)?;
    let total = largest.total?;
    let share = format!("it holds {}, {:.0}% {place}", size(total), 100.0 * total / whole);
    Some(match (largest.pid, largest.name.as_str()) {
        (Some(pid), name) => format!("limit or stop {name} (process {pid}): {share}"),
        (None, SHARED) => format!("remove shared memory (df -t tmpfs, ipcs -m): {share}"),
        (None, SLAB) => format!("find out what uses the slab (slabtop -s c): {share}"),
        (None, name) => format!("find out what {name} is used for: {share}"),
    })
}
