//! Words for simulated misses of the page cache compared with the kernel's.

use crate::text::{self, DASH};

/// Changes below this share are reported as "the same".
const SAME: f64 = 0.005;

/// The hit ratio; a dash if there was no request. It is 100% only without misses.
pub fn hit_ratio(misses: f64, requests: f64) -> String {
    if requests <= 0.0 {
        return DASH.to_owned();
    }
    match 100.0 * (1.0 - misses / requests).max(0.0) {
        share if share < 99.95 || misses <= 0.0 => format!("{share:.1}%"),
        share if share < 99.995 => format!("{share:.2}%"),
        _ => "> 99.99%".to_owned(),
    }
}

/// Compares misses with the kernel's, for example "14% fewer".
pub fn change(misses: f64, kernel: f64) -> String {
    if kernel <= 0.0 {
        return if misses <= 0.0 {
            "the same".to_owned()
        } else {
            format!("{} more", text::count(misses.round()))
        };
    }
    let ratio = misses / kernel;
    match ratio - 1.0 {
        change if change.abs() < SAME => "the same".to_owned(),
        change if change < 0.0 => format!("{:.0}% fewer", -100.0 * change),
        change if change < 9.0 => format!("{:.0}% more", 100.0 * change),
        _ => format!("{}× as many", text::count(ratio.round())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_are_compared_in_words() {
        let of = |misses: f64| change(misses, 1000.0);
        assert_eq!([of(860.0), of(1004.0), of(1300.0)], ["14% fewer", "the same", "30% more"]);
        assert_eq!([of(0.0), of(25_000.0)], ["100% fewer", "25× as many"]);
        assert_eq!([change(0.0, 0.0), change(7.0, 0.0)], ["the same", "7 more"]);
        assert_eq!([hit_ratio(130.0, 1000.0), hit_ratio(0.0, 0.0)], ["87.0%", DASH]);
        let nearly = [0.0, 1.0, 0.01].map(|misses| hit_ratio(misses, 5000.0));
        assert_eq!(nearly, ["100.0%", "99.98%", "> 99.99%"]);
    }
}
