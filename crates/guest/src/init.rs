//! The first process of a guest: mounts, loads modules, performs the job, sends what it sees over the
//! second serial line, and ends the machine.

use pagelab_experiment::environment;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use pagelab_confine::folder::scratch_folder;
use pagelab_experiment::build::warn;
use pagelab_experiment::{
    Experiment, Failure, Observation, Recorder, Request, Result, Setting, Target, warnings,
};
use pagelab_kernel::root::Root;
use pagelab_kernel::{init, port};
use pagelab_live::Host;
use pagelab_live::harness::message::Sender;
use serde::{Deserialize, Serialize};

use crate::quiet::Quiet;
use crate::shell::{Shell, bring_pagelab};

/// Where the job is in the guest. Its presence tells pagelab that it is the first process of a guest.
pub const JOB: &str = "/pagelab/job.json";

/// The name under which the machine hands in the job to a guest that it has stopped, or brought back.
pub const HANDED: &str = "opt/pagelab/job";

/// Where the modules are in the guest.
pub const MODULES: &str = "/pagelab/modules";

/// What it says of itself before the experiment begins.
pub const BOOTING: [&str; 2] = ["booted", "settle"];

/// What a guest has to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What to perform.
    pub experiment: Experiment,
    /// Under which conditions, inside the guest.
    pub setting: Setting,
    /// The names of the modules' files, in the order of loading.
    pub modules: Vec<String>,
    /// The serial line for messages.
    pub line: String,
    /// Whether the guest's clock counts instructions.
    pub counted: bool,
    /// The number of this repetition, from 0.
    pub repetition: u32,
    /// The disk on which to tell the addresses of a load whose instructions the machine counts.
    pub trace_device: Option<String>,
    /// Whether it counts them, 0 or 1: a job is as long either way.
    pub traced: u8,
    /// Where the user's programs are, if any were brought.
    pub root: Option<Root>,
    /// A shell in place of the experiment.
    pub shell: Option<Shell>,
    /// The disk for swap, if there is one.
    pub swap_device: Option<String>,
    /// The disk with a file system for files, if there is one.
    pub files_device: Option<String>,
}

/// What pagelab does as the first process of a guest. Does not return where the machine ends.
pub fn init_main() -> ExitCode {
    init::mount_all();
    if let Err(sentence) = work() {
        eprintln!("pagelab: {sentence}");
    }
    init::restart();
    ExitCode::FAILURE
}

fn work() -> Result<(), String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let job: Job = serde_json::from_slice(&fs::read(JOB).map_err(|e| text(&e))?).map_err(|e| text(&e))?;
    for module in &job.modules {
        if let Err(error) = init::load_module(&Path::new(MODULES).join(module)) {
            eprintln!("pagelab: the module {module}: {error}");
        }
    }
    if let (Some(shell), Some(root)) = (&job.shell, &job.root) {
        let mut root = root.clone();
        mount_below(&root).map_err(|e| text(&e))?;
        bring_pagelab(&mut root).map_err(|e| format!("pagelab in the shell's root: {e}"))?;
        init::shell(&root, &shell.words, &shell.terminal).map_err(|e| format!("the shell: {e}"))?;
        return Ok(());
    }
    let line = init::serial(Path::new(&job.line)).map_err(|e| format!("{}: {e}", job.line))?;
    let mut sender = Sender(line.try_clone().map_err(|e| text(&e))?);
    for phase in BOOTING {
        sender.progress(phase, 0, 1);
    }
    let quiet = Quiet::wait(job.counted);
    // Here the machine may be stopped and kept. Whoever is brought back later has another job.
    let job = if port::park() { handed().unwrap_or(job) } else { job };
    let result = perform(&job, quiet, &mut sender);
    let sent = sender.finish(result).map_err(|e| text(&e));
    init::drain(&line);
    sent
}

/// Mounts the kernel's file systems and the folder for scratch files below `root`.
fn mount_below(root: &Root) -> io::Result<()> {
    init::mount_below(&root.folder, &scratch_folder()?)
}

/// The job that the machine hands in.
fn handed() -> Option<Job> {
    serde_json::from_slice(&port::handed(HANDED)?).ok()
}

fn perform(job: &Job, mut quiet: Quiet, sender: &mut dyn Recorder) -> Result<()> {
    if let Some(device) = &job.files_device {
        match init::mount_files(Path::new(device)) {
            Ok(()) => quiet = Quiet::wait(job.counted),
            Err(error) => eprintln!("pagelab: the disk for files: {error}"),
        }
    }
    if let Some(root) = &job.root {
        mount_below(root)
            .map_err(|e| Failure::system("mounting the kernel's file systems for programs", &e))?;
    }
    let settings = job.experiment.declaration().kernel_settings();
    if settings.iter().any(|file| file.starts_with("/sys/kernel/debug/")) {
        // There the kernel is told how often to look for pages in use; a kernel without it says so.
        let _ = init::mount_debug();
    }
    let host = Host::in_guest(
        job.swap_device.as_deref().map(Path::new),
        job.repetition,
        job.trace_device.as_deref().map(Path::new),
        job.traced,
        job.root.as_ref(),
    );
    // What the kernel of the guest cannot do is found out here, and is a failure of the performance.
    let plan = host.plan(&Request::new(job.experiment.clone(), job.setting.clone()));
    let mut plan = plan.map_err(Failure::from)?;
    if !quiet.calm {
        let busy = warnings::GUEST_BUSY;
        let text = format!("{}, so the figures include its own work; repeat the run", busy.0);
        warn(sender, busy, text)?;
    }
    sender
        .observe(Observation::Environment([(environment::GUEST_QUIET.to_owned(), quiet.proof())].into()))?;
    plan.perform(sender)
}
