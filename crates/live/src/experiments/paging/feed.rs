//! The stream in parts: the references of some windows at a time, generated between two windows.
//!
//! A stream of any length takes the memory of one part. The first is there, and locked, before the
//! run begins; the others are written into the same memory.

use pagelab_experiment::experiments::{Draws, Paging};
use pagelab_experiment::{Failure, Result};
use pagelab_reference::progress::unwatched;
use pagelab_reference::{Blocks, PatternError};

use super::plan::Plan;
use crate::harness::touch::WRITE;

/// References in a part, where a window has no more.
pub const BLOCK: usize = 1 << 20;

/// The stream of a run.
pub struct Feed {
    blocks: Blocks,
    marks: Marks,
    part: Vec<u32>,
    /// The references before the part.
    before: usize,
}

impl Feed {
    /// The stream of `paging`, its first part made.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(paging: &Paging, plan: &Plan) -> Result<Self> {
        let mut blocks = blocks(paging)?;
        let mut part = Vec::new();
        part.try_reserve_exact(longest(plan)).map_err(|_| unmade(&PatternError::Memory(bytes(plan))))?;
        blocks.reserve(BLOCK.min(plan.references())).map_err(|e| unmade(&e))?;
        let mut new = Self { blocks, marks: Marks::of(paging), part, before: 0 };
        new.make(plan, 1)?;
        Ok(new)
    }

    /// The size of the region in pages.
    pub fn pages(&self) -> u32 {
        self.blocks.pages()
    }

    /// The references of a window; those before it are asked for no more.
    ///
    /// # Errors
    /// When they cannot be made (a trace that cannot be read on).
    pub fn window(&mut self, plan: &Plan, window: usize) -> Result<&[u32]> {
        if plan.end(window) > self.before + self.part.len() {
            self.make(plan, window)?;
        }
        Ok(&self.part[plan.start(window) - self.before..plan.end(window) - self.before])
    }

    /// Makes the part that begins with this window.
    fn make(&mut self, plan: &Plan, window: usize) -> Result<()> {
        let last = last(plan, window);
        self.before = plan.start(window);
        self.part.clear();
        let mut left = plan.end(last) - self.before;
        while left > 0 {
            let block = self.blocks.next(left.min(BLOCK)).map_err(|e| unmade(&e))?;
            self.part.extend_from_slice(block);
            left -= block.len();
        }
        self.marks.mark(&mut self.part);
        Ok(())
    }
}

/// Marks the references that write, where only some do.
#[derive(Debug)]
pub struct Marks(Option<Draws>);

impl Marks {
    /// Those of `paging`.
    pub fn of(paging: &Paging) -> Self {
        Self(paging.write_share().is_mixed().then(|| paging.drawn_writes()))
    }

    /// Marks the next references.
    pub fn mark(&mut self, part: &mut [u32]) {
        let Some(writes) = &mut self.0 else { return };
        for reference in part {
            if writes.draw() {
                *reference |= WRITE;
            }
        }
    }
}

/// The stream in blocks, with the marks of what writes: for what is not timed.
pub struct Marked {
    blocks: Blocks,
    marks: Marks,
    part: Vec<u32>,
}

impl Marked {
    /// The stream of `paging`, with room for a block.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(paging: &Paging) -> Result<Self> {
        let mut blocks = blocks(paging)?;
        blocks.reserve(BLOCK).map_err(|e| unmade(&e))?;
        let mut part = Vec::new();
        part.try_reserve_exact(BLOCK).map_err(|_| unmade(&PatternError::Memory(4 * BLOCK as u64)))?;
        Ok(Self { blocks, marks: Marks::of(paging), part })
    }

    /// The size of the region in pages.
    pub fn pages(&self) -> usize {
        self.blocks.pages() as usize
    }

    /// References that are still to come.
    pub fn left(&self) -> u64 {
        self.blocks.left()
    }

    /// The next block; empty at the end.
    ///
    /// # Errors
    /// When it cannot be made (a trace that cannot be read on).
    pub fn next(&mut self) -> Result<&[u32]> {
        self.part.clear();
        self.part.extend_from_slice(self.blocks.next(BLOCK).map_err(|e| unmade(&e))?);
        self.marks.mark(&mut self.part);
        Ok(&self.part)
    }
}

/// The last window of the part that begins with `window`.
fn last(plan: &Plan, window: usize) -> usize {
    let fits = |last: &usize| plan.end(*last) - plan.start(window) <= BLOCK;
    (window..=plan.windows()).take_while(fits).last().unwrap_or(window)
}

/// References in the longest part.
fn longest(plan: &Plan) -> usize {
    // Windows differ by one reference at most.
    BLOCK.min(plan.references()).max(plan.end(1) + 1)
}

/// Bytes of the parts of a stream, beside what makes it.
pub fn bytes(plan: &Plan) -> u64 {
    4 * (longest(plan) + BLOCK.min(plan.references())) as u64
}

/// The stream of `paging`.
///
/// # Errors
/// When it cannot be made.
pub fn blocks(paging: &Paging) -> Result<Blocks> {
    let made = paging.pattern.blocks(paging.pages, paging.references, paging.seed, &mut unwatched);
    made.map_err(|e| unmade(&e))
}

/// A stream that cannot be made.
pub fn unmade(error: &PatternError) -> Failure {
    match error {
        PatternError::Memory(_) => Failure::refused(error.to_string(), "make room, or use another pattern"),
        error => Failure::parameters("the reference stream", error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_is_marked_the_same_in_every_cut_of_the_stream() {
        let paging = Paging { pages: 1000, references: 100_000, ..Paging::default() };
        let paging = Paging { writes: "5%".parse().unwrap(), ..paging };
        let plan = Plan::new(100_000);
        let mut feed = Feed::new(&paging, &plan).unwrap();
        let windows: Vec<u32> =
            (1..=plan.windows()).flat_map(|window| feed.window(&plan, window).unwrap().to_vec()).collect();
        let mut marked = Marked::new(&paging).unwrap();
        assert_eq!(marked.next().unwrap(), windows);
        let mut drawn = paging.drawn_writes();
        assert!(windows.iter().all(|reference| (reference & WRITE != 0) == drawn.draw()));
    }

    #[test]
    fn the_windows_are_those_of_the_whole_stream() {
        for references in [1, 239, 240, 241, 100_000, 3_000_000] {
            let paging = Paging { pages: 1000, references, ..Paging::default() };
            let paging = Paging { pattern: "zipf:0.9".parse().unwrap(), ..paging };
            let whole = paging.pattern.stream(1000, references, 1).unwrap();
            let plan = Plan::new(references as usize);
            let mut feed = Feed::new(&paging, &plan).unwrap();
            let room = feed.part.capacity();
            for window in 1..=plan.windows() {
                let wanted = &whole.references()[plan.start(window)..plan.end(window)];
                assert_eq!(feed.window(&plan, window).unwrap(), wanted, "{references}, {window}");
            }
            assert_eq!(feed.part.capacity(), room, "nothing is allocated during a run");
        }
    }
}
