//! Paging in virtual time: what whole systems are composed of.
//!
//! A [`Machine`] is one address space over a number of frames, with a swap [`Device`] and a virtual
//! clock; a [`System`] decides which pages leave. The machine knows what any hardware and any swap
//! device know (mapped, young, dirty, in flight); the lists that a system keeps are [`lists::Lists`].
//! Time passes only through named [`Costs`].

pub mod costs;
pub mod device;
pub mod lists;
pub mod machine;
pub mod system;

pub use costs::Costs;
pub use device::Device;
pub use machine::{Machine, OutOfMemory};
pub use system::{Arrival, System, Watermarks};
