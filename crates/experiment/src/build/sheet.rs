//! A table under construction, row by row.

use crate::failure::Failure;
use crate::observation::{Column, Observation, Table, Unit, Values};
use crate::target::Recorder;

/// A table of numbers, with columns of texts before them where wanted.
#[derive(Debug)]
pub struct Sheet {
    name: &'static str,
    texts: Vec<(&'static str, Vec<String>)>,
    columns: Vec<(&'static str, Unit, Vec<Option<f64>>)>,
}

impl Sheet {
    /// An empty table with these columns of numbers.
    pub fn new(name: &'static str, columns: &[(&'static str, Unit)]) -> Self {
        let columns = columns.iter().map(|&(name, unit)| (name, unit, Vec::new())).collect();
        Self { name, texts: Vec::new(), columns }
    }

    /// The same with one more column of texts before the numbers.
    pub fn with_texts(mut self, column: &'static str) -> Self {
        self.texts.push((column, Vec::new()));
        self
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
        assert_eq!((texts.len(), values.len()), (self.texts.len(), self.columns.len()), "{}", self.name);
        for ((_, column), text) in self.texts.iter_mut().zip(texts) {
            column.push(text.to_owned());
        }
        for ((_, _, column), value) in self.columns.iter_mut().zip(values) {
            column.push(value.filter(|v| v.is_finite()));
        }
    }

    /// The table.
    pub fn table(self) -> Table {
        let column = |name: &str, unit, values| Column { name: name.to_owned(), unit, values };
        let texts = self.texts.into_iter().map(|(name, texts)| column(name, None, Values::Text(texts)));
        let numbers = self.columns.into_iter();
        let numbers = numbers.map(|(name, unit, values)| column(name, Some(unit), Values::Number(values)));
        Table { name: self.name.to_owned(), columns: texts.chain(numbers).collect() }
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

    #[test]
    fn texts_stand_before_numbers_and_no_number_is_a_dash() {
        let mut sheet = Sheet::new("t", &[("n", Unit::Count)]).with_texts("a").with_texts("b");
        sheet.named(["x", "y"], [Some(f64::NAN)]);
        let table = sheet.table();
        let names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "n"]);
        assert_eq!(table.numbers("n").unwrap(), [None]);
        assert_eq!(table.columns[1].values, Values::Text(vec!["y".into()]));
    }

    #[test]
    #[should_panic(expected = "t")]
    fn a_row_of_another_length_is_refused() {
        Sheet::new("t", &[("n", Unit::Count)]).row([]);
    }
}
