//! Models of virtual memory, in virtual time: pure, without clock, system call or hidden randomness.

pub mod clocks;
pub mod conformance;
pub mod locks;
pub mod mrc;
pub mod pagecache;
pub mod paging;
pub mod parameter;
pub mod policy;
pub mod published;
pub mod reduce;
pub mod replay;
pub mod rmap;
pub mod sized;
pub mod sun4;
pub mod systems;
pub mod target;
pub mod tlb;

pub use target::Model;

/// The page size of the modelled processors that have pages of 4 KiB, bytes. A model of another machine
/// has its own.
pub const BASE_PAGE: u64 = 4096;
