//! LeCaR, learning cache replacement: at every eviction LRU or LFU is drawn by weights, which a reference to a page that one
//! of them evicted lately takes from it.
//!
//! Source: G. Vietri, L. V. Rodriguez, W. A. Martinez, S. Lyons, J. Liu, R. Rangaswami, M. Zhao and G. Narasimhan, "Driving
//! cache replacement with ML-based LeCaR", HotStorage 2018: a learning rate of 0.45, a discount of 0.005^(1/frames). What
//! the paper leaves open: each expert remembers half as many pages as there are frames, a victim on which both agree is
//! remembered by none, a page comes back with the count that it had, and among equal counts the page referenced
//! longest ago goes. The draws are from a seeded generator.

use super::Policy;
use super::heap::Heap;
use super::queue::{Entry, Queue, table};
use pagelab_reference::rng::Rng;

const RESIDENT: u8 = 1;
const BY_LRU: u8 = 2;
const BY_LFU: u8 = 3;

/// LeCaR on three `Queue`s and a heap; 24 bytes a page.
#[derive(Debug)]
pub struct LeCar {
    table: Vec<Entry>,
    recent: Queue,
    by_lru: Queue,
    by_lfu: Queue,
    /// By references and the last of them, as they were when somebody was last evicted.
    frequent: Heap<(u32, u64)>,
    /// References of each page while it is resident or remembered.
    count: Vec<u32>,
    /// The last reference or eviction.
    touched: Vec<u64>,
    frames: usize,
    remembered: usize,
    rate: f64,
    /// The logarithm of what an eviction is worth less for each reference since.
    discount: f64,
    lru_weight: f64,
    now: u64,
    rng: Rng,
    ghost_hits: u64,
}

impl LeCar {
    /// `frames` empty frames for the pages `0..pages`, with this learning rate, drawing from the seed given.
    pub fn new(pages: u32, frames: u32, rate: f64, seed: u64) -> Self {
        Self {
            table: table(pages),
            recent: Queue::new(RESIDENT),
            by_lru: Queue::new(BY_LRU),
            by_lfu: Queue::new(BY_LFU),
            frequent: Heap::new(pages),
            count: vec![0; pages as usize],
            touched: vec![0; pages as usize],
            frames: frames as usize,
            remembered: frames as usize / 2,
            rate,
            discount: 0.005_f64.ln() / f64::from(frames),
            lru_weight: 0.5,
            now: 0,
            rng: Rng::new(seed),
            ghost_hits: 0,
        }
    }

    fn evict(&mut self) {
        let key = |page: u32| (self.count[page as usize], self.touched[page as usize]);
        let oldest = self.recent.oldest(&self.table);
        let (Some(oldest), Some(rarest)) = (oldest, self.frequent.least_by(key)) else { return };
        let lru = self.rng.unit() < self.lru_weight;
        let victim = if lru { oldest } else { rarest };
        self.recent.remove(victim, &mut self.table);
        self.frequent.remove(victim);
        self.touched[victim as usize] = self.now;
        if oldest == rarest || self.remembered == 0 {
            self.count[victim as usize] = 0;
            return;
        }
        let memory = if lru { &mut self.by_lru } else { &mut self.by_lfu };
        if memory.len() == self.remembered
            && let Some(forgotten) = memory.pop(&mut self.table)
        {
            self.count[forgotten as usize] = 0;
        }
        memory.push(victim, &mut self.table);
    }

    /// A page that an expert evicted is referenced again: the other one gains, the more the sooner.
    fn learn(&mut self, page: u32, by_lru: bool) {
        self.ghost_hits += 1;
        let age = (self.now - self.touched[page as usize]) as f64;
        let gain = (self.rate * (self.discount * age).exp()).exp();
        let (lru, lfu) = (self.lru_weight, 1.0 - self.lru_weight);
        self.lru_weight = if by_lru { lru / (lru + lfu * gain) } else { lru * gain / (lru * gain + lfu) };
    }
}

impl Policy for LeCar {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        let list = self.table[page as usize].list;
        if list == RESIDENT {
            self.recent.touch(page, &mut self.table);
        } else {
            if list == BY_LRU {
                self.learn(page, true);
                self.by_lru.remove(page, &mut self.table);
            } else if list == BY_LFU {
                self.learn(page, false);
                self.by_lfu.remove(page, &mut self.table);
            }
            if self.recent.len() == self.frames {
                self.evict();
            }
            self.recent.push(page, &mut self.table);
        }
        self.count[page as usize] = self.count[page as usize].saturating_add(1);
        self.touched[page as usize] = self.now;
        if list != RESIDENT {
            self.frequent.set(page, (self.count[page as usize], self.now));
        }
        list == RESIDENT
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
        super::grow(&mut self.count, pages);
        super::grow(&mut self.touched, pages);
        self.frequent.grow(pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(self.table[page as usize].list == RESIDENT)
    }

    fn resident(&self) -> usize {
        self.recent.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("ghost hits", self.ghost_hits),
            ("weight of LRU, thousandths", (self.lru_weight * 1e3).round() as u64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::naive::{hits, streams};
    use super::*;
    use pagelab_reference::rng::Rng;
    use proptest::prelude::*;

    /// A page that is known: (page, references, last reference or eviction).
    type Known = (u32, u32, usize);

    /// Lists, and weights that are kept both and divided by their sum; the draws are those of the same seed.
    fn plain(references: &[u32], frames: usize, seed: u64) -> Vec<bool> {
        let mut rng = Rng::new(seed);
        let mut resident: Vec<Known> = Vec::new();
        // What LRU and what LFU evicted.
        let mut memories: [Vec<Known>; 2] = Default::default();
        let mut weights = [0.5_f64; 2];
        let mut all = Vec::new();
        for (now, &page) in references.iter().enumerate() {
            if let Some(one) = resident.iter_mut().find(|one| one.0 == page) {
                *one = (page, one.1 + 1, now);
                all.push(true);
                continue;
            }
            all.push(false);
            let mut count = 0;
            for expert in 0..2 {
                if let Some(at) = memories[expert].iter().position(|one| one.0 == page) {
                    let one = memories[expert].remove(at);
                    count = one.1;
                    let reward = 0.005_f64.powf((now - one.2) as f64 / frames as f64);
                    weights[1 - expert] *= (0.45 * reward).exp();
                    let sum = weights[0] + weights[1];
                    weights = weights.map(|weight| weight / sum);
                }
            }
            if resident.len() == frames {
                let lru = resident.iter().min_by_key(|one| one.2).unwrap().0;
                let lfu = resident.iter().min_by_key(|one| (one.1, one.2)).unwrap().0;
                let expert = usize::from(rng.unit() >= weights[0]);
                let victim = [lru, lfu][expert];
                let at = resident.iter().position(|one| one.0 == victim).unwrap();
                let mut victim = resident.remove(at);
                victim.2 = now;
                if lru != lfu {
                    memories[expert].push(victim);
                    if memories[expert].len() > frames / 2 {
                        memories[expert].remove(0);
                    }
                }
            }
            resident.push((page, count + 1, now));
        }
        all
    }

    proptest! {
        #[test]
        fn follows_its_definition(stream in streams(), frames in 1_u32..50, seed in 0_u64..9) {
            let mut policy = LeCar::new(stream.pages(), frames, 0.45, seed);
            prop_assert_eq!(hits(&mut policy, &stream), plain(stream.references(), frames as usize, seed));
        }
    }
}
