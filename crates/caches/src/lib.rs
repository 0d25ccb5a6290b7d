//! Set-associative caches and translation buffers: of `model:tlb`, and of the tracer that counts misses in a machine.
//!
//! [`Sets`] is one buffer, LRU within a set. [`Hierarchy`] is what one core has of them, fed with the addresses of a
//! stream and nothing else: no time, no prefetching, no reads of the tables by walks, no write-backs. Every level keeps
//! what it has fetched, whatever the others drop.

mod hierarchy;
mod sets;

pub use hierarchy::{Geometry, Hierarchy, LINE, Missed, Side};
pub use sets::{Buffer, Sets};
