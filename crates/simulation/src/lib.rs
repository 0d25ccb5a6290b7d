//! From a stream to misses on every core: the only path, and the threads that the models do not
//! have. A [`Source`] is replayed by policies and systems, and measured by curves, by the cheapest
//! way ([`replay()`]): as the trace is read ([`feed`]), or from memory ([`spread`]), within what
//! this machine's memory allows ([`cost`]). [`sampled`] takes a part of the pages, [`sized`]
//! objects of different sizes, [`records`] what a trace tells beside its pages. Of a trace that
//! several machines share each reads a chunk ([`chunks`]). A live stream is simulated
//! as it arrives ([`live`]). [`plugged`] replays a policy that the caller supplies.

pub mod chunks;
pub mod cost;
pub mod feed;
pub mod live;
pub mod memory;
pub mod opening;
pub mod piece;
pub mod plugged;
pub mod records;
pub mod reduced;
pub mod replay;
pub mod sampled;
pub mod sized;
pub mod source;
pub mod spread;
pub mod working_set;

pub use cost::Cost;
pub use replay::{Simulated, Sizes, Wanted, replay};
pub use source::Source;

/// Who waits for the work: is told how far it is, and says when it is to end.
pub trait Watch: Sync {
    /// A part of the work begins, in a few words.
    fn begin(&self, _part: &'static str) {}

    /// The part is this far, from 0 to 1. Called from any thread, every few milliseconds at most.
    fn at(&self, fraction: f64);

    /// Whether the work is to end.
    fn stopped(&self) -> bool;

    /// [`Stopped`] when the work is to end.
    ///
    /// # Errors
    /// When [`Watch::stopped`].
    fn go_on(&self) -> Result<(), Stopped> {
        if self.stopped() { Err(Stopped) } else { Ok(()) }
    }
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
pub use pagelab_reference::Stopped;

/// The stream cannot tell what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unanswerable(pub String);
