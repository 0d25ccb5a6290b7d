//! The target `host`: the running kernel, with the load in a process of its own inside a
//! confinement.

use pagelab_experiment::environment::{
    CGROUP_VERSION, DISK_READ_AHEAD, MEMORY_LIMIT, SWAP_COMPRESSOR, SWAP_KIND, SWAP_SIZE, VM_SWAPPINESS,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pagelab_confine::cgroup::Cgroup;
use pagelab_confine::{Confinement, OwnSwap, SetUp, SwapSource, Turn, read_ahead, recovery, zram};
use pagelab_experiment::build::{note, warn};
use pagelab_experiment::observation::Level;
use pagelab_experiment::setting::Swap;
use pagelab_experiment::{
    Experiment, Failure, Observation, Performer, Recorder, RecorderError, Result, Setting, warnings,
};
use pagelab_kernel::root::Root;
use pagelab_kernel::settings;

use crate::harness::context::ExecutionContext;
use crate::harness::environment::{Entries, entries};
use crate::set_up::{confine, failure, set_up};
use crate::worker::{self, Job, RunError};

/// The running kernel.
#[derive(Clone, Debug, Default)]
pub struct Host {
    pub(crate) swap_device: Option<PathBuf>,
    /// The number of this repetition, in a guest.
    pub(crate) repetition: Option<u32>,
    /// The disk for the addresses of a load that the machine traces, in a guest.
    pub(crate) tracing_disk: Option<PathBuf>,
    /// Whether it does, 0 or 1.
    pub(crate) traced: u8,
    /// Where the user's programs are, in a guest that has brought some.
    pub(crate) root: Option<Root>,
}

impl Host {
    /// The host.
    pub fn new() -> Self {
        Self::default()
    }

    /// The kernel of a guest, from inside it: swap goes to `swap_device`, which is overwritten,
    /// because a guest's files are in memory. Measurements begin at the moment of this
    /// `repetition`; `tracing_disk` is for the addresses of a load that the machine traces, where
    /// `traced` is 1 and not 0; `root` where the user's programs are.
    pub fn in_guest(
        swap_device: Option<&Path>,
        repetition: u32,
        tracing_disk: Option<&Path>,
        traced: u8,
        root: Option<&Root>,
    ) -> Self {
        Self {
            swap_device: swap_device.map(Path::to_owned),
            repetition: Some(repetition),
            tracing_disk: tracing_disk.map(Path::to_owned),
            traced,
            root: root.cloned(),
        }
    }
}

impl Performer for Host {
    fn perform(
        &mut self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        wait_for_recovery(recorder)?;
        let set_up = set_up(experiment, setting, self.swap_device.as_deref())
            .map_err(|(why, remedy)| Failure::unsupported(format!("this kernel {why}"), remedy))?;
        let _turn = turn(&set_up, recorder)?;
        let mut attempt = 1;
        loop {
            let confinement = confine(&set_up)?;
            let mut watched = Watched { recorder, seen: false };
            let performed = self.within(&confinement, &set_up, experiment, setting, &mut watched);
            let nothing_kept = !watched.seen;
            // Seen on kernel 6.18 with version 1: reclaim gives up while other load keeps the disk
            // busy.
            let spurious = confinement.killed_with_swap_left();
            let others = confinement.others_in_swap();
            let changed = confinement.changed_settings();
            for text in changed.into_iter().chain(others).chain(confinement.undo()) {
                from_confine(recorder, &text)?;
            }
            if let (Err(failure), true, true) = (&performed, spurious, nothing_kept)
                && failure.is_out_of_memory()
                && attempt < ATTEMPTS
            {
                let text = format!("{}; the repetition was repeated", warnings::REPEATED.0);
                warn(recorder, warnings::REPEATED, text)?;
                attempt += 1;
                continue;
            }
            return performed;
        }
    }
}

/// Records a warning of `confine`, which declares its own.
fn from_confine(recorder: &mut dyn Recorder, text: &str) -> Result<()> {
    debug_assert!(pagelab_confine::WARNINGS.iter().any(|(words, _)| text.contains(words)), "{text}");
    note(recorder, Level::Warning, text)
}

/// Waits until what killed runs left is removed: it would disturb the measurement, and a setting is
/// not yet the machine's own.
fn wait_for_recovery(recorder: &mut dyn Recorder) -> Result<()> {
    while recovery::under_way() {
        recorder.progress("wait until the leftovers of a killed run are removed", 0, 1);
        recorder.check()?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// Waits for the turn of a run with this `set_up`.
fn turn(set_up: &SetUp, recorder: &mut dyn Recorder) -> Result<Turn> {
    let mut waited = Vec::new();
    let mut poll = |other: &str| {
        if waited.last().is_none_or(|last| last != other) {
            waited.push(other.to_owned());
        }
        recorder.progress(&format!("wait for {other} to end"), 0, 1);
        recorder.interrupted()
    };
    let turn = Turn::wait(set_up, &mut poll).map_err(failure)?;
    for other in waited {
        note(recorder, Level::Info, format!("waited for {other} to end before this one began"))?;
    }
    Ok(turn)
}

/// How often a load is performed that the kernel kills although it could have swapped.
const ATTEMPTS: u32 = 5;

/// Knows whether anything was kept that a second attempt would double.
struct Watched<'a> {
    recorder: &'a mut dyn Recorder,
    seen: bool,
}

impl Recorder for Watched<'_> {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.seen |= !matches!(observation, Observation::Environment(_) | Observation::Note(_));
        self.recorder.observe(observation)
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        self.recorder.progress(phase, done, total);
    }

    fn interrupted(&self) -> bool {
        self.recorder.interrupted()
    }
}

impl Host {
    fn within(
        &self,
        confinement: &Confinement,
        set_up: &SetUp,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        for text in confinement.notes() {
            from_confine(recorder, text)?;
        }
        let cgroup = confinement.cgroup().map(|cgroup| cgroup.path());
        let context = ExecutionContext {
            scratch: confinement.scratch().map(Path::to_owned),
            cgroup: cgroup.map(Path::to_owned),
            memory_stat: cgroup.map(|path| path.join("memory.stat")),
            memory_pressure: confinement.cgroup().and_then(Cgroup::pressure),
            repetition: self.repetition,
            zram: confinement.zram(),
            tracing_disk: self.tracing_disk.clone(),
            traced: self.traced,
            root: self.root.clone(),
            environment: environment(confinement, set_up, setting),
        };
        let job = Job::new(experiment.clone(), setting.clone(), context);
        worker::run(&job, confinement.name(), recorder).map_err(|error| match error {
            RunError::Died(death) => match confinement.out_of_memory() {
                Some(limit) if death.by_kill() => Failure::out_of_memory(limit),
                _ => death.error(),
            },
            RunError::Target(error) => error,
        })
    }
}

/// What is in force around the load, as entries of the environment.
fn environment(confinement: &Confinement, set_up: &SetUp, setting: &Setting) -> Entries {
    let cgroup = confinement.cgroup();
    let kind = match &set_up.swap {
        Some(OwnSwap { source: SwapSource::Zram, .. }) => Some(Swap::Zram),
        Some(_) => Some(Swap::File),
        None => cgroup.filter(|_| set_up.no_swap).map(|_| Swap::None),
    };
    let read_ahead = confinement.scratch().and_then(|path| read_ahead(path.parent()?));
    let mut found = entries([
        (DISK_READ_AHEAD, read_ahead.map(|bytes| bytes.to_string())),
        (MEMORY_LIMIT, set_up.limit.map(|bytes| bytes.to_string())),
        (SWAP_SIZE, kind.map(|_| set_up.swap.as_ref().map_or(0, |swap| swap.bytes).to_string())),
        (SWAP_KIND, kind.map(|kind| kind.to_string())),
        (SWAP_COMPRESSOR, confinement.zram().and_then(zram::compressor)),
        (CGROUP_VERSION, cgroup.map(|cgroup| cgroup.version().to_string())),
        (VM_SWAPPINESS, set_up.cgroup_swappiness.map(|value| value.to_string())),
    ]);
    for file in &setting.set {
        // As the kernel has it now, which need not be as it was written.
        let now = settings::read(Path::new(&file.path)).ok();
        found.extend(now.map(|value| (format!("set {}", file.path), value)));
    }
    found
}
