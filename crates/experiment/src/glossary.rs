//! What the terms of the output mean, a paragraph each: `pagelab explain`, and docs/glossary.md.

mod metrics;
mod terms;

use crate::catalogue::METRICS;
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

/// The metrics, in the order of the catalogue: what each is, its unit, and how to read it.
pub fn metrics() -> Vec<Entry> {
    let paragraph =
        |name| metrics::READING.iter().find(|(metric, _)| *metric == name).map_or("", |(_, text)| text);
    let metric = |metric: &crate::catalogue::Definition| {
        let better = match metric.better {
            Better::Lower => "; lower is better",
            Better::Higher => "; higher is better",
            Better::Neither => "",
        };
        let mut help = metric.help.to_owned();
        help[..1].make_ascii_uppercase();
        let text = format!("{help} ({}{better}). {}", words(metric.unit), paragraph(metric.name));
        Entry { name: metric.name, text }
    };
    METRICS.iter().map(metric).collect()
}

/// A unit in words.
fn words(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count => "a count",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Share => "a share from 0 to 1",
        Unit::PerSecond => "a second",
        Unit::BytesPerSecond => "bytes a second",
        Unit::Instructions => "instructions",
        Unit::Ratio => "a ratio",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_one_paragraph_and_each_paragraph_a_metric() {
        let mut metrics: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let mut read: Vec<&str> = metrics::READING.iter().map(|(name, _)| *name).collect();
        metrics.sort_unstable();
        read.sort_unstable();
        assert_eq!(metrics, read);
    }

    #[test]
    fn terms_are_in_order_and_all_is_sentences() {
        let names: Vec<String> = terms::TERMS.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for entry in terms().into_iter().chain(metrics()) {
            assert!(entry.text.ends_with('.') && !entry.text.contains("  "), "{entry:?}");
        }
    }
}
