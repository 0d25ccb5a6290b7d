//! A program's exact counts against a baseline that is kept in a file.
//!
//! In a guest that counts instructions a program does the same every time, so a change of one count
//! is a change of the program, its libraries or the kernel. Counts that still differ between the
//! repetitions have a spread, and a change within it is none.

use std::collections::BTreeMap;

use pagelab_experiment::metrics::{
    FAULTS_MAJOR, FAULTS_MINOR, INSTRUCTIONS_KERNEL, INSTRUCTIONS_USER, MEMORY_PEAK, PAGES_TOUCHED,
    SYSTEM_CALLS,
};
use pagelab_experiment::tables::system_calls;
use pagelab_experiment::{MetricId, Run, environment};
use serde::{Deserialize, Serialize};

/// The counts of a program, in the order in which they are shown. All are better when lower.
pub const COUNTS: [MetricId; 7] = [
    INSTRUCTIONS_USER,
    INSTRUCTIONS_KERNEL,
    SYSTEM_CALLS,
    FAULTS_MINOR,
    FAULTS_MAJOR,
    PAGES_TOUCHED,
    MEMORY_PEAK,
];
/// The version of the file that this pagelab writes, and the only one that it reads.
pub const VERSION: u32 = 1;

/// The file: the baselines of programs by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baselines {
    /// [`VERSION`].
    pub pagelab_gate: u32,
    /// By the name of each program.
    pub programs: BTreeMap<String, Counts>,
}

impl Default for Baselines {
    fn default() -> Self {
        Self { pagelab_gate: VERSION, programs: BTreeMap::new() }
    }
}

/// Why a text is no file of baselines.
#[derive(Debug, thiserror::Error)]
pub enum BaselinesError {
    /// It is something else, or damaged.
    #[error("it is no baseline of pagelab gate: {0}")]
    Foreign(#[from] serde_json::Error),
    /// A later pagelab wrote it.
    #[error("its version is {0}, and this pagelab reads {VERSION}")]
    Version(u32),
}

impl Baselines {
    /// Reads a file's text.
    ///
    /// # Errors
    /// When it is something else, damaged, or of another version.
    pub fn parse(text: &str) -> Result<Self, BaselinesError> {
        /// What every version has.
        #[derive(Deserialize)]
        struct Any {
            pagelab_gate: u32,
        }
        let any: Any = serde_json::from_str(text)?;
        match any.pagelab_gate {
            VERSION => Ok(serde_json::from_str(text)?),
            other => Err(BaselinesError::Version(other)),
        }
    }

    /// The file's text: one that a version control system compares by line.
    pub fn text(&self) -> String {
        serde_json::to_string_pretty(self).expect("names and numbers are JSON") + "\n"
    }
}

/// What was counted of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The release of the kernel.
    pub kernel: String,
    /// The version of the emulator.
    pub emulator: String,
    /// By the name of the metric.
    pub counts: BTreeMap<String, Count>,
    /// Calls of each system call, in the first repetition.
    pub system_calls: BTreeMap<String, u64>,
}

/// A count over all repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// The least of all repetitions: what the program needs.
    pub least: u64,
    /// By how much the largest is larger; `None` of a single repetition: it is unknown.
    pub spread: Option<u64>,
}

impl Counts {
    /// Of the repetitions of `run` that count; `None` where one of the [`COUNTS`] is missing.
    pub fn of(run: &Run) -> Option<Self> {
        let count = |metric: MetricId| {
            let values = run.values(metric);
            let least = values.iter().copied().reduce(f64::min)?;
            let most = values.iter().copied().reduce(f64::max)?;
            let spread = (values.len() > 1).then_some((most - least) as u64);
            let count = Count { least: least as u64, spread };
            Some((metric.name.to_owned(), count))
        };
        let first = &run.done().next()?.observations;
        let entry = |name: &str| first.environment.get(name).cloned();
        let table = first.table(system_calls::TABLE)?;
        let calls = table.texts(system_calls::CALL)?.iter().zip(table.numbers(system_calls::CALLS)?);
        Some(Self {
            kernel: entry(environment::KERNEL_RELEASE)?,
            emulator: entry(environment::GUEST_QEMU)?,
            counts: COUNTS.into_iter().map(count).collect::<Option<_>>()?,
            system_calls: calls
                .filter_map(|(call, number)| Some((call.clone(), (*number)? as u64)))
                .collect(),
        })
    }
}

/// How a count compares with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The same number.
    Same,
    /// It differs by no more than the repetitions do.
    WithinSpread,
    /// Lower.
    Better,
    /// Higher, by no more than is allowed.
    Allowed,
    /// Higher by more than is allowed.
    Worse,
}

/// A count beside its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The metric.
    pub metric: MetricId,
    /// The baseline's.
    pub before: Count,
    /// The present one.
    pub now: Count,
    /// How they compare.
    pub verdict: Verdict,
}

impl Line {
    /// The larger spread of both; `None` where both are unknown.
    pub fn spread(&self) -> Option<u64> {
        self.before.spread.max(self.now.spread)
    }

    /// The change as a share of the baseline; `None` where that is 0.
    pub fn change(&self) -> Option<f64> {
        (self.before.least > 0).then(|| self.now.least as f64 / self.before.least as f64 - 1.0)
    }
}

/// A system call that is called more or less often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Call {
    /// Its name.
    pub call: String,
    /// Calls in the baseline.
    pub before: u64,
    /// Calls now.
    pub now: u64,
}

/// A program against its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// Each of [`COUNTS`].
    pub lines: Vec<Line>,
    /// The system calls whose number differs, the greatest difference first.
    pub calls: Vec<Call>,
}

impl Judgement {
    /// `now` against `before`, where a count may be higher by `percent`.
    pub fn new(before: &Counts, now: &Counts, percent: f64) -> Self {
        let line = |metric: MetricId| {
            let (before, now) = (*before.counts.get(metric.name)?, *now.counts.get(metric.name)?);
            Some(Line { metric, before, now, verdict: verdict(before, now, percent) })
        };
        let names = before.system_calls.keys().chain(now.system_calls.keys());
        let number = |counts: &Counts, call: &str| counts.system_calls.get(call).copied().unwrap_or(0);
        let call =
            |call: &String| Call { call: call.clone(), before: number(before, call), now: number(now, call) };
        let mut calls: Vec<Call> = names.map(call).filter(|call| call.before != call.now).collect();
        calls.sort_by(|a, b| {
            let size = |call: &Call| call.before.abs_diff(call.now);
            (size(b), &a.call).cmp(&(size(a), &b.call))
        });
        calls.dedup();
        Self { lines: COUNTS.into_iter().filter_map(line).collect(), calls }
    }

    /// The counts that are worse.
    pub fn worse(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.verdict == Verdict::Worse)
    }
}

fn verdict(before: Count, now: Count, percent: f64) -> Verdict {
    let spread = before.spread.max(now.spread).unwrap_or(0);
    match now.least {
        least if least == before.least => Verdict::Same,
        least if least.abs_diff(before.least) <= spread => Verdict::WithinSpread,
        least if least < before.least => Verdict::Better,
        least if least as f64 > before.least as f64 * (1.0 + percent / 100.0) => Verdict::Worse,
        _ => Verdict::Allowed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(numbers: [(u64, Option<u64>); 7], calls: &[(&str, u64)]) -> Counts {
        let named = COUNTS.iter().zip(numbers);
        Counts {
            kernel: "6.1".into(),
            emulator: "7.2".into(),
            counts: named
                .map(|(metric, (least, spread))| (metric.name.to_owned(), Count { least, spread }))
                .collect(),
            system_calls: calls.iter().map(|&(call, number)| (call.to_owned(), number)).collect(),
        }
    }

    #[test]
    fn a_change_within_the_spread_is_none_and_one_beyond_the_percentage_is_worse() {
        let known = |numbers: [u64; 7], second| {
            let mut numbers = numbers.map(|number| (number, Some(0)));
            numbers[1].1 = second;
            counts(numbers, &[])
        };
        let before = known([1000, 1000, 10, 10, 0, 50, 4096], Some(8));
        let now = known([1011, 1008, 10, 9, 1, 50, 4100], None);
        let judged = Judgement::new(&before, &now, 1.0);
        let verdicts: Vec<Verdict> = judged.lines.iter().map(|line| line.verdict).collect();
        use Verdict::{Allowed, Better, Same, WithinSpread, Worse};
        assert_eq!(verdicts, [Worse, WithinSpread, Same, Better, Worse, Same, Allowed]);
        let worse: Vec<&str> = judged.worse().map(|line| line.metric.name).collect();
        assert_eq!(worse, ["instructions.user", "faults.major"]);
        assert_eq!(judged.lines[4].change(), None, "nothing before");
    }

    #[test]
    fn calls_that_differ_come_with_the_greatest_difference_first() {
        let none = [(0, None); 7];
        let before = counts(none, &[("read", 10), ("write", 3), ("brk", 3)]);
        let now = counts(none, &[("read", 20), ("write", 3), ("mmap", 1)]);
        let judged = Judgement::new(&before, &now, 0.0);
        let told: Vec<_> =
            judged.calls.iter().map(|call| (call.call.as_str(), call.before, call.now)).collect();
        assert_eq!(told, [("read", 10, 20), ("brk", 3, 0), ("mmap", 0, 1)]);
    }

    #[test]
    fn another_file_is_refused() {
        assert!(matches!(Baselines::parse("{}"), Err(BaselinesError::Foreign(_))));
        assert!(matches!(
            Baselines::parse("{\"pagelab_gate\": 2, \"more\": 1}"),
            Err(BaselinesError::Version(2))
        ));
        assert!(Baselines::parse("{\"pagelab_gate\": 1, \"programs\": {}, \"more\": 1}").is_err());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(numbers: [(u64, Option<u64>); 7], name: String, calls: BTreeMap<String, u64>) {
            let calls: Vec<(&str, u64)> = calls.iter().map(|(call, n)| (call.as_str(), *n)).collect();
            let mut baselines = Baselines::default();
            baselines.programs.insert(name, counts(numbers, &calls));
            prop_assert_eq!(Baselines::parse(&baselines.text()).unwrap(), baselines);
        }

        #[test]
        fn nothing_is_worse_than_itself(numbers: [(u64, Option<u64>); 7], percent in 0.0..100.0) {
            let one = counts(numbers, &[]);
            let judged = Judgement::new(&one, &one, percent);
            prop_assert!(judged.lines.iter().all(|line| line.verdict == Verdict::Same));
        }

        #[test]
        fn no_text_panics(text: String) {
            let _ = Baselines::parse(&text);
        }
    }
}
