//! Findings on references to one mapping: what they cost, what paging adds, and what better replacement
//! would have spared.

use pagelab_experiment::Run;
use pagelab_experiment::experiments::{Experiment, Paging};
use pagelab_experiment::observation::Unit;

use super::figures;
use crate::finding::{Evidence, Figure, Finding, Statistic, What};
use crate::stats::median;

/// Bytes read for each major fault from which on the read-ahead is worth a word: twice the 128 KiB that
/// the kernel reads ahead unless told otherwise.
const MUCH_READ_AHEAD: f64 = 262_144.0;

/// What a reference costs, by kind.
pub fn access_time(run: &Run, paging: &Paging) -> Option<Finding> {
    let mut list = vec![Figure::of(run, "access.mean")?];
    let n = list[0].n;
    list.extend(figures(
        run,
        &[
            "access.hit.p50",
            "faults.major",
            "access.major.p50",
            "access.major.mean",
            "faults.minor",
            "access.minor.p50",
            "access.minor.mean",
        ],
    ));
    for (name, unit, value) in
        [("references", Unit::Count, paging.references), ("pages", Unit::Pages, paging.pages)]
    {
        list.push(Figure::derived(name, unit, Statistic::Value, value as f64, n));
    }
    if let (Some(read), Some(faults)) = (middle(run, "io.read"), middle(run, "faults.major"))
        && faults > 0.0
        && read / faults > MUCH_READ_AHEAD
    {
        list.push(Figure::derived("read-ahead", Unit::Bytes, Statistic::Mean, read / faults, n));
    }
    let what = What::AccessTime { pattern: paging.pattern.to_string() };
    Some(Finding::new(run, what, list, vec![Evidence::Metrics]))
}

fn middle(run: &Run, metric: &str) -> Option<f64> {
    median(&run.values(metric))
}

/// How much slower a reference gets past the limit: the same kind of mapping with and without
/// major faults, where `runs` has both on one target.
pub fn past_the_limit(runs: &[&Run]) -> Option<Finding> {
    let of_kind = |faulting: bool| {
        runs.iter().copied().find(|run| {
            matches!(run.header.experiment, Experiment::Mapanon(_))
                && middle(run, "faults.major").is_some_and(|faults| (faults > 0.0) == faulting)
        })
    };
    let (fits, exceeds) = (of_kind(false)?, of_kind(true)?);
    let Experiment::Mapanon(paging) = &exceeds.header.experiment else { return None };
    let limit = exceeds.header.setting.limit()?;
    let (inside, outside) = (Figure::of(fits, "access.mean")?, Figure::of(exceeds, "access.mean")?);
    if fits.header.target.kind != exceeds.header.target.kind || inside.unit != outside.unit {
        return None;
    }
    let absent = 1.0 - middle(exceeds, "pages.present")? / paging.pages as f64;
    let n = inside.n.min(outside.n);
    let slowdown = outside.value / inside.value;
    let list = vec![
        Figure::derived("slowdown", Unit::Ratio, Statistic::Ratio, slowdown, n),
        Figure { name: "access.mean.within".to_owned(), ..inside },
        Figure { name: "access.mean.past".to_owned(), ..outside },
        Figure::derived("pages.absent", Unit::Share, Statistic::Min, absent, n),
    ];
    let within = fits.header.name.clone();
    let evidence = vec![Evidence::Metrics, Evidence::Run(within.clone())];
    Some(Finding::new(exceeds, What::PastLimit { limit, within }, list, evidence))
}

/// How many of a kernel's major faults LRU and OPT would have had, on the same stream with the frames that
/// the limit really left; nothing for models and for runs without major faults.
pub fn regret(run: &Run) -> Option<Finding> {
    if crate::is_deterministic(run) {
        return None;
    }
    let regret = crate::regret::of_run(run).ok()??;
    let kernel = Figure::of(run, "faults.major")?;
    let n = kernel.n;
    let count = |name: &str, value: f64| Figure::derived(name, Unit::Count, Statistic::Value, value, n);
    let mut list = vec![
        kernel,
        Figure::derived("frames", Unit::Pages, Statistic::Max, f64::from(regret.frames), n),
        count("lru", regret.lru as f64),
        count("opt", regret.opt as f64),
    ];
    list.extend(
        regret.avoidable().map(|share| Figure::derived("avoidable", Unit::Share, Statistic::Ratio, share, n)),
    );
    list.extend(regret.minor.filter(|&minor| minor > 0.0).map(|minor| count("faults.minor", minor)));
    let evidence = vec![Evidence::Metrics, Evidence::Model("lru".into()), Evidence::Model("opt".into())];
    Some(Finding::new(run, What::Regret, list, evidence))
}
