//! Over which range of each assumed value the verdicts of a study stay what they are, found by
//! performing the model: outwards in steps, then between the last value that changes nothing and
//! the first that does. A model may be chaotic, so values inside the range are tried, too, and the
//! share of those that hold is reported.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pagelab_simulation::spread::each;

use crate::claim::{Claim, Role};
use crate::study::{Assumption, End, Range, Turn};
use crate::{Change, Options, StudyError, StudyKind};

/// How far a range is looked for: to this part of the value, and to so many times it.
pub const SEARCHED: f64 = 4.0;
/// A step outwards. A verdict that turns and turns back within one is not seen.
const STEP: f64 = std::f64::consts::SQRT_2;
/// How near the two sides of an end are.
const NEAR: f64 = 1.02;

/// Values tried to find both ends of a range, about.
const OUTSIDE: usize = 20;
/// Values tried inside a range, evenly apart as logarithms.
const INSIDE: usize = 16;

/// The ranges of all assumptions of a study, in the order of its file. `at` is told the share that is done.
///
/// # Errors
/// As [`StudyKind::claims`].
pub fn ranges(
    kind: &StudyKind,
    options: &Options,
    at: &(dyn Fn(f64) + Sync),
) -> Result<Vec<Range>, StudyError> {
    let assumptions = kind.book()?.assumptions;
    let all = (assumptions.len() * (OUTSIDE + INSIDE)) as f64;
    let tried = AtomicUsize::new(0);
    let mut ranges = Vec::new();
    for (number, assumption) in assumptions.into_iter().enumerate() {
        tried.store(number * (OUTSIDE + INSIDE), Relaxed);
        let claims = |change| {
            at((tried.fetch_add(1, Relaxed) as f64 / all).min(1.0));
            kind.claims(&Options { change, ..options.clone() })
        };
        ranges.push(range(claims, assumption)?);
    }
    Ok(ranges)
}

fn range(
    claims: impl Fn(Change) -> Result<Vec<Claim>, StudyError> + Sync,
    assumption: Assumption,
) -> Result<Range, StudyError> {
    let claims = |value: f64| claims(Change::With(assumption.id.clone(), value));
    let usual = claims(assumption.value)?;
    let turn = |value: f64| Ok(turned(&usual, &claims(value)?, value));
    let mut ends = each(2, |n| end(assumption.value, [STEP, 1.0 / STEP][n], turn)).into_iter();
    let (to, from) = (ends.next().expect("two ends")?, ends.next().expect("two ends")?);
    let samples = inside(from.at, to.at);
    let turns: Result<Vec<Option<Turn>>, StudyError> =
        each(samples.len(), |n| turn(samples[n])).into_iter().collect();
    Ok(Range {
        id: assumption.id.clone(),
        what: assumption.what.clone(),
        value: assumption.value,
        unit: assumption.unit.clone(),
        from,
        to,
        tried: samples.len(),
        inside: turns?.into_iter().flatten().collect(),
    })
}

/// Looks from `value` by steps of `step` for a value at which something turns, and narrows where.
fn end<E>(value: f64, step: f64, turn: impl Fn(f64) -> Result<Option<Turn>, E>) -> Result<End, E> {
    let (mut good, mut bad) = (value, None);
    let mut tried = value;
    while bad.is_none() && (tried * step / value).ln().abs() <= SEARCHED.ln() + 1e-9 {
        tried *= step;
        bad = turn(rounded(tried))?;
        if bad.is_none() {
            good = rounded(tried);
        }
    }
    while let Some(found) = &bad
        && (found.at / good).ln().abs() > NEAR.ln()
    {
        let middle = rounded((found.at * good).sqrt());
        if middle == found.at || middle == good {
            break;
        }
        match turn(middle)? {
            Some(turn) => bad = Some(turn),
            None => good = middle,
        }
    }
    Ok(End { at: good, turns: bad })
}

/// Values between the ends, without them.
fn inside(from: f64, to: f64) -> Vec<f64> {
    let step = (to / from).ln() / (INSIDE + 1) as f64;
    let mut values: Vec<f64> = (1..=INSIDE).map(|n| rounded(from * (step * n as f64).exp())).collect();
    values.dedup();
    values.retain(|&value| from < value && value < to);
    values
}

/// Three digits, as it is printed.
fn rounded(value: f64) -> f64 {
    let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// What has another verdict than usual.
fn turned(usual: &[Claim], claims: &[Claim], at: f64) -> Option<Turn> {
    let others =
        |(usual, claim): &(&Claim, &Claim)| claim.role != Role::Identity && usual.verdict != claim.verdict;
    let mut turned = usual.iter().zip(claims).filter(others).map(|(_, claim)| claim);
    let first = turned.next()?;
    Some(Turn { at, claim: first.what.clone(), verdict: first.verdict, others: turned.count() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Verdict;

    #[test]
    fn an_end_is_the_last_value_before_a_verdict_turns() {
        let turn_beyond = |limit: f64| {
            move |value: f64| {
                let turn = Turn { at: value, claim: "c".into(), verdict: Verdict::Not, others: 0 };
                Ok::<_, ()>((value > limit).then_some(turn))
            }
        };
        let found = end(100.0, STEP, turn_beyond(170.0)).unwrap();
        let beyond = found.turns.unwrap().at;
        assert!(found.at <= 170.0 && beyond > 170.0 && beyond / found.at < 1.03, "{} {beyond}", found.at);
        // Nothing turns as far as is looked.
        let open = end(100.0, STEP, turn_beyond(1e9)).unwrap();
        assert_eq!((open.at, open.turns), (400.0, None));
        let below = end(100.0, 1.0 / STEP, turn_beyond(1e9)).unwrap();
        assert_eq!((below.at, below.turns), (25.0, None));
    }

    #[test]
    fn values_inside_a_range_are_tried() {
        let values = inside(7.58, 42.4);
        assert_eq!(values.len(), INSIDE);
        assert!(values.windows(2).all(|w| w[0] < w[1] && w[1] / w[0] < 1.13), "{values:?}");
        assert!(inside(5.0, 5.0).is_empty());
        // As once seen: nothing turns at the ends' steps, and the verdict is another at 30.6 to 33.
        assert!(values.iter().any(|value| (30.0..34.0).contains(value)), "{values:?}");
    }

    #[test]
    fn three_digits_are_kept() {
        assert_eq!((rounded(1234.5), rounded(0.012_345), rounded(54.0)), (1230.0, 0.0123, 54.0));
    }
}
