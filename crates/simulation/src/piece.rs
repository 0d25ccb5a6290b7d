//! The pieces in which a trace is handed on, and the memory that it may take.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_reference::trace::Reading;

use crate::cost::{Cost, NUMBERING};

/// References in a piece: several policies that share a core each find their tables in its cache
/// for most of it.
pub(crate) const PIECE: usize = 1 << 17;

/// References that follow each other.
#[derive(Debug, Default)]
pub struct Piece {
    /// The references name pages below this.
    pub pages: u32,
    /// The pages in the order of reference.
    pub references: Vec<u32>,
    /// Whether each writes; empty where that is not asked for.
    pub writes: Vec<bool>,
    /// Bytes that each asks for; empty where that is not asked for.
    pub bytes: Vec<u64>,
}

impl Piece {
    /// An empty one with room for a whole one's references.
    pub(crate) fn with_room() -> Self {
        Self { references: Vec::with_capacity(PIECE + PIECE / 4), ..Self::default() }
    }
}

/// What was read.
pub struct Read {
    /// References in it.
    pub references: u64,
    /// Different pages.
    pub pages: u32,
    /// How it was read.
    pub reading: Reading,
}

/// What a trace takes as it becomes longer: how long it is shows only in the end.
pub(crate) struct Room<'a> {
    path: &'a Path,
    cost: Cost,
    /// Pages and references that are allowed.
    allowed: (u32, usize),
}

impl<'a> Room<'a> {
    /// Pages and references between two checks of the memory that is left.
    const STEP: (u32, usize) = (1 << 20, 1 << 22);

    pub(crate) fn new(path: &'a Path, cost: &Cost) -> Self {
        Self { path, cost: cost.and(&NUMBERING), allowed: (0, 0) }
    }

    /// Refuses so many pages and references where they would take too much.
    pub(crate) fn check(&mut self, pages: u32, references: usize) -> Result<()> {
        if pages < self.allowed.0 && references < self.allowed.1 {
            return Ok(());
        }
        self.allowed = (pages.saturating_add(Self::STEP.0), references + Self::STEP.1);
        let allowed = self.cost.allow(self.allowed.0.into(), self.allowed.1 as u64, 0);
        allowed.with_context(|| format!("the trace {} is too long", self.path.display()))
    }
}

/// Why a trace is given up.
pub fn too_many_pages(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("the trace {} has 2^32 - 2 different pages or more", path.display())
}
