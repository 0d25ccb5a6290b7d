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

    /// The table in parts that a terminal has room for, each with the names of the rows. A table
    /// with long names stays whole.
    pub(crate) fn in_parts(self, style: &Style) -> Vec<Self> {
        const LONG_NAME: usize = 24;
        let widths = text::needed_widths(&self.headings, &self.rows);
        // The gap behind the last column is not printed.
        let room = style.width + text::GAP;
        let [names, columns @ ..] = &widths[..] else { return vec![self] };
        if widths.iter().sum::<usize>() <= room || *names > LONG_NAME || !self.tones.is_empty() {
            return vec![self];
        }
        let (mut parts, mut used): (Vec<Vec<usize>>, usize) = (Vec::new(), room);
        for (column, width) in (1..).zip(columns) {
            used += width;
            match parts.last_mut() {
                Some(part) if used <= room => part.push(column),
                _ => {
                    parts.push(vec![0, column]);
                    used = names + width;
                }
            }
        }
        let picked = |cells: &[String], part: &[usize]| {
            part.iter().filter_map(|&column| cells.get(column).cloned()).collect::<Vec<_>>()
        };
        let count = parts.len();
        let part = |(number, part): (usize, Vec<usize>)| Self {
            title: if number == 0 { self.title.clone() } else { format!("{} (continued)", self.title) },
            headings: picked(&self.headings, &part),
            rows: self.rows.iter().map(|row| picked(row, &part)).collect(),
            remarks: if number + 1 == count { self.remarks.clone() } else { Vec::new() },
            tones: Vec::new(),
        };
        parts.into_iter().enumerate().map(part).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_table_comes_in_parts_with_its_names() {
        let headings = ["order", "answer", "prefetched", "io.read"];
        let row = |name: &str| [name, "1.94 s", "16,384", "64.0 MiB"].map(str::to_owned).to_vec();
        let mut table = TextTable::new("restore", headings, [row("none"), row("sequential")]);
        table.remarks = vec!["r".to_owned()];
        let parts = |width| table.clone().in_parts(&Style { color: false, width });
        // 10, 6, 10 and 8 characters with gaps of two between them.
        assert_eq!(parts(40).len(), 1);
        let two = parts(39);
        let headings: Vec<String> = two.iter().map(|part| part.headings.join(" ")).collect();
        assert_eq!(headings, ["order answer prefetched", "order io.read"]);
        assert_eq!(two[1].rows, [["none", "64.0 MiB"], ["sequential", "64.0 MiB"]]);
        assert_eq!(
            (two[1].title.as_str(), two[0].remarks.len(), two[1].remarks.len()),
            ("restore (continued)", 0, 1)
        );
        for part in two {
            let printed = part.terminal(&Style { color: false, width: 39 });
            assert!(printed.contains("1.94 s") || printed.contains("64.0 MiB"), "{printed}");
        }
        assert_eq!(parts(5).len(), 3, "a column each");
    }
}
