//! Properties of the policies, held against definitions written down as plainly as possible.

use super::opt::NextUse;
use super::{PolicyKind, lru_misses, opt_misses};
use pagelab_reference::Stream;
use proptest::prelude::*;

fn kinds() -> Vec<PolicyKind> {
    PolicyKind::catalogue().iter().map(|one| one.form.replace("TAU", "7").parse().unwrap()).collect()
}

fn run(kind: &PolicyKind, stream: &Stream, frames: u32) -> Vec<bool> {
    let future = NextUse::of(stream.pages(), stream.references());
    let mut policy = kind.build(stream.pages(), frames, Some(&future));
    stream.references().iter().map(|&page| policy.reference(page)).collect()
}

/// Whether each reference of the stream hits.
pub fn hits(policy: &mut impl super::Policy, stream: &Stream) -> Vec<bool> {
    stream.references().iter().map(|&page| policy.reference(page)).collect()
}

/// The resident pages in a list, and a rule that picks the victim's place in it.
fn listed(stream: &Stream, frames: u32, mut on_hit: impl FnMut(&mut Vec<u32>, usize)) -> Vec<bool> {
    let mut list: Vec<u32> = Vec::new();
    let step = |&page: &u32| {
        let place = list.iter().position(|&p| p == page);
        match place {
            Some(place) => on_hit(&mut list, place),
            None => {
                if list.len() == frames as usize {
                    list.remove(0);
                }
                list.push(page);
            }
        }
        place.is_some()
    };
    stream.references().iter().map(step).collect()
}

/// MRU with the resident pages in the order of their last references.
fn most_recent(stream: &Stream, frames: usize) -> Vec<bool> {
    let mut list: Vec<u32> = Vec::new();
    let step = |&page: &u32| {
        let place = list.iter().position(|&p| p == page);
        match place {
            Some(place) => _ = list.remove(place),
            None if list.len() == frames => _ = list.pop(),
            None => {}
        }
        list.push(page);
        place.is_some()
    };
    stream.references().iter().map(step).collect()
}

/// The fewest misses by trying every victim.
fn fewest(references: &[u32], frames: usize, resident: &mut Vec<u32>) -> u64 {
    let Some((&page, rest)) = references.split_first() else { return 0 };
    if resident.contains(&page) {
        return fewest(rest, frames, resident);
    }
    if resident.len() < frames {
        resident.push(page);
        let misses = fewest(rest, frames, resident);
        resident.pop();
        return 1 + misses;
    }
    let mut best = u64::MAX;
    for slot in 0..frames {
        let victim = std::mem::replace(&mut resident[slot], page);
        best = best.min(fewest(rest, frames, &mut resident.clone()));
        resident[slot] = victim;
    }
    1 + best
}

/// CLOCK, SIEVE and LFU with a list of (page, bit or count), oldest first.
fn marked(kind: &PolicyKind, stream: &Stream, frames: usize) -> Vec<bool> {
    let mut list: Vec<(u32, u64)> = Vec::new();
    let mut hand = 0;
    let step = |&page: &u32| {
        if let Some(place) = list.iter().position(|&(p, _)| p == page) {
            if *kind == PolicyKind::Lfu {
                let (page, count) = list.remove(place);
                list.push((page, count + 1));
            } else {
                list[place].1 = 1;
            }
            return true;
        }
        if list.len() == frames {
            match kind {
                PolicyKind::Clock => {
                    while list[0].1 == 1 {
                        let (spared, _) = list.remove(0);
                        list.push((spared, 0));
                    }
                    list.remove(0);
                }
                PolicyKind::Sieve => {
                    while list[hand].1 == 1 {
                        list[hand].1 = 0;
                        hand = (hand + 1) % frames;
                    }
                    list.remove(hand);
                    hand %= list.len().max(1);
                }
                _ => {
                    let least = list.iter().map(|&(_, count)| count).min().unwrap();
                    let place = list.iter().position(|&(_, count)| count == least).unwrap();
                    list.remove(place);
                }
            }
        }
        list.push((page, 0));
        false
    };
    stream.references().iter().map(step).collect()
}

/// What stands on CLOCK-Pro's clock.
#[derive(Clone, Copy, PartialEq)]
enum Stand {
    Hot,
    Cold,
    /// Not resident, in its test period.
    Tested,
}

/// CLOCK-Pro on one list, from what is just ahead of the hot hand to what is just behind it.
struct PlainClockPro {
    /// (page, what it is, referenced, in its test period).
    clock: Vec<(u32, Stand, bool, bool)>,
    /// The resident cold page that the cold hand comes to next.
    cold_hand: Option<u32>,
    target: usize,
    frames: usize,
}

impl PlainClockPro {
    fn count(&self, what: Stand) -> usize {
        self.clock.iter().filter(|node| node.1 == what).count()
    }

    fn enter(&mut self, page: u32, what: Stand, in_test: bool) {
        if what == Stand::Cold {
            self.cold_hand = self.cold_hand.or(Some(page));
        }
        self.clock.push((page, what, false, in_test));
    }

    fn promote(&mut self, page: u32) {
        self.target = (self.target + 1).min(self.frames);
        self.enter(page, Stand::Hot, false);
        while self.count(Stand::Hot) > self.frames - self.target {
            let node = self.clock.remove(0);
            match node {
                (page, Stand::Hot, true, _) => self.enter(page, Stand::Hot, false),
                (page, Stand::Hot, false, _) => self.enter(page, Stand::Cold, false),
                (_, Stand::Tested, ..) => self.target = (self.target - 1).max(1),
                (page, Stand::Cold, false, true) => {
                    self.clock.push((page, Stand::Cold, false, false));
                    self.target = (self.target - 1).max(1);
                }
                passed => self.clock.push(passed),
            }
        }
    }

    fn evict(&mut self) {
        let page = self.cold_hand.unwrap();
        let place = self.clock.iter().position(|node| node.0 == page).unwrap();
        let others = self.clock[place + 1..].iter().chain(&self.clock[..place]);
        self.cold_hand = others.clone().find(|node| node.1 == Stand::Cold).map(|node| node.0);
        match self.clock[place] {
            (_, _, false, true) => {
                self.clock[place].1 = Stand::Tested;
                while self.count(Stand::Tested) > self.frames {
                    let ends = |n: &(u32, Stand, bool, bool)| n.3 && !n.2;
                    let oldest = self.clock.iter().position(ends).unwrap();
                    self.clock[oldest].3 = false;
                    self.target = (self.target - 1).max(1);
                    self.clock.retain(|node| node.1 != Stand::Tested || node.3);
                }
            }
            (_, _, referenced, in_test) => {
                self.clock.remove(place);
                match (referenced, in_test) {
                    (true, true) => self.promote(page),
                    (true, false) => self.enter(page, Stand::Cold, true),
                    _ => {}
                }
            }
        }
    }

    fn reference(&mut self, page: u32) -> bool {
        let resident = |node: &(u32, Stand, bool, bool)| node.1 != Stand::Tested;
        if let Some(node) = self.clock.iter_mut().find(|node| node.0 == page && resident(node)) {
            node.2 = true;
            return true;
        }
        while self.clock.iter().filter(|node| resident(node)).count() >= self.frames {
            self.evict();
        }
        match self.clock.iter().position(|node| node.0 == page) {
            Some(place) => {
                self.clock.remove(place);
                self.promote(page);
            }
            None => self.enter(page, Stand::Cold, true),
        }
        false
    }
}

/// Uniform, local and cyclic references, so that every policy sees both hits and evictions.
pub fn streams() -> impl Strategy<Value = Stream> {
    (1u32..60, any::<u64>(), 1usize..1500).prop_map(|(pages, seed, n)| {
        let mut rng = pagelab_reference::rng::Rng::new(seed);
        let mut list: Vec<u32> = Vec::with_capacity(n);
        for i in 0..n {
            let page = match rng.below(3) {
                0 => rng.below(u64::from(pages)) as u32,
                1 => (i as u32) % pages,
                _ => list.get(i.saturating_sub(1 + rng.below(8) as usize)).copied().unwrap_or(0),
            };
            list.push(page);
        }
        Stream::new(pages, list)
    })
}

proptest! {
    #[test]
    fn every_policy_keeps_the_rules_of_demand_paging(stream in streams(), frames in 1u32..70) {
        let future = NextUse::of(stream.pages(), stream.references());
        let distinct = stream.references().iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
        let best = opt_misses(&stream, frames);
        for kind in kinds() {
            let mut policy = kind.build(stream.pages(), frames, Some(&future));
            let mut seen = vec![false; stream.pages() as usize];
            let mut misses = 0;
            let mut previous = None;
            for &page in stream.references() {
                let hit = policy.reference(page);
                prop_assert!(!hit || seen[page as usize], "{}: a first reference hits", kind);
                prop_assert!(hit || previous != Some(page), "{}: a repeated reference misses", kind);
                (seen[page as usize], previous) = (true, Some(page));
                misses += u64::from(!hit);
                if !kind.has_variable_space() {
                    prop_assert!(policy.resident() <= frames as usize, "{}", kind);
                    if policy.contains(page).is_some() {
                        prop_assert_eq!(policy.contains(page), Some(true), "{}", kind);
                    }
                }
            }
            if !kind.has_variable_space() {
                prop_assert!(misses >= best, "{}: {} misses, OPT has {}", kind, misses, best);
                if u64::from(frames) >= distinct {
                    prop_assert_eq!(misses, distinct, "{}: there is room for all", kind);
                }
            }
            let in_one_go = kind.build(stream.pages(), frames, Some(&future)).misses(stream.references());
            prop_assert_eq!(in_one_go, misses);
        }
    }

    #[test]
    fn fifo_lru_and_mru_follow_their_definitions(stream in streams(), frames in 1u32..70) {
        prop_assert_eq!(run(&PolicyKind::Fifo, &stream, frames), listed(&stream, frames, |_, _| {}));
        let lru = listed(&stream, frames, |list, place| {
            let page = list.remove(place);
            list.push(page);
        });
        prop_assert_eq!(lru.iter().filter(|h| !**h).count() as u64, lru_misses(&stream, frames));
        prop_assert_eq!(run(&PolicyKind::Lru, &stream, frames), lru);
        prop_assert_eq!(run(&PolicyKind::Mru, &stream, frames), most_recent(&stream, frames as usize));
    }

    #[test]
    fn clock_sieve_and_lfu_follow_their_definitions(stream in streams(), frames in 1u32..70) {
        for kind in [PolicyKind::Clock, PolicyKind::Sieve, PolicyKind::Lfu] {
            prop_assert_eq!(run(&kind, &stream, frames), marked(&kind, &stream, frames as usize), "{}", kind);
        }
    }

    #[test]
    fn clock_pro_follows_its_definition(stream in streams(), frames in 1u32..70) {
        let frames = frames as usize;
        let mut plain = PlainClockPro { clock: Vec::new(), cold_hand: None, target: frames, frames };
        let plain: Vec<bool> = stream.references().iter().map(|&page| plain.reference(page)).collect();
        prop_assert_eq!(run(&PolicyKind::ClockPro, &stream, frames as u32), plain);
    }

    #[test]
    fn opt_has_the_fewest_misses_of_all_choices(
        references in proptest::collection::vec(0u32..6, 1..14), frames in 1u32..4,
    ) {
        let best = fewest(&references, frames as usize, &mut Vec::new());
        prop_assert_eq!(opt_misses(&Stream::new(6, references), frames), best);
    }

    #[test]
    fn the_working_set_holds_what_the_window_saw(stream in streams(), tau in 1usize..50) {
        let mut policy = PolicyKind::WorkingSet { tau: tau as u64 }.build(stream.pages(), 1, None);
        let all = stream.references();
        let mut sum = 0;
        for (now, &page) in all.iter().enumerate() {
            let hit = policy.reference(page);
            prop_assert_eq!(hit, all[now.saturating_sub(tau)..now].contains(&page));
            let window: std::collections::BTreeSet<_> =
                all[(now + 1).saturating_sub(tau)..=now].iter().collect();
            prop_assert_eq!(policy.resident(), window.len());
            sum += window.len();
        }
        let mean = sum as f64 / all.len() as f64;
        prop_assert!((policy.mean_resident().unwrap() - mean).abs() < 1e-9);
    }
}
