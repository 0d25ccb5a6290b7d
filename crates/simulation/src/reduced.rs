//! A trace that is made shorter and faults alike: see [`pagelab_model::reduce`].

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::Result;
use pagelab_model::reduce::{Method, Sad, reduce};
use pagelab_reference::Stream;
use pagelab_reference::trace::Densifier;

use crate::cost::{self, Cost, NUMBERING};
use crate::feed::{self, Consumer};
use crate::piece::{Piece, too_many_pages};
use crate::replay::Sizes;
use crate::{Source, Stopped, Unanswerable, Watch};

/// What OLR takes beside the stream, at most: marks, what is dropped, and a copy; lists of the pages.
const OLR: Cost = Cost { page: 24, reference: 16 };
/// What SAD takes, beside what is kept.
const SAD: Cost = Cost { page: 28, reference: 0 };
/// Bytes by which what is kept grows between two checks of the memory that is left.
const STEP: u64 = 64 << 20;

/// A shorter stream.
#[derive(Debug)]
pub struct Reduced {
    /// The memory from which on it faults alike, in pages.
    pub frames: u32,
    /// References of the whole.
    pub references: u64,
    /// What is kept of them.
    pub kept: Vec<u32>,
}

/// SAD, as long as there is memory for what it keeps.
struct Keeping {
    sad: Sad,
    allowed: u64,
    refused: Option<anyhow::Error>,
}

impl Keeping {
    fn new(frames: u32) -> Self {
        Self { sad: Sad::new(frames), allowed: 0, refused: None }
    }
}

impl Consumer for Keeping {
    fn take(&mut self, piece: &Piece, _: &dyn Watch) -> ControlFlow<()> {
        self.sad.take(piece.pages, &piece.references);
        if self.sad.bytes() > self.allowed {
            self.allowed = self.sad.bytes() + STEP;
            let remedy = "use a larger --memory, which keeps fewer references, or a shorter trace";
            self.refused = cost::allow(self.allowed, remedy).err();
        }
        if self.refused.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Reduces a stream for memories of so many pages and more. With SAD a trace is never in memory;
/// where the size is a share of its pages it is read twice.
///
/// # Errors
/// When the stream cannot be had or is too long, it takes too much memory, or `watch` stops it.
pub fn reduced(source: &Source, sizes: &Sizes, method: Method, watch: &dyn Watch) -> Result<Reduced> {
    let Source::Trace { path, options } = source else { return from_memory(source, sizes, method, watch) };
    let given = matches!(sizes, Sizes::Given(_));
    if method == Method::Olr || (!given && *path == Path::new("-")) {
        return from_memory(source, sizes, method, watch);
    }
    let pages = if given { 1 } else { pages(source, path, watch)? };
    let frames = sizes.of(pages)[0];
    let mut keeping = Keeping::new(frames);
    watch.begin("reducing");
    let read = feed::feed(path, options, None, &SAD, vec![&mut keeping], watch);
    if let Some(refused) = keeping.refused {
        return Err(refused);
    }
    read?;
    Ok(Reduced { frames, references: keeping.sad.references(), kept: keeping.sad.finish() })
}

/// The different pages of a trace.
fn pages(source: &Source, path: &Path, watch: &dyn Watch) -> Result<u32> {
    watch.begin("counting pages");
    let (mut densifier, mut list, mut allowed) = (Densifier::default(), Vec::new(), 0);
    source.pass(watch, |batch| {
        list.clear();
        densifier.number_all(batch, &mut list).map_err(|_| too_many_pages(path))?;
        if densifier.pages() >= allowed {
            allowed = densifier.pages().saturating_add(1 << 20);
            NUMBERING.allow(allowed.into(), 0, 0)?;
        }
        Ok(())
    })?;
    Ok(densifier.pages())
}

/// Reduces a stream that is in memory.
fn from_memory(source: &Source, sizes: &Sizes, method: Method, watch: &dyn Watch) -> Result<Reduced> {
    let loaded = source.load(&OLR, watch)?;
    let references = loaded.references.len();
    if method == Method::Olr && references >= u32::MAX as usize {
        let problem = "olr cannot reduce a stream of 2^32 references or more\nhint: use sad";
        return Err(Unanswerable(problem.into()).into());
    }
    let frames = sizes.of(loaded.pages)[0];
    let stream = Stream::new(loaded.pages, loaded.references.into_owned());
    watch.begin("reducing");
    let short = reduce(&stream, frames, method, &mut |fraction| watch.at(fraction));
    if watch.stopped() {
        return Err(Stopped.into());
    }
    Ok(Reduced { frames, references: references as u64, kept: short.into_references() })
}
