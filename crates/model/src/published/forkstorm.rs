//! `forkstorm` on the reverse maps: the published script, and the built-in storm.

use pagelab_experiment::build::{Sheet, metrics, note};
use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::tables::operations;
use pagelab_experiment::{Failure, Recorder};

use crate::parameter::{Parameter, Parts, SEED, Seed};
use crate::parameter_table;
use crate::rmap::{self, KernelCosts, Kind, Script, Storm, storm};

/// A quad Pentium III with a kernel of one kind of reverse map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    kind: Kind,
    costs: rmap::Costs,
    kernel: KernelCosts,
    programs: Programs,
    seed: Seed,
}

/// The user side: the programs' time and the CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Programs {
    /// User time per fork of the script, including its share of shell and programs, in ns.
    user: f64,
    processors: u32,
}

const PROGRAMS: &[Parameter<Programs>] = parameter_table! {
    number "user" "ns" [0.0, 1e9] "user time per fork of the script, including its share of shell and programs",
        derived("43.01 s for 25,000 forks"), (user);
    whole "processors" "" [1.0, 1024.0] "CPUs of the machine", documented("Morton 2002"), (processors);
};

impl Machine {
    pub(super) const fn of(kind: Kind) -> Self {
        Self {
            kind,
            costs: rmap::Costs::QUAD_PENTIUM_III,
            kernel: KernelCosts::QUAD_PENTIUM_III,
            programs: Programs { user: 43.01e9 / 25_000.0, processors: 4 },
            seed: Seed(1),
        }
    }

    pub(super) fn parts(&mut self) -> Parts<'_> {
        Parts::default()
            .and(PROGRAMS, &mut self.programs)
            .and(rmap::parameters::KERNEL, &mut self.kernel)
            .and(rmap::parameters::COSTS, &mut self.costs)
            .and(SEED, &mut self.seed)
    }
}

/// The script or the storm.
pub(super) fn perform(
    machine: &Machine,
    forkstorm: &Forkstorm,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let Machine { kind, costs, kernel, programs, seed } = *machine;
    let pages = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let memory = match forkstorm.script {
        // The file is not read: its size is not part of the model.
        Some(_) => rmap::run(
            &Script {
                instances: forkstorm.copies,
                iterations: forkstorm.forks,
                ..Script::published(forkstorm.copies)
            },
            seed.0,
        ),
        None => storm::run(
            &Storm {
                copies: forkstorm.copies,
                forks: forkstorm.forks,
                pages: pages(forkstorm.pages),
                touch: pages(forkstorm.touch),
                exec: forkstorm.child == Child::Exec,
            },
            seed.0,
        ),
    };
    let work = memory.work(kind);
    let counts = &memory.counts;
    let names = ["forks", "execs", "copy_page_range", "do_no_page", "do_wp_page", "adds", "removes"];
    let values = [
        counts.forks,
        counts.execs,
        counts.copy_page_range,
        counts.do_no_page,
        counts.do_wp_page,
        counts.adds(),
        counts.removes(),
    ];
    let absent = [operations::FUNCTION, operations::EACH_FAULT];
    let mut sheet = Sheet::without(operations::TABLE, &absent);
    let work_names = ["reverse map: operations", "atomic operations", "cache misses", "allocations"];
    let work_values = [work.operations, work.atomics, work.misses, work.slab];
    for (name, value) in names.into_iter().zip(values).chain(work_names.into_iter().zip(work_values)) {
        sheet.named([name], [value as f64, value as f64 / counts.forks as f64].map(Some));
    }
    sheet.record(recorder)?;
    let forks = counts.forks as f64;
    let map = costs.time(&work);
    let system = kernel.time(counts) + map;
    // What the storm's own program does is not known; nearly all its time is the kernel's.
    let user = forkstorm.script.is_some().then_some(forks * programs.user);
    let elapsed = (system + user.unwrap_or(0.0)) / f64::from(programs.processors.min(forkstorm.copies));
    let figures = [
        (metrics::TIME_ELAPSED, Some(elapsed)),
        (metrics::TIME_USER, user),
        (metrics::TIME_SYSTEM, Some(system)),
        (metrics::FAULTS_MINOR, Some((counts.do_no_page + counts.do_wp_page) as f64)),
        (metrics::FORKS_RATE, Some(forks / elapsed * 1e9)),
        (metrics::FORK_SYSTEM, Some(system / forks)),
    ];
    metrics(recorder, figures)?;
    note(
        recorder,
        Level::Info,
        format!(
            "times are those of a quad Pentium III, by the published profile; of the system time the reverse map is {:.1}%",
            100.0 * map / system
        ),
    )
}
