//! Distributions under construction: an HDR histogram, with sum and extremes kept exactly.

use std::collections::BTreeMap;

use hdrhistogram::Histogram as Buckets;

use crate::observation::{Histogram, Unit};

/// A distribution of whole numbers: three significant figures over the whole range of u64, so nothing
/// saturates and nothing is allocated after [`Distribution::new`]. Sum, minimum and maximum are exact.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Values up to here are their own bucket there too: counted apart, which takes one addition.
    small: Box<[u64; SMALL]>,
    buckets: Buckets<u64>,
    sum: u64,
    min: u64,
    max: u64,
}

/// Below this, three significant figures tell every number from the next.
const SMALL: usize = 2048;

impl Distribution {
    /// An empty one, about 470 KiB.
    ///
    /// # Panics
    /// Never: the bounds are constant.
    pub fn new() -> Self {
        let buckets = Buckets::new_with_bounds(1, u64::MAX, 3).expect("constant bounds");
        Self { small: Box::new([0; SMALL]), buckets, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Adds a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.bucket(value);
        self.fold(value, value, value);
    }

    /// Counts a value whose sum and extremes come later through [`Distribution::fold`]: for a loop that
    /// keeps them in registers.
    #[inline]
    pub fn bucket(&mut self, value: u64) {
        match self.small.get_mut(value as usize) {
            Some(count) => *count += 1,
            // Never saturates: the range is all of u64.
            None => self.buckets.saturating_record(value),
        }
    }

    /// Adds the sum and the extremes of values that [`Distribution::bucket`] counted.
    #[inline]
    pub fn fold(&mut self, sum: u64, min: u64, max: u64) {
        self.sum += sum;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.small.iter().sum::<u64>() + self.buckets.len()
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The smallest value; `None` when there is none.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min)
    }

    /// The greatest value; `None` when there is none.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max)
    }

    /// As an observation, in nanoseconds.
    pub fn histogram(&self, name: &str) -> Histogram {
        let small = (0..).zip(self.small.iter().copied()).filter(|&(_, count)| count > 0);
        let large = self.buckets.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value()));
        Histogram {
            name: name.to_owned(),
            unit: Unit::Nanoseconds,
            buckets: small.chain(large).collect(),
            min: self.min().unwrap_or(0),
            max: self.max,
            sum: self.sum,
        }
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

/// Several distributions as one of the name `name`, in nanoseconds.
pub fn merged<'a>(name: &str, parts: impl IntoIterator<Item = &'a Histogram> + Clone) -> Histogram {
    let mut buckets = BTreeMap::new();
    for &(value, count) in parts.clone().into_iter().flat_map(|part| &part.buckets) {
        *buckets.entry(value).or_insert(0) += count;
    }
    let some = || parts.clone().into_iter().filter(|part| part.count() > 0);
    Histogram {
        name: name.to_owned(),
        unit: Unit::Nanoseconds,
        buckets: buckets.into_iter().collect(),
        min: some().map(|part| part.min).min().unwrap_or(0),
        max: some().map(|part| part.max).max().unwrap_or(0),
        sum: some().map(|part| part.sum).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sum_and_extremes_are_exact_and_buckets_true_to_a_thousandth(
            values in prop::collection::vec(0_u64..1 << 50, 1..200),
        ) {
            let mut distribution = Distribution::new();
            values.iter().for_each(|&value| distribution.record(value));
            let histogram = distribution.histogram("x");
            prop_assert_eq!(histogram.count(), values.len() as u64);
            prop_assert_eq!(histogram.sum, values.iter().sum::<u64>());
            prop_assert_eq!(histogram.min, *values.iter().min().unwrap());
            prop_assert_eq!(histogram.max, *values.iter().max().unwrap());
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let mut recorded = histogram.buckets.iter().flat_map(|&(v, n)| std::iter::repeat_n(v, n as usize));
            for value in sorted {
                let bucket = recorded.next().unwrap();
                prop_assert!(bucket >= value && bucket - value <= value / 1000 + 1, "{} in {}", value, bucket);
            }
        }
    }

    #[test]
    fn merging_keeps_count_sum_and_extremes() {
        let one = |name: &str, buckets: Vec<(u64, u64)>, min, max, sum| Histogram {
            name: name.into(),
            unit: Unit::Nanoseconds,
            buckets,
            min,
            max,
            sum,
        };
        let all = merged(
            "all",
            &[
                one("a", vec![(10, 2), (20, 1)], 9, 20, 39),
                one("b", vec![], 0, 0, 0),
                one("c", vec![(20, 4), (500, 1)], 19, 499, 579),
            ],
        );
        assert_eq!(all.buckets, [(10, 2), (20, 5), (500, 1)]);
        assert_eq!((all.min, all.max, all.sum, all.count()), (9, 499, 618, 8));
    }

    /// What is counted apart is in the buckets in which the histogram would have counted it.
    #[test]
    fn small_values_have_the_buckets_of_the_histogram() {
        let mut distribution = Distribution::new();
        let mut buckets = Buckets::<u64>::new_with_bounds(1, u64::MAX, 3).unwrap();
        for value in (0..3 * SMALL as u64).chain([u64::MAX]) {
            distribution.record(value / 2);
            buckets.saturating_record(value / 2);
        }
        let wanted: Vec<_> =
            buckets.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect();
        assert_eq!(distribution.histogram("x").buckets, wanted);
        assert_eq!(distribution.count(), 3 * SMALL as u64 + 1);
    }

    #[test]
    fn an_empty_one_has_no_extremes() {
        let histogram = Distribution::new().histogram("x");
        assert_eq!((histogram.min, histogram.max, histogram.count()), (0, 0, 0));
        assert_eq!(Distribution::new().min(), None);
    }
}
