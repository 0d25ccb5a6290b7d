//! The goals of a search, and a memory limit with what was measured under it.

/// How much longer a time at full speed may be, as a share.
pub(super) const TOLERANCE: f64 = 0.1;
/// Pages fetched that are no sign of want of memory: beyond those at full speed, by this share and
/// this number.
const MARGIN: (f64, f64) = (0.05, 16.0);
/// The share of a limit up to which it was never met, as far as looks at intervals can tell.
const ROOM: f64 = 0.8;

/// What a limit is to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// At most 1% of the time at full speed is spent in stalls for memory.
    Stall,
    /// At most 10%.
    Slowdown,
    /// The program ends by itself, before it is given up.
    Completion,
}

impl Goal {
    /// All, in the order in which they are searched for.
    pub const ALL: [Self; 3] = [Self::Stall, Self::Slowdown, Self::Completion];

    /// The greatest share of the time at full speed that may be stalled.
    pub(super) fn allowed(self) -> f64 {
        match self {
            Self::Stall => 0.01,
            Self::Slowdown => TOLERANCE,
            Self::Completion => f64::INFINITY,
        }
    }

    /// The names of its figures: enough, and too little.
    pub(super) fn names(self) -> [&'static str; 2] {
        match self {
            Self::Stall => ["memory.needed", "memory.needed.too-little"],
            Self::Slowdown => ["memory.enough", "memory.too-little"],
            Self::Completion => ["memory.completes", "memory.completes.too-little"],
        }
    }
}

/// A memory limit and what was measured under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Bytes.
    pub memory: u64,
    /// Times in ns of the runs that ended by themselves.
    pub times: Vec<f64>,
    /// After how many ns the others were stopped.
    pub stopped: Vec<f64>,
    /// Whether the kernel killed the program for want of memory.
    pub killed: bool,
    /// Pages that the program waited for to be fetched (major faults and reads from a disk), of
    /// each time for which it is known.
    pub fetched: Vec<f64>,
    /// Refaults of each time for which they are known.
    pub refaults: Vec<f64>,
    /// Pages written to swap of each time for which they are known.
    pub written: Vec<f64>,
    /// ns in which some task stalled for memory, of each time for which it is known.
    pub stalled: Vec<f64>,
    /// The most memory charged to the program, bytes, of each time for which it is known.
    pub charged: Vec<f64>,
}

impl Point {
    /// The fastest; infinite where no run ended by itself.
    pub fn time(&self) -> f64 {
        least(&self.times)
    }

    /// Runs that say something about the limit.
    pub(super) fn runs(&self) -> usize {
        self.times.len() + self.stopped.len()
    }

    /// The most charged under it, bytes.
    pub(super) fn peak(&self) -> Option<f64> {
        self.charged.iter().copied().reduce(f64::max)
    }

    /// Whether the program was never charged enough to meet a limit of `memory` bytes.
    pub(super) fn has_room_in(&self, memory: u64) -> bool {
        self.peak().is_some_and(|most| most <= ROOM * memory as f64)
    }
}

/// The least of the `values` beyond `usual`; 0 within the margin, and where nothing is known.
pub(super) fn beyond(values: &[f64], usual: f64) -> f64 {
    let least = least(values);
    if values.is_empty() || least <= usual * (1.0 + MARGIN.0) + MARGIN.1 { 0.0 } else { least - usual }
}

pub(super) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
