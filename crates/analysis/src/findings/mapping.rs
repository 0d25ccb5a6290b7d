//! Findings on references to one mapping: what they cost, what paging adds, and what better replacement
//! would have spared.

use pagelab_experiment::experiments::{Backing, Load, Paging};
use pagelab_experiment::observation::{Table, Unit, Values};
use pagelab_experiment::{Run, Setting};
use pagelab_experiment::{metrics, tables};

use super::figures;
use crate::finding::{Evidence, Figure, Finding, Statistic, What};
use crate::ladder::read_by_a_fault;
use crate::stats::middle;

/// Bytes read for each major fault from which on the read-ahead is worth a word: twice the 128 KiB that
/// the kernel reads ahead unless told otherwise.
const MUCH_READ_AHEAD: f64 = 262_144.0;

/// What a reference costs, by kind.
pub fn access_time(run: &Run) -> Option<Finding> {
    let paging = run.header.experiment.parameters::<Paging>()?;
    let mut list = vec![Figure::of(run, metrics::ACCESS_MEAN)?];
    let n = list[0].n;
    list.extend(figures(
        run,
        &[
            metrics::ACCESS_HIT_P50,
            metrics::FAULTS_MAJOR,
            metrics::ACCESS_MAJOR_P50,
            metrics::ACCESS_MAJOR_MEAN,
            metrics::FAULTS_MINOR,
            metrics::ACCESS_MINOR_P50,
            metrics::ACCESS_MINOR_MEAN,
        ],
    ));
    for (name, unit, value) in
        [("references", Unit::Count, paging.references), ("pages", Unit::Pages, paging.pages)]
    {
        list.push(Figure::derived(name, unit, Statistic::Value, value as f64, n));
    }
    if let Some(read) = read_by_a_fault(run).filter(|&read| read > MUCH_READ_AHEAD) {
        list.push(Figure::derived("read-ahead", Unit::Bytes, Statistic::Mean, read, n));
    }
    let what = What::AccessTime { pattern: paging.pattern.to_string() };
    Some(Finding::new(run, what, list, vec![Evidence::Metrics]))
}

/// How far transparent huge pages covered the mapping, and what the kernel counted about them from before it was
/// populated to the last reference; nothing where the run allowed none.
pub fn huge_pages(run: &Run) -> Option<Finding> {
    let mut list = vec![Figure::of(run, metrics::HUGE_COVERAGE_BEFORE)?];
    list.extend(figures(
        run,
        &[
            metrics::HUGE_COVERAGE_AFTER,
            metrics::HUGE_BEFORE,
            metrics::FOLIO_COVERAGE_BEFORE,
            metrics::FOLIO_COVERAGE_AFTER,
            metrics::FAULTS_POPULATE,
        ],
    ));
    let tables = || run.done().map(|r| r.observations.table(tables::huge_pages::TABLE));
    let mut names: Vec<&str> = Vec::new();
    for table in tables().flatten() {
        let Some(Values::Text(counters)) = table.columns.first().map(|column| &column.values) else {
            continue;
        };
        names.extend(
            counters.iter().map(String::as_str).filter(|name| !names.contains(name)).collect::<Vec<_>>(),
        );
    }
    for name in &names {
        let of = |table: Option<&Table>| table.map_or(0.0, |table| counted(table, name));
        let values: Vec<f64> = tables().map(of).collect();
        list.extend(Figure::over(name, Unit::Count, Statistic::Value, &values));
    }
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::huge_pages::TABLE)];
    Some(Finding::new(run, What::HugePages, list, evidence))
}

/// What became of the pages of a file that references wrote: how much was dirty, who waited for it; nothing of other runs.
pub fn writeback(run: &Run) -> Option<Finding> {
    let mut list = vec![Figure::of(run, metrics::DIRTY_MAX)?];
    list.extend(figures(
        run,
        &[
            metrics::WRITEBACK_MAX,
            metrics::PAGES_WRITTEN,
            metrics::DIRTY_THROTTLED,
            metrics::DIRTY_PAUSES,
            metrics::FSYNC_P50,
            metrics::FSYNC_MAX,
            metrics::ACCESS_READ_MEAN,
            metrics::ACCESS_WRITE_MEAN,
        ],
    ));
    let evidence = vec![Evidence::Metrics, Evidence::Table(tables::writeback::TABLE)];
    Some(Finding::new(run, What::Writeback, list, evidence))
}

/// What went through zswap; nothing where it was off, or took and gave nothing.
pub fn zswap(run: &Run) -> Option<Finding> {
    let list = figures(
        run,
        &[
            metrics::ZSWAP_OUT,
            metrics::ZSWAP_IN,
            metrics::ZSWAP_WRITEBACK,
            metrics::ZSWAP_STORED,
            metrics::ZSWAP_MEMORY,
            metrics::ZSWAP_RATIO,
            metrics::ZSWAP_REJECTED,
        ],
    );
    let flows = [metrics::ZSWAP_OUT, metrics::ZSWAP_IN, metrics::ZSWAP_WRITEBACK];
    let moved =
        list.iter().any(|figure| flows.iter().any(|flow| *flow == *figure.name) && figure.value > 0.0);
    moved.then(|| Finding::new(run, What::Zswap, list, vec![Evidence::Metrics]))
}

/// The growth of a counter over all columns of numbers; a row that is not there did not grow.
fn counted(table: &Table, name: &str) -> f64 {
    let Some(Values::Text(names)) = table.columns.first().map(|column| &column.values) else { return 0.0 };
    let Some(row) = names.iter().position(|n| n == name) else { return 0.0 };
    let cell = |values: &Values| match values {
        Values::Number(numbers) => numbers.get(row).copied().flatten(),
        Values::Text(_) => None,
    };
    table.columns.iter().filter_map(|column| cell(&column.values)).sum()
}

/// How much slower a reference gets past the limit: the same kind of mapping, whose references do the same under the same
/// conditions but for order, size and limit, with and without major faults, where `runs` has both on one target.
pub fn past_the_limit(runs: &[&Run]) -> Option<Finding> {
    let of_kind = |faulting: bool| {
        runs.iter().copied().filter(move |run| {
            middle(run, metrics::FAULTS_MAJOR).is_some_and(|faults| (faults > 0.0) == faulting)
        })
    };
    let (fits, exceeds, paging) = of_kind(true).find_map(|exceeds| {
        let (paging, way) = way(exceeds)?;
        let fits = of_kind(false).find(|fits| self::way(fits).is_some_and(|(_, other)| other == way))?;
        Some((fits, exceeds, paging))
    })?;
    let limit = exceeds.header.setting.limit()?;
    let (inside, outside) =
        (Figure::of(fits, metrics::ACCESS_MEAN)?, Figure::of(exceeds, metrics::ACCESS_MEAN)?);
    if fits.header.target.kind != exceeds.header.target.kind || inside.unit != outside.unit {
        return None;
    }
    let absent = 1.0 - middle(exceeds, metrics::PAGES_PRESENT)? / paging.pages as f64;
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

/// Of a run of mapanon: its parameters, and those with the conditions as far as they are not order, size and limit.
fn way(run: &Run) -> Option<(&Paging, (Paging, Setting))> {
    let paging = run.header.experiment.parameters::<Paging>()?;
    let Load::References(_, Backing::Anonymous | Backing::Shmem) = run.header.experiment.declaration().load()
    else {
        return None;
    };
    let Paging { pages, references, pattern, seed, .. } = Paging::default();
    let alike = Paging { pages, references, pattern, seed, ..paging.clone() };
    let setting = Setting { memory: None, swap: None, swap_size: None, ..run.header.setting.clone() };
    Some((paging, (alike, setting)))
}

/// How many of a kernel's major faults LRU and OPT would have had, on the same stream with the frames that
/// the limit really left; nothing for models and for runs without major faults.
pub fn regret(run: &Run) -> Option<Finding> {
    if crate::is_deterministic(run) {
        return None;
    }
    let regret = crate::regret::of_run(run).ok()??;
    let kernel = Figure::of(run, metrics::FAULTS_MAJOR)?;
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
    list.extend(
        regret.minor.filter(|&minor| minor > 0.0).map(|minor| count(metrics::FAULTS_MINOR.name, minor)),
    );
    let evidence = vec![Evidence::Metrics, Evidence::Model("lru".into()), Evidence::Model("opt".into())];
    Some(Finding::new(run, What::Regret, list, evidence))
}

/// The judgement of the evictions of a run with a log.
pub fn evictions(run: &Run) -> Option<Finding> {
    let judgement = crate::evictions::of_run(run).ok()??;
    let evictions = Figure::of(run, metrics::EVICTIONS)?;
    let share = |name: &str, value: f64| {
        let known = value.is_finite() && judgement.evictions > 0;
        known.then(|| Figure::derived(name, Unit::Share, Statistic::Share, value, 1))
    };
    let all = judgement.evictions.max(1) as f64;
    let likest = judgement.similar.first();
    let mut list = vec![evictions];
    list.extend(share("opt.kept", judgement.kept_by_opt as f64 / all));
    list.extend(share("age.rank", judgement.rank / 100.0));
    list.extend(likest.and_then(|likest| share("jaccard", likest.jaccard)));
    let mut evidence = vec![Evidence::Table(tables::evictions::TABLE), Evidence::Model("opt".into())];
    evidence.extend(likest.map(|likest| Evidence::Model(likest.model.into())));
    let what = What::Evictions { judgement: Box::new(judgement) };
    Some(Finding::new(run, what, list, evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::Experiment;

    /// Huge pages or writes on one side alone would be taken for the limit's doing.
    #[test]
    fn past_the_limit_nothing_else_is_different() {
        let mapanon = |pages, writes: &str| {
            Experiment::Mapanon(Paging { pages, writes: writes.parse().unwrap(), ..Paging::default() })
        };
        let of = |name: &str, experiment, faults: f64, thp: Option<&str>| {
            let figures: crate::test_runs::Figures = &[
                ("faults.major", &[faults]),
                ("pages.present", &[8000.0]),
                ("access.mean", &[100.0 + 10.0 * faults]),
            ];
            let mut made = run(name, experiment, "host", figures);
            made.header.setting.memory = Some("32M".parse().unwrap());
            made.header.setting.thp = thp.map(|thp| thp.parse().unwrap());
            made
        };
        let fits = of("fits", mapanon(4000, "0%"), 0.0, None);
        let exceeds = of("exceeds", mapanon(16_000, "0%"), 90.0, None);
        let found = past_the_limit(&[&exceeds, &fits]).unwrap();
        assert_eq!(found.figure("slowdown").unwrap().value, 10.0);
        let huge = of("huge", mapanon(4000, "0%"), 0.0, Some("always"));
        let written = of("written", mapanon(4000, "5%"), 0.0, None);
        assert_eq!(past_the_limit(&[&huge, &written, &exceeds]), None);
    }
}
