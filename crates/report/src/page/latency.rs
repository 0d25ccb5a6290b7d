//! How long references took: the distribution of each kind, and the share slower than a time.

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_experiment::observation::{Histogram, Unit};

use super::figures::Numbers;
use super::plot::{self, unit_name};
use super::shown::{Panel, Shown};

/// Bins for each tenfold time.
const BINS: f64 = 20.0;
/// Points of a curve for each tenfold time.
const STEPS: f64 = 40.0;

const KINDS: [(&str, &str, usize); 3] =
    [("access.hit", "hit", 0), ("access.minor", "minor fault", 1), ("access.major", "major fault", 2)];

const SHAPE: &str = "Latency of each kind of reference";
const BEYOND: &str = "References slower than a given time";

/// The two plots for each unit that was measured in; without histograms, what is missing.
pub fn panels(shown: &[Shown]) -> Vec<Panel> {
    let of = |unit: Unit| plots(shown, unit).into_iter().flatten();
    let panels: Vec<Panel> =
        of(Unit::Nanoseconds).chain(of(Unit::Instructions)).map(|plot| Panel::Plot(Box::new(plot))).collect();
    if panels.is_empty() {
        let why = "no reference was timed on its own";
        return [SHAPE, BEYOND].map(|title| Panel::Absent(title, why.to_owned())).into();
    }
    panels
}

fn plots(shown: &[Shown], unit: Unit) -> Option<[Plot; 2]> {
    let x = || {
        let label = if unit == Unit::Instructions { plot::INSTRUCTIONS } else { plot::TIME };
        Axis::log(label, unit_name(Some(unit)))
    };
    let mut shape = Plot::new(
        SHAPE,
        "20 bins for each tenfold time. The kernel's fault counters tell the kinds apart, not the time.",
        x(),
        Axis::log("references in a bin", "").switchable(),
    );
    let mut beyond = Plot::new(
        BEYOND,
        match shown.len() {
            1 => {
                "The share of all references that took longer than the time below: of all kinds, and of each."
            }
            _ => "All kinds together: the share of references that took longer than the time below.",
        },
        x(),
        Axis::log("share of references", "share").switchable(),
    );
    let several = shown.len() > 1;
    for s in shown {
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut kinds: Vec<(&str, usize, &Histogram)> = Vec::new();
        for (name, legend, dash) in KINDS {
            let found = s.seen().histogram(name).filter(|h| h.unit == unit && !h.buckets.is_empty());
            let Some(histogram) = found else { continue };
            all.extend(&histogram.buckets);
            kinds.push((legend, dash, histogram));
            let (x, y) = binned(histogram);
            let (name, color, dash) = match several {
                true => (format!("{} {legend}", s.name()), s.color, dash),
                false => (legend.to_owned(), dash, 0),
            };
            shape.series.push(Series { name, color, dash, step: true, x, y, ..Series::default() });
        }
        let total = all.iter().fold(0u64, |sum, b| sum.saturating_add(b.1));
        let mut curve = |name: &str, color, buckets| {
            let Some((x, y)) = slower(buckets, total) else { return };
            beyond.series.push(Series {
                name: name.to_owned(),
                color,
                step: true,
                x,
                y,
                ..Series::default()
            });
        };
        match several {
            true => curve(s.name(), s.color, all),
            false => {
                for (kind, color, histogram) in kinds {
                    curve(kind, color, histogram.buckets.clone());
                }
                curve("all", KINDS.len(), all);
            }
        }
    }
    (!shape.series.is_empty()).then_some([shape, beyond])
}

/// The histogram in bins of equal width on a logarithmic axis: where each begins, and its count; a bin
/// of nothing closes each run of bins.
fn binned(histogram: &Histogram) -> (Numbers, Numbers) {
    let bin = |value: u64| ((value.max(1) as f64).log10() * BINS).floor() as i64;
    let mut counts: Vec<(i64, u64)> = Vec::new();
    for &(value, count) in &histogram.buckets {
        match counts.last_mut() {
            Some((last, sum)) if *last == bin(value) => *sum = sum.saturating_add(count),
            _ => counts.push((bin(value), count)),
        }
    }
    let edge = |bin: i64| Some(10f64.powf(bin as f64 / BINS));
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (n, &(bin, count)) in counts.iter().enumerate() {
        x.push(edge(bin));
        y.push(Some(count as f64));
        if counts.get(n + 1).is_none_or(|next| next.0 != bin + 1) {
            x.push(edge(bin + 1));
            y.push(Some(count as f64));
            x.push(edge(bin + 1));
            y.push(None);
        }
    }
    (x, y)
}

/// The share of `total` above each value, about [`STEPS`] points for each tenfold value: from a step below the
/// smallest value, where it is all, to the largest, up to which the last ones are.
fn slower(mut buckets: Vec<(u64, u64)>, total: u64) -> Option<(Numbers, Numbers)> {
    buckets.sort_unstable();
    let count = buckets.iter().fold(0u64, |sum, b| sum.saturating_add(b.1));
    if count == 0 {
        return None;
    }
    let place = |value: u64| (value.max(1) as f64).log10() * STEPS;
    let mut above = count;
    let mut share = above as f64 / total as f64;
    let mut drawn = place(buckets[0].0) - 1.0;
    let (mut x, mut y) = (vec![Some(10f64.powf(drawn / STEPS))], vec![Some(share)]);
    for (value, count) in buckets {
        above = above.saturating_sub(count);
        if place(value) - drawn >= 1.0 || above == 0 {
            if above > 0 {
                share = above as f64 / total as f64;
            }
            x.push(Some(value.max(1) as f64));
            y.push(Some(share));
            drawn = place(value);
        }
    }
    Some((x, y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_lose_no_reference(buckets in proptest::collection::btree_map(1u64..1_000_000_000, 1u64..1000, 1..50)) {
            let total: u64 = buckets.values().sum();
            let buckets: Vec<(u64, u64)> = buckets.into_iter().collect();
            let histogram = Histogram { name: String::new(), unit: Unit::Nanoseconds, min: 0, max: 0, sum: 0, buckets: buckets.to_vec() };
            let (x, y) = binned(&histogram);
            // Every bin but the repeated one at the end of each run of bins.
            let mut sum = 0.0;
            for n in 0..x.len() {
                if y.get(n + 1) != Some(&None) {
                    sum += y[n].unwrap_or(0.0);
                }
            }
            prop_assert_eq!(sum as u64, total);
            let (x, y) = slower(buckets, total).unwrap();
            prop_assert!(x.is_sorted() && y.iter().flatten().all(|&v| v > 0.0 && v <= 1.0));
            prop_assert_eq!((y[0], y.iter().flatten().count()), (Some(1.0), x.len()));
            prop_assert!(y.iter().rev().is_sorted(), "the share falls");
        }
    }
}
