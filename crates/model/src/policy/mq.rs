//! MQ, multi-queue: LRU queues for pages referenced 1, 2, 4, … times; a page that is not referenced for its lifetime
//! falls by one queue, and a memory (Qout) keeps how often evicted pages were referenced.
//!
//! Source: Y. Zhou, J. F. Philbin and K. Li, "The multi-queue replacement algorithm for second level buffer caches", USENIX
//! 2001: eight queues, and a memory of four times the frames, as the authors recommend. They set the lifetime from the
//! distances that they measure; here it is `life` times as many references as there are frames, and the default is ours. At a
//! reference one page at most falls from each queue, as in their figure.

use super::Policy;
use super::queue::{Entry, NOWHERE, Queue, table};

/// MQ on one `Queue` a level and one for the memory; 20 bytes a page.
#[derive(Debug)]
pub struct Mq {
    table: Vec<Entry>,
    /// Level i carries the number i + 1.
    levels: Vec<Queue>,
    out: Queue,
    /// References of each page while it is resident or remembered.
    count: Vec<u32>,
    expires: Vec<u64>,
    frames: usize,
    remembered: usize,
    life: u64,
    now: u64,
    resident: usize,
    demoted: u64,
    ghost_hits: u64,
}

impl Mq {
    /// `frames` empty frames for the pages `0..pages`; `queues` (1 to 32) levels, a lifetime and a memory that are
    /// `life` and `ghost` times the frames.
    pub fn new(pages: u32, frames: u32, queues: u8, life: f64, ghost: f64) -> Self {
        Self {
            table: table(pages),
            levels: (1..=queues).map(Queue::new).collect(),
            out: Queue::new(queues + 1),
            count: vec![0; pages as usize],
            expires: vec![0; pages as usize],
            frames: frames as usize,
            remembered: (f64::from(frames) * ghost) as usize,
            life: (f64::from(frames) * life) as u64,
            now: 0,
            resident: 0,
            demoted: 0,
            ghost_hits: 0,
        }
    }

    fn evict(&mut self) {
        let Some(level) = self.levels.iter_mut().find(|level| level.len() > 0) else { return };
        let Some(victim) = level.pop(&mut self.table) else { return };
        self.resident -= 1;
        if self.remembered == 0 {
            self.count[victim as usize] = 0;
            return;
        }
        if self.out.len() == self.remembered
            && let Some(forgotten) = self.out.pop(&mut self.table)
        {
            self.count[forgotten as usize] = 0;
        }
        self.out.push(victim, &mut self.table);
    }

    /// The oldest page of each level whose time is over falls by one.
    #[inline]
    fn adjust(&mut self) {
        for level in 1..self.levels.len() {
            if let Some(page) = self.levels[level].oldest(&self.table)
                && self.expires[page as usize] < self.now
            {
                self.levels[level].pop(&mut self.table);
                self.levels[level - 1].push(page, &mut self.table);
                self.expires[page as usize] = self.now + self.life;
                self.demoted += 1;
            }
        }
    }
}

impl Policy for Mq {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let list = usize::from(self.table[page as usize].list);
        let hit = list != usize::from(NOWHERE) && list <= self.levels.len();
        if hit {
            self.levels[list - 1].remove(page, &mut self.table);
        } else {
            if list > self.levels.len() {
                // Out of the memory first: an eviction may need its place.
                self.out.remove(page, &mut self.table);
                self.ghost_hits += 1;
            }
            if self.resident == self.frames {
                self.evict();
            }
            self.resident += 1;
        }
        let count = &mut self.count[page as usize];
        *count = count.saturating_add(1);
        let level = (count.ilog2() as usize).min(self.levels.len() - 1);
        self.levels[level].push(page, &mut self.table);
        self.expires[page as usize] = self.now + self.life;
        self.adjust();
        hit
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
        super::grow(&mut self.count, pages);
        super::grow(&mut self.expires, pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        let list = self.table[page as usize].list;
        Some(list != NOWHERE && usize::from(list) <= self.levels.len())
    }

    fn resident(&self) -> usize {
        self.resident
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("demotions", self.demoted), ("ghost hits", self.ghost_hits)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use proptest::prelude::*;

    /// One list of (page, level, count, expiry) in order of arrival at the level.
    fn plain(references: &[u32], frames: usize, queues: usize, life: usize, ghost: usize) -> Vec<bool> {
        let mut list: Vec<(u32, usize, usize, usize)> = Vec::new();
        let mut out: Vec<(u32, usize)> = Vec::new();
        let mut all = Vec::new();
        for (now, &page) in references.iter().enumerate() {
            let place = list.iter().position(|one| one.0 == page);
            all.push(place.is_some());
            let mut count = match place {
                Some(place) => list.remove(place).2,
                None => {
                    let known = out.iter().position(|one| one.0 == page).map(|at| out.remove(at).1);
                    if list.len() == frames {
                        let lowest = list.iter().map(|one| one.1).min().unwrap();
                        let at = list.iter().position(|one| one.1 == lowest).unwrap();
                        let victim = list.remove(at);
                        out.push((victim.0, victim.2));
                        if out.len() > ghost {
                            out.remove(0);
                        }
                    }
                    known.unwrap_or(0)
                }
            };
            count += 1;
            let level = (0..queues).rev().find(|&level| count >= 1 << level).unwrap();
            list.push((page, level, count, now + life));
            for level in 1..queues {
                if let Some(at) = list.iter().position(|one| one.1 == level)
                    && list[at].3 < now
                {
                    let (page, _, count, _) = list.remove(at);
                    list.push((page, level - 1, count, now + life));
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn follows_its_definition(
            stream in streams(), frames in 1_u32..50, queues in 1_u8..9, life in 0_u32..4, ghost in 0_u32..5,
        ) {
            let mut policy = Mq::new(stream.pages(), frames, queues, f64::from(life), f64::from(ghost));
            let (frames, life, ghost) = (frames as usize, life as usize, ghost as usize);
            let wanted = plain(stream.references(), frames, queues.into(), life * frames, ghost * frames);
            prop_assert_eq!(hits(&mut policy, &stream), wanted);
        }
    }
}
