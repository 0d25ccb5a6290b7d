//! Solaris' `prstat -m` on Linux: in which state each process or thread spent the interval.
//!
//! | column | from |
//! |---|---|
//! | USR, SYS | Δrun_time of schedstat, which is exact, split as Δutime to Δstime, which are not |
//! | TRP | no counter: Linux charges traps to system time |
//! | TFL | traced: asleep in a page fault on an instruction |
//! | DFL | delay accounting: max(swap-in, thrashing) + direct reclaim + compaction + copy on write |
//! | LCK | traced: waiting in futex(2), for locks and conditions of user mode |
//! | LAT | Δrun_delay of schedstat: runnable, without a CPU |
//! | SLP | what remains, never below 0: waiting for block I/O is in it, and LCK and TFL where not traced |
//! | VCX, ICX | Δvoluntary and Δinvoluntary context switches |
//! | SCL, SIG | traced: system calls begun, signals delivered |
//!
//! What is traced is counted only while somebody does ([`Traced`]); a dash else.
//!
//! Shares are of the interval; a process's are of the interval times its threads, as the sum of its
//! threads' states. Linux's delays run from the clock when a task enters the state until it leaves
//! it, time on the CPU included (direct reclaim is mostly that), so USR + SYS + DFL + LAT may exceed
//! 100. Swap-in and thrashing overlap where the swap device answers at once, hence the maximum: a
//! lower bound. A page of code that is wanted again soon after it was evicted counts as thrashing in
//! DFL and, where traced, in TFL. Waiting for the swap-in of a page that was not in the working set is in
//! [`Row::block_io`] alone.

use std::collections::HashMap;

use serde::Serialize;

use super::cell;
use crate::Sample;
use crate::select::Selection;
use crate::tree::{Snapshot, of_group, text_of_group};

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&[
        "thread:::/^(pid|start|utime|stime|minor_faults|major_faults|run_time|run_delay)$/",
        "thread:::*_switches",
        "process:::/^(state|threads|rss|swap|virtual_size|uid|utime|stime|start|minor_faults|major_faults)$/",
    ])
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

/// One moment: the counters and the delays of those tasks (processes, or threads with `-L`) for which
/// the kernel accounts them.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The counters of [`selection`].
    pub counters: Snapshot,
    /// The delays by process or thread number.
    pub delays: HashMap<u64, Delays>,
    /// What was traced of each thread; None where nothing was.
    pub traced: Option<HashMap<u64, Traced>>,
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
    rows.sort_by(|a, b| {
        key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal).then(a.pid.cmp(&b.pid))
    });
    rows
}

/// Without delay accounting, major faults per second stand for the time they cost.
fn key(row: &Row) -> (f64, f64, f64, f64) {
    let tenths = |percent: f64| (percent * 10.0).round();
    (tenths(row.dfl.unwrap_or(0.0)), row.major_faults.round(), tenths(row.lat), tenths(row.usr + row.sys))
}

fn process_rows(before: &Moment, now: &Moment, seconds: f64) -> Vec<Row> {
    let mut sums: HashMap<u64, Sums> = HashMap::new();
    for (_, _, group) in now.counters.groups("thread") {
        let Some(pid) = of_group(group, "pid") else { continue };
        add(sums.entry(pid as u64).or_default(), before, now, group);
    }
    now.counters
        .groups("process")
        .filter_map(|(pid, name, group)| {
            let sum = sums.get(&pid)?;
            let mut row = row_of(sum, delays(before, now, pid), seconds);
            let rate = |statistic| growth(before, "process", group, statistic) / seconds;
            row.pid = pid;
            row.command = name.to_string();
            row.minor_faults = rate("minor_faults");
            row.major_faults = rate("major_faults");
            describe(&mut row, group);
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
            add(&mut sum, before, now, group);
            let mut row = row_of(&sum, delays(before, now, tid), seconds);
            let rate = |statistic| growth(before, "thread", group, statistic) / seconds;
            row.pid = pid;
            row.tid = Some(tid);
            row.command = name.to_string();
            row.minor_faults = rate("minor_faults");
            row.major_faults = rate("major_faults");
            if let Some(process) = processes.get(&pid) {
                describe(&mut row, process);
            }
            row.threads = 1;
            Some(row)
        })
        .collect()
}

/// The growth of a counter; a task that was not there before starts at nothing. Tasks are told apart
/// by their numbers and when they started, for they may change their names.
fn growth(before: &Moment, module: &str, group: &[Sample], statistic: &str) -> f64 {
    let end = of_group(group, statistic).unwrap_or(0.0);
    let start = earlier(before, module, group).and_then(|task| of_group(task, statistic)).unwrap_or(0.0);
    (end - start).max(0.0)
}

/// The same task before.
fn earlier<'a>(before: &'a Moment, module: &str, group: &[Sample]) -> Option<&'a [Sample]> {
    let earlier = before.counters.instance(module, group.first()?.instance);
    (!earlier.is_empty() && of_group(earlier, "start") == of_group(group, "start")).then_some(earlier)
}

/// The growth of what was traced of a thread; None where nothing was.
fn traced(before: &Moment, now: &Moment, group: &[Sample]) -> Option<Traced> {
    let thread = group.first()?.instance;
    let end = now.traced.as_ref()?.get(&thread).copied().unwrap_or_default();
    let known = before.traced.as_ref()?.get(&thread).filter(|_| earlier(before, "thread", group).is_some());
    let start = known.copied().unwrap_or_default();
    Some(Traced {
        calls: end.calls.saturating_sub(start.calls),
        signals: end.signals.saturating_sub(start.signals),
        lock_wait: end.lock_wait.saturating_sub(start.lock_wait),
        text_wait: end.text_wait.saturating_sub(start.text_wait),
    })
}

fn add(sum: &mut Sums, before: &Moment, now: &Moment, group: &[Sample]) {
    let grown = |statistic| growth(before, "thread", group, statistic);
    let (mut user, mut system) = (grown("utime"), grown("stime"));
    if user + system == 0.0 {
        // Too short for a tick: the whole life tells the mode.
        (user, system) = (of_group(group, "utime").unwrap_or(0.0), of_group(group, "stime").unwrap_or(0.0));
    }
    let run = if of_group(group, "run_time").is_some() { grown("run_time") } else { user + system };
    let share = if user + system > 0.0 { user / (user + system) } else { 0.0 };
    sum.threads += 1;
    sum.user += run * share;
    sum.system += run * (1.0 - share);
    sum.delay += grown("run_delay");
    sum.voluntary += grown("voluntary_switches");
    sum.involuntary += grown("involuntary_switches");
    if let Some(grown) = traced(before, now, group) {
        let sum = sum.traced.get_or_insert_default();
        sum.calls += grown.calls;
        sum.signals += grown.signals;
        sum.lock_wait += grown.lock_wait;
        sum.text_wait += grown.text_wait;
    }
}

/// The growth of a task's delays; None unless they are accounted at the interval's end.
fn delays(before: &Moment, now: &Moment, task: u64) -> Option<(f64, f64)> {
    let end = now.delays.get(&task)?;
    let start = before.delays.get(&task).copied().unwrap_or_default();
    let grown = |end: u64, start: u64| end.saturating_sub(start) as f64;
    Some((grown(end.memory(), start.memory()), grown(end.block_io, start.block_io)))
}

fn row_of(sum: &Sums, delays: Option<(f64, f64)>, seconds: f64) -> Row {
    let whole = seconds * 1e9 * sum.threads.max(1) as f64;
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

fn describe(row: &mut Row, process: &[Sample]) {
    row.state = text_of_group(process, "state").unwrap_or_default().to_owned();
    row.uid = of_group(process, "uid").map(|v| v as u64);
    row.rss = of_group(process, "rss");
    row.swap = of_group(process, "swap");
    row.virtual_size = of_group(process, "virtual_size");
    if let Some(threads) = of_group(process, "threads") {
        row.threads = threads as u64;
    }
}

/// The line above the microstates.
pub fn microstate_heading(by_thread: bool) -> String {
    let last = if by_thread { "PROCESS/TID" } else { "PROCESS/NLWP" };
    format!("    PID USER       USR  SYS TRP  TFL  DFL  LCK  SLP  LAT   VCX   ICX   SCL SIG {last}")
}

/// The line above the summary.
pub fn summary_heading(by_thread: bool) -> String {
    let last = if by_thread { "PROCESS/TID" } else { "PROCESS/NLWP" };
    format!("    PID USER       SIZE    RSS   SWAP S  MINF/s  MAJF/s   CPU {last}")
}

impl Row {
    /// The line under [`microstate_heading`]; `user` is the user's name.
    pub fn microstates(&self, user: &str) -> String {
        [
            format!("{:>7} {user:<8.8} ", self.pid),
            share(Some(self.usr), 5),
            share(Some(self.sys), 4),
            cell(None, 3, 0),
            share(self.tfl, 4),
            share(self.dfl, 4),
            share(self.lck, 4),
            share(Some(self.slp), 4),
            share(Some(self.lat), 4),
            count(Some(self.vcx), 5),
            count(Some(self.icx), 5),
            count(self.scl, 5),
            count(self.sig, 3),
            self.tail(),
        ]
        .concat()
    }

    /// The line under [`summary_heading`]: sizes with K, M or G; CPU in percent of one.
    pub fn summary(&self, user: &str) -> String {
        let cpu = (self.usr + self.sys) * if self.tid.is_some() { 1.0 } else { self.threads.max(1) as f64 };
        [
            format!("{:>7} {user:<8.8} ", self.pid),
            format!("{:>6} {:>6} {:>6} ", size(self.virtual_size), size(self.rss), size(self.swap)),
            format!("{:<1} ", self.state),
            cell(Some(self.minor_faults), 7, 0),
            cell(Some(self.major_faults), 7, 0),
            cell(Some(cpu), 5, 1),
            self.tail(),
        ]
        .concat()
    }

    fn tail(&self) -> String {
        format!("{}/{}", self.command, self.tid.unwrap_or(self.threads))
    }
}

/// A share in percent: a decimal where there is room.
fn share(percent: Option<f64>, width: usize) -> String {
    let whole = percent.is_some_and(|p| p >= 99.95);
    cell(percent, width, usize::from(!whole))
}

/// A count, in thousands or millions where it is too long.
fn count(count: Option<f64>, width: usize) -> String {
    let Some(count) = count else { return cell(None, width, 0) };
    let units = [(1.0, ""), (1e3, "K"), (1e6, "M")];
    let texts = units.map(|(unit, letter)| format!("{:.0}{letter}", count / unit));
    let fitting = texts.iter().find(|text| text.len() <= width).unwrap_or(&texts[2]);
    format!("{fitting:>width$} ")
}

/// Bytes in four characters and a letter; a dash where there is no figure.
pub fn size(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else { return "-".to_owned() };
    let mut value = bytes / 1024.0;
    for unit in ["K", "M", "G"] {
        if value < 1000.0 {
            return if value < 9.95 && unit != "K" {
                format!("{value:.1}{unit}")
            } else {
                format!("{value:.0}{unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1}T")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Kind, Unit};

    fn task(module: &'static str, number: u64, values: &[(&'static str, u64)]) -> Vec<Sample> {
        let sample = |(statistic, value): &(&'static str, u64)| Sample {
            module,
            instance: number,
            name: "db".into(),
            statistic: (*statistic).into(),
            class: "process",
            value: (*value).into(),
            unit: Unit::Nanoseconds,
            kind: Kind::Counter,
        };
        values.iter().map(sample).collect()
    }

    const MS: u64 = 1_000_000;

    fn moment(seconds: u64, run: [u64; 2], swap_in: u64) -> Moment {
        let mut samples =
            task("process", 7, &[("threads", 2), ("major_faults", swap_in / MS), ("rss", 4096)]);
        for (tid, run) in [7, 8].into_iter().zip(run) {
            let values = [
                ("pid", 7),
                ("run_time", run),
                ("utime", run / 4),
                ("stime", run / 4 * 3),
                ("run_delay", run / 2),
            ];
            samples.extend(task("thread", tid, &values));
        }
        let delays = Delays { swap_in, thrashing: Some(swap_in / 2), reclaim: 10 * MS, ..Delays::default() };
        let counters = Snapshot::new(seconds * 1_000_000_000, samples);
        Moment { counters, delays: [(7, delays)].into(), traced: None }
    }

    #[test]
    fn states_are_shares_of_the_threads_time() {
        let row = &rows(&moment(0, [0, 0], 0), &moment(1, [400 * MS, 0], 1000 * MS), false)[0];
        assert_eq!((row.usr, row.sys, row.lat), (5.0, 15.0, 10.0));
        assert_eq!(row.dfl, Some(50.0), "thrashing overlaps swap-in, and reclaim did not grow");
        assert_eq!((row.slp, row.threads, row.major_faults), (20.0, 2, 1000.0));
        assert!(row.microstates("root").contains(" 50.0    - 20.0 10.0 "), "{}", row.microstates("root"));
    }

    #[test]
    fn what_is_traced_of_the_threads_is_their_processs() {
        let (mut before, mut now) = (moment(0, [0, 0], 0), moment(1, [200 * MS, 0], 0));
        let of = |calls, lock| Traced { calls, lock_wait: lock, ..Traced::default() };
        before.traced = Some([(7, of(1_000, 0)), (8, of(7, 100 * MS))].into());
        now.traced = Some([(7, of(2_001_000, 0)), (8, of(7, 1100 * MS)), (9, of(5, 5))].into());
        let row = &rows(&before, &now, false)[0];
        assert_eq!((row.scl, row.sig, row.lck, row.tfl), (Some(2e6), Some(0.0), Some(50.0), Some(0.0)));
        assert!((row.slp - 35.0).abs() < 1e-9, "waiting for locks is not asleep: {row:?}");
        assert!(row.microstates("root").contains(" 2000K   0 db/2"), "{}", row.microstates("root"));
        let threads = rows(&before, &now, true);
        assert_eq!(threads.iter().find(|t| t.tid == Some(8)).unwrap().lck, Some(100.0));
    }

    #[test]
    fn a_task_without_accounting_has_a_dash() {
        let (mut before, mut now) = (moment(0, [0, 0], 0), moment(1, [0, 100 * MS], 0));
        before.delays.clear();
        now.delays.clear();
        let row = &rows(&before, &now, true)[0];
        assert_eq!((row.tid, row.dfl), (Some(8), None));
        assert_eq!((row.usr, row.sys, row.slp), (2.5, 7.5, 85.0));
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [Some(4096.0), Some(1.5e6), Some(25e6), Some(3e9), None].map(size);
        assert_eq!(sizes, ["4K", "1.4M", "24M", "2.8G", "-"]);
    }
}
