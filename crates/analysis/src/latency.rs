//! Latency without coordinated omission.
//!
//! A load that waits for each answer before it sends the next request leaves out, whenever an answer
//! is late, the requests that would have been sent meanwhile: the worst moments are counted once.
//! Where a rate is offered, the latency of a request is therefore the time from when it *should*
//! have been sent. Source: G. Tene, "How NOT to Measure Latency", 2013, and his HdrHistogram, whose
//! correction after the fact is [`corrected`].

use std::collections::BTreeMap;

use pagelab_experiment::observation::Histogram;

/// From when each request was due to when it was answered, for requests due every `interval` from
/// time 0 and answered at `answered` (same unit, in order of sending).
///
/// An answer before its request was due (which no honest load has) counts as 0.
pub fn from_schedule(interval: f64, answered: &[u64]) -> Vec<u64> {
    let due = (0..).map(|n: u64| (n as f64 * interval) as u64);
    answered.iter().zip(due).map(|(&at, due)| at.saturating_sub(due)).collect()
}

/// The histogram with the requests put back that a load of one request every `interval` left out: a
/// latency of v stands for requests that would have waited v − interval, v − 2·interval, … too.
///
/// Right for a load that waits for each answer; one that kept to its schedule needs no correction.
/// `interval` 0 changes nothing.
pub fn corrected(histogram: &Histogram, interval: u64) -> Histogram {
    let mut buckets: BTreeMap<u64, u64> = histogram.buckets.iter().copied().collect();
    let (mut min, mut sum) = (histogram.min, u128::from(histogram.sum));
    if interval > 0 {
        for &(value, count) in &histogram.buckets {
            let mut missing = value.saturating_sub(interval);
            while missing >= interval {
                *buckets.entry(missing).or_default() += count;
                sum += u128::from(missing) * u128::from(count);
                min = min.min(missing);
                missing -= interval;
            }
        }
    }
    Histogram {
        buckets: buckets.into_iter().collect(),
        min,
        sum: sum.try_into().unwrap_or(u64::MAX),
        ..histogram.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::observation::Unit;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut buckets = BTreeMap::new();
        values.iter().for_each(|&v| *buckets.entry(v).or_default() += 1);
        Histogram {
            name: "access.hit".into(),
            unit: Unit::Nanoseconds,
            buckets: buckets.into_iter().collect(),
            min: values.iter().copied().min().unwrap_or(0),
            max: values.iter().copied().max().unwrap_or(0),
            sum: values.iter().sum(),
        }
    }

    /// Tene's own example: 100 seconds of answers in 1 ms, then one that takes 100 seconds, at 100
    /// requests a second: half of the time no answer comes, so the median is about 1 ms, 75 % wait up
    /// to about 50 s, and the 99.99th percentile is about 100 s.
    #[test]
    fn tenes_stall() {
        let mut values = vec![1u64; 10_000];
        values.push(100_000);
        let naive = histogram(&values);
        assert_eq!(naive.quantile(0.75), Some(1), "the naive figure hides the stall");
        let right = corrected(&naive, 10);
        assert_eq!(right.quantile(0.50), Some(1));
        assert!((right.quantile(0.75).unwrap() as f64 / 50_000.0 - 1.0).abs() < 0.01);
        assert!(right.quantile(0.9999).unwrap() > 99_900);
    }

    /// The same stall, seen from its schedule.
    #[test]
    fn the_schedule_sees_what_the_correction_puts_back() {
        // 1,000 requests due every 10; each takes 1, but the 500th takes 2,000, and those behind it
        // are answered one after the other.
        let mut now = 0;
        let answered: Vec<u64> = (0..1000u64)
            .map(|n| {
                now = now.max(n * 10) + if n == 500 { 2000 } else { 1 };
                now
            })
            .collect();
        let waits = from_schedule(10.0, &answered);
        assert_eq!(waits.iter().max(), Some(&2000));
        // The queue shortens by 9 for each request.
        assert_eq!(waits.iter().filter(|&&w| w > 1).count(), 1 + 2000 / 9);
    }

    proptest! {
        #[test]
        fn correction_never_loses_and_never_exceeds(
            values in prop::collection::vec(0u64..10_000, 1..50), interval in 0u64..5_000,
        ) {
            let before = histogram(&values);
            let after = corrected(&before, interval);
            prop_assert!(after.count() >= before.count());
            prop_assert_eq!(after.max, before.max);
            prop_assert!(after.min <= before.min);
            prop_assert!(after.sum >= before.sum);
        }
    }
}
