//! The long form: one figure a row, with the same ten columns for every kind, so that a data frame
//! takes it as it is. What each kind puts into the columns is in docs/src/reference/notebook.md.

use std::io::{self, Write};

use pagelab_experiment::observation::{Table, Unit, Values};
use pagelab_experiment::{Observations, Outcome, Repetition, Run};

use crate::write::word;

/// One row: what each kind puts into the columns is in docs/src/reference/notebook.md.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// The run's name.
    pub run: String,
    /// The repetition, from 1.
    pub repetition: i64,
    /// How the repetition ended: done, interrupted, failed, torn.
    pub outcome: &'static str,
    /// The kind of observation.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Which of its figures.
    pub item: Option<String>,
    /// The place within it.
    pub row: Option<i64>,
    /// The unit of the value.
    pub unit: Option<String>,
    /// The figure; `None` where it was not measured.
    pub value: Option<f64>,
    /// The text, of what is no figure.
    pub text: Option<String>,
}

/// The columns' names, in the order of [`Row`].
const HEADING: [&str; 10] =
    ["run", "repetition", "outcome", "kind", "name", "item", "row", "unit", "value", "text"];

pub(super) fn write_csv(runs: &[Run], to: &mut impl Write) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(to);
    csv.write_record(HEADING).map_err(unwrapped)?;
    for run in runs {
        for repetition in &run.repetitions {
            for row in rows(run, repetition) {
                csv.write_record([
                    inert(row.run),
                    row.repetition.to_string(),
                    row.outcome.to_owned(),
                    row.kind.to_owned(),
                    inert(row.name),
                    inert(row.item.unwrap_or_default()),
                    row.row.map_or_else(String::new, |n| n.to_string()),
                    inert(row.unit.unwrap_or_default()),
                    row.value.map_or_else(String::new, |v| v.to_string()),
                    inert(row.text.unwrap_or_default()),
                ])
                .map_err(unwrapped)?;
            }
        }
    }
    csv.flush()
}

/// A text that a spreadsheet does not take for a formula: with an apostrophe before what would
/// begin one. A number stays as it is.
fn inert(text: String) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err() {
        format!("'{text}")
    } else {
        text
    }
}

/// The error of the output itself, where it is one: what kind it is decides whether it is a failure at all.
fn unwrapped(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The rows of one repetition of a run.
pub fn rows(run: &Run, repetition: &Repetition) -> Vec<Row> {
    let outcome = match repetition.outcome {
        Outcome::Done => "done",
        Outcome::Interrupted => "interrupted",
        Outcome::Failed(_) => "failed",
        Outcome::Torn => "torn",
    };
    let mut rows = Rows {
        base: Row {
            run: run.header.name.clone(),
            repetition: repetition.number.into(),
            outcome,
            ..Row::default()
        },
        rows: Vec::new(),
    };
    rows.observations(&repetition.observations);
    rows.rows
}

struct Rows {
    base: Row,
    rows: Vec<Row>,
}

impl Rows {
    /// A row of this kind and name, to be filled in.
    fn add(&mut self, kind: &'static str, name: &str) -> &mut Row {
        self.rows.push(Row { kind, name: name.to_owned(), ..self.base.clone() });
        self.rows.last_mut().expect("just added")
    }

    fn observations(&mut self, seen: &Observations) {
        for (name, value) in &seen.environment {
            self.add("environment", name).text = Some(value.clone());
        }
        for metric in &seen.metrics {
            let row = self.add("metric", &metric.name);
            row.unit = Some(word(&metric.unit));
            row.value = finite(metric.value);
        }
        for h in &seen.histograms {
            for (item, value) in [("min", h.min), ("max", h.max), ("sum", h.sum)] {
                let row = self.add("histogram", &h.name);
                row.item = Some(item.to_owned());
                row.unit = Some(word(&h.unit));
                row.value = Some(value as f64);
            }
            for &(value, count) in &h.buckets {
                let row = self.add("histogram", &h.name);
                row.item = Some("count".to_owned());
                row.row = i64::try_from(value).ok();
                row.unit = Some(word(&Unit::Count));
                row.value = Some(count as f64);
            }
        }
        seen.tables.iter().for_each(|table| self.table(table));
        for p in &seen.pages {
            for (item, pages) in [("present", &p.present), ("swapped", &p.swapped)] {
                let row = self.add("pages", "snapshot");
                row.item = Some(item.to_owned());
                row.row = i64::try_from(p.reference).ok();
                row.unit = Some(word(&Unit::Pages));
                row.value = Some(pages.len() as f64);
            }
        }
        for counter in &seen.counters {
            for (item, value) in [("before", counter.before), ("after", counter.after)] {
                let row = self.add("counter", &format!("{}:{}", counter.source, counter.name));
                row.item = Some(item.to_owned());
                row.value = Some(value as f64);
            }
        }
        for note in &seen.notes {
            self.add("note", &word(&note.level)).text = Some(note.text.clone());
        }
        for (name, text) in &seen.logs {
            self.add("log", name).text = Some(text.clone());
        }
    }

    fn table(&mut self, table: &Table) {
        for column in &table.columns {
            let unit = column.unit.as_ref().map(word);
            let length = match &column.values {
                Values::Number(numbers) => numbers.len(),
                Values::Text(texts) => texts.len(),
            };
            for at in 0..length {
                let row = self.add("table", &table.name);
                row.item = Some(column.name.clone());
                row.row = Some(at as i64);
                row.unit.clone_from(&unit);
                match &column.values {
                    Values::Number(numbers) => row.value = finite(numbers[at]),
                    Values::Text(texts) => row.text = Some(texts[at].clone()),
                }
            }
        }
    }
}

/// What is not finite is not a figure.
fn finite(value: Option<f64>) -> Option<f64> {
    value.filter(|v| v.is_finite())
}
