//! The memory ladder in words and dots: what one access costs at each level, on a logarithmic scale.

use pagelab_analysis::ladder::{Level, LevelKind};
use pagelab_experiment::observation::Unit;

use crate::runs::WITH_SPREAD;
use crate::text::{self, Style, bytes};

/// Columns of the chart on a terminal.
const CHART: usize = 28;

/// A level's name, of a cache with its size.
pub(crate) fn name(level: &Level) -> String {
    let name = match &level.kind {
        LevelKind::Cache { number } => format!("L{number} cache"),
        LevelKind::TlbMiss => "TLB miss".to_owned(),
        LevelKind::Dram => "DRAM".to_owned(),
        LevelKind::MinorFault => "minor fault".to_owned(),
        LevelKind::HugeFault => "THP fault".to_owned(),
        LevelKind::CachedHugeFault => "THP fault, cached page".to_owned(),
        LevelKind::CachedRead => "read from page cache".to_owned(),
        LevelKind::SwapFault { swap } if swap == "zram" => "major fault, zram".to_owned(),
        LevelKind::SwapFault { swap } if swap == "file" => "major fault, swap file".to_owned(),
        LevelKind::SwapFault { swap } => format!("major fault, swap: {swap}"),
        LevelKind::DirectRead => "direct read".to_owned(),
        LevelKind::FileFault => "major fault, file".to_owned(),
    };
    level.size.map_or_else(|| name.clone(), |size| format!("{name} ({})", bytes(size)))
}

/// What one access moves.
pub(crate) fn moved(level: &Level) -> String {
    let Some(moved) = level.moved else { return text::DASH.to_owned() };
    match &level.kind {
        LevelKind::Cache { .. } | LevelKind::TlbMiss | LevelKind::Dram => "a word".to_owned(),
        LevelKind::SwapFault { .. } | LevelKind::FileFault => format!("mean {}", bytes(moved)),
        _ => bytes(moved),
    }
}

/// The range of the repetitions, where there is one.
pub(crate) fn range(level: &Level) -> Option<(f64, f64)> {
    let interval = level.time.interval?;
    Some((interval.low, interval.high?))
}

/// The decades that the levels span, as powers of ten.
pub(crate) fn decades(levels: &[Level]) -> (i32, i32) {
    let values = levels.iter().flat_map(|level| {
        let (low, high) = range(level).unwrap_or((level.time.value, level.time.value));
        [low, high]
    });
    let logs: Vec<f64> = values.filter(|&v| v > 0.0).map(f64::log10).collect();
    let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
    let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
    if low.is_finite() { (low as i32, (high as i32).max(low as i32 + 1)) } else { (0, 1) }
}

/// Where a time is between the ends of the scale, from 0 to 1.
pub(crate) fn share(time: f64, (low, high): (i32, i32)) -> f64 {
    ((time.max(f64::MIN_POSITIVE).log10() - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0)
}

/// The answer in a sentence: what a fault costs, compared with a load from memory; none where one of them was
/// not measured.
pub fn answer(levels: &[Level]) -> Option<String> {
    let memory = levels.iter().find(|level| level.kind == LevelKind::Dram)?;
    let value = |level: &Level| text::value(Some(level.time.value), Unit::Nanoseconds);
    let fault = |level: &Level| {
        let from = match &level.kind {
            LevelKind::SwapFault { swap } if swap == "file" => "swap file",
            LevelKind::SwapFault { swap } => swap,
            LevelKind::FileFault => "file",
            _ => return None,
        };
        Some(format!("{from} {} ({})", value(level), text::ratio(level.time.value / memory.time.value)))
    };
    let faults: Vec<String> = levels.iter().filter_map(fault).collect();
    (!faults.is_empty()).then(|| {
        let (memory, faults) = (value(memory), faults.join(", "));
        format!("Memory stops being cheap at the first major fault: DRAM {memory} → {faults}; medians.")
    })
}

/// The ladder for the terminal; empty where there is none.
pub fn terminal(levels: &[Level], style: &Style) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let ends = decades(levels);
    let wide = style.width >= WITH_SPREAD;
    let row = |level: &Level| {
        let value = |v| text::value(Some(v), Unit::Nanoseconds);
        let place = |time| (share(time, ends) * (CHART - 1) as f64).round() as usize;
        let (low, high) = range(level).unwrap_or((level.time.value, level.time.value));
        let sign = |n| match n {
            _ if n == place(level.time.value) => '●',
            _ if (place(low)..=place(high)).contains(&n) => '─',
            _ => '·',
        };
        let words = |(low, high)| format!("{} … {}", value(low), value(high));
        let spread = wide.then(|| range(level).map_or_else(String::new, words));
        let cells = [name(level), moved(level), value(level.time.value)];
        cells.into_iter().chain(spread).chain([(0..CHART).map(sign).collect()]).collect::<Vec<_>>()
    };
    let scale = [ends.0, ends.1].map(|end| text::duration(10f64.powi(end))).join(" to ");
    let mut headings = vec!["level", "moves", "median"];
    headings.extend(wide.then_some("min … max").into_iter().chain([&*scale]));
    let table = text::table(&headings, &levels.iter().map(row).collect::<Vec<_>>(), style);
    let answer =
        answer(levels).map_or_else(String::new, |answer| text::wrapped(&answer, "", "  ", style) + "\n");
    format!(
        "{answer}\nMemory ladder: the time of one access, and what it moves (● median, ─ range; logarithmic)\n{table}\n\n"
    )
}
