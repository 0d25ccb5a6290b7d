//! The minimum detectable change: the smallest change that the same comparison, made once more, would find four times in
//! five.
//!
//! It is found by simulation from the run's own repetitions. Each of some hundred simulated comparisons draws its
//! deviations from the observed ones (bootstrap), smoothed by half a standard deviation, because the next run does not
//! repeat the values of this one, and scaled by what the spread of so few values may be wrong by (χ²), because the next
//! run's spread is not known better. The least effect that its test would find follows from the interval that belongs to
//! the test: one that lifts the interval above 0 and the estimate above what is of interest. Four fifths of the
//! simulated comparisons need no more than the figure given.
//!
//! Source of the method: B. Efron and R. J. Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 16 and 25;
//! the average over the unknown spread is O'Hagan's assurance ("Assurance in clinical trial design", 2005).

use pagelab_reference::rng::Rng;

use super::line::{Line, PRACTICAL};
use super::test::{Scale, Test};
use crate::stats::median;

/// The share of comparisons that find the change.
pub const POWER: f64 = 0.8;
/// Maximum number of simulated comparisons; [`MIN_SIMULATIONS`] if each has very many effects.
pub const SIMULATIONS: usize = 400;
/// Their minimum number.
pub const MIN_SIMULATIONS: usize = 200;
/// Approximate number of effects over all simulations.
pub const WORK: usize = 1_000_000;
/// The part of the deviation that is smooth.
pub const SMOOTH: f64 = 0.5;

/// The minimum detectable change by `test` at `level`, as a factor above 1. `None` with fewer than three varying values,
/// and where figures may be 0 or below, of which no factor is known.
pub(super) fn factor(line: &Line, test: Test, level: f64) -> Option<f64> {
    line.p?;
    if Scale::of(line) != Scale::Logarithmic {
        return None;
    }
    let [a, b] = [&line.baseline, &line.other].map(|values| Scale::Logarithmic.values(values));
    // The same figure whichever side is the baseline.
    let (test, a, b) = if a <= b { (test, a, b) } else { (test.swapped(), b, a) };
    let left_out = test.left_out(a.len(), b.len(), level)?;
    let mut noise = Noise::of(test, &a, &b)?;
    let simulations = (WORK / test.effects(&a, &b).len()).clamp(MIN_SIMULATIONS, SIMULATIONS);
    let interest = PRACTICAL.ln_1p();
    let needed = (0..simulations).map(|number| {
        let (a, b) = noise.draw();
        let effects = test.effects(&a, &b);
        let estimate = median(&effects).unwrap_or(f64::NAN);
        // Upwards and downwards in turn.
        match number % 2 {
            0 => (-effects[left_out]).max(interest - estimate),
            _ => effects[effects.len() - 1 - left_out].max(interest + estimate),
        }
    });
    let mut needed: Vec<f64> = needed.collect();
    needed.sort_by(f64::total_cmp);
    Some(needed[(simulations as f64 * POWER) as usize].max(interest).exp())
}

/// A source of comparisons without a difference.
struct Noise {
    rng: Rng,
    sides: [Side; 2],
    /// Pairs are drawn as differences, so that what a pair shares is shared.
    freedom: usize,
}

/// Deviations from the middle.
struct Side {
    values: Vec<f64>,
    deviation: f64,
}

impl Side {
    fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        // The mean took a degree of freedom.
        let stretch = (n / (n - 1.0).max(1.0)).sqrt();
        let values: Vec<f64> = values.iter().map(|v| (v - mean) * stretch).collect();
        let deviation = (values.iter().map(|v| v * v).sum::<f64>() / n).sqrt();
        Self { values, deviation }
    }

    /// A side that is always the same.
    fn exact(n: usize) -> Self {
        Self { values: vec![0.0; n], deviation: 0.0 }
    }

    fn draw(&self, rng: &mut Rng, scale: f64) -> Vec<f64> {
        let rough = (1.0 - SMOOTH * SMOOTH).sqrt();
        let mut one = || {
            let value = self.values[rng.below(self.values.len() as u64) as usize];
            scale * (rough * value + SMOOTH * self.deviation * normal(rng))
        };
        (0..self.values.len()).map(|_| one()).collect()
    }
}

impl Noise {
    fn of(test: Test, a: &[f64], b: &[f64]) -> Option<Self> {
        let enough = |values: &[f64]| values.len() >= 3;
        let (sides, freedom) = match test {
            Test::Counts | Test::Exact => return None,
            Test::Pairs => {
                let apart: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
                enough(&apart).then_some(())?;
                ([Side::exact(a.len()), Side::of(&apart)], a.len() - 1)
            }
            Test::Ranks => {
                (enough(a) && enough(b)).then_some(())?;
                ([Side::of(a), Side::of(b)], a.len() + b.len() - 2)
            }
            Test::Sign { baseline_exact: true } => {
                enough(b).then_some(())?;
                ([Side::exact(a.len()), Side::of(b)], b.len() - 1)
            }
            Test::Sign { baseline_exact: false } => {
                enough(a).then_some(())?;
                ([Side::of(a), Side::exact(b.len())], a.len() - 1)
            }
        };
        Some(Self { rng: Rng::new(1), sides, freedom })
    }

    fn draw(&mut self) -> (Vec<f64>, Vec<f64>) {
        let squares: f64 = (0..self.freedom).map(|_| normal(&mut self.rng).powi(2)).sum();
        let scale = (self.freedom as f64 / squares).sqrt();
        let [a, b] = &self.sides;
        (a.draw(&mut self.rng, scale), b.draw(&mut self.rng, scale))
    }
}

/// A value of the standard normal distribution (G. E. P. Box and M. E. Muller, 1958).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.unit()).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * rng.unit()).cos()
}
