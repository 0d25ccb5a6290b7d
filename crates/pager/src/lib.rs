//! The target `pager:POLICY`: real memory, paged in user space by the code of a model's policy.
//!
//! - [`target`] is the target: what it honours, and the performance.
//! - [`engine`] resolves faults: which pages are there, which are kept out of reach, which are stored.
//! - [`program`] runs a program, whose memory is [`remote`].
//! - [`policy`] is a model's policy that also says who goes.
//! - [`mapping`] resolves the faults of a mapping of this process, on a thread of its own.
//! - [`store`] keeps evicted pages, compressed, in memory.
//!
//! The system calls are in `live::userfault`. docs/src/explanation/pager.md says what a policy can
//! know.

pub mod engine;
mod line;
pub mod mapping;
pub mod policy;
pub mod program;
pub mod remote;
pub mod store;
pub mod target;
