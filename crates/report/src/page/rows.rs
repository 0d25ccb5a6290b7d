//! Bars of the columns that a table with named rows declares as drawn: the median of the
//! repetitions per row, with their range.

use pagelab_analysis::figure::{RangeBar, RangeBars};
use pagelab_analysis::stats::median;
use pagelab_experiment::{ColumnId, Run, TableId, catalogue};

use super::plot::unit_name;
use super::shown::Shown;

/// The figures of all declared columns in which there is something to see.
pub fn bars(shown: &[Shown]) -> Vec<RangeBars> {
    let charted = |table: TableId| table.charted.iter().map(move |&column| (table, column));
    catalogue::tables().flat_map(charted).filter_map(|(table, column)| drawn(table, column, shown)).collect()
}

/// The bars of a column; nothing where it is 0 throughout.
fn drawn(table: TableId, column: ColumnId, shown: &[Shown]) -> Option<RangeBars> {
    let several = shown.len() > 1;
    // The rows of all runs, in order, each once.
    let mut labels: Vec<&str> = Vec::new();
    for label in shown.iter().flat_map(|s| names(s.run, table)) {
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let rows = labels.into_iter().flat_map(|label| {
        shown.iter().enumerate().map(move |(n, s)| {
            let values = values(s.run, table, column, label);
            let ends = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick);
            RangeBar {
                label: if n == 0 { label.to_owned() } else { String::new() },
                value: median(&values),
                range: ends(f64::min).zip(ends(f64::max)).filter(|(low, high)| low < high),
                color: s.color,
            }
        })
    });
    let rows: Vec<RangeBar> = rows.collect();
    rows.iter().any(|row| row.value.is_some_and(|value| value > 0.0)).then(|| RangeBars {
        title: capitalized(column.help),
        caption: format!("Median of the repetitions, with their range (min … max), per {}.", table.rows),
        unit: unit_name(column.unit),
        colors: shown.iter().filter(|_| several).map(|s| (s.color, s.name().to_owned())).collect(),
        rows,
    })
}

/// The names of the rows.
fn names(run: &Run, table: TableId) -> impl Iterator<Item = &str> {
    let tables = run.done().filter_map(move |repetition| repetition.observations.table(table));
    tables.filter_map(|table| table.columns.first()?.texts()).flatten().map(String::as_str)
}

/// The column's figures of the row in each repetition.
fn values(run: &Run, table: TableId, column: ColumnId, label: &str) -> Vec<f64> {
    let tables = run.done().filter_map(|repetition| repetition.observations.table(table));
    let of = |table: &pagelab_experiment::observation::Table| {
        let row = table.columns.first()?.texts()?.iter().position(|name| name == label)?;
        table.numbers(column)?.get(row).copied().flatten()
    };
    tables.filter_map(of).collect()
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
