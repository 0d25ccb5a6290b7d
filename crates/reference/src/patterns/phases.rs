//! Several patterns one after the other, each on a part of the region.

use std::fmt;
use std::str::FromStr;

use super::Generator;
use crate::pattern::{Pattern, PatternError};
use crate::progress::Progress;

/// Maximum number of phases.
pub const MAX_PHASES: usize = 20;
/// Maximum weight of a phase.
pub const MAX_WEIGHT: u32 = 1000;
/// What a phase looks like.
const FORM: &str = "write PATTERN, PATTERN@FROM-TO or PATTERN@FROM-TOxWEIGHT for each phase, with percents of the \
                    region, such as phases:linear+zipf:0.9@0-50x3";

/// A phase: `PATTERN[@FROM-TO][xWEIGHT]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Any pattern but a trace or phases.
    pub pattern: Pattern,
    /// The part of the region, percent: from, and to (exclusive).
    pub part: (u8, u8),
    /// The phase has this share of the sum of all weights of the references.
    pub weight: u32,
}

impl Phase {
    /// The first page of the phase in a region of `pages` pages, and their number, at least 1.
    fn pages(&self, pages: u32) -> (u32, u32) {
        let at = |percent: u8| (u64::from(pages) * u64::from(percent) / 100) as u32;
        let first = at(self.part.0).min(pages - 1);
        (first, at(self.part.1).saturating_sub(first).max(1))
    }
}

/// The first reference of each phase, and the end of the last.
fn bounds(phases: &[Phase], references: u64) -> Vec<u64> {
    let total: u128 = phases.iter().map(|phase| u128::from(phase.weight)).sum();
    let mut sum = 0;
    let ends = phases.iter().map(|phase| {
        sum += u128::from(phase.weight);
        (u128::from(references) * sum / total) as u64
    });
    std::iter::once(0).chain(ends).collect()
}

/// The references of all phases. Phase `i` has the references from `⌊n · s(i) / s⌋` to
/// `⌊n · s(i + 1) / s⌋`, where `s(i)` is the sum of the weights before it. Its pages are those from
/// `⌊pages · from / 100⌋` to `⌊pages · to / 100⌋`, at least one, and its seed is `seed + i`.
///
/// # Errors
/// As [`Pattern::blocks`].
pub fn phases(
    phases: &[Phase],
    pages: u32,
    references: u64,
    seed: u64,
    progress: Progress,
) -> Result<Generator, PatternError> {
    let bounds = bounds(phases, references);
    let mut parts = Vec::new();
    for (n, (phase, bound)) in phases.iter().zip(bounds.windows(2)).enumerate() {
        let count = bound[1] - bound[0];
        if count > 0 {
            let (first, pages) = phase.pages(pages);
            let seed = seed.wrapping_add(n as u64);
            parts.push((phase.pattern.generator(pages, count, seed, progress)?, first, count));
        }
    }
    let mut at = 0;
    Ok(Box::new(move |mut count, list: &mut Vec<u32>| {
        while count > 0 {
            let Some((generator, first, left)) = parts.get_mut(at) else { break };
            let now = usize::try_from(*left).map_or(count, |left| left.min(count));
            let begin = list.len();
            generator(now, list)?;
            list[begin..].iter_mut().for_each(|page| *page += *first);
            *left -= now as u64;
            at += usize::from(*left == 0);
            count -= now;
        }
        Ok(())
    }))
}

/// The most bytes that the generators of all phases take.
pub fn memory(phases: &[Phase], pages: u64, references: u64) -> u64 {
    let bounds = bounds(phases, references);
    let of = |(phase, bound): (&Phase, &[u64])| {
        let part = u64::from(phase.part.1 - phase.part.0);
        phase.pattern.memory((pages.saturating_mul(part) / 100).max(1), bound[1] - bound[0])
    };
    phases.iter().zip(bounds.windows(2)).map(of).fold(0, u64::saturating_add)
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pattern.fmt(f)?;
        if self.part != (0, 100) {
            write!(f, "@{}-{}", self.part.0, self.part.1)?;
        }
        if self.weight == 1 { Ok(()) } else { write!(f, "x{}", self.weight) }
    }
}

/// The phases of `text`, separated by `+`.
///
/// # Errors
/// A sentence.
pub fn parse(text: &str) -> Result<Vec<Phase>, String> {
    let phases: Vec<Phase> = text.split('+').map(phase).collect::<Result<_, _>>()?;
    if phases.len() > MAX_PHASES {
        return Err(format!("it has {} phases, and at most {MAX_PHASES} are possible", phases.len()));
    }
    Ok(phases)
}

fn phase(text: &str) -> Result<Phase, String> {
    let wrong = || format!("'{text}' is no phase; {FORM}");
    let (rest, weight) = match text.rsplit_once('x') {
        Some((rest, weight)) => {
            let weight = weight.parse().ok().filter(|weight| (1..=MAX_WEIGHT).contains(weight));
            (rest, weight.ok_or_else(wrong)?)
        }
        None => (text, 1),
    };
    let (name, part) = match rest.split_once('@') {
        Some((name, part)) => {
            let part =
                part.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
            (name, part.filter(|(from, to)| from < to && *to <= 100).ok_or_else(wrong)?)
        }
        None => (rest, (0, 100)),
    };
    match Pattern::from_str(name).map_err(|error| error.to_string())? {
        Pattern::Trace(_) | Pattern::Phases(_) => Err(format!("'{name}' cannot be a phase")),
        pattern => Ok(Phase { pattern, part, weight }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn made(text: &str, pages: u64, references: u64) -> Vec<u32> {
        let pattern: Pattern = text.parse().unwrap();
        pattern.stream(pages, references, 1).unwrap().references().to_vec()
    }

    #[test]
    fn phases_follow_each_other_on_their_parts() {
        let list = made("phases:linear@0-20+linear@80-100x2", 10, 9);
        assert_eq!(list, [0, 1, 0, 8, 9, 8, 9, 8, 9]);
        // A part smaller than a page has one page.
        assert_eq!(made("phases:linear@99-100+linear", 3, 4), [2, 2, 0, 1]);
    }

    #[test]
    fn a_phase_is_the_pattern_on_its_part() {
        let list = made("phases:zipf:0.9x3+uniform@50-100", 1000, 4000);
        assert_eq!(list[..3000], made("zipf:0.9", 1000, 3000));
        let uniform: Pattern = "uniform".parse().unwrap();
        let second = uniform.stream(500, 1000, 2).unwrap();
        assert!(list[3000..].iter().zip(second.references()).all(|(page, own)| page - 500 == *own));
    }

    #[test]
    fn bad_phases_say_what_is_wrong() {
        for (text, wanted) in [
            ("phases:", "unknown pattern"),
            ("phases:linear+", "unknown pattern"),
            ("phases:linear@50-20", "PATTERN@FROM-TO"),
            ("phases:linear@0-101", "PATTERN@FROM-TO"),
            ("phases:linearx0", "PATTERN@FROM-TO"),
            ("phases:trace:a", "cannot be a phase"),
            ("phases:phases:linear", "cannot be a phase"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        let many = format!("phases:{}", ["linear"; MAX_PHASES + 1].join("+"));
        assert!(many.parse::<Pattern>().unwrap_err().to_string().contains("at most 20"));
    }

    proptest! {
        #[test]
        fn bounds_cover_all_references(weights in prop::collection::vec(1..=MAX_WEIGHT, 1..=MAX_PHASES), n: u32) {
            let phases: Vec<Phase> = weights
                .iter()
                .map(|&weight| Phase { pattern: Pattern::Linear, part: (0, 100), weight })
                .collect();
            let bounds = bounds(&phases, n.into());
            prop_assert!(bounds.is_sorted() && bounds[0] == 0);
            prop_assert_eq!(bounds[phases.len()], u64::from(n));
        }
    }
}
