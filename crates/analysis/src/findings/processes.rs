//! Findings on processes: forks, workers beside one another, a program of the user's, a recording.

use pagelab_experiment::experiments::{Child, Command, Faultscale, Forkstorm, Recording};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{ColumnId, Run};
use pagelab_experiment::{metrics, tables};

use super::{figures, table};
use crate::finding::{Evidence, Figure, Finding, Statistic, What};
use crate::rows::row_names;
use crate::scaling;

/// The share of its threads' time from which on a state is worth a figure.
const SHARE: f64 = 0.005;

/// Forks a second, what each costs, and what the kernel does for it.
pub fn fork_rate(run: &Run) -> Option<Finding> {
    let parameters = run.header.experiment.parameters::<Forkstorm>()?;
    let mut list = vec![Figure::of(run, metrics::FORKS_RATE)?];
    list.extend(figures(run, &[metrics::FORK_COST, metrics::EXEC_COST, metrics::EXIT_COST]));
    let mut evidence = vec![Evidence::Metrics];
    if let Some(operations) = table(run, tables::operations::TABLE) {
        evidence.push(Evidence::Table(tables::operations::TABLE));
        let each = |name: &str| {
            let row = row_names(operations).iter().position(|text| text == name)?;
            operations.numbers(tables::operations::EACH_FORK)?.get(row).copied().flatten()
        };
        for (name, operation) in
            [("each.faults", "exceptions:page_fault_user"), ("each.pages", "kmem:mm_page_alloc")]
        {
            let value = each(operation);
            list.extend(value.map(|v| Figure::derived(name, Unit::Count, Statistic::Mean, v, 1)));
        }
    }
    let mut top_function = None;
    if let Some(profile) = table(run, tables::profile::TABLE)
        && let (Some(name), Some(Some(share))) = (
            row_names(profile).first(),
            profile.numbers(tables::profile::SHARE).and_then(|s| s.first().copied()),
        )
    {
        evidence.push(Evidence::Table(tables::profile::TABLE));
        top_function = Some(name.clone());
        list.push(Figure::derived("top-function", Unit::Share, Statistic::Ratio, share, 1));
    }
    let exec = parameters.child == Child::Exec;
    Some(Finding::new(run, What::ForkRate { copies: parameters.copies, exec, top_function }, list, evidence))
}

/// Throughput with the fewest, the best and the most workers, and the scalability law through all.
pub fn scaling(run: &Run) -> Option<Finding> {
    let parameters = run.header.experiment.parameters::<Faultscale>()?;
    let (mut workers, mut throughput) = (Vec::new(), Vec::new());
    let mut unit = Unit::PerSecond;
    for table in run.done().filter_map(|r| r.observations.table(tables::faultscale::TABLE)) {
        let numbers = |column: ColumnId| table.numbers(column).unwrap_or_default().iter().copied();
        let column = table.column(tables::faultscale::THROUGHPUT);
        unit = column.and_then(|column| column.unit).unwrap_or(unit);
        for (n, x) in numbers(tables::faultscale::WORKERS).zip(numbers(tables::faultscale::THROUGHPUT)) {
            workers.extend(n.filter(|_| x.is_some()));
            throughput.extend(x.filter(|_| n.is_some()));
        }
    }
    let of = |number: u32| {
        let pairs = workers.iter().zip(&throughput).filter(|(n, _)| **n == f64::from(number));
        let values: Vec<f64> = pairs.map(|(_, x)| *x).collect();
        Figure::over("", unit, Statistic::Value, &values)
    };
    let by_number = parameters.workers.iter().filter_map(|&n| Some((n, of(n)?)));
    let best = by_number.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let (first, last) = (*parameters.workers.first()?, *parameters.workers.last()?);
    let mut list = Vec::new();
    for (place, number, figure) in
        [("best", best.0, Some(best.1)), ("first", first, of(first)), ("last", last, of(last))]
    {
        let Some(figure) = figure else { continue };
        let n = figure.n;
        list.push(Figure { name: format!("throughput.{place}"), ..figure });
        let name = format!("workers.{place}");
        list.push(Figure::derived(&name, Unit::Count, Statistic::Value, f64::from(number), n));
    }
    list.extend(figures(
        run,
        &[
            metrics::BESIDE_THROUGHPUT,
            metrics::BESIDE_WAITS,
            metrics::BESIDE_P99,
            metrics::BESIDE_CALLS,
            metrics::OPERATION_P99,
        ],
    ));
    if let Some(fit) = scaling::fit(&workers, &throughput, 1) {
        let n = workers.len();
        let (low, high) = fit.contention.interval;
        let contention = Figure::derived("contention", Unit::Share, Statistic::Fit, fit.contention.value, n);
        list.push(contention.within(low, Some(high)));
        list.extend(fit.best.map(|best| {
            let figure = Figure::derived("workers.predicted", Unit::Count, Statistic::Fit, best.workers, n);
            figure.within(best.least, best.most)
        }));
    }
    let mut lock = None;
    let mut evidence = vec![Evidence::Table(tables::faultscale::TABLE)];
    if let (Some(wait), Some(locks)) =
        (Figure::of(run, metrics::STATE_LOCK), table(run, tables::locks::TABLE))
    {
        evidence.push(Evidence::Table(tables::locks::TABLE));
        let numbers = locks.numbers(tables::locks::WORKERS).unwrap_or_default();
        let row = numbers.iter().position(|w| *w == Some(f64::from(last)));
        lock = row.and_then(|row| row_names(locks).get(row).cloned()).filter(|_| wait.value > 0.0);
        list.push(wait);
    }
    let what = What::Scaling { work: parameters.work.to_string(), workers: parameters.as_.to_string(), lock };
    Some(Finding::new(run, what, list, evidence))
}

/// A program's time, memory and faults, and the states of its threads.
pub fn program(run: &Run) -> Option<Finding> {
    let parameters = run.header.experiment.parameters::<Command>()?;
    let mut list = vec![Figure::of(run, metrics::TIME_ELAPSED)?];
    list.extend(figures(
        run,
        &[
            metrics::TIME_CPU,
            metrics::TIME_USER,
            metrics::TIME_SYSTEM,
            metrics::MEMORY_PEAK,
            metrics::FAULTS_MAJOR,
        ],
    ));
    list.extend(figures(run, &[metrics::SWAP_IN, metrics::SWAP_OUT, metrics::COMMAND_STATUS]));
    let states = [
        metrics::STATE_USER,
        metrics::STATE_SYSTEM,
        metrics::STATE_FAULT,
        metrics::STATE_RUN_QUEUE,
        metrics::STATE_SLEEP,
    ];
    list.extend(figures(run, &states).into_iter().filter(|figure| figure.value >= SHARE));
    let what =
        What::Program { program: parameters.program.first()?.clone(), limit: run.header.setting.limit() };
    Some(Finding::new(run, what, list, vec![Evidence::Metrics]))
}

/// How long a recording is, and its counters' growth as the run's tables have it.
pub fn recording(run: &Run) -> Option<Finding> {
    run.header.experiment.parameters::<Recording>()?;
    let table = run.repetitions.iter().find_map(|r| r.observations.table(tables::counters::TABLE))?;
    let times = table.numbers(tables::counters::TIME)?;
    let ends = (times.iter().flatten().next()?, times.iter().rev().flatten().next()?);
    let (count, columns) = (times.len() as f64, table.columns.len().saturating_sub(1) as f64);
    let list = vec![
        Figure::derived("samples", Unit::Count, Statistic::Value, count, 1),
        Figure::derived("counters", Unit::Count, Statistic::Value, columns, 1),
        Figure::derived(metrics::TIME_ELAPSED, Unit::Nanoseconds, Statistic::Value, ends.1 - ends.0, 1),
    ];
    Some(Finding::new(run, What::Recording, list, vec![Evidence::Table(tables::counters::TABLE)]))
}
