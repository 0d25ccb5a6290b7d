//! A load of the fuzzer: phases of patterns on one mapping under a memory limit.

use std::fmt;

use pagelab_experiment::experiments::{Paging, Touch};
use pagelab_experiment::setting::Limit;
use pagelab_experiment::{Setting, Size};
use pagelab_reference::rng::Rng;
use pagelab_reference::{Pattern, Phase};

/// Sizes of the mapping in pages: large enough that a cgroup's charges for anything else are small.
const PAGES: [u64; 3] = [1024, 2048, 4096];
/// References for each page of the mapping.
const PASSES: [u64; 4] = [2, 3, 4, 6];
/// Minimum size of the mapping of a smaller load, in pages.
const MIN_PAGES: u64 = 512;
/// Minimum references of a smaller load for each page of the mapping.
const MIN_PASSES: u64 = 1;
/// Maximum number of phases of a random load.
const MAX_PHASES: u64 = 5;
/// The patterns of phases: a scan or loop, random pages, hot and cold pages, a working set that
/// moves, and a sine.
const PATTERNS: [Pattern; 11] = [
    Pattern::Linear,
    Pattern::Linear,
    Pattern::Uniform,
    Pattern::Zipf(0.6),
    Pattern::Zipf(0.9),
    Pattern::Zipf(1.2),
    Pattern::Drift(0.1),
    Pattern::Drift(0.25),
    Pattern::Drift(0.5),
    Pattern::SmoothSin,
    Pattern::SmoothSinRandom,
];

/// A load. Its text form is the arguments of `pagelab run`.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The mapping's size in pages.
    pub pages: u64,
    /// The number of references.
    pub references: u64,
    /// The memory limit in pages.
    pub limit: u64,
    /// The order of references.
    pub phases: Vec<Phase>,
    /// The access of a reference.
    pub touch: Touch,
    /// Whether every page is touched twice before the references.
    pub warm: bool,
    /// The seed of the patterns.
    pub seed: u64,
}

fn one_of<T: Clone>(list: &[T], rng: &mut Rng) -> T {
    list[rng.below(list.len() as u64) as usize].clone()
}

fn phase(rng: &mut Rng) -> Phase {
    let pattern = one_of(&PATTERNS, rng);
    let part = if rng.below(2) == 0 {
        (0, 100)
    } else {
        let from = rng.below(9) * 10;
        (from as u8, (from + 10 + rng.below((100 - from) / 10) * 10).min(100) as u8)
    };
    Phase { pattern, part, weight: 1 + rng.below(4) as u32 }
}

/// 30% to 90% of the pages.
fn limit(pages: u64, rng: &mut Rng) -> u64 {
    pages * (30 + rng.below(61)) / 100
}

impl Load {
    /// A random load.
    pub fn random(rng: &mut Rng) -> Self {
        let pages = one_of(&PAGES, rng);
        Self {
            pages,
            references: pages * one_of(&PASSES, rng),
            limit: limit(pages, rng),
            phases: (0..=rng.below(MAX_PHASES)).map(|_| phase(rng)).collect(),
            touch: one_of(&[Touch::Page, Touch::Word, Touch::Write], rng),
            warm: rng.below(4) == 0,
            seed: rng.below(1 << 16),
        }
    }

    /// The load with one random change.
    #[must_use]
    pub fn changed(&self, rng: &mut Rng) -> Self {
        let mut new = self.clone();
        let at = rng.below(new.phases.len() as u64) as usize;
        match rng.below(6) {
            0 => new.limit = limit(new.pages, rng),
            1 => new.seed = rng.below(1 << 16),
            2 => new.references = new.pages * one_of(&PASSES, rng),
            3 if (new.phases.len() as u64) < MAX_PHASES => new.phases.insert(at, phase(rng)),
            4 if new.phases.len() > 1 => drop(new.phases.remove(at)),
            _ => new.phases[at] = phase(rng),
        }
        new
    }

    /// Smaller or simpler loads, each with one change: those that simplify most come first.
    pub fn smaller(&self) -> Vec<Self> {
        let mut all = Vec::new();
        let mut add = |change: &dyn Fn(&mut Self)| {
            let mut new = self.clone();
            change(&mut new);
            if new != *self {
                all.push(new);
            }
        };
        if self.phases.len() > 1 {
            (0..self.phases.len()).for_each(|at| add(&|new| drop(new.phases.remove(at))));
        }
        if self.pages / 2 >= MIN_PAGES {
            add(&|new| {
                (new.pages, new.limit) = (new.pages / 2, new.limit / 2);
                new.references /= 2;
            });
        }
        add(&|new| new.references = (new.references / 2).max(MIN_PASSES * new.pages).min(new.references));
        add(&|new| new.warm = false);
        add(&|new| new.touch = Touch::Word);
        add(&|new| new.seed = 1);
        for at in 0..self.phases.len() {
            add(&|new| new.phases[at].pattern = Pattern::Linear);
            add(&|new| new.phases[at].part = (0, 100));
            add(&|new| new.phases[at].weight = 1);
        }
        all
    }

    /// The experiment.
    pub fn paging(&self) -> Paging {
        let plain = |phase: &Phase| phase.part == (0, 100);
        let pattern = match self.phases.as_slice() {
            [phase] if plain(phase) => phase.pattern.clone(),
            phases => Pattern::Phases(phases.to_vec()),
        };
        Paging {
            pages: self.pages,
            references: self.references,
            pattern,
            touch: self.touch,
            warm: self.warm,
            seed: self.seed,
            ..Paging::default()
        }
    }

    /// The memory limit.
    pub fn setting(&self) -> Setting {
        Setting { memory: Some(Limit::Of(Size::Pages(self.limit))), ..Setting::default() }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Paging { pattern, seed, .. } = self.paging();
        let (pages, references, limit) = (self.pages, self.references, self.limit);
        write!(f, "mapanon --pages {pages} --references {references} --memory {limit}p --pattern {pattern}")?;
        if self.touch != Touch::Page {
            write!(f, " --touch {}", self.touch)?;
        }
        if self.warm {
            f.write_str(" --warm")?;
        }
        if seed == 1 { Ok(()) } else { write!(f, " --seed {seed}") }
    }
}
