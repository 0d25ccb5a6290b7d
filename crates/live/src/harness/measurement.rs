//! The measurement harness: what every experiment on the running kernel is measured with, beside
//! its own figures.
//!
//! An experiment opens the harness, joins its place's limit, begins, performs, and finishes;
//! between begin and finish nothing is allocated by it. Then it records what was measured.
//!
//! | measured | from |
//! |---|---|
//! | environment | the machine, its caches and TLBs, the place; the share of processor time stolen meanwhile |
//! | kernel counters | every one of `/proc/vmstat` and the cgroup's `memory.stat` |
//! | swap traffic, stalled time | the cgroup's where it counts them, else the machine's |
//! | microstates | task statistics of the experiment's threads ([`crate::harness::microstates`]) |

use pagelab_experiment::environment::STEAL_SHARE;
use std::time::Instant;

use pagelab_experiment::build::{Figure, note};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Counter, Level};
use pagelab_experiment::{Observation, Recorder, Result};
use pagelab_kernel::files::{Stall, SwapTraffic};
use pagelab_kernel::rusage::Usage;

use crate::harness::context::ExecutionContext;
use crate::harness::counters::{CGROUP, Counters, MACHINE};
use crate::harness::environment::{self, Steal};
use crate::harness::microstates::{Microstates, Whose};
use crate::harness::phase;
use crate::harness::processor;
use crate::harness::scans;

/// Instruments that are open, and what they showed at the start.
#[derive(Debug)]
pub struct Harness {
    steal: Option<Steal>,
    counters: Counters,
    swap: Option<SwapTraffic>,
    stall: Option<Stall>,
    states: Option<Microstates>,
    before: Readings,
    begun: Instant,
    repetition: Option<u32>,
}

/// What is read at the start and at the end.
#[derive(Clone, Copy, Debug, Default)]
struct Readings {
    swap: Option<(u64, u64)>,
    stalled: Option<u64>,
}

impl Harness {
    /// Records the environment, and opens everything.
    ///
    /// # Errors
    /// When the environment cannot be kept.
    pub fn open(context: &ExecutionContext, recorder: &mut dyn Recorder) -> Result<Self> {
        let mut facts = environment::machine();
        facts.extend(environment::geometry());
        facts.extend(context.environment.clone());
        recorder.observe(Observation::Environment(facts))?;
        Ok(Self {
            steal: None,
            counters: Counters::open(context.memory_stat.as_deref()),
            swap: SwapTraffic::open(context.memory_stat.as_deref()),
            stall: Stall::open(context.memory_pressure.as_deref()),
            states: None,
            before: Readings::default(),
            begun: Instant::now(),
            repetition: context.repetition,
        })
    }

    /// Begins to watch the tasks of the experiment too; to be called before they are started.
    pub fn watch_tasks(&mut self) {
        self.states = Some(Microstates::start());
    }

    /// Reads everything for the first time.
    pub fn begin(&mut self) {
        phase::wait(self.repetition);
        self.steal = Steal::start();
        self.counters.before();
        self.before = self.read();
        self.begun = Instant::now();
    }

    /// When it began.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Pages read from swap and written to it since boot.
    pub fn swap(&mut self) -> Option<(u64, u64)> {
        self.swap.as_mut().and_then(SwapTraffic::read)
    }

    /// The same at the start.
    pub fn swap_before(&self) -> Option<(u64, u64)> {
        self.before.swap
    }

    /// Takes what the kernel has queued; to be called now and then while many tasks end.
    pub fn poll(&mut self) {
        if let Some(states) = &mut self.states {
            states.poll();
        }
    }

    fn read(&mut self) -> Readings {
        Readings { swap: self.swap(), stalled: self.stall.as_mut().and_then(Stall::read) }
    }

    /// Reads everything for the last time.
    pub fn finish(mut self) -> Measured {
        let after = self.read();
        let counters = self.counters.after();
        let grown = |a: u64, b: u64| b.saturating_sub(a);
        Measured {
            stolen: self.steal.as_mut().and_then(Steal::share),
            counters,
            swap: self.before.swap.zip(after.swap).map(|(a, b)| (grown(a.0, b.0), grown(a.1, b.1))),
            swap_of_machine: self.swap.is_some_and(|s| s.whole_machine),
            stalled: self.before.stalled.zip(after.stalled).map(|(a, b)| grown(a, b)),
            stall_of_machine: self.stall.is_some_and(|s| s.whole_machine),
            states: self.states,
        }
    }
}

/// What was measured between begin and finish.
#[derive(Debug)]
pub struct Measured {
    /// The share of the processors' time that the hypervisor took.
    pub stolen: Option<f64>,
    /// The kernel's counters.
    pub counters: Vec<Counter>,
    /// Pages read from swap and written to it.
    pub swap: Option<(u64, u64)>,
    /// Whether other programs' swap traffic is counted too.
    swap_of_machine: bool,
    /// Time in which some task waited for memory, ns.
    pub stalled: Option<u64>,
    stall_of_machine: bool,
    states: Option<Microstates>,
}

impl Measured {
    /// Records the counters and the stolen share.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn record(&self, recorder: &mut dyn Recorder) -> Result<()> {
        let stolen = self.stolen.map(|share| format!("{share:.4}"));
        recorder.observe(Observation::Environment(environment::entries([(STEAL_SHARE, stolen)])))?;
        Ok(recorder.observe(Observation::Counters(self.counters.clone()))?)
    }

    /// Stalled time and this swap traffic, in and out, as figures.
    pub fn pressure(&self, swap: Option<(u64, u64)>) -> [Figure; 3] {
        [
            (metrics::TIME_STALLED, self.stalled.map(|v| v as f64)),
            (metrics::SWAP_IN, swap.map(|s| s.0 as f64)),
            (metrics::SWAP_OUT, swap.map(|s| s.1 as f64)),
        ]
    }

    /// Remarks on figures that are the whole machine's and not 0.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn note_scope(&self, recorder: &mut dyn Recorder) -> Result<()> {
        if self.swap_of_machine && self.swap.is_some_and(|s| s != (0, 0)) {
            note(
                recorder,
                Level::Info,
                "swap traffic is that of the whole machine (/proc/vmstat), because this kernel does not \
                count it per cgroup; keep other programs idle",
            )?;
        }
        if self.stall_of_machine && self.stalled.is_some_and(|ns| ns > 0) {
            note(
                recorder,
                Level::Info,
                "the time stalled on memory is that of the whole machine (/proc/pressure/memory): only \
                cgroup version 2 counts it per cgroup",
            )?;
        }
        Ok(())
    }

    /// Records where the tasks' time went, where they were watched; `lock`: the share of it that
    /// waited for locks of the kernel, where the experiment knows it.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn states(&mut self, whose: Whose, lock: Option<f64>, recorder: &mut dyn Recorder) -> Result<()> {
        self.states.take().map_or(Ok(()), |states| states.report(whose, lock, recorder))
    }

    /// The greatest resident set of any one task that ended, bytes, where they were watched and the
    /// kernel tells.
    pub fn peak(&mut self) -> Option<u64> {
        self.states.as_mut().and_then(Microstates::peak)
    }

    /// The share of user mode in the samples of all descendants that ended together; `None` where
    /// not known.
    pub(crate) fn user_share(&mut self) -> Option<f64> {
        self.states.as_mut().and_then(Microstates::user_share)
    }

    /// Processor time of children that were waited for, as figures. Most are shorter than a tick
    /// and the kernel parts each by itself, so they are parted as all samples together: where tasks
    /// were watched.
    pub(crate) fn processor_of_children(&mut self, used: &Usage) -> [Figure; 3] {
        match self.states.as_mut().filter(|states| states.listens()) {
            Some(_) => processor::figures_by(used, self.user_share()),
            // Short ones that no tick met are in user mode whole.
            None if used.system == 0 => processor::figures_by(used, None),
            None => processor::figures(used),
        }
    }

    /// What reclaim scanned and took, and refaults, as figures.
    pub fn scans(&self) -> impl Iterator<Item = Figure> + use<> {
        scans::METRICS.into_iter().zip(scans::over(&self.counters))
    }
}

/// Refaults whose counter's name begins with `name`: the cgroup's where its `memory.stat` counts
/// them, else the machine's.
pub fn refaults(counters: &[Counter], name: &str) -> Option<f64> {
    let of = |source: &str| {
        let own = counters.iter().filter(|c| c.source == source && c.name.starts_with(name));
        own.map(|c| (c.after - c.before) as f64).reduce(|a, b| a + b)
    };
    of(CGROUP).or_else(|| of(MACHINE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refaults_are_the_cgroups_where_it_counts_them() {
        let counter = |source: &str, name: &str, after| Counter {
            source: source.into(),
            name: name.into(),
            before: 1,
            after,
        };
        let machine = counter(MACHINE, "workingset_refault_file", 10);
        assert_eq!(refaults(std::slice::from_ref(&machine), "workingset_refault"), Some(9.0));
        let own = [machine, counter(CGROUP, "workingset_refault_anon", 3)];
        assert_eq!(refaults(&own, "workingset_refault"), Some(2.0));
        assert_eq!(refaults(&own, "workingset_refault_file"), Some(9.0));
        assert_eq!(refaults(&[], "workingset_refault"), None);
    }
}
