//! GDSF, greedy dual by size and frequency: an object's priority is its requests divided by its bytes, above the priority
//! of the object that went last; the lowest goes, among equals the one requested longest ago.
//!
//! Source: L. Cherkasova, "Improving WWW proxies performance with greedy-dual-size-frequency caching policy", HP Labs
//! technical report HPL-98-69R1, 1998, with equal costs. A new object is in before room is made for it, so that a large one may
//! go at once.

use crate::policy::heap::Heap;

use super::Sized;

/// What an object's requests a byte are multiplied by: libCacheSim's scale, which decides how sums are rounded.
const SCALE: f64 = 1e6;

/// GDSF on a heap.
#[derive(Debug)]
pub(super) struct Gdsf {
    /// By priority and the last request.
    heap: Heap<(f64, u64)>,
    requests: Vec<u32>,
    /// The priority of the object that went last.
    clock: f64,
    now: u64,
}

impl Gdsf {
    pub fn new(objects: u32) -> Self {
        Self { heap: Heap::new(objects), requests: vec![0; objects as usize], clock: 0.0, now: 0 }
    }

    fn rank(&mut self, object: u32, bytes: u64) {
        self.now += 1;
        let priority = self.clock + f64::from(self.requests[object as usize]) * SCALE / bytes as f64;
        self.heap.set(object, (priority, self.now));
    }
}

impl Sized for Gdsf {
    fn grow(&mut self, objects: u32) {
        self.heap.grow(objects);
        self.requests.resize(objects as usize, 0);
    }

    fn hit(&mut self, object: u32, bytes: u64) {
        self.requests[object as usize] = self.requests[object as usize].saturating_add(1);
        self.rank(object, bytes);
    }

    fn enter(&mut self, object: u32, bytes: u64) {
        self.requests[object as usize] = 1;
        self.rank(object, bytes);
    }

    fn evict(&mut self) -> Option<u32> {
        let ((priority, _), object) = self.heap.least()?;
        self.clock = priority;
        self.heap.remove(object);
        Some(object)
    }

    fn enters_first(&self) -> bool {
        true
    }
}
