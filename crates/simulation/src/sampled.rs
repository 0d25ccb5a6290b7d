//! Curves from a sample of the pages: LRU by its distances (SHARDS), the others by miniature
//! simulation. The stream is not kept; only sampled pages take memory, and sampled references where
//! there are others than LRU.

use anyhow::{Result, bail};
use pagelab_model::mrc::miniature::Miniature;
use pagelab_model::mrc::shards::{Sampling, Shards};
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::A_PAGE;
use pagelab_reference::trace::Reading;

use crate::cost::Cost;
use crate::replay::Sizes;
use crate::{Source, Watch, spread};

/// Another would sample other pages.
pub const SEED: u64 = 1;

/// Bytes by which a sample grows between two checks of the memory that is left.
const STEP: u64 = 64 << 20;

/// What a sample tells.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// References of the stream.
    pub references: u64,
    /// Pages of the stream, estimated.
    pub pages: u64,
    /// The share of the pages that was sampled.
    pub rate: f64,
    /// The sizes.
    pub frames: Vec<u32>,
    /// The miss ratio and its standard error: the policies one after another, each at every size.
    /// `None` where too few sampled pages stand behind it.
    pub ratios: Vec<Option<(f64, f64)>>,
    /// How a recorded stream was read.
    pub reading: Option<Reading>,
}

/// Samples a stream.
///
/// # Errors
/// When the stream cannot be had, no page of it is sampled, the sample takes too much memory, or `watch` stops it.
pub fn sampled(
    source: &Source,
    policies: &[PolicyKind],
    sizes: &Sizes,
    sampling: Sampling,
    watch: &dyn Watch,
) -> Result<Sampled> {
    let others: Vec<&PolicyKind> = policies.iter().filter(|policy| **policy != PolicyKind::Lru).collect();
    let mut shards = Shards::new(sampling, SEED);
    let mut miniature = match sampling {
        Sampling::Rate(rate) if !others.is_empty() => Some(Miniature::new(rate, SEED)),
        _ => None,
    };
    let mut allowed = 0;
    watch.begin("sampling");
    let reading = source.pass(watch, |pages| {
        pages.iter().for_each(|&page| shards.reference(page));
        let mut bytes = shards.bytes();
        if let Some(miniature) = &mut miniature {
            miniature.take(pages);
            bytes += miniature.bytes() + A_PAGE * spread::cores() as u64 * miniature.sampled_pages() as u64;
        }
        if bytes > allowed {
            allowed = bytes + STEP;
            Cost::default().allow(0, 0, allowed)?;
        }
        Ok(())
    })?;
    let curve = shards.curve();
    if curve.sampled_pages == 0 {
        bail!(
            "none of the stream's pages is in a sample of {}\nhint: use a larger share, or --sample-pages",
            curve.rate
        );
    }
    let pages = (curve.sampled_pages as f64 / curve.rate).round() as u64;
    let frames = sizes.of(u32::try_from(pages).unwrap_or(u32::MAX));
    let jobs: Vec<(&PolicyKind, u32)> =
        others.iter().flat_map(|policy| frames.iter().map(move |&frames| (*policy, frames))).collect();
    let simulated = match &miniature {
        Some(miniature) => {
            watch.begin("replaying the sample");
            spread::miniatures(miniature, &jobs, watch)?
        }
        None => Vec::new(),
    };
    let mut simulated = simulated.into_iter();
    let ratio = |policy: &PolicyKind, frames| match policy {
        PolicyKind::Lru => curve.miss_ratio(frames),
        _ => simulated.next().expect("one result for each policy and size"),
    };
    let ratios = each(policies, &frames, ratio);
    Ok(Sampled { references: curve.references, pages, rate: curve.rate, frames, ratios, reading })
}

/// What `of` gives for the policies one after another, each at every size.
fn each<T>(policies: &[PolicyKind], frames: &[u32], mut of: impl FnMut(&PolicyKind, u32) -> T) -> Vec<T> {
    let mut list = Vec::new();
    for policy in policies {
        list.extend(frames.iter().map(|&frames| of(policy, frames)));
    }
    list
}
