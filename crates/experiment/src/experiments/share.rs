//! A share of the references in a stream. Each is drawn independently, as YCSB draws updates and reads
//! (Cooper et al., SoCC 2010: workload A has 50% of them, B has 5%).

use std::fmt;
use std::str::FromStr;

use pagelab_reference::rng::Rng;
use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::declaration::Refusal;

/// All of them, in millionths.
const WHOLE: u32 = 1_000_000;

/// Has the draws be others than those of the pattern of the same seed.
const APART: u64 = 0x7772_6974_6573;

/// A share of references, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Share(u32);

impl Share {
    /// Every reference.
    pub const ALL: Self = Self(WHOLE);

    /// One reference of `count` on average.
    pub(crate) fn one_of(count: u32) -> Self {
        Self(WHOLE / count)
    }

    /// Whether the share is 0%.
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether the share is between 0% and 100%.
    pub fn is_mixed(self) -> bool {
        !self.is_none() && self != Self::ALL
    }

    /// So much of `count`, rounded down.
    pub fn of(self, count: u64) -> u64 {
        (u128::from(count) * u128::from(self.0) / u128::from(WHOLE)) as u64
    }

    /// Draws for the references in order. They depend on the seed only, not on the target.
    pub fn drawn(self, seed: u64) -> Draws {
        Draws { share: self, rng: Rng::new(seed ^ APART) }
    }
}

/// An endless sequence of draws.
#[derive(Clone, Debug)]
pub struct Draws {
    share: Share,
    rng: Rng,
}

impl Draws {
    /// Draws whether the next reference is in the share.
    #[inline]
    pub fn draw(&mut self) -> bool {
        match self.share.is_mixed() {
            true => self.rng.below(u64::from(WHOLE)) < u64::from(self.share.0),
            false => !self.share.is_none(),
        }
    }
}

impl FromStr for Share {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        let share = percent.filter(|percent| (0.0..=100.0).contains(percent));
        let millionths = share.map(|percent| (percent * f64::from(WHOLE) / 100.0).round() as u32);
        millionths
            .filter(|&millionths| millionths > 0 || share == Some(0.0))
            .map(Self)
            .ok_or_else(|| Refusal::new(format!("'{text}' must be a percentage from 0% to 100%, such as 5%")))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", f64::from(self.0) * 100.0 / f64::from(WHOLE))
    }
}

as_text!(Share);

#[cfg(test)]
mod tests {
    use super::*;

    fn share(text: &str) -> Share {
        text.parse().unwrap()
    }

    #[test]
    fn shares_parse_and_print_the_same() {
        for text in ["0%", "5%", "0.5%", "33.3333%", "100%"] {
            assert_eq!(share(text).to_string(), text);
        }
        assert_eq!(share("100%"), Share::ALL);
        for text in ["", "5", "%", "-1%", "101%", "NaN%", "0.00001%"] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }

    #[test]
    fn draws_have_their_share_and_are_the_same_for_the_same_seed() {
        let drawn = |text: &str, seed| {
            let mut draws = share(text).drawn(seed);
            (0..100_000).map(|_| draws.draw()).collect::<Vec<bool>>()
        };
        let count = |text: &str| drawn(text, 1).iter().filter(|&&drawn| drawn).count();
        assert_eq!((count("0%"), count("100%")), (0, 100_000));
        // Five standard deviations of a binomial distribution.
        assert!(count("5%").abs_diff(5000) < 5 * 69, "{}", count("5%"));
        assert_eq!(drawn("5%", 1), drawn("5%", 1));
        assert_ne!(drawn("5%", 1), drawn("5%", 2));
    }
}
