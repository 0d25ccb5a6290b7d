//! The miss ratio against the mean size of the working set, from the times between references alone: a curve that
//! shares nothing with stack distances, and a check of LRU's.
//!
//! Sources: P. J. Denning and S. C. Schwartz, "Properties of the working-set model", Communications of the ACM 15(3),
//! 1972: a window of τ references misses those whose page was not referenced within it, and the working set's mean size
//! is the sum of these miss ratios over the shorter windows. X. Xiang, C. Ding, H. Luo and B. Bao, "HOTL: a higher order
//! theory of locality", ASPLOS 2013: under the reuse hypothesis this is LRU's miss ratio with as many frames.
//!
//! Means and misses are those of the finite stream, exactly, at windows that bound the buckets of the times: every
//! window up to 512 references, then 256 in each octave.

use super::shards::{bucket, first_of};

/// What has been referenced, and when last. 8 bytes a page and some ten thousand buckets.
#[derive(Clone, Debug, Default)]
pub struct ReuseTimes {
    /// The number of references up to and including the last one to each page; 0 for none.
    last: Vec<u64>,
    /// References, and the sum of the times since the reference before, by bucket of that time.
    reused: Vec<(u64, u128)>,
    references: u64,
}

/// The miss ratio against the mean size of the working set.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkingSetCurve {
    /// (window in references, mean size in pages, miss ratio), in ascending order.
    pub points: Vec<(u64, f64, f64)>,
}

impl ReuseTimes {
    /// Takes the next references, which name pages below `pages`.
    ///
    /// # Panics
    /// When a reference is not below `pages`.
    pub fn take(&mut self, pages: u32, references: &[u32]) {
        crate::policy::grow(&mut self.last, pages);
        for &page in references {
            self.references += 1;
            let before = std::mem::replace(&mut self.last[page as usize], self.references);
            if before > 0 {
                add(&mut self.reused, self.references - before);
            }
        }
    }

    /// The curve of what was taken; without points when that was nothing.
    pub fn curve(&self) -> WorkingSetCurve {
        if self.references == 0 {
            return WorkingSetCurve { points: Vec::new() };
        }
        let n = self.references as f64;
        // A reference keeps its page in the working set for the window, but no longer than until the page is referenced
        // again, or the stream ends.
        let mut kept = self.reused.clone();
        let mut pages = 0;
        for &last in self.last.iter().filter(|last| **last > 0) {
            add(&mut kept, self.references + 1 - last);
            pages += 1;
        }
        let (mut missed, mut longer, mut sum) = (self.references, self.references, 0_u128);
        let mut points = Vec::with_capacity(kept.len());
        for (at, &(count, times)) in kept.iter().enumerate() {
            let window = first_of(at + 1) - 1;
            missed -= self.reused.get(at).map_or(0, |reused| reused.0);
            longer -= count;
            sum += times;
            if count > 0 {
                let size = (sum + u128::from(longer) * u128::from(window)) as f64 / n;
                points.push((window, size, missed as f64 / n));
            }
        }
        debug_assert_eq!((missed, longer), (pages, 0));
        WorkingSetCurve { points }
    }
}

/// Adds one time of at least 1.
#[inline]
fn add(times: &mut Vec<(u64, u128)>, time: u64) {
    let at = bucket(time);
    if times.len() <= at {
        times.resize(at + 1, (0, 0));
    }
    let (count, sum) = &mut times[at];
    *count += 1;
    *sum += u128::from(time);
}

impl WorkingSetCurve {
    /// The miss ratio where the mean size is this many pages, between two points by the straight line; `None` outside
    /// of the points.
    pub fn miss_ratio(&self, pages: f64) -> Option<f64> {
        let at = self.points.partition_point(|point| point.1 < pages);
        let &(_, size, ratio) = self.points.get(at)?;
        if size == pages {
            return Some(ratio);
        }
        let &(_, before, higher) = self.points.get(at.checked_sub(1)?)?;
        Some(higher + (ratio - higher) * (pages - before) / (size - before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mrc::lru::LruCurve;
    use crate::mrc::wss::working_set;
    use crate::replay::replay;
    use pagelab_reference::{Pattern, Stream};
    use proptest::prelude::*;

    fn curve_of(stream: &Stream) -> WorkingSetCurve {
        let mut times = ReuseTimes::default();
        stream.references().chunks(97).for_each(|chunk| times.take(stream.pages(), chunk));
        times.curve()
    }

    proptest! {
        #[test]
        fn points_are_the_working_sets_mean_and_misses(list in proptest::collection::vec(0u32..40, 1..900)) {
            let stream = Stream::new(40, list);
            for (window, size, ratio) in curve_of(&stream).points {
                let mean = working_set(40, stream.references(), window as usize, 1).mean.unwrap();
                prop_assert!((size - mean).abs() < 1e-9, "{window}: {size} and {mean}");
                let kind = format!("ws:{window}").parse().unwrap();
                let misses = replay(&stream, &kind, 1).miss_ratio().unwrap();
                prop_assert!((ratio - misses).abs() < 1e-12, "{window}: {ratio} and {misses}");
            }
        }
    }

    #[test]
    fn the_curve_is_near_lrus_where_references_are_independent() {
        let stream = Pattern::Zipf(0.8).stream(20_000, 1_000_000, 3).unwrap();
        let (lru, ws) = (LruCurve::of(&stream), curve_of(&stream));
        for frames in [100, 1000, 5000, 10_000, 15_000] {
            let (one, other) = (lru.miss_ratio(frames).unwrap(), ws.miss_ratio(frames.into()).unwrap());
            assert!((one - other).abs() < 0.01, "{frames}: {one} and {other}");
        }
        assert_eq!((ws.miss_ratio(0.5), ws.miss_ratio(20_001.0)), (None, None));
    }

    #[test]
    fn an_empty_stream_has_no_points() {
        assert_eq!(ReuseTimes::default().curve().miss_ratio(1.0), None);
    }
}
