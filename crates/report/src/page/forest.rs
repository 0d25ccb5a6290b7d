//! A comparison as a forest plot: each metric's change with its interval on one logarithmic scale, beside
//! the figures.

use maud::{Markup, html};
use pagelab_analysis::comparison::{Comparison, Line, Verdict};

use super::{bars, glossary};
use crate::{comparisons, text};

/// The widest scale: changes beyond this factor end at its edge.
const WIDEST: f64 = 10.0;
/// The narrowest.
const NARROWEST: f64 = 1.05;

/// The plot as a table: the primary metric and what differs; the others folded below.
pub fn plot(comparison: &Comparison) -> Markup {
    let primary = |line: &Line| comparison.deciding.contains(&line.name);
    let (mut told, others): (Vec<&Line>, Vec<&Line>) = comparison
        .lines
        .iter()
        .partition(|line| primary(line) || line.verdict.differs() || comparison.untested());
    told.sort_by_key(|line| !primary(line));
    let key = match comparison.exact || comparison.untested() || comparison.of_single_counts() {
        true => "change; logarithmic",
        false => "change (Hodges-Lehmann estimate), with its 95% interval; logarithmic",
    };
    let without = match (comparison.exact, comparison.of_single_counts()) {
        (true, _) => "metrics are equal",
        (_, true) => "metrics without a difference beyond boots",
        _ => "metrics without a significant difference",
    };
    html! {
        (bars::key(key))
        (table(comparison, &told))
        @if !others.is_empty() {
            details { summary { (others.len()) " " (without) } (table(comparison, &others)) }
        }
    }
}

fn table(comparison: &Comparison, lines: &[&Line]) -> Markup {
    let primary = |line: &Line| comparison.primary() == Some(line.name.as_str());
    let changes =
        comparison.lines.iter().filter_map(|line| line.change).chain(
            comparison.lines.iter().filter_map(|line| line.interval).flat_map(|(low, high)| [low, high]),
        );
    let factor = |change: f64| (1.0 + change).max(1e-9);
    let widest = changes.map(|change| factor(change).max(1.0 / factor(change))).fold(NARROWEST, f64::max);
    let reach = widest.min(WIDEST);
    // 0 at the left edge, 1 at the right one, no change in the middle.
    let at = |change: f64| {
        let share = 0.5 + 0.5 * factor(change).ln() / reach.ln();
        format!("{:.2}%", 2.0 + 96.0 * share.clamp(0.0, 1.0))
    };
    // What the scale does not reach ends in an arrow.
    let is_beyond = |change: f64| factor(change).ln().abs() > 1.001 * reach.ln();
    let value = |line: &Line, v: f64| text::value(Some(v), line.unit);
    let whole = !comparison.exact && !comparison.untested() && !comparison.of_single_counts();
    html! {
        div.scroll tabindex="0" role="region" aria-label="Changes" { table.forest {
            thead { tr {
                th { "metric" } th { (comparison.baseline.run) } th { (comparison.other.run) } th { "change" }
                th.track { span { "÷ " (text::digits(reach)) } span { "same" } span { "× " (text::digits(reach)) } }
                @if whole { th { "95% interval" } th { "p" } }
                @if !comparison.untested() { th { "verdict" } }
            } }
            tbody { @for line in lines {
                @let class = match line.verdict {
                    Verdict::Better => "better",
                    Verdict::Worse => "worse",
                    Verdict::Changed => "changed",
                    _ => "same",
                };
                @let change = line.change.map_or_else(|| text::DASH.to_owned(), comparisons::percent);
                tr {
                    th { (glossary::metric(&line.name)) @if primary(line) { " " span.soft { "(primary)" } } }
                    td { (value(line, line.medians.0)) }
                    td { (value(line, line.medians.1)) }
                    td { (change) }
                    td.track { svg class=(class) role="img" aria-label={(line.name) ": " (change)} {
                        line.zero x1="50%" x2="50%" y1="0" y2="100%" {}
                        @let interval = line.interval.map(|(low, high)| (at(low), at(high)));
                        @if let Some(change) = line.change {
                            (bars::dot(&at(change), interval.as_ref().map(|(low, high)| (&**low, &**high))))
                            @for end in [line.interval.map_or(change, |(low, _)| low), line.interval.map_or(change, |(_, high)| high)] {
                                @if is_beyond(end) && end < 0.0 { text.end x="0" y="50%" { "◂" } }
                                @if is_beyond(end) && end > 0.0 { text.end x="100%" y="50%" { "▸" } }
                            }
                        }
                    } }
                    @if whole {
                        td.soft { @if let Some((low, high)) = line.interval { (comparisons::percent(low)) " … " (comparisons::percent(high)) } }
                        td.soft { @if let Some(p) = line.p { (comparisons::p_value(p)) } }
                    }
                    @if !comparison.untested() {
                        td.text { (comparisons::verdict(line.verdict))
                            @if let Verdict::Inconclusive(needed) = line.verdict {
                                span.soft { " (needs " (needed) " per side)" }
                            }
                            @if let (Verdict::NoDifference, Some(factor)) = (line.verdict, line.detectable) {
                                span.soft { " (detectable: " (comparisons::either_way(factor)) ")" }
                            }
                        }
                    }
                }
            } }
        } }
    }
}
