//! What the terms of the output mean, a paragraph each: `pagelab explain`, and
//! docs/src/reference/glossary.md.

mod terms;

use crate::catalogue;
use crate::metrics::MetricId;
use crate::observation::{Better, Unit};

/// A term or a metric with its paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub text: String,
}

/// The terms, in the order of the alphabet.
pub fn terms() -> Vec<Entry> {
    terms::TERMS.iter().map(|&(name, text)| Entry { name, text: text.to_owned() }).collect()
}

/// The metrics, in the order of their declarations: help, unit, statistic and paragraph.
pub fn metrics() -> Vec<Entry> {
    let metric = |metric: MetricId| {
        let better = match metric.better {
            Better::Lower => "; lower is better",
            Better::Higher => "; higher is better",
            Better::Neither => "",
        };
        let mut help = metric.help.to_owned();
        help[..1].make_ascii_uppercase();
        let statistic = metric.statistic.words();
        let text = format!("{help} ({}, {statistic}{better}). {}", words(metric.unit), metric.reading);
        Entry { name: metric.name, text }
    };
    catalogue::metrics().map(metric).collect()
}

/// A unit in words.
fn words(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count => "number",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Share => "from 0 to 1",
        Unit::PerSecond => "per second",
        Unit::BytesPerSecond => "bytes per second",
        Unit::Instructions => "instructions",
        Unit::PerMillionInstructions => "per million instructions",
        Unit::BytesPerMillionInstructions => "bytes per million instructions",
        Unit::Ratio => "a factor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_in_order_and_all_is_sentences() {
        let names: Vec<String> = terms::TERMS.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for entry in terms().into_iter().chain(metrics()) {
            assert!(entry.text.ends_with('.') && !entry.text.contains("  "), "{entry:?}");
        }
    }
}
