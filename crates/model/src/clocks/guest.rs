//! The guest: a tick on one virtual processor keeps the base of time from the counter of the core it is
//! on, and a reading adds what the counter of the reader's core has advanced since.
//!
//! A counter that is ahead of the tick's is believed: time jumps forward. One that is behind is not: time
//! stands until it has caught up. So no clock ever goes backwards, and lost time is never given back.

use pagelab_experiment::experiments::clock::{Suspicion, suspicions};
use pagelab_reference::rng::Rng;

/// Where the host lets virtual processors run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// On every core.
    None,
    /// On the cores of one node.
    Node,
    /// On one core each time.
    Core,
}

/// A host and a guest on it. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guest {
    /// Nodes of the host.
    pub nodes: u32,
    /// Cores of a node.
    pub cores: u32,
    /// Virtual processors.
    pub processors: u32,
    /// How far the counters of two neighbouring nodes are apart.
    pub between_nodes: f64,
    /// How far those of a node are apart at most.
    pub within_node: f64,
    /// How often a virtual processor moves, a second.
    pub moves: f64,
    /// Where it may move.
    pub binding: Binding,
    /// Whether the guest takes time from the counters; otherwise from a timer that all cores share.
    pub trusts_counters: bool,
    /// Seconds between two ticks of its clock: sleeps end at one.
    pub tick: f64,
}

/// What passed between two readings, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// By the wall clock, `gettimeofday`.
    pub wall: f64,
    /// By the counter, `gethrtime`.
    pub counter: f64,
}

impl Step {
    /// What is suspect in it if the sleep was of a second; `slack` more seconds are allowed for the readings
    /// between the two clocks.
    pub fn suspicions(&self, slack: f64) -> Vec<Suspicion> {
        let (shortest, longest) = (self.wall.min(self.counter), self.wall.max(self.counter));
        suspicions(shortest * 1e9, longest * 1e9, 1e9, slack * 1e9)
    }
}

/// Between the two readings of one step.
const BETWEEN: f64 = 17e-6;

struct State<'a> {
    guest: &'a Guest,
    offsets: Vec<f64>,
    on: Vec<usize>,
    base: f64,
    last: f64,
    latest: f64,
}

impl Guest {
    /// McDougall's: distances of counters from his jumps, the rest assumed.
    pub const UNBOUND: Self = Self {
        nodes: 2,
        cores: 2,
        processors: 2,
        between_nodes: 176.159_813,
        within_node: 0.070_674,
        moves: 1.0 / 9.0,
        binding: Binding::None,
        trusts_counters: true,
        tick: 0.01,
    };

    /// Sleeps a second `steps` times and reads both clocks.
    pub fn steps(&self, steps: u32, seed: u64) -> Vec<Step> {
        let mut rng = Rng::new(seed);
        let offsets: Vec<f64> = (0..self.nodes * self.cores)
            .map(|core| f64::from(core / self.cores) * self.between_nodes + rng.unit() * self.within_node)
            .collect();
        let on = (0..self.processors).map(|_| rng.below(u64::from(self.allowed())) as usize).collect();
        let mut state = State { guest: self, offsets, on, base: 0.0, last: 0.0, latest: 0.0 };
        state.last = state.counter(0, 0.0);
        let mut ticks = 0u64;
        let mut before = state.read(&mut rng, 0.0);
        let mut found = Vec::new();
        for _ in 0..steps {
            // A sleep ends at the first tick after its second is over.
            let start = ticks;
            while (ticks - start) as f64 * self.tick < 1.0 + self.tick * 0.5 {
                ticks += 1;
                state.tick(&mut rng, ticks as f64 * self.tick);
            }
            let late = rng.unit() * 0.5e-3;
            let after = state.read(&mut rng, ticks as f64 * self.tick + late);
            found.push(Step { wall: after.wall - before.wall, counter: after.counter - before.counter });
            before = after;
        }
        found
    }

    fn allowed(&self) -> u32 {
        match self.binding {
            Binding::None => self.nodes * self.cores,
            Binding::Node => self.cores,
            Binding::Core => 1,
        }
    }
}

impl State<'_> {
    fn counter(&self, processor: usize, now: f64) -> f64 {
        if self.guest.trusts_counters { now + self.offsets[self.on[processor]] } else { now }
    }

    fn tick(&mut self, rng: &mut Rng, now: f64) {
        for processor in 0..self.on.len() {
            if rng.unit() < self.guest.moves * self.guest.tick {
                self.on[processor] = rng.below(u64::from(self.guest.allowed())) as usize;
            }
        }
        let counter = self.counter(0, now);
        self.base += (counter - self.last).max(0.0);
        self.last = counter;
    }

    /// Both clocks, one after the other, on whichever virtual processor the program runs.
    fn read(&mut self, rng: &mut Rng, now: f64) -> Step {
        let processor = rng.below(u64::from(self.guest.processors)) as usize;
        let mut at = |now: f64| {
            let since = (self.counter(processor, now) - self.last).max(0.0);
            self.latest = self.latest.max(self.base + since);
            self.latest
        };
        Step { wall: at(now), counter: at(now + BETWEEN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guest() -> Guest {
        Guest {
            nodes: 2,
            cores: 4,
            processors: 2,
            between_nodes: 176.0,
            within_node: 0.06,
            moves: 0.2,
            binding: Binding::None,
            trusts_counters: true,
            tick: 0.01,
        }
    }

    #[test]
    fn in_step_or_bound_or_by_a_timer_time_is_true() {
        let cases = [
            Guest { between_nodes: 0.0, within_node: 0.0, ..guest() },
            Guest { binding: Binding::Core, ..guest() },
            Guest { trusts_counters: false, ..guest() },
        ];
        for guest in cases {
            for step in guest.steps(100, 1) {
                assert!((step.wall - 1.01).abs() < 0.001, "{step:?}");
                assert!((step.counter - step.wall).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_guest_that_moves_between_nodes_jumps_forward() {
        let longest = guest().steps(200, 1).iter().map(|s| s.counter).fold(0.0, f64::max);
        assert!(longest > 170.0, "{longest}");
    }

    proptest! {
        #[test]
        fn no_clock_goes_backwards(seed: u64, between_nodes in 0.0f64..500.0, within_node in 0.0f64..2.0) {
            for binding in [Binding::None, Binding::Node] {
                let guest = Guest { between_nodes, within_node, binding, ..guest() };
                for step in guest.steps(40, seed) {
                    prop_assert!(step.wall >= 0.0 && step.counter >= 0.0);
                }
            }
        }
    }
}
