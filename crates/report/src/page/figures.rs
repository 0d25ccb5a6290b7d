//! Figures beside plots: one under an axis, one in a readout, and the table behind a plot.

use maud::{Markup, html};

use pagelab_analysis::figure::Axis;

use crate::text;

/// Figures, none where there is no value.
pub(super) type Numbers = Vec<Option<f64>>;

/// A curve as the script and the table know it.
pub(super) struct Curve {
    pub name: String,
    pub color: usize,
    pub x: Numbers,
    pub y: Numbers,
    /// How its figures are written, as an axis names its unit.
    pub unit: &'static str,
    /// Whether a figure holds until the next one, as a histogram's does.
    pub step: bool,
}

/// Most rows of a table behind a plot, and most cells.
const ROWS: usize = 200;
const CELLS: usize = 800;

/// A figure with its unit, as [`Axis::unit`] names it; a dash when there is none.
pub fn figure(value: Option<f64>, unit: &str) -> String {
    let Some(value) = value.filter(|v| v.is_finite()) else { return text::DASH.to_owned() };
    match unit {
        "ns" => text::duration(value),
        "bytes" => text::bytes(value),
        "bytes/s" => format!("{}/s", text::bytes(value)),
        "bytes/Minstr" => format!("{}/Minstr", text::bytes(value)),
        "share" => format!("{}%", plain(value * 100.0)),
        "instr" => format!("{} instr", plain(value)),
        "/Minstr" => format!("{}/Minstr", plain(value)),
        _ => plain(value),
    }
}

/// A figure short enough for a tick.
pub fn tick(value: f64, unit: &str) -> String {
    let size = value.abs();
    match unit {
        "ns" => short(text::duration(value)),
        "bytes" => short(text::bytes(value)),
        "bytes/s" => format!("{}/s", short(text::bytes(value))),
        "bytes/Minstr" => format!("{}/Minstr", short(text::bytes(value))),
        "/Minstr" => format!("{}/Minstr", plain(value)),
        "share" => format!("{}%", plain(value * 100.0)),
        _ if size >= 1e12 => format!("{value:.0e}"),
        _ if size >= 1e9 => format!("{} G", plain(value / 1e9)),
        _ if size >= 1e6 => format!("{} M", plain(value / 1e6)),
        _ if size >= 1e4 => format!("{} k", plain(value / 1e3)),
        _ => plain(value),
    }
}

/// Without the zeros behind the point: 1.00 µs is 1 µs.
fn short(text: String) -> String {
    match text.split_once(' ') {
        Some((figure, unit)) if figure.contains('.') => {
            format!("{} {unit}", figure.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Three significant digits, thousands apart, no zeros behind the point; powers of ten below a
/// thousandth.
fn plain(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e15).contains(&size) {
        return format!("{value:.2e}");
    }
    if size >= 99.95 || value == value.trunc() {
        return text::count(value.round());
    }
    let places = (2 - size.log10().floor() as i32).max(0) as usize;
    format!("{value:.places$}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The figures behind a plot, thinned to what can be read.
pub(super) fn table(x: &Axis, curves: &[Curve]) -> Markup {
    let mut all: Vec<f64> = curves.iter().flat_map(|c| c.x.iter().flatten().copied()).collect();
    all.retain(|v| v.is_finite());
    all.sort_by(f64::total_cmp);
    all.dedup();
    let most = (CELLS / (curves.len() + 1)).clamp(20, ROWS);
    let every = all.len().div_ceil(most).max(1);
    let rows = all.iter().enumerate().filter(|(n, _)| n % every == 0 || n + 1 == all.len());
    // A step's figure holds until the next one, which may be its end.
    let at = |curve: &Curve, x: f64| {
        let mut pairs = curve.x.iter().zip(&curve.y);
        let found = match curve.step {
            true => pairs.rfind(|(at, _)| at.is_some_and(|at| at <= x)),
            false => pairs.find(|(at, _)| **at == Some(x)),
        };
        found.and_then(|(_, y)| *y)
    };
    html! {
        @if every > 1 {
            p.soft { "One row in " (every) " of " (text::count(all.len() as f64)) "; the notebook has all." }
        }
        div.scroll tabindex="0" { table {
            thead { tr { th { (x.label) } @for curve in curves { th { (curve.name) } } } }
            tbody {
                @for (_, &x_value) in rows {
                    tr { td { (figure(Some(x_value), x.unit)) } @for curve in curves { td { (figure(at(curve, x_value), curve.unit)) } } }
                }
            }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let ns: Vec<String> = [100.0, 1e3, 2.5e4, 1e7].iter().map(|&v| tick(v, "ns")).collect();
        assert_eq!(ns, ["100 ns", "1 µs", "25 µs", "10 ms"]);
        let plain: Vec<String> = [0.0, 5000.0, 4e5, 1.5e6, 0.25].iter().map(|&v| tick(v, "")).collect();
        assert_eq!(plain, ["0", "5,000", "400 k", "1.5 M", "0.25"]);
        assert_eq!(tick(0.0001, "share"), "0.01%");
        assert_eq!([tick(250.0, "/Minstr"), figure(Some(2.5), "/Minstr")], ["250/Minstr", "2.5/Minstr"]);
        assert_eq!(tick(2_097_152.0, "bytes/Minstr"), "2 MiB/Minstr");
        assert_eq!(figure(None, "ns"), "—");
        assert_eq!(figure(Some(f64::NAN), ""), "—");
    }

    #[test]
    fn a_long_table_is_thinned_and_says_so() {
        let numbers: Numbers = (0..1000).map(|n| Some(f64::from(n))).collect();
        let curve =
            Curve { name: "c".into(), color: 0, x: numbers.clone(), y: numbers, unit: "", step: false };
        let html = table(&Axis::linear("x", ""), &[curve]).into_string();
        assert!(html.contains("One row in 5 of 1,000"), "{html}");
        let rows = html.matches("<tr>").count();
        assert!((150..=202).contains(&rows) && html.contains("<td>999</td>"), "{rows}");
    }

    #[test]
    fn a_bin_ends_where_nothing_follows() {
        let of = |list: &[f64]| list.iter().map(|&v| Some(v)).collect();
        let curve = |name: &str, x, y, step| Curve { name: name.into(), color: 0, x, y, unit: "", step };
        let bin = curve("bin", of(&[1.0, 3.0, 3.0]), vec![Some(7.0), Some(7.0), None], true);
        let other = curve("other", of(&[2.0, 3.0, 9.0]), of(&[1.0; 3]), false);
        let html = table(&Axis::linear("x", ""), &[bin, other]).into_string();
        assert!(html.contains("<td>2</td><td>7</td><td>1</td>"), "{html}");
        assert!(
            html.contains("<td>3</td><td>—</td><td>1</td>") && html.contains("<td>9</td><td>—</td>"),
            "{html}"
        );
    }
}
