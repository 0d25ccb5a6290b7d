//! Tables and figures for a terminal: scaled units, three significant digits, a dash for what was not
//! measured.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use pagelab_analysis::figure::Tone;
use pagelab_experiment::observation::Unit;

/// What stands for a figure that was not measured.
pub const DASH: &str = "—";

/// What stands for a change that is not significant.
pub const SAME: &str = "·";

/// Spaces behind a column.
pub(crate) const GAP: usize = 2;

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colours and bold type are understood.
    pub color: bool,
    /// Columns.
    pub width: usize,
}

/// What belongs to the figure before it.
const UNITS: [&str; 9] = ["ns", "µs", "ms", "s", "instr", "KiB", "MiB", "GiB", "ppm"];

/// Sentences broken at spaces where the terminal ends, never within a name or before a unit; the first
/// line is indented by `first`, the others by `rest`. An end of a line within them is part of a name, and
/// is shown as JSON has it: no name begins a line.
pub fn wrapped(text: &str, first: &str, rest: &str, style: &Style) -> String {
    let options = textwrap::Options::new(style.width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    // A space that the wrapping does not know.
    textwrap::fill(&with_units_joined(&text.replace('\n', "\\u000a")), options).replace('\u{a0}', " ")
}

/// The text with a no-break space between figures and their units.
fn with_units_joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for word in text.split(' ') {
        let unit = UNITS.contains(&word.trim_end_matches([';', ',', '.', ':', ')']));
        let behind_figure = joined.ends_with(|c: char| c.is_ascii_digit());
        if !joined.is_empty() {
            joined.push(if unit && behind_figure { '\u{a0}' } else { ' ' });
        }
        joined.push_str(word);
    }
    joined
}

/// A table without lines, at most `style.width` wide where its words can be broken. Columns in which
/// every cell is a figure are set flush right. A cell is one line: a name that holds an end of a line begins
/// no other row.
pub fn table<H: AsRef<str>>(headings: &[H], rows: &[Vec<String>], style: &Style) -> String {
    toned(headings, rows, &[], style)
}

/// The same; the last cell of each row in the colour of its tone, where there is one.
pub fn toned<H: AsRef<str>>(headings: &[H], rows: &[Vec<String>], tones: &[Tone], style: &Style) -> String {
    // The gap behind the last column is not printed.
    let width = style.width.saturating_add(GAP);
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.min(u16::MAX.into()) as u16);
    if style.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let right = figure_columns(headings.len(), rows);
    let cell = |text: &str, column: usize| {
        let flush = if right[column] { CellAlignment::Right } else { CellAlignment::Left };
        Cell::new(text.replace('\n', "\\u000a")).set_alignment(flush)
    };
    table.set_header(headings.iter().enumerate().map(|(n, heading)| {
        let heading = cell(heading.as_ref(), n);
        if style.color { heading.add_attribute(Attribute::Bold) } else { heading }
    }));
    for (row, number) in rows.iter().zip(0..) {
        let colored = |(n, text): (usize, &String)| {
            let tone = tones.get(number).filter(|_| style.color && n + 1 == headings.len());
            match tone {
                Some(&tone) => cell(text, n).fg(color(tone)),
                None => cell(text, n),
            }
        };
        table.add_row(row.iter().enumerate().take(headings.len()).map(colored));
    }
    let least = least_widths(headings, rows, &right, width);
    for (n, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP as u16));
        if let Some(&least) = least.get(n) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed((least + GAP) as u16)));
        }
    }
    let text = table.to_string();
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// The columns in which every cell is a figure.
fn figure_columns(columns: usize, rows: &[Vec<String>]) -> Vec<bool> {
    let has_figures = |column: usize| {
        let mut cells =
            rows.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty()).peekable();
        cells.peek().is_some() && cells.all(|cell| is_figure(cell))
    };
    (0..columns).map(has_figures).collect()
}

/// The width that each column needs with the gap behind it, so that no word and no figure is
/// broken.
pub(crate) fn needed_widths(headings: &[String], rows: &[Vec<String>]) -> Vec<usize> {
    let figures = figure_columns(headings.len(), rows);
    least_widths(headings, rows, &figures, usize::MAX).iter().map(|width| width + GAP).collect()
}

fn color(tone: Tone) -> Color {
    match tone {
        Tone::Good => Color::DarkGreen,
        Tone::Fair => Color::DarkYellow,
        Tone::Bad => Color::DarkRed,
    }
}

/// How wide each column must be that nothing is broken but between words: figures not at all, else words,
/// else all but long words of cells (first the very long ones alone), else the words of cells, whichever fits into
/// `width` first; empty where nothing does.
fn least_widths<H: AsRef<str>>(
    headings: &[H],
    rows: &[Vec<String>],
    figures: &[bool],
    width: usize,
) -> Vec<usize> {
    const VERY_LONG_CELL: usize = 20;
    const LONG_CELL: usize = 12;
    let word = |text: &str| text.split(' ').map(|word| word.chars().count()).max().unwrap_or(0);
    let whole = |text: &str| text.chars().count();
    let cells = |column: usize, size: &dyn Fn(&str) -> usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| size(cell)).max().unwrap_or(0)
    };
    let heading = |column: usize| word(headings[column].as_ref());
    let all = |least: &dyn Fn(usize) -> usize| (0..headings.len()).map(least).collect::<Vec<_>>();
    [
        all(&|n| heading(n).max(if figures[n] { cells(n, &whole) } else { cells(n, &word) })),
        all(&|n| heading(n).max(cells(n, &word))),
        all(&|n| heading(n).max(cells(n, &word).min(VERY_LONG_CELL))),
        all(&|n| heading(n).max(cells(n, &word).min(LONG_CELL))),
        all(&|n| cells(n, &word)),
    ]
    .into_iter()
    .find(|widths| widths.iter().map(|width| width + GAP).sum::<usize>() <= width)
    .unwrap_or_default()
}

fn is_figure(cell: &str) -> bool {
    cell == DASH
        || cell == SAME
        || cell.trim_start_matches(['-', '−', '+', '<', '±', '(']).starts_with(|c: char| c.is_ascii_digit())
}

/// A figure with its unit, scaled; a dash when there is none.
pub fn value(value: Option<f64>, unit: Unit) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return DASH.to_owned() };
    match unit {
        Unit::Nanoseconds => duration(value),
        Unit::Count | Unit::Pages => count(value),
        Unit::Bytes => bytes(value),
        Unit::Share => format!("{}%", digits(value * 100.0)),
        Unit::PerSecond => format!("{}/s", count(value)),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::Instructions => format!("{} instr", count_exact(value)),
        Unit::PerMillionInstructions if value.abs() < 99.95 => format!("{}/Minstr", digits(value)),
        Unit::PerMillionInstructions => format!("{}/Minstr", count_exact(value)),
        Unit::BytesPerMillionInstructions => format!("{}/Minstr", bytes(value)),
        Unit::Ratio => digits(value),
    }
}

/// A factor of change: 3.3×, 34×, 1.05×.
pub fn ratio(factor: f64) -> String {
    match factor {
        _ if !factor.is_finite() => DASH.to_owned(),
        _ if factor >= 9.95 => format!("{}×", grouped(&format!("{factor:.0}"))),
        _ if factor >= 1.995 => format!("{factor:.1}×"),
        _ => format!("{factor:.2}×"),
    }
}

/// Nanoseconds in the unit that leaves one to three digits before the point.
pub fn duration(ns: f64) -> String {
    if !ns.is_finite() {
        return DASH.to_owned();
    }
    // The unit is chosen after rounding, so that 999.96 ns is 1.00 µs.
    let units = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (unit, scale) = units.into_iter().find(|(_, scale)| (ns.abs() / scale) < 999.5).unwrap_or(units[3]);
    let scaled = ns / scale;
    if unit == "ns" && scaled == scaled.trunc() {
        return format!("{scaled} ns");
    }
    if unit == "s" && scaled.abs() >= 1000.0 {
        return format!("{} s", count(scaled));
    }
    format!("{} {unit}", digits(scaled))
}

/// Bytes in powers of 1024.
pub fn bytes(bytes: f64) -> String {
    if !bytes.is_finite() {
        return DASH.to_owned();
    }
    let units = [("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let scaled = |shift: i32| bytes / 2f64.powi(shift);
    let (unit, shift) =
        units.into_iter().find(|(_, shift)| scaled(*shift).abs() < 1023.5).unwrap_or(units[4]);
    let figure = scaled(shift);
    if figure == figure.trunc() { format!("{figure} {unit}") } else { format!("{} {unit}", digits(figure)) }
}

/// A number of things, with commas between thousands; what is below a hundred and not whole keeps
/// three digits.
pub fn count(count: f64) -> String {
    if !count.is_finite() {
        return DASH.to_owned();
    }
    if count.abs() < 99.95 && count != count.trunc() {
        return digits(count);
    }
    grouped(&format!("{:.0}", count))
}

/// A count with one decimal, which an instruction count averaged over many operations has.
fn count_exact(count: f64) -> String {
    let text = format!("{count:.1}");
    let (whole, tenth) = text.split_once('.').unwrap_or((&text, "0"));
    if tenth == "0" { grouped(whole) } else { format!("{}.{tenth}", grouped(whole)) }
}

fn grouped(text: &str) -> String {
    let (sign, figures) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let mut out = String::from(sign);
    for (n, figure) in figures.chars().enumerate() {
        if n > 0 && (figures.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(figure);
    }
    if out == "-0" { "0".to_owned() } else { out }
}

/// Three significant digits, never in powers of ten down to a thousandth.
pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    match size {
        0.0 => "0".to_owned(),
        _ if size >= 99.95 => grouped(&format!("{value:.0}")),
        _ if size >= 9.995 => format!("{value:.1}"),
        _ if size >= 0.9995 => format!("{value:.2}"),
        _ if size >= 0.0995 => format!("{value:.3}"),
        _ if size >= 0.0005 => format!("{value:.4}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_scale() {
        for (ns, text) in [
            (0.0, "0 ns"),
            (12.0, "12 ns"),
            (12.34, "12.3 ns"),
            (999.96, "1.00 µs"),
            (1234.0, "1.23 µs"),
            (56_789.0, "56.8 µs"),
            (2.5e9, "2.50 s"),
            (7.2e12, "7,200 s"),
            (-1500.0, "-1.50 µs"),
        ] {
            assert_eq!(duration(ns), text);
        }
    }

    #[test]
    fn figures_with_units() {
        assert_eq!(value(None, Unit::Count), "—");
        assert_eq!(value(Some(f64::NAN), Unit::Share), "—");
        assert_eq!(value(Some(2_000_000.0), Unit::Count), "2,000,000");
        assert_eq!(value(Some(0.1234), Unit::Share), "12.3%");
        assert_eq!(value(Some(67_108_864.0), Unit::Bytes), "64 MiB");
        assert_eq!(value(Some(4647.6), Unit::Instructions), "4,647.6 instr");
        assert_eq!(value(Some(1.5), Unit::Ratio), "1.50");
        assert_eq!(value(Some(1234.5), Unit::PerSecond), "1,234/s");
        assert_eq!(value(Some(2.5), Unit::PerMillionInstructions), "2.50/Minstr");
        assert_eq!(value(Some(1234.5), Unit::PerMillionInstructions), "1,234.5/Minstr");
        assert_eq!(value(Some(2_097_152.0), Unit::BytesPerMillionInstructions), "2 MiB/Minstr");
    }

    #[test]
    fn factors_are_short() {
        let of = |factors: &[f64]| factors.iter().map(|&f| ratio(f)).collect::<Vec<_>>();
        assert_eq!(
            of(&[1.049, 1.999, 3.26, 34.4, 1234.0, f64::NAN]),
            ["1.05×", "2.0×", "3.3×", "34×", "1,234×", "—"]
        );
    }

    #[test]
    fn a_unit_stays_with_its_figure() {
        let text = "20.1 µs each; 911 ns, with 85% of 20,274 s and  s";
        let joined = with_units_joined(text);
        assert_eq!(joined.replace('\u{a0}', " "), text);
        assert_eq!(joined.matches('\u{a0}').count(), 3);
    }

    #[test]
    fn a_table_fits_and_aligns() {
        let rows = vec![
            vec!["a".into(), "1".into()],
            vec!["long words that break somewhere".into(), "1,000".into()],
        ];
        let text = table(&["name", "n"], &rows, &Style { color: false, width: 24 });
        assert!(text.lines().all(|line| line.chars().count() <= 24), "{text}");
        assert!(text.lines().next().unwrap().ends_with(" n"), "{text}");
        assert!(!text.contains('\u{1b}'));
        let colored = table(&["name", "n"], &rows, &Style { color: true, width: 80 });
        assert!(colored.contains('\u{1b}'));
    }

    #[test]
    fn a_verdict_has_its_colour_only_where_colours_are_understood() {
        let rows = vec![vec!["a".into(), "reproduced".into()], vec!["b".into(), "not".into()]];
        let text = |color| {
            let style = Style { color, width: 80 };
            toned(&["claim", "verdict"], &rows, &[Tone::Good, Tone::Bad], &style)
        };
        assert!(!text(false).contains('\u{1b}') && text(false).contains("reproduced"));
        let colored = text(true);
        let lines: Vec<&str> = colored.lines().collect();
        for (line, word) in [(lines[1], "reproduced"), (lines[2], "not")] {
            let before = line.split(word).next().unwrap();
            assert!(before.contains('\u{1b}') && line.len() > before.len() + word.len(), "{line:?}");
        }
    }

    #[test]
    fn a_long_word_breaks_no_heading() {
        let rows = vec![vec!["a word of_thirty_characters_and_more_is".into(), "1 s".into(), "no".into()]];
        let text = table(&["claim", "published", "verdict"], &rows, &Style { color: false, width: 46 });
        assert!(text.lines().all(|line| line.chars().count() <= 46), "{text}");
        let heading = text.lines().next().unwrap();
        assert!(heading.contains("published") && heading.ends_with("verdict"), "{text}");
        let narrow = table(&["claim", "published", "verdict"], &rows, &Style { color: false, width: 36 });
        let heading = narrow.lines().next().unwrap();
        assert!(heading.contains("published") && heading.ends_with("verdict"), "{narrow}");
    }
}
