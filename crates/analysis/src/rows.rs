//! The tables of a run whose rows have names (what was counted, the profile), side by side.

use std::collections::HashMap;

use pagelab_experiment::observation::{Table, Unit, Values};
use pagelab_experiment::tables::{cache_misses, instructions, profile, system_calls};
use pagelab_experiment::{ColumnId, Run, TableId, catalogue};

/// Those whose rows are exact counts of what happened: a function that is absent from one has none.
const EXACT: [TableId; 3] = [instructions::TABLE, cache_misses::TABLE, system_calls::TABLE];
/// From this share on a row differs.
const DIFFERS: f64 = 0.005;
/// So many standard errors of a difference of two counts of samples are none.
const ERRORS: f64 = 2.0;

/// A row of both sides; a figure is missing where it was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The row's name.
    pub name: String,
    /// The baseline's figure.
    pub before: Option<f64>,
    /// The other side's.
    pub after: Option<f64>,
}

impl Row {
    /// The change as a share of the baseline's figure.
    pub fn change(&self) -> Option<f64> {
        match (self.before, self.after) {
            (Some(before), Some(after)) if before > 0.0 => Some(after / before - 1.0),
            _ => None,
        }
    }

    fn differs(&self) -> bool {
        match (self.before, self.after) {
            (None, None) => false,
            (Some(a), Some(b)) => (a - b).abs() > DIFFERS * a.abs().max(b.abs()),
            _ => true,
        }
    }

    fn difference(&self) -> f64 {
        (self.after.unwrap_or(0.0) - self.before.unwrap_or(0.0)).abs()
    }
}

/// The rows of one table that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct TableComparison {
    /// The table.
    pub table: TableId,
    /// The column that is compared.
    pub column: ColumnId,
    /// Its unit.
    pub unit: Unit,
    /// The rows that differ, the greatest difference first.
    pub rows: Vec<Row>,
}

/// The names of a table's rows.
pub(crate) fn row_names(table: &Table) -> &[String] {
    match table.columns.first().map(|column| &column.values) {
        Some(Values::Text(names)) => names,
        _ => &[],
    }
}

/// The tables of two runs row by row, without those in which no row differs.
pub fn changed_rows(before: &Run, after: &Run) -> Vec<TableComparison> {
    let of = |(table, column): (TableId, ColumnId)| {
        let (one, two) = (before.done().next()?, after.done().next()?);
        let (one, two) = (one.observations.table(table)?, two.observations.table(table)?);
        let unit = |table: &Table| table.column(column)?.unit;
        let unit = unit(one).filter(|a| unit(two) == Some(*a))?;
        let (left, right) = (values(one, column), values(two, column));
        // A function without a sample is absent from a profile.
        let exact = EXACT.contains(&table);
        let absent = (exact || table == profile::TABLE).then_some(0.0);
        let value =
            |values: &HashMap<&str, Option<f64>>, name: &str| values.get(name).copied().unwrap_or(absent);
        let only_right = row_names(two).iter().filter(|name| !left.contains_key(name.as_str()));
        // Samples fall where they fall: a count has the square root of itself as its standard error.
        let (sampled, samples) = (values(one, profile::SAMPLES), values(two, profile::SAMPLES));
        let by_chance = |row: &Row| {
            let of = |samples: &HashMap<&str, Option<f64>>| samples.get(row.name.as_str()).copied().flatten();
            let (a, b) = (of(&sampled).unwrap_or(0.0), of(&samples).unwrap_or(0.0));
            table == profile::TABLE && (a - b).abs() <= ERRORS * (a + b).sqrt()
        };
        let mut rows: Vec<Row> = row_names(one)
            .iter()
            .chain(only_right)
            .map(|name| Row { name: name.clone(), before: value(&left, name), after: value(&right, name) })
            .filter(|row| if exact { row.before != row.after } else { row.differs() })
            .filter(|row| !by_chance(row))
            .collect();
        rows.sort_by(|x, y| y.difference().total_cmp(&x.difference()));
        (!rows.is_empty()).then_some(TableComparison { table, column, unit, rows })
    };
    let columns =
        catalogue::tables().flat_map(|table| table.compared.iter().map(move |&column| (table, column)));
    columns.filter_map(of).collect()
}

fn values(table: &Table, column: ColumnId) -> HashMap<&str, Option<f64>> {
    let numbers = table.numbers(column).unwrap_or_default();
    row_names(table).iter().map(String::as_str).zip(numbers.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile's table: the samples of each function, 100 units of time each.
    fn profiled(rows: &[(&str, f64)]) -> Run {
        use pagelab_experiment::observation::Column;
        let mut run = crate::test_runs::run(
            "p",
            pagelab_experiment::Experiment::Mapanon(Default::default()),
            "host",
            &[("time.elapsed", &[1.0])],
        );
        let numbers = |name: &str, unit, each: f64| Column {
            name: name.into(),
            unit: Some(unit),
            values: Values::Number(rows.iter().map(|(_, n)| Some(n * each)).collect()),
        };
        let names = Values::Text(rows.iter().map(|(name, _)| (*name).to_owned()).collect());
        run.repetitions[0].observations.tables.push(Table {
            name: "profile".into(),
            columns: vec![
                Column { name: "function".into(), unit: None, values: names },
                numbers("samples", Unit::Count, 1.0),
                numbers("time", Unit::Nanoseconds, 100.0),
            ],
        });
        run
    }

    #[test]
    fn functions_of_a_profile_differ_by_more_than_their_samples_do_by_chance() {
        let before = profiled(&[("busy", 1000.0), ("rare", 2.0), ("gone", 3.0)]);
        assert_eq!(changed_rows(&before, &profiled(&[("busy", 1050.0), ("rare", 4.0)])), []);
        let changed = changed_rows(&before, &profiled(&[("busy", 1200.0), ("rare", 0.0), ("new", 9.0)]));
        let names: Vec<&str> = changed[0].rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["busy", "new"]);
    }

    #[test]
    fn rows_differ_by_half_a_percent_or_by_being_there() {
        let differs = |before, after| Row { name: String::new(), before, after }.differs();
        assert!(!differs(Some(1000.0), Some(1004.0)) && differs(Some(1000.0), Some(1006.0)));
        assert!(differs(None, Some(0.0)) && !differs(None, None) && !differs(Some(0.0), Some(0.0)));
    }
}
