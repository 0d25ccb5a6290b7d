//! The page of a matrix of switches and loads: the largest effects, and a heat map of each figure.

use maud::{Markup, html};
use pagelab_analysis::mechanisms::{Cell, Effect, Figure, Matrix, Reason};

use super::contents::Contents;
use super::shell::Place;
use super::tables;
use crate::mechanisms as words;
use crate::table::TextTable;
use crate::text::DASH;

/// The classes of the colours, and the smallest change of each: a tenth, a third, and a factor of 2
/// on a scale of ratios.
const LEVELS: [(f64, &str, &str); 4] = [
    (std::f64::consts::LN_2, "less4", "more4"),
    (0.288, "less3", "more3"),
    (0.095, "less2", "more2"),
    (0.0, "less1", "more1"),
];

/// The page as HTML. `target`: what was measured, and under which conditions.
pub fn page(matrix: &Matrix, target: &str) -> String {
    let contents = &mut Contents::default();
    let largest = words::largest(matrix);
    let left_out = words::left_out(matrix);
    let body = html! {
        p.soft { (target) }
        section {
            (contents.heading("The largest effects"))
            @if largest.is_empty() { p.answer { "No switch has a significant effect." } }
            @else { section.verdict aria-label="Verdict" { ul { @for line in &largest { li { (line) } } } } }
            p { "At most one effect of each switch is listed. " (words::summary(matrix)) }
        }
        @for figure in Figure::ALL { (map(matrix, figure, contents)) }
        (tables::text(&words::loads(matrix), contents))
        @if !left_out.is_empty() {
            section { (contents.heading("Left out")) ul { @for line in &left_out { li { (line) } } } }
        }
        section {
            (contents.heading("Details"))
            @for table in Figure::ALL.map(|figure| words::details(matrix, figure)).iter().chain(&[lines(matrix), switches(matrix)]) {
                details { summary { (table.title) " (" (table.rows.len()) " rows)" } (tables::bare(table)) }
            }
        }
    };
    Place::Alone.page("Mechanism by mechanism", &body, contents)
}

/// The heat map of a figure.
fn map(matrix: &Matrix, figure: Figure, contents: &mut Contents) -> Markup {
    let caption = match figure {
        Figure::Instructions => "Change of the instructions per reference, fork or page.",
        Figure::Regret => {
            "Change of the major faults. OPT's faults are the same with and without a switch, so the multiples of OPT's \
             faults change by the same share."
        }
    };
    html! {
        section {
            (contents.heading(words::heading(figure)))
            p.soft { (caption) }
            p.soft {
                span.key.less4 { "half or less" } span.key.less2 { "10% less" } span.key.more2 { "10% more" }
                span.key.more4 { "double or more" } " " (words::key())
            }
            div.scroll tabindex="0" role="region" aria-label="Heat map" { table.heat {
                thead { tr { th { "switch" } @for load in &matrix.loads { th title=(load.help) { (load.name) } } } }
                tbody { @for (switch, row) in matrix.switches.iter().zip(&matrix.cells) { tr {
                    th scope="row" title=(switch.help) { (switch.name) }
                    @for cell in row {
                        td class=[class(cell, figure)] title=[title(cell, figure)] { (words::change(cell, figure)) }
                    }
                } } }
            } }
        }
    }
}

/// The colour of a cell.
fn class(cell: &Cell, figure: Figure) -> Option<&'static str> {
    let effect = cell.effect(figure)?;
    if !effect.differs {
        return Some("same");
    }
    let (_, less, more) = LEVELS.into_iter().find(|(least, ..)| effect.size() >= *least)?;
    Some(if effect.change < 0.0 { less } else { more })
}

/// The words of a cell: its change with the interval, or why it has none.
fn title(cell: &Cell, figure: Figure) -> Option<String> {
    if let Some(Reason::Unsupported(why) | Reason::Failed(why)) = &cell.missing {
        return Some(why.clone());
    }
    let Effect { change, interval, .. } = cell.effect(figure)?;
    let signed = words::signed;
    Some(match interval {
        Some((low, high)) => format!("{} ({} to {})", signed(*change), signed(*low), signed(*high)),
        None => signed(*change),
    })
}

/// The command line of each load.
fn lines(matrix: &Matrix) -> TextTable {
    let rows =
        matrix.loads.iter().map(|load| vec![load.name.to_owned(), format!("pagelab run {}", load.line)]);
    TextTable::new("Command lines of the loads", ["load", "command line"], rows)
}

/// The conditions of each switch.
fn switches(matrix: &Matrix) -> TextTable {
    let rows = matrix.switches.iter().map(|switch| {
        let values: Vec<String> = switch.values.iter().map(ToString::to_string).collect();
        let values = if values.is_empty() { DASH.to_owned() } else { values.join(", ") };
        vec![switch.name.to_owned(), switch.help.to_owned(), values]
    });
    TextTable::new("Conditions of the switches", ["switch", "what it does", "conditions"], rows)
}

#[cfg(test)]
mod tests {
    use pagelab_analysis::mechanisms::{LOADS, Sample, switches};

    use super::*;

    fn cell(after: f64, differs: bool) -> Cell {
        let sample = |median| Sample { median, min: median, max: median, n: 3 };
        let change = after / 100.0 - 1.0;
        let effect = Effect {
            before: sample(100.0),
            after: sample(after),
            change,
            interval: Some((change - 0.01, change + 0.01)),
            differs,
            tested: true,
            inconclusive: false,
        };
        Cell { instructions: Some(effect), ..Cell::default() }
    }

    #[test]
    fn a_cell_has_the_colour_of_its_change() {
        let of = |after, differs| class(&cell(after, differs), Figure::Instructions);
        assert_eq!(
            [40.0, 60.0, 85.0, 97.0].map(|after| of(after, true).unwrap()),
            ["less4", "less3", "less2", "less1"]
        );
        assert_eq!(
            [103.0, 115.0, 150.0, 210.0].map(|after| of(after, true).unwrap()),
            ["more1", "more2", "more3", "more4"]
        );
        assert_eq!((of(200.0, false), class(&Cell::default(), Figure::Regret)), (Some("same"), None));
    }

    #[test]
    fn the_page_is_whole_and_escapes_what_it_is_given() {
        let matrix = Matrix {
            loads: LOADS[..1].to_vec(),
            switches: switches().into_iter().take(2).collect(),
            baselines: vec![Default::default()],
            cells: vec![
                vec![cell(40.0, true)],
                vec![Cell { missing: Some(Reason::Failed("<b>".into())), ..Cell::default() }],
            ],
        };
        let page = page(&matrix, "kernel:<i>");
        assert!(page.contains("<td class=\"less4\" title=\"−60.0% (−61.0% to −59.0%)\">−60</td>"), "{page}");
        assert!(
            page.contains("kernel:&lt;i&gt;") && page.contains("failed: &lt;b&gt;") && !page.contains("<b>")
        );
        assert!(page.contains("pagelab run mapanon") && page.contains("lru_gen/enabled=0"));
    }
}
