//! The formats of two services that draw a benchmark's figures over commits: Bencher and
//! github-action-benchmark.

use pagelab_experiment::environment;
use std::collections::BTreeMap;
use std::io::{self, Write};

use pagelab_experiment::Run;
use pagelab_experiment::build::estimate;
use pagelab_experiment::observation::Unit;
use serde_json::{Map, Value, json};

use super::{repetitions, symbol};
use crate::runs::Measure;
use pagelab_analysis::stats::median;

/// The longest slug of a measure that Bencher takes.
const MAX_SLUG: usize = 64;

/// An object by benchmark, in it one by measure: the median, and its 95% interval where there are
/// enough repetitions for one.
pub(super) fn bencher(runs: &[(&Run, Vec<Measure>)], to: &mut impl Write) -> io::Result<()> {
    let mut benchmarks: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (run, measures) in runs {
        let name = distinct(name(run, runs), |name| benchmarks.contains_key(name));
        let entries = measures.iter().map(|measure| (slug(measure), metric(measure)));
        benchmarks.insert(name, entries.collect());
    }
    serde_json::to_writer_pretty(&mut *to, &benchmarks)?;
    writeln!(to)
}

fn metric(measure: &Measure) -> Value {
    let mut value = json!({ "value": median(&measure.values) });
    if let Some(estimate) = estimate(&measure.values) {
        value["lower_value"] = estimate.low.into();
        value["upper_value"] = estimate.high.into();
    }
    value
}

/// A measure's slug: its name and unit in kebab case.
fn slug(measure: &Measure) -> String {
    let unit = match measure.unit {
        Unit::PerSecond => "per-s",
        Unit::BytesPerSecond => "bytes-per-s",
        Unit::PerMillionInstructions => "per-minstr",
        Unit::BytesPerMillionInstructions => "bytes-per-minstr",
        Unit::Bytes => "bytes",
        unit => symbol(unit),
    };
    let text = format!("{}-{unit}", measure.name.replace('.', "-"));
    text.trim_end_matches('-').chars().take(MAX_SLUG).collect()
}

/// A list with an entry for each metric.
pub(super) fn action(runs: &[(&Run, Vec<Measure>)], to: &mut impl Write) -> io::Result<()> {
    let mut names = std::collections::BTreeSet::new();
    let mut list = Vec::new();
    for (run, measures) in runs {
        let title = distinct(name(run, runs), |name| !names.insert(name.to_owned()));
        for measure in measures {
            list.push(entry(run, &title, measure));
        }
    }
    serde_json::to_writer_pretty(&mut *to, &list)?;
    writeln!(to)
}

fn entry(run: &Run, title: &str, measure: &Measure) -> Value {
    let symbol = if measure.unit == Unit::Share { "share" } else { symbol(measure.unit) };
    let mut entry = json!({
        "name": format!("{}: {title}", measure.name),
        "unit": symbol,
        "value": median(&measure.values),
        "extra": conditions(run),
    });
    if let Some(e) = estimate(&measure.values) {
        entry["range"] = format!("{} … {}", e.low, e.high).into();
    }
    entry
}

/// Under which conditions: what another point of the same curve may differ in.
fn conditions(run: &Run) -> String {
    let fact = |key: &str| run.done().find_map(|r| r.observations.environment.get(key));
    let facts = [environment::KERNEL_RELEASE, environment::CPU_MODEL]
        .iter()
        .filter_map(|key| fact(key).map(|v| format!("{key} {v}")));
    let mut lines: Vec<String> = facts.collect();
    lines.push(repetitions(run));
    lines.push(format!("pagelab {}", run.header.pagelab));
    lines.join("\n")
}

/// The name of the run's series, with the target where runs on several kernels are written
/// together.
fn name(run: &Run, runs: &[(&Run, Vec<Measure>)]) -> String {
    let (series, target) = (run.header.series(), run.header.target.brief());
    let is_other = |(other, _): &(&Run, Vec<Measure>)| {
        other.header.series() == series && other.header.target.brief() != target
    };
    if runs.iter().any(is_other) { format!("{series} ({target})") } else { series }
}

/// `name`, with a number where it is `taken`: runs of the same thing are not laid over one another.
fn distinct(name: String, mut taken: impl FnMut(&str) -> bool) -> String {
    if !taken(&name) {
        return name;
    }
    let numbered = (2..).map(|n| format!("{name} ({n})"));
    numbered.into_iter().find(|name| !taken(name)).expect("some number is free")
}

#[cfg(test)]
mod tests {
    use pagelab_experiment::observation::Better;

    use super::*;

    #[test]
    fn slugs_are_short_and_have_the_unit() {
        let of = |name, unit| slug(&Measure { name, unit, better: Better::Lower, values: Vec::new() });
        assert_eq!(of("access.mean", Unit::Nanoseconds), "access-mean-ns");
        assert_eq!(of("faults.major", Unit::Count), "faults-major");
        assert_eq!(of("forks.rate", Unit::PerSecond), "forks-rate-per-s");
        assert_eq!(of("forks.rate", Unit::PerMillionInstructions), "forks-rate-per-minstr");
        assert_eq!(of(&"long.".repeat(30), Unit::Bytes).len(), MAX_SLUG);
    }
}
