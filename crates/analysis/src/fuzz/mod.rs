//! Searches for a load on which two targets differ most, and makes it small.
//!
//! Half of the loads are random, the other half are the best load so far with one random change.
//! The search then simplifies the best load, one change at a time, while at least nine tenths of
//! the difference remain (after delta debugging: Zeller and Hildebrandt, "Simplifying and Isolating
//! Failure-Inducing Input", 2002).

mod load;

use std::collections::HashSet;

use pagelab_experiment::{Run, metrics};
use pagelab_reference::PatternError;
use pagelab_reference::rng::Rng;

pub use self::load::Load;
use crate::stats::median;
use crate::{counts_instructions, regret};

/// The share of its difference that a load must keep when it is made smaller.
const KEPT: f64 = 0.9;
/// Minimum faults of OPT for a difference in faults: with fewer, the ratio says little.
const MIN_OPT: u64 = 100;

/// The figure in which the targets differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Faults, as a multiple of OPT's with as many frames as the limit has. A minor fault counts
    /// too: it brings back a page that left the page table, such as one that swap read-ahead
    /// fetched.
    Faults,
    /// Instructions per reference, of guests that count them.
    Instructions,
}

/// The figures of both targets for a load.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Pair {
    /// The figure of the first target.
    pub first: f64,
    /// The figure of the second target.
    pub second: f64,
    /// OPT's faults.
    pub opt: u64,
}

impl Pair {
    /// The figures of two runs of `load`; `None` if one is missing, or the load has too few faults to
    /// tell targets apart.
    ///
    /// # Errors
    /// When the stream cannot be generated.
    pub fn of(load: &Load, by: By, runs: &[Run]) -> Result<Option<Self>, PatternError> {
        let [first, second] = runs else { return Ok(None) };
        let (_, opt) = regret::misses(&load.paging(), true, load.limit as u32)?;
        let value = |run: &Run| match by {
            By::Faults if opt < MIN_OPT => None,
            By::Faults => median(&faults(run)).map(|faults| faults / opt as f64),
            By::Instructions if !counts_instructions(run) => None,
            By::Instructions => median(&run.values(metrics::ACCESS_MEAN)),
        };
        Ok(value(first).zip(value(second)).map(|(first, second)| Self { first, second, opt }))
    }

    /// The difference: of faults in multiples of OPT's, of instructions as a share of the smaller
    /// figure. Positive if the second target has more.
    pub fn difference(&self, by: By) -> f64 {
        match by {
            By::Faults => self.second - self.first,
            By::Instructions => {
                (self.second - self.first) / self.first.min(self.second).max(f64::MIN_POSITIVE)
            }
        }
    }
}

/// The faults of each repetition, major and minor; empty if they were not counted.
pub fn faults(run: &Run) -> Vec<f64> {
    let [major, minor] = [metrics::FAULTS_MAJOR, metrics::FAULTS_MINOR].map(|metric| run.values(metric));
    if major.len() == minor.len() {
        major.iter().zip(minor).map(|(major, minor)| major + minor).collect()
    } else {
        Vec::new()
    }
}

/// A load and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The load.
    pub load: Load,
    /// Its figures.
    pub pair: Pair,
}

/// The search.
#[derive(Debug)]
pub struct Search {
    rng: Rng,
    by: By,
    tried: u64,
    best: Option<Found>,
    /// The differences of all loads, without their signs.
    differences: Vec<f64>,
}

impl Search {
    /// A search whose loads follow from `seed`.
    pub fn new(seed: u64, by: By) -> Self {
        Self { rng: Rng::new(seed), by, tried: 0, best: None, differences: Vec::new() }
    }

    /// The next load to measure.
    pub fn next_load(&mut self) -> Load {
        self.tried += 1;
        match &self.best {
            Some(best) if self.tried.is_multiple_of(2) => best.load.changed(&mut self.rng),
            _ => Load::random(&mut self.rng),
        }
    }

    /// Adds the figures of a load.
    pub fn add(&mut self, load: Load, pair: Pair) {
        let size = |pair: &Pair| pair.difference(self.by).abs();
        self.differences.push(size(&pair));
        if self.best.as_ref().is_none_or(|best| size(&pair) > size(&best.pair)) {
            self.best = Some(Found { load, pair });
        }
    }

    /// The load with the largest difference.
    pub fn best(&self) -> Option<&Found> {
        self.best.as_ref()
    }

    /// The number of loads measured.
    pub fn measured(&self) -> usize {
        self.differences.len()
    }

    /// The median difference of all loads, without signs.
    pub fn median(&self) -> Option<f64> {
        median(&self.differences)
    }
}

/// Makes a load smaller.
#[derive(Debug)]
pub struct Shrinking {
    by: By,
    wanted: f64,
    found: Found,
    tried: HashSet<String>,
}

impl Shrinking {
    /// Begins with `found`.
    pub fn new(found: Found, by: By) -> Self {
        let tried = HashSet::from([found.load.to_string()]);
        Self { by, wanted: KEPT * found.pair.difference(by), found, tried }
    }

    /// A smaller load that was not tried yet; `None` if there is none.
    pub fn next_load(&mut self) -> Option<Load> {
        self.found.load.smaller().into_iter().find(|load| self.tried.insert(load.to_string()))
    }

    /// Takes the load if its difference is large enough, with the same sign.
    pub fn add(&mut self, load: Load, pair: Pair) {
        let difference = pair.difference(self.by);
        if difference * self.wanted.signum() >= self.wanted.abs() {
            self.found = Found { load, pair };
        }
    }

    /// The smallest load so far.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The number of loads tried.
    pub fn tried(&self) -> usize {
        self.tried.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::Pattern;
    use pagelab_reference::rng::Rng;
    use proptest::prelude::*;

    /// A second target that is worse by one for each scan: a planted defect.
    fn measured(load: &Load) -> Pair {
        let scans = load.phases.iter().filter(|phase| phase.pattern == Pattern::Linear).count();
        Pair { first: 1.0, second: 1.0 + scans.min(1) as f64, opt: 1000 }
    }

    #[test]
    fn a_planted_difference_is_found_and_made_small() {
        let mut search = Search::new(1, By::Faults);
        for _ in 0..50 {
            let load = search.next_load();
            let pair = measured(&load);
            search.add(load, pair);
        }
        let found = search.best().unwrap().clone();
        assert_eq!(found.pair.difference(By::Faults), 1.0);
        let mut shrinking = Shrinking::new(found, By::Faults);
        while let Some(load) = shrinking.next_load() {
            let pair = measured(&load);
            shrinking.add(load, pair);
        }
        let load = &shrinking.found().load;
        assert_eq!(
            load.to_string(),
            "mapanon --pages 512 --references 512 --memory ".to_owned()
                + &format!("{}p --pattern linear --touch word", load.limit)
        );
    }

    #[test]
    fn a_smaller_load_keeps_the_sign_of_the_difference() {
        let load = Load::random(&mut Rng::new(3));
        let pair = |second| Pair { first: 2.0, second, opt: 1000 };
        let mut shrinking = Shrinking::new(Found { load: load.clone(), pair: pair(1.0) }, By::Faults);
        for (second, taken) in [(3.5, false), (1.5, false), (1.05, true)] {
            let next = shrinking.next_load().unwrap();
            shrinking.add(next.clone(), pair(second));
            assert_eq!(shrinking.found().load == next, taken, "{second}");
        }
    }

    #[test]
    fn a_difference_of_instructions_is_relative_to_the_smaller_figure() {
        let of = |first, second| Pair { first, second, opt: 0 }.difference(By::Instructions);
        assert_eq!((of(100.0, 150.0), of(150.0, 100.0)), (0.5, -0.5));
    }

    proptest! {
        #[test]
        fn loads_are_valid_and_smaller_ones_never_grow(seed: u64) {
            let mut rng = Rng::new(seed);
            let mut load = Load::random(&mut rng);
            for _ in 0..20 {
                let paging = load.paging();
                prop_assert_eq!(paging.pattern.to_string().parse::<Pattern>().unwrap(), paging.pattern.clone());
                prop_assert!(load.limit < load.pages && load.limit * 10 >= load.pages * 2);
                for smaller in load.smaller() {
                    prop_assert!(smaller.pages <= load.pages && smaller.references <= load.references);
                    prop_assert!(smaller.phases.len() <= load.phases.len() && smaller != load);
                }
                load = load.changed(&mut rng);
            }
        }
    }
}
