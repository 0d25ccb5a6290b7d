//! When time is called suspect.
//!
//! 1. A clock went backwards.
//! 2. Over one step two clocks differ by more than a daemon bends one, and what one set of readings took:
//!    a jump. The RTC, in whole seconds, is left out.
//! 3. A sleep ended early, or lasted far too long.
//! 4. Two processors' time stamp counters are proven to differ by more than a microsecond, and the
//!    kernel's clock source is that counter.
//! 5. Against another machine's clock this one's drifts by more than a daemon would bend it, beyond what
//!    the network leaves uncertain.
//!
//! The limits of 2 and 3 are the experiment's own ([`suspicions`]): models and published figures are
//! judged by the same.

use pagelab_experiment::experiments::clock::{BEND, Suspicion, suspicions};

use super::ClockReadings;
use super::sources::{SOURCES, Source};

/// The greatest skew that does no harm, ns.
const SKEW: f64 = 1000.0;

/// What the rules say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Verdict {
    /// Why time is suspect, a sentence each; empty: it is true as far as can be seen.
    pub(crate) reasons: Vec<String>,
    /// Steps of a clock that rules 1 to 3 call jumps.
    pub(crate) jumps: u64,
    /// The greatest difference of two clocks over one step, ns.
    pub(crate) worst_step: Option<f64>,
}

pub(crate) fn of(found: &ClockReadings) -> Verdict {
    let mut verdict = Verdict { reasons: Vec::new(), jumps: 0, worst_step: None };
    for (source, &times) in SOURCES.iter().zip(&found.backwards) {
        if times > 0 {
            verdict.jumps += times;
            verdict.reasons.push(format!("the clock {} went backwards {times} times", source.name()));
        }
    }
    let asked = found.step as f64;
    for (n, step) in found.steps.iter().enumerate() {
        let clocks = || {
            SOURCES.iter().zip(step).filter(|(s, _)| **s != Source::Rtc).filter_map(|(s, v)| Some((s, (*v)?)))
        };
        let shortest = clocks().min_by(|a, b| a.1.total_cmp(&b.1));
        let longest = clocks().max_by(|a, b| a.1.total_cmp(&b.1));
        let (Some(shortest), Some(longest)) = (shortest, longest) else { continue };
        let apart = longest.1 - shortest.1;
        verdict.worst_step = Some(verdict.worst_step.unwrap_or(0.0).max(apart));
        let suspect = suspicions(shortest.1, longest.1, asked, found.width);
        if suspect.contains(&Suspicion::Apart) {
            verdict.jumps += 1;
            verdict.reasons.push(format!(
                "in step {} the clock {} passed {:.3} ms and the clock {} {:.3} ms",
                n + 1,
                shortest.0.name(),
                shortest.1 / 1e6,
                longest.0.name(),
                longest.1 / 1e6,
            ));
        }
        if suspect.iter().any(|s| matches!(s, Suspicion::Early | Suspicion::Late)) {
            verdict.jumps += 1;
            verdict.reasons.push(format!(
                "a sleep of {:.0} ms took {:.3} ms by the clock {}",
                asked / 1e6,
                longest.1 / 1e6,
                longest.0.name(),
            ));
        }
    }
    let by_counter = crate::harness::clock::kernel_source().as_deref() == Some("tsc");
    for pair in found.pairs.iter().filter(|_| by_counter) {
        if let Some(skew) = pair.proven().filter(|&skew| skew > SKEW) {
            verdict.reasons.push(format!(
                "the time stamp counters of processors {} and {} are at least {:.1} µs apart; boot with clocksource=hpet or tsc=unstable",
                pair.cpus.0,
                pair.cpus.1,
                skew / 1000.0,
            ));
        }
    }
    if let Some((drift, error)) = found.reference.filter(|(drift, error)| drift.abs() > BEND + error) {
        verdict.reasons.push(format!(
            "against the other machine's clock this one's drifts by {:.0} ppm (± {:.0})",
            drift * 1e6,
            error * 1e6,
        ));
    }
    verdict
}

/// What could not be looked at, a sentence each.
pub(crate) fn absent(found: &ClockReadings) -> Vec<String> {
    let mut all = Vec::new();
    let has = |source: Source| found.steps.iter().any(|s| s[source as usize].is_some());
    if !has(Source::Tsc) {
        all.push("this processor has no time stamp counter that could be compared".into());
    }
    if !has(Source::Rtc) {
        all.push("this machine shows no RTC (/sys/class/rtc/rtc0)".into());
    }
    if found.pairs.iter().any(|p| p.ahead.is_none()) {
        all.push("some processors were too busy to compare their time stamp counters; repeat when the machine is idle".into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::skew::Pair;
    use super::*;

    fn steps(all: &[f64]) -> ClockReadings {
        let steps = all.iter().map(|&ns| vec![Some(ns), Some(ns), Some(ns), Some(ns), Some(ns), None]);
        ClockReadings {
            step: 1_000_000_000,
            steps: steps.collect(),
            backwards: vec![0; 6],
            ..ClockReadings::default()
        }
    }

    /// McDougall's table: a SPARC whose time is true, a guest whose time is not, and one whose two
    /// clocks part in one step.
    #[test]
    fn mcdougalls_machines() {
        assert!(of(&steps(&[1_009_354e3, 1_009_801e3, 1_010_484e3, 1_009_315e3])).reasons.is_empty());
        let guest = of(&steps(&[1_000_665e3, 1_007_738e3, 177_169_798e3]));
        assert_eq!((guest.reasons.len(), guest.jumps), (1, 1), "{guest:?}");
        let mut parted = steps(&[1_004_468e3]);
        parted.steps[0][Source::Raw as usize] = Some(989_472e3);
        assert!(of(&parted).reasons.len() >= 2, "{:?}", of(&parted));
    }

    #[test]
    fn every_other_rule() {
        let good = steps(&[1e9]);
        let mut found = ClockReadings { backwards: vec![0, 3, 0, 0, 0, 0], ..good.clone() };
        assert!(of(&found).reasons[0].contains("monotonic went backwards 3"));
        found = ClockReadings { reference: Some((600e-6, 50e-6)), ..good.clone() };
        assert_eq!(of(&found).reasons.len(), 1);
        found = ClockReadings { reference: Some((600e-6, 200e-6)), ..good.clone() };
        assert!(of(&found).reasons.is_empty());
        // A daemon's bend is no jump, and a busy machine's late waking none.
        let mut bent = steps(&[1e9]);
        bent.steps[0][0] = Some(1e9 * (1.0 + 499e-6));
        assert!(of(&bent).reasons.is_empty());
        assert!(of(&steps(&[1.4e9])).reasons.is_empty());
        assert_eq!(of(&steps(&[0.9e9])).reasons.len(), 1);
        found = ClockReadings { pairs: vec![Pair { cpus: (0, 1), ahead: Some((-50.0, 900.0)) }], ..good };
        assert!(of(&found).reasons.is_empty());
    }
}
