//! Tables that an experiment made besides its windows: a sweep over sizes, workers, steps. The first
//! column is the abscissa; columns of one unit share a plot.

use pagelab_analysis::figure::{Axis, Mark, Plot, Series};
use pagelab_experiment::observation::{Column, Table, Unit};
use pagelab_experiment::tables::{self, counters, latency, vmtest, windows, working_set};
use pagelab_experiment::{ColumnId, TableId};

use super::curve;
use super::plot::unit_name;
use super::shown::Shown;

/// The table of a sweep over memory, in whose plots the knees are marked.
const SWEPT: TableId = vmtest::TABLE;

/// Tables whose only plot has a heading and a caption of its own.
const HEADED: &[(TableId, &str, &str)] = &[(
    working_set::TABLE,
    "Working set over time",
    "Pages that were referenced in the window that ends at the point.",
)];

/// Columns of a table that say again what its picture shows: time, speed and number of reads follow from one
/// another.
const SAID: &[(TableId, &[ColumnId])] = &[
    (
        SWEPT,
        &[
            vmtest::PROCESSES,
            vmtest::RELATIVE_SPEED,
            vmtest::TIME_ELAPSED,
            vmtest::TIME_USER,
            vmtest::TIME_SYSTEM,
            vmtest::READS,
            vmtest::ACCESS_MEAN,
            vmtest::TRANSLATION_MEAN,
        ],
    ),
    (latency::TABLE, &[latency::LINE_LOAD, latency::PAGE_LOAD]),
];

/// The plots of every other table whose first column is numbers.
pub fn plots(shown: &[Shown]) -> Vec<Plot> {
    let mut names: Vec<&str> = Vec::new();
    for table in shown.iter().flat_map(|s| &s.repetition.observations.tables) {
        let other = [
            windows::TABLE,
            tables::evictions::TABLE,
            tables::arrivals::TABLE,
            tables::curve::TABLE,
            counters::TABLE,
        ]
        .iter()
        .any(|other| *other == *table.name);
        if !other && !names.contains(&table.name.as_str()) {
            names.push(&table.name);
        }
    }
    curve::of_runs(shown).into_iter().chain(names.into_iter().flat_map(|name| drawn(name, shown))).collect()
}

/// The plots of a table in which there is something to see.
fn drawn(name: &str, shown: &[Shown]) -> Vec<Plot> {
    of_table(name, shown).into_iter().filter(|plot| !plot.is_flat()).collect()
}

fn abscissae(table: &Table) -> Option<&[Option<f64>]> {
    table.columns.first()?.numbers()
}

fn of_table(name: &str, shown: &[Shown]) -> Vec<Plot> {
    let tables: Vec<(&Shown, &Table)> =
        shown.iter().filter_map(|s| Some((s, s.seen().table_named(name)?))).collect();
    let abscissa = tables.iter().find_map(|(_, t)| t.columns.first().filter(|c| c.numbers().is_some()));
    let Some(abscissa) = abscissa else { return Vec::new() };
    let values =
        tables.iter().filter_map(|(_, t)| abscissae(t)).flatten().flatten().copied().filter(|&v| v > 0.0);
    let (low, high) = values.fold((f64::INFINITY, 0.0f64), |(low, high), v| (low.min(v), high.max(v)));
    let axis = if high > 50.0 * low { Axis::log } else { Axis::linear };
    // The columns of all runs, in order, each once.
    let mut columns: Vec<&Column> = Vec::new();
    for column in tables.iter().flat_map(|(_, t)| t.columns.iter().skip(1)) {
        // What is 0 throughout would be a line on the axis.
        let measured = column.numbers().is_some_and(|n| n.iter().flatten().any(|&v| v != 0.0));
        let said = SAID
            .iter()
            .any(|(table, columns)| *table == *name && columns.iter().any(|c| c.name == column.name));
        if measured && !said && !columns.iter().any(|c| c.name == column.name) {
            columns.push(column);
        }
    }
    // For each unit a plot, and the number of its columns so far.
    let mut plots: Vec<(Option<Unit>, Plot, usize)> = Vec::new();
    for column in columns {
        let at = plots.iter().position(|(unit, ..)| *unit == column.unit).unwrap_or_else(|| {
            let y = Axis::linear(column.name.clone(), unit_name(column.unit)).switchable();
            let x = axis(abscissa.name.clone(), unit_name(abscissa.unit));
            let headed = HEADED.iter().find(|(table, ..)| *table == *name);
            let title = headed.map_or_else(|| format!("{name}: {}", column.name), |h| h.1.to_owned());
            let caption = headed.map_or("One point for each row of the table.", |h| h.2);
            plots.push((column.unit, Plot::new(title, caption, x, y), 0));
            plots.len() - 1
        });
        let (_, plot, quantity) = &mut plots[at];
        for (s, table) in &tables {
            let y = table.columns.iter().find(|c| c.name == column.name && c.unit == column.unit);
            let Some((x, y)) = abscissae(table).zip(y.and_then(Column::numbers)) else { continue };
            let several = tables.len() > 1;
            plot.series.push(Series {
                name: if several { format!("{} {}", s.name(), column.name) } else { column.name.clone() },
                color: if several { s.color } else { *quantity },
                dash: if several { *quantity % 4 } else { 0 },
                dots: true,
                x: x.to_vec(),
                y: y.to_vec(),
                ..Series::default()
            });
        }
        *quantity += 1;
        if *quantity > 1 {
            name.clone_into(&mut plot.title);
            plot.y.label = unit_words(column.unit).to_owned();
        }
    }
    let marks: Vec<Mark> =
        tables.iter().filter(|_| SWEPT == *name).flat_map(|(s, _)| s.marks(tables.len() > 1)).collect();
    plots.into_iter().map(|(_, plot, _)| Plot { marks: marks.clone(), ..plot }).collect()
}

/// What an axis is called that several columns share.
fn unit_words(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::Nanoseconds) => "time",
        Some(Unit::Pages) => "pages",
        Some(Unit::Bytes) => "bytes",
        Some(Unit::Share) => "share",
        Some(Unit::PerSecond) => "per second",
        Some(Unit::BytesPerSecond) => "bytes per second",
        Some(Unit::Instructions) => "instructions",
        Some(Unit::PerMillionInstructions) => "per million instructions",
        Some(Unit::BytesPerMillionInstructions) => "bytes per million instructions",
        Some(Unit::Ratio) => "ratio",
        Some(Unit::Count) | None => "count",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_analysis::vmtest::{Curve, Knee};
    use pagelab_experiment::{Outcome, Repetition, Run};

    fn shown(runs: &[Run]) -> Vec<Shown<'_>> {
        runs.iter().enumerate().filter_map(|(n, run)| Shown::new(run, n, n.to_string())).collect()
    }

    fn run(columns: &[(&'static str, Unit)]) -> Run {
        let column = |&(name, unit): &(&'static str, Unit)| {
            ColumnId { name, unit: Some(unit), help: "" }.of(vec![Some(1.0), None, Some(100.0)])
        };
        let table = Table { name: SWEPT.name.into(), columns: columns.iter().map(column).collect() };
        let mut repetition = Repetition {
            number: 1,
            started: String::new(),
            outcome: Outcome::Done,
            observations: Default::default(),
        };
        repetition.observations.tables.push(table);
        let header = serde_json::json!({
            "name": "x", "batch": "", "target": "host", "setting": {}, "started": "", "pagelab": "",
            "experiment": { "experiment": "mapanon", "pages": 1, "references": 1, "pattern": "linear",
                            "touch": "page", "seed": 1, "warm": false },
        });
        Run {
            id: 1,
            header: serde_json::from_value(header).expect("a header"),
            repetitions: vec![repetition],
        }
    }

    #[test]
    fn columns_of_one_unit_share_a_plot_and_no_run_is_left_out() {
        let runs = [
            run(&[("size", Unit::Bytes), ("mean", Unit::Nanoseconds), ("rate", Unit::PerSecond)]),
            run(&[("size", Unit::Bytes), ("worst", Unit::Nanoseconds), ("mean", Unit::Nanoseconds)]),
        ];
        let knee = Knee { at: 10.0, interval: (9.0, 11.0), growth: (1.0, 2.0), cause: None };
        let curve = Curve { points: vec![(1.0, 1.0)], fit: Vec::new(), knees: Some(vec![knee]) };
        let mut shown = shown(&runs);
        shown[1].curve = Some(curve);
        let plots = plots(&shown);
        let marks: Vec<_> =
            plots.iter().map(|p| p.marks.iter().map(|m| m.color).collect::<Vec<_>>()).collect();
        assert_eq!(marks, [[Some(1)], [Some(1)]]);
        let names: Vec<Vec<(&str, usize, usize)>> = plots
            .iter()
            .map(|p| p.series.iter().map(|s| (s.name.as_str(), s.color, s.dash)).collect())
            .collect();
        assert_eq!(names[0], [("0 mean", 0, 0), ("1 mean", 1, 0), ("1 worst", 1, 1)]);
        assert_eq!(names[1], [("0 rate", 0, 0)]);
        assert_eq!((plots[0].title.as_str(), plots[0].y.label.as_str()), (SWEPT.name, "time"));
        assert_eq!(plots[1].title, "vmtest: rate");
        assert!(plots[0].x.log, "from 1 to 100");
    }
}
