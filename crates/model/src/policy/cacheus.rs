//! CACHEUS: as LeCaR, with experts that resist scans (SR-LRU) and churn (CR-LFU), and a learning rate that it finds itself.
//!
//! Source: L. V. Rodriguez, F. Yusuf, S. Lyons, E. Paz, R. Rangaswami, J. Liu, M. Zhao and G. Narasimhan, "Learning cache
//! replacement with CACHEUS", FAST 2021. SR-LRU keeps pages that were referenced again in S and all others in Q, whose shares
//! adapt: Q grows when a page that LRU evicted from it unreferenced comes back, S when a page that was demoted to Q is
//! referenced. CR-LFU takes the page that was referenced last among those with the fewest references. Where paper and
//! the authors' program differ, this is the program (github.com/sylab/cacheus): the learning rate begins at √(2 ln 2 ÷ frames), it is
//! looked at after as many references as there are frames, with hit ratios rounded to thousandths, weights stay between
//! 0.01 and 0.99, a page comes back with the count that it had. With one frame, where that program fails, nothing is
//! remembered. The draws are from a seeded generator.

use super::Policy;
use super::heap::Heap;
use super::queue::{Entry, Queue, table};
use pagelab_reference::rng::Rng;

const SAFE: u8 = 1;
const QUEUED: u8 = 2;
const BY_LRU: u8 = 3;
const BY_LFU: u8 = 4;

/// Bits of a page's note.
const DEMOTED: u8 = 1;
const NEW: u8 = 2;

/// Q's share of the frames at the beginning.
const QUEUED_SHARE: f64 = 0.01;

/// The learning rate, which goes on in the direction in which hits became more.
#[derive(Debug)]
struct LearningRate {
    rate: f64,
    /// Where it begins anew when nothing helps.
    first: f64,
    /// As it was in this period and in the one before.
    periods: [f64; 2],
    hits: u64,
    hit_ratio: f64,
    without_hits: u32,
    worse: u32,
}

/// The limits of the learning rate.
const RATES: [f64; 2] = [0.001, 1.0];

/// Periods without an improvement after which it begins anew.
const PERIODS_BEFORE_RESTART: u32 = 10;

/// To the nearest thousandth, ties to the even one, as the authors' program rounds: what lies beside a tie is told by the
/// exact product.
fn thousandths(number: f64) -> f64 {
    let below = (number * 1e3).floor();
    let beyond = number.mul_add(1e3, -(below + 0.5));
    let up = beyond > 0.0 || (beyond == 0.0 && below % 2.0 != 0.0);
    (below + f64::from(u8::from(up))) / 1e3
}

impl LearningRate {
    fn new(frames: u32) -> Self {
        let rate = (2.0 * 2_f64.ln() / f64::from(frames)).sqrt();
        let first = rate.clamp(RATES[0], RATES[1]);
        Self { rate, first, periods: [rate, 0.0], hits: 0, hit_ratio: 0.0, without_hits: 0, worse: 0 }
    }

    /// A period of so many references has ended.
    fn update(&mut self, references: u64, rng: &mut Rng) {
        let hit_ratio = thousandths(self.hits as f64 / references as f64);
        let more = thousandths(hit_ratio - self.hit_ratio);
        let moved = thousandths(self.periods[0]) - thousandths(self.periods[1]);
        let direction = moved * more;
        let step = (self.rate * moved).abs();
        if direction != 0.0 {
            self.rate = if direction > 0.0 {
                (self.rate + step).min(RATES[1])
            } else {
                (self.rate - step).max(RATES[0])
            };
            (self.worse, self.without_hits) = (0, 0);
        } else if more <= 0.0 {
            let fewer = more < 0.0;
            self.without_hits += u32::from(fewer || hit_ratio <= 0.0);
            self.worse += u32::from(fewer);
            if self.without_hits >= PERIODS_BEFORE_RESTART {
                (self.rate, self.without_hits) = (self.first, 0);
            } else if fewer && self.worse >= PERIODS_BEFORE_RESTART {
                (self.rate, self.worse) = (self.first, 0);
            } else if fewer {
                self.rate = match self.rate {
                    rate if rate >= RATES[1] => 0.9,
                    rate if rate <= RATES[0] => 0.005,
                    rate if rng.unit() < 0.5 => (rate * 1.25).min(RATES[1]),
                    rate => (rate * 0.75).max(RATES[0]),
                };
            }
        }
        self.periods = [self.rate, self.periods[0]];
        (self.hit_ratio, self.hits) = (hit_ratio, 0);
    }
}

/// CACHEUS on four `Queue`s and a heap; 20 bytes a page, and 32 of those that are resident.
#[derive(Debug)]
pub struct Cacheus {
    table: Vec<Entry>,
    safe: Queue,
    queued: Queue,
    by_lru: Queue,
    by_lfu: Queue,
    /// Resident pages by references, and the latest first.
    frequent: Heap<(u32, u64)>,
    /// References of each page while it is resident or remembered.
    count: Vec<u32>,
    frames: usize,
    /// Frames for S.
    safe_frames: usize,
    /// Demoted pages in Q.
    demoted: usize,
    /// New pages that LRU's memory has.
    new: usize,
    learning: LearningRate,
    lru_weight: f64,
    now: u64,
    rng: Rng,
    ghost_hits: u64,
}

impl Cacheus {
    /// `frames` empty frames for the pages `0..pages`, drawing from the seed given.
    pub fn new(pages: u32, frames: u32, seed: u64) -> Self {
        let queued = ((QUEUED_SHARE * f64::from(frames) + 0.5) as usize).max(1);
        Self {
            table: table(pages),
            safe: Queue::new(SAFE),
            queued: Queue::new(QUEUED),
            by_lru: Queue::new(BY_LRU),
            by_lfu: Queue::new(BY_LFU),
            frequent: Heap::new(pages),
            count: vec![0; pages as usize],
            frames: frames as usize,
            safe_frames: frames as usize - queued,
            demoted: 0,
            new: 0,
            learning: LearningRate::new(frames),
            lru_weight: 0.5,
            now: 0,
            rng: Rng::new(seed),
            ghost_hits: 0,
        }
    }

    fn note(&mut self, page: u32) -> &mut u8 {
        &mut self.table[page as usize].note
    }

    /// One more reference to a resident page.
    fn rank(&mut self, page: u32, count: u32) {
        self.count[page as usize] = count;
        self.frequent.set(page, (count, u64::MAX - self.now));
    }

    /// The oldest page of S goes to Q.
    fn demote(&mut self) {
        if let Some(page) = self.safe.pop(&mut self.table) {
            *self.note(page) |= DEMOTED;
            self.demoted += 1;
            self.queued.push(page, &mut self.table);
        }
    }

    fn demote_overflow(&mut self) {
        while self.safe.len() >= self.safe_frames && self.safe.len() > 0 {
            self.demote();
        }
    }

    /// More frames for S, in proportion as new pages come back more than demoted ones, or for Q the other way round.
    fn adapt(&mut self, for_safe: bool) {
        let step = |more: usize, fewer: usize| ((more as f64 / fewer.max(1) as f64 + 0.5) as usize).max(1);
        if for_safe {
            self.safe_frames = (self.safe_frames + step(self.new, self.demoted)).min(self.frames - 1);
        } else {
            let queued = self.frames - self.safe_frames + step(self.demoted, self.new);
            self.safe_frames = self.frames - queued.min((self.frames - 1).max(1));
        }
    }

    fn evict(&mut self) {
        let oldest = self.queued.oldest(&self.table).or_else(|| self.safe.oldest(&self.table));
        let (Some(oldest), Some((_, rarest))) = (oldest, self.frequent.least()) else { return };
        let lru = self.rng.unit() < self.lru_weight;
        let victim = if lru { oldest } else { rarest };
        let note = *self.note(victim);
        self.demoted -= usize::from(note & DEMOTED != 0);
        *self.note(victim) = note & !DEMOTED;
        let queue = if self.table[victim as usize].list == SAFE { &mut self.safe } else { &mut self.queued };
        queue.remove(victim, &mut self.table);
        self.frequent.remove(victim);
        let remembered = self.frames / 2;
        if oldest == rarest || remembered == 0 {
            return;
        }
        let memory = if lru { &mut self.by_lru } else { &mut self.by_lfu };
        self.new += usize::from(lru && note & NEW != 0);
        if memory.len() == remembered
            && let Some(forgotten) = memory.pop(&mut self.table)
        {
            self.new -= usize::from(lru && self.table[forgotten as usize].note & NEW != 0);
        }
        memory.push(victim, &mut self.table);
    }

    /// A page that an expert evicted is referenced again: that one loses weight.
    fn learn(&mut self, by_lru: bool) {
        self.ghost_hits += 1;
        let loss = (-self.learning.rate).exp();
        let (lru, lfu) = (self.lru_weight, 1.0 - self.lru_weight);
        let lru = if by_lru { lru * loss / (lru * loss + lfu) } else { lru / (lru + lfu * loss) };
        self.lru_weight = lru.clamp(0.01, 0.99);
    }

    /// A page that is remembered comes back.
    fn return_of(&mut self, page: u32, by_lru: bool) {
        let memory = if by_lru { &mut self.by_lru } else { &mut self.by_lfu };
        memory.remove(page, &mut self.table);
        if by_lru && *self.note(page) & NEW != 0 {
            self.new -= 1;
            self.adapt(false);
        }
        self.learn(by_lru);
        if self.resident() >= self.frames {
            self.evict();
        }
        *self.note(page) = 0;
        self.safe.push(page, &mut self.table);
        self.rank(page, self.count[page as usize]);
        self.demote_overflow();
    }

    /// A page that is not known comes in.
    fn enter(&mut self, page: u32) {
        *self.note(page) = 0;
        if self.safe.len() < self.safe_frames && self.queued.len() == 0 {
            self.safe.push(page, &mut self.table);
            self.rank(page, 1);
            return;
        }
        let filling = self.resident() < self.frames && self.queued.len() < self.frames - self.safe_frames;
        if self.resident() >= self.frames {
            self.evict();
        }
        *self.note(page) = if filling { 0 } else { NEW };
        self.queued.push(page, &mut self.table);
        self.rank(page, 1);
        if !filling {
            self.demote_overflow();
        }
    }

    /// A page of Q is referenced again and goes to S.
    fn rescue(&mut self, page: u32) {
        self.rank(page, self.count[page as usize].saturating_add(1));
        if *self.note(page) & DEMOTED != 0 {
            self.adapt(true);
            *self.note(page) &= !DEMOTED;
            self.demoted -= 1;
        }
        self.queued.remove(page, &mut self.table);
        if self.safe.len() >= self.safe_frames {
            self.demote();
        }
        self.safe.push(page, &mut self.table);
    }
}

impl Policy for Cacheus {
    #[inline]
    fn reference(&mut self, page: u32) -> bool {
        self.now += 1;
        if self.now.is_multiple_of(self.frames as u64) {
            self.learning.update(self.frames as u64, &mut self.rng);
        }
        let list = self.table[page as usize].list;
        match list {
            SAFE => {
                self.safe.touch(page, &mut self.table);
                self.rank(page, self.count[page as usize].saturating_add(1));
            }
            QUEUED => self.rescue(page),
            BY_LRU | BY_LFU => self.return_of(page, list == BY_LRU),
            _ => self.enter(page),
        }
        let hit = matches!(list, SAFE | QUEUED);
        self.learning.hits += u64::from(hit);
        hit
    }

    fn misses(&mut self, references: &[u32]) -> u64 {
        super::count_fetching(self, references, |policy| &policy.table)
    }

    fn grow(&mut self, pages: u32) {
        super::grow(&mut self.table, pages);
        super::grow(&mut self.count, pages);
        self.frequent.grow(pages);
    }

    fn contains(&self, page: u32) -> Option<bool> {
        Some(matches!(self.table[page as usize].list, SAFE | QUEUED))
    }

    fn resident(&self) -> usize {
        self.safe.len() + self.queued.len()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("ghost hits", self.ghost_hits),
            ("weight of LRU, thousandths", (self.lru_weight * 1e3).round() as u64),
            ("frames of S", self.safe_frames as u64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousandths_are_those_of_the_exact_number() {
        for (number, rounded) in [
            (0.8125, 0.812),
            (0.4375, 0.438),
            (0.0005, 0.001),
            (0.0015, 0.002),
            (0.0025, 0.003),
            (-0.0625, -0.062),
            (0.1234, 0.123),
            (0.0, 0.0),
            (1.0, 1.0),
        ] {
            assert_eq!(thousandths(number), rounded, "{number}");
            assert_eq!(format!("{number:.3}").parse::<f64>().unwrap(), rounded, "{number}");
        }
    }

    #[test]
    fn the_learning_rate_goes_on_where_hits_became_more_and_begins_anew_where_there_are_none() {
        let mut rng = Rng::new(1);
        let mut learning = LearningRate::new(1000);
        let first = learning.rate;
        learning.hits = 500;
        learning.update(1000, &mut rng);
        assert!(learning.rate > first, "it rose from nothing, and hits rose");
        for _ in 0..PERIODS_BEFORE_RESTART + 1 {
            learning.update(1000, &mut rng);
        }
        assert_eq!(learning.rate, first, "no hits for long");
    }
}
