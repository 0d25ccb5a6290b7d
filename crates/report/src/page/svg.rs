//! Draws a plot as SVG that is there without the script, prints, and fits any width.
//!
//! The frame's padding holds the labels; what is inside is placed in shares of its width. Lines and cells
//! are in an inner picture of [`WIDE`] × [`TALL`] units that is stretched, with strokes that are not: to zoom
//! is to change its view box. Where the reader may switch the ordinate, both ways are drawn and one is shown.

use std::fmt::Write as _;

use maud::{Markup, html};

use pagelab_analysis::figure::{Heat, Mark, MarkKind, Plot, Series, Strip};

use super::figures;
use super::scale::{Scale, scale_x, scales_y};

/// The units of the inner picture.
const WIDE: f64 = 10_000.0;
const TALL: f64 = 2_000.0;
/// Pixels: an ordinary plot's height, a picture's, a wide plot's, and a strip's with its gap.
const HEIGHT: usize = 200;
const PICTURE: usize = 260;
const WIDE_HEIGHT: usize = 380;
const STRIP: usize = 16;
const STRIP_GAP: usize = 6;
/// About as many ticks as fit a narrow screen.
const TICKS: usize = 5;
/// Shapes that tell lines apart besides their colours, on about this many places of a line.
const SHAPES: usize = 5;
const SHAPE_PLACES: usize = 7;

/// The plot, described by `label` to those who do not see it.
pub fn draw(plot: &Plot, label: &str) -> Markup {
    let height = match (plot.wide, plot.heat.is_some()) {
        (true, _) => WIDE_HEIGHT,
        (_, true) => PICTURE,
        _ => HEIGHT,
    };
    let strips = height + if plot.strips.is_empty() { 0 } else { STRIP_GAP };
    let foot = strips + plot.strips.len() * STRIP;
    let x = scale_x(plot);
    let several = plot.series.iter().any(|s| s.color != plot.series[0].color);
    html! {
        svg.frame.two[plot.x.page.is_some()] role="img" tabindex="0" aria-label=(label) height=(foot) data-height=(height) data-foot=(foot) {
            text.label x="-58" y="-11" { (plot.y.label) }
            @for y in scales_y(plot) {
                g class=(if y.log { "log" } else { "linear" }) {
                    (grid(&y, plot.y.unit, height))
                    svg.zooms width="100%" height=(height) viewBox={"0 0 " (WIDE) " " (TALL)} preserveAspectRatio="none" {
                        @if let Some(heat) = &plot.heat { (picture(heat, &x)) }
                        @for mark in &plot.marks { (mark_line(mark, &x, plot.wide)) }
                        @for (n, s) in plot.series.iter().enumerate() {
                            g class={"series s" (n) " c" (s.color % 6) " d" (dash(s))} { (line(s, &x, &y, several)) }
                        }
                    }
                }
            }
            @if let Some(heat) = &plot.heat { (bands(heat, height)) }
            line.base x1="0" x2="100%" y1=(height) y2=(height) {}
            @if plot.wide { @for (n, mark) in plot.marks.iter().enumerate() { (mark_text(mark, n, &x)) } }
            @for (n, s) in plot.strips.iter().enumerate() { (strip(s, &x, strips + n * STRIP)) }
            g.xticks {
                @for tick in x.ticks(if plot.wide { 2 * TICKS } else { TICKS }, plot.x.unit.starts_with("bytes")) {
                    @let at = percent(x.share(tick).unwrap_or(0.0));
                    line x1=(at) x2=(at) y1=(foot) y2=(foot + 4) {}
                    text x=(at) y=(foot + 17) { (figures::tick(tick, plot.x.unit)) }
                    @if let Some(page) = plot.x.page {
                        text.second x=(at) y=(foot + 31) { (figures::tick(tick / page as f64, "")) }
                    }
                }
            }
            @let below = if plot.x.page.is_some() { 48 } else { 34 };
            text.label.abscissa x="50%" y=(foot + below) { (plot.x.label) @if plot.x.page.is_some() { ", and its pages" } }
            g.cursor {}
        }
    }
}

/// The key to a plot: a button for each line, and the switch of the ordinate.
pub fn legend(plot: &Plot) -> Markup {
    let several = plot.series.iter().any(|s| s.color != plot.series[0].color);
    let named = plot.series.len() > 1 || plot.series.iter().any(|s| !s.name.is_empty());
    let box_of = Scale { low: 0.0, high: 1.0, log: false };
    let sample = |s: &Series| {
        let mut s = Series { step: false, ..s.clone() };
        s.x = [0.0, 0.5, 1.0].map(Some).to_vec();
        s.y = [0.5, 0.5, 0.5].map(Some).to_vec();
        s
    };
    html! {
        div.legend {
            @if plot.y.toggle { button.scale type="button" { (if plot.y.log { "logarithmic" } else { "linear" }) } }
            @if named {
                @for (n, s) in plot.series.iter().enumerate() {
                    button type="button" aria-pressed="true" data-series=(n) {
                        svg.swatch width="26" height="10" viewBox={"0 0 " (WIDE) " " (TALL)} preserveAspectRatio="none" aria-hidden="true" {
                            g class={"series c" (s.color % 6) " d" (dash(s))} {
                                (line(&sample(s), &box_of, &box_of, several))
                            }
                        }
                        (s.name)
                    }
                }
            }
            @for layer in plot.heat.iter().flat_map(|h| &h.layers) { span class={"key " (layer.style)} { (layer.name) } }
            @for strip in &plot.strips { span class={"key " (strip.style)} { (strip.name) } }
        }
    }
}

/// The class of a line: published figures and clouds have none.
fn dash(s: &Series) -> usize {
    match (s.cloud, s.published) {
        (true, _) => 5,
        (_, true) => 4,
        _ => s.dash,
    }
}

/// A share as SVG has it.
fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}

fn grid(y: &Scale, unit: &str, height: usize) -> Markup {
    let most = if y.log { 7 } else { TICKS };
    html! {
        g.grid {
            @for tick in y.ticks(most, unit.starts_with("bytes")) {
                @let at = format!("{:.1}", (1.0 - y.share(tick).unwrap_or(0.0)) * height as f64);
                line x1="0" x2="100%" y1=(at) y2=(at) {}
                text x="-8" y=(at) dy="4" { (figures::tick(tick, unit)) }
            }
        }
    }
}

/// Where a point of a line is in the inner picture.
fn place(s: &Series, n: usize, x: &Scale, y: &Scale) -> Option<(i64, i64)> {
    let (x, y) = (x.share((*s.x.get(n)?)?)?, y.share((*s.y.get(n)?)?)?);
    Some(((x * WIDE).round() as i64, ((1.0 - y) * TALL).round() as i64))
}

fn line(s: &Series, x: &Scale, y: &Scale, several: bool) -> Markup {
    let places: Vec<Option<(i64, i64)>> = (0..s.x.len()).map(|n| place(s, n, x, y)).collect();
    let mut path = String::new();
    let mut pen: Option<(i64, i64)> = None;
    for (n, place) in places.iter().enumerate() {
        match (*place, pen) {
            (Some((x, y)), Some((from_x, from_y))) if s.step => {
                let _ = write!(path, "h{}v{}", x - from_x, y - from_y);
            }
            (Some((x, y)), Some((from_x, from_y))) => {
                let _ = write!(path, "l{} {}", x - from_x, y - from_y);
            }
            (Some((x, y)), None) => {
                let _ = write!(path, "M{x} {y}");
                if places.get(n + 1).is_none_or(Option::is_none) {
                    path.push_str("h0");
                }
            }
            (None, _) => {}
        }
        pen = *place;
    }
    // Lines with a dot at each value have one in any case; of the others the first colour has none.
    let shape = match (s.dots, several) {
        _ if s.cloud => 1,
        (true, true) => 1 + s.color % (SHAPES - 1),
        (true, false) => 1,
        (false, true) => s.color % SHAPES,
        (false, false) => 0,
    };
    let every = if s.dots { 1 } else { places.len().div_ceil(SHAPE_PLACES).max(1) };
    let offset = if s.dots { 0 } else { every / 2 + shape * every / 7 };
    let mut dots = String::new();
    if shape > 0 {
        for (x, y) in places.iter().skip(offset).step_by(every).flatten() {
            let _ = write!(dots, "M{x} {y}h0");
        }
    }
    html! {
        path.line d=(path) {}
        @if !dots.is_empty() {
            path class={"dots" @if matches!(shape, 2 | 4) { " square" }} d=(dots) {}
            @if shape > 2 { path class={"dots hole" @if shape == 4 { " square" }} d=(dots) {} }
        }
    }
}

/// A rectangle as a piece of a path.
fn cell(path: &mut String, from: f64, to: f64, top: f64, bottom: f64) {
    let [from, to, top, bottom] = [from, to, top, bottom].map(|v| v.round() as i64);
    let _ = write!(path, "M{from} {top}h{}v{}h{}z", to - from, bottom - top, from - to);
}

/// The runs of one digit: (digit, from, to).
fn runs(digits: &str) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (n, digit) in digits.bytes().map(|b| usize::from(b.saturating_sub(b'0')).min(9)).enumerate() {
        match runs.last_mut() {
            Some(last) if last.0 == digit => last.2 = n + 1,
            _ => runs.push((digit, n, n + 1)),
        }
    }
    runs
}

fn picture(heat: &Heat, x: &Scale) -> Markup {
    let at = |n: usize| heat.x.get(n).and_then(|&v| x.share(v)).unwrap_or(0.0) * WIDE;
    let row = |n: usize| TALL - n as f64 / heat.rows.max(1) as f64 * TALL;
    let paths = |columns: &[String]| {
        let mut paths = vec![String::new(); 10];
        for (column, digits) in columns.iter().enumerate() {
            for (digit, from, to) in runs(digits).into_iter().filter(|run| run.0 > 0) {
                cell(&mut paths[digit], at(column), at(column + 1), row(to), row(from));
            }
        }
        paths
    };
    html! { @for layer in &heat.layers { (shades(layer.style, &paths(&layer.columns))) } }
}

/// The ends of named pages, and the names of those that are high enough for one.
fn bands(heat: &Heat, height: usize) -> Markup {
    const MIN_BAND_HEIGHT: f64 = 13.0;
    let at = |page: u32| height as f64 * (1.0 - f64::from(page) / f64::from(heat.pages.max(1)));
    html! {
        @for band in &heat.bands {
            @let (top, foot) = (at(band.to), at(band.from));
            @if band.from > 0 { line.band x1="0" x2="100%" y1=(format!("{foot:.1}")) y2=(format!("{foot:.1}")) {} }
            @if foot - top >= MIN_BAND_HEIGHT && !band.name.is_empty() {
                text.bandname x="5" y=(format!("{:.1}", (top + foot) / 2.0 + 4.0)) { (band.name) }
            }
        }
    }
}

fn shades(style: &str, paths: &[String]) -> Markup {
    html! {
        @for (digit, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            path class={"cell " (style)} fill-opacity=(format!("{:.2}", digit as f64 / 9.0)) d=(path) {}
        }
    }
}

fn strip(strip: &Strip, x: &Scale, y: usize) -> Markup {
    let n = strip.cells.len().max(1) as f64;
    let at = |cell: usize| {
        let value = strip.x[0] + (strip.x[1] - strip.x[0]) * cell as f64 / n;
        x.share(value).unwrap_or(0.0) * WIDE
    };
    let mut paths = vec![String::new(); 10];
    for (digit, from, to) in runs(&strip.cells).into_iter().filter(|run| run.0 > 0) {
        cell(&mut paths[digit], at(from), at(to), 0.0, TALL);
    }
    html! {
        text.stripname x="-8" y=(y + 13) { (strip.name) }
        svg.zooms y=(y + 4) width="100%" height="11" viewBox={"0 0 " (WIDE) " " (TALL)} preserveAspectRatio="none" {
            (shades(strip.style, &paths))
        }
    }
}

/// A mark's line, with its interval where there is room for it.
fn mark_line(mark: &Mark, x: &Scale, interval: bool) -> Markup {
    let at = |v: f64| x.share(v).map(|share| (share * WIDE).round());
    html! {
        @if let (true, Some(low), Some(high)) = (interval, mark.low.and_then(at), mark.high.and_then(at)) {
            rect class={"interval" (color_class(mark))} x=(low) y="0" width=((high - low).max(1.0)) height=(TALL) {}
        }
        @if let Some(x) = at(mark.x) { path class={"knee" (color_class(mark))} d={"M" (x) " 0V" (TALL)} {} }
    }
}

/// The class of a mark's kind and own colour.
fn color_class(mark: &Mark) -> String {
    let color = mark.color.map_or_else(String::new, |color| format!(" k{}", color % 6));
    if mark.kind == MarkKind::Place { color + " place" } else { color }
}

/// Neighbouring marks have their words below one another.
fn mark_text(mark: &Mark, number: usize, x: &Scale) -> Markup {
    let Some(share) = x.share(mark.x) else { return html! {} };
    html! {
        text class={"kneetext" @if share > 0.6 { " left" } (color_class(mark))} data-at=(format!("{share:.4}")) x=(percent(share)) y=(12 + number % 6 * 15) dx=(if share > 0.6 { "-6" } else { "6" }) { (mark.label) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::plot;
    use pagelab_analysis::figure::Axis;
    use proptest::prelude::*;

    fn series(y: &[Option<f64>], step: bool) -> Series {
        let x = (0..y.len()).map(|n| Some(n as f64)).collect();
        Series { step, x, y: y.to_vec(), ..Series::default() }
    }

    #[test]
    fn a_line_has_gaps_where_nothing_was_measured() {
        let x = Scale { low: 0.0, high: 4.0, log: false };
        let y = Scale { low: 0.0, high: 2.0, log: false };
        let values = [Some(0.0), Some(1.0), None, Some(2.0), None];
        let path = |step| line(&series(&values, step), &x, &y, false).into_string();
        assert!(path(false).contains("d=\"M0 2000l2500 -1000M7500 0h0\""), "{}", path(false));
        assert!(path(true).contains("d=\"M0 2000h2500v-1000M7500 0h0\""), "{}", path(true));
    }

    #[test]
    fn equal_digits_are_one_cell() {
        assert_eq!(runs("0099"), [(0, 0, 2), (9, 2, 4)]);
        assert_eq!(runs(""), []);
    }

    proptest! {
        #[test]
        fn any_figures_are_drawn_as_numbers(values: Vec<Option<f64>>, log: bool, toggle: bool, mark: f64) {
            let mut plot = Plot::new("t", "c", Axis::linear("x", ""), Axis { toggle, log, ..Axis::linear("y", "ns") });
            plot.series = vec![series(&values, false), Series { color: 4, ..series(&values, true) }];
            plot.marks = vec![Mark { low: Some(mark), label: "m".into(), ..Mark::at(mark) }];
            let html = draw(&plot, "l").into_string();
            prop_assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
            plot::figure(&plot, 1, true);
        }
    }
}
