//! Time in a guest whose virtual processors move between cores with time stamp counters that are not in
//! step: what a program sees that sleeps a second and reads two clocks.

pub mod guest;

pub use guest::{Binding, Guest, Step};
