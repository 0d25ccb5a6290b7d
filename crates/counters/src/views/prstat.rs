//! Solaris' `prstat -m` on Linux: in which state each process or thread spent the interval.
//!
//! USR and SYS are Δrun_time of schedstat, which is exact, split as Δutime to Δstime, which are not. LAT is
//! Δrun_delay of schedstat. DFL is delay accounting: max(swap-in, thrashing) + direct reclaim + compaction +
//! copy on write. [`described`] has the meaning of every column.
//!
//! What schedstat and the switches of a process's threads say, the kernel's task statistics say of the whole process in
//! one answer ([`Account`]): where they can be asked, no thread's file is read.
//!
//! What is traced is counted only while somebody does ([`Traced`]); a dash else.
//!
//! Shares are of the interval, or of the time since the task's birth where that is shorter; a process's are of
//! the sum of its threads' times. Linux's delays run from the clock when a task enters the state until it leaves
//! it, time on the CPU included (direct reclaim is mostly that), so USR + SYS + DFL + LAT may exceed
//! 100. Swap-in and thrashing overlap where the swap device answers at once, hence the maximum: a
//! lower bound. A page of code that is wanted again soon after it was evicted counts as thrashing in
//! DFL and, where traced, in TFL. Waiting for the swap-in of a page that was not in the working set is in
//! [`Row::block_io`] alone.

mod describe;
mod ended;
mod lines;

use std::cmp::Ordering;
use std::collections::HashMap;

use serde::Serialize;

pub use describe::describe;
pub use ended::{Ended, Exit, ended};
pub use lines::{described, microstate_heading, size, summary_heading};

use crate::Sample;
use crate::select::Selection;
use crate::tree::{Snapshot, of_group, text_of_group};

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&[THREADS, SWITCHES, PROCESSES_IN_FULL, "process:::cgroup", FORKS, UPTIME])
}

/// What to read for the lines of text: no cgroups, and switches only for microstates. Each of these
/// is a file per task.
pub fn selection_of_lines(microstates: bool) -> Selection {
    let switches = microstates.then_some(SWITCHES);
    let operands = [THREADS, PROCESSES_IN_FULL, FORKS, UPTIME];
    super::constant(&operands.into_iter().chain(switches).collect::<Vec<_>>())
}

const THREADS: &str = "thread:::/^(pid|start|utime|stime|minor_faults|major_faults|run_time|run_delay)$/";
const SWITCHES: &str = "thread:::/^(voluntary_switches|involuntary_switches)$/";
const PROCESSES_IN_FULL: &str = "process:::/^(state|threads|rss|swap|virtual_size|uid|utime|stime|cutime|cstime|start|minor_faults|major_faults)$/";
const FORKS: &str = "stat:0:all:forks";
const UPTIME: &str = "system:0:clock:uptime";

/// What to read for the rows of processes where the kernel accounts each as a whole ([`Moment::accounts`]): a file for a
/// process. What else a row shows is read of those that are shown ([`describe`]).
pub fn processes() -> Selection {
    super::constant(&[PROCESSES, UPTIME])
}

/// The counters of processes that [`processes`] reads.
pub(crate) const PROCESSES: &str = "process:::/^(state|threads|rss|virtual_size|utime|stime|cutime|cstime|start|minor_faults|major_faults)$/";

/// What a process did since it started, all its threads together, as the kernel accounts it. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// On a CPU, of threads that ended too.
    pub run_time: u64,
    /// Runnable, without a CPU, of threads that ended too.
    pub run_delay: u64,
    /// Voluntary context switches of the threads there are.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
}

/// How long a task was delayed since it started, in nanoseconds: the kernel's delay accounting.
/// Fields that the running kernel does not have are None.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Delays {
    /// Waiting for block I/O, swap included.
    pub block_io: u64,
    /// Swapping in.
    pub swap_in: u64,
    /// Reclaiming memory directly.
    pub reclaim: u64,
    /// Waiting for a page that was evicted although it was in use.
    pub thrashing: Option<u64>,
    /// Compacting memory directly.
    pub compaction: Option<u64>,
    /// Copying or unsharing pages at write faults.
    pub copy: Option<u64>,
}

impl Delays {
    /// Each delay of both, put together; None what one of them has not.
    #[must_use]
    pub fn with(&self, other: &Self, both: impl Fn(u64, u64) -> u64) -> Self {
        let option = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| both(a, b));
        Self {
            block_io: both(self.block_io, other.block_io),
            swap_in: both(self.swap_in, other.swap_in),
            reclaim: both(self.reclaim, other.reclaim),
            thrashing: option(self.thrashing, other.thrashing),
            compaction: option(self.compaction, other.compaction),
            copy: option(self.copy, other.copy),
        }
    }

    /// Waiting for memory altogether; see the module for why it is no plain sum.
    pub fn memory(&self) -> u64 {
        let rest = [self.reclaim, self.compaction.unwrap_or(0), self.copy.unwrap_or(0)];
        rest.into_iter().fold(self.swap_in.max(self.thrashing.unwrap_or(0)), u64::saturating_add)
    }
}

/// What a thread has done since tracing began. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traced {
    /// System calls.
    pub calls: u64,
    /// Signals delivered.
    pub signals: u64,
    /// Waiting in futex(2).
    pub lock_wait: u64,
    /// Asleep in page faults on instructions.
    pub text_wait: u64,
}

impl Traced {
    /// Each figure of both, put together.
    fn with(self, other: Self, both: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            calls: both(self.calls, other.calls),
            signals: both(self.signals, other.signals),
            lock_wait: both(self.lock_wait, other.lock_wait),
            text_wait: both(self.text_wait, other.text_wait),
        }
    }
}

/// One moment: the counters and the delays of those tasks (processes, or threads with `-L`) for which
/// the kernel accounts them.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The counters of [`selection`].
    pub counters: Snapshot,
    /// The delays by process or thread number.
    pub delays: HashMap<u64, Delays>,
    /// What each process did, by its number; None where its threads' counters tell.
    pub accounts: Option<HashMap<u64, Account>>,
    /// What was traced of each thread; None where nothing was.
    pub traced: Option<HashMap<u64, Traced>>,
    /// The tasks that ended since the moment before; None where the kernel does not tell.
    pub exits: Option<Vec<Exit>>,
}

/// One process or thread in one interval. Shares are in percent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// The process.
    pub pid: u64,
    /// The thread; None in a process's row.
    pub tid: Option<u64>,
    /// The command's name, of the thread where the row is one's.
    pub command: String,
    /// The user's number.
    pub uid: Option<u64>,
    /// Threads at the end of the interval.
    pub threads: u64,
    /// The state's letter: R, S, D, …
    pub state: String,
    /// Seconds that the shares and rates are of: the interval, or since its birth.
    pub seconds: f64,
    /// The cgroup its memory is charged to.
    pub cgroup: Option<String>,
    /// Resident bytes.
    pub rss: Option<f64>,
    /// Bytes swapped out.
    pub swap: Option<f64>,
    /// Bytes of address space.
    pub virtual_size: Option<f64>,
    /// On a CPU in user mode.
    pub usr: f64,
    /// On a CPU in the kernel.
    pub sys: f64,
    /// Asleep in faults on instructions; None unless traced.
    pub tfl: Option<f64>,
    /// Waiting for memory; None where delays are not accounted.
    pub dfl: Option<f64>,
    /// Waiting for locks of user mode; None unless traced.
    pub lck: Option<f64>,
    /// Everything else.
    pub slp: f64,
    /// Runnable, without a CPU.
    pub lat: f64,
    /// Waiting for block I/O, a part of `slp` and, for swap, of `dfl`; None as `dfl`.
    pub block_io: Option<f64>,
    /// Voluntary switches in the interval.
    pub vcx: f64,
    /// Involuntary switches in the interval.
    pub icx: f64,
    /// System calls in the interval; None unless traced.
    pub scl: Option<f64>,
    /// Signals in the interval; None unless traced.
    pub sig: Option<f64>,
    /// Minor faults per second.
    pub minor_faults: f64,
    /// Major faults per second.
    pub major_faults: f64,
}

/// What is summed over the threads of a process.
#[derive(Clone, Debug, Default)]
struct Sums {
    threads: u64,
    /// How long they lived within the interval, in nanoseconds.
    lived: f64,
    user: f64,
    system: f64,
    delay: f64,
    voluntary: f64,
    involuntary: f64,
    traced: Option<Traced>,
}

/// The rows between two moments, the tasks that waited longest for memory first, then those that
/// waited for a CPU, then those that used one. `by_thread` is `-L`.
pub fn rows(before: &Moment, now: &Moment, by_thread: bool) -> Vec<Row> {
    let Some(seconds) = now.counters.seconds_since(&before.counters) else { return Vec::new() };
    let mut rows =
        if by_thread { thread_rows(before, now, seconds) } else { process_rows(before, now, seconds) };
    rows.sort_by(|a, b| b.waits_longer(a).then(a.pid.cmp(&b.pid)));
    rows
}

/// The share of a task's time that a major fault per second stands for where delays are not
/// accounted, in percent: at 0.1 ms a fault.
const FAULT: f64 = 0.01;

impl Row {
    /// The order by waiting for memory, then for a CPU, then by use of one. Tasks with and without delay
    /// accounting are mixed: without it, major faults stand for the time they cost.
    pub fn waits_longer(&self, other: &Self) -> Ordering {
        let tenths = |percent: f64| (percent * 10.0).round();
        let key = |row: &Self| {
            let memory = row.dfl.unwrap_or((row.major_faults * FAULT).min(100.0));
            [tenths(memory), row.major_faults.round(), tenths(row.lat), tenths(row.usr + row.sys)]
        };
        key(self).partial_cmp(&key(other)).unwrap_or(Ordering::Equal)
    }
}

fn process_rows(before: &Moment, now: &Moment, seconds: f64) -> Vec<Row> {
    let mut sums: HashMap<u64, Sums> = HashMap::new();
    for (_, _, group) in now.counters.groups("thread") {
        let Some(pid) = of_group(group, "pid") else { continue };
        add(sums.entry(pid as u64).or_default(), before, now, group, seconds);
    }
    now.counters
        .groups("process")
        .filter_map(|(pid, name, group)| {
            let sum = match &now.accounts {
                Some(accounts) => &accounted(accounts.get(&pid)?, before, now, group, seconds),
                None => sums.get(&pid)?,
            };
            let mut row = Row { pid, ..task_row(sum, before, now, ("process", pid, name, group), seconds) };
            of_process(&mut row, group);
            Some(row)
        })
        .collect()
}

fn thread_rows(before: &Moment, now: &Moment, seconds: f64) -> Vec<Row> {
    let processes: HashMap<u64, _> =
        now.counters.groups("process").map(|(pid, _, group)| (pid, group)).collect();
    now.counters
        .groups("thread")
        .filter_map(|(tid, name, group)| {
            let pid = of_group(group, "pid")? as u64;
            let mut sum = Sums::default();
            add(&mut sum, before, now, group, seconds);
            let row = task_row(&sum, before, now, ("thread", tid, name, group), seconds);
            let mut row = Row { pid, tid: Some(tid), ..row };
            if let Some(process) = processes.get(&pid) {
                of_process(&mut row, process);
            }
            row.threads = 1;
            Some(row)
        })
        .collect()
}

/// The row of a task with these sums: its module, number, command and counters.
fn task_row(
    sum: &Sums,
    before: &Moment,
    now: &Moment,
    (module, task, name, group): (&str, u64, &str, &[Sample]),
    seconds: f64,
) -> Row {
    let ends = Ends::of(before, module, group);
    let seconds = ends.lived(now, seconds);
    let rate = |statistic| ends.growth(statistic) / seconds;
    let (minor_faults, major_faults) = (rate("minor_faults"), rate("major_faults"));
    let command = name.to_owned();
    Row { seconds, command, minor_faults, major_faults, ..row_of(sum, delays(before, now, task)) }
}

/// A task's counters at both ends of the interval. A task is identified by its number and its start
/// time, because it may change its name.
#[derive(Clone, Copy)]
struct Ends<'a> {
    /// None of a task that was not there.
    before: Option<&'a [Sample]>,
    now: &'a [Sample],
}

impl<'a> Ends<'a> {
    fn of(before: &'a Moment, module: &str, now: &'a [Sample]) -> Self {
        Self { before: earlier(before, module, now), now }
    }

    /// The growth of a counter; a task that was not there before starts at nothing.
    fn growth(self, statistic: &str) -> f64 {
        let end = of_group(self.now, statistic).unwrap_or(0.0);
        let start = self.before.and_then(|task| of_group(task, statistic)).unwrap_or(0.0);
        (end - start).max(0.0)
    }

    /// The growth of its times in user mode and in the kernel.
    fn modes(self) -> (f64, f64) {
        let times = (self.growth("utime"), self.growth("stime"));
        if times.0 + times.1 > 0.0 {
            return times;
        }
        // Too short for a tick: the whole life tells the mode.
        let life = |statistic| of_group(self.now, statistic).unwrap_or(0.0);
        (life("utime"), life("stime"))
    }

    /// The seconds of the interval that it lived: since its start, if that was within the interval.
    fn lived(self, now: &Moment, seconds: f64) -> f64 {
        if self.before.is_some() {
            return seconds;
        }
        let uptime = now.counters.number("system", 0, "clock", "uptime");
        let age = uptime.zip(of_group(self.now, "start")).map(|(now, start)| (now - start) / 1e9);
        age.map_or(seconds, |age| age.clamp(TICK.min(seconds), seconds))
    }
}

/// The same task before.
fn earlier<'a>(before: &'a Moment, module: &str, group: &[Sample]) -> Option<&'a [Sample]> {
    let earlier = before.counters.instance(module, group.first()?.instance);
    (!earlier.is_empty() && of_group(earlier, "start") == of_group(group, "start")).then_some(earlier)
}

/// The kernel tells when a task started in steps of this many seconds.
const TICK: f64 = 0.01;

/// The growth of what was traced of a thread; None where nothing was.
fn traced(before: &Moment, now: &Moment, ends: Ends<'_>) -> Option<Traced> {
    let thread = ends.now.first()?.instance;
    let end = now.traced.as_ref()?.get(&thread).copied().unwrap_or_default();
    let known = before.traced.as_ref()?.get(&thread).filter(|_| ends.before.is_some());
    let start = known.copied().unwrap_or_default();
    Some(end.with(start, u64::saturating_sub))
}

/// The share of user mode in both times.
fn share((user, system): (f64, f64)) -> f64 {
    if user + system > 0.0 { user / (user + system) } else { 0.0 }
}

/// A process as the kernel accounts it.
fn accounted(end: &Account, before: &Moment, now: &Moment, group: &[Sample], seconds: f64) -> Sums {
    let ends = Ends::of(before, "process", group);
    let known = ends.before.and_then(|known| before.accounts.as_ref()?.get(&known.first()?.instance));
    let start = known.copied().unwrap_or_default();
    let grown = |end: u64, start: u64| end.saturating_sub(start) as f64;
    let threads = of_group(group, "threads").unwrap_or(1.0);
    let (run, share) = (grown(end.run_time, start.run_time), share(ends.modes()));
    Sums {
        threads: threads as u64,
        lived: threads * ends.lived(now, seconds) * 1e9,
        user: run * share,
        system: run * (1.0 - share),
        delay: grown(end.run_delay, start.run_delay),
        voluntary: grown(end.voluntary, start.voluntary),
        involuntary: grown(end.involuntary, start.involuntary),
        traced: None,
    }
}

fn add(sum: &mut Sums, before: &Moment, now: &Moment, group: &[Sample], seconds: f64) {
    let ends = Ends::of(before, "thread", group);
    let grown = |statistic| ends.growth(statistic);
    let (user, system) = ends.modes();
    let run = if of_group(group, "run_time").is_some() { grown("run_time") } else { user + system };
    let share = share((user, system));
    sum.threads += 1;
    sum.lived += ends.lived(now, seconds) * 1e9;
    sum.user += run * share;
    sum.system += run * (1.0 - share);
    sum.delay += grown("run_delay");
    sum.voluntary += grown("voluntary_switches");
    sum.involuntary += grown("involuntary_switches");
    if let Some(grown) = traced(before, now, ends) {
        sum.traced = Some(sum.traced.unwrap_or_default().with(grown, |a, b| a + b));
    }
}

/// The growth of a task's delays; None unless they are accounted at the interval's end.
fn delays(before: &Moment, now: &Moment, task: u64) -> Option<(f64, f64)> {
    let end = now.delays.get(&task)?;
    let start = before.delays.get(&task).copied().unwrap_or_default();
    let grown = |end: u64, start: u64| end.saturating_sub(start) as f64;
    Some((grown(end.memory(), start.memory()), grown(end.block_io, start.block_io)))
}

fn row_of(sum: &Sums, delays: Option<(f64, f64)>) -> Row {
    let whole = sum.lived.max(1.0);
    let percent = |ns: f64| (100.0 * ns / whole).clamp(0.0, 100.0);
    let (usr, sys, lat) = (percent(sum.user), percent(sum.system), percent(sum.delay));
    let dfl = delays.map(|(memory, _)| percent(memory));
    let tfl = sum.traced.map(|t| percent(t.text_wait as f64));
    let lck = sum.traced.map(|t| percent(t.lock_wait as f64));
    let others = [dfl, tfl, lck].into_iter().flatten().sum::<f64>();
    Row {
        threads: sum.threads,
        usr,
        sys,
        tfl,
        dfl,
        lck,
        lat,
        slp: (100.0 - usr - sys - lat - others).max(0.0),
        block_io: delays.map(|(_, io)| percent(io)),
        vcx: sum.voluntary,
        icx: sum.involuntary,
        scl: sum.traced.map(|t| t.calls as f64),
        sig: sum.traced.map(|t| t.signals as f64),
        ..Row::default()
    }
}

fn of_process(row: &mut Row, process: &[Sample]) {
    row.state = text_of_group(process, "state").unwrap_or_default().to_owned();
    row.uid = of_group(process, "uid").map(|v| v as u64);
    row.cgroup = text_of_group(process, "cgroup").map(str::to_owned);
    row.rss = of_group(process, "rss");
    row.swap = of_group(process, "swap");
    row.virtual_size = of_group(process, "virtual_size");
    if let Some(threads) = of_group(process, "threads") {
        row.threads = threads as u64;
    }
}

#[cfg(test)]
mod tests;
