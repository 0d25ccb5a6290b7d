//! A table under construction, row by row.

use crate::failure::Failure;
use crate::observation::{Column, Observation, Table, Values};
use crate::recorder::Recorder;
use crate::tables::{ColumnId, TableId};

/// A table of numbers, with columns of texts before them where it declares some.
#[derive(Debug)]
pub struct Sheet {
    table: TableId,
    texts: Vec<(ColumnId, Vec<String>)>,
    columns: Vec<(ColumnId, Vec<Option<f64>>)>,
}

impl Sheet {
    /// Without rows.
    pub fn new(table: TableId) -> Self {
        Self::without(table, &[])
    }

    /// Without rows and without these columns.
    pub fn without(table: TableId, absent: &[ColumnId]) -> Self {
        let columns = table.columns.iter().copied().filter(|column| !absent.contains(column));
        let (numbers, texts): (Vec<_>, Vec<_>) = columns.partition(|column| column.unit.is_some());
        Self {
            table,
            texts: texts.into_iter().map(|column| (column, Vec::new())).collect(),
            columns: numbers.into_iter().map(|column| (column, Vec::new())).collect(),
        }
    }

    /// Adds a row. What is no number becomes a dash.
    ///
    /// # Panics
    /// When there are more or fewer values than columns, or the rows begin with texts.
    pub fn row<const N: usize>(&mut self, values: [Option<f64>; N]) {
        self.named([], values);
    }

    /// Adds a row that begins with texts.
    ///
    /// # Panics
    /// When there are more or fewer texts or values than columns of them.
    pub fn named<const T: usize, const N: usize>(&mut self, texts: [&str; T], values: [Option<f64>; N]) {
        assert_eq!(
            (texts.len(), values.len()),
            (self.texts.len(), self.columns.len()),
            "{}",
            self.table.name
        );
        for ((_, column), text) in self.texts.iter_mut().zip(texts) {
            column.push(text.to_owned());
        }
        for ((_, column), value) in self.columns.iter_mut().zip(values) {
            column.push(value.filter(|v| v.is_finite()));
        }
    }

    /// The table.
    pub fn table(self) -> Table {
        let text = |(column, texts): (ColumnId, Vec<String>)| Column {
            name: column.name.to_owned(),
            unit: None,
            values: Values::Text(texts),
        };
        let numbers = self.columns.into_iter().map(|(column, numbers)| column.of(numbers));
        let columns = self.texts.into_iter().map(text).chain(numbers).collect();
        Table { name: self.table.name.to_owned(), columns }
    }

    /// Records the table.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn record(self, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        Ok(recorder.observe(Observation::Table(self.table()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{kills, merging};

    #[test]
    fn texts_stand_before_numbers_and_no_number_is_a_dash() {
        let absent = [kills::SCORE, kills::HIGHEST, kills::STALL, kills::PAUSE, kills::OOM_KILL];
        let mut sheet = Sheet::without(kills::TABLE, &absent);
        sheet.named(["x", "y"], [Some(f64::NAN), Some(1.0)]);
        let table = sheet.table();
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["situation", "who", "held", "stalled"]);
        assert_eq!(table.numbers(kills::HELD).unwrap(), [None]);
        assert_eq!(table.texts(kills::WHO).unwrap(), ["y"]);
    }

    #[test]
    #[should_panic(expected = "merging")]
    fn a_row_of_another_length_is_refused() {
        Sheet::new(merging::TABLE).row([]);
    }
}
