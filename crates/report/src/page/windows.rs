//! Over the run: access times, faults, swap traffic, pages present (VM Regress's time graphs).

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_experiment::ColumnId;
use pagelab_experiment::observation::Table;
use pagelab_experiment::tables::windows;

use super::plot::{self, unit_name};
use super::shown::{Panel, Shown};

/// Most points of a line; more windows than these are drawn several to a point.
const POINTS: usize = 600;

/// How the figures of neighbouring windows become one.
#[derive(Clone, Copy)]
enum Merge {
    Mean,
    Max,
    Sum,
}

/// A quantity of a window: the column, its name in the legend, the dash, how it is merged.
type Quantity = (ColumnId, &'static str, usize, Merge);

/// A plot in the making: title, what the caption says, ordinate, quantities.
struct Sketch {
    title: &'static str,
    caption: &'static str,
    label: &'static str,
    log: bool,
    quantities: &'static [Quantity],
    /// What there was none of, when every figure is 0.
    nothing: &'static str,
}

const SKETCHES: [Sketch; 4] = [
    Sketch {
        title: "Access time over the run",
        caption: ": their mean (solid) and the worst of them (dotted).",
        label: plot::TIME,
        log: true,
        quantities: &[
            (windows::ACCESS_MEAN, "mean", 0, Merge::Mean),
            (windows::ACCESS_MAX, "worst", 1, Merge::Max),
        ],
        nothing: "no time passed",
    },
    Sketch {
        title: "Faults over the run",
        caption: ": major (solid) and minor (dotted) faults among them.",
        label: "faults per point",
        log: false,
        quantities: &[
            (windows::FAULTS_MAJOR, "major", 0, Merge::Sum),
            (windows::FAULTS_MINOR, "minor", 1, Merge::Sum),
        ],
        nothing: "there were no faults",
    },
    Sketch {
        title: "Swap traffic over the run",
        caption: ": pages read from swap (solid) and written to it (dotted).",
        label: "pages per point",
        log: false,
        quantities: &[(windows::SWAP_IN, "in", 0, Merge::Sum), (windows::SWAP_OUT, "out", 1, Merge::Sum)],
        nothing: "no page went to swap or came from it",
    },
    Sketch {
        title: "Pages present over the run",
        caption: ": pages of the mapping in memory at its end.",
        label: "pages in memory",
        log: false,
        quantities: &[(windows::PAGES_PRESENT, "present", 0, Merge::Max)],
        nothing: "no page was in memory",
    },
];

/// The plots that the runs have data for; for the others what is missing.
pub fn panels(shown: &[Shown]) -> Vec<Panel> {
    SKETCHES.iter().flat_map(|sketch| panel(sketch, shown)).collect()
}

fn panel(sketch: &Sketch, shown: &[Shown]) -> Vec<Panel> {
    let absent = |why: &str| vec![Panel::Absent(sketch.title, why.to_owned())];
    if shown.iter().all(|s| s.seen().table(windows::TABLE).is_none()) {
        return absent("no windows were recorded");
    }
    // Times may be nanoseconds in one run and instructions in another: one plot for each unit.
    let mut plots: Vec<(&str, Plot)> = Vec::new();
    for s in shown {
        let Some(table) = s.seen().table(windows::TABLE) else { continue };
        let Some(x) = table.numbers(windows::REFERENCE) else { continue };
        let together = x.len().div_ceil(POINTS).max(1);
        for quantity in sketch.quantities {
            let Some(y) = table.numbers(quantity.0).filter(|y| y.iter().flatten().next().is_some()) else {
                continue;
            };
            let unit = unit_of(table, quantity.0);
            if !plots.iter().any(|(known, _)| *known == unit) {
                plots.push((unit, empty(sketch, unit, shown)));
            }
            let words =
                [(shown.len() > 1).then(|| s.name()), (sketch.quantities.len() > 1).then_some(quantity.1)];
            let series = Series {
                name: words.into_iter().flatten().collect::<Vec<_>>().join(" "),
                color: s.color,
                dash: quantity.2,
                x: x.chunks(together).map(|part| part.last().copied().flatten()).collect(),
                y: y.chunks(together).map(|part| merged(part, quantity.3)).collect(),
                ..Series::default()
            };
            if let Some((_, plot)) = plots.iter_mut().find(|(known, _)| *known == unit) {
                plot.series.push(series);
            }
        }
    }
    if plots.is_empty() {
        return absent("not measured");
    }
    let values =
        |plot: &Plot| plot.series.iter().flat_map(|s| s.y.iter().flatten().copied()).collect::<Vec<_>>();
    plots.retain(|(_, plot)| values(plot).iter().any(|&v| v != 0.0));
    if plots.is_empty() {
        return absent(sketch.nothing);
    }
    if let [(_, plot)] = plots.as_slice()
        && let [first, rest @ ..] = values(plot).as_slice()
        && rest.iter().all(|v| v == first)
    {
        let figure = super::figures::figure(Some(*first), plot.y.unit);
        return absent(&format!("it is {figure} all the time"));
    }
    plots.into_iter().map(|(_, plot)| Panel::Plot(Box::new(plot))).collect()
}

fn empty(sketch: &Sketch, unit: &'static str, shown: &[Shown]) -> Plot {
    let mut each: Vec<u64> = shown.iter().filter_map(references_in_a_point).collect();
    each.sort_unstable();
    each.dedup();
    let each = each.iter().map(|n| crate::text::count(*n as f64)).collect::<Vec<_>>().join(" or ");
    let caption = format!("A point stands for {each} references{}", sketch.caption);
    // What has a time in one run may have instructions in another.
    let label = if unit == "instr" { plot::INSTRUCTIONS } else { sketch.label };
    let y = Axis { log: sketch.log, ..Axis::linear(label, unit) };
    let y = if sketch.quantities.len() > 1 { y.switchable() } else { y };
    Plot::new(sketch.title, caption, Axis::linear("references made", ""), y)
}

fn unit_of(table: &Table, column: ColumnId) -> &'static str {
    unit_name(table.column(column).and_then(|c| c.unit))
}

fn references_in_a_point(shown: &Shown) -> Option<u64> {
    let numbers = shown.seen().table(windows::TABLE)?.numbers(windows::REFERENCE)?;
    let points = numbers.len().div_ceil(numbers.len().div_ceil(POINTS).max(1)).max(1);
    Some(((*numbers.last()?)? / points as f64).round() as u64)
}

/// One figure for neighbouring windows; none where one of a sum is missing.
fn merged(part: &[Option<f64>], how: Merge) -> Option<f64> {
    let known = || part.iter().flatten().copied();
    match how {
        _ if known().next().is_none() => None,
        Merge::Mean => Some(known().sum::<f64>() / known().count() as f64),
        Merge::Max => known().reduce(f64::max),
        Merge::Sum => (known().count() == part.len()).then(|| known().sum()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_a_gap_is_none_and_the_worst_survives() {
        let part = [Some(1.0), None, Some(5.0)];
        assert_eq!(merged(&part, Merge::Mean), Some(3.0));
        assert_eq!(merged(&part, Merge::Max), Some(5.0));
        assert_eq!(merged(&part, Merge::Sum), None);
        assert_eq!(merged(&[Some(1.0), Some(5.0)], Merge::Sum), Some(6.0));
        assert_eq!(merged(&[None], Merge::Max), None);
    }
}
