//! LIRS: pages with a small reuse distance (LIR) keep nearly all frames; the others (HIR) pass
//! through a small queue. The recency stack decides who is which.
//!
//! Source: S. Jiang and X. Zhang, "LIRS: an efficient low inter-reference recency set replacement
//! policy to improve buffer cache performance", SIGMETRICS 2002: the HIR pages have 1 % of the
//! frames. The stack is not bounded (the paper's basic form), so it may remember every page.
//!
//! Stack and queue are logs in the order of arrival, as in [`super::queue`], but a page may be in both.

use super::Policy;
use std::collections::VecDeque;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Absent,
    Lir,
    ResidentHir,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    /// Ordinal number of the page's entry in the stack, 0 when it is not in the stack.
    stack: u32,
    /// The same for the queue.
    queue: u32,
    kind: Kind,
}

/// Numbers in order of arrival whose stale ones are passed over. The ordinal of the first is `first`.
#[derive(Debug)]
struct Log {
    items: VecDeque<u32>,
    first: u32,
}

impl Log {
    fn push(&mut self, page: u32) -> u32 {
        self.items.push_back(page);
        self.first + self.items.len() as u32 - 1
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        let page = self.items.pop_front()?;
        self.first += 1;
        Some((page, self.first - 1))
    }
}

/// LIRS; 12 bytes a page and its two logs.
#[derive(Debug)]
pub struct Lirs {
    pages: Box<[Page]>,
    stack: Log,
    queue: Log,
    /// Frames for LIR pages; the others are for resident HIR pages.
    lir_frames: usize,
    frames: usize,
    lir: usize,
    hir: usize,
}

impl Lirs {
    /// `frames` empty frames for the pages `0..pages`, of which HIR pages have the share `hir` (at
    /// least one frame, and with one frame alone that is all there is).
    pub fn new(pages: u32, frames: u32, hir: f64) -> Self {
        let hir_frames = ((f64::from(frames) * hir) as usize).max(1);
        let log = || Log { items: VecDeque::new(), first: 1 };
        Self {
            pages: vec![Page { stack: 0, queue: 0, kind: Kind::Absent }; pages as usize].into(),
            stack: log(),
            queue: log(),
            lir_frames: (frames as usize).saturating_sub(hir_frames),
            frames: frames as usize,
            lir: 0,
            hir: 0,
        }
    }

    /// Puts a page on top of the stack; a stack or queue that is mostly stale, or whose ordinals run
    /// out, is renumbered first.
    fn to_stack(&mut self, page: u32) {
        if self.stack.items.len() >= 2 * self.pages.len().max(64) || self.stack.first > u32::MAX / 2 {
            let old = std::mem::take(&mut self.stack.items);
            let first = std::mem::replace(&mut self.stack.first, 1);
            for (at, other) in old.into_iter().enumerate() {
                if self.pages[other as usize].stack == first + at as u32 {
                    self.pages[other as usize].stack = self.stack.push(other);
                }
            }
        }
        self.pages[page as usize].stack = self.stack.push(page);
    }

    fn to_queue(&mut self, page: u32) {
        if self.queue.items.len() >= 2 * self.pages.len().max(64) || self.queue.first > u32::MAX / 2 {
            let old = std::mem::take(&mut self.queue.items);
            let first = std::mem::replace(&mut self.queue.first, 1);
            for (at, other) in old.into_iter().enumerate() {
                if self.pages[other as usize].queue == first + at as u32 {
                    self.pages[other as usize].queue = self.queue.push(other);
                }
            }
        }
        self.pages[page as usize].queue = self.queue.push(page);
    }

    /// Takes HIR pages and stale entries off the bottom of the stack, so that a LIR page is there.
    fn prune(&mut self) {
        while let Some(&page) = self.stack.items.front() {
            let entry = &mut self.pages[page as usize];
            if entry.stack == self.stack.first {
                if entry.kind == Kind::Lir {
                    return;
                }
                entry.stack = 0;
            }
            self.stack.pop();
        }
    }

    /// The LIR page at the bottom of the stack becomes the youngest resident HIR page.
    fn demote(&mut self) {
        self.prune();
        if let Some((page, _)) = self.stack.pop() {
            self.pages[page as usize].stack = 0;
            self.pages[page as usize].kind = Kind::ResidentHir;
            self.to_queue(page);
            self.lir -= 1;
            self.hir += 1;
            self.prune();
        }
    }

    /// The oldest resident HIR page goes; the stack may remember it.
    fn evict(&mut self) {
        while let Some((page, at)) = self.queue.pop() {
            let entry = &mut self.pages[page as usize];
            if entry.queue == at {
                entry.queue = 0;
                entry.kind = Kind::Absent;
                self.hir -= 1;
                return;
            }
        }
    }
}

impl Policy for Lirs {
    fn reference(&mut self, page: u32) -> bool {
        let Page { stack, kind, .. } = self.pages[page as usize];
        match kind {
            Kind::Lir => {
                self.to_stack(page);
                self.prune();
                true
            }
            Kind::ResidentHir => {
                if stack != 0 && self.lir_frames > 0 {
                    self.pages[page as usize].queue = 0;
                    self.pages[page as usize].kind = Kind::Lir;
                    self.hir -= 1;
                    self.lir += 1;
                    self.to_stack(page);
                    if self.lir > self.lir_frames {
                        self.demote();
                    }
                } else {
                    self.to_stack(page);
                    self.to_queue(page);
                }
                true
            }
            Kind::Absent => {
                if self.resident() == self.frames {
                    self.evict();
                }
                let remembered = self.pages[page as usize].stack != 0;
                if self.lir < self.lir_frames || (remembered && self.lir_frames > 0) {
                    self.pages[page as usize].kind = Kind::Lir;
                    self.lir += 1;
                    self.to_stack(page);
                    if self.lir > self.lir_frames {
                        self.demote();
                    }
                } else {
                    self.pages[page as usize].kind = Kind::ResidentHir;
                    self.hir += 1;
                    self.to_stack(page);
                    self.to_queue(page);
                }
                false
            }
        }
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count(self, references)
    }

    fn resident(&self) -> usize {
        self.lir + self.hir
    }
}
