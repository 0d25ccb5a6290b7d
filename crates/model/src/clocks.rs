//! Time in a guest on cores whose time stamp counters are slow and not in step: what a program sees that sleeps
//! a second and reads two clocks.
//!
//! Its ticks are paced by the counter of the core it is on. Two clocks are kept from them, and the wall clock is held to
//! a time-of-day chip.
//!
//! `gethrtime` is the counter. `gettimeofday` is advanced with it at each tick, and each time its second is
//! full it is held against the chip, which runs by itself and tells whole seconds: two seconds apart it is
//! slewed by at most a sixteenth, more than two and it is set to the chip, and `gethrtime` knows nothing of
//! either. A chip that has not advanced while the counter has by a second and a half is taken for stalled and
//! not looked at again: so a counter that jumps takes both clocks with it for good. A sleep waits for fifteen
//! sixteenths of what is left by the wall clock, in ticks, again until nothing is; one during which the wall
//! clock was set ends at the next of these waits. (Facts from illumos: `clock()`, `tod_validate()`,
//! `hres_tick()`, `timespectohz_adj()`, `cv_waituntil_sig()`.)

use pagelab_experiment::experiments::clock::{Suspicion, suspicions};
use pagelab_reference::rng::Rng;

use crate::parameter::Parameter;
use crate::parameter_table;

/// A host and a guest on it. Times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guest {
    /// Nodes of the host that it may run on.
    pub nodes: u32,
    /// How far the counters of two neighbouring nodes are apart.
    pub between_nodes: f64,
    /// How fast the cores' counters run, as a share of what the guest believes: cores that save power do not
    /// run at their rated clock, and their counters neither.
    pub rate: f64,
    /// How often the virtual processor of the tick moves, a second.
    pub moves: f64,
    /// Whether the guest takes time from the counters; otherwise from a timer of the rated speed that all
    /// cores share.
    pub trusts_counters: bool,
    /// Whether the wall clock is held to the time-of-day chip.
    pub follows_chip: bool,
    /// Between two ticks of its clock: waits end at one.
    pub tick: f64,
    /// A wait is shorter by this share than what is left of a sleep.
    pub shortened: f64,
}

/// The parameters of a host and a guest.
pub const PARAMETERS: &[Parameter<Guest>] = parameter_table! {
    whole "nodes" "" [1.0, 64.0] "host nodes on which the guest may run",
        assumed("the smallest number that has neighbouring nodes"), (nodes);
    number "between-nodes" "s" [0.0, 100000.0] "difference between the counters of two neighbouring nodes",
        fitted("the row of 177 s"), (between_nodes);
    number "rate" "" [0.05, 4.0] "rate of the cores' counters, as a share of the rated clock",
        fitted("the first six rows bound to a node"), (rate);
    number "moves" "/s" [0.0, 100.0] "moves of a virtual CPU between nodes",
        assumed("a few in 18 s; not published"), (moves);
    number "tick" "s" [0.002, 0.1] "tick period", documented("Solaris, 100 Hz"), (tick);
    number "shortened" "" [0.0, 0.9] "share by which a wait is shorter than the remaining time",
        fitted("the rows of 94 ticks; timespectohz_adj shortens parts"), (shortened);
};

/// Where the second hands stand at the first reading, as shares of a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// The wall clock's.
    pub wall: f64,
    /// The chip's, from 0 to 1 (ahead of the wall clock).
    pub chip: f64,
    /// Of the tick.
    pub tick: f64,
}

/// What passed between two readings, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// By the wall clock, `gettimeofday`.
    pub wall: f64,
    /// By the counter, `gethrtime`.
    pub counter: f64,
    /// In truth.
    pub real: f64,
}

impl Step {
    /// What is suspect in it if the sleep was of a second; `slack` more seconds are allowed for the readings
    /// between the two clocks.
    pub fn suspicions(&self, slack: f64) -> Vec<Suspicion> {
        let (shortest, longest) = (self.wall.min(self.counter), self.wall.max(self.counter));
        suspicions(shortest * 1e9, longest * 1e9, 1e9, slack * 1e9)
    }
}

const SECOND: i64 = 1_000_000_000;
/// How long a guest has been up, in seconds; up to twice.
const UP: f64 = 600.0;
/// The program prints between the end of a step and the start of the next.
const PRINTING: i64 = 100_000;
/// The wall clock is slewed by at most this share.
const SLEW: i64 = 16;
/// A chip that stands while the counter advances by more has stalled.
const STALL: i64 = SECOND * 3 / 2;

/// All in ns.
struct State<'a> {
    guest: &'a Guest,
    tick: i64,
    rate: f64,
    node: u32,
    counter: i64,
    wall: i64,
    /// What is left to slew.
    slew: i64,
    /// How often the wall clock was set.
    sets: u32,
    real: f64,
    /// The chip's time at `real` 0.
    chip: i64,
    chip_faulted: bool,
    /// Chip and counter when the chip last advanced.
    seen: (i64, i64),
}

impl Guest {
    /// McDougall's: the distance of counters from his jump, their rate from the first six of his rows that
    /// were bound to a node, the rest assumed.
    pub const UNBOUND: Self = Self {
        nodes: 2,
        between_nodes: 176.229_813,
        rate: 0.419,
        moves: 1.0 / 9.0,
        trusts_counters: true,
        follows_chip: true,
        tick: 0.01,
        shortened: 1.0 / 16.0,
    };

    /// The same bound to a node.
    pub const NODE: Self = Self { nodes: 1, ..Self::UNBOUND };
    /// The same with its counters not used.
    pub const TIMER: Self = Self { trusts_counters: false, ..Self::UNBOUND };

    /// Sleeps a second `steps` times and reads both clocks, on a guest that has been up for ten minutes: long
    /// enough for jumps to have been taken for a stalled chip.
    pub fn steps(&self, steps: u32, seed: u64) -> Vec<Step> {
        let mut rng = Rng::new(seed);
        let start = Start { wall: rng.unit(), chip: rng.unit(), tick: rng.unit() };
        let mut state = self.state(start);
        for _ in 0..(UP * (1.0 + rng.unit()) / self.tick) as u64 {
            state.advance(&mut rng);
        }
        state.sleeps(steps, start, &mut rng)
    }

    /// The same from the first tick of a guest whose clocks agree.
    pub fn steps_from(&self, steps: u32, start: Start, seed: u64) -> Vec<Step> {
        self.state(start).sleeps(steps, start, &mut Rng::new(seed))
    }

    fn state(&self, start: Start) -> State<'_> {
        let ns = |seconds: f64| (seconds * SECOND as f64) as i64;
        let (wall, chip) = (ns(start.wall), ns(start.wall + start.chip));
        State {
            guest: self,
            tick: ns(self.tick).max(1),
            rate: if self.trusts_counters { self.rate } else { 1.0 },
            node: 0,
            counter: 0,
            wall,
            slew: 0,
            sets: 0,
            real: 0.0,
            chip,
            chip_faulted: false,
            seen: (chip / SECOND, 0),
        }
    }
}

impl State<'_> {
    /// The next tick.
    fn advance(&mut self, rng: &mut Rng) {
        let mut passed = self.tick;
        self.real += self.guest.tick / self.rate;
        if self.guest.trusts_counters && rng.unit() < self.guest.moves * self.guest.tick {
            let to = rng.below(u64::from(self.guest.nodes)) as u32;
            // A counter that is behind is not believed; the clocks go on from where they are.
            let ahead = to.saturating_sub(self.node);
            passed += (f64::from(ahead) * self.guest.between_nodes * SECOND as f64) as i64;
            self.node = to;
        }
        let slew = self.slew.clamp(-self.tick / SLEW, self.tick / SLEW);
        let second = self.wall / SECOND;
        self.counter += passed;
        self.wall += passed + slew;
        self.slew -= slew;
        if self.wall / SECOND > second && self.guest.follows_chip {
            self.hold_to_chip();
        }
    }

    fn hold_to_chip(&mut self) {
        let chip = (self.chip + (self.real * SECOND as f64) as i64) / SECOND;
        if chip == self.seen.0 {
            self.chip_faulted |= self.counter - self.seen.1 > STALL;
        } else {
            self.seen = (chip, self.counter);
        }
        let drift = chip - self.wall / SECOND;
        if self.chip_faulted || drift.abs() < 2 {
            return;
        }
        if drift.abs() == 2 {
            self.slew = drift * SECOND;
        } else {
            self.wall = chip * SECOND;
            self.slew = 0;
            self.sets += 1;
        }
    }

    /// The wall clock `since` a tick.
    fn wall_at(&self, since: i64) -> i64 {
        self.wall + since + (since / SLEW).min(self.slew.max(0))
    }

    fn sleeps(&mut self, steps: u32, start: Start, rng: &mut Rng) -> Vec<Step> {
        let mut since = (start.tick * self.tick as f64) as i64;
        let mut found = Vec::with_capacity(steps as usize);
        for _ in 0..steps {
            let before =
                (self.wall_at(since), self.counter + since, self.real + since as f64 / 1e9 / self.rate);
            let (until, sets) = (before.0 + SECOND, self.sets);
            let mut now = before.0;
            while now < until {
                let left = until - now;
                let wait = left - (left as f64 * self.guest.shortened) as i64 + since;
                for _ in 0..(wait + self.tick - 1) / self.tick {
                    self.advance(rng);
                }
                since = 0;
                if self.sets != sets {
                    break;
                }
                now = self.wall;
            }
            let seconds = |ns: i64| ns as f64 / SECOND as f64;
            found.push(Step {
                wall: seconds(self.wall - before.0),
                counter: seconds(self.counter - before.1),
                real: self.real - before.2,
            });
            since = PRINTING;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn guest() -> Guest {
        Guest { rate: 1.0, ..Guest::UNBOUND }
    }

    const START: Start = Start { wall: 0.5, chip: 0.1, tick: 0.0 };

    #[test]
    fn a_sleep_of_a_true_clock_lasts_a_second_and_a_tick_less_what_was_slept_in() {
        let cases =
            [Guest { between_nodes: 0.0, ..guest() }, Guest { rate: 1.0, ..Guest::NODE }, Guest::TIMER];
        for guest in cases {
            for step in &guest.steps(100, 1)[1..] {
                assert!((step.wall - 1.0099).abs() < 1e-6, "{step:?}");
                assert!((step.counter - step.wall).abs() < 1e-9 && (step.real - step.wall).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_guest_that_moves_between_nodes_jumps_forward_with_both_clocks_for_good() {
        let steps = guest().steps(200, 1);
        let longest = steps.iter().map(|s| s.counter).fold(0.0, f64::max);
        assert!(longest > 170.0, "{longest}");
        assert!(steps.iter().all(|step| (step.wall - step.counter).abs() < 1e-9));
    }

    #[test]
    fn a_slow_counter_is_slewed_at_two_seconds_and_set_beyond() {
        // Twice as slow: each second of the wall clock the chip gains one.
        let slow = Guest { rate: 0.5, ..Guest::NODE };
        let steps = slow.steps_from(4, START, 1);
        let gains: Vec<f64> = steps.iter().map(|step| step.wall - step.counter).collect();
        // The chip began 0.1 s ahead: the wall clock's third second ends two seconds behind it.
        assert!(gains[0].abs() < 1e-9 && gains[1].abs() < 1e-9, "{gains:?}");
        assert!(gains[2] > 0.02 && gains[2] < 0.04, "{gains:?}");
        assert!(gains[3] > 2.0, "{gains:?}");
        // A sleep in which the clock was set ends with the wait of fifteen sixteenths: 94 ticks.
        assert!((steps[3].counter - 0.9399).abs() < 1e-6, "{steps:?}");
    }

    #[test]
    fn a_chip_that_stands_while_the_counter_jumps_is_not_followed_any_more() {
        let guest = guest();
        let mut state = guest.state(START);
        state.counter += 100 * SECOND;
        state.wall += 100 * SECOND;
        state.hold_to_chip();
        assert!(state.chip_faulted && state.wall / SECOND == 100);
    }

    proptest! {
        #[test]
        fn the_counter_never_goes_backwards(seed: u64, between_nodes in 0.0f64..500.0, rate in 0.1f64..2.0) {
            for nodes in [1, 2] {
                let guest = Guest { between_nodes, rate, nodes, ..guest() };
                for step in guest.steps(10, seed) {
                    prop_assert!(step.counter > 0.0 && step.real > 0.0);
                }
            }
        }
    }
}
