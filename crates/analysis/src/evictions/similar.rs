//! Compares the evictions of a log with models: by the pages in memory at the same points, by the
//! evicted pages that the model does not have in memory either, and by the order of evictions.

use pagelab_simulation::memory::Memory;
use serde::Serialize;

use super::judge::{Eviction, Judged, Log};
use super::order::{Matching, tau_b};

/// The models that a log is compared with. `random` shows the agreement by chance.
pub const MODELS: [&str; 8] = ["lru", "clock", "2q", "fifo", "arc", "linux-lru", "linux-mglru", "random"];

/// The similarity of a log to a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Similarity {
    /// The model's name.
    pub model: &'static str,
    /// The mean Jaccard index of the two sets of pages in memory: pages in both, divided by pages in
    /// either.
    pub jaccard: f64,
    /// The share of the evicted pages that the model did not have in memory at that time either.
    pub agreed: f64,
    /// The share of the evictions that the model also made: of the same page after the same
    /// reference to it.
    pub matched: f64,
    /// Kendall's tau-b between the times of these evictions in the run and in the model, over pairs
    /// from the same sixtieth of the run. `None` without such pairs.
    pub tau: Option<f64>,
}

impl Similarity {
    /// The model with the most similar order of evictions.
    pub fn by_order(list: &[Self]) -> Option<&Self> {
        let ordered = list.iter().filter_map(|one| Some((one, one.tau?)));
        // Of equal values the first, which has the more similar pages.
        ordered.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(one, _)| one)
    }
}

/// The models, the most similar first, without those that cannot run in so few frames. `write`
/// returns whether the next reference writes.
pub fn similar(log: &Log, judged: &Judged, write: impl Fn() -> Box<dyn FnMut() -> bool>) -> Vec<Similarity> {
    let one = |&model: &&'static str| {
        let memory = match log.arrivals {
            Some(_) => Memory::of_file(model, log.pages, log.frames)?,
            None => Memory::named(model, log.pages, log.frames, log.limit, log.swap)?,
        };
        replay(model, memory, log, judged, write())
    };
    let mut list: Vec<Similarity> = MODELS.iter().filter_map(one).collect();
    list.sort_by(|a, b| b.jaccard.total_cmp(&a.jaccard));
    list
}

fn replay(
    model: &'static str,
    mut memory: Memory,
    log: &Log,
    judged: &Judged,
    mut write: Box<dyn FnMut() -> bool>,
) -> Option<Similarity> {
    let (opening, measured) = log.references.split_at(log.opening);
    opening.iter().try_for_each(|&page| memory.reference(page, true)).ok()?;
    memory.note_evictions();
    let mut matching = Matching::new(log.pages);
    let mut block = 0;
    let (mut evictions, mut samples) = (judged.evictions.as_slice(), judged.samples.iter().peekable());
    let (mut agreed, mut sum) = (0u64, 0.0);
    for made in 0..=measured.len() {
        let together = evictions.iter().take_while(|one| one.reference as usize <= made).count();
        let (now, later) = evictions.split_at(together);
        now.iter().for_each(|one| matching.run_evicts(one.page, block, one.reference));
        agreed += now.iter().filter(|Eviction { page, .. }| !memory.contains(*page)).count() as u64;
        evictions = later;
        while let Some(sample) = samples.next_if(|sample| sample.reference as usize <= made) {
            block += 1;
            sum += jaccard(&sample.present, |page| memory.contains(page), log.pages);
        }
        if let Some(&page) = measured.get(made) {
            matching.reference(page);
            memory.reference(page, write()).ok()?;
            memory.evicted(&mut |gone| matching.model_evicts(gone, made as u32 + 1));
        }
    }
    let matched = matching.finish();
    let share = |part: f64, count: usize| if count > 0 { part / count as f64 } else { f64::NAN };
    Some(Similarity {
        model,
        jaccard: share(sum, judged.samples.len()),
        agreed: share(agreed as f64, judged.evictions.len()),
        matched: share(matched.len() as f64, judged.evictions.len()),
        tau: tau_b(matched),
    })
}

/// The Jaccard index of the two sets.
fn jaccard(present: &[u64], contains: impl Fn(u32) -> bool, pages: u32) -> f64 {
    let (mut both, mut either) = (0u64, 0u64);
    for page in 0..pages {
        let (here, there) = (present[page as usize / 64] >> (page % 64) & 1 != 0, contains(page));
        both += u64::from(here && there);
        either += u64::from(here || there);
    }
    if either > 0 { both as f64 / either as f64 } else { 1.0 }
}
