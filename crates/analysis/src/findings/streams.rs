//! Findings on what was computed of a stream: misses against memory, the working set over time.

use pagelab_experiment::Run;
use pagelab_experiment::environment;
use pagelab_experiment::experiments::{Curve, WorkingSet};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{metrics, tables};

use super::{figures, table};
use crate::finding::{Evidence, Figure, Finding, Statistic, What};

/// The miss ratios at the smallest and the largest memory, and the mean over the sizes.
pub fn misses(run: &Run) -> Option<Finding> {
    let curve = run.header.experiment.parameters::<Curve>()?;
    let seen = table(run, tables::curve::TABLE)?;
    let (sizes, ratios) = (seen.numbers(tables::curve::SIZE)?, seen.numbers(tables::curve::RATIO)?);
    let mut list = figures(run, &[metrics::MISS_RATIO_MEAN, metrics::MISSES]);
    for (name, value) in
        [("size.min", sizes.first().copied().flatten()), ("size.max", sizes.last().copied().flatten())]
    {
        list.extend(value.map(|v| Figure::derived(name, Unit::Bytes, Statistic::Value, v, 1)));
    }
    for (name, value) in [
        ("miss.ratio.first", ratios.first().copied().flatten()),
        ("miss.ratio.last", ratios.last().copied().flatten()),
    ] {
        list.extend(value.map(|v| Figure::derived(name, Unit::Share, Statistic::Value, v, 1)));
    }
    let what = What::Curve { stream: curve.stream.clone() };
    Some(Finding::new(run, what, list, vec![Evidence::Table(tables::curve::TABLE)]))
}

/// The mean and the greatest working set.
pub fn working_set(run: &Run) -> Option<Finding> {
    let of = run.header.experiment.parameters::<WorkingSet>()?;
    let mut list = figures(run, &[metrics::WORKING_SET_MEAN, metrics::WORKING_SET_PEAK]);
    let page = run.repetitions.last().and_then(|r| r.observations.environment.get(environment::PAGE_SIZE));
    if let Some(page) = page.and_then(|bytes| bytes.parse::<f64>().ok()) {
        let bytes = |figure: &Figure| {
            let name = format!("{}.bytes", figure.name);
            Figure::derived(&name, Unit::Bytes, figure.statistic, figure.value * page, figure.n)
        };
        list.extend(list.iter().map(bytes).collect::<Vec<_>>());
    }
    let what = What::WorkingSet { of: of.of.clone() };
    (!list.is_empty())
        .then(|| Finding::new(run, what, list, vec![Evidence::Table(tables::working_set::TABLE)]))
}
