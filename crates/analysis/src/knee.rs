//! Knees: where a curve changes its slope, how many there are, and how surely each is where it is.
//!
//! The curve is a broken stick: y = a + b·x + Σ dₖ·max(0, x − ψₖ), a continuous line with a knee at
//! each ψₖ. Method: V. M. R. Muggeo, "Estimating regression models with unknown break-points",
//! Statistics in Medicine 22, 2003. With the knees held, the fit is linear; around them the model is
//! linearised by the column −1\[x > ψₖ\], whose coefficient over dₖ is the step to a better ψₖ, and at
//! the end its standard error over |dₖ| is the standard error of ψₖ. Muggeo's iteration finds the
//! minimum near its start, so starts come from a search over a grid.
//!
//! How many knees: further ones are accepted while an F test with the level `LEVEL`, corrected for
//! the places tried (Bonferroni), rejects the fit without them, and while each changes the curve by
//! more than the residuals and by the minimum effect that the caller requires. Noise of less than
//! half that effect is assumed, whatever the residuals are.
//!
//! A cliff (a jump within one step of the sweep) shows as two knees close together. Fewer than
//! `MIN_POINTS` abscissae cannot tell noise from knees by their residuals: one knee or one cliff is tested
//! against the assumed noise alone.

use statrs::distribution::{ContinuousCDF, FisherSnedecor, Normal, StudentsT};

use crate::linear::{Solution, least_squares};

/// Places that the search tries between two neighbouring abscissae.
const GRID: usize = 4;
/// Steps of Muggeo's iteration and of the search, at most.
const STEPS: usize = 30;
/// Residuals below this share of the ordinate's spread are rounding.
const ROUNDING: f64 = 1e-9;
/// The probability of a knee in data without one.
const LEVEL: f64 = 0.01;
/// Fewer abscissae than this have one knee or one cliff at most.
const MIN_POINTS: usize = 8;

/// A knee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// Where, on the abscissa.
    pub at: f64,
    /// The 95% confidence interval of the place, within the data.
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
}

impl Fit {
    /// The ordinate that the fit has at `x`.
    pub fn at(&self, x: f64) -> f64 {
        let bends = self.knees.iter().map(|k| (k.slopes.1 - k.slopes.0) * (x - k.at).max(0.0));
        self.intercept + self.slope * x + bends.sum::<f64>()
    }
}

/// The best broken stick through the points with at most `max` knees (a cliff counts as two), each
/// of which changes the ordinate by at least `effect`. Points of one abscissa (repetitions) count
/// each. No two knees have fewer than two abscissae between them, themselves included, and so it is
/// at both ends.
///
/// `None` with fewer than four abscissae, lists of unequal length, or values that are no numbers.
pub fn knees(x: &[f64], y: &[f64], max: usize, effect: f64) -> Option<Fit> {
    if x.len() != y.len() || x.iter().chain(y).any(|v| !v.is_finite()) {
        return None;
    }
    let mut places = x.to_vec();
    places.sort_by(f64::total_cmp);
    places.dedup();
    if places.len() < 4 {
        return None;
    }
    let spread = |values: &[f64]| {
        values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min)
    };
    let noise = (effect / 2.0).max(ROUNDING * spread(y)).max(f64::MIN_POSITIVE.sqrt());
    let data = Data { x, y, grid: grid(&places), places, effect, noise };
    let straight = data.fit(&[])?;
    let found =
        if data.places.len() < MIN_POINTS { data.few(&straight, max) } else { data.many(&straight, max) };
    data.finish(&found)
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
    /// The smallest change of the ordinate that makes a knee.
    effect: f64,
    /// The smallest standard deviation that a point is assumed to have.
    noise: f64,
}

/// Knees held at some places.
#[derive(Clone, Debug)]
struct Candidate {
    knees: Vec<f64>,
    solution: Solution,
    /// Whether the two knees are the ends of a jump.
    cliff: bool,
}

impl Candidate {
    /// How many places were searched for.
    fn changes(&self) -> usize {
        if self.cliff { 1 } else { self.knees.len() }
    }
}

impl Data<'_> {
    /// With many abscissae: the residuals tell the noise.
    fn many(&self, straight: &Candidate, max: usize) -> Candidate {
        let (mut accepted, mut found) = (straight.clone(), straight.clone());
        for count in 1..=max {
            // As many abscissae as parameters and two to spare.
            // A cliff shows with the second knee; two that explain nothing are followed by none that does.
            if self.places.len() < 2 * count + 4 || count > accepted.knees.len() + 2 {
                break;
            }
            let Some(next) = self.one_more(&found) else { break };
            let cliff = self.best_cliff().filter(|_| count == 1 && max > 1);
            for candidate in cliff.into_iter().chain([next.clone()]) {
                let other = if accepted.changes() < candidate.changes() { &accepted } else { straight };
                let better = candidate.solution.rss < accepted.solution.rss;
                if better && self.is_significant(other, &candidate) && self.is_effective(&candidate) {
                    accepted = candidate;
                }
            }
            found = next;
        }
        accepted
    }

    /// With few abscissae: a knee or a cliff that noise as assumed does not explain.
    fn few(&self, straight: &Candidate, max: usize) -> Candidate {
        let knee = self.one_more(straight).filter(|_| max > 0);
        let candidates = knee.into_iter().chain(self.best_cliff().filter(|_| max > 1));
        let best = candidates.min_by(|a, b| a.solution.rss.total_cmp(&b.solution.rss));
        let tried = (2 * self.places.len() - 5) as f64;
        // The root of a chi-squared figure of one degree of freedom.
        let quantile = Normal::standard().inverse_cdf(1.0 - LEVEL / tried / 2.0);
        let enough = |held: &Candidate| {
            let freedom = (self.x.len() as f64 - 4.0).max(1.0);
            let variance = self.noise.powi(2).max(held.solution.rss / freedom);
            straight.solution.rss - held.solution.rss > quantile.powi(2) * variance && self.is_effective(held)
        };
        best.filter(enough).unwrap_or_else(|| straight.clone())
    }

    fn best_cliff(&self) -> Option<Candidate> {
        let cliffs = (1..self.places.len() - 2).filter_map(|low| self.cliff(low));
        cliffs.min_by(|a, b| a.solution.rss.total_cmp(&b.solution.rss))
    }

    /// A line with a jump from the place with this index to the next one.
    fn cliff(&self, low: usize) -> Option<Candidate> {
        let knees = [self.places[low], self.places[low + 1]];
        let width = knees[1] - knees[0];
        let row = |&x: &f64| vec![1.0, x, ((x - knees[0]) / width).clamp(0.0, 1.0)];
        let mut solution = least_squares(&self.x.iter().map(row).collect::<Vec<_>>(), self.y)?;
        let bend = solution.coefficients[2] / width;
        solution.coefficients.splice(2.., [bend, -bend]);
        Some(Candidate { knees: knees.to_vec(), solution, cliff: true })
    }

    /// Whether noise does not explain what the further knees of `more` explain.
    fn is_significant(&self, fewer: &Candidate, more: &Candidate) -> bool {
        let further = more.changes() - fewer.changes();
        let freedom = self.x.len() as f64 - (2 + 2 * more.changes()) as f64;
        if freedom < 1.0 {
            return false;
        }
        let variance = (more.solution.rss / freedom).max(self.noise.powi(2));
        let figure = (fewer.solution.rss - more.solution.rss) / further as f64 / variance;
        let inner = self.places.len() - 2;
        let tried = (0..further).map(|n| (inner - n) as f64 / (n + 1) as f64).product::<f64>();
        FisherSnedecor::new(further as f64, freedom)
            .is_ok_and(|f| figure > f.inverse_cdf(1.0 - LEVEL / tried))
    }

    /// Whether each knee changes the ordinate by more than the residuals and by the required
    /// effect: over the shorter of the pieces beside it.
    fn is_effective(&self, held: &Candidate) -> bool {
        let freedom = (self.x.len() as f64 - (2 + 2 * held.changes()) as f64).max(1.0);
        let least = self.effect.max((held.solution.rss / freedom).sqrt());
        let (first, last) = (self.places[0], self.places[self.places.len() - 1]);
        let ends: Vec<f64> = [first].into_iter().chain(held.knees.iter().copied()).chain([last]).collect();
        let pieces = ends.windows(3).map(|w| (w[1] - w[0]).min(w[2] - w[1]));
        pieces.zip(&held.solution.coefficients[2..]).all(|(length, bend)| (bend * length).abs() >= least)
    }

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

    fn fit(&self, knees: &[f64]) -> Option<Candidate> {
        if !self.allowed(knees) {
            return None;
        }
        let rows: Vec<_> = self.x.iter().map(|&x| Self::row(x, knees)).collect();
        Some(Candidate { knees: knees.to_vec(), solution: least_squares(&rows, self.y)?, cliff: false })
    }

    /// The best with a knee more: the new one at the best place of the grid, then every knee in turn
    /// to its best place until none moves, then Muggeo's iteration.
    fn one_more(&self, found: &Candidate) -> Option<Candidate> {
        let best_at = |fixed: &[f64]| -> Option<Candidate> {
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
    fn linearised(&self, held: &Candidate, free: &[usize]) -> Option<Solution> {
        let row = |&x: &f64| {
            let mut row = Self::row(x, &held.knees);
            row.extend(free.iter().map(|&k| if x > held.knees[k] { -1.0 } else { 0.0 }));
            row
        };
        least_squares(&self.x.iter().map(row).collect::<Vec<_>>(), self.y)
    }

    /// Muggeo's iteration; a step that does not help is halved.
    fn refined(&self, mut held: Candidate) -> Candidate {
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

    fn finish(&self, held: &Candidate) -> Option<Fit> {
        let count = held.knees.len();
        let freedom = self.x.len() as f64 - (2 + 2 * count) as f64;
        let residual = (held.solution.rss / freedom.max(1.0)).sqrt();
        // Too few residuals tell nothing; the assumed noise does.
        let (deviation, quantile) = match freedom >= 2.0 {
            true => (residual, StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975)),
            false => (residual.max(self.noise), Normal::standard().inverse_cdf(0.975)),
        };
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
                _ if held.cliff => (held.knees[0], held.knees[1]),
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
            for seed in 0..30 {
                let mut rng = Rng::new(seed);
                let x: Vec<f64> = (0..40).map(f64::from).collect();
                let y: Vec<f64> =
                    x.iter().map(|&x| stick(x, &truth[..count]) + 0.5 * noise(&mut rng)).collect();
                let fit = knees(&x, &y, 4, 0.0).unwrap();
                if fit.knees.len() == count {
                    right += 1;
                    for (knee, (at, _)) in fit.knees.iter().zip(truth) {
                        all += 1;
                        held += usize::from(knee.interval.0 <= at && at <= knee.interval.1);
                        assert!((knee.at - at).abs() < 2.0, "{} knees, seed {seed}: {knee:?}", count);
                    }
                }
            }
            assert!(right >= 27, "{count} knees: the right number in {right} of 30");
            assert!(held * 100 >= all * 88, "{count} knees: {held} of {all} intervals hold the truth");
        }
    }

    #[test]
    fn a_cliff_is_two_knees_about_it() {
        let x: Vec<f64> = (0..20).map(f64::from).collect();
        let mut rng = Rng::new(3);
        let y: Vec<f64> =
            x.iter().map(|&x| if x < 9.5 { 1.0 } else { 8.0 } + 0.02 * noise(&mut rng)).collect();
        let fit = knees(&x, &y, 4, 0.0).unwrap();
        assert_eq!(fit.knees.len(), 2, "{fit:?}");
        assert!(fit.knees[0].at >= 8.5 && fit.knees[1].at <= 10.5, "{fit:?}");
    }

    #[test]
    fn a_straight_line_has_none_and_too_few_points_no_answer() {
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 3.0 * x - 1.0).collect();
        assert!(knees(&x, &y, 4, 0.0).unwrap().knees.is_empty());
        assert_eq!(knees(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 1, 0.0), None);
        assert_eq!(knees(&[1.0, 2.0, 3.0, f64::NAN], &[1.0; 4], 1, 0.0), None);
        assert!(knees(&x, &[5.0; 12], 4, 0.0).unwrap().knees.is_empty(), "a constant");
    }

    /// The share of curves of `n` points in which `judge` holds of the knees found; a point's noise is
    /// `deviation`, and changes of less than `effect` do not matter.
    fn share(
        n: usize,
        (deviation, effect): (f64, f64),
        truth: impl Fn(f64) -> f64,
        judge: impl Fn(&[Knee]) -> bool,
    ) -> f64 {
        let seeds = if n < 10 { 100 } else { 40 };
        let holds = |seed: &u64| {
            let mut rng = Rng::new(1000 * n as u64 + seed);
            let x: Vec<f64> = (0..n).map(|i| i as f64 / (n - 1) as f64).collect();
            let y: Vec<f64> = x.iter().map(|&x| truth(x) + deviation * noise(&mut rng)).collect();
            judge(&knees(&x, &y, 2, effect).unwrap().knees)
        };
        (0..seeds).filter(holds).count() as f64 / seeds as f64
    }

    #[test]
    fn planted_knees_are_found_from_four_points_on_and_none_in_noise() {
        for n in [4, 5, 6, 7, 8, 9, 12, 40] {
            let step = 1.0 / (n - 1) as f64;
            // A cliff in the middle step, and growth from the middle on.
            let low = ((n - 1) / 2) as f64 * step;
            let cliff = |x: f64| if x > low + step / 2.0 { 6.0 } else { 1.0 };
            let bend = |x: f64| 1.0 + 6.0 * (x - low).max(0.0);
            let near = |k: &[Knee]| k.iter().any(|k| (k.at - low).abs() <= 0.05 + step);
            for deviation in [0.0, 0.1] {
                let known = (deviation, 1.1f64.log2().max(2.0 * deviation));
                let about = format!("{n} points, noise {deviation}");
                let found = share(n, known, cliff, near);
                assert!(found >= 0.95, "a cliff is found in {found}: {about}");
                let found = share(n, known, bend, near);
                assert!(found >= 0.95, "a bend is found in {found}: {about}");
                let wrong = share(n, known, |x| 3.0 * x, |k| !k.is_empty());
                assert!(wrong <= 0.05, "false knees in {wrong}: {about}");
            }
            // Noise that nobody measured shows in the residuals of many points.
            let wrong = share(n, (0.5, 1.1f64.log2()), |_| 0.0, |k| !k.is_empty());
            assert!(n < MIN_POINTS || wrong <= 0.05, "false knees in {wrong}: {n} points, unknown noise");
        }
    }

    proptest! {
        #[test]
        fn one_knee_without_noise_is_found_exactly(at in 4.0..16.0, bend in 0.1..50.0, scale in 1e-3..1e6) {
            let x: Vec<f64> = (0..21).map(f64::from).collect();
            let y: Vec<f64> = x.iter().map(|&x| scale * stick(x, &[(at, bend)])).collect();
            let fit = knees(&x, &y, 3, 0.0).unwrap();
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
            let fit = knees(&x, &y, most, 0.0).unwrap();
            prop_assert!(fit.knees.len() <= most);
            prop_assert!(fit.knees.windows(2).all(|w| w[0].at < w[1].at));
            for knee in &fit.knees {
                prop_assert!(knee.interval.0 <= knee.at && knee.at <= knee.interval.1, "{:?}", knee);
            }
        }
    }
}
