//! The least memory at which a program still runs at full speed, by bisection.
//!
//! Full speed is the program's time at the most memory of the sweep. A limit is at full speed when the
//! median of its times is no longer than that by more than a tolerance: one twentieth, or three robust
//! standard deviations of the times at full speed if they scatter more. (Times grow with less memory,
//! not shrink; where they do not, the bisection still ends, and says what it saw.)
//!
//! The search halves the ratio of the greatest limit known to be too small and the least known to be
//! enough, until they are within [`PRECISION`]. Both are the ends of the interval: the knee lies
//! between them as surely as the two medians tell full speed from less.

use crate::stats::{median, robust_deviation};

/// The ratio of the interval's ends at which the search ends.
pub const PRECISION: f64 = 1.06;
/// The least tolerance, as a share.
const TOLERANCE: f64 = 0.05;
/// Robust standard deviations of the times at full speed.
const DEVIATIONS: f64 = 3.0;

/// A memory limit and what was measured under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Bytes.
    pub memory: u64,
    /// Times in ns; empty: the program was killed for want of memory.
    pub times: Vec<f64>,
}

impl Point {
    /// The median; infinite where the program was killed.
    pub fn time(&self) -> f64 {
        median(&self.times).unwrap_or(f64::INFINITY)
    }
}

/// Where the search stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Measure under this limit.
    Measure(u64),
    /// The search is over.
    Found(Knee),
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The least limit that was measured to be enough, bytes.
    pub enough: u64,
    /// The greatest that was measured to be too little; `None`: even the least of the sweep is enough.
    pub too_little: Option<u64>,
    /// The time at full speed, ns.
    pub full: f64,
    /// The longest time that still counts as full speed, ns.
    pub allowed: f64,
}

/// What to do next, after these points, in a sweep from `least` to `most` bytes. `page` bytes are the
/// granularity.
///
/// `None` when the program was killed at the most memory, or `least` is 0 or above `most`.
pub fn next(points: &[Point], least: u64, most: u64, page: u64) -> Option<Next> {
    if least == 0 || least > most || page == 0 {
        return None;
    }
    let at = |memory: u64| points.iter().find(|p| p.memory == memory);
    let Some(top) = at(most) else { return Some(Next::Measure(most)) };
    let full = median(&top.times)?;
    let scatter = robust_deviation(&top.times).unwrap_or(0.0) * DEVIATIONS;
    let allowed = full + (full * TOLERANCE).max(scatter);
    let Some(bottom) = at(least) else { return Some(Next::Measure(least)) };
    let is_enough = |point: &Point| point.time() <= allowed;
    if is_enough(bottom) {
        return Some(Next::Found(Knee { enough: least, too_little: None, full, allowed }));
    }
    let too_little = points.iter().filter(|p| !is_enough(p)).map(|p| p.memory).max().unwrap_or(least);
    let enough = points.iter().filter(|p| is_enough(p) && p.memory > too_little).map(|p| p.memory).min();
    let enough = enough.unwrap_or(most);
    let middle = ((too_little as f64 * enough as f64).sqrt() as u64 / page).max(1) * page;
    if enough as f64 / too_little as f64 <= PRECISION || middle <= too_little || middle >= enough {
        return Some(Next::Found(Knee { enough, too_little: Some(too_little), full, allowed }));
    }
    Some(Next::Measure(middle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn search(least: u64, most: u64, time: impl Fn(u64) -> Vec<f64>) -> (Knee, usize) {
        let mut points = Vec::new();
        loop {
            match next(&points, least, most, 4096).unwrap() {
                Next::Found(knee) => return (knee, points.len()),
                Next::Measure(memory) => points.push(Point { memory, times: time(memory) }),
            }
            assert!(points.len() < 40, "it goes on for ever");
        }
    }

    #[test]
    fn a_step_is_found_within_the_precision() {
        let need = 100 << 20;
        let (knee, measured) =
            search(32 << 20, 2 << 30, |m| if m >= need { vec![1.0, 1.01, 0.99] } else { vec![3.0] });
        let too_little = knee.too_little.unwrap();
        assert!(too_little < need && need <= knee.enough, "{knee:?}");
        assert!(knee.enough as f64 / too_little as f64 <= PRECISION && measured <= 10, "{measured}");
    }

    #[test]
    fn killed_is_too_little_and_enough_everywhere_has_no_lower_end() {
        let (knee, _) = search(1 << 20, 1 << 30, |m| if m >= 50 << 20 { vec![5.0] } else { vec![] });
        assert!(knee.too_little.unwrap() < 50 << 20);
        let (knee, measured) = search(1 << 20, 1 << 30, |_| vec![5.0]);
        assert_eq!((knee.enough, knee.too_little, measured), (1 << 20, None, 2));
        assert_eq!(next(&[Point { memory: 1 << 30, times: vec![] }], 1, 1 << 30, 4096), None);
    }

    #[test]
    fn times_that_scatter_are_allowed_to() {
        let noisy = vec![100.0, 110.0, 90.0, 105.0, 95.0];
        let (knee, _) = search(1 << 20, 1 << 30, |m| if m == 1 << 30 { noisy.clone() } else { vec![108.0] });
        assert_eq!(knee.too_little, None, "8 % more is no knee where 10 % is noise: {knee:?}");
    }

    proptest! {
        #[test]
        fn every_step_is_enclosed(need in 1u64..1 << 33, least in 4096u64..1 << 30, ratio in 2u64..4096) {
            let most = least.saturating_mul(ratio);
            let (knee, _) = search(least, most, |m| if m >= need || m == most { vec![1.0] } else { vec![2.0] });
            match knee.too_little {
                Some(too_little) => prop_assert!(too_little < need && (knee.enough >= need || knee.enough == most)),
                None => prop_assert!(least >= need || least == most),
            }
        }
    }
}
