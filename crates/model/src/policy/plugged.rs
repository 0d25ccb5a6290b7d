//! A policy of the caller's own: it says which page goes, and the resident pages are kept here.
//!
//! `examples/policy.rs` has one to copy.

/// A replacement policy: told of every reference, it names the victims.
pub trait Replacement {
    /// A resident page was referenced.
    fn on_hit(&mut self, page: u32);

    /// A page comes in that was not resident. Where no frame is free the page that goes, else `None`.
    fn on_miss(&mut self, page: u32) -> Option<u32>;
}

/// A victim that cannot go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongVictim {
    /// All frames are taken and no page was named.
    #[error("on_miss({page}) named no victim, and none of the {frames} frames is free")]
    None {
        /// The page that comes in.
        page: u32,
        /// The frames.
        frames: u32,
    },
    /// The page is not resident.
    #[error("on_miss({page}) named {victim}, which is not resident")]
    NotResident {
        /// The page that comes in.
        page: u32,
        /// The page that was named.
        victim: u32,
    },
}

/// The frames that a [`Replacement`] rules over.
#[derive(Debug)]
pub struct Plugged<R> {
    /// The policy.
    pub policy: R,
    resident: Vec<bool>,
    free: u32,
    frames: u32,
}

impl<R: Replacement> Plugged<R> {
    /// `frames` (at least 1) empty frames for the pages `0..pages`.
    pub fn new(policy: R, pages: u32, frames: u32) -> Self {
        let frames = frames.max(1);
        Self { policy, resident: vec![false; pages as usize], free: frames, frames }
    }

    /// References a page; whether it was resident. A victim may be named while frames are free.
    ///
    /// # Errors
    /// When no victim is named where one must be, or one that is not resident.
    ///
    /// # Panics
    /// When the page is not below the number of pages.
    #[inline]
    pub fn reference(&mut self, page: u32) -> Result<bool, WrongVictim> {
        if self.resident[page as usize] {
            self.policy.on_hit(page);
            return Ok(true);
        }
        match self.policy.on_miss(page) {
            Some(victim) => match self.resident.get_mut(victim as usize) {
                Some(resident) if *resident => *resident = false,
                _ => return Err(WrongVictim::NotResident { page, victim }),
            },
            None if self.free > 0 => self.free -= 1,
            None => return Err(WrongVictim::None { page, frames: self.frames }),
        }
        self.resident[page as usize] = true;
        Ok(false)
    }

    /// References these pages in turn and counts the misses.
    ///
    /// # Errors
    /// As [`Self::reference`].
    pub fn misses(&mut self, references: &[u32]) -> Result<u64, WrongVictim> {
        let mut misses = 0;
        for &page in references {
            misses += u64::from(!self.reference(page)?);
        }
        Ok(misses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyKind;
    use crate::replay::replay;
    use pagelab_reference::Pattern;
    use std::collections::VecDeque;

    /// FIFO, which answers as it is told to.
    struct Fifo {
        queue: VecDeque<u32>,
        frames: usize,
        answer: Option<Option<u32>>,
    }

    impl Replacement for Fifo {
        fn on_hit(&mut self, _: u32) {}

        fn on_miss(&mut self, page: u32) -> Option<u32> {
            let victim = if self.queue.len() == self.frames { self.queue.pop_front() } else { None };
            self.queue.push_back(page);
            self.answer.unwrap_or(victim)
        }
    }

    fn fifo(frames: usize, answer: Option<Option<u32>>) -> Plugged<Fifo> {
        Plugged::new(Fifo { queue: VecDeque::new(), frames, answer }, 500, frames as u32)
    }

    #[test]
    fn a_plugged_policy_has_the_misses_of_the_built_in_one() {
        let stream = Pattern::Zipf(0.8).stream(500, 40_000, 3).unwrap();
        for frames in [1, 20, 499, 600] {
            let plugged = fifo(frames, None).misses(stream.references()).unwrap();
            assert_eq!(plugged, replay(&stream, &PolicyKind::Fifo, frames as u32).misses, "{frames} frames");
        }
    }

    #[test]
    fn a_wrong_victim_is_refused() {
        assert_eq!(fifo(2, Some(None)).misses(&[1, 2, 1, 3]), Err(WrongVictim::None { page: 3, frames: 2 }));
        for victim in [9, 4000] {
            let refused = Err(WrongVictim::NotResident { page: 1, victim });
            assert_eq!(fifo(2, Some(Some(victim))).misses(&[1]), refused);
        }
        assert_eq!(fifo(2, None).misses(&[1, 2, 3, 1]), Ok(4));
    }
}
