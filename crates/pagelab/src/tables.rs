//! The tables of a run whose rows have names (what was counted, the profile), alone and side by side.

use std::collections::HashMap;

use pagelab_experiment::Run;
use pagelab_experiment::observation::{Table, Unit, Values};
use pagelab_report::TextTable;
use pagelab_report::text;

use crate::context::Context;
use crate::output::say;

/// The tables that are shown, and the column by which they are compared.
const TABLES: [(&str, &str); 2] = [("operations", "count"), ("profile", "time")];
/// Rows of each.
const ROWS: usize = 15;
/// From this share on a row differs.
const DIFFERS: f64 = 0.005;

/// The names of a table's rows.
fn names(table: &Table) -> &[String] {
    match table.columns.first().map(|column| &column.values) {
        Some(Values::Text(names)) => names,
        _ => &[],
    }
}

/// The table of the first repetition that was wholly performed.
fn table<'a>(run: &'a Run, name: &str) -> Option<&'a Table> {
    run.done().next()?.observations.table(name)
}

/// The tables of a run, without the rows in which nothing happened; `all`: whole.
pub fn of_run(run: &Run, all: bool) -> Vec<TextTable> {
    let of = |(name, _): &(&str, &str)| {
        let table = table(run, name)?;
        let rows: Vec<usize> = (0..names(table).len()).filter(|&row| all || !table.nothing_in(row)).collect();
        let limit = if all || *name == "operations" { rows.len() } else { ROWS };
        let cell = |row: usize| {
            let cell = |column: &pagelab_experiment::observation::Column| match &column.values {
                Values::Number(numbers) => {
                    text::value(numbers.get(row).copied().flatten(), column.unit.unwrap_or(Unit::Count))
                }
                Values::Text(texts) => texts.get(row).cloned().unwrap_or_default(),
            };
            table.columns.iter().map(cell).collect::<Vec<_>>()
        };
        let left = rows.len().saturating_sub(limit);
        Some(TextTable {
            title: (*name).to_owned(),
            headings: table.columns.iter().map(|column| column.name.clone()).collect(),
            rows: rows.into_iter().take(limit).map(cell).collect(),
            remarks: (left > 0).then(|| format!("{left} more rows: show --all")).into_iter().collect(),
            warnings: Vec::new(),
        })
    };
    TABLES.iter().filter_map(of).filter(|table| !table.rows.is_empty()).collect()
}

/// The same tables of two runs, row by row: those that differ, the greatest difference first.
pub fn side_by_side(before: &Run, after: &Run) -> Vec<TextTable> {
    let of = |&(name, by): &(&str, &str)| {
        let (one, two) = (table(before, name)?, table(after, name)?);
        let unit = |table: &Table| table.columns.iter().find(|column| column.name == by)?.unit;
        let unit = unit(one).filter(|a| unit(two) == Some(*a))?;
        let (left, right) = (values(one, by), values(two, by));
        let mut rows: Vec<(&str, Option<f64>, Option<f64>)> = names(one)
            .iter()
            .chain(names(two).iter().filter(|name| !left.contains_key(name.as_str())))
            .map(|name| {
                (
                    name.as_str(),
                    value(&left, name, name_is_absent(one)),
                    value(&right, name, name_is_absent(two)),
                )
            })
            .filter(|(_, a, b)| differs(*a, *b))
            .collect();
        rows.sort_by(|x, y| difference(y).total_cmp(&difference(x)));
        let hidden = rows.len().saturating_sub(ROWS);
        let change = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) if a > 0.0 => format!("{:+.1} %", (b / a - 1.0) * 100.0),
            _ => text::DASH.to_owned(),
        };
        let rows = rows.into_iter().take(ROWS).map(|(name, a, b)| {
            vec![name.to_owned(), text::value(a, unit), text::value(b, unit), change(a, b)]
        });
        let (first, second) = (&before.header.name, &after.header.name);
        Some(TextTable {
            title: format!("{name}: {by}, {second} against {first}"),
            headings: vec![name.to_owned(), first.clone(), second.clone(), "change".to_owned()],
            rows: rows.collect(),
            remarks: (hidden > 0).then(|| format!("{hidden} smaller differences")).into_iter().collect(),
            warnings: Vec::new(),
        })
    };
    TABLES.iter().filter_map(of).filter(|table| !table.rows.is_empty()).collect()
}

/// What a row that a table lacks stands for: a function without a sample is absent from a profile.
fn name_is_absent(table: &Table) -> Option<f64> {
    (table.name == "profile").then_some(0.0)
}

fn values<'a>(table: &'a Table, column: &str) -> HashMap<&'a str, Option<f64>> {
    let numbers = table.numbers(column).unwrap_or_default();
    names(table).iter().map(String::as_str).zip(numbers.iter().copied()).collect()
}

fn value(values: &HashMap<&str, Option<f64>>, name: &str, absent: Option<f64>) -> Option<f64> {
    values.get(name).copied().unwrap_or(absent)
}

fn differs(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (None, None) => false,
        (Some(a), Some(b)) => (a - b).abs() > DIFFERS * a.abs().max(b.abs()),
        _ => true,
    }
}

fn difference((_, a, b): &(&str, Option<f64>, Option<f64>)) -> f64 {
    (b.unwrap_or(0.0) - a.unwrap_or(0.0)).abs()
}

/// Prints a table on the terminal.
pub fn print(table: &TextTable, context: &Context) {
    say!("{}", table.title);
    say!("{}", text::table(&table.headings, &table.rows, &context.style));
    table.remarks.iter().for_each(|remark| say!("{remark}"));
    say!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_differ_by_half_a_percent_or_by_being_there() {
        assert!(!differs(Some(1000.0), Some(1004.0)) && differs(Some(1000.0), Some(1006.0)));
        assert!(differs(None, Some(0.0)) && !differs(None, None) && !differs(Some(0.0), Some(0.0)));
    }
}
