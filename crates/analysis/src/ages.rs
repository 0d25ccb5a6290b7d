//! The memory of a process by the time since its last reference, from a sample of its pages.
//!
//! One page of each of many strata, drawn at random, is watched for an interval. A stratum whose
//! page was referenced counts with its whole size. The sum over the strata is then an unbiased
//! estimate of the memory that was referenced within the interval, whatever the order of hot and
//! cold pages is. Its standard error is that of collapsed strata (Hansen, Hurwitz and Madow,
//! "Sample Survey Methods and Theory", 1953; Cochran, "Sampling Techniques", 3rd ed., 5A.12), which
//! is too large rather than too small.

use std::ops::Range;

/// The number of standard errors on both sides of a 95% confidence interval.
const Z: f64 = 1.96;
/// The standard error of what no sampled page tells, in strata.
const UNSEEN: f64 = 1.5;

/// An estimated amount of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The estimate, bytes.
    pub bytes: u64,
    /// Its standard error, bytes.
    pub standard_error: f64,
}

impl Estimate {
    /// The 95% confidence interval, bytes.
    pub fn interval(&self) -> (u64, u64) {
        let half = (Z * self.standard_error) as u64;
        (self.bytes.saturating_sub(half), self.bytes.saturating_add(half))
    }
}

/// The intervals in which pages are watched one after another, seconds: 1, 2, 4, …, and last the
/// rest of `seconds`, which is longer than the one before.
pub fn intervals(seconds: u32) -> Vec<u32> {
    let (mut list, mut rest, mut next) = (Vec::new(), seconds, 1);
    while rest > 2 * next {
        list.push(next);
        rest -= next;
        next *= 2;
    }
    list.push(rest);
    list
}

/// The ranges in about `count` pieces of about the same size, each of whole pages of `page` bytes.
/// Of more than a quarter as many ranges, those are left out that are smallest.
pub fn strata(ranges: &[Range<u64>], page: u64, count: usize) -> Vec<Range<u64>> {
    let size = |range: &Range<u64>| range.end - range.start;
    let mut largest = ranges.to_vec();
    largest.sort_by_key(|range| std::cmp::Reverse(size(range)));
    largest.truncate((count / 4).max(1));
    largest.sort_by_key(|range| range.start);
    let all: u64 = largest.iter().map(size).sum();
    let piece = all.div_ceil(count as u64).next_multiple_of(page).max(page);
    let pieces = |range: Range<u64>| {
        let end = range.end;
        let starts = (range.start..end).step_by(usize::try_from(piece).unwrap_or(usize::MAX));
        starts.map(move |start| start..end.min(start + piece))
    };
    largest.into_iter().flat_map(pieces).collect()
}

/// The estimate, where the pages of the strata within `referenced` were. Both are ascending.
pub fn estimate(strata: &[Range<u64>], referenced: &[Range<u64>], page: u64) -> Estimate {
    let size = |stratum: &Range<u64>| stratum.end - stratum.start;
    let found = |stratum: &Range<u64>| {
        let middle = stratum.start + size(stratum) / 2;
        let behind = referenced.partition_point(|range| range.start <= middle);
        let hit = behind.checked_sub(1).is_some_and(|at| referenced[at].end > middle);
        if hit { size(stratum) } else { 0 }
    };
    let found: Vec<u64> = strata.iter().map(found).collect();
    // A stratum of one page has no sampling error.
    let largest = strata.iter().map(size).filter(|&size| size > page).max();
    let pairs = strata.chunks(2).zip(found.chunks(2));
    let variance = pairs.map(|(strata, found)| match found {
        [one, other] if strata.iter().any(|stratum| size(stratum) > page) => {
            (one.abs_diff(*other) as f64).powi(2)
        }
        _ => 0.0,
    });
    // Where no page of a sample was referenced, up to three strata may be (the rule of three).
    let unseen = largest.map_or(0.0, |bytes| (UNSEEN * bytes as f64).powi(2));
    Estimate { bytes: found.iter().sum(), standard_error: (variance.sum::<f64>() + unseen).sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::rng::Rng;
    use std::slice::from_ref;

    const PAGE: u64 = 4096;

    #[test]
    fn intervals_double_and_fill_the_time() {
        assert_eq!(intervals(12), [1, 2, 4, 5]);
        assert_eq!(intervals(60), [1, 2, 4, 8, 16, 29]);
        for seconds in 12..2000 {
            let list = intervals(seconds);
            assert_eq!(list.iter().sum::<u32>(), seconds);
            assert!(list.is_sorted_by(|one, next| one < next), "{list:?}");
        }
    }

    #[test]
    fn strata_cover_the_largest_ranges() {
        let ranges = [PAGE..11 * PAGE, 100 * PAGE..101 * PAGE, 200 * PAGE..230 * PAGE];
        let list = strata(&ranges, PAGE, 8);
        // Two ranges of 40 pages: pieces of five.
        assert_eq!(list.len(), 8);
        assert!(list.iter().all(|piece| piece.end - piece.start == 5 * PAGE));
        assert_eq!((list[0].start, list[1].end, list[2].start), (PAGE, 11 * PAGE, 200 * PAGE));
        let few = strata(&ranges[..1], PAGE, 1000);
        assert_eq!(few.len(), 10, "a page each");
        assert!(strata(&[], PAGE, 1000).is_empty());
    }

    #[test]
    fn merged_regions_count_each_stratum() {
        let list = strata(from_ref(&(0..100 * PAGE)), PAGE, 10);
        let found = estimate(&list, &[0..20 * PAGE, 90 * PAGE..100 * PAGE], PAGE);
        assert_eq!(found.bytes, 30 * PAGE);
        // The last pair differs.
        assert_eq!(found.standard_error, 10f64.hypot(15.0) * PAGE as f64);
        assert_eq!(found.interval().1, 30 * PAGE + (Z * found.standard_error) as u64);
        let none = estimate(&list, &[], PAGE);
        assert_eq!((none.bytes, none.standard_error), (0, 15.0 * PAGE as f64), "not known to be nothing");
        let exact = strata(from_ref(&(0..10 * PAGE)), PAGE, 1000);
        assert_eq!(estimate(&exact, from_ref(&(0..3 * PAGE)), PAGE).standard_error, 0.0);
    }

    /// Of memory whose hot pages are a block, scattered, or few: the estimate is unbiased, and the
    /// interval has the true value in at least 95% of the samples.
    #[test]
    fn intervals_hold_the_truth() {
        const PAGES: u64 = 20_000;
        const SAMPLES: u32 = 400;
        let mut rng = Rng::new(7);
        let scattered: Vec<bool> = (0..PAGES).map(|_| rng.below(10) < 3).collect();
        let block: Vec<bool> = (0..PAGES).map(|page| (3_333..9_999).contains(&page)).collect();
        let few: Vec<bool> = (0..PAGES).map(|page| page % 500 == 7).collect();
        let list = strata(from_ref(&(0..PAGES * PAGE)), PAGE, 1000);
        for hot in [scattered, block, few] {
            let truth = hot.iter().filter(|hot| **hot).count() as u64 * PAGE;
            let (mut sum, mut held) = (0.0, 0);
            for _ in 0..SAMPLES {
                let is_hot = |stratum: &&Range<u64>| {
                    let pages = (stratum.end - stratum.start) / PAGE;
                    hot[(stratum.start / PAGE + rng.below(pages)) as usize]
                };
                let referenced: Vec<Range<u64>> = list.iter().filter(is_hot).cloned().collect();
                let found = estimate(&list, &referenced, PAGE);
                let (low, high) = found.interval();
                sum += found.bytes as f64;
                held += u32::from((low..=high).contains(&truth));
            }
            let mean = sum / f64::from(SAMPLES);
            assert!((mean / truth as f64 - 1.0).abs() < 0.04, "{mean} of {truth}");
            assert!(f64::from(held) >= 0.94 * f64::from(SAMPLES), "{held} of {SAMPLES}");
        }
    }
}
