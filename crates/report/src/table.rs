//! Tables of finished texts, for the terminal and the page alike.

use pagelab_analysis::figure::{Column, Table, Tone};

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
    /// What spoils it, above.
    pub warnings: Vec<String>,
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
        Self {
            title: table.title.clone(),
            headings: std::iter::once(table.rows_are.to_owned())
                .chain(table.columns.iter().map(heading))
                .collect(),
            rows: table.rows.iter().map(row).collect(),
            ..Self::default()
        }
    }
}

impl TextTable {
    /// With its title and remarks, for the terminal.
    pub fn terminal(&self, style: &Style) -> String {
        let mut out = format!("{}\n", wrapped(&self.title, "", "  ", style));
        for warning in &self.warnings {
            out += &(wrapped(&format!("Warning: {warning}"), "", "  ", style) + "\n");
        }
        out += &(text::table(&self.headings, &self.rows, style) + "\n");
        for remark in &self.remarks {
            out += &(wrapped(remark, "", "  ", style) + "\n");
        }
        out
    }
}
