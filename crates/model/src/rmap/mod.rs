//! Reverse maps: what it costs to know who maps a page, and what it costs not to.
//!
//! Processes fork, exec, fault and exit over address spaces made of the segments of real programs
//! ([`layout`], [`space`]), following a script ([`script`]) or a storm ([`storm`]). Each change of a page table is told to a
//! reverse map ([`mechanism`]), which counts its own work: atomic operations, cache misses, allocations.
//! [`reclaim`] has the other side: what finding all mappings of a page costs under each. [`kernel`] has
//! what the same calls cost without any. [`interleave`] has the script on several processors at once, with their
//! caches and locks.

pub mod interleave;
pub mod kernel;
pub mod layout;
pub mod mechanism;
pub mod parameters;
pub mod reclaim;
pub mod script;
pub mod space;
pub mod storm;

pub use kernel::KernelCosts;
pub use mechanism::{Costs, Kind, Work};
pub use script::{Script, run};
pub use space::Counts;
pub use storm::Storm;
