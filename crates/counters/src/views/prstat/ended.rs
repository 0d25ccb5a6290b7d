//! The tasks that ended within an interval: no row has them, and together they may be most of the work.

use std::collections::HashMap;

use serde::Serialize;

use super::{Account, Delays, Ends, Moment, earlier};
use crate::Sample;
use crate::tree::of_group;

/// A task that ended, from its start to its end; times in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The thread's number.
    pub task: u64,
    /// The number of its process; None where the kernel does not tell.
    pub process: Option<u64>,
    /// Its command's name.
    pub command: String,
    /// On a CPU.
    pub cpu: u64,
    /// Its delays; None where they were not accounted.
    pub delays: Option<Delays>,
}

/// The tasks (threads) that ended within an interval, together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ended {
    /// How many.
    pub tasks: u64,
    /// Nanoseconds on a CPU within the interval: the larger of what the kernel tells of each task
    /// that ends and what parents that waited count; None where neither is known.
    pub cpu: Option<f64>,
    /// Nanoseconds waiting for memory within the interval; None where not accounted of any.
    pub memory: Option<f64>,
    /// The commands of most of them, and how many each.
    pub names: Vec<(String, u64)>,
}

/// Names in a line.
const NAMED: usize = 4;

/// What ended between two moments; None where nothing did. Where the kernel does not tell of tasks that end,
/// their number is what was forked less what there is more.
pub fn ended(before: &Moment, now: &Moment) -> Option<Ended> {
    let found = match &now.exits {
        Some(exits) => of_exits(before, exits),
        None => of_forks(before, now)?,
    };
    let found = match (found.cpu, waited_for(before, now)) {
        (Some(told), Some(waited)) => Ended { cpu: Some(told.max(waited)), ..found },
        (None, waited) => Ended { cpu: waited, ..found },
        _ => found,
    };
    (found.tasks > 0).then_some(found)
}

fn of_exits(before: &Moment, exits: &[Exit]) -> Ended {
    let mut found = Ended { tasks: exits.len() as u64, ..Ended::default() };
    let mut names: HashMap<&str, u64> = HashMap::new();
    for exit in exits {
        if let Some(delays) = exit.delays {
            let before = before.delays.get(&exit.task).copied().unwrap_or_default();
            let grown = delays.memory().saturating_sub(before.memory()) as f64;
            *found.memory.get_or_insert(0.0) += grown;
        }
        *names.entry(&exit.command).or_default() += 1;
    }
    let cpu: f64 = match &before.accounts {
        Some(accounts) => of_processes(accounts, exits),
        None => exits.iter().map(|exit| beyond(exit.cpu, of_thread(before, exit.task))).sum(),
    };
    // An empty sum is -0.
    found.cpu = Some(cpu + 0.0);
    found.names = most(names);
    found
}

/// The CPU time of what ended, as the parents that waited for it count it. The account of a task
/// that ends lacks its time since the last tick and its exit, which for one that lives for
/// milliseconds is most of it.
fn waited_for(before: &Moment, now: &Moment) -> Option<f64> {
    let sum = |group: &[Sample], names: [&str; 2]| {
        names.into_iter().filter_map(|name| of_group(group, name)).sum::<f64>()
    };
    let children = ["cutime", "cstime"];
    let counted = |(_, _, group): (u64, _, &[Sample])| {
        of_group(group, "cutime")?;
        let ends = Ends::of(before, "process", group);
        Some(children.map(|name| ends.growth(name)).iter().sum::<f64>())
    };
    let grown = now.counters.groups("process").filter_map(counted).reduce(|a, b| a + b)?;
    // What a process and its children had used before the interval is its parent's too when it ends.
    let gone =
        before.counters.groups("process").filter(|(_, _, group)| earlier(now, "process", group).is_none());
    let known = gone.map(|(_, _, group)| sum(group, ["utime", "stime"]) + sum(group, children)).sum::<f64>();
    Some((grown - known).max(0.0))
}

/// What was known of a thread's time on a CPU.
fn of_thread(before: &Moment, thread: u64) -> f64 {
    let known = before.counters.instance("thread", thread);
    let run = of_group(known, "run_time");
    run.or_else(|| Some(of_group(known, "utime")? + of_group(known, "stime")?)).unwrap_or(0.0)
}

fn beyond(now: u64, before: f64) -> f64 {
    (now as f64 - before).max(0.0)
}

/// The time on a CPU of the processes whose first thread ended: that of all their threads that did, less what was known.
/// A thread that ended of a process that goes on is in the process's row.
fn of_processes(before: &HashMap<u64, Account>, exits: &[Exit]) -> f64 {
    let mut processes: HashMap<u64, u64> = HashMap::new();
    for exit in exits {
        *processes.entry(exit.process.unwrap_or(exit.task)).or_default() += exit.cpu;
    }
    let whole = exits.iter().map(|exit| exit.task).filter(|task| processes.contains_key(task));
    whole
        .map(|process| beyond(processes[&process], before.get(&process).map_or(0.0, |a| a.run_time as f64)))
        .sum()
}

fn of_forks(before: &Moment, now: &Moment) -> Option<Ended> {
    let forks = |moment: &Moment| moment.counters.number("stat", 0, "all", "forks");
    let tasks = |moment: &Moment| moment.counters.groups("thread").count() as f64;
    let ended = forks(now)? - forks(before)? - (tasks(now) - tasks(before));
    // Those that were there before are known by name.
    let mut names: HashMap<&str, u64> = HashMap::new();
    for (task, name, group) in before.counters.groups("thread") {
        let same = |other: &[Sample]| of_group(other, "start") == of_group(group, "start");
        if !same(now.counters.instance("thread", task)) {
            *names.entry(name).or_default() += 1;
        }
    }
    Some(Ended { tasks: ended.max(0.0) as u64, names: most(names), ..Ended::default() })
}

/// The most frequent.
fn most(names: HashMap<&str, u64>) -> Vec<(String, u64)> {
    let mut names: Vec<(String, u64)> = names.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    names.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    names.truncate(NAMED);
    names
}
