//! LIRS: pages with a small reuse distance (LIR) keep nearly all frames; the others (HIR) pass
//! through a small queue. The recency stack decides who is which.
//!
//! Source: S. Jiang and X. Zhang, "LIRS: an efficient low inter-reference recency set replacement
//! policy to improve buffer cache performance", SIGMETRICS 2002: the HIR pages have 1% of the
//! frames, and at least two, as in the first author's own program. The stack is not bounded (the paper's
//! basic form), so it may remember every page.
//!
//! That program takes a reference to the page referenced just before as no reference; on streams without
//! such repetitions its misses and these are the same. libCacheSim's lirs is a variant: on its sample
//! trace the misses are between 1% fewer and 3% more than its own.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

const LISTED: u8 = 1;

const ABSENT: u8 = 0;
const LIR: u8 = 1;
const HIR: u8 = 2;

/// LIRS. A page may be in the stack and in the queue, so each has its own table; the note in the
/// stack's table says what the page is.
#[derive(Debug)]
pub struct Lirs {
    in_stack: Vec<Entry>,
    stack: Queue,
    in_queue: Vec<Entry>,
    /// The resident HIR pages.
    queue: Queue,
    /// Frames for LIR pages; the others are for resident HIR pages.
    lir_frames: usize,
    frames: usize,
    lir: usize,
    ghost_hits: u64,
    promotions: u64,
    demotions: u64,
}

impl Lirs {
    /// `frames` empty frames for the pages `0..pages`, of which HIR pages have the share `hir`, at least
    /// `least` (at least one; where that is all, there are no LIR pages).
    pub fn new(pages: u32, frames: u32, hir: f64, least: u32) -> Self {
        let hir_frames = ((f64::from(frames) * hir) as usize).max(least.max(1) as usize);
        Self {
            in_stack: table(pages),
            stack: Queue::new(LISTED),
            in_queue: table(pages),
            queue: Queue::new(LISTED),
            lir_frames: (frames as usize).saturating_sub(hir_frames),
            frames: frames as usize,
            lir: 0,
            ghost_hits: 0,
            promotions: 0,
            demotions: 0,
        }
    }

    /// Puts or moves a page to the top of the stack.
    fn top(&mut self, page: u32) {
        if self.in_stack[page as usize].list == NOWHERE {
            self.stack.push(page, &mut self.in_stack);
        } else {
            self.stack.touch(page, &mut self.in_stack);
        }
    }

    /// Takes HIR pages off the bottom of the stack, so that a LIR page is there.
    fn prune(&mut self) {
        while let Some(page) = self.stack.oldest(&self.in_stack) {
            if self.in_stack[page as usize].note == LIR {
                return;
            }
            self.stack.pop(&mut self.in_stack);
        }
    }

    /// A page on top of the stack becomes LIR; when they are too many, the LIR page at the bottom becomes
    /// the youngest resident HIR page.
    fn make_lir(&mut self, page: u32) {
        self.in_stack[page as usize].note = LIR;
        self.lir += 1;
        if self.lir > self.lir_frames {
            self.prune();
            if let Some(demoted) = self.stack.pop(&mut self.in_stack) {
                self.in_stack[demoted as usize].note = HIR;
                self.demotions += 1;
                self.queue.push(demoted, &mut self.in_queue);
                self.lir -= 1;
                self.prune();
            }
        }
    }
}

impl Policy for Lirs {
    fn reference(&mut self, page: u32) -> bool {
        let remembered = self.in_stack[page as usize].list != NOWHERE && self.lir_frames > 0;
        match self.in_stack[page as usize].note {
            LIR => {
                self.top(page);
                self.prune();
                true
            }
            HIR => {
                self.top(page);
                if remembered {
                    self.promotions += 1;
                    self.queue.remove(page, &mut self.in_queue);
                    self.make_lir(page);
                } else {
                    self.queue.touch(page, &mut self.in_queue);
                }
                true
            }
            _ => {
                if self.resident() == self.frames
                    && let Some(victim) = self.queue.pop(&mut self.in_queue)
                {
                    // The stack may remember it.
                    self.in_stack[victim as usize].note = ABSENT;
                }
                self.top(page);
                self.ghost_hits += u64::from(remembered);
                if remembered || self.lir < self.lir_frames {
                    self.make_lir(page);
                } else {
                    self.in_stack[page as usize].note = HIR;
                    self.queue.push(page, &mut self.in_queue);
                }
                false
            }
        }
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.in_stack)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.in_stack, pages);
        super::grow(&mut self.in_queue, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.in_stack[page as usize].note != ABSENT)
    }

    fn resident(&self) -> usize {
        self.lir + self.queue.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("ghost hits", self.ghost_hits), ("promotions", self.promotions), ("demotions", self.demotions)]
    }
}
