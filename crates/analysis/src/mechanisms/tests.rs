use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::setting::Limit;
use pagelab_experiment::{Setting, Size};
use proptest::prelude::*;

use super::*;
use crate::test_runs;

/// A loop over 400 pages with 300 frames: OPT misses a few hundred times.
fn measured(instructions: &[f64], faults: &[f64]) -> Run {
    let pattern = "linear".parse().unwrap();
    let paging = Paging { pages: 400, references: 2000, pattern, ..Paging::default() };
    let figures: test_runs::Figures = &[("access.mean", instructions), ("faults.major", faults)];
    let mut run = test_runs::run("r", Experiment::Mapanon(paging), "kernel:x,accel=icount", figures);
    run.header.setting = Setting { memory: Some(Limit::Of(Size::Pages(300))), ..Setting::default() };
    for metric in run.repetitions.iter_mut().flat_map(|one| &mut one.observations.metrics) {
        if metric.unit == Unit::Nanoseconds {
            metric.unit = Unit::Instructions;
        }
    }
    run
}

/// A default of twelve repetitions about `middle`.
fn default_run(middle: f64) -> Run {
    let values: Vec<f64> = (0..12).map(|n| middle * (1.0 + 0.002 * f64::from(n - 6))).collect();
    measured(&values, &[1000.0; 12])
}

/// A run of a switch, of three repetitions.
fn switched(middle: f64, faults: f64) -> Outcome {
    Outcome::Measured(Box::new(measured(&[middle, middle * 1.003, middle * 0.997], &[faults; 3])))
}

fn matrix(outcomes: Vec<Vec<Outcome>>, defaults: &[Option<Run>]) -> Matrix {
    let chosen = switches().into_iter().take(outcomes.len()).collect();
    Matrix::of(LOADS[..defaults.len()].to_vec(), chosen, defaults, &outcomes).unwrap()
}

#[test]
fn an_effect_has_its_change_its_interval_and_its_verdict() {
    let found = matrix(vec![vec![switched(2000.0, 500.0)]], &[Some(default_run(1000.0))]);
    let cell = &found.cells[0][0];
    let effect = cell.instructions.as_ref().unwrap();
    assert!(effect.differs && (effect.change - 1.0).abs() < 0.02, "{effect:?}");
    let (low, high) = effect.interval.unwrap();
    assert!(low <= effect.change && effect.change <= high && low > 0.9, "{effect:?}");
    let opt = found.baselines[0].opt.unwrap();
    assert!(opt >= MIN_OPT);
    let regret = cell.regret.as_ref().unwrap();
    let half = |share: f64| (share + 0.5).abs() < 1e-9;
    assert!(regret.differs && half(regret.change), "{regret:?}");
    assert!(regret.interval.is_some_and(|(low, high)| half(low) && half(high)), "{regret:?}");
    assert!(regret.before.is_same() && (regret.before.median - 1000.0 / opt as f64).abs() < 1e-9);
    // Both sides of the regret repeat themselves, so there was nothing to test.
    assert!(!regret.tested && effect.tested);
    assert!((found.by_chance() - 0.05).abs() < 1e-12);
}

#[test]
fn a_missing_cell_is_unknown_and_never_zero() {
    let reasons = [Outcome::Missing, Outcome::Unsupported("a".into()), Outcome::Failed("b".into())];
    let found = matrix(vec![reasons.to_vec()], &[(); 3].map(|()| Some(default_run(1000.0))));
    let row = &found.cells[0];
    assert!(row.iter().all(|cell| cell.instructions.is_none() && cell.regret.is_none()));
    assert_eq!(row[1].missing, Some(Reason::Unsupported("a".into())));
    assert_eq!(row[2].missing, Some(Reason::Failed("b".into())));
    assert!(found.largest(5).is_empty() && row[0].missing.is_none());
    // Without the load itself there is nothing to compare with.
    let alone = matrix(vec![vec![switched(1.0, 1.0)]], &[None]);
    assert_eq!((&alone.cells[0][0], &alone.baselines[0]), (&Cell::default(), &Baseline::default()));
}

#[test]
fn a_load_with_unknown_references_has_no_regret() {
    let mut run = default_run(1000.0);
    run.header.setting = Setting::default();
    let found = matrix(vec![vec![switched(2000.0, 1.0)]], &[Some(run)]);
    assert!(found.cells[0][0].regret.is_none() && found.cells[0][0].instructions.is_some());
}

#[test]
fn times_that_are_no_instructions_are_not_compared() {
    let mut run = default_run(1000.0);
    for metric in run.repetitions.iter_mut().flat_map(|one| &mut one.observations.metrics) {
        if metric.unit == Unit::Instructions {
            metric.unit = Unit::Nanoseconds;
        }
    }
    let found = matrix(vec![vec![switched(2000.0, 1.0)]], &[Some(run)]);
    assert!(found.cells[0][0].instructions.is_none() && found.baselines[0].instructions.is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn identical_samples_have_no_effect(middle in 100.0..10_000.0f64, n in 2usize..4) {
        let run = |n: usize| measured(&vec![middle; n], &vec![700.0; n]);
        let found = matrix(vec![vec![Outcome::Measured(Box::new(run(n)))]], &[Some(run(4 * n))]);
        for effect in Figure::ALL.map(|figure| found.cells[0][0].effect(figure).unwrap()) {
            prop_assert!(effect.change.abs() < 1e-12 && !effect.differs, "{:?}", effect);
        }
        prop_assert!(found.largest(5).is_empty());
    }

    #[test]
    fn the_largest_effects_are_sorted_and_one_of_each_switch(
        factors in proptest::collection::vec((0.2..5.0f64, 0.2..5.0f64), 6),
    ) {
        let row = |(a, b): &(f64, f64)| vec![switched(1000.0 * a, 1000.0), switched(1000.0 * b, 1000.0)];
        let defaults = [(); 2].map(|()| Some(default_run(1000.0)));
        let found = matrix(factors.iter().map(row).collect(), &defaults);
        let largest = found.largest(5);
        let sizes: Vec<f64> = largest.iter().map(|(.., cell)| cell.size().unwrap()).collect();
        prop_assert!(sizes.is_sorted_by(|a, b| a >= b) && largest.len() <= 5);
        for (n, (switch, ..)) in largest.iter().enumerate() {
            prop_assert!(largest[..n].iter().all(|(other, ..)| other.name != switch.name));
        }
        let best = found.cells().filter_map(|(.., cell)| cell.size()).fold(0.0, f64::max);
        prop_assert!(sizes.first().is_none_or(|&first| first == best));
    }
}
