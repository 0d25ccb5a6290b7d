//! Every metric, declared once: name, unit, statistic, direction, one line of help, one paragraph.
//!
//! Metrics of one experiment are declared in its folder, the others here. A metric is a constant of
//! the type [`MetricId`]. Its name is text only on disk and on display.

mod pager;
mod renamed;
mod state;
mod statistic;
mod time;
mod traced;
mod work;

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

pub use self::pager::*;
pub use self::renamed::current;
pub use self::state::*;
pub use self::statistic::{Statistic, median};
pub use self::time::*;
pub use self::traced::*;
pub use self::work::*;
pub use crate::experiments::declared_metrics::*;
use crate::unit::{Better, Unit};

/// The metrics that no single experiment owns, by the file that declares them, and where a list of all metrics has those
/// of the experiments: behind the first.
pub(crate) const SHARED: (&[MetricId], [&[MetricId]; 4]) =
    (time::ALL, [work::ALL, state::ALL, traced::ALL, pager::ALL]);

/// A metric's definition.
#[derive(Debug)]
pub struct Definition {
    /// The name, in the notebook and on display: dotted lower-case words.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// Which statistic of its population the figure is, within one repetition.
    pub statistic: Statistic,
    /// Which direction is an improvement.
    pub better: Better,
    /// One line.
    pub help: &'static str,
    /// One paragraph: how the figure is read, and when it is missing.
    pub reading: &'static str,
}

/// A declared metric.
#[derive(Clone, Copy)]
pub struct MetricId(pub(crate) &'static Definition);

impl MetricId {
    /// The metric's statistic over some measurements.
    pub fn over(self, values: impl IntoIterator<Item = f64>) -> (Self, Option<f64>) {
        (self, self.statistic.over(values))
    }
}

impl Deref for MetricId {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.0
    }
}

impl PartialEq for MetricId {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for MetricId {}

impl PartialEq<str> for MetricId {
    fn eq(&self, name: &str) -> bool {
        self.name == name
    }
}

impl AsRef<str> for MetricId {
    fn as_ref(&self) -> &str {
        self.name
    }
}

impl fmt::Display for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl fmt::Debug for MetricId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

impl Serialize for MetricId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// Declares metrics: constant, name, unit, statistic, direction, help, paragraph.
macro_rules! metrics {
    ($($constant:ident = $name:literal, $unit:ident, $statistic:ident, $better:ident, $help:literal, $reading:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub const $constant: $crate::metrics::MetricId =
                $crate::metrics::MetricId::declared(&$crate::metrics::Definition {
                    name: $name,
                    unit: $crate::unit::Unit::$unit,
                    statistic: $crate::metrics::Statistic::$statistic,
                    better: $crate::unit::Better::$better,
                    help: $help,
                    reading: $reading,
                });
        )*
        /// The metrics declared here.
        pub(crate) const ALL: &[$crate::metrics::MetricId] = &[$($constant),*];
    };
}
pub(crate) use metrics;

impl MetricId {
    /// What [`metrics!`] makes of a definition.
    pub(crate) const fn declared(definition: &'static Definition) -> Self {
        Self(definition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::metrics as all;
    use crate::observation::Histogram;

    #[test]
    fn names_are_unique_lower_case_words() {
        let mut names: Vec<_> = all().map(|metric| metric.name).collect();
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
        assert!(names.iter().all(|name| name.chars().all(word)));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// The style guide's rules that a machine can check.
    #[test]
    fn texts_are_short_plain_sentences() {
        for metric in all() {
            let (help, reading) = (metric.help, metric.reading);
            assert!(reading.ends_with('.') && !help.ends_with('.'), "{metric}");
            for sentence in reading.split(". ") {
                assert!(sentence.split_whitespace().count() <= 25, "{metric}: {sentence}");
            }
            let text = format!(" {help} {reading} ").to_lowercase();
            for word in [
                " what ",
                " looks ",
                " a second ",
                " greatest ",
                " processor ",
                " a dash ",
                " in it. ",
                " in it, ",
            ] {
                assert!(!text.contains(word), "{metric}: '{word}'");
            }
        }
    }

    #[test]
    fn a_value_that_is_no_number_becomes_a_dash() {
        assert_eq!(TIME_USER.figure(Some(f64::NAN)).value, None);
    }

    /// A name that ends in a statistic is declared with it, and a unit with a statistic that it can have.
    #[test]
    fn a_statistic_agrees_with_name_and_unit() {
        for metric in all() {
            let named = match metric.name.rsplit('.').next() {
                Some("mean") => Some(Statistic::Mean),
                Some("p50") => Some(Statistic::Median),
                Some("p99") => Some(Statistic::P99),
                Some("p999") => Some(Statistic::P999),
                Some("max" | "peak" | "worst") => Some(Statistic::Max),
                Some("rate") => Some(Statistic::Rate),
                Some("ratio") => Some(Statistic::Ratio),
                _ => None,
            };
            assert!(named.is_none_or(|named| named == metric.statistic), "{metric}");
            let possible = match metric.statistic {
                Statistic::Total => matches!(metric.unit, Unit::Nanoseconds | Unit::Bytes),
                Statistic::Count => matches!(metric.unit, Unit::Count | Unit::Pages | Unit::Instructions),
                Statistic::Share => metric.unit == Unit::Share,
                Statistic::Ratio => metric.unit == Unit::Ratio,
                Statistic::Rate => matches!(metric.unit, Unit::PerSecond | Unit::Count),
                Statistic::Fit => false,
                _ => true,
            };
            assert!(possible, "{metric}: {:?} of {:?}", metric.statistic, metric.unit);
        }
    }

    #[test]
    fn a_distribution_gives_the_declared_statistic() {
        let buckets = (1..=1000).map(|value| (value, 1)).collect();
        let histogram =
            Histogram { name: "x".into(), unit: Unit::Nanoseconds, buckets, min: 1, max: 1000, sum: 500_500 };
        let of = |metric: MetricId| metric.of(&histogram).1;
        assert_eq!(of(ACCESS_MEAN), Some(500.5));
        assert_eq!([ACCESS_P50, ACCESS_P99, ACCESS_P999].map(of), [500.0, 990.0, 999.0].map(Some));
        assert_eq!((of(ACCESS_MAX), of(TIME_ELAPSED)), (Some(1000.0), Some(500_500.0)));
        assert_eq!(of(STATE_LOCK), None, "a share is no statistic of a distribution");
    }

    #[test]
    fn measurements_give_the_declared_statistic() {
        let over = |metric: MetricId| metric.over([3.0, 1.0, 8.0]).1;
        assert_eq!([MISS_RATIO_MEAN, UNMAP_MUNMAP, PAGES_PRESENT].map(over), [4.0, 3.0, 8.0].map(Some));
        assert_eq!([TIME_ELAPSED, FAULTS_MINOR, ZRAM_STORED].map(over), [12.0, 3.0, 8.0].map(Some));
        assert_eq!((over(STATE_LOCK), PAGES_PRESENT.over([]).1), (None, None));
    }
}
