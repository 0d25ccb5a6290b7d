//! The same experiment on the running kernel, beside the published figures and the model's.
//!
//! A study says which experiments are its own ([`Live`]); whoever asks for the study hands over runs of
//! them. What has not been run is a dash, and the table's title says how to get it.

use pagelab_analysis::figure::{Column, Table};
use pagelab_experiment::observation::{Observations, Table as Seen};
use pagelab_experiment::setting::Limit;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{ColumnId, Experiment, MetricId, Run, RunHeader, Setting, Size};

use pagelab_analysis::stats::median;

/// An experiment of a study as the running kernel performs it, in a few seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Its name within the study.
    pub name: &'static str,
    /// What is done.
    pub experiment: Experiment,
    /// Under which limit, if under one.
    pub memory: Option<Size>,
}

impl Live {
    /// Without a limit of memory.
    pub(crate) fn free(name: &'static str, experiment: Experiment) -> Self {
        Self { name, experiment, memory: None }
    }

    /// The setting that it is performed under.
    pub fn setting(&self) -> Setting {
        // Times are wanted, not where the kernel spent them.
        Setting { memory: self.memory.map(Limit::Of), profile: Some(0), ..Setting::default() }
    }

    /// Whether this run is one of it, on a kernel that runs.
    pub fn is(&self, header: &RunHeader) -> bool {
        !matches!(header.target.kind, TargetKind::Model(_))
            && header.experiment == self.experiment
            && header.setting.limit() == self.memory
    }

    /// What the newest of the runs saw.
    pub(crate) fn seen<'a>(&self, runs: &'a [Run]) -> Option<&'a Observations> {
        self.run(runs)?.done().last().map(|repetition| &repetition.observations)
    }

    /// How many repetitions stand behind its figures.
    pub(crate) fn repetitions(&self, runs: &[Run]) -> usize {
        self.run(runs).map_or(0, |run| run.done().count())
    }

    /// A metric of the newest of the runs.
    pub(crate) fn metric(&self, runs: &[Run], metric: MetricId) -> Option<f64> {
        median(&self.run(runs)?.values(metric))
    }

    fn run<'a>(&self, runs: &'a [Run]) -> Option<&'a Run> {
        runs.iter().rfind(|run| self.is(&run.header) && run.done().next().is_some())
    }
}

/// An empty table whose title says which runs fill it, or how to make them.
pub(crate) fn table(
    study: &str,
    live: &[Live],
    runs: &[Run],
    rows_are: &'static str,
    columns: Vec<Column>,
) -> Table {
    let found: Vec<&RunHeader> =
        live.iter().filter_map(|live| live.run(runs)).map(|run| &run.header).collect();
    let command = format!("pagelab reproduce {study} --on host");
    let title = match found.last() {
        None => format!("On this machine: nothing measured yet; {command} does it in seconds"),
        Some(last) => {
            let names: Vec<&str> = found.iter().map(|header| header.name.as_str()).collect();
            let day = last.started.split('T').next().unwrap_or_default();
            let rest =
                if found.len() < live.len() { format!("; the others: {command}") } else { String::new() };
            format!("On this machine: {} on {}, {day}{rest}", names.join(", "), last.target)
        }
    };
    Table::new(title, rows_are, columns)
}

/// What `table` says of the runs: medians over their repetitions, with the least and the greatest of each figure
/// that is this machine's, and how many repetitions stand behind them.
pub(crate) fn repeated(runs: &[Run], table: impl Fn(&[Run]) -> Table) -> Table {
    let whole = table(runs);
    let most = runs.iter().map(|run| run.done().count()).max().unwrap_or(0);
    let each: Vec<Table> = (0..most).map(|n| table(&only(runs, n))).collect();
    if most == 0 {
        return whole;
    }
    let of = |row: usize, column: usize| -> Vec<f64> {
        each.iter().filter_map(|table| table.rows.get(row)?.1.get(column).copied().flatten()).collect()
    };
    // A figure of this machine is one that is not there without its runs.
    let without = table(&[]);
    let here = |row: usize, column: usize| {
        without.rows.get(row).is_none_or(|(_, figures)| figures.get(column).copied().flatten().is_none())
            && !of(row, column).is_empty()
    };
    let columns: Vec<usize> = (0..whole.columns.len()).collect();
    let spread: Vec<usize> =
        columns.iter().copied().filter(|&c| (0..whole.rows.len()).any(|row| here(row, c))).collect();
    let what = match most {
        1 => "one repetition each, so no spread is known".to_owned(),
        n => format!("medians of up to {n} repetitions, with minimum and maximum"),
    };
    let mut heads: Vec<Column> = Vec::new();
    for &c in &columns {
        heads.push(whole.columns[c].clone());
        if most > 1 && spread.contains(&c) {
            let Column { name, unit, decimals, .. } = &whole.columns[c];
            let name = if name.contains("here") { String::new() } else { format!("{name}, ") };
            heads.extend(
                ["minimum", "maximum"].map(|end| Column::new(format!("{name}{end}"), unit, *decimals)),
            );
        }
    }
    let mut found = Table::new(format!("{} ({what})", whole.title), whole.rows_are, heads);
    for (row, (name, figures)) in whole.rows.iter().enumerate() {
        let mut cells = Vec::new();
        for &c in &columns {
            let seen = if here(row, c) { of(row, c) } else { Vec::new() };
            cells.push(median(&seen).or(figures[c]));
            if most > 1 && spread.contains(&c) {
                cells.extend([seen.iter().copied().reduce(f64::min), seen.iter().copied().reduce(f64::max)]);
            }
        }
        found.row(name.as_str(), cells);
    }
    found
}

/// The runs with their `n`th finished repetition alone.
fn only(runs: &[Run], n: usize) -> Vec<Run> {
    let one = |run: &Run| Run {
        id: run.id,
        header: run.header.clone(),
        repetitions: run.done().nth(n).cloned().into_iter().collect(),
    };
    runs.iter().map(one).filter(|run| !run.repetitions.is_empty()).collect()
}

/// Whether any of the runs is one of a study's experiments.
pub fn measured(live: &[Live], runs: &[Run]) -> bool {
    live.iter().any(|live| live.run(runs).is_some())
}

/// The figure of `column` in the row of a seen table whose `key` has this value.
pub(crate) fn at(seen: &Seen, key: ColumnId, value: f64, column: ColumnId) -> Option<f64> {
    let row = seen.numbers(key)?.iter().position(|&found| found == Some(value))?;
    seen.numbers(column)?.get(row).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::experiments::Clock;
    use pagelab_experiment::metrics;
    use pagelab_experiment::observation::{Better, Metric, Observation, Unit};
    use pagelab_experiment::{Outcome, Repetition};

    fn header(target: &str, memory: Option<Size>) -> RunHeader {
        RunHeader {
            name: "clock-1".into(),
            batch: String::new(),
            experiment: Experiment::Clock(Clock::default()),
            target: target.parse().unwrap(),
            setting: Setting { memory: memory.map(Limit::Of), ..Setting::default() },
            conditions: Vec::new(),
            deterministic: false,
            started: "2026-01-02T03:04:05Z".into(),
            pagelab: String::new(),
        }
    }

    #[test]
    fn a_run_counts_on_a_kernel_with_the_same_experiment_and_limit() {
        let live = Live::free("clock", Experiment::Clock(Clock::default()));
        assert!(live.is(&header("host", None)) && live.is(&header("kernel:/boot/vmlinuz", None)));
        assert!(!live.is(&header("model:guest-clock", None)));
        assert!(!live.is(&header("host", Some(Size::Bytes(1 << 20)))));
        let other = Live::free("clock", Experiment::Clock(Clock::short()));
        assert!(!other.is(&header("host", None)));
    }

    #[test]
    fn figures_of_this_machine_are_medians_with_their_least_and_greatest() {
        let repetition = |number: u32, value: f64| Repetition {
            number,
            outcome: Outcome::Done,
            started: String::new(),
            observations: {
                let mut seen = Observations::default();
                seen.add(Observation::Metric(Metric {
                    name: metrics::CLOCK_JUMPS.name.into(),
                    unit: Unit::Count,
                    better: Better::Lower,
                    value: Some(value),
                }));
                seen
            },
        };
        let run = |values: &[f64]| Run {
            id: 1,
            header: header("host", None),
            repetitions: (1..).zip(values).map(|(n, &value)| repetition(n, value)).collect(),
        };
        let live = [Live::free("clock", Experiment::Clock(Clock::default()))];
        let shown = |runs: &[Run]| {
            let columns = ["published", "here"].map(|name| Column::new(name, "", 0)).to_vec();
            let mut table = Table::new("t", "row", columns);
            table.row("jumps", [Some(1.0), live[0].metric(runs, metrics::CLOCK_JUMPS)]);
            table
        };
        let found = repeated(&[run(&[5.0, 3.0, 9.0])], shown);
        assert_eq!(found.rows[0].1, [Some(1.0), Some(5.0), Some(3.0), Some(9.0)]);
        assert!(found.title.contains("3 repetitions"), "{}", found.title);
        let names: Vec<&str> = found.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["published", "here", "minimum", "maximum"]);
        let one = repeated(&[run(&[5.0])], shown);
        assert_eq!(one.rows[0].1, [Some(1.0), Some(5.0)]);
        assert!(one.title.contains("no spread is known"), "{}", one.title);
        assert_eq!(repeated(&[], shown).rows[0].1, [Some(1.0), None]);
    }

    #[test]
    fn a_title_says_where_the_figures_are_from_or_how_to_get_them() {
        let live = [Live::free("clock", Experiment::Clock(Clock::default()))];
        let table = table("mcdougall-2007", &live, &[], "step", Vec::new());
        assert!(table.title.contains("pagelab reproduce mcdougall-2007 --on host"), "{}", table.title);
        // A run of which nothing was finished is none.
        let run = Run { id: 1, header: header("host", None), repetitions: Vec::new() };
        assert_eq!(live[0].metric(&[run], metrics::CLOCK_JUMPS), None);
    }
}
