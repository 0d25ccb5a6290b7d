//! What is seen: metrics, histograms, tables, page maps, counters, the environment, notes.
//!
//! Every target emits the same kinds, so any two runs can be laid side by side. What could not be
//! measured is absent or `None`, never zero.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::{MetricId, Statistic};
use crate::packed;
use crate::tables::{ColumnId, TableId};
pub use crate::unit::{Better, Unit};

/// One figure of one repetition. The declared ones are [`crate::metrics`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Dotted lower-case name, such as `access.major.p99`.
    pub name: String,
    /// The unit.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// The figure; `None`: could not be measured.
    pub value: Option<f64>,
}

/// A distribution of whole numbers, exact to three significant figures (HDR histogram buckets).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// Dotted name: `access.hit`, `access.minor`, `access.major`.
    pub name: String,
    /// The unit of the values.
    pub unit: Unit,
    /// The buckets that hold something, ascending: (highest value of the bucket, how many).
    pub buckets: Vec<(u64, u64)>,
    /// The smallest value, exact.
    pub min: u64,
    /// The largest value, exact.
    pub max: u64,
    /// The sum of all values, exact.
    pub sum: u64,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Values {
    /// Numbers; `None`: not measured.
    Number(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<String>),
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The name, such as `faults.major`.
    pub name: String,
    /// The unit of numbers; `None` for texts.
    pub unit: Option<Unit>,
    /// One value for each row.
    pub values: Values,
}

impl Column {
    /// Its numbers.
    pub fn numbers(&self) -> Option<&[Option<f64>]> {
        match &self.values {
            Values::Number(numbers) => Some(numbers),
            Values::Text(_) => None,
        }
    }

    /// Its texts.
    pub fn texts(&self) -> Option<&[String]> {
        match &self.values {
            Values::Text(texts) => Some(texts),
            Values::Number(_) => None,
        }
    }
}

/// A table of equally long columns: the windows of a run, the sizes of a sweep, a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The name: `windows` (one row for each window of a run), `sizes`, `workers`, `profile` …
    pub name: String,
    /// The columns; the first is the abscissa.
    pub columns: Vec<Column>,
}

impl MetricId {
    /// The figure of this metric; a value that is no number is a missing one.
    pub fn figure(self, value: Option<f64>) -> Metric {
        Metric {
            name: self.name.to_owned(),
            unit: self.unit,
            better: self.better,
            value: value.filter(|value| value.is_finite()),
        }
    }

    /// The metric's statistic of a distribution.
    pub fn of(self, histogram: &Histogram) -> (Self, Option<f64>) {
        (self, self.statistic.of(histogram))
    }
}

impl Statistic {
    /// This statistic of a distribution; `None` when that is empty, and of a statistic that no
    /// distribution has.
    pub fn of(self, histogram: &Histogram) -> Option<f64> {
        let exact = |value: u64| (histogram.count() > 0).then_some(value as f64);
        let quantile = |q| histogram.quantile(q).map(|value| value as f64);
        match self {
            Self::Mean => histogram.mean(),
            Self::Median => quantile(0.5),
            Self::P99 => quantile(0.99),
            Self::P999 => quantile(0.999),
            Self::Min => exact(histogram.min),
            Self::Max => exact(histogram.max),
            Self::Total => exact(histogram.sum),
            Self::Count => Some(histogram.count() as f64),
            _ => None,
        }
    }
}

impl ColumnId {
    /// The column with these numbers.
    pub fn of(self, numbers: Vec<Option<f64>>) -> Column {
        Column { name: self.name.to_owned(), unit: self.unit, values: Values::Number(numbers) }
    }
}

/// A set of pages as run lengths: the number of pages not in the set, then in it, then not, …
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSet {
    #[serde(with = "packed")]
    runs: Vec<u32>,
}

/// Which pages are where at one point of a run, and how they were referenced up to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSnapshot {
    /// The number of references made so far.
    pub reference: u64,
    /// The size of the mapping in pages.
    pub pages: u32,
    /// The pages in memory.
    pub present: PageSet,
    /// The pages in swap (empty for a file mapping).
    pub swapped: PageSet,
    /// For each page, how often it was referenced so far.
    #[serde(with = "packed")]
    pub count: Vec<u32>,
    /// For each page, the number (from 1) of the last reference to it; 0: never.
    #[serde(with = "packed")]
    pub last: Vec<u32>,
}

/// A counter of the kernel before and after a repetition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counter {
    /// Where it was read: `vmstat`, `memory.stat`, …
    pub source: String,
    /// The kernel's own name.
    pub name: String,
    /// At the start.
    pub before: i64,
    /// At the end.
    pub after: i64,
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Good to know: what could not be bounded or measured, and how to get it.
    Info,
    /// Spoils a comparison.
    Warning,
}

/// A sentence for the reader of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How much it matters.
    pub level: Level,
    /// The sentence, with the remedy.
    pub text: String,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "value", rename_all = "kebab-case")]
pub enum Observation {
    /// Facts about the machine and its state, by name (see [`crate::environment::ALL`]).
    Environment(BTreeMap<String, String>),
    /// A figure.
    Metric(Metric),
    /// A distribution.
    Histogram(Histogram),
    /// A table.
    Table(Table),
    /// A page map.
    Pages(PageSnapshot),
    /// Kernel counters.
    Counters(Vec<Counter>),
    /// A remark.
    Note(Note),
    /// Text that belongs to the run: a console log, folded stacks. (name, text)
    Log(String, String),
}

/// Everything seen in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Observations {
    /// Facts about the machine.
    pub environment: BTreeMap<String, String>,
    /// The figures.
    pub metrics: Vec<Metric>,
    /// The distributions.
    pub histograms: Vec<Histogram>,
    /// The tables.
    pub tables: Vec<Table>,
    /// The page maps, in order.
    pub pages: Vec<PageSnapshot>,
    /// The kernel's counters.
    pub counters: Vec<Counter>,
    /// The remarks.
    pub notes: Vec<Note>,
    /// The logs: (name, text).
    pub logs: Vec<(String, String)>,
}

impl Observations {
    /// Adds one observation.
    pub fn add(&mut self, observation: Observation) {
        match observation {
            Observation::Environment(entries) => self.environment.extend(entries),
            Observation::Metric(metric) => self.metrics.push(metric),
            Observation::Histogram(histogram) => self.histograms.push(histogram),
            Observation::Table(table) => self.tables.push(table),
            Observation::Pages(snapshot) => self.pages.push(snapshot),
            Observation::Counters(counters) => self.counters.extend(counters),
            Observation::Note(note) => self.notes.push(note),
            Observation::Log(name, text) => self.logs.push((name, text)),
        }
    }

    /// The figure of this metric, where measured.
    pub fn metric(&self, metric: MetricId) -> Option<f64> {
        self.metric_named(metric.name)
    }

    /// The figure of this stored name, which need not be a declared one, where measured.
    pub fn metric_named(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|m| m.name == name).and_then(|m| m.value)
    }

    /// The distribution of this name.
    pub fn histogram(&self, name: &str) -> Option<&Histogram> {
        self.histograms.iter().find(|h| h.name == name)
    }

    /// This table.
    pub fn table(&self, table: TableId) -> Option<&Table> {
        self.table_named(table.name)
    }

    /// The table of this stored name, which need not be a declared one.
    pub fn table_named(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }
}

impl Histogram {
    /// The number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, n)| n).sum()
    }

    /// The value that a share `q` (0 to 1) of all values does not exceed; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        let wanted = ((q * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut sum = 0;
        for &(value, n) in &self.buckets {
            sum += n;
            if sum >= wanted {
                return Some(value.min(self.max));
            }
        }
        None
    }

    /// The mean; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }
}

impl Table {
    /// Whether all the numbers of a row are 0: nothing of the kind happened. What was not measured is not 0.
    pub fn nothing_in(&self, row: usize) -> bool {
        let numbers = self.columns.iter().filter_map(Column::numbers);
        let all: Vec<f64> = numbers.filter_map(|numbers| numbers.get(row).copied().flatten()).collect();
        !all.is_empty() && all.iter().all(|&number| number == 0.0)
    }

    /// This column.
    pub fn column(&self, column: ColumnId) -> Option<&Column> {
        self.columns.iter().find(|c| c.name == column.name)
    }

    /// The numbers of this column.
    pub fn numbers(&self, column: ColumnId) -> Option<&[Option<f64>]> {
        self.numbers_named(column.name)
    }

    /// The numbers of the column of this stored name, which need not be a declared one.
    pub fn numbers_named(&self, name: &str) -> Option<&[Option<f64>]> {
        self.columns.iter().find(|column| column.name == name)?.numbers()
    }

    /// The texts of this column.
    pub fn texts(&self, column: ColumnId) -> Option<&[String]> {
        self.column(column)?.texts()
    }
}

impl PageSet {
    /// The set of the pages whose flag is true.
    pub fn from_flags(flags: impl IntoIterator<Item = bool>) -> Self {
        let mut runs = Vec::new();
        let mut current = false;
        let mut length = 0;
        for flag in flags {
            if flag != current {
                runs.push(length);
                length = 0;
                current = flag;
            }
            length += 1;
        }
        if current {
            runs.push(length);
        }
        Self { runs }
    }

    /// The run lengths: not in the set, in it, not, … The pages behind the last run are not in it.
    pub fn runs(&self) -> &[u32] {
        &self.runs
    }

    /// A set from its run lengths, such as the notebook keeps them.
    pub fn from_runs(runs: Vec<u32>) -> Self {
        Self { runs }
    }

    /// The number of pages in the set.
    pub fn len(&self) -> u64 {
        self.runs.iter().skip(1).step_by(2).map(|&n| u64::from(n)).sum()
    }

    /// Whether no page is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One flag for each of `pages` pages.
    pub fn flags(&self, pages: u32) -> Vec<bool> {
        let mut flags = Vec::with_capacity(pages as usize);
        let mut inside = false;
        for &run in &self.runs {
            let room = pages as usize - flags.len();
            flags.extend(std::iter::repeat_n(inside, room.min(run as usize)));
            inside = !inside;
        }
        flags.resize(pages as usize, false);
        flags
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_page_set_gives_its_flags_back(flags: Vec<bool>) {
            let set = PageSet::from_flags(flags.iter().copied());
            prop_assert_eq!(set.len(), flags.iter().filter(|&&f| f).count() as u64);
            prop_assert_eq!(set.flags(flags.len() as u32), flags);
        }

        #[test]
        fn a_snapshot_survives_json(count: Vec<u32>, flags: Vec<bool>) {
            let snapshot = PageSnapshot {
                reference: 7,
                pages: flags.len() as u32,
                present: PageSet::from_flags(flags.iter().copied()),
                swapped: PageSet::default(),
                last: count.clone(),
                count,
            };
            let observation = Observation::Pages(snapshot);
            let json = serde_json::to_string(&observation).unwrap();
            prop_assert_eq!(serde_json::from_str::<Observation>(&json).unwrap(), observation);
        }
    }

    #[test]
    fn quantiles_of_a_histogram() {
        let histogram = Histogram {
            name: "x".into(),
            unit: Unit::Nanoseconds,
            buckets: vec![(10, 98), (100, 1), (1000, 1)],
            min: 10,
            max: 999,
            sum: 98 * 10 + 100 + 999,
        };
        assert_eq!(histogram.quantile(0.5), Some(10));
        assert_eq!(histogram.quantile(0.99), Some(100));
        assert_eq!(histogram.quantile(1.0), Some(999));
        assert_eq!(Histogram { buckets: vec![], ..histogram }.quantile(0.5), None);
    }
}
