//! Time in a guest on cores whose time stamp counters are slow and not in step: what a program sees that sleeps
//! a second and reads two clocks.

pub mod guest;

pub use guest::{Guest, Start, Step};
