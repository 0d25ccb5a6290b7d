//! Shorthand for what the performances observe.

use pagelab_experiment::observation::{Column, Level, Note, Table, Unit, Values};
use pagelab_experiment::{Failure, Observation, Recorder};

/// Records a remark.
pub(super) fn note(recorder: &mut dyn Recorder, text: String) -> Result<(), Failure> {
    Ok(recorder.observe(Observation::Note(Note { level: Level::Info, text }))?)
}

/// A table under construction.
pub(super) struct Sheet {
    columns: Vec<Column>,
}

impl Sheet {
    pub(super) fn new(columns: &[(&str, Unit)]) -> Self {
        let column = |&(name, unit): &(&str, Unit)| Column {
            name: name.to_owned(),
            unit: Some(unit),
            values: Values::Number(Vec::new()),
        };
        Self { columns: columns.iter().map(column).collect() }
    }

    pub(super) fn row(&mut self, figures: &[f64]) {
        for (column, &figure) in self.columns.iter_mut().zip(figures) {
            if let Values::Number(values) = &mut column.values {
                values.push(figure.is_finite().then_some(figure));
            }
        }
    }

    pub(super) fn with_texts(mut self, name: &str, texts: Vec<String>) -> Self {
        self.columns.insert(0, Column { name: name.to_owned(), unit: None, values: Values::Text(texts) });
        self
    }

    pub(super) fn table(self, name: &str) -> Observation {
        Observation::Table(Table { name: name.to_owned(), columns: self.columns })
    }
}
