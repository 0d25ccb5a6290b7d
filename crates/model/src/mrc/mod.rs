//! Miss ratio against memory, and the working set over time.
//!
//! - [`lru`]: exact LRU at every size, in one pass;
//! - [`chunks`]: the same of chunks of time that were read apart;
//! - [`shards`]: the same by spatial sampling, with its error, for streams too large for that;
//! - [`miniature`]: any policy by the same sampling;
//! - [`footprint`]: from the times between references alone, as a check;
//! - any policy at a set of sizes: [`crate::replay::Replays`] with [`sizes`];
//! - [`wss`]: Denning's working set size.

pub mod chunks;
pub mod footprint;
pub mod lru;
pub mod miniature;
pub mod shards;
pub mod wss;

/// Up to `count` (at least 2) sizes from 1 to `pages` frames, both included, in equal steps of the
/// logarithm, without repetition.
pub fn sizes(pages: u32, count: usize) -> Vec<u32> {
    let steps = count.max(2) - 1;
    let top = f64::from(pages.max(1)).ln();
    let mut list: Vec<u32> =
        (0..=steps).map(|i| (top * i as f64 / steps as f64).exp().round() as u32).collect();
    list[steps] = pages.max(1);
    list.dedup();
    list
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn sizes_reach_from_one_frame_to_all_pages() {
        for (pages, count) in [(1, 2), (10, 50), (1000, 10), (u32::MAX, 20)] {
            let list = sizes(pages, count);
            assert_eq!((list[0], *list.last().unwrap()), (1, pages));
            assert!(list.windows(2).all(|w| w[0] < w[1]) && list.len() <= count);
        }
    }
}
