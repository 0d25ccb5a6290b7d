//! One program on several targets: the kernel's major faults beside those of models on its recorded references.

use pagelab_experiment::experiments::{Command, Tracing};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{ColumnId, Run};
use pagelab_experiment::{metrics, tables};

use crate::finding::{Evidence, Figure, Finding, ProgramFaults, Statistic, What};
use crate::is_deterministic;

/// The faults of `runs`, all of one program, where a model played it; the regret is against OPT where it is among them.
pub fn on_models(runs: &[&Run]) -> Option<Finding> {
    let Command { program, .. } = runs.first()?.header.experiment.parameters()?;
    let side = |run: &&Run| {
        Some(ProgramFaults {
            target: run.header.target.to_string(),
            measured: !is_deterministic(run),
            major: Figure::of(run, metrics::FAULTS_MAJOR)?,
            minor: Figure::of(run, metrics::FAULTS_MINOR),
            swapped_in: Figure::of(run, metrics::SWAP_IN),
            error: None,
        })
    };
    let mut sides: Vec<ProgramFaults> = runs.iter().filter_map(side).collect();
    if let Some(kernel) = sides.iter().find(|side| side.measured).map(|side| side.major.value) {
        for side in sides.iter_mut().filter(|side| !side.measured) {
            let model = side.major.value;
            side.error = Some(if kernel == model { 1.0 } else { kernel / model });
        }
    }
    let modelled = sides.iter().find(|side| !side.measured)?;
    let measured = sides.iter().find(|side| side.measured);
    let opt = sides.iter().find(|side| side.target == "model:opt");
    let mut figures = vec![measured.unwrap_or(modelled).major.clone()];
    if let Some(opt) = opt {
        figures.push(Figure { name: "opt".to_owned(), ..opt.major.clone() });
        figures.extend(measured.and_then(|side| {
            let (kernel, opt) = (side.major.value, opt.major.value);
            let avoidable = (kernel > 0.0 && kernel >= opt).then(|| 1.0 - opt / kernel)?;
            Some(Figure::derived("avoidable", Unit::Share, Statistic::Ratio, avoidable, side.major.n))
        }));
    }
    let run = runs.iter().find(|run| !is_deterministic(run)).unwrap_or(&runs[0]);
    let what =
        What::ProgramOnModels { program: program.first()?.clone(), limit: run.header.setting.limit(), sides };
    let others = runs.iter().filter(|other| other.header.name != run.header.name);
    let others = others.map(|run| Evidence::Run(run.header.name.clone()));
    Some(Finding::new(run, what, figures, std::iter::once(Evidence::Metrics).chain(others).collect()))
}

/// How much was recorded of a program, and how long it took.
pub fn recorded(run: &Run) -> Option<Finding> {
    let tracing = run.header.experiment.parameters::<Tracing>()?;
    let seen = super::table(run, tables::recording::TABLE)?;
    let figure = |column: &ColumnId| {
        let value = seen.numbers(*column)?.first().copied().flatten()?;
        Some(Figure::derived(column.name, column.unit?, Statistic::Value, value, 1))
    };
    let told = [tables::recording::PROCESSES, tables::recording::THREADS];
    let columns = tables::recording::TABLE.columns.iter().filter(|column| !told.contains(column));
    let list = columns.filter_map(figure).chain(Figure::of(run, metrics::TIME_ELAPSED)).collect();
    let what = What::Traced { program: tracing.program.first()?.clone(), unit: tracing.unit };
    Some(Finding::new(run, what, list, vec![Evidence::Table(tables::recording::TABLE)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::run;
    use pagelab_experiment::Experiment;

    fn found(kernel: &[f64], opt: f64) -> Finding {
        let experiment = || Experiment::Command(Command::new(vec!["sort".to_owned()]));
        let host = run("a", experiment(), "host", &[("faults.major", kernel), ("swap.in", kernel)]);
        let lru = run("b", experiment(), "model:lru", &[("faults.major", &[300.0])]);
        let opt = run("c", experiment(), "model:opt", &[("faults.major", &[opt])]);
        on_models(&[&host, &lru, &opt]).unwrap()
    }

    #[test]
    fn the_regret_is_against_opt_where_the_kernel_had_more() {
        let finding = found(&[200.0, 400.0, 300.0], 75.0);
        assert_eq!(finding.figure("faults.major").unwrap().value, 300.0);
        assert_eq!(finding.figure("avoidable").unwrap().value, 0.75);
        let What::ProgramOnModels { sides, .. } = &finding.what else { panic!("{finding:?}") };
        assert_eq!(sides.iter().filter(|side| side.measured).count(), 1);
        let errors: Vec<_> = sides.iter().map(|side| (side.error, side.predicts())).collect();
        assert_eq!(errors, [(None, None), (Some(1.0), Some(true)), (Some(4.0), Some(false))]);
        // Reading ahead, a kernel can have fewer.
        assert_eq!(found(&[50.0], 75.0).figure("avoidable"), None);
    }

    #[test]
    fn without_a_model_there_is_nothing_to_lay_beside() {
        let experiment = Experiment::Command(Command::new(vec!["sort".to_owned()]));
        assert_eq!(on_models(&[&run("a", experiment, "host", &[("faults.major", &[3.0])])]), None);
    }
}
