//! A replacement policy of one's own beside the built-in ones: copy, change the two functions, run with
//! `cargo run --release -p pagelab-model --example policy`.

use std::collections::BTreeMap;

use pagelab_model::policy::PolicyKind;
use pagelab_model::policy::plugged::{Plugged, Replacement};
use pagelab_model::replay::replay;
use pagelab_reference::Pattern;

/// Least recently used: each page by the number of its last reference.
struct Lru {
    frames: usize,
    now: u64,
    last: Vec<u64>,
    by_last: BTreeMap<u64, u32>,
}

impl Lru {
    fn new(pages: u32, frames: u32) -> Self {
        Self { frames: frames as usize, now: 0, last: vec![0; pages as usize], by_last: BTreeMap::new() }
    }

    fn note(&mut self, page: u32) {
        self.now += 1;
        self.last[page as usize] = self.now;
        self.by_last.insert(self.now, page);
    }
}

impl Replacement for Lru {
    fn on_hit(&mut self, page: u32) {
        self.by_last.remove(&self.last[page as usize]);
        self.note(page);
    }

    fn on_miss(&mut self, page: u32) -> Option<u32> {
        let full = self.by_last.len() == self.frames;
        let victim = if full { self.by_last.pop_first() } else { None };
        self.note(page);
        victim.map(|(_, page)| page)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let stream = Pattern::Zipf(0.9).stream(50_000, 1_000_000, 1)?;
    println!("{:>8}  {:>12}  {:>12}  {:>12}", "frames", "own policy", "lru", "opt");
    for frames in [500, 5_000, 25_000] {
        let mut own = Plugged::new(Lru::new(stream.pages(), frames), stream.pages(), frames);
        let own = own.misses(stream.references())?;
        let of = |policy| replay(&stream, &policy, frames).misses;
        let (lru, opt) = (of(PolicyKind::Lru), of(PolicyKind::Opt));
        assert_eq!(own, lru, "this is LRU: equal to the last miss");
        println!("{frames:>8}  {own:>12}  {lru:>12}  {opt:>12}");
    }
    Ok(())
}
