//! The patterns by name: parsing, printing and generating, whole or a block at a time: most targets never need all
//! of a stream.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::patterns::Generator;
use crate::patterns::phases::{Part, joined};
use crate::progress::{Progress, Stopped, unwatched};
use crate::room::can_be_had;
use crate::stream::Stream;
use crate::{patterns, trace};

/// How pages are chosen. The text form (`smooth-sin`, `zipf:0.9`, `trace:FILE` …) is what the
/// command line takes, what the notebook keeps, and what [`fmt::Display`] prints.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// Each page's number of references follows a sine over the region; pages in order.
    /// See [`patterns::sine::smooth_sin`].
    SmoothSin,
    /// `smooth-sin-0.6`: the sine part first, then the fill as ordered sweeps, as in VM Regress 0.6.
    /// See [`patterns::sine::smooth_sin_tail`].
    SmoothSinTail,
    /// The multiset of `smooth-sin`, shuffled. See [`patterns::sine::smooth_sin_random`].
    SmoothSinRandom,
    /// 0, 1, 2, … and again from 0. See [`patterns::simple::linear`].
    Linear,
    /// Every page equally likely. See [`patterns::simple::uniform`].
    Uniform,
    /// Zipf's law with this exponent. See [`patterns::zipf::zipf`].
    Zipf(f64),
    /// A working set of this share of the region that moves through it once.
    /// See [`patterns::simple::drift`].
    Drift(f64),
    /// Other patterns one after the other. See [`Phase`].
    Phases(Vec<Phase>),
    /// A recorded trace of page numbers. See [`trace`].
    Trace(PathBuf),
}

/// The share of the region that `drift` keeps in use when none is given.
pub const DEFAULT_DRIFT: f64 = 0.25;

/// Why a pattern cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PatternError {
    /// The name is not one of [`Pattern::catalogue`].
    #[error("unknown pattern '{0}'{meant}; must be one of {names}", meant = meant(.0), names = Pattern::names())]
    Unknown(String),
    /// The parameter behind the colon is missing, no number, or out of range.
    #[error("pattern '{pattern}': {problem}")]
    Parameter {
        /// The text as given.
        pattern: String,
        /// What is wrong, and what is wanted.
        problem: String,
    },
    /// The region or the stream is too large or empty.
    #[error("{0}")]
    Extent(String),
    /// There is no memory for so many bytes.
    #[error("no memory for the {0} bytes of the stream\nhint: use fewer references or fewer pages")]
    Memory(u64),
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] trace::TraceError),
    /// Who waits for the stream ended it.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Pattern {
    /// Name and one line for each pattern, for `pagelab patterns` and the manual.
    pub fn catalogue() -> &'static [(&'static str, &'static str)] {
        &[
            (
                "smooth-sin",
                "each page's references follow a sine over the region, pages in order (VM Regress 0.37)",
            ),
            (
                "smooth-sin-0.6",
                "the sine part in page order, then the fill as sweeps from page 0 (VM Regress 0.6)",
            ),
            ("smooth-sin-random", "the same multiset as smooth-sin, shuffled"),
            ("linear", "0, 1, 2, … and again from 0"),
            ("uniform", "every page equally likely"),
            (
                "zipf:S",
                "the r-th most popular page is referenced in proportion to r^-S; popular pages are scattered",
            ),
            (
                "drift[:SHARE]",
                "uniform within a window of SHARE of the region (default 0.25) that moves through it once",
            ),
            (
                "phases:P+P…",
                "patterns one after the other; P is PATTERN[@FROM-TO][xWEIGHT], with percents of the region",
            ),
            (
                "trace:FILE",
                "a recorded trace in any format of 'replay --format', optionally compressed (gzip, zstd, bzip2, xz)",
            ),
        ]
    }

    fn names() -> String {
        Self::catalogue().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Generates the stream of `references` references over `pages` pages.
    ///
    /// For `trace:FILE` the page numbers are taken as they are; `references` cuts the trace (a
    /// shorter one is repeated from its start) and a page number outside the region is an error.
    ///
    /// # Errors
    /// When the region or the stream is empty or beyond 2^32 − 1 pages, or a trace cannot be read.
    pub fn stream(&self, pages: u64, references: u64, seed: u64) -> Result<Stream, PatternError> {
        self.stream_with(pages, references, seed, &mut unwatched)
    }

    /// As [`Pattern::stream`]; `progress` is told now and then how far it is, from 0 to 1, and may
    /// end it.
    ///
    /// # Errors
    /// As [`Pattern::stream`]; [`PatternError::Stopped`].
    pub fn stream_with(
        &self,
        pages: u64,
        references: u64,
        seed: u64,
        progress: Progress,
    ) -> Result<Stream, PatternError> {
        let mut blocks = self.blocks(pages, references, seed, progress)?;
        let mut list: Vec<u32> = Vec::new();
        let memory = |_| PatternError::Memory(references.saturating_mul(4));
        list.try_reserve_exact(blocks.left() as usize).map_err(memory)?;
        while blocks.left() > 0 {
            progress(list.len() as f64 / references as f64)?;
            list.extend_from_slice(blocks.next(BLOCK)?);
        }
        Ok(Stream::new(blocks.pages(), list))
    }

    /// The same stream, made a block at a time as it is taken; `progress` is told how far the beginning is where
    /// that takes long (a shuffle), and may end it.
    ///
    /// # Errors
    /// As [`Pattern::stream_with`].
    pub fn blocks(
        &self,
        pages: u64,
        references: u64,
        seed: u64,
        progress: Progress,
    ) -> Result<Blocks, PatternError> {
        let region = u32::try_from(pages)
            .map_err(|_| PatternError::Extent(format!("{pages} pages: must be at most {}", u32::MAX)))?;
        if region == 0 {
            return Err(PatternError::Extent("pages: must be at least 1".into()));
        }
        if references == 0 {
            return Err(PatternError::Extent("references: must be at least 1".into()));
        }
        if references > u64::from(u32::MAX) {
            return Err(PatternError::Extent(format!(
                "{references} references: must be at most {}",
                u32::MAX
            )));
        }
        // The generators take what they need without asking.
        let bytes = self.memory(pages, references);
        if !can_be_had(bytes) {
            return Err(PatternError::Memory(bytes));
        }
        let generator = self.generator(region, references, seed, progress)?;
        Ok(Blocks { pages: region, left: references, generator, block: Vec::new() })
    }

    /// The generator of a stream of `references` references, at least one, over `region` pages.
    pub(crate) fn generator(
        &self,
        region: u32,
        references: u64,
        seed: u64,
        progress: Progress,
    ) -> Result<Generator, PatternError> {
        Ok(match self {
            Self::SmoothSin => patterns::sine::smooth_sin(region, references),
            Self::SmoothSinTail => patterns::sine::smooth_sin_tail(region, references),
            Self::SmoothSinRandom => patterns::sine::smooth_sin_random(region, references, seed, progress)?,
            Self::Linear => patterns::simple::linear(region),
            Self::Uniform => patterns::simple::uniform(region, seed),
            Self::Zipf(exponent) => patterns::zipf::zipf(region, *exponent, seed, progress)?,
            Self::Drift(share) => patterns::simple::drift(region, references, *share, seed),
            Self::Phases(list) => generator(list, region, references, seed, progress)?,
            Self::Trace(path) => patterns::recorded::recorded(path, region)?,
        })
    }

    /// The most bytes that making the stream takes, beside the block that is made.
    pub fn memory(&self, pages: u64, references: u64) -> u64 {
        const READER: u64 = 4 << 20;
        let (a_page, a_reference, more) = match self {
            Self::SmoothSin | Self::SmoothSinTail => (8 + 4 + 4, 0, 0),
            Self::SmoothSinRandom => (8 + 4 + 4, 4, 0),
            Self::Zipf(_) => (4 + 8 + 4, 0, 0),
            Self::Linear | Self::Uniform | Self::Drift(_) => (0, 0, 0),
            Self::Phases(list) => return memory(list, pages, references),
            // Of a trace that cannot be read twice the references are kept, in a list that doubles.
            Self::Trace(path) => {
                let again = std::fs::metadata(path).is_ok_and(|found| found.is_file());
                (TABLE, if again { 0 } else { 8 }, READER)
            }
        };
        pages
            .saturating_mul(a_page)
            .saturating_add(references.saturating_mul(a_reference))
            .saturating_add(more)
    }
}

/// A stream that is made as it is taken: no more of it is in memory than was asked for last.
pub struct Blocks {
    pages: u32,
    left: u64,
    generator: Generator,
    block: Vec<u32>,
}

impl Blocks {
    /// The size of the region in pages; not every page need be referenced.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// References that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Makes room for blocks of `count` references.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub fn reserve(&mut self, count: usize) -> Result<(), PatternError> {
        self.block.clear();
        self.block.try_reserve_exact(count).map_err(|_| PatternError::Memory(4 * count as u64))
    }

    /// The next `count` references, fewer at the end of the stream and none after it.
    ///
    /// # Errors
    /// When a trace cannot be read, or there is no memory for so many.
    pub fn next(&mut self, count: usize) -> Result<&[u32], PatternError> {
        let count = usize::try_from(self.left).map_or(count, |left| left.min(count));
        if self.block.capacity() < count {
            self.reserve(count)?;
        }
        self.block.clear();
        (self.generator)(count, &mut self.block)?;
        self.left -= count as u64;
        debug_assert!(self.block.len() == count && self.block.iter().all(|&page| page < self.pages));
        Ok(&self.block)
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("pages", &self.pages).field("left", &self.left).finish_non_exhaustive()
    }
}

/// References made at a time where all are wanted.
const BLOCK: usize = 1 << 20;

/// The most bytes a page that numbering the pages of a trace takes, while the table grows.
const TABLE: u64 = 72;

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SmoothSin => f.write_str("smooth-sin"),
            Self::SmoothSinTail => f.write_str("smooth-sin-0.6"),
            Self::SmoothSinRandom => f.write_str("smooth-sin-random"),
            Self::Linear => f.write_str("linear"),
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Self::Drift(share) if *share == DEFAULT_DRIFT => f.write_str("drift"),
            Self::Drift(share) => write!(f, "drift:{share}"),
            Self::Phases(list) => {
                f.write_str("phases:")?;
                list.iter().enumerate().try_for_each(|(n, phase)| {
                    f.write_str(if n == 0 { "" } else { "+" })?;
                    phase.fmt(f)
                })
            }
            Self::Trace(path) => write!(f, "trace:{}", path.display()),
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text, None),
        };
        let wrong =
            |problem: &str| PatternError::Parameter { pattern: text.to_owned(), problem: problem.to_owned() };
        let plain = |pattern: Self| match parameter {
            None => Ok(pattern),
            Some(_) => Err(wrong("it has no parameter")),
        };
        match name {
            "smooth-sin" => plain(Self::SmoothSin),
            "smooth-sin-0.6" => plain(Self::SmoothSinTail),
            "smooth-sin-random" => plain(Self::SmoothSinRandom),
            "linear" => plain(Self::Linear),
            "uniform" => plain(Self::Uniform),
            "zipf" => {
                let exponent: f64 = parameter
                    .and_then(|p| p.parse().ok())
                    .filter(|s: &f64| s.is_finite() && (0.0..=10.0).contains(s))
                    .ok_or_else(|| wrong("write zipf:S with an exponent S from 0 to 10, such as zipf:0.9"))?;
                Ok(Self::Zipf(exponent))
            }
            "drift" => {
                let share: f64 = match parameter {
                    None => DEFAULT_DRIFT,
                    Some(p) => p.parse().ok().filter(|s: &f64| *s > 0.0 && *s <= 1.0).ok_or_else(|| {
                        wrong("write drift:SHARE with a share of the region above 0 and up to 1")
                    })?,
                };
                Ok(Self::Drift(share))
            }
            "phases" => {
                let list = parse(parameter.unwrap_or_default());
                list.map(Self::Phases).map_err(|problem| wrong(&problem))
            }
            "trace" => match parameter {
                Some(path) if !path.is_empty() => Ok(Self::Trace(PathBuf::from(path))),
                _ => Err(wrong("write trace:FILE")),
            },
            _ => Err(PatternError::Unknown(text.to_owned())),
        }
    }
}

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
fn generator(
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
            let generator = phase.pattern.generator(pages, count, seed, progress)?;
            parts.push(Part { generator, first, count });
        }
    }
    Ok(joined(parts))
}

/// The most bytes that the generators of all phases take.
fn memory(phases: &[Phase], pages: u64, references: u64) -> u64 {
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
fn parse(text: &str) -> Result<Vec<Phase>, String> {
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

/// The pattern that `text` was probably meant to be, as a question.
fn meant(text: &str) -> String {
    let names = Pattern::catalogue().iter().map(|(name, _)| name.split([':', '[']).next().unwrap_or(name));
    closest(text, names).map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}

/// The word of `words` that `text` was probably meant to be.
pub fn closest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_ascii_lowercase();
    let of = |word: &str| strsim::damerau_levenshtein(&text, &word.to_ascii_lowercase());
    let near = words.into_iter().map(|word| (of(word), word));
    // One or two letters, and not most of the word.
    let near = near.filter(|(letters, _)| *letters <= 2 && 2 * letters < text.chars().count());
    near.min_by_key(|(letters, _)| *letters).map(|(_, word)| word)
}

#[cfg(test)]
mod tests;
