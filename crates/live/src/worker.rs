//! The worker process: performs one experiment inside the confinement and reports over a pipe.
//!
//! The load runs in a process of its own so that the memory limit meets nothing but the load, an
//! out-of-memory kill ends the experiment and not pagelab, and the recorder's memory and processor
//! time are not in the figures. The worker is the running executable again, with the hidden argument
//! [`ARGUMENT`]. The job comes as JSON on standard input, messages go out as frames on standard
//! output, standard error is kept for the error message. It dies with its parent (with the
//! parent's thread that started it, which therefore waits for it).

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use pagelab_experiment::experiments::Work;
use pagelab_experiment::{Experiment, Failure, FailureKind, Recorder, Setting};
use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::bare;
use crate::confine::marked;
use crate::message::{Message, Received, Sender, listen};
use crate::perform::perform;
use crate::place::Place;
use crate::wire::WireError;

/// The first argument of a worker process.
pub const ARGUMENT: &str = "__worker";

/// How often the parent asks whether the user wants to end.
const POLL: Duration = Duration::from_millis(50);
/// How long a worker that has closed its end may take to end.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the end of its standard error is waited for once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// How much of the worker's standard error is kept, in bytes.
const STDERR: u64 = 4096;

/// What a worker has to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What to perform.
    pub experiment: Experiment,
    /// Under which conditions.
    pub setting: Setting,
    /// Where.
    pub place: Place,
    /// The process that must be alive for the worker to go on.
    parent: i32,
}

impl Job {
    /// A job of the calling process.
    pub fn new(experiment: Experiment, setting: Setting, place: Place) -> Self {
        Self { experiment, setting, place, parent: getpid().as_raw_nonzero().get() }
    }
}

/// What a program that uses [`crate::Host`] does when its first argument is [`ARGUMENT`].
pub fn worker_main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            let _ = writeln!(std::io::stderr(), "{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> Result<(), String> {
    let text = |e: &dyn std::fmt::Display| format!("worker: {e}");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|e| text(&e))?;
    // Should the machine itself run out of memory after all, the kernel is to end the load first.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let mut job = String::new();
    std::io::stdin().read_to_string(&mut job).map_err(|e| text(&e))?;
    let job: Job = serde_json::from_str(&job).map_err(|e| text(&e))?;
    // The parent may have died before the signal was asked for.
    if getppid().map(Pid::as_raw_nonzero).map(i32::from) != Some(job.parent) {
        return Err("worker: its parent is gone".into());
    }
    // What it starts does not inherit it: its end is the end of the messages.
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(|e| text(&e))?;
    let mut sender = Sender(File::from(output));
    if let Some(root) = &job.place.root {
        root.enter().map_err(|e| format!("worker: the programs' root {}: {e}", root.folder.display()))?;
    }
    let result = perform(&job.experiment, &job.setting, &job.place, &mut sender);
    sender.finish(result).map_err(|e| text(&e))
}

/// How a worker ended that did not say so itself.
#[derive(Debug)]
pub struct Death {
    /// Its exit status.
    pub status: ExitStatus,
    /// What it wrote to standard error, or what was wrong with its messages.
    pub said: String,
}

impl Death {
    /// Whether it was ended by SIGKILL, as the kernel does when memory runs out.
    pub fn by_kill(&self) -> bool {
        self.status.signal() == Some(libc::SIGKILL)
    }

    /// As an error that says how it died.
    pub fn error(&self) -> Failure {
        let said = if self.said.is_empty() { String::new() } else { format!(": {}", self.said) };
        Failure::new(
            FailureKind::WorkerDied { signal: self.status.signal() },
            format!("the worker process ended with {}{said}", self.status),
        )
    }
}

/// Whether the load is forks of the worker's own, of which nothing of the laboratory may be a part, and no other program.
fn forks_itself(experiment: &Experiment) -> bool {
    match experiment {
        Experiment::Forkstorm(forkstorm) => forkstorm.script.is_none(),
        Experiment::Faultscale(faultscale) => faultscale.work == Work::Fork,
        _ => false,
    }
}

/// Why [`run`] did not end well.
#[derive(Debug)]
pub enum RunError {
    /// The worker died without a last message.
    Died(Death),
    /// Anything else.
    Target(Failure),
}

/// Runs `job` in a worker process and forwards everything it sees to `recorder`. The worker and whatever it
/// started have ended when this returns: all have `name` in their environment.
///
/// # Errors
/// See [`RunError`].
pub fn run(job: &Job, name: &str, recorder: &mut dyn Recorder) -> Result<(), RunError> {
    let mut worker = Worker::start(job, name)
        .map_err(|e| RunError::Target(Failure::system("starting the worker process", &e)))?;
    let result = worker.forward(recorder);
    // One that still has work to do is ended at once; one that closed its end is ending by itself,
    // and its own status is wanted.
    let death = worker.end(if result.is_err() { Duration::ZERO } else { TIMEOUT });
    match result {
        Ok(Some(Ok(()))) => Ok(()),
        // What a program said of its failure is part of it.
        Ok(Some(Err(error))) if matches!(error.kind, FailureKind::ProgramFailed { .. }) => {
            Err(RunError::Target(match death.said.is_empty() {
                true => error,
                false => error.because(&std::io::Error::other(death.said)),
            }))
        }
        Ok(Some(Err(error))) => Err(RunError::Target(error)),
        Ok(None) => Err(RunError::Died(death)),
        Err(error) => Err(RunError::Target(error)),
    }
}

struct Worker {
    child: Child,
    name: String,
    messages: Receiver<Received>,
    said: Receiver<String>,
    wire_error: Option<WireError>,
    ended: bool,
}

impl Worker {
    fn start(job: &Job, name: &str) -> std::io::Result<Self> {
        // /proc/self/exe is the running program even after the file was replaced.
        let mut command = Command::new("/proc/self/exe");
        if forks_itself(&job.experiment) {
            let (name, value) = bare::SETTING;
            let others = std::env::var(name).map(|others| others + ":").unwrap_or_default();
            command.env(name, others + value);
        }
        if let Some(root) = &job.place.root {
            command.env("PATH", &root.path);
        }
        let mut child = command
            .arg0("pagelab")
            .arg(ARGUMENT)
            .env(marked::VARIABLE, name)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Out of the terminal's foreground group: Ctrl-C is for the parent to handle.
            .process_group(0)
            .spawn()?;
        let (messages, _) = listen(BufReader::new(child.stdout.take().expect("piped")));
        let mut errors = child.stderr.take().expect("piped");
        let (say, said) = mpsc::channel();
        std::thread::spawn(move || {
            let mut said = Vec::new();
            let _ = errors.by_ref().take(STDERR).read_to_end(&mut said);
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
            let _ = say.send(String::from_utf8_lossy(&said).trim().to_owned());
        });
        let name = name.to_owned();
        let mut worker = Self { child, name, messages, said, wire_error: None, ended: false };
        let mut input = worker.child.stdin.take().expect("piped");
        // A worker that dies at once closes its input; its death is reported, not the closed pipe.
        let _ = serde_json::to_vec(job).map_err(std::io::Error::from).and_then(|job| input.write_all(&job));
        Ok(worker)
    }

    /// Forwards until the last message; `None`: the worker ended without one.
    fn forward(&mut self, recorder: &mut dyn Recorder) -> Result<Option<Result<(), Failure>>, Failure> {
        let mut ended = 0;
        loop {
            if recorder.interrupted() {
                return Err(Failure::interrupted());
            }
            match self.messages.recv_timeout(POLL) {
                Ok(Ok(Some(Message::Observation(observation)))) => recorder.observe(observation)?,
                Ok(Ok(Some(Message::Progress(phase, done, total)))) => recorder.progress(&phase, done, total),
                Ok(Ok(Some(Message::Done))) => return Ok(Some(Ok(()))),
                Ok(Ok(Some(Message::Failed(failure)))) => return Ok(Some(Err(failure))),
                Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Ok(Err(error)) => {
                    self.wire_error = Some(error);
                    return Ok(None);
                }
                // It may have ended while something that it started holds its end of the line.
                Err(RecvTimeoutError::Timeout) if !matches!(self.child.try_wait(), Ok(None)) => {
                    ended += 1;
                    if ended > 1 {
                        return Ok(None);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits for the worker, `timeout` at most, then ends it; collects what is left of it.
    fn end(&mut self, timeout: Duration) -> Death {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.child.kill();
        let status = self.child.wait().expect("a child that nobody else waits for");
        // What it started may go on, and holds its ends of the pipes.
        marked::end(&self.name);
        self.ended = true;
        let said = self.said.recv_timeout(LAST_WORDS).ok();
        let mut said: Vec<String> = said.into_iter().collect();
        said.extend(self.wire_error.take().map(|e| e.to_string()));
        said.retain(|text| !text.is_empty());
        Death { status, said: said.join("; ") }
    }
}

impl Drop for Worker {
    /// Leaves no worker behind when a recorder panics.
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.child.kill();
            let _ = self.child.wait();
            marked::end(&self.name);
        }
    }
}
