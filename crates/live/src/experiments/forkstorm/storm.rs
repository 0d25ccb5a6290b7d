//! The storm itself, built in or as the published script.

use std::io;
use std::path::Path;
use std::process::{Child as Process, Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use pagelab_experiment::build::Distribution;
use pagelab_experiment::experiments::Forkstorm;
use pagelab_experiment::{Failure, Recorder, Result};
use pagelab_kernel::lifetime::die_with_parent;
use pagelab_kernel::rusage::{self, Usage};

use pagelab_procfs::value;

use super::copy::{self, BEFORE, COMMON, EACH, ENDED, ENDING, FORKING, FORKS, GO, READY, RESIDUAL, STARTED};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::family::{Barrier, Family};
use crate::harness::samples::Samples;

/// Between two samples at a running storm.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Forks of one iteration of the script: a subshell, `cat`, `wc`, the command substitution, `expr`.
const SCRIPT_FORKS: f64 = 5.0;

/// What a storm did.
#[derive(Clone, Debug)]
pub(super) struct StormResult {
    pub(super) elapsed: Duration,
    pub(super) forks: f64,
    /// Of all copies and their children.
    pub(super) used: Usage,
    /// Processor time of the parents in fork(2), ns in all; `None` of a script.
    pub(super) fork_time: Option<f64>,
    /// From fork's return to the child's end as wait(2) gave it, ns in all; `None` of a script.
    pub(super) end_time: Option<f64>,
    /// The times of forks, and of what followed them; `None` of a script.
    pub(super) times: Option<[Distribution; 2]>,
    /// Most page-table memory of the machine beyond what it had before, bytes.
    pub(super) page_tables: Option<f64>,
    /// Pages that a fork copied beyond the experiment's own; `None` of a script, or where not known.
    pub(super) residual: Option<f64>,
}

/// Makes a storm of `forks` forks of each copy, and calls `look` many times a second.
pub(super) fn storm(
    forkstorm: &Forkstorm,
    forks: u32,
    context: &ExecutionContext,
    phase: &'static str,
    recorder: &mut dyn Recorder,
    mut look: impl FnMut(u64),
) -> Result<StormResult> {
    let copies = forkstorm.copies.clamp(1, 4096) as usize;
    if let Some(file) = &forkstorm.script {
        return script(file, forks, copies, phase, recorder, look);
    }
    let barrier = Barrier::new(COMMON + copies * EACH).map_err(failed("making shared memory"))?;
    let cell = |index: usize, n: usize| barrier[COMMON + index * EACH + n].load(Acquire);
    let cells = |n: usize| (0..copies).map(move |index| cell(index, n));
    // Of the copies' forks, and of what followed them, in one mapping: a fork goes through each.
    let times = Samples::new(2 * copies, forks as usize).map_err(failed("making shared memory"))?;
    let mut family = Family::default();
    for index in 0..copies {
        family
            .fork(|| copy::storm(forkstorm, forks, &barrier, &times, [index, copies + index]))
            .map_err(failed(&format!("forking copy {} of {copies}", index + 1)))?;
    }
    while cells(READY).sum::<u64>() < copies as u64 {
        std::thread::sleep(Duration::from_millis(1));
        family.poll().map_err(|lost| lost.error(context))?;
        recorder.check()?;
    }
    let tables_before = page_tables();
    let used = rusage::children();
    let begun = Instant::now();
    barrier[GO].store(1, Release);
    let mut peak: Option<f64> = None;
    let total = u64::from(forks) * copies as u64;
    while family.poll().map_err(|lost| lost.error(context))? > 0 {
        std::thread::sleep(POLL_INTERVAL);
        let done = cells(FORKS).sum::<u64>();
        recorder.progress(phase, done.min(total), total);
        look(done);
        let grown = page_tables().zip(tables_before).map(|(now, before)| (now - before).max(0.0));
        peak = peak.into_iter().chain(grown).reduce(f64::max);
        recorder.check()?;
    }
    let mut used = rusage::children() - used;
    for index in 0..copies {
        let [minor, major, user, system] = [0, 1, 2, 3].map(|n| cell(index, BEFORE + n));
        used = used - Usage { minor, major, user, system, processor: user + system, ..Usage::default() };
    }
    // The first to start says when.
    let (started, ended) = (cells(STARTED).min().unwrap_or(0), cells(ENDED).max().unwrap_or(0));
    let elapsed = match ended.checked_sub(started).filter(|_| started > 0) {
        Some(ns) => Duration::from_nanos(ns),
        None => begun.elapsed(),
    };
    let sum = |n: usize| cells(n).sum::<u64>() as f64;
    let residual = cells(RESIDUAL).max().and_then(|pages| pages.checked_sub(1));
    Ok(StormResult {
        elapsed,
        forks: sum(FORKS),
        used,
        fork_time: Some(sum(FORKING)),
        end_time: Some(sum(ENDING)),
        times: Some([times.those(0..copies), times.those(copies..2 * copies)]),
        page_tables: peak,
        residual: residual.map(|pages| pages as f64),
    })
}

/// Bytes of page tables in the whole machine.
fn page_tables() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    value(&text, "PageTables").map(|bytes| bytes as f64)
}

/// The published script: `$1` iterations over the file `$2`.
const SCRIPT: &str = r#"i=0
while test $i -lt "$1"
do
	( cat "$2" | wc -l )
	i=$(expr $i + 1)
done"#;

/// What ends its own group when pagelab is gone and the other end of its standard input with it: a
/// shell's own children do not die with pagelab.
const GUARD: &str = "cat > /dev/null; kill -s KILL 0";

/// The copies of the script, each in the group of its guard; ended when dropped.
#[derive(Default)]
struct Shells {
    guards: Vec<Process>,
    shells: Vec<Process>,
}

impl Shells {
    /// Starts one more copy. Its guard is there before it, and leads the group in which its pipelines run.
    fn start(&mut self, file: &Path, iterations: u32) -> io::Result<()> {
        use std::os::unix::process::CommandExt;
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", GUARD]);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let guard = guard.spawn()?;
        let group = group(&guard);
        self.guards.push(guard);
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(iterations.to_string()).arg(file);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).process_group(group);
        die_with_parent(&mut shell);
        self.shells.push(shell.spawn()?);
        Ok(())
    }
}

/// The group that `guard` leads, which has its number until the guard is waited for.
fn group(guard: &Process) -> i32 {
    i32::try_from(guard.id()).expect("Linux has fewer processes")
}

impl Drop for Shells {
    fn drop(&mut self) {
        for guard in &self.guards {
            // SAFETY: no pointers; nobody has waited for the guard, so the group is its own.
            unsafe { libc::kill(-group(guard), libc::SIGKILL) };
        }
        for process in self.guards.iter_mut().chain(&mut self.shells) {
            let _ = process.wait();
        }
    }
}

fn script(
    file: &Path,
    iterations: u32,
    copies: usize,
    phase: &'static str,
    recorder: &mut dyn Recorder,
    mut look: impl FnMut(u64),
) -> Result<StormResult> {
    std::fs::File::open(file).map_err(failed(&format!("opening {}", file.display())))?;
    let used = rusage::children();
    let tables_before = page_tables();
    let begun = Instant::now();
    let mut shells = Shells::default();
    for _ in 0..copies {
        shells.start(file, iterations).map_err(failed("starting /bin/sh"))?;
    }
    let mut peak: Option<f64> = None;
    let mut running = copies;
    while running > 0 {
        recorder.progress(phase, (copies - running) as u64, copies as u64);
        std::thread::sleep(POLL_INTERVAL);
        look(0);
        let grown = page_tables().zip(tables_before).map(|(now, before)| (now - before).max(0.0));
        peak = peak.into_iter().chain(grown).reduce(f64::max);
        running = 0;
        for shell in &mut shells.shells {
            match shell.try_wait().map_err(failed("waiting for a shell"))? {
                None => running += 1,
                Some(status) if !status.success() => {
                    return Err(Failure::program("the script", status));
                }
                Some(_) => {}
            }
        }
        recorder.check()?;
    }
    Ok(StormResult {
        elapsed: begun.elapsed(),
        forks: f64::from(iterations) * copies as f64 * SCRIPT_FORKS,
        used: rusage::children() - used,
        fork_time: None,
        end_time: None,
        times: None,
        page_tables: peak,
        residual: None,
    })
}
