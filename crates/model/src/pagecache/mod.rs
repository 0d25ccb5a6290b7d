//! The page cache of Solaris: how a file is read, and who pays when files fill memory.
//!
//! [`path`] has one read through segmap's windows or through segkpm; [`memory`] has free list, cache list
//! and scanner under a file server beside applications; [`segment`] the start of a program that wants a
//! large part of memory at once; [`transfer`] reading a disk by the size of its requests.

pub mod memory;
pub mod parameters;
pub mod path;
pub mod segment;
pub mod transfer;

pub use memory::{Load, Rates, Release};
pub use path::{Costs, Path, Shares};
