//! Miss ratio curves: of runs in the notebook, and of what `replay` and `mrc` just computed.

use pagelab_analysis::curves;
use pagelab_analysis::figure::{Axis, Mark, Plot, Series};
use pagelab_experiment::{Experiment, experiments, tables};

use super::shown::Shown;
use crate::curves::Curve;
use crate::text;

/// The miss ratio against the memory, a line with dots for each curve, with the knees of the first one; and where OPT
/// is among them, how far the others are from it. None for another experiment than `replay` and `mrc`.
pub fn plots(experiment: &Experiment, list: &[Curve]) -> Vec<Plot> {
    let Some(about) = experiment.parameters::<experiments::Curve>() else { return Vec::new() };
    let names = curves::short_names(&list.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>());
    let x = || Axis { page: Some(about.page_size), ..Axis::log("memory", "bytes") };
    let ratio = Axis { close: true, ..Axis::linear("miss ratio", "share").switchable() };
    let mut misses = Plot::new(
        "Miss ratio against memory",
        "Misses divided by references; the first reference to a page is a miss.",
        x(),
        ratio,
    );
    misses.wide = true;
    for (curve, name) in list.iter().zip(&names) {
        misses.series.push(line(curve, name, curve.table.numbers(tables::curve::RATIO)));
    }
    if let (Some(curve), Some(name)) = (list.first(), names.first()) {
        let knees = curves::knees(curve.table, &curves::Program::of(about));
        misses.marks.extend(knees.iter().map(|knee| Mark {
            label: format!("knee of {name}: {}", text::bytes(knee.size)),
            ..Mark::at(knee.size)
        }));
    }
    let mut beyond = Plot::new(
        "Misses beyond OPT's",
        "How many more misses than OPT (the offline optimum) has at the same size; 0% is OPT's own.",
        x(),
        Axis::linear("more misses than OPT", "share"),
    );
    beyond.wide = true;
    if let Some(opt) = list.iter().find(|curve| curves::is_optimum(&curve.name)) {
        for (curve, name) in list.iter().zip(&names).filter(|(curve, _)| curve.name != opt.name) {
            let gaps = curves::beyond(curve.table, opt.table);
            beyond.series.push(line(curve, name, Some(&gaps)));
        }
    }
    [misses, beyond].into_iter().filter(|plot| !plot.series.is_empty()).collect()
}

fn line(curve: &Curve, name: &str, y: Option<&[Option<f64>]>) -> Series {
    Series {
        name: name.to_owned(),
        color: curve.color,
        dash: curve.color / 6 * 2,
        dots: true,
        x: curve.table.numbers(tables::curve::SIZE).unwrap_or_default().to_vec(),
        y: y.unwrap_or_default().to_vec(),
        ..Series::default()
    }
}

/// The curves of runs.
pub(super) fn of_runs(shown: &[Shown]) -> Vec<Plot> {
    let Some(first) = shown.first() else { return Vec::new() };
    let mut list = Vec::new();
    for s in shown {
        let name = s.run.header.target.to_string();
        let name = name.strip_prefix("model:").unwrap_or(&name).to_owned();
        list.extend(s.seen().table(tables::curve::TABLE).map(|table| Curve { name, color: s.color, table }));
    }
    plots(&first.run.header.experiment, &list)
}
