//! From a stream to misses on every core: the threads that the models do not have. A trace is fed to policies and
//! curves as it is read ([`feed`]), or replays of a stream in memory are handed out ([`spread`]), within what this
//! machine's memory allows ([`cost`]). Of a trace that several machines share each reads a chunk ([`chunks`]).

pub mod chunks;
pub mod cost;
pub mod feed;
pub mod spread;

pub use cost::Cost;

/// Who waits for the work: is told how far it is, and says when it is to end.
pub trait Watch: Sync {
    /// The work is this far, from 0 to 1. Called from any thread, every few milliseconds at most.
    fn at(&self, fraction: f64);

    /// Whether the work is to end.
    fn stopped(&self) -> bool;
}

/// Nobody waits: the work goes on to its end.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn at(&self, _: f64) {}

    fn stopped(&self) -> bool {
        false
    }
}

/// The [`Watch`] ended the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Stopped;
