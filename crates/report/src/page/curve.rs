//! Miss ratio curves: of runs in the notebook, and of what `replay` and `mrc` just computed.

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_experiment::Experiment;
use pagelab_experiment::catalogue::CURVE;
use pagelab_experiment::observation::{Table, Values};

use super::Shown;

/// The miss ratio against the memory, a line with dots for each curve: (target, number of its colour, table
/// [`CURVE`]). None for another
/// experiment than `replay` and `mrc`.
pub fn plot<'a>(
    experiment: &Experiment,
    curves: impl IntoIterator<Item = (String, usize, &'a Table)>,
) -> Option<Plot> {
    let (title, caption) = match experiment {
        Experiment::Replay(_) => ("Misses of each model", "misses divided by references."),
        Experiment::Mrc(_) => (
            "Miss ratio against memory",
            "misses divided by references; the first reference to a page is a miss.",
        ),
        _ => return None,
    };
    let x = Axis::log("frames of memory", "");
    let mut plot = Plot::new(title, caption, x, Axis::linear("miss ratio", "share").switchable());
    for (target, color, table) in curves {
        let name = target.strip_prefix("model:").unwrap_or(&target).to_owned();
        let (x, y) = (numbers(table, "frames"), numbers(table, "miss.ratio"));
        let dash = color / 6 * 2;
        plot.series.push(Series { name, color, dash, dots: true, x, y, ..Series::default() });
    }
    Some(plot)
}

/// The curves of runs.
pub(super) fn of_runs(shown: &[Shown]) -> Option<Plot> {
    let first = shown.first()?;
    let name = |s: &Shown| match shown {
        [_] => s.run.header.target.to_string(),
        _ => s.name().to_owned(),
    };
    let curves = shown.iter().filter_map(|s| Some((name(s), s.color, s.seen().table(CURVE)?)));
    plot(&first.run.header.experiment, curves).filter(|plot| !plot.series.is_empty())
}

fn numbers(table: &Table, column: &str) -> Vec<Option<f64>> {
    match table.columns.iter().find(|c| c.name == column).map(|c| &c.values) {
        Some(Values::Number(numbers)) => numbers.clone(),
        _ => Vec::new(),
    }
}
