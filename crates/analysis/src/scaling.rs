//! How throughput grows with workers: the universal scalability law.
//!
//! X(N) = λ·N / (1 + σ·(N − 1) + κ·N·(N − 1)): λ the throughput of one worker, σ the share of the
//! work that is done one at a time (contention), κ the cost of workers agreeing with each other
//! (coherency). With κ > 0 throughput has a maximum at N* = √((1 − σ)/κ) and falls past it. Source:
//! N. J. Gunther, "Guerrilla Capacity Planning", 2007, chapters 4 to 6.
//!
//! The fit uses that N/X is linear in 1/λ, σ/λ and κ/λ: weighted least squares of N/X, each weighted
//! by its own inverse, which to first order minimises the relative errors of X. None may be negative and
//! σ not above 1; of all ways to hold σ and κ at an end the feasible one with the least residuals is
//! the minimum.
//! Intervals: 95%, from refitting with resampled residuals (Efron and Tibshirani, 1993, chapter 9).

use pagelab_reference::rng::Rng;

use crate::linear::least_squares;

/// Refits for the intervals.
const RESAMPLES: usize = 1000;

/// A fitted figure with its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: (f64, f64),
}

/// The number of workers with the highest throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The number.
    pub workers: f64,
    /// The least that the data allow.
    pub least: f64,
    /// The most; `None`: the data do not exclude that throughput grows for ever.
    pub most: Option<f64>,
}

/// A fitted law.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// λ: throughput of one worker.
    pub single: Estimate,
    /// σ: contention, a share of the work.
    pub contention: Estimate,
    /// κ: coherency.
    pub coherency: Estimate,
    /// Relative residuals, (measured − fitted) / fitted throughput, in the order of the data.
    pub residuals: Vec<f64>,
    /// The best number of workers; `None` where the fitted curve has no maximum.
    pub best: Option<Best>,
}

#[derive(Clone, Copy, Debug)]
struct Law {
    single: f64,
    contention: f64,
    coherency: f64,
}

impl Law {
    fn throughput(self, workers: f64) -> f64 {
        let Self { single, contention, coherency } = self;
        single * workers / (1.0 + contention * (workers - 1.0) + coherency * workers * (workers - 1.0))
    }

    /// `None`: no maximum. Contention of all the work or more has it at one worker.
    fn best(self) -> Option<f64> {
        if self.coherency <= 0.0 {
            return None;
        }
        let peak = ((1.0 - self.contention).max(0.0) / self.coherency).sqrt();
        let (below, above) = (peak.floor().max(1.0), peak.ceil().max(1.0));
        Some(if self.throughput(above) > self.throughput(below) { above } else { below })
    }
}

impl Scaling {
    /// The throughput that the law predicts for `workers`.
    pub fn throughput(&self, workers: f64) -> f64 {
        self.law().throughput(workers)
    }

    fn law(&self) -> Law {
        Law { single: self.single.value, contention: self.contention.value, coherency: self.coherency.value }
    }
}

/// Fits the law to measured throughputs, one for each number of workers (repetitions count each).
/// `seed` makes the intervals the same every time.
///
/// `None` with fewer than four points or three numbers of workers, or where a number of workers is
/// below 1 or a throughput not above 0.
pub fn fit(workers: &[f64], throughput: &[f64], seed: u64) -> Option<Scaling> {
    let valid = |&(n, x): &(f64, f64)| n >= 1.0 && x > 0.0 && n.is_finite() && x.is_finite();
    let points: Vec<(f64, f64)> = workers.iter().copied().zip(throughput.iter().copied()).collect();
    let mut numbers = workers.to_vec();
    numbers.sort_by(f64::total_cmp);
    numbers.dedup();
    if workers.len() != throughput.len() || points.len() < 4 || numbers.len() < 3 || !points.iter().all(valid)
    {
        return None;
    }
    let law = solve(&points)?;
    let residuals: Vec<f64> = points.iter().map(|&(n, x)| x / law.throughput(n) - 1.0).collect();
    // Residuals of a fit with three parameters are too small by this factor.
    let widened = (points.len() as f64 / (points.len() as f64 - 3.0)).sqrt();
    let mut rng = Rng::new(seed);
    let refit = |rng: &mut Rng| {
        let resampled: Vec<_> = points
            .iter()
            .map(|&(n, _)| {
                let residual = residuals[rng.below(residuals.len() as u64) as usize] * widened;
                (n, law.throughput(n) * (1.0 + residual).max(1e-6))
            })
            .collect();
        solve(&resampled)
    };
    let refits: Vec<Law> = (0..RESAMPLES).filter_map(|_| refit(&mut rng)).collect();
    let estimate = |value: f64, of: fn(&Law) -> f64| {
        let mut all: Vec<f64> = refits.iter().map(of).collect();
        let (low, high) = ends(&mut all).unwrap_or((value, value));
        Estimate { value, interval: (low.min(value), high.max(value)) }
    };
    let best = law.best().map(|workers| {
        let mut all: Vec<f64> = refits.iter().map(|law| law.best().unwrap_or(f64::INFINITY)).collect();
        let (low, high) = ends(&mut all).unwrap_or((workers, workers));
        Best { workers, least: low.min(workers), most: Some(high.max(workers)).filter(|v| v.is_finite()) }
    });
    Some(Scaling {
        single: estimate(law.single, |l| l.single),
        contention: estimate(law.contention, |l| l.contention),
        coherency: estimate(law.coherency, |l| l.coherency),
        residuals,
        best,
    })
}

fn ends(values: &mut [f64]) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| values[(last as f64 * share).round() as usize];
    Some((at(0.025), at(0.975)))
}

/// What a solution holds the contention to.
#[derive(Clone, Copy, PartialEq)]
enum Contention {
    None,
    Free,
    All,
}

/// The minimum with σ from 0 to 1 and κ not negative: the best of the feasible solutions with each
/// free or at an end.
fn solve(points: &[(f64, f64)]) -> Option<Law> {
    let ones = vec![1.0; points.len()];
    let choices = [Contention::Free, Contention::None, Contention::All]
        .into_iter()
        .flat_map(|contention| [(contention, true), (contention, false)]);
    let solutions = choices.filter_map(|(held, coherent)| {
        let row = |&(n, x): &(f64, f64)| {
            let first = if held == Contention::All { n } else { 1.0 };
            let second = (held == Contention::Free).then_some(n - 1.0);
            let third = coherent.then_some(n * (n - 1.0));
            [Some(first), second, third].into_iter().flatten().map(|c| c * x / n).collect::<Vec<_>>()
        };
        let solution = least_squares(&points.iter().map(row).collect::<Vec<_>>(), &ones)?;
        let mut values = solution.coefficients.iter().copied();
        let inverse = values.next().filter(|&inverse| inverse > 0.0)?;
        let contention = match held {
            Contention::None => 0.0,
            Contention::Free => values.next()? / inverse,
            Contention::All => 1.0,
        };
        let coherency = if coherent { values.next()? / inverse } else { 0.0 };
        let feasible = (0.0..=1.0).contains(&contention) && coherency >= 0.0;
        feasible.then_some((solution.rss, Law { single: 1.0 / inverse, contention, coherency }))
    });
    solutions.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, law)| law)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::rng::Rng;
    use proptest::prelude::*;

    /// Gunther's own example (chapter 5): a ray tracer on an SGI Origin 2000, pixels a second, for
    /// which he gives σ = 0.0498 and κ = 1.143e-5. His fit weighs the points otherwise.
    #[test]
    fn gunthers_ray_tracer() {
        let n = [1.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 28.0, 32.0, 48.0, 64.0];
        let x = [20.0, 78.0, 130.0, 170.0, 190.0, 200.0, 210.0, 230.0, 260.0, 280.0, 310.0];
        let fit = fit(&n, &x, 1).unwrap();
        assert!((fit.contention.value - 0.0498).abs() < 0.01, "{:?}", fit.contention);
        assert!(fit.coherency.value < 1e-4, "{:?}", fit.coherency);
        assert!(fit.contention.interval.0 < 0.0498 && 0.0498 < fit.contention.interval.1);
        assert!(fit.residuals.iter().all(|r| r.abs() < 0.12), "{:?}", fit.residuals);
    }

    #[test]
    fn intervals_hold_the_truth_and_a_curve_that_grows_has_no_best() {
        let truth = Law { single: 100.0, contention: 0.05, coherency: 0.004 };
        let n: Vec<f64> = (1..=24).map(f64::from).collect();
        let mut held = 0;
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let wobble = |rng: &mut Rng| 1.0 + 0.04 * (rng.below(2001) as f64 / 1000.0 - 1.0);
            let x: Vec<f64> = n.iter().map(|&n| truth.throughput(n) * wobble(&mut rng)).collect();
            let fit = fit(&n, &x, seed).unwrap();
            let inside = |e: Estimate, v: f64| e.interval.0 <= v && v <= e.interval.1;
            held += usize::from(inside(fit.coherency, 0.004) && inside(fit.single, 100.0));
            let best = fit.best.unwrap();
            assert!((best.workers - 15.0).abs() <= 3.0 && best.least <= best.workers, "{best:?}");
        }
        assert!(held >= 32, "{held} of 40");
        let x: Vec<f64> = n.iter().map(|n| 10.0 * n).collect();
        let linear = fit(&n, &x, 1).unwrap();
        assert!(linear.best.is_none_or(|b| b.workers > 1000.0) && linear.contention.value < 1e-9);
    }

    #[test]
    fn too_little_data_gives_no_fit() {
        assert_eq!(fit(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 1), None);
        assert_eq!(fit(&[1.0, 2.0, 2.0, 1.0], &[1.0, 2.0, 2.0, 1.0], 1), None);
        assert_eq!(fit(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 0.0, 4.0], 1), None);
    }

    proptest! {
        #[test]
        fn exact_data_give_the_law_back(
            single in 0.1..1e6, contention in 0.0..0.9, coherency in 0.0..0.1, most in 4u32..40,
        ) {
            let truth = Law { single, contention, coherency };
            let n: Vec<f64> = (1..=most).map(f64::from).collect();
            let x: Vec<f64> = n.iter().map(|&n| truth.throughput(n)).collect();
            let fit = fit(&n, &x, 7).unwrap();
            prop_assert!((fit.single.value / single - 1.0).abs() < 1e-6);
            prop_assert!((fit.contention.value - contention).abs() < 1e-6);
            prop_assert!((fit.coherency.value - coherency).abs() < 1e-6);
        }

        #[test]
        fn any_data_give_sound_intervals(x in prop::collection::vec(0.01f64..1e6, 4..12)) {
            let n: Vec<f64> = (1..=x.len()).map(|n| n as f64).collect();
            if let Some(fit) = fit(&n, &x, 3) {
                for e in [fit.single, fit.contention, fit.coherency] {
                    prop_assert!(e.interval.0 <= e.value && e.value <= e.interval.1 && e.value >= 0.0);
                }
                prop_assert!(fit.contention.interval.1 <= 1.0);
            }
        }
    }
}
