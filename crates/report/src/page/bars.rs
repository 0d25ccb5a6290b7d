//! Bars: published figures beside a model's, row by row, and how many things came out how; and dots with ranges,
//! for logarithmic scales, on which the length of a bar means nothing.

use maud::{Markup, html};
use pagelab_analysis::figure::{BarRow, Bars, RangeBar, RangeBars, Tone};

use super::figures;
use crate::text;

/// How many things of one kind came out how.
pub struct Score {
    /// The kind.
    pub name: String,
    /// How many, by word and tone.
    pub counts: Vec<(&'static str, Tone, usize)>,
}

/// How far the longest bar goes: behind it stands its figure.
const MAX_BAR_SHARE: f64 = 0.84;

/// Colours of bars.
const COLORS: usize = 6;

/// The class that a tone is coloured by.
pub(super) fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Good => "good",
        Tone::Fair => "fair",
        Tone::Bad => "bad",
    }
}

/// A dot with its range, in percent of the width.
pub(super) fn dot(at: &str, range: Option<(&str, &str)>) -> Markup {
    html! {
        @if let Some((low, high)) = range { line.range x1=(low) x2=(high) y1="50%" y2="50%" {} }
        circle.dot cx=(at) cy="50%" r="4" {}
    }
}

/// The key to dots with ranges.
pub(super) fn key(words: &str) -> Markup {
    html! {
        p.legend.one { svg.swatch width="26" height="10" aria-hidden="true" { (dot("50%", Some(("0%", "100%")))) } (words) }
    }
}

/// The bars as a figure: the published one above the model's.
pub(super) fn figure(bars: &Bars) -> Markup {
    let most = bars.rows.iter().flat_map(|row| [row.published, row.model]).flatten();
    // Of nothing but noughts no bar is drawn.
    let most = most.fold(f64::MIN_POSITIVE, f64::max);
    let width = |figure: f64| format!("{:.2}%", 100.0 * MAX_BAR_SHARE * (figure / most).clamp(0.0, 1.0));
    let words = |figure: f64| format!("{figure:.*} {}", usize::from(bars.decimals), bars.unit);
    let ratio = |row: &BarRow| Some(row.model? / row.published?).filter(|ratio| ratio.is_finite());
    let said = |row: &BarRow| {
        let of = |figure: Option<f64>| figure.map_or_else(|| "none".to_owned(), words);
        format!("{}: published {}, model {}", row.label, of(row.published), of(row.model))
    };
    html! {
        figure.plot.bars {
            h3 { (bars.title) }
            figcaption { (bars.caption) }
            p.legend { span.key.printed { "published" } @for (color, model) in bars.models.iter().enumerate() { span class={"key c" (color)} { (model) } } }
            @for row in &bars.rows {
                div.bar {
                    span.name { (row.label) }
                    svg.track role="img" aria-label=(said(row)) {
                        @for (figure, y, class) in [(row.published, 0, "published".to_owned()), (row.model, 13, format!("model c{}", row.color % COLORS))] {
                            @if let Some(figure) = figure.filter(|figure| figure.is_finite()) {
                                rect class=(class) x="0" y=(y) height="12" width=(width(figure)) {}
                                text x=(width(figure)) dx="5" y=(y + 10) { (words(figure)) }
                            }
                        }
                    }
                    span.total { @if let Some((word, tone)) = &row.verdict {
                        span class=(class(*tone)) { (word) }
                        // The reason of any but a good one.
                        @if let (true, Some(ratio)) = (*tone != Tone::Good, ratio(row)) { " × " (text::digits(ratio)) }
                    } }
                }
            }
        }
    }
}

/// Bars with their ranges as a figure.
pub(super) fn ranges(bars: &RangeBars) -> Markup {
    let ends =
        |row: &RangeBar| row.range.map(|(low, high)| [low, high]).into_iter().flatten().chain(row.value);
    let most = bars.rows.iter().flat_map(ends).fold(f64::MIN_POSITIVE, f64::max);
    let place = |figure: f64| format!("{:.2}%", 100.0 * MAX_BAR_SHARE * (figure / most).clamp(0.0, 1.0));
    let words = |row: &RangeBar| {
        let figure = |value| figures::figure(value, bars.unit);
        let range = row.range.map(|(low, high)| format!(" ({} … {})", figure(Some(low)), figure(Some(high))));
        (figure(row.value), range.unwrap_or_default())
    };
    html! {
        figure.plot.wide.bars.ranges {
            h3 { (bars.title) }
            figcaption { (bars.caption) }
            @if !bars.colors.is_empty() {
                p.legend { @for (color, name) in &bars.colors { span class={"key c" (color % COLORS)} { (name) } } }
            }
            @for row in &bars.rows {
                @let (value, range) = words(row);
                div.bar {
                    span.name { (row.label) }
                    svg.track role="img" aria-label={(row.label) ": " (value) (range)} {
                        @if let Some(value) = row.value.filter(|value| value.is_finite()) {
                            rect class={"c" (row.color % COLORS)} x="0" y="5" height="14" width=(place(value)) {}
                        }
                        @if let Some((low, high)) = row.range {
                            line.range x1=(place(low)) x2=(place(high)) y1="12" y2="12" {}
                            @for end in [low, high] { line.range x1=(place(end)) x2=(place(end)) y1="8" y2="16" {} }
                        }
                    }
                    span.total { b { (value) } span.soft { (range) } }
                }
            }
        }
    }
}

/// A bar for each kind of thing, parted by how many came out how; nothing of none.
pub(super) fn score(kinds: &[Score]) -> Markup {
    let percent = |count: usize, all: usize| format!("{:.2}%", 100.0 * count as f64 / all.max(1) as f64);
    html! {
        @if !kinds.is_empty() {
            div.score {
                @for kind in kinds {
                    @let all: usize = kind.counts.iter().map(|(.., count)| count).sum();
                    @let some: Vec<_> = kind.counts.iter().filter(|(.., count)| *count > 0).collect();
                    @let words = some.iter().map(|(word, _, count)| format!("{count} {word}")).collect::<Vec<_>>().join(", ");
                    div.bar {
                        span.name { (kind.name) }
                        svg.track role="img" aria-label={(kind.name) ": " (words)} {
                            @for (n, (_, tone, count)) in some.iter().enumerate() {
                                @let before: usize = some[..n].iter().map(|(.., count)| count).sum();
                                rect class=(class(*tone)) x=(percent(before, all)) width=(percent(*count, all)) height="100%" {}
                            }
                        }
                        span.total { @for (n, (word, tone, count)) in some.iter().enumerate() {
                            @if n > 0 { ", " } (count) " " span class=(class(*tone)) { (word) }
                        } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(rows: Vec<BarRow>) -> Bars {
        Bars { title: "t".into(), caption: "c".into(), unit: "s", decimals: 1, models: vec!["model"], rows }
    }

    #[test]
    fn bars_share_a_scale_and_say_their_verdict() {
        let verdict = Some(("partly".to_owned(), Tone::Fair));
        let row = BarRow { verdict, ..BarRow::new("r", Some(5.0), Some(10.0)) };
        let html = figure(&bars(vec![row, BarRow::new("only", Some(1.0), None)])).into_string();
        for part in ["width=\"42.00%\"", "width=\"84.00%\"", "5.0 s", "class=\"fair\">partly", "model none"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(html.matches("<rect").count(), 3, "{html}");
    }

    #[test]
    fn zero_and_nan_have_no_bar() {
        let rows = vec![BarRow::new("r", Some(0.0), Some(f64::NAN)), BarRow::new("s", None, None)];
        let html = figure(&bars(rows)).into_string();
        assert!(!html.contains("width=\"NaN"), "{html}");
        assert_eq!(html.matches("<rect").count(), 1, "{html}");
    }

    #[test]
    fn a_bar_has_its_range_and_room_for_it() {
        let row = |label: &str, value, range| RangeBar { label: label.into(), value, range, color: 0 };
        let rows =
            vec![row("a", Some(5e6), Some((4e6, 1e7))), row("b", Some(0.0), None), row("c", None, None)];
        let bars = RangeBars { title: "t".into(), unit: "ns", rows, ..RangeBars::default() };
        let html = ranges(&bars).into_string();
        for part in
            ["width=\"42.00%\"", "x1=\"33.60%\" x2=\"84.00%\"", "a: 5.00 ms (4.00 ms … 10.0 ms)", "c: —"]
        {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!((html.matches("<rect").count(), html.matches("<line").count()), (2, 3), "{html}");
        assert!(!html.contains("legend"), "{html}");
    }

    #[test]
    fn a_score_is_parted_by_its_words() {
        let counts = vec![("reproduced", Tone::Good, 3), ("partly", Tone::Fair, 0), ("not", Tone::Bad, 1)];
        let html = score(&[Score { name: "held out".into(), counts }]).into_string();
        assert!(html.contains("x=\"75.00%\" width=\"25.00%\"") && !html.contains("partly"), "{html}");
        assert!(score(&[]).into_string().is_empty());
    }
}
