//! The data of the comparison page as JSON: the figures of every run, and the thresholds and texts
//! of a comparison. A text that several runs share is stored once.

use std::collections::HashMap;

use pagelab_analysis::comparison::{self, Caveat, Test, Verdict, caveats, detectable};
use pagelab_analysis::{
    counts_instructions, headline_metrics, is_deterministic, primary_metric, rank, signed_rank,
};
use pagelab_experiment::metrics::{self, Statistic};
use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::{MetricId, Run};
use serde::Serialize;
use serde_json::{Value, json};

use crate::comparisons;

/// A run's figures. A `usize` is an index into one of the pools in [`Data`].
#[derive(Serialize)]
struct RunData {
    id: i64,
    name: usize,
    /// Its page.
    page: usize,
    /// The command line that runs its experiment.
    experiment: usize,
    target: usize,
    started: usize,
    batch: usize,
    /// The numbers of the complete repetitions.
    repetitions: Vec<u32>,
    deterministic: bool,
    /// Whether its times are instruction counts.
    counts: bool,
    /// Its deciding metrics.
    family: usize,
    /// The environment entries that must be equal on both sides of a comparison.
    environment: Vec<Option<usize>>,
    /// For each of the last of these entries, whether the user set it, so that it may differ.
    asked: Vec<bool>,
    /// The warnings about every comparison with this run.
    warnings: Vec<usize>,
    /// The warning about a drift of the elapsed time.
    drift: Option<usize>,
    /// The metrics, in the order first seen, each with one value per repetition that measured it.
    metrics: Vec<(usize, Vec<f64>)>,
}

/// A metric as a run recorded it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct MetricData {
    name: String,
    unit: &'static str,
    better: &'static str,
    /// Whether it is declared as a maximum.
    maximum: bool,
}

/// The metrics of an experiment that decide a comparison, and its headline metrics.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize)]
struct Family {
    primary: Option<&'static str>,
    also: Vec<&'static str>,
    headline: Vec<&'static str>,
}

/// Distinct values in the order first seen.
struct Pool<T> {
    list: Vec<T>,
    places: HashMap<T, usize>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self { list: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Pool<T> {
    fn place(&mut self, one: T) -> usize {
        if let Some(place) = self.places.get(&one) {
            return *place;
        }
        self.list.push(one.clone());
        self.places.insert(one, self.list.len() - 1);
        self.list.len() - 1
    }
}

/// The figures of many runs.
#[derive(Default)]
pub(super) struct Data {
    texts: Pool<String>,
    metrics: Pool<MetricData>,
    families: Pool<Family>,
    runs: Vec<RunData>,
}

impl Data {
    /// Adds a run; `page` is the address of its page.
    pub fn add(&mut self, run: &Run, page: &str) {
        let header = &run.header;
        let declared = header.experiment.declaration();
        let names = |list: &[MetricId]| list.iter().map(|metric| metric.name).collect();
        let family = Family {
            primary: primary_metric(&header.experiment).map(|metric| metric.name),
            also: names(declared.also_decide()),
            headline: names(headline_metrics(&header.experiment)),
        };
        let environment = caveats::SAME.iter().chain(caveats::SAME_UNLESS_ASKED.iter().map(|(key, _)| key));
        let environment: Vec<Option<usize>> =
            environment.map(|key| Some(self.text(caveats::entry(run, key)?))).collect();
        let metrics = metrics_of(run);
        let data = RunData {
            id: run.id,
            name: self.text(&header.name),
            page: self.text(page),
            experiment: self.text(&header.experiment.to_string()),
            target: self.text(&header.target.brief()),
            started: self.text(&header.started),
            batch: self.text(&header.batch),
            repetitions: run.done().map(|repetition| repetition.number).collect(),
            deterministic: is_deterministic(run),
            counts: counts_instructions(run),
            family: self.families.place(family),
            environment,
            asked: caveats::SAME_UNLESS_ASKED.iter().map(|(_, word)| caveats::is_asked(run, word)).collect(),
            warnings: caveats::of_run(run).iter().map(|one| self.text(&comparisons::caveat(one))).collect(),
            drift: caveats::drift_of(run).map(|one| self.text(&comparisons::caveat(&one))),
            metrics: metrics
                .into_iter()
                .map(|(metric, values)| (self.metrics.place(metric), values))
                .collect(),
        };
        self.runs.push(data);
    }

    fn text(&mut self, text: &str) -> usize {
        self.texts.place(text.to_owned())
    }

    /// All data as JSON, with the thresholds and texts that the script needs for a comparison.
    pub fn json(&self) -> Value {
        let test = |test: Test| test.name();
        let verdict = |verdict| comparisons::verdict(verdict);
        // The script replaces these placeholders with the two sides.
        let (a, b) = (|| "{a}".to_owned(), || "{b}".to_owned());
        let environment = caveats::SAME.iter().chain(caveats::SAME_UNLESS_ASKED.iter().map(|(key, _)| key));
        json!({
            "limits": {
                "alpha": comparison::ALPHA, "practical": comparison::PRACTICAL, "headline": comparison::HEADLINE,
                "single": comparison::SINGLE, "woken": comparison::WOKEN, "repeated": comparison::REPEATED,
                "counted": comparison::COUNTED, "nothing": comparison::NOTHING, "repeats": comparison::REPEATS,
                "exactRanks": rank::EXACT, "exactPairs": signed_rank::EXACT,
            },
            "detectable": {
                "power": detectable::POWER, "simulations": detectable::SIMULATIONS,
                "fewest": detectable::MIN_SIMULATIONS, "work": detectable::WORK, "smooth": detectable::SMOOTH,
            },
            "tests": {
                "pairs": test(Test::Pairs), "ranks": test(Test::Ranks), "counts": test(Test::Counts),
                "sign": test(Test::Sign { baseline_exact: true }), "exact": test(Test::Exact),
            },
            "verdicts": {
                "better": verdict(Verdict::Better), "worse": verdict(Verdict::Worse),
                "changed": verdict(Verdict::Changed), "equal": verdict(Verdict::Equal),
                "none": verdict(Verdict::NoDifference), "boots": verdict(Verdict::WithinBoots),
                "inconclusive": verdict(Verdict::Inconclusive(0)),
            },
            "sentences": {
                "experiments": comparisons::caveat(&Caveat::Experiments(a(), b())),
                "units": comparisons::caveat(&Caveat::Units),
                "environment": comparisons::caveat(&Caveat::Environment("{key}", a(), b())),
                "interleaved": comparisons::caveat(&Caveat::NotInterleaved),
                "repetitions": comparisons::repetitions("{n}"),
                "singleCounts": comparisons::single_counts(),
            },
            "elapsed": metrics::TIME_ELAPSED.name,
            "environment": environment.collect::<Vec<_>>(),
            "unlessAsked": caveats::SAME_UNLESS_ASKED.len(),
            "texts": self.texts.list,
            "metrics": self.metrics.list,
            "families": self.families.list,
            "runs": self.runs,
        })
    }
}

/// A run's metrics in the order first seen, each with its recorded unit and all its values.
fn metrics_of(run: &Run) -> Vec<(MetricData, Vec<f64>)> {
    let mut list: Vec<(MetricData, Vec<f64>)> = Vec::new();
    for metric in run.done().flat_map(|r| &r.observations.metrics) {
        if list.iter().any(|(known, _)| known.name == metric.name) {
            continue;
        }
        let values = run.values_named(&metric.name);
        let declared = MetricId::find(&metric.name);
        let data = MetricData {
            name: metric.name.clone(),
            unit: unit(metric.unit),
            better: match metric.better {
                Better::Lower => "lower",
                Better::Higher => "higher",
                Better::Neither => "neither",
            },
            maximum: declared.is_some_and(|declared| declared.statistic == Statistic::Max),
        };
        if !values.is_empty() {
            list.push((data, values));
        }
    }
    list
}

/// The unit's name in the script.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Count => "count",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::PerSecond => "/s",
        Unit::BytesPerSecond => "bytes/s",
        Unit::Instructions => "instr",
        Unit::PerMillionInstructions => "/Minstr",
        Unit::BytesPerMillionInstructions => "bytes/Minstr",
        Unit::Ratio => "ratio",
    }
}
