//! Tables of finished texts, for the terminal and the page alike.

use pagelab_analysis::figure::{Column, Table, Tone};
use pagelab_experiment::observation::{self, Unit, Values};

use crate::text::{self, Style, wrapped};

/// A table of finished texts: a comparison, a study's claims.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    /// The heading.
    pub title: String,
    /// The columns.
    pub headings: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
    /// Sentences below it.
    pub remarks: Vec<String>,
    /// Of each row the tone of its last cell, a verdict; empty where there are none.
    pub tones: Vec<Tone>,
}

impl From<&Table> for TextTable {
    /// A table of figures: headings with their units, figures with as many decimals as are worth showing.
    fn from(table: &Table) -> Self {
        let heading = |column: &Column| match column.unit {
            "" => column.name.clone(),
            unit => format!("{} [{unit}]", column.name),
        };
        let cell = |(figure, column): (&Option<f64>, &Column)| {
            figure.map_or_else(|| text::DASH.to_owned(), |v| format!("{v:.*}", usize::from(column.decimals)))
        };
        let row = |(label, figures): &(String, Vec<Option<f64>>)| {
            std::iter::once(label.clone()).chain(figures.iter().zip(&table.columns).map(cell)).collect()
        };
        let headings = std::iter::once(table.rows_are.to_owned()).chain(table.columns.iter().map(heading));
        Self::new(&table.title, headings, table.rows.iter().map(row))
    }
}

impl TextTable {
    /// A table without remarks and verdicts.
    pub fn new(
        title: impl Into<String>,
        headings: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let headings = headings.into_iter().map(Into::into).collect();
        Self { title: title.into(), headings, rows: rows.into_iter().collect(), ..Self::default() }
    }

    /// An observed table whose rows have names; without those in which nothing happened, unless `all` are wanted.
    pub(crate) fn observed(table: &observation::Table, all: bool) -> Option<Self> {
        let Values::Text(names) = &table.columns.first()?.values else { return None };
        let cell = |column: &observation::Column, row: usize| match &column.values {
            Values::Number(numbers) => {
                text::value(numbers.get(row).copied().flatten(), column.unit.unwrap_or(Unit::Count))
            }
            Values::Text(texts) => texts.get(row).cloned().unwrap_or_default(),
        };
        let rows = (0..names.len()).filter(|&row| all || !table.nothing_in(row));
        let rows = rows.map(|row| table.columns.iter().map(|column| cell(column, row)).collect());
        Some(Self::new(&table.name, table.columns.iter().map(|column| &column.name), rows))
    }

    /// With its title and remarks, for the terminal.
    pub fn terminal(&self, style: &Style) -> String {
        let mut out = format!("{}\n", wrapped(&self.title, "", "  ", style));
        out += &(text::table(&self.headings, &self.rows, style) + "\n");
        for remark in &self.remarks {
            out += &(wrapped(remark, "", "  ", style) + "\n");
        }
        out
    }
}
