//! Over the run: access times, faults, swap traffic, pages present (VM Regress's time graphs).

use pagelab_experiment::catalogue::WINDOWS;
use pagelab_experiment::observation::{Table, Values};

use super::Shown;
use super::plot::{Axis, Numbers, Plot, Series};

/// A quantity of a window: the column, its name in the legend, the dash.
type Quantity = (&'static str, &'static str, usize);

/// The plots that the runs have data for.
pub fn plots(shown: &[Shown]) -> Vec<Plot> {
    let each = shown.iter().filter_map(|s| references_in_a_window(s)).max_by(f64::total_cmp);
    let Some(each) = each else { return Vec::new() };
    let points = format!("a point stands for {} references", each.round());
    let x = || Axis::linear("references made", "");
    let time = format!("{points}: their mean, and the worst of them (dotted).");
    let counts = format!("{points}.");
    let list = [
        Plot::new("Access time over the run", time, x(), Axis::log("time of a reference", "ns").switchable()),
        Plot::new(
            "Faults over the run",
            format!("{points}: major (solid) and minor (dotted) faults among them."),
            x(),
            Axis::linear("faults in a window", "").switchable(),
        ),
        Plot::new(
            "Swap traffic over the run",
            format!("{points}: pages read from swap (solid) and written to it (dotted)."),
            x(),
            Axis::linear("pages in a window", "").switchable(),
        ),
        Plot::new(
            "Pages present over the run",
            counts,
            x(),
            Axis::linear("pages of the mapping in memory", ""),
        ),
    ];
    let quantities: [&[Quantity]; 4] = [
        &[("access.mean", "mean", 0), ("access.max", "worst", 1)],
        &[("faults.major", "major", 0), ("faults.minor", "minor", 1)],
        &[("swap.in", "in", 0), ("swap.out", "out", 1)],
        &[("pages.present", "present", 0)],
    ];
    let mut plots = Vec::new();
    for (mut plot, quantities) in list.into_iter().zip(quantities) {
        for s in shown {
            for quantity in quantities {
                plot.series.extend(series(s, quantity, quantities.len() > 1, shown.len() > 1));
            }
        }
        let seen = |s: &Series| s.y.0.iter().flatten().any(|&v| v != 0.0);
        if plot.series.iter().any(seen) {
            plots.push(plot);
        }
    }
    plots
}

fn table<'a>(shown: &Shown<'a>) -> Option<&'a Table> {
    shown.repetition.observations.tables.iter().find(|t| t.name == WINDOWS)
}

/// The numbers of a column.
pub fn column<'a>(table: &'a Table, name: &str) -> Option<&'a [Option<f64>]> {
    match &table.columns.iter().find(|c| c.name == name)?.values {
        Values::Number(numbers) => Some(numbers),
        Values::Text(_) => None,
    }
}

fn references_in_a_window(shown: &Shown) -> Option<f64> {
    let numbers = column(table(shown)?, "reference")?;
    Some((*numbers.last()?)? / numbers.len() as f64)
}

fn series(shown: &Shown, &(name, legend, dash): &Quantity, several: bool, runs: bool) -> Option<Series> {
    let table = table(shown)?;
    let (x, y) = (column(table, "reference")?, column(table, name)?);
    let words: Vec<&str> =
        [runs.then(|| shown.name()), several.then_some(legend)].into_iter().flatten().collect();
    Some(Series {
        name: words.join(" "),
        color: shown.color,
        dash,
        step: false,
        dots: false,
        x: Numbers(x.to_vec()),
        y: Numbers(y.to_vec()),
    })
}
