//! The LRU curve by spatial sampling: only pages whose hash is below a threshold are looked at, and
//! their distances are scaled up.
//!
//! Source: C. A. Waldspurger, N. Park, A. Garthwaite and I. Ahmad, "Efficient MRC construction with
//! SHARDS", FAST 2015: fixed rate, and fixed size, where the threshold falls as pages are found; with
//! the correction of SHARDS-adj (the references that were expected and not sampled count as hits at
//! distance 1).
//!
//! **Error.** The authors find a mean absolute error of the miss ratio of about 0.02 with a
//! rate of 0.001, and below 0.01 with 8,192 pages for most of their traces. Here each curve carries a
//! standard error of its own: the sampled pages fall by other bits of the hash into eight groups, and
//! the spread of the groups' misses tells how much the choice of pages matters. It leaves out the
//! error of the distances themselves, which is of the order of 1/√(rate × frames) of the size: for sizes
//! of fewer than [`TRUSTED`] sampled pages there is no figure. Distances are kept in buckets of at
//! most 1/256 of their size.
//!
//! **Classes.** The sampled pages may be divided by their hash into classes, each measured by somebody else: each is a
//! sample of its own at the rate divided by the number of classes, and the weights add ([`Weights::add`]).

use std::collections::{BinaryHeap, HashMap};

use super::lru::StackDistances;

/// Groups of sampled pages, for the standard error.
pub const GROUPS: usize = 8;
/// Distances below this have a bucket each; each octave above has half as many.
const FINE: u64 = 512;
/// Sampled pages that a size must have.
pub const TRUSTED: u32 = 100;
/// A threshold of 2^24 samples every page.
const FULL: u32 = 1 << 24;

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// This share of the pages, above 0 and up to 1.
    Rate(f64),
    /// At most this many pages (at least 1): bounded memory for any stream.
    Pages(usize),
}

/// The least share that can be sampled.
const MIN_RATE: f64 = 1e-7;

/// The share cannot be sampled.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{0}: the share of the pages must be between 0.0000001 and 1")]
pub struct WrongRate(f64);

impl Sampling {
    /// This share of the pages.
    ///
    /// # Errors
    /// When it is less than a ten-millionth, or more than 1.
    pub fn of_rate(share: f64) -> Result<Self, WrongRate> {
        if (MIN_RATE..=1.0).contains(&share) { Ok(Self::Rate(share)) } else { Err(WrongRate(share)) }
    }
}

/// Samples a stream that is fed reference by reference; page numbers need not be dense.
#[derive(Debug)]
pub struct Shards {
    threshold: Threshold,
    most: usize,
    ids: HashMap<u64, u32>,
    free: Vec<u32>,
    /// (hash, page) of the sampled pages, the greatest first; only kept for a fixed size.
    order: BinaryHeap<(u32, u64)>,
    distances: StackDistances,
    weights: Weights,
    /// Which of how many classes.
    class: (u32, u32),
}

/// What a sample counts: of the samples of several classes the sums.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weights {
    /// References fed, sampled or not: of classes those of the whole stream, each time.
    pub references: u64,
    /// Pages in the sample.
    pub pages: u64,
    /// The share of the pages that all classes sample together.
    pub rate: f64,
    /// The share that one class samples, by which its distances are scaled.
    pub class_rate: f64,
    /// Weight of the first references, for each group.
    pub first: [f64; GROUPS],
    /// Weight (references it stands for) by bucket of scaled distance, for each group.
    pub weight: [Vec<f64>; GROUPS],
}

/// Which pages are sampled: those with a hash below a limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    /// Of [`FULL`].
    below: u32,
    seed: u64,
}

/// What the hash of a sampled page says.
pub(super) struct Hashed {
    /// Compared with the threshold.
    pub low: u32,
    /// The group, from other bits.
    pub group: usize,
}

impl Threshold {
    /// Samples this share of the pages, above 0 and up to 1; another seed samples others.
    pub fn new(rate: f64, seed: u64) -> Self {
        Self { below: ((rate * f64::from(FULL)).round() as u32).clamp(1, FULL), seed }
    }

    /// The share of the pages that is sampled.
    pub fn rate(self) -> f64 {
        f64::from(self.below) / f64::from(FULL)
    }

    /// The hash of a page that is sampled: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
    #[inline]
    pub fn sampled(self, page: u64) -> Option<Hashed> {
        let mut z = page ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let low = z as u32 % FULL;
        (low < self.below).then_some(Hashed { low, group: (z >> 61) as usize % GROUPS })
    }
}

/// Whether a sample with this share of the pages includes the page.
pub fn sampled(page: u64, rate: f64) -> bool {
    Threshold::new(rate, 0).sampled(page).is_some()
}

/// The standard error of a sum over the groups, from their spread.
pub(super) fn spread_of(groups: &[f64; GROUPS]) -> f64 {
    let mean = groups.iter().sum::<f64>() / GROUPS as f64;
    let square: f64 = groups.iter().map(|group| (group - mean).powi(2)).sum::<f64>() / (GROUPS - 1) as f64;
    (GROUPS as f64 * square).sqrt()
}

/// The bucket of a distance or a time.
#[inline]
pub(super) fn bucket(distance: u64) -> usize {
    if distance < FINE {
        return distance as usize;
    }
    let octave = u64::from(distance.ilog2() - FINE.ilog2()) + 1;
    (FINE / 2 * (octave + 1) + (distance >> octave) - FINE / 2) as usize
}

/// The least that falls into a bucket.
pub(super) fn first_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < FINE {
        return bucket;
    }
    let octave = (bucket - FINE) / (FINE / 2) + 1;
    (bucket - FINE / 2 * octave) << octave
}

impl Shards {
    /// Nothing sampled yet; another seed samples other pages.
    pub fn new(sampling: Sampling, seed: u64) -> Self {
        let (rate, most) = match sampling {
            Sampling::Rate(rate) => (rate, usize::MAX),
            Sampling::Pages(most) => (1.0, most.max(1)),
        };
        Self {
            threshold: Threshold::new(rate, seed),
            most,
            ids: HashMap::new(),
            free: Vec::new(),
            order: BinaryHeap::new(),
            distances: StackDistances::new(0),
            weights: Weights::default(),
            class: (0, 1),
        }
    }

    /// One of `classes` (at least 1) classes of a sample at `rate`, by its number from 0.
    pub fn of_class(rate: f64, seed: u64, number: u32, classes: u32) -> Self {
        Self { class: (number, classes.max(1)), ..Self::new(Sampling::Rate(rate), seed) }
    }

    /// References that were made and are known not to be of this class or sample.
    pub fn pass_over(&mut self, references: u64) {
        self.weights.references += references;
    }

    /// The share of the pages that is sampled now.
    pub fn rate(&self) -> f64 {
        self.threshold.rate()
    }

    /// The bytes that the sampled pages take, at most: a table that doubles, distances, weights.
    pub fn bytes(&self) -> u64 {
        const A_PAGE: u64 = 96;
        A_PAGE * self.ids.len() as u64
    }

    /// References a page.
    #[inline]
    pub fn reference(&mut self, page: u64) {
        self.weights.references += 1;
        if let Some(Hashed { low, group }) = self.threshold.sampled(page)
            && low % self.class.1 == self.class.0
        {
            self.sampled(page, low, group);
        }
    }

    fn sampled(&mut self, page: u64, low: u32, group: usize) {
        let rate = self.rate();
        if let Some(&id) = self.ids.get(&page) {
            let distance = self.distances.reference(id).expect("a page with a number was referenced");
            // The page itself is certain; the distance to it is scaled.
            let of_class = rate / f64::from(self.class.1);
            let scaled = (f64::from(distance - 1) / of_class).round() as u64 + 1;
            let bucket = bucket(scaled);
            let weights = &mut self.weights.weight[group];
            if weights.len() <= bucket {
                weights.resize(bucket + 1, 0.0);
            }
            weights[bucket] += 1.0 / rate;
            return;
        }
        self.weights.first[group] += 1.0 / rate;
        let id = self.free.pop().unwrap_or(self.ids.len() as u32);
        self.ids.insert(page, id);
        self.distances.grow(id + 1);
        self.distances.reference(id);
        if self.most < usize::MAX {
            self.order.push((low, page));
            if self.ids.len() > self.most {
                self.lower_threshold();
            }
        }
    }

    /// Leaves out the sampled pages with the greatest hash.
    fn lower_threshold(&mut self) {
        let Some(&(greatest, _)) = self.order.peek() else { return };
        // A threshold of 0 would sample nothing for ever; pages of equal hash then stay.
        if greatest == 0 {
            return;
        }
        self.threshold.below = greatest;
        while let Some(&(low, page)) = self.order.peek()
            && low >= greatest
        {
            self.order.pop();
            if let Some(id) = self.ids.remove(&page) {
                self.distances.forget(id);
                self.free.push(id);
            }
        }
    }

    /// What was counted so far.
    pub fn weights(&self) -> Weights {
        let rate = self.rate();
        let class_rate = rate / f64::from(self.class.1);
        Weights { pages: self.ids.len() as u64, rate, class_rate, ..self.weights.clone() }
    }

    /// The curve of what was fed so far.
    pub fn curve(&self) -> SampledCurve {
        self.weights().curve()
    }
}

/// Classes of samples that were not made alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the samples are not classes of one: their rates or references differ")]
pub struct Unlike;

/// The class of a page, of so many, where it is sampled at this rate.
#[inline]
pub fn class_of(page: u64, rate: f64, seed: u64, classes: u32) -> Option<u32> {
    Threshold::new(rate, seed).sampled(page).map(|hashed| hashed.low % classes)
}

impl Weights {
    /// Adds another class of the same sample.
    ///
    /// # Errors
    /// When it is none.
    pub fn add(&mut self, other: &Self) -> Result<(), Unlike> {
        if (self.references, self.rate, self.class_rate) != (other.references, other.rate, other.class_rate) {
            return Err(Unlike);
        }
        self.pages += other.pages;
        for (own, more) in self.first.iter_mut().zip(other.first) {
            *own += more;
        }
        for (own, more) in self.weight.iter_mut().zip(&other.weight) {
            own.resize(own.len().max(more.len()), 0.0);
            own.iter_mut().zip(more).for_each(|(own, more)| *own += more);
        }
        Ok(())
    }

    /// The curve of what was counted.
    pub fn curve(&self) -> SampledCurve {
        let n = self.references as f64;
        let sampled: f64 = self.first.iter().chain(self.weight.iter().flatten()).sum();
        let buckets = self.weight.iter().map(Vec::len).max().unwrap_or(0);
        // Misses of each group at the upper end of each bucket, from the largest size down.
        let mut misses = self.first;
        let mut points = vec![(0.0, 0.0); buckets];
        for at in (0..buckets).rev() {
            let total: f64 = misses.iter().sum();
            points[at] = ((total / n).clamp(0.0, 1.0), spread_of(&misses) / n);
            for (group, weights) in self.weight.iter().enumerate() {
                misses[group] += weights.get(at).copied().unwrap_or(0.0);
            }
        }
        SampledCurve {
            references: self.references,
            sampled_pages: self.pages as usize,
            rate: self.rate,
            class_rate: self.class_rate,
            correction: if n > 0.0 { 1.0 - sampled / n } else { 0.0 },
            points,
        }
    }
}

/// An LRU curve from a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledCurve {
    /// References fed, sampled or not.
    pub references: u64,
    /// Pages in the sample at the end.
    pub sampled_pages: usize,
    /// Share of the pages that is sampled at the end.
    pub rate: f64,
    /// The share that one class samples: the same where there are no classes.
    pub class_rate: f64,
    /// The share of the references that SHARDS-adj added as hits (negative: took away).
    pub correction: f64,
    /// (miss ratio, standard error) by bucket of size.
    points: Vec<(f64, f64)>,
}

impl SampledCurve {
    /// The miss ratio with this many frames (at least 1) and its standard error; `None` when fewer than
    /// [`TRUSTED`] sampled pages stand for that size, unless every page is sampled, or when nothing was sampled twice.
    pub fn miss_ratio(&self, frames: u32) -> Option<(f64, f64)> {
        if self.class_rate < 1.0 && f64::from(frames) * self.class_rate < f64::from(TRUSTED) {
            return None;
        }
        let at = bucket(u64::from(frames.max(1))).min(self.points.len().checked_sub(1)?);
        Some(self.points[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mrc::lru::LruCurve;
    use pagelab_reference::{Pattern, Stream};
    use proptest::prelude::*;

    fn sample(stream: &Stream, sampling: Sampling, seed: u64) -> SampledCurve {
        let mut shards = Shards::new(sampling, seed);
        stream.references().iter().for_each(|&page| shards.reference(page.into()));
        shards.curve()
    }

    #[test]
    fn buckets_follow_each_other_without_gaps() {
        let mut previous = 0;
        for distance in 0..200_000u64 {
            let at = bucket(distance);
            assert!(at == previous || at == previous + 1, "{distance}: {at} after {previous}");
            assert!((first_of(at)..first_of(at + 1)).contains(&distance), "{distance}: {at}");
            previous = at;
        }
        assert!(bucket(u64::from(u32::MAX)) < 8000);
    }

    proptest! {
        #[test]
        fn sampling_every_page_is_exact(seed: u64, pages in 1u64..400, n in 1u64..3000, frames in 1u32..400) {
            let stream = Pattern::Zipf(0.8).stream(pages, n, seed).unwrap();
            let exact = LruCurve::of(&stream).miss_ratio(frames).unwrap();
            for sampling in [Sampling::Rate(1.0), Sampling::Pages(500)] {
                if let Some((ratio, _)) = sample(&stream, sampling, seed).miss_ratio(frames) {
                    prop_assert!((ratio - exact).abs() < 1e-9, "{} and {}", ratio, exact);
                }
            }
        }

        #[test]
        fn a_fixed_size_is_kept(seed: u64, most in 1usize..50) {
            let stream = Pattern::Uniform.stream(2000, 5000, seed).unwrap();
            let curve = sample(&stream, Sampling::Pages(most), seed);
            prop_assert!(curve.sampled_pages <= most);
            prop_assert!(curve.rate < 0.2);
        }
    }

    #[test]
    fn classes_add_and_are_near_the_exact_curve() {
        let stream = Pattern::Zipf(0.8).stream(100_000, 1_000_000, 3).unwrap();
        let exact = LruCurve::of(&stream);
        let class = |number| {
            let mut shards = Shards::of_class(0.4, 1, number, 4);
            for &page in stream.references() {
                match class_of(page.into(), 0.4, 1, 4) {
                    Some(class) if class == number => shards.reference(page.into()),
                    _ => shards.pass_over(1),
                }
            }
            shards.weights()
        };
        let mut all = class(0);
        (1..4).for_each(|number| all.add(&class(number)).unwrap());
        let whole = sample(&stream, Sampling::Rate(0.4), 1);
        assert_eq!((all.pages as usize, all.references), (whole.sampled_pages, whole.references));
        let curve = all.curve();
        assert!((curve.correction - whole.correction).abs() < 1e-9);
        for frames in [2_000, 20_000, 80_000] {
            let (ratio, error) = curve.miss_ratio(frames).unwrap();
            let off = (ratio - exact.miss_ratio(frames).unwrap()).abs();
            assert!(off < 0.01 && error < 0.02, "{frames}: {off} {error}");
        }
        assert_eq!(curve.miss_ratio(900), None, "fewer than 100 pages of a class");
        let other = Shards::of_class(0.2, 1, 0, 4).weights();
        assert_eq!(all.add(&other), Err(Unlike));
    }

    #[test]
    fn sizes_of_few_sampled_pages_have_no_figure() {
        let stream = Pattern::Zipf(0.8).stream(100_000, 300_000, 1).unwrap();
        let curve = sample(&stream, Sampling::Rate(0.05), 1);
        assert_eq!((curve.miss_ratio(1), curve.miss_ratio(1999)), (None, None));
        assert!(curve.miss_ratio(2001).is_some());
    }

    #[test]
    fn sampled_curves_are_near_the_exact_one() {
        for pattern in [Pattern::Zipf(0.8), Pattern::Drift(0.25), Pattern::SmoothSinRandom] {
            let stream = pattern.stream(100_000, 1_000_000, 11).unwrap();
            let exact = LruCurve::of(&stream);
            for sampling in [Sampling::Rate(0.05), Sampling::Pages(4096)] {
                let curve = sample(&stream, sampling, 2);
                for frames in [5_000, 10_000, 25_000, 50_000, 75_000, 100_000] {
                    let (ratio, error) = curve.miss_ratio(frames).unwrap();
                    let difference = (ratio - exact.miss_ratio(frames).unwrap()).abs();
                    assert!(
                        difference < 0.015 + 3.0 * error && error < 0.05,
                        "{pattern} {sampling:?} {frames}: {difference} off with an error of {error}"
                    );
                }
            }
        }
    }
}
