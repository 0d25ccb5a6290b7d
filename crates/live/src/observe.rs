//! Shorthand for making observations.

use std::io;

use pagelab_experiment::catalogue::metric as figure;
use pagelab_experiment::observation::{Column, Level, Note, Table, Unit, Values};
use pagelab_experiment::{Failure, Observation, Recorder};

/// Records the figure of this name in the catalogue; `None`: not measured.
///
/// # Errors
/// When it cannot be kept.
pub fn metric(recorder: &mut dyn Recorder, name: &str, value: Option<f64>) -> Result<(), Failure> {
    Ok(recorder.observe(Observation::Metric(figure(name, value)))?)
}

/// Records a remark.
///
/// # Errors
/// When it cannot be kept.
pub fn note(recorder: &mut dyn Recorder, level: Level, text: impl Into<String>) -> Result<(), Failure> {
    Ok(recorder.observe(Observation::Note(Note { level, text: text.into() }))?)
}

/// An error of the system while `doing` something.
pub fn failed(doing: &str) -> impl FnOnce(io::Error) -> Failure {
    let doing = doing.to_owned();
    move |error| Failure::system(doing, &error)
}

/// A table of numbers under construction, with texts as its first column where wanted.
#[derive(Debug)]
pub struct Sheet {
    name: &'static str,
    texts: Option<(&'static str, Vec<String>)>,
    columns: Vec<(&'static str, Unit, Vec<Option<f64>>)>,
}

impl Sheet {
    /// An empty table with these columns of numbers.
    pub fn new(name: &'static str, columns: &[(&'static str, Unit)]) -> Self {
        let columns = columns.iter().map(|&(name, unit)| (name, unit, Vec::new())).collect();
        Self { name, texts: None, columns }
    }

    /// The same with a first column of texts.
    pub fn with_texts(self, column: &'static str) -> Self {
        Self { texts: Some((column, Vec::new())), ..self }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When there are more or fewer values than columns.
    pub fn row<const N: usize>(&mut self, values: [Option<f64>; N]) {
        assert_eq!(values.len(), self.columns.len(), "{}", self.name);
        for ((_, _, column), value) in self.columns.iter_mut().zip(values) {
            column.push(value.filter(|v| v.is_finite()));
        }
    }

    /// Adds a row that begins with a text.
    pub fn named<const N: usize>(&mut self, text: &str, values: [Option<f64>; N]) {
        if let Some((_, texts)) = &mut self.texts {
            texts.push(text.to_owned());
        }
        self.row(values);
    }

    /// Records the table.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn record(self, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let texts = self.texts.map(|(name, texts)| Column {
            name: name.to_owned(),
            unit: None,
            values: Values::Text(texts),
        });
        let numbers = self.columns.into_iter().map(|(name, unit, values)| Column {
            name: name.to_owned(),
            unit: Some(unit),
            values: Values::Number(values),
        });
        let table = Table { name: self.name.to_owned(), columns: texts.into_iter().chain(numbers).collect() };
        Ok(recorder.observe(Observation::Table(table))?)
    }
}
