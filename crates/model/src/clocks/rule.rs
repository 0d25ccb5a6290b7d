//! When a step of two clocks is called suspect: the rules of the live `clock` experiment that need nothing
//! but the readings.

use super::guest::Step;

/// Why a step is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// A clock went backwards.
    Backwards,
    /// The two clocks differ by more than a time daemon may bend one.
    Apart,
    /// A sleep ended early.
    Early,
    /// A sleep lasted far too long.
    Late,
}

impl Suspicion {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Backwards => "backwards",
            Self::Apart => "apart",
            Self::Early => "early",
            Self::Late => "late",
        }
    }
}

/// The greatest bend of a clock by a daemon, as a share (adjtimex(2)).
const BEND: f64 = 500e-6;
/// What readings may differ by for reasons of their own, in seconds.
const SLACK: f64 = 100e-6;
/// How late a sleep may end: this many steps, and so many seconds more.
const LATE: (f64, f64) = (1.5, 0.5);

/// What is suspect in a step whose sleep was of `asked` seconds; `slack` more seconds are allowed for the
/// readings between the two clocks.
pub fn suspicions(step: &Step, asked: f64, slack: f64) -> Vec<Suspicion> {
    let (shortest, longest) = (step.wall.min(step.counter), step.wall.max(step.counter));
    [
        (shortest < 0.0, Suspicion::Backwards),
        (longest - shortest > BEND * shortest.abs() + SLACK + slack, Suspicion::Apart),
        (shortest < asked * (1.0 - BEND) - SLACK, Suspicion::Early),
        (longest > asked * LATE.0 + LATE.1, Suspicion::Late),
    ]
    .into_iter()
    .filter_map(|(holds, suspicion)| holds.then_some(suspicion))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_has_its_case() {
        let of = |wall, counter| suspicions(&Step { wall, counter }, 1.0, 0.0);
        assert!(of(1.0, 1.0004).is_empty() && of(1.9, 1.9).is_empty());
        assert_eq!(of(1.0, 1.001), [Suspicion::Apart]);
        assert_eq!(of(0.9, 0.9), [Suspicion::Early]);
        assert_eq!(of(177.0, 177.0), [Suspicion::Late]);
        assert_eq!(of(-1.0, 1.0), [Suspicion::Backwards, Suspicion::Apart, Suspicion::Early]);
    }
}
