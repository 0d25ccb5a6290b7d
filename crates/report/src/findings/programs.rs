//! Of programs, and of the least memory that they need.

use pagelab_analysis::finding::{Finding, MeasuredLimit, What};
use pagelab_experiment::Size;
use pagelab_experiment::observation::Unit;

use super::{shown, with_spread};
use crate::TextTable;
use crate::text::{DASH, bytes, duration, ratio, value};

pub(super) fn program_time(finding: &Finding, program: &str, limit: Option<Size>) -> String {
    // Known in parts where the kernel's ticks met both.
    let parted = ["time.user", "time.system"].iter().all(|name| finding.figure(name).is_some());
    let processor = if parted || finding.figure("time.processor").is_none() {
        format!("{} user and {} system", shown(finding, "time.user"), shown(finding, "time.system"))
    } else {
        shown(finding, "time.processor")
    };
    let elapsed = with_spread(finding, "time.elapsed");
    let mut parts = vec![format!("{program} took {elapsed}, of it {processor} processor time")];
    if let Some(status) = finding.figure("command.status").filter(|status| status.value != 0.0) {
        parts.push(format!("exit status {}", status.value));
    }
    parts.push(format!("peak RSS {}", shown(finding, "memory.peak")));
    parts.extend(limit.map(|limit| format!("memory limit {limit}")));
    parts.push(format!("{} major faults", shown(finding, "faults.major")));
    for (name, what) in [("swap.in", "swap-in"), ("swap.out", "swap-out")] {
        if finding.figure(name).is_some_and(|pages| pages.value > 0.0) {
            parts.push(format!("{what} {} pages", shown(finding, name)));
        }
    }
    let states = [
        ("state.user", "user"),
        ("state.system", "system"),
        ("state.fault", "waiting for input"),
        ("state.run-queue", "waiting for a processor"),
        ("state.sleep", "asleep"),
    ];
    let states: Vec<String> = states
        .iter()
        .filter_map(|(name, what)| Some(format!("{:.0} % {what}", finding.figure(name)?.value * 100.0)))
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
    early: bool,
) -> String {
    let enough = shown(finding, "memory.enough");
    let full = shown(finding, "time.full");
    let lowest = limits.first().map(|limit| limit.memory as f64);
    let mut text = match finding.figure("memory.too-little") {
        None if !early && finding.figure("memory.enough").map(|f| f.value) == lowest => {
            format!(
                "{program} runs at full speed ({full}) even at {enough}: sweep from less to find the knee"
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
    if early {
        let spent = shown(finding, "time.sweep");
        text += &format!("; ended after {spent} as --budget says: a greater one narrows the interval");
    }
    text
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
    let full = value_of("time.full").filter(|&full| full > 0.0);
    let row = |limit: &MeasuredLimit| {
        let memory = Some(limit.memory as f64);
        let over = if limit.stopped { "over " } else { "" };
        let slowdown = limit.time.zip(full).map(|(time, full)| format!("{over}{}", ratio(time / full)));
        let mark = match (memory == enough, memory <= too_little) {
            (true, _) if too_little.is_some() => "< knee: the least at full speed",
            (true, _) => "< the least measured at full speed",
            (_, true) if limit.stopped => "too little (stopped: --give-up)",
            (_, true) => "too little",
            _ => "",
        };
        vec![
            bytes(limit.memory as f64),
            limit_time(limit),
            slowdown.unwrap_or_else(|| DASH.to_owned()),
            value(limit.fetched, Unit::Count),
            mark.to_owned(),
        ]
    };
    Some(TextTable {
        title: format!("Time of {program} against the memory limit"),
        headings: ["limit", "fastest", "slowdown", "pages fetched", ""].map(str::to_owned).to_vec(),
        rows: limits.iter().map(row).collect(),
        remarks: Vec::new(),
        warnings: Vec::new(),
        tones: Vec::new(),
    })
}
