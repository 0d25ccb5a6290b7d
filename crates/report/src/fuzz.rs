//! Words for a load on which two targets differ.

use pagelab_analysis::fuzz::{By, Pair};

use crate::text::count;

/// The difference in one sentence.
pub fn answer([first, second]: [&str; 2], pair: &Pair, by: By) -> String {
    match by {
        By::Faults => format!(
            "{first} has {} times OPT's faults, and {second} {} times: a difference of {}.",
            ratio(pair.first),
            ratio(pair.second),
            ratio(pair.difference(by).abs())
        ),
        By::Instructions => format!(
            "{first} takes {} instructions per reference, and {second} {}: {} more.",
            count(pair.first.round()),
            count(pair.second.round()),
            format_args!("{:.0}%", 100.0 * pair.difference(by).abs())
        ),
    }
}

/// A difference without its unit, as the summary of a search has it.
pub fn difference(value: f64, by: By) -> String {
    match by {
        By::Faults => format!("{} times OPT's faults", ratio(value)),
        By::Instructions => format!("{:.0}%", 100.0 * value),
    }
}

fn ratio(value: f64) -> String {
    format!("{value:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_stated_with_both_figures() {
        let pair = Pair { first: 1.25, second: 2.5, opt: 1000 };
        assert_eq!(
            answer(["A", "B"], &pair, By::Faults),
            "A has 1.25 times OPT's faults, and B 2.50 times: a difference of 1.25."
        );
        let pair = Pair { first: 3000.0, second: 2000.0, opt: 0 };
        assert_eq!(
            answer(["A", "B"], &pair, By::Instructions),
            "A takes 3,000 instructions per reference, and B 2,000: 50% more."
        );
    }
}
