//! Knees: where a curve changes its slope, how many there are, and how surely each is where it is.
//!
//! The curve is a broken stick: y = a + b·x + Σ dₖ·max(0, x − ψₖ), a continuous line with a knee at
//! each ψₖ. Method: V. M. R. Muggeo, "Estimating regression models with unknown break-points",
//! Statistics in Medicine 22, 2003. With the knees held, the fit is linear; around them the model is
//! linearised by the column −1\[x > ψₖ\], whose coefficient over dₖ is the step to a better ψₖ, and at
//! the end its standard error over |dₖ| is the standard error of ψₖ. Muggeo's iteration finds the
//! minimum near its start, so starts come from a search over a grid.
//!
//! How many knees: the number with the lowest BIC, in which each knee counts as three parameters:
//! its slope, and its place twice, for a place that was searched for costs more than one that was
//! estimated (J. Kim and H.-J. Kim, "Consistent model selection in segmented line regression",
//! Journal of Statistical Planning and Inference 170, 2016).
//!
//! A cliff (a jump within one step of the sweep) shows as two knees close together.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::linear::{Solution, least_squares};

/// Places that the search tries between two neighbouring abscissae.
const GRID: usize = 4;
/// Steps of Muggeo's iteration and of the search, at most.
const STEPS: usize = 30;
/// Residuals below this share of the ordinate's spread are rounding.
const ROUNDING: f64 = 1e-9;

/// A knee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Where, on the abscissa.
    pub at: f64,
    /// The 95 % confidence interval of the place, within the data.
    pub interval: (f64, f64),
    /// The slope before it and after it.
    pub slopes: (f64, f64),
}

/// A broken stick through data.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The knees, ascending.
    pub knees: Vec<Knee>,
    /// The ordinate at abscissa 0, if the first piece reached so far.
    pub intercept: f64,
    /// The slope of the first piece.
    pub slope: f64,
    /// The standard deviation of the residuals.
    pub deviation: f64,
    /// The criterion that chose the number of knees; less is better.
    pub bic: f64,
}

impl Fit {
    /// The ordinate that the fit has at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let bends = self.knees.iter().map(|k| (k.slopes.1 - k.slopes.0) * (x - k.at).max(0.0));
        self.intercept + self.slope * x + bends.sum::<f64>()
    }
}

/// The best broken stick through the points with at most `most` knees. Points of one abscissa
/// (repetitions) count each. No two knees have fewer than two abscissae between them, themselves
/// included, and so it is at both ends.
///
/// `None` with fewer than four abscissae, lists of unequal length, or values that are no numbers.
pub fn knees(x: &[f64], y: &[f64], most: usize) -> Option<Fit> {
    if x.len() != y.len() || x.iter().chain(y).any(|v| !v.is_finite()) {
        return None;
    }
    let mut places = x.to_vec();
    places.sort_by(f64::total_cmp);
    places.dedup();
    if places.len() < 4 {
        return None;
    }
    let data = Data { x, y, grid: grid(&places), places };
    let mut found = data.fit(&[])?;
    let mut best = data.finish(&found)?;
    for count in 1..=most {
        // As many abscissae as parameters and two to spare.
        if data.places.len() < 2 * count + 4 {
            break;
        }
        let Some(next) = data.one_more(&found) else { break };
        let Some(finished) = data.finish(&next) else { break };
        if finished.bic < best.bic {
            best = finished;
        }
        found = next;
    }
    Some(best)
}

/// `GRID` places for each step between neighbours.
fn grid(places: &[f64]) -> Vec<f64> {
    let between = places
        .windows(2)
        .flat_map(|pair| (0..GRID).map(move |i| pair[0] + (pair[1] - pair[0]) * i as f64 / GRID as f64));
    between.skip(1).collect()
}

struct Data<'a> {
    x: &'a [f64],
    y: &'a [f64],
    /// The abscissae, ascending, each once.
    places: Vec<f64>,
    grid: Vec<f64>,
}

/// Knees held at some places.
#[derive(Clone, Debug)]
struct Held {
    knees: Vec<f64>,
    solution: Solution,
}

impl Data<'_> {
    /// Whether every piece has at least two abscissae, ends included.
    fn allowed(&self, knees: &[f64]) -> bool {
        let mut from = f64::NEG_INFINITY;
        knees.iter().copied().chain([f64::INFINITY]).all(|to| {
            let inside = self.places.iter().filter(|&&p| from <= p && p <= to).count();
            from = to;
            inside >= 2
        })
    }

    fn row(x: f64, knees: &[f64]) -> Vec<f64> {
        [1.0, x].into_iter().chain(knees.iter().map(|&k| (x - k).max(0.0))).collect()
    }

    fn fit(&self, knees: &[f64]) -> Option<Held> {
        if !self.allowed(knees) {
            return None;
        }
        let rows: Vec<_> = self.x.iter().map(|&x| Self::row(x, knees)).collect();
        Some(Held { knees: knees.to_vec(), solution: least_squares(&rows, self.y)? })
    }

    /// The best with a knee more: the new one at the best place of the grid, then every knee in turn
    /// to its best place until none moves, then Muggeo's iteration.
    fn one_more(&self, found: &Held) -> Option<Held> {
        let best_at = |fixed: &[f64]| -> Option<Held> {
            let tried = self.grid.iter().filter_map(|&place| {
                let mut knees = fixed.to_vec();
                knees.push(place);
                knees.sort_by(f64::total_cmp);
                self.fit(&knees)
            });
            tried.min_by(|a, b| a.solution.rss.total_cmp(&b.solution.rss))
        };
        let mut best = best_at(&found.knees)?;
        for _ in 0..STEPS {
            let before = best.solution.rss;
            for index in 0..best.knees.len() {
                let mut others = best.knees.clone();
                others.remove(index);
                if let Some(moved) = best_at(&others).filter(|m| m.solution.rss < best.solution.rss) {
                    best = moved;
                }
            }
            if best.solution.rss >= before * (1.0 - 1e-9) {
                break;
            }
        }
        Some(self.refined(best))
    }

    /// The linearised problem around `held`: its columns, and one −1[x > ψ] for each knee of `free`.
    fn linearised(&self, held: &Held, free: &[usize]) -> Option<Solution> {
        let row = |&x: &f64| {
            let mut row = Self::row(x, &held.knees);
            row.extend(free.iter().map(|&k| if x > held.knees[k] { -1.0 } else { 0.0 }));
            row
        };
        least_squares(&self.x.iter().map(row).collect::<Vec<_>>(), self.y)
    }

    /// Muggeo's iteration; a step that does not help is halved.
    fn refined(&self, mut held: Held) -> Held {
        for _ in 0..STEPS {
            let count = held.knees.len();
            let all: Vec<usize> = (0..count).collect();
            let Some(solution) = self.linearised(&held, &all) else { return held };
            let step: Vec<f64> = (0..count)
                .map(|k| solution.coefficients[2 + count + k] / solution.coefficients[2 + k])
                .collect();
            let better = (0..6).find_map(|halving| {
                let share = 0.5f64.powi(halving);
                let mut knees: Vec<f64> = held.knees.iter().zip(&step).map(|(k, s)| k + share * s).collect();
                knees.sort_by(f64::total_cmp);
                self.fit(&knees).filter(|new| new.solution.rss < held.solution.rss * (1.0 - 1e-9))
            });
            match better {
                Some(new) => held = new,
                None => break,
            }
        }
        held
    }

    fn finish(&self, held: &Held) -> Option<Fit> {
        let (n, count) = (self.x.len() as f64, held.knees.len());
        let freedom = n - (2 + 2 * count) as f64;
        if freedom < 1.0 {
            return None;
        }
        let spread =
            self.y.iter().copied().fold(f64::MIN, f64::max) - self.y.iter().copied().fold(f64::MAX, f64::min);
        let rss = held.solution.rss.max(n * (ROUNDING * spread.max(f64::MIN_POSITIVE)).powi(2));
        let deviation = (held.solution.rss / freedom).sqrt();
        let quantile = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
        let linearised = self.linearised(held, &(0..count).collect::<Vec<_>>());
        let (first, last) = (self.places[0], self.places[self.places.len() - 1]);
        let mut slope = held.solution.coefficients[1];
        let mut knees = Vec::new();
        for (k, &at) in held.knees.iter().enumerate() {
            let bend = held.solution.coefficients[2 + k];
            // All knees free together; else this one alone; else (a piece with no more points than it
            // needs, where the knee can slide without a trace) anywhere between its neighbours.
            let alone = || self.linearised(held, &[k]).map(|l| l.variance[2 + count]);
            let together = linearised.as_ref().map(|l| l.variance[2 + count + k]);
            let interval = match together.or_else(alone) {
                Some(variance) => {
                    let half = quantile * deviation * variance.sqrt() / bend.abs();
                    (at - half, at + half)
                }
                None => {
                    let before = self.places.iter().copied().filter(|&p| p < at).fold(first, f64::max);
                    let after = self.places.iter().copied().filter(|&p| p > at).fold(last, f64::min);
                    (before, after)
                }
            };
            let interval = (interval.0.clamp(first, at.max(first)), interval.1.clamp(at.min(last), last));
            knees.push(Knee { at, interval, slopes: (slope, slope + bend) });
            slope += bend;
        }
        Some(Fit {
            knees,
            intercept: held.solution.coefficients[0],
            slope: held.solution.coefficients[1],
            deviation,
            bic: n * (rss / n).ln() + (2 + 3 * count) as f64 * n.ln(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::rng::Rng;
    use proptest::prelude::*;

    /// About normal: the sum of twelve uniforms less six.
    fn noise(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
    }

    fn stick(x: f64, knees: &[(f64, f64)]) -> f64 {
        2.0 + 0.5 * x + knees.iter().map(|&(at, bend)| bend * (x - at).max(0.0)).sum::<f64>()
    }

    #[test]
    fn known_knees_are_found_and_their_intervals_hold_them() {
        let truth = [(10.3, 2.0), (21.8, -1.5), (30.1, 3.0)];
        for count in 0..=3 {
            let (mut right, mut held, mut all) = (0, 0, 0);
            for seed in 0..60 {
                let mut rng = Rng::new(seed);
                let x: Vec<f64> = (0..40).map(f64::from).collect();
                let y: Vec<f64> =
                    x.iter().map(|&x| stick(x, &truth[..count]) + 0.5 * noise(&mut rng)).collect();
                let fit = knees(&x, &y, 5).unwrap();
                if fit.knees.len() == count {
                    right += 1;
                    for (knee, (at, _)) in fit.knees.iter().zip(truth) {
                        all += 1;
                        held += usize::from(knee.interval.0 <= at && at <= knee.interval.1);
                        assert!((knee.at - at).abs() < 2.0, "{} knees, seed {seed}: {knee:?}", count);
                    }
                }
            }
            assert!(right >= 51, "{count} knees: the right number in {right} of 60");
            assert!(held * 100 >= all * 88, "{count} knees: {held} of {all} intervals hold the truth");
        }
    }

    #[test]
    fn a_cliff_is_two_knees_about_it() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let mut rng = Rng::new(3);
        let y: Vec<f64> =
            x.iter().map(|&x| if x < 9.5 { 1.0 } else { 8.0 } + 0.02 * noise(&mut rng)).collect();
        let fit = knees(&x, &y, 4).unwrap();
        assert_eq!(fit.knees.len(), 2, "{fit:?}");
        assert!(fit.knees[0].at >= 8.5 && fit.knees[1].at <= 10.5, "{fit:?}");
    }

    #[test]
    fn a_straight_line_has_none_and_too_few_points_no_answer() {
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 * x - 1.0).collect();
        assert!(knees(&x, &y, 4).unwrap().knees.is_empty());
        assert_eq!(knees(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 1), None);
        assert_eq!(knees(&[1.0, 2.0, 3.0, f64::NAN], &[1.0; 4], 1), None);
        assert!(knees(&x, &[5.0; 12], 4).unwrap().knees.is_empty(), "a constant");
    }

    proptest! {
        #[test]
        fn one_knee_without_noise_is_found_exactly(at in 4.0..16.0, bend in 0.1..50.0, scale in 1e-3..1e6) {
            let x: Vec<f64> = (0..21).map(f64::from).collect();
            let y: Vec<f64> = x.iter().map(|&x| scale * stick(x, &[(at, bend)])).collect();
            let fit = knees(&x, &y, 3).unwrap();
            let near = fit.knees.iter().any(|k| (k.at - at).abs() < 0.02);
            prop_assert!(near, "{:?}", fit);
            for (&x, &y) in x.iter().zip(&y) {
                prop_assert!((fit.at(x) - y).abs() <= 0.02 * bend * scale + 1e-6 * y.abs());
            }
        }

        #[test]
        fn any_data_give_ordered_knees_inside_their_intervals(
            y in prop::collection::vec(-1e6f64..1e6, 4..30), most in 0usize..5,
        ) {
            let x: Vec<f64> = (0..y.len()).map(|i| (i as f64).powi(2)).collect();
            let fit = knees(&x, &y, most).unwrap();
            prop_assert!(fit.knees.len() <= most);
            prop_assert!(fit.knees.windows(2).all(|w| w[0].at < w[1].at));
            for knee in &fit.knees {
                prop_assert!(knee.interval.0 <= knee.at && knee.at <= knee.interval.1, "{:?}", knee);
            }
        }
    }
}
