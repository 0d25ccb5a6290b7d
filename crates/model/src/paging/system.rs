//! What a system decides: which pages leave memory, and when.

use super::machine::Machine;

/// A second in ns.
pub(crate) const SECOND: u64 = 1_000_000_000;

/// How a page came into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Touched for the first time: a fresh frame.
    New,
    /// Faulted for and read back from swap.
    SwappedIn,
    /// Read with a neighbour that was faulted for; in memory, but not mapped.
    ReadAhead,
}

/// Numbers of [available](System::available) frames.
#[derive(Clone, Copy, Debug, Default)]
pub struct Watermarks {
    /// Frames that only reclaim itself may use; an allocation that would go below waits.
    pub min: u32,
    /// The daemon wakes below this.
    pub low: u32,
    /// The daemon sleeps above this.
    pub high: u32,
}

impl Watermarks {
    /// Those of a zone of so many frames in Linux 2.4: a 128th of it, between 20 and 255 pages, doubled and tripled.
    pub fn linux_2_4(frames: u32) -> Self {
        let min = (frames / 128).clamp(20, 255).min(frames / 8);
        Self { min, low: 2 * min, high: 3 * min }
    }
}

/// A page replacement system. It keeps its lists; the [`Machine`] keeps the pages' state and the time.
///
/// Reclaim frees frames by [`Machine::free`]; a page that is dirty must be cleaned first by
/// [`Machine::write`].
pub trait System {
    /// The frames at which allocations wait and the daemon wakes and sleeps; without any it never wakes.
    fn marks(&self) -> Watermarks {
        Watermarks::default()
    }

    /// Frames that count as free: the free ones, and those that can be had at once.
    fn available(&self, machine: &Machine) -> u32 {
        machine.free_frames()
    }

    /// A page came into memory.
    fn arrived(&mut self, machine: &mut Machine, page: u32, arrival: Arrival);

    /// A page in memory that was not mapped was faulted for.
    fn remapped(&mut self, machine: &mut Machine, page: u32);

    /// The output of a page is complete: it is clean, unless dirtied since.
    fn written(&mut self, _machine: &mut Machine, _page: u32) {}

    /// Turns one frame that counts as available into a free one, where those differ.
    fn surrender(&mut self, _machine: &mut Machine) -> bool {
        false
    }

    /// Whether a fault reads its neighbours in swap, too.
    fn reads_ahead(&self, _machine: &Machine) -> bool {
        true
    }

    /// One pass of the pageout daemon, or the rest of one that waited. Returns how long it sleeps afterwards while
    /// memory is still short, in ns; 0: it goes on at once.
    fn daemon(&mut self, _machine: &mut Machine) -> u64 {
        SECOND
    }

    /// A faulting process found no frame: one pass of reclaim on its own time. Returns how long it
    /// then waits, in ns, besides what it waits for output.
    fn direct(&mut self, machine: &mut Machine) -> u64;

    /// Whether that pass waits in the middle: it goes on, by [`Self::direct`], before the process may look for a frame
    /// again.
    fn unfinished(&self) -> bool {
        false
    }

    /// Whether the daemon waits in the middle of a pass.
    fn busy(&self) -> bool {
        false
    }

    /// Whether a process that needs a frame waits for the end of the daemon's pass.
    fn held_up(&self, _machine: &Machine) -> bool {
        false
    }

    /// Work at fixed intervals, in ns; 0: none.
    fn interval(&self) -> u64 {
        0
    }

    /// That work.
    fn periodic(&mut self, _machine: &mut Machine) {}
}
