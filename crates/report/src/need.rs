//! How much memory running tasks need: in words, as a table, and as a section of a page.

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_analysis::probe::{Ending, Interval, Need};
use serde::Serialize;

use crate::page::Section;
use crate::table::TextTable;
use crate::text::{self, DASH};

/// The most rows of a printed table: of more intervals, several share a row.
const MAX_ROWS: usize = 24;
/// The smallest growth that the answer states, as a share of the memory in use per minute.
const MIN_GROWTH: f64 = 0.01;

/// What memory a cgroup holds, and what keeps the kernel from reclaiming it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Held {
    /// Bytes of anonymous memory; `None` if unknown.
    #[serde(rename = "anonymous_bytes")]
    pub anonymous: Option<u64>,
    /// Bytes of files in the page cache; `None` if unknown.
    #[serde(rename = "file_bytes")]
    pub files: Option<u64>,
    /// Whether the cgroup may swap, and there is swap.
    pub has_swap: bool,
    /// Whether the kernel reports the pressure of the cgroup.
    pub has_pressure: bool,
    /// The lowest limit of the cgroup and of those above it, bytes; `None` without one.
    #[serde(rename = "limit_bytes")]
    pub limit: Option<u64>,
}

/// The memory of a process that was referenced within some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Age {
    /// The time in seconds.
    pub seconds: u32,
    /// Bytes of private memory.
    #[serde(rename = "private_bytes")]
    pub size: u64,
    /// Its lower bound.
    #[serde(rename = "lower_bound_bytes")]
    pub lower: u64,
    /// Its upper bound.
    #[serde(rename = "upper_bound_bytes")]
    pub upper: u64,
    /// Bytes of referenced pages that other processes map too.
    #[serde(rename = "shared_bytes")]
    pub shared: u64,
    /// Bytes resident at the end.
    #[serde(rename = "resident_bytes")]
    pub resident: u64,
}

fn bytes(bytes: u64) -> String {
    text::bytes(bytes as f64)
}

/// A share as a percentage with as many digits as it needs.
pub fn percent(share: f64) -> String {
    let percent = (share * 1000.0).round() / 10.0;
    match percent {
        0.0 if share == 0.0 => "0%".to_owned(),
        0.0 => "under 0.1%".to_owned(),
        whole if whole.fract() == 0.0 => format!("{whole:.0}%"),
        some => format!("{some:.1}%"),
    }
}

/// The change of a need since the first measurement.
pub fn drift(now: u64, first: u64) -> String {
    let sign = if now < first { "-" } else { "+" };
    format!("{}  {sign}{} since the first measurement", bytes(now), bytes(now.abs_diff(first)))
}

/// How much the cgroup needs, in sentences.
pub fn answer(name: &str, need: &Need, held: &Held) -> String {
    let Need { needed, before, intervals, .. } = need;
    let seconds = intervals.last().map_or(0.0, |last| last.second);
    let gone = bytes(before.saturating_sub(*needed));
    let (needed, before) = (bytes(*needed), bytes(*before));
    let mut answer = match need.ending {
        Ending::Found => format!(
            "{name} needs {needed}: of the {before} in use, {gone} was reclaimed and did not come back within {seconds:.0} s."
        ),
        Ending::NotReclaimable => {
            format!(
                "{name} needs at most {needed}: the kernel could reclaim no more than {gone} of {before}."
            )
        }
        Ending::ShortAlready => format!(
            "{name} needs more than {needed}: its tasks stall for memory for {} of the time, so nothing was reclaimed.",
            percent(need.stall_before)
        ),
        Ending::TimeOver => format!(
            "{name} needs at most {needed}: {gone} of {before} was reclaimed in {seconds:.0} s and did not come back. \
             Find the need with a longer --for."
        ),
        Ending::BudgetSpent => format!(
            "{name} needs about {needed}: of the {before} in use, {gone} was reclaimed until the tasks had stalled for \
             as long as --max-stall allows."
        ),
    };
    answer += &format!(
        " The tasks stalled for {} of the time ({} before).",
        percent(need.stall),
        percent(need.stall_before)
    );
    let minute = need.growth.unwrap_or(0.0) * 60.0;
    let is_steady = minute.abs() <= MIN_GROWTH * need.before as f64;
    if !is_steady {
        let word = if minute > 0.0 { "grew" } else { "shrank" };
        answer += &format!(
            " Its anonymous memory, swapped memory included, {word} by {} per minute, so it has no steady need.",
            text::bytes(minute.abs())
        );
    }
    if let Some(limit) = held.limit {
        let left = limit.saturating_sub(intervals.last().map_or(0, |last| last.memory)) as f64;
        answer += &match minute {
            _ if is_steady || minute < 0.0 => format!(" Its limit is {}.", bytes(limit)),
            minute => format!(
                " At this rate it fills its limit of {} in {}.",
                bytes(limit),
                text::duration(left / minute * 60e9)
            ),
        };
    }
    if let (Some(anonymous), Some(files)) = (held.anonymous, held.files) {
        answer +=
            &format!(" It holds {} of anonymous memory and {} of files.", bytes(anonymous), bytes(files));
    }
    if !held.has_swap {
        answer += " There is no swap for it, so the kernel cannot reclaim anonymous memory: all of it counts as needed.";
    }
    if !held.has_pressure {
        answer +=
            " The kernel reports no pressure (PSI), so stalls are estimated from the pages that came back.";
    }
    answer
}

/// One row per interval.
pub fn table(need: &Need) -> TextTable {
    let all = &need.intervals;
    let step = all.len().div_ceil(MAX_ROWS).max(1);
    let row = |part: &[Interval]| {
        let sum = |of: fn(&Interval) -> u64| part.iter().map(of).sum::<u64>();
        let last = part.last().copied().unwrap_or_default();
        vec![
            format!("{:.0} s", last.second),
            bytes(last.memory),
            bytes(sum(|one| one.reclaimed)),
            bytes(sum(|one| one.returned)),
            percent(part.iter().map(|one| one.stall).sum::<f64>() / part.len() as f64),
        ]
    };
    TextTable::new(
        "Memory over time",
        ["time", "memory", "reclaimed", "came back", "stall"],
        all.chunks(step).map(row),
    )
}

fn series(name: &str, color: usize, points: impl Iterator<Item = (f64, f64)>) -> Series {
    let (x, y): (Vec<_>, Vec<_>) = points.map(|(x, y)| (Some(x), Some(y))).unzip();
    Series { name: name.to_owned(), color, dots: true, x, y, ..Series::default() }
}

/// The section of a page.
pub fn section(name: &str, need: &Need, held: &Held) -> Section {
    let mut over_time = Plot::new(
        "Memory over time",
        "Charged to the cgroup at the end of each interval.",
        Axis::linear("time", "ns"),
        Axis::linear("memory", "bytes"),
    );
    over_time.series =
        vec![series("", 0, need.intervals.iter().map(|one| (one.second * 1e9, one.memory as f64)))];
    let mut curve = Plot::new(
        "What comes back against memory",
        "Pages that were reclaimed and fetched again, per interval of a second.",
        Axis::linear("memory", "bytes"),
        Axis::linear("came back per second", "bytes"),
    );
    curve.series =
        vec![series("", 1, need.intervals.iter().map(|one| (one.memory as f64, one.returned as f64)))];
    // Points without a line: the intervals are not in the order of memory.
    curve.series[0].dash = 4;
    Section {
        heading: name.to_owned(),
        answer: answer(name, need, held),
        plots: vec![over_time, curve],
        seen: Some(2),
        tables: vec![table(need)],
        ..Section::default()
    }
}

/// How much the process needs at least, in sentences.
pub fn ages_answer(name: &str, ages: &[Age]) -> String {
    let Some(last) = ages.last() else { return String::new() };
    format!(
        "{name} needs at least {}: the private memory that it referenced within {} s (between {} and {}), of {} \
         resident. That does not include {} of files that other processes map too, files that it reads with \
         read(2), kernel memory, or memory that it uses more rarely.",
        bytes(last.size),
        last.seconds,
        bytes(last.lower),
        bytes(last.upper),
        bytes(last.resident),
        bytes(last.shared)
    )
}

/// One row per age.
pub fn ages_table(ages: &[Age]) -> TextTable {
    let mut before = None;
    let row = |age: &Age| {
        let more = before.map_or_else(|| DASH.to_owned(), |before| bytes(age.size.saturating_sub(before)));
        before = Some(age.size);
        let of = [age.size, age.lower, age.upper, age.shared, age.resident].map(bytes);
        let [size, lower, upper, shared, resident] = of;
        vec![format!("{} s", age.seconds), size, more, lower, upper, shared, resident]
    };
    TextTable::new(
        "Referenced memory by age",
        ["within", "private", "more", "lower", "upper", "shared", "resident"],
        ages.iter().map(row),
    )
}

/// The section of a page.
pub fn ages_section(name: &str, ages: &[Age]) -> Section {
    let mut plot = Plot::new(
        "Referenced memory by age",
        "Private memory that was referenced within the time, and its bounds.",
        Axis::log("time", "ns"),
        Axis::linear("memory", "bytes"),
    );
    let of =
        |what: fn(&Age) -> u64| ages.iter().map(move |age| (f64::from(age.seconds) * 1e9, what(age) as f64));
    plot.series = vec![
        series("private", 0, of(|age| age.size)),
        series("lower bound", 1, of(|age| age.lower)),
        series("upper bound", 2, of(|age| age.upper)),
    ];
    plot.wide = true;
    Section {
        heading: name.to_owned(),
        answer: ages_answer(name, ages),
        plots: vec![plot],
        tables: vec![ages_table(ages)],
        ..Section::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(ending: Ending) -> Need {
        let interval = |second: f64, memory: u64| Interval { second, memory, ..Interval::default() };
        Need {
            ending,
            needed: 24 << 20,
            before: 72 << 20,
            stall: 0.0012,
            stall_before: 0.0,
            growth: Some(0.0),
            intervals: vec![interval(1.0, 72 << 20), interval(27.0, 24 << 20)],
        }
    }

    #[test]
    fn every_answer_begins_with_the_size_and_says_how_sure_it_is() {
        let held = Held { has_swap: true, has_pressure: true, ..Held::default() };
        let of = |ending| answer("web", &need(ending), &held);
        assert_eq!(
            of(Ending::Found),
            "web needs 24 MiB: of the 72 MiB in use, 48 MiB was reclaimed and did not come back within 27 s. \
             The tasks stalled for 0.1% of the time (0% before)."
        );
        assert!(of(Ending::NotReclaimable).starts_with("web needs at most 24 MiB: the kernel could reclaim"));
        assert!(of(Ending::ShortAlready).starts_with("web needs more than 24 MiB: its tasks stall"));
        assert!(of(Ending::TimeOver).contains("longer --for"));
        assert!(of(Ending::BudgetSpent).starts_with("web needs about 24 MiB"));
        let without = answer("web", &need(Ending::NotReclaimable), &Held::default());
        assert!(without.contains("There is no swap") && without.contains("no pressure (PSI)"), "{without}");
        let leaking = Need { growth: Some(f64::from(1 << 20)), ..need(Ending::Found) };
        let grows = answer("web", &leaking, &held);
        assert!(grows.contains("grew by 60 MiB per minute, so it has no steady need."), "{grows}");
        let limited = Held { limit: Some(84 << 20), ..held };
        let grows = answer("web", &leaking, &limited);
        assert!(grows.contains("it fills its limit of 84 MiB in 60.0 s"), "{grows}");
        let steady = answer("web", &need(Ending::Found), &limited);
        assert!(steady.contains("Its limit is 84 MiB.") && !steady.contains("steady need"), "{steady}");
    }

    #[test]
    fn shares_keep_the_digits_that_they_need() {
        let written = [0.0, 0.0004, 0.001_23, 0.01, 0.156, 1.0].map(percent);
        assert_eq!(written, ["0%", "under 0.1%", "0.1%", "1%", "15.6%", "100%"]);
    }

    #[test]
    fn many_intervals_share_rows() {
        let interval = |n: u32| Interval {
            second: f64::from(n),
            reclaimed: 1 << 20,
            stall: 0.01,
            ..Interval::default()
        };
        let long = Need { intervals: (1..=240).map(interval).collect(), ..need(Ending::Found) };
        let table = table(&long);
        assert_eq!(table.rows.len(), MAX_ROWS);
        assert_eq!(table.rows[0], ["10 s", "0 B", "10 MiB", "0 B", "1%"]);
    }
}
