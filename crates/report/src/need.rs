//! How much memory running tasks need: in words, as a table, and as a section of a page.

use pagelab_analysis::figure::{Axis, Plot, RangeBar, RangeBars, Series};
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
    /// Bytes of referenced pages that other processes map too; `None` if unknown.
    #[serde(rename = "shared_bytes")]
    pub shared: Option<u64>,
    /// Bytes resident at the end.
    #[serde(rename = "resident_bytes")]
    pub resident: u64,
    /// Of these, bytes of private memory.
    #[serde(rename = "resident_private_bytes")]
    pub resident_private: u64,
}

/// How the references of a process were found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Method {
    /// By the accessed bit of every page. The bounds are exact but for shared mappings and the TLB.
    AccessedBits {
        /// The share of the time that walking the page tables takes.
        walk_share: f64,
        /// Why DAMON was not used, where it would have cost less.
        without_damon: Option<String>,
    },
    /// By DAMON, from a sample of the pages. The bounds are a 95% confidence interval.
    Damon {
        /// The share of the time that walking the page tables would have taken.
        walk_share: f64,
        /// The pages that were sampled for each age.
        samples: usize,
    },
}

/// Private memory by the time since its last reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// Not referenced for so many seconds.
    #[serde(rename = "from_seconds")]
    pub from: u32,
    /// Referenced within so many seconds; `None`: not within the measurement.
    #[serde(rename = "to_seconds")]
    pub to: Option<u32>,
    /// Bytes of private memory.
    #[serde(rename = "private_bytes")]
    pub size: u64,
}

/// The private memory by the time since its last reference: that which was referenced within an age
/// and not within the one before, and the rest of the resident memory.
pub fn histogram(ages: &[Age]) -> Vec<Bin> {
    let (mut from, mut within) = (0, 0);
    let mut bins: Vec<Bin> = Vec::with_capacity(ages.len() + 1);
    for age in ages {
        // A sample of a longer time may find less.
        let size = age.size.saturating_sub(within);
        bins.push(Bin { from, to: Some(age.seconds), size });
        (from, within) = (age.seconds, within + size);
    }
    let rest = ages.last().map_or(0, |last| last.resident_private.saturating_sub(within));
    bins.push(Bin { from, to: None, size: rest });
    bins
}

impl Bin {
    fn words(&self) -> String {
        match (self.from, self.to) {
            (0, Some(to)) => format!("within {to} s"),
            (from, Some(to)) => format!("{from} to {to} s ago"),
            (from, None) => format!("over {from} s ago"),
        }
    }
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
pub fn ages_answer(name: &str, ages: &[Age], method: &Method) -> String {
    let Some(last) = ages.last() else { return String::new() };
    let [size, lower, upper, resident] = [last.size, last.lower, last.upper, last.resident].map(bytes);
    let seconds = last.seconds;
    match method {
        Method::AccessedBits { walk_share, without_damon } => {
            let mut answer = format!(
                "{name} needs at least {size}: the private memory that it referenced within {seconds} s (between \
                 {lower} and {upper}), of {resident} resident. That does not include {} of files that other \
                 processes map too, files that it reads with read(2), kernel memory, or memory that it uses more \
                 rarely. The accessed bits of all pages were read, which took {} of the time.",
                bytes(last.shared.unwrap_or(0)),
                percent(*walk_share)
            );
            if let Some(why) = without_damon {
                answer += &format!(" DAMON would have taken less, but this machine {why}.");
            }
            answer
        }
        Method::Damon { walk_share, samples } => format!(
            "{name} needs at least {size}: the anonymous memory that it referenced within {seconds} s (95% confidence \
             interval from {lower} to {upper}, TLB included), of {resident} resident. That does not include files, shared memory, \
             kernel memory, or memory that it uses more rarely. DAMON sampled {} pages per age, because walking the \
             page tables would take {} of the time.",
            text::count(*samples as f64),
            percent(*walk_share)
        ),
    }
}

/// One row per class of the histogram.
pub fn histogram_table(ages: &[Age]) -> TextTable {
    const BAR: f64 = 30.0;
    let bins = histogram(ages);
    let all = bins.iter().map(|bin| bin.size).sum::<u64>().max(1) as f64;
    let row = |bin: &Bin| {
        let share = bin.size as f64 / all;
        let bar = "█".repeat((share * BAR).round() as usize);
        // A figure, so that the column is flush right.
        vec![bin.words(), bytes(bin.size), percent(share).replace("under ", "<"), bar]
    };
    TextTable::new(
        "Private memory by the time since its last reference",
        ["last referenced", "memory", "share", ""],
        bins.iter().map(row),
    )
}

/// One row per age.
pub fn ages_table(ages: &[Age]) -> TextTable {
    let row = |age: &Age| {
        let [size, lower, upper, resident] = [age.size, age.lower, age.upper, age.resident].map(bytes);
        let shared = age.shared.map_or_else(|| DASH.to_owned(), bytes);
        vec![format!("{} s", age.seconds), size, lower, upper, shared, resident]
    };
    TextTable::new(
        "Referenced memory by age",
        ["within", "private", "lower", "upper", "shared", "resident"],
        ages.iter().map(row),
    )
}

/// The section of a page.
pub fn ages_section(name: &str, ages: &[Age], method: &Method) -> Section {
    let mut plot = Plot::new(
        "Referenced memory by age",
        match method {
            Method::AccessedBits { .. } => {
                "Private memory that was referenced within the time, and its bounds."
            }
            Method::Damon { .. } => {
                "Anonymous memory that was referenced within the time, with its 95% confidence interval."
            }
        },
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
    let bar =
        |bin: &Bin| RangeBar { label: bin.words(), value: Some(bin.size as f64), ..RangeBar::default() };
    let bars = RangeBars {
        title: "Private memory by the time since its last reference".to_owned(),
        caption:
            "Memory that was referenced within a time and not within the time before, and the rest of the \
                  resident memory."
                .to_owned(),
        unit: "bytes",
        colors: Vec::new(),
        rows: histogram(ages).iter().map(bar).collect(),
    };
    Section {
        heading: name.to_owned(),
        answer: ages_answer(name, ages, method),
        ranges: vec![bars],
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

    fn age(seconds: u32, size: u64) -> Age {
        let [size, resident, resident_private] = [size, 50, 40].map(|mib| mib << 20);
        Age { seconds, size, lower: size - 1, upper: size + 1, shared: None, resident, resident_private }
    }

    #[test]
    fn the_histogram_has_all_private_memory() {
        let ages = [age(1, 16), age(2, 15), age(4, 20)];
        let bins = histogram(&ages);
        let mib: Vec<u64> = bins.iter().map(|bin| bin.size >> 20).collect();
        assert_eq!(mib, [16, 0, 4, 20], "a smaller sample adds nothing");
        let words: Vec<String> = bins.iter().map(Bin::words).collect();
        assert_eq!(words, ["within 1 s", "1 to 2 s ago", "2 to 4 s ago", "over 4 s ago"]);
        assert_eq!(histogram_table(&ages).rows[3][1..3], ["20 MiB", "50%"]);
        assert_eq!(histogram(&[]).len(), 1);
    }

    #[test]
    fn the_answer_names_the_method_and_its_error() {
        let ages = [age(1, 16), age(12, 20)];
        let bits = |without_damon| Method::AccessedBits { walk_share: 0.03, without_damon };
        let exact = ages_answer("web (7)", &ages, &bits(None));
        assert!(exact.contains("needs at least 20 MiB") && exact.contains("took 3% of the time."), "{exact}");
        assert!(!exact.contains("DAMON"), "{exact}");
        let without = ages_answer("web (7)", &ages, &bits(Some("has none".to_owned())));
        assert!(without.ends_with("DAMON would have taken less, but this machine has none."), "{without}");
        let sampled = ages_answer("web (7)", &ages, &Method::Damon { walk_share: 0.03, samples: 1001 });
        for part in ["95% confidence interval", "DAMON sampled 1,001 pages", "would take 3% of the time"] {
            assert!(sampled.contains(part), "{part}: {sampled}");
        }
        let json = serde_json::to_value(Method::Damon { walk_share: 0.03, samples: 1001 }).unwrap();
        assert_eq!(json, serde_json::json!({ "by": "damon", "walk_share": 0.03, "samples": 1001 }));
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
