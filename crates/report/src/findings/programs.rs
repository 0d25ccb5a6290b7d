//! Of programs, and of the least memory that they need.

use pagelab_analysis::finding::{Finding, MeasuredLimit, StallSource, What};
use pagelab_experiment::Size;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Unit;

use super::{shown, with_spread};
use crate::table::TextTable;
use crate::text::{DASH, bytes, duration, ratio, value};

pub(super) fn program_time(finding: &Finding, program: &str, limit: Option<Size>) -> String {
    // Known in parts where the kernel's ticks met both.
    let parted = [metrics::TIME_USER, metrics::TIME_SYSTEM].iter().all(|name| finding.figure(name).is_some());
    let processor = if parted || finding.figure(metrics::TIME_CPU).is_none() {
        format!(
            "{} user and {} system",
            shown(finding, metrics::TIME_USER),
            shown(finding, metrics::TIME_SYSTEM)
        )
    } else {
        shown(finding, metrics::TIME_CPU)
    };
    let elapsed = with_spread(finding, metrics::TIME_ELAPSED);
    let mut parts = vec![format!("{program} took {elapsed}, of which {processor} CPU time")];
    if let Some(status) = finding.figure(metrics::COMMAND_STATUS).filter(|status| status.value != 0.0) {
        parts.push(format!("exit status {}", status.value));
    }
    parts.push(format!("peak RSS {}", shown(finding, metrics::MEMORY_PEAK)));
    parts.extend(limit.map(|limit| format!("memory limit {limit}")));
    parts.push(format!("{} major faults", shown(finding, metrics::FAULTS_MAJOR)));
    for (name, what) in [(metrics::SWAP_IN, "swap-in"), (metrics::SWAP_OUT, "swap-out")] {
        if finding.figure(name).is_some_and(|pages| pages.value > 0.0) {
            parts.push(format!("{what} {} pages", shown(finding, name)));
        }
    }
    let states = [
        (metrics::STATE_USER, "user"),
        (metrics::STATE_SYSTEM, "system"),
        (metrics::STATE_FAULT, "waiting for input"),
        (metrics::STATE_RUN_QUEUE, "waiting for a CPU"),
        (metrics::STATE_SLEEP, "asleep"),
    ];
    let states: Vec<String> = states
        .iter()
        .filter_map(|(name, what)| Some(format!("{:.0}% {what}", finding.figure(name)?.value * 100.0)))
        .collect();
    if !states.is_empty() {
        parts.push(format!("its threads' time: {}", states.join(", ")));
    }
    parts.join("; ")
}

pub(super) fn least_memory(
    finding: &Finding,
    program: &str,
    limits: &[MeasuredLimit],
    [inconclusive, early]: [bool; 2],
    stall: Option<StallSource>,
) -> String {
    let enough = shown(finding, "memory.enough");
    let full = shown(finding, "time.full");
    let lowest = limits.first().map(|limit| limit.memory as f64);
    let mut text = match finding.figure("memory.too-little") {
        _ if finding.figure("memory.needed").is_some() => need(finding, program, stall),
        None if !early && finding.figure("memory.enough").map(|f| f.value) == lowest => {
            format!(
                "{program} runs at full speed ({full}) even at {enough}: sweep from a smaller limit to find \
                the knee"
            )
        }
        None => {
            format!("{program} needs at most {enough} for full speed ({full}); no lower limit was measured")
        }
        Some(too_little) => {
            let below = limits.iter().find(|limit| limit.memory as f64 == too_little.value);
            let below = below.map_or_else(String::new, |limit| format!(" ({})", limit_time(limit)));
            format!(
                "{program} needs {enough} for full speed (fastest {full}, and up to {} counts as that); the knee is between {}{below} and {enough}",
                shown(finding, "time.allowed"),
                shown(finding, "memory.too-little"),
            )
        }
    };
    if inconclusive && finding.figure("memory.needed").is_some() {
        text = format!(
            "inconclusive, because a limit was slow or stalled although less memory was enough, or without more pages \
             fetched: at most, {text}"
        );
    } else if inconclusive {
        text = format!(
            "inconclusive: {program} needs at most {enough}, but limits below were slow without more pages fetched; \
             repeat it on an idle machine"
        );
    }
    if early {
        let spent = shown(finding, "time.sweep");
        text += &format!("; ended after {spent} (--budget): a larger budget narrows the interval");
    }
    text
}

/// How much memory the program needs for each goal.
fn need(finding: &Finding, program: &str, stall: Option<StallSource>) -> String {
    let goal = |name: &str| {
        let lowest = finding.figure(format!("{name}.too-little")).is_none();
        format!("{}{}", shown(finding, name), if lowest { " or less" } else { "" })
    };
    let slower = if finding.figure("memory.too-little").is_none() { " or less" } else { "" };
    let how = match stall {
        Some(StallSource::Pressure) => "",
        Some(StallSource::Pages) => {
            "; stalls estimated from pages fetched, because no pressure is known of the program alone"
        }
        None => "; judged by elapsed time, because the target counts no faults",
    };
    format!(
        "{program} needs {} (≤ 1% stall); {}{slower} for ≤ 10% slowdown; completes with {}; peak {}{how}",
        goal("memory.needed"),
        shown(finding, "memory.enough"),
        goal("memory.completes"),
        shown(finding, metrics::MEMORY_PEAK),
    )
}

/// What a program took under a limit.
fn limit_time(limit: &MeasuredLimit) -> String {
    match (limit.time, limit.stopped) {
        (None, _) => "OOM-killed".to_owned(),
        (Some(ns), false) => duration(ns),
        (Some(ns), true) => format!("over {}", duration(ns)),
    }
}

/// The limits of a sweep over memory, the knee marked; nothing of other findings.
pub fn limits(finding: &Finding) -> Option<TextTable> {
    let What::LeastMemory { program, limits, .. } = &finding.what else { return None };
    let value_of = |name: &str| finding.figure(name).map(|figure| figure.value);
    let (enough, too_little) = (value_of("memory.enough"), value_of("memory.too-little"));
    let needed = value_of("memory.needed").is_some();
    let full = value_of("time.full").filter(|&full| full > 0.0);
    let row = |limit: &MeasuredLimit| {
        let memory = Some(limit.memory as f64);
        let over = if limit.stopped { "over " } else { "" };
        let slowdown = limit.time.zip(full).map(|(time, full)| format!("{over}{}", ratio(time / full)));
        let is = |name: &str| memory == value_of(name);
        let mark = match (memory == enough, memory <= too_little) {
            _ if needed => [
                ("memory.needed", "≤ 1% stall"),
                ("memory.enough", "≤ 10% slowdown"),
                ("memory.completes", "completes"),
            ]
            .iter()
            .filter_map(|(name, mark)| is(name).then_some(*mark))
            .collect::<Vec<_>>()
            .join(", "),
            (true, _) if too_little.is_some() => "< knee: the smallest at full speed".to_owned(),
            (true, _) => "< the smallest measured at full speed".to_owned(),
            (_, true) if limit.stopped => "too little (stopped: --give-up)".to_owned(),
            (_, true) => "too little".to_owned(),
            _ => String::new(),
        };
        vec![
            bytes(limit.memory as f64),
            limit.stall.map_or_else(
                || DASH.to_owned(),
                |share| format!("{}{:.1}%", if limit.stopped { "over " } else { "" }, share * 100.0),
            ),
            limit_time(limit),
            slowdown.unwrap_or_else(|| DASH.to_owned()),
            value(limit.fetched, Unit::Count),
            mark,
        ]
    };
    let title = format!("Time of {program} against the memory limit");
    let mut table = TextTable::new(
        title,
        ["limit", "stall", "fastest", "slowdown", "pages fetched", ""],
        limits.iter().map(row),
    );
    if needed {
        table.remarks.push(
            "Limits are judged by the stall: the slowdown also contains the effect of other load.".to_owned(),
        );
    }
    Some(table)
}
