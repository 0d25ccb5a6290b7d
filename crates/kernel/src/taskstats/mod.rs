//! What the kernel accounts of each task (TASKSTATS over generic netlink): processor time, wall
//! time, and how long it was delayed by what.
//!
//! The kernel answers for a thread or for a whole process, threads that ended included, and sends
//! the statistics of every task that ends. It needs CAP_NET_ADMIN. Delays need
//! `kernel.task_delayacct` = 1 when the task started: a task that was there before the switch has
//! no accounting until it ends, so nothing is known of it ([`Taskstats::process`] is None) rather
//! than that it never waited.

mod stats;

use std::io;

use pagelab_counters::views::prstat::{Account, Exit};

pub use pagelab_counters::views::prstat::Delays;
pub use stats::Stats;

use crate::netlink::{Message, Netlink, attributes};

/// Why task statistics cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TaskstatsError {
    /// The socket was refused or broke.
    #[error("delay accounting over netlink failed: {0}")]
    Socket(#[from] io::Error),
    /// The kernel has none.
    #[error("this kernel has no taskstats: it needs CONFIG_TASKSTATS and CONFIG_TASK_DELAY_ACCT")]
    Absent,
    /// The caller may not ask.
    #[error("delay accounting needs root (CAP_NET_ADMIN): run with sudo")]
    Denied,
}

// include/uapi/linux/taskstats.h
const FAMILY: &str = "TASKSTATS";
const CMD_GET: u8 = 1;
const CMD_ATTR_PID: u16 = 1;
const CMD_ATTR_TGID: u16 = 2;
const CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
const TYPE_AGGR_TGID: u16 = 5;
/// What the kernel may queue of tasks that ended before it drops some, bytes.
const QUEUE: usize = 32 << 20;

fn connect() -> Result<Netlink, TaskstatsError> {
    Netlink::open(FAMILY)?.ok_or(TaskstatsError::Absent)
}

/// The kernel's refusal.
fn refusal(error: io::Error) -> TaskstatsError {
    match error.raw_os_error() {
        Some(libc::EPERM) => TaskstatsError::Denied,
        _ => TaskstatsError::Socket(error),
    }
}

/// A connection that asks about tasks.
#[derive(Debug)]
pub struct Taskstats(Netlink);

impl Taskstats {
    /// Connects.
    ///
    /// # Errors
    /// When the kernel has no taskstats, or the caller may not ask.
    pub fn open() -> Result<Self, TaskstatsError> {
        let mut connection = connect()?;
        // Asking about oneself shows whether one may ask at all.
        let answer = connection.ask(CMD_GET, CMD_ATTR_TGID, &std::process::id().to_ne_bytes())?;
        answer.attributes().map(drop).map_err(refusal)?;
        Ok(Self(connection))
    }

    /// A process's delays, its ended threads' included; None when it has ended or is not accounted.
    pub fn process(&mut self, pid: u64) -> Option<Delays> {
        self.whole(pid)?.1
    }

    /// What a process did, the processor time of its ended threads included, and its delays where
    /// they are accounted; None when it has ended.
    pub fn whole(&mut self, pid: u64) -> Option<(Account, Option<Delays>)> {
        let stats = self.ask(CMD_ATTR_TGID, TYPE_AGGR_TGID, u32::try_from(pid).ok()?)?;
        let [voluntary, involuntary] = stats.switches;
        let account = Account { run_time: stats.on_cpu, run_delay: stats.runnable, voluntary, involuntary };
        Some((account, stats.delays()))
    }

    /// Whether the kernel says of which process a thread that ends was.
    pub fn names_processes(&mut self) -> bool {
        self.task(std::process::id()).is_some_and(|own| own.process.is_some())
    }

    /// A thread's delays; None as [`Taskstats::process`].
    pub fn thread(&mut self, tid: u64) -> Option<Delays> {
        self.task(u32::try_from(tid).ok()?)?.delays()
    }

    /// Everything about a thread; None when it has ended.
    pub fn task(&mut self, tid: u32) -> Option<Stats> {
        self.ask(CMD_ATTR_PID, TYPE_AGGR_PID, tid)
    }

    fn ask(&mut self, by: u16, aggregate: u16, task: u32) -> Option<Stats> {
        let answer = self.0.ask(CMD_GET, by, &task.to_ne_bytes()).ok()?;
        stats(&answer, aggregate)
    }
}

/// A connection that hears of every task that ends, on any processor.
#[derive(Debug)]
pub struct Exits {
    connection: Netlink,
    /// Whether the kernel dropped some because the queue was full.
    pub overflowed: bool,
}

impl Exits {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the kernel has no taskstats, or the caller may not hear of others' tasks.
    pub fn listen() -> Result<Self, TaskstatsError> {
        let mut connection = connect()?;
        connection.queue(QUEUE);
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
        let mask = format!("{}\0", possible.trim());
        connection.send(CMD_GET, CMD_ATTR_REGISTER_CPUMASK, mask.as_bytes())?;
        // Success is silent; a refusal is there at once.
        if let Some(message) = connection.next()? {
            message.attributes().map(drop).map_err(refusal)?;
        }
        Ok(Self { connection, overflowed: false })
    }

    /// The tasks that ended since the last time.
    pub fn take(&mut self) -> Vec<Exit> {
        let mut ended = Vec::new();
        self.drain(&mut ended);
        let exit = |stats: &Stats| Exit {
            task: u64::from(stats.pid),
            process: stats.process.map(u64::from),
            command: stats.name(),
            cpu: stats.on_cpu,
            // A delay from before the switch was set is counted from the boot of the machine.
            delays: stats.delays().filter(|_| stats.plausible()),
        };
        ended.iter().map(exit).collect()
    }

    /// Takes what has been queued.
    pub fn drain(&mut self, into: &mut Vec<Stats>) {
        loop {
            match self.connection.next() {
                Ok(Some(message)) => into.extend(stats(&message, TYPE_AGGR_PID)),
                Ok(None) => return,
                Err(error) => {
                    self.overflowed = true;
                    // A full queue is said once and goes on; anything else would be said for ever.
                    if error.raw_os_error() != Some(libc::ENOBUFS) {
                        return;
                    }
                }
            }
        }
    }
}

/// The statistics in a message.
fn stats(message: &Message, aggregate: u16) -> Option<Stats> {
    let (_, aggregate) = message.attributes().ok()?.find(|(kind, _)| *kind == aggregate)?;
    let (_, stats) = attributes(aggregate).find(|(kind, _)| *kind == TYPE_STATS)?;
    Stats::parse(stats)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_about_ourselves_or_says_why_not() {
        match Taskstats::open() {
            Ok(mut taskstats) => {
                assert_eq!(taskstats.process(u64::from(u32::MAX)), None, "there is no such process");
                let own = taskstats.task(std::process::id()).unwrap();
                assert_eq!(own.pid, std::process::id());
                if taskstats.names_processes() {
                    assert_eq!(own.process, Some(std::process::id()));
                }
                let (account, _) = taskstats.whole(u64::from(std::process::id())).unwrap();
                assert!(account.run_time > 0 && account.voluntary + account.involuntary > 0, "{account:?}");
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn a_child_that_ends_is_heard_of() {
        let mut exits = match Exits::listen() {
            Ok(exits) => exits,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                return;
            }
        };
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        child.wait().unwrap();
        let mut ended = Vec::new();
        for _ in 0..100 {
            exits.drain(&mut ended);
            if ended.iter().any(|task| task.pid == pid) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{pid} is not among {} tasks", ended.len());
    }
}
