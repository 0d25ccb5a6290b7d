//! Reference streams: which page is referenced when.
//!
//! A stream is the one thing that every target shares: the running kernel, a guest kernel and a
//! model of a kernel are compared on the same stream, bit for bit. A stream therefore depends on
//! nothing but the pattern, the number of pages, the number of references and the seed: the
//! generator ([`rng`]) and the mathematical functions (the `libm` crate, never the platform's)
//! give the same bits on every machine.

pub mod pattern;
pub mod patterns;
pub mod progress;
pub mod rng;
pub mod room;
pub mod stream;
pub mod trace;

pub use pattern::{Blocks, Pattern, PatternError, Phase};
pub use progress::Stopped;
pub use stream::Stream;
