//! A model's policy that also says which pages go.
//!
//! The models count misses and need not name their victims. Here the pages that a policy holds are kept beside it, and
//! after a reference those that it [no longer has](Policy::contains) are looked for where victims mostly are: from the
//! page whose last reference was seen longest ago (LRU and its kin), and round the frames in turn (FIFO, CLOCK). So
//! the model's code decides alone, and naming its victim takes a step or two for most policies, all frames at worst.

use pagelab_model::policy::opt::{NextUse, Opt};
use pagelab_model::policy::{Policy, PolicyKind};

use crate::line::Line;

/// A policy and the pages that it holds.
pub struct Chooser<'a> {
    policy: Box<dyn Policy + 'a>,
    /// The pages it holds, from the one whose last reference is longest ago.
    seen: Line,
    /// The same, each in a frame of its own.
    frames: Vec<u32>,
    /// The frame of each page that is held.
    frame: Vec<u32>,
    hand: usize,
}

/// Why a policy cannot page.
pub fn refusal(kind: &PolicyKind) -> Option<&'static str> {
    kind.has_variable_space().then_some(
        "chooses the number of resident pages itself, regardless of the \
        memory",
    )
}

impl<'a> Chooser<'a> {
    /// The policy of `kind` with `frames` frames for the pages `0..pages`.
    ///
    /// # Panics
    /// When the policy needs the future and it is not given, or names no victims ([`refusal`]).
    pub fn new(kind: &PolicyKind, pages: u32, frames: u32, future: Option<&'a NextUse>) -> Self {
        assert!(refusal(kind).is_none(), "{kind} names no victims");
        let policy: Box<dyn Policy + 'a> = match (kind, future) {
            (PolicyKind::Opt, Some(future)) => Box::new(Opt::naming(pages, frames, future)),
            _ => kind.build(pages, frames, future),
        };
        Self { policy, seen: Line::new(pages), frames: Vec::new(), frame: vec![0; pages as usize], hand: 0 }
    }

    /// There are `pages` pages from now on.
    pub fn grow(&mut self, pages: u32) {
        self.policy.grow(pages);
        self.seen.grow(pages);
        self.frame.resize(pages as usize, 0);
    }

    /// Whether the policy has the page.
    pub fn holds(&self, page: u32) -> bool {
        self.seen.contains(page)
    }

    /// References a page; whether it was held. Those that go for it are appended to `gone`.
    pub fn reference(&mut self, page: u32, gone: &mut Vec<u32>) -> bool {
        let hit = self.policy.reference(page);
        if !self.seen.remove(page) {
            self.frame[page as usize] = self.frames.len() as u32;
            self.frames.push(page);
        }
        self.seen.push(page);
        while self.seen.len() > self.policy.resident() {
            let victim = self.victim();
            self.forget(victim);
            gone.push(victim);
        }
        hit
    }

    /// A page that the policy no longer has.
    fn victim(&mut self) -> u32 {
        let lacks = |page| self.policy.contains(page) == Some(false);
        let mut oldest = self.seen.first();
        loop {
            if let Some(page) = oldest {
                if lacks(page) {
                    return page;
                }
                oldest = self.seen.after(page);
            }
            self.hand = if self.hand >= self.frames.len() { 0 } else { self.hand };
            let page = self.frames[self.hand];
            if lacks(page) {
                return page;
            }
            self.hand += 1;
        }
    }

    /// Takes a page out; the last comes into its frame, as the page does that has just come in.
    fn forget(&mut self, page: u32) {
        self.seen.remove(page);
        let frame = self.frame[page as usize];
        self.frames.swap_remove(frame as usize);
        if let Some(&moved) = self.frames.get(frame as usize) {
            self.frame[moved as usize] = frame;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_reference::Pattern;

    /// Every policy that can page names one victim for each page that comes in, and those it has are the others.
    #[test]
    fn the_pages_that_are_left_are_those_that_the_policy_has() {
        let stream = Pattern::Zipf(0.8).stream(300, 20_000, 7).unwrap();
        let future = NextUse::of(300, stream.references());
        for one in PolicyKind::catalogue() {
            let kind: PolicyKind = one.form.replace("TAU", "1000").parse().unwrap();
            if refusal(&kind).is_some() {
                continue;
            }
            for frames in [1, 7, 90, 299, 300] {
                let future = kind.needs_future().then_some(&future);
                let mut plain = kind.build(300, frames, future);
                let mut chooser = Chooser::new(&kind, 300, frames, future);
                let (mut held, mut gone) = ([false; 300], Vec::new());
                for &page in stream.references() {
                    gone.clear();
                    let hit = chooser.reference(page, &mut gone);
                    assert_eq!(hit, plain.reference(page), "{kind}, {frames} frames");
                    assert_eq!(hit, held[page as usize], "{kind}, {frames} frames: page {page}");
                    held[page as usize] = true;
                    gone.iter().for_each(|&page| held[page as usize] = false);
                    let count = held.iter().filter(|&&held| held).count();
                    assert_eq!((count, held[page as usize]), (plain.resident(), true), "{kind}, {frames}");
                }
            }
        }
    }
}
