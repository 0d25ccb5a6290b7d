//! The storm itself, built in or as the published script.

use std::ffi::CString;
use std::io;
use std::path::Path;
use std::process::{Child as Process, Command, Stdio};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use pagelab_experiment::build::Distribution;
use pagelab_experiment::experiments::{Child, Forkstorm};
use pagelab_experiment::{Failure, Recorder};

use super::{LOOK, NOTHING};
use crate::bare::{self, Arguments};
use crate::clock::{Clock, Monotonic};
use crate::family::{Barrier, Family};
use crate::lifetime::die_with_parent;
use crate::observe::failed;
use crate::place::Place;
use crate::region::{HugePages, Region};
use crate::rusage::{self, Usage};
use crate::samples::{Own, Samples};

/// Forks of one iteration of the script: a subshell, `cat`, `wc`, the command substitution, `expr`.
const SCRIPT_FORKS: f64 = 5.0;

/// What a storm did.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) elapsed: Duration,
    pub(super) forks: f64,
    /// Of all copies and their children.
    pub(super) used: Usage,
    /// In fork(2), as the parents saw it, ns in all; `None` of a script.
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

/// Cells of the barrier: how many copies are ready; whether to go; when the first went. Then for each copy: the
/// nanoseconds in fork, and from there to the child's end; forks made; when it ended; what it had consumed
/// before it went (minor and major faults, user and system time); pages left to its children, and one.
const READY: usize = 0;
const GO: usize = 1;
const COMMON: usize = 8;
const EACH: usize = 16;
const BEFORE: usize = 4;
const RESIDUAL: usize = 8;

/// Makes a storm of `forks` forks of each copy, and calls `look` many times a second.
pub(super) fn storm(
    forkstorm: &Forkstorm,
    forks: u32,
    place: &Place,
    phase: &'static str,
    recorder: &mut dyn Recorder,
    mut look: impl FnMut(u64),
) -> Result<Seen, Failure> {
    let copies = forkstorm.copies.clamp(1, 4096) as usize;
    if let Some(file) = &forkstorm.script {
        return script(file, forks, copies, phase, recorder, look);
    }
    let barrier = Barrier::new(COMMON + copies * EACH).map_err(failed("making shared memory"))?;
    let room = || Samples::new(copies, forks as usize).map_err(failed("making shared memory"));
    let times = [room()?, room()?];
    let mut family = Family::default();
    for index in 0..copies {
        let work =
            || copy(forkstorm, forks, &barrier, times.each_ref().map(|samples| samples.of(index)), index);
        family.fork(work).map_err(failed(&format!("forking copy {} of {copies}", index + 1)))?;
    }
    while barrier[READY].load(Acquire) < copies as u64 {
        std::thread::sleep(Duration::from_millis(1));
        family.poll().map_err(|lost| lost.error(place))?;
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
    }
    let tables_before = page_tables();
    let used = rusage::children();
    let begun = Instant::now();
    barrier[GO].store(1, Release);
    let mut peak: Option<f64> = None;
    let total = u64::from(forks) * copies as u64;
    while family.poll().map_err(|lost| lost.error(place))? > 0 {
        std::thread::sleep(LOOK);
        let done = (0..copies).map(|index| barrier[COMMON + index * EACH + 2].load(Relaxed)).sum::<u64>();
        recorder.progress(phase, done.min(total), total);
        look(done);
        let grown = page_tables().zip(tables_before).map(|(now, before)| (now - before).max(0.0));
        peak = peak.into_iter().chain(grown).reduce(f64::max);
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
    }
    let ended = (0..copies).map(|index| barrier[COMMON + index * EACH + 3].load(Relaxed)).max().unwrap_or(0);
    let cell = |n: usize| {
        (0..copies).map(|index| barrier[COMMON + index * EACH + n].load(Relaxed)).sum::<u64>() as f64
    };
    let mut used = rusage::children() - used;
    for index in 0..copies {
        let before = |n: usize| barrier[COMMON + index * EACH + BEFORE + n].load(Relaxed);
        let [minor, major, user, system] = [0, 1, 2, 3].map(before);
        used = used - Usage { minor, major, user, system, ..Usage::default() };
    }
    let residual = (0..copies).map(|index| barrier[COMMON + index * EACH + RESIDUAL].load(Relaxed)).max();
    let started = barrier[GO + 1].load(Relaxed);
    let elapsed = match ended.checked_sub(started).filter(|_| started > 0) {
        Some(ns) => Duration::from_nanos(ns),
        None => begun.elapsed(),
    };
    Ok(Seen {
        elapsed,
        forks: cell(2),
        used,
        fork_time: Some(cell(0)),
        end_time: Some(cell(1)),
        times: Some(times.map(|samples| samples.all())),
        page_tables: peak,
        residual: residual.and_then(|pages| pages.checked_sub(1)).map(|pages| pages as f64),
    })
}

/// One copy: the exit status.
fn copy(
    forkstorm: &Forkstorm,
    forks: u32,
    barrier: &Barrier,
    [mut fork_times, mut end_times]: [Own<'_>; 2],
    index: usize,
) -> i32 {
    let cell = |n: usize| &barrier[COMMON + index * EACH + n];
    let Ok(left) = bare::keep_all_from_children() else { return 2 };
    let Ok(region) = Region::anonymous(forkstorm.pages.max(1) as usize) else { return 2 };
    let _ = region.advise(HugePages::Forbidden);
    region.populate(|_, _| {});
    let mut arguments = Arguments::new();
    let nothing = CString::new(NOTHING).expect("no zero within");
    arguments.fill(c"/proc/self/exe", c"pagelab", &nothing);
    let child = bare::Child {
        region: &region,
        touch: forkstorm.touch.min(forkstorm.pages) as usize,
        execute: (forkstorm.child == Child::Exec).then_some(&arguments),
    };
    if let Some(pages) = bare::residual(&left) {
        cell(RESIDUAL).store(pages + 1, Relaxed);
    }
    barrier[READY].fetch_add(1, Release);
    while barrier[GO].load(Acquire) == 0 {
        std::thread::sleep(Duration::from_micros(100));
    }
    let before = rusage::thread_up_to_date();
    for (n, value) in [before.minor, before.major, before.user, before.system].into_iter().enumerate() {
        cell(BEFORE + n).store(value, Relaxed);
    }
    let started = Monotonic.now();
    // The first to start says when.
    let _ = barrier[GO + 1].compare_exchange(0, started, Release, Relaxed);
    for _ in 0..forks {
        let before = Monotonic.now();
        let Ok(child) = bare::fork(child) else { return 3 };
        let forked = Monotonic.now();
        let mut status = 0;
        // SAFETY: `status` is writable, the child is ours.
        if unsafe { libc::waitpid(child, &mut status, 0) } != child || status != 0 {
            return 4;
        }
        let ended = Monotonic.now();
        fork_times.keep(forked - before);
        end_times.keep(ended - forked);
        cell(0).fetch_add(forked - before, Relaxed);
        cell(1).fetch_add(ended - forked, Relaxed);
        cell(2).fetch_add(1, Relaxed);
        cell(3).store(ended, Relaxed);
    }
    0
}

/// Bytes of page tables in the whole machine.
fn page_tables() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("PageTables:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok()? * 1024.0)
}

/// The published script: `$1` iterations over the file `$2`.
const SCRIPT: &str = r#"i=0
while test $i -lt "$1"
do
	( cat "$2" | wc -l )
	i=$(expr $i + 1)
done"#;

/// What ends the group `$1` when pagelab is gone and the other end of its standard input with it: a shell's own
/// children do not die with pagelab.
const GUARD: &str = r#"cat > /dev/null; kill -s KILL -- "-$1""#;

/// The copies of the script, each with its guard; ended when dropped.
#[derive(Default)]
struct Shells(Vec<(Process, Process)>);

impl Shells {
    /// Starts one more copy, which leads a group of its own, so that its pipeline can be ended with it.
    fn start(&mut self, file: &Path, iterations: u32) -> io::Result<()> {
        use std::os::unix::process::CommandExt;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(iterations.to_string()).arg(file);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        die_with_parent(&mut shell);
        let mut shell = shell.spawn()?;
        let mut guard = Command::new("/bin/sh");
        guard.args(["-c", GUARD, "sh"]).arg(shell.id().to_string());
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        match guard.spawn() {
            Ok(guard) => self.0.push((shell, guard)),
            Err(error) => {
                let _ = shell.kill().and_then(|()| shell.wait());
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Drop for Shells {
    fn drop(&mut self) {
        for (shell, guard) in &mut self.0 {
            // The guard goes first, with its `cat`: the number of a group that has ended may be another's soon.
            for process in [guard, shell] {
                if let (Ok(None), Ok(group)) = (process.try_wait(), i32::try_from(process.id())) {
                    // SAFETY: no pointers; the group is that of its leader, which has not been waited for.
                    unsafe { libc::kill(-group, libc::SIGKILL) };
                }
                let _ = process.wait();
            }
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
) -> Result<Seen, Failure> {
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
        std::thread::sleep(LOOK);
        look(0);
        let grown = page_tables().zip(tables_before).map(|(now, before)| (now - before).max(0.0));
        peak = peak.into_iter().chain(grown).reduce(f64::max);
        running = 0;
        for (shell, _) in &mut shells.0 {
            match shell.try_wait().map_err(failed("waiting for a shell"))? {
                None => running += 1,
                Some(status) if !status.success() => {
                    return Err(Failure::program("the script", status));
                }
                Some(_) => {}
            }
        }
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
    }
    Ok(Seen {
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
