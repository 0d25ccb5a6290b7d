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

use pagelab_confine::marked;
use pagelab_experiment::{Experiment, Failure, FailureKind, Recorder, Result, Setting};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::experiments::perform;
use crate::harness::bare;
use crate::harness::context::ExecutionContext;
use crate::harness::descendants;
use crate::harness::marker;
use crate::harness::message::{Message, Received, Sender, listen};
use crate::harness::wire::WireError;

/// The first argument of a worker process.
pub const ARGUMENT: &str = "__worker";

/// How often the parent asks whether the user wants to end.
const POLL: Duration = Duration::from_millis(50);
/// How long a worker that has closed its end may take to end.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the reader of a worker that has ended may take to reach the end of the pipe.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(60);
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
    pub context: ExecutionContext,
    /// The process that must be alive for the worker to go on.
    parent: i32,
}

impl Job {
    /// A job of the calling process.
    pub fn new(experiment: Experiment, setting: Setting, context: ExecutionContext) -> Self {
        Self { experiment, setting, context, parent: getpid().as_raw_nonzero().get() }
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
    if let Some(root) = &job.context.root {
        root.enter().map_err(|e| format!("worker: the programs' root {}: {e}", root.folder.display()))?;
    }
    let result = perform(&job.experiment, &job.setting, &job.context, &mut sender);
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
        if job.experiment.declaration().forks_itself() {
            let (name, value) = bare::SETTING;
            let others = std::env::var(name).map(|others| others + ":").unwrap_or_default();
            command.env(name, others + value);
        }
        if let Some(root) = &job.context.root {
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
        let (messages, _) = listen(BufReader::new(child.stdout.take().expect("piped")))?;
        let mut errors = child.stderr.take().expect("piped");
        let (say, said) = mpsc::channel();
        std::thread::Builder::new().spawn(move || {
            let mut said = Vec::new();
            let _ = errors.by_ref().take(STDERR).read_to_end(&mut said);
            let _ = std::io::copy(&mut errors, &mut std::io::sink());
            let _ = say.send(String::from_utf8_lossy(&said).trim().to_owned());
        })?;
        let name = name.to_owned();
        let mut worker = Self { child, name, messages, said, wire_error: None, ended: false };
        let mut input = worker.child.stdin.take().expect("piped");
        // A worker that dies at once closes its input; its death is reported, not the closed pipe.
        let _ = serde_json::to_vec(job).map_err(std::io::Error::from).and_then(|job| input.write_all(&job));
        Ok(worker)
    }

    /// Forwards until the last message; `None`: the worker ended without one.
    fn forward(&mut self, recorder: &mut dyn Recorder) -> Result<Option<Result<()>>, Failure> {
        let (mut deadline, mut counting) = (None, false);
        loop {
            recorder.check()?;
            let received = match counting {
                true => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => self.messages.recv_timeout(POLL),
            };
            counting = false;
            match received {
                Ok(Ok(Some(Message::Observation(observation)))) => recorder.observe(observation)?,
                Ok(Ok(Some(Message::Progress(phase, done, total)))) => {
                    counting = phase == marker::COUNTING;
                    recorder.progress(&phase, done, total);
                }
                Ok(Ok(Some(Message::Done))) => return Ok(Some(Ok(()))),
                Ok(Ok(Some(Message::Failed(failure)))) => return Ok(Some(Err(failure))),
                Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Ok(Err(error)) => {
                    self.wire_error = Some(error);
                    return Ok(None);
                }
                // The last message may still be in the pipe, or in the hands of a reader that waits for a CPU.
                Err(RecvTimeoutError::Timeout) => match deadline {
                    None if matches!(self.child.try_wait(), Ok(None)) => {}
                    None => {
                        // Whatever else holds the pipe open ends, so that the reader reaches its end.
                        marked::end(&self.name);
                        deadline = Some(Instant::now() + DRAIN_TIMEOUT);
                    }
                    Some(deadline) if Instant::now() > deadline => return Ok(None),
                    Some(_) => {}
                },
            }
        }
    }

    /// Waits for the worker, `timeout` at most, then ends it; collects what is left of it.
    fn end(&mut self, timeout: Duration) -> Death {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.kill();
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

    /// Kills the worker, and first what it started, which it adopts only while it lives. Stopped,
    /// it starts nothing more.
    fn kill(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(Pid::from_child(&self.child), Signal::STOP);
            descendants::kill(self.child.id());
            let _ = self.child.kill();
        }
    }
}

impl Drop for Worker {
    /// Leaves no worker behind when a recorder panics.
    fn drop(&mut self) {
        if !self.ended {
            self.kill();
            let _ = self.child.wait();
            marked::end(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Observations;

    /// A worker that has ended already, and the sending end of its messages.
    fn ended_worker() -> (Worker, mpsc::Sender<Received>) {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let (sender, messages) = mpsc::channel();
        let name = format!("pagelab-{}-ended-worker", std::process::id());
        let said = mpsc::channel().1;
        (Worker { child, name, messages, said, wire_error: None, ended: true }, sender)
    }

    #[test]
    fn a_slow_reader_loses_no_last_message() {
        let (mut worker, sender) = ended_worker();
        let reader = std::thread::spawn(move || {
            std::thread::sleep(10 * POLL);
            sender.send(Ok(Some(Message::Done))).unwrap();
        });
        let last = worker.forward(&mut Observations::default()).unwrap();
        reader.join().unwrap();
        assert_eq!(last, Some(Ok(())));
    }

    #[test]
    fn a_worker_without_a_last_message_has_died() {
        let (mut worker, sender) = ended_worker();
        drop(sender);
        assert_eq!(worker.forward(&mut Observations::default()).unwrap(), None);
    }
}
