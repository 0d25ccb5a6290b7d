//! Where a stream comes from: a recorded trace, a pattern, or memory.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use pagelab_model::policy::opt::NextUse;
use pagelab_reference::trace::{Options, Reading};
use pagelab_reference::{Pattern, PatternError};

use crate::cost::{Cost, STREAM};
use crate::{Stopped, Unanswerable, Watch, feed};

/// References that are passed on at a time.
const BLOCK: usize = 1 << 13;

/// A stream that can be had.
#[derive(Clone, Debug)]
pub enum Source<'a> {
    /// A recorded trace.
    Trace {
        /// The file; `-` for standard input.
        path: &'a Path,
        /// How it is read.
        options: Options,
    },
    /// A generated stream.
    Pattern {
        /// What is generated.
        pattern: Pattern,
        /// Pages of the region.
        pages: u64,
        /// References.
        references: u64,
        /// Another gives another stream of the kind.
        seed: u64,
    },
    /// References that are in memory.
    Memory {
        /// They name pages below this.
        pages: u32,
        /// The pages in the order of reference.
        references: &'a [u32],
        /// When each is referenced next, where that is known.
        future: Option<Arc<NextUse>>,
    },
}

/// What a generator tells of its progress, for `watch`.
fn told(watch: &dyn Watch) -> impl FnMut(f64) -> Result<(), Stopped> {
    |part| {
        watch.at(part);
        watch.go_on()
    }
}

/// Why there is no stream: one that was ended as everything else that is.
fn unmade(error: PatternError) -> anyhow::Error {
    match error {
        PatternError::Stopped(stopped) => stopped.into(),
        other => other.into(),
    }
}

/// A stream in memory.
#[derive(Clone, Debug)]
pub struct Loaded<'a> {
    /// References name pages below this.
    pub pages: u32,
    /// The pages in the order of reference.
    pub references: Cow<'a, [u32]>,
    /// How a recorded one was read.
    pub reading: Option<Reading>,
}

impl<'a> Source<'a> {
    /// Reads or generates the stream, for a computation that takes `work` beside it.
    ///
    /// # Errors
    /// When it cannot be had, the computation would take too much of this machine's memory, or `watch` stops it.
    pub fn load(&self, work: &Cost, watch: &dyn Watch) -> Result<Loaded<'a>> {
        match *self {
            Self::Trace { path, ref options } => {
                watch.begin("reading the trace");
                let trace = feed::load(path, options, &work.and(&STREAM), watch)?;
                let pages = trace.stream.pages();
                let references = trace.stream.into_references().into();
                Ok(Loaded { pages, references, reading: Some(trace.reading) })
            }
            Self::Pattern { ref pattern, pages, references, seed } => {
                watch.begin("making the stream");
                work.and(&STREAM).allow(pages, references, pattern.memory(pages, references))?;
                let stream =
                    pattern.stream_with(pages, references, seed, &mut told(watch)).map_err(unmade)?;
                Ok(Loaded {
                    pages: stream.pages(),
                    references: stream.into_references().into(),
                    reading: None,
                })
            }
            Self::Memory { pages, references, .. } => {
                work.allow(pages.into(), references.len() as u64, 0)?;
                Ok(Loaded { pages, references: references.into(), reading: None })
            }
        }
    }

    /// Gives every page to `take`, some thousand at a time, without keeping the stream; how a trace
    /// was read.
    ///
    /// # Errors
    /// When it cannot be had, those of `take`, and when `watch` stops it.
    pub fn pass(
        &self,
        watch: &dyn Watch,
        mut take: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<Option<Reading>> {
        let mut names = Vec::with_capacity(BLOCK);
        let mut numbered = |pages: &[u32], part: f64| {
            names.clear();
            names.extend(pages.iter().map(|&page| u64::from(page)));
            watch.at(part);
            watch.go_on()?;
            take(&names)
        };
        match *self {
            Self::Trace { path, ref options } => feed::decoded_here(path, options, watch, take).map(Some),
            Self::Pattern { ref pattern, pages, references, seed } => {
                Cost::default().allow(0, 0, pattern.memory(pages, references))?;
                let mut blocks = pattern.blocks(pages, references, seed, &mut told(watch)).map_err(unmade)?;
                while blocks.left() > 0 {
                    let part = 1.0 - blocks.left() as f64 / references as f64;
                    numbered(blocks.next(BLOCK)?, part)?;
                }
                Ok(None)
            }
            Self::Memory { references, .. } => {
                for (n, block) in references.chunks(BLOCK).enumerate() {
                    numbered(block, (n * BLOCK) as f64 / references.len() as f64)?;
                }
                Ok(None)
            }
        }
    }

    /// The trace and how it is read.
    ///
    /// # Errors
    /// Where it is none, for which `option` means nothing.
    pub fn recorded(&self, option: &str) -> Result<(&'a Path, &Options)> {
        match self {
            Self::Trace { path, options } => Ok((path, options)),
            Self::Pattern { pattern, .. } => {
                let problem = format!(
                    "{option} needs a recorded trace: the pattern {pattern} has page numbers but no loads and stores"
                );
                Err(Unanswerable(problem).into())
            }
            Self::Memory { .. } => Err(Unanswerable(format!(
                "{option} needs a recorded trace: an array has page numbers but no loads and stores"
            ))
            .into()),
        }
    }
}
