//! Where the time of an experiment's threads went: shares of the wall time of all of them together,
//! as Solaris' microstate accounting has them (`prstat -m`).
//!
//! The kernel sends the statistics of every task that ends ([`pagelab_kernel::taskstats`]); those
//! that descend from the calling process count, each from its start to its end, and the calling
//! thread where it does the work itself. The descendants are known by their parents: the calling
//! process becomes the reaper of orphans, so no descendant escapes to init.
//!
//! | share | from | what it is |
//! |---|---|---|
//! | `state.user`, `state.system` | processor time, parted as the ticks sampled it | on a processor |
//! | `state.run-queue` | cpu delay | runnable, waiting for a CPU |
//! | `state.fault` | the greater of block I/O and swap-in delay, which overlap | waiting for input: major faults, swap-in, reads |
//! | `state.swap-in` | swap-in delay | of that, swap-in |
//! | `state.thrashing` | thrashing delay | of that, for pages that had been in memory a short while ago |
//! | `state.reclaim`, `state.compaction` | delays of both | inside direct reclaim and compaction, processor time included |
//! | `state.sleep` | what is left | sleeping of its own accord, locks of user mode included |
//! | `state.lock` | not accounted per task by any Linux; `faultscale` has it from tracepoints | waiting for locks of the kernel |
//!
//! A task's statistics are made when its exit begins; what it consumes then, giving its memory back
//! above all, is not in them. For children that were waited for the kernel's account of children
//! (getrusage(2)) has it: what that has beyond the statistics is time in the kernel, and counts as
//! such.
//!
//! Block I/O, swap-in, thrashing, reclaim and compaction need `kernel.task_delayacct` = 1 before the
//! tasks start; everything here needs CAP_NET_ADMIN.

use std::collections::{HashMap, HashSet};
use std::fs;

use pagelab_experiment::build::{Figure, metric, note};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Recorder, Result};
use pagelab_kernel::rusage::{self, Usage};
use pagelab_kernel::taskstats::{Delays, Exits, Stats, Taskstats, TaskstatsError};

use crate::harness::processor;

/// Watches the calling process and its descendants from its start on.
#[derive(Debug)]
pub struct Microstates {
    listening: Result<Listening, String>,
    /// What children had consumed at the start.
    before: Usage,
}

#[derive(Debug)]
struct Listening {
    exits: Exits,
    ended: Vec<Stats>,
    asking: Taskstats,
    own: Option<Stats>,
}

/// Whose time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The descendants' alone: the calling thread only waits for them.
    Descendants,
    /// The calling thread's too.
    Everybody,
}

impl Microstates {
    /// Begins. Without the rights or the kernel's help it only remembers why.
    pub fn start() -> Self {
        // SAFETY: no pointers. Refused by kernels before 3.4, where orphans are then not counted.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
        let listening = || {
            let mut asking = Taskstats::open()?;
            let exits = Exits::listen()?;
            let own = asking.task(thread_id());
            Ok(Listening { exits, ended: Vec::new(), asking, own })
        };
        Self { listening: listening().map_err(|e: TaskstatsError| e.to_string()), before: rusage::children() }
    }

    /// Takes what the kernel has queued; to be called now and then while many tasks end.
    pub fn poll(&mut self) {
        if let Ok(Listening { exits, ended, .. }) = &mut self.listening {
            exits.drain(ended);
        }
    }

    /// Whether the kernel tells of tasks that end.
    pub fn listens(&self) -> bool {
        self.listening.is_ok()
    }

    /// The share of user mode in the processor time of the descendants that ended, as the ticks
    /// sampled all of them together; `None` where not known, or of too few samples.
    pub fn user_share(&mut self) -> Option<f64> {
        self.poll();
        let total = self.total(Whose::Descendants).0?;
        let (sampled, on_cpu) = (total.user + total.system, total.on_cpu + total.exits);
        (processor::enough(sampled as f64) && on_cpu > 0)
            .then(|| total.on_cpu as f64 * total.user as f64 / sampled as f64 / on_cpu as f64)
    }

    /// The greatest resident set of any one descendant that ended, bytes; `None` where not known.
    pub fn peak(&mut self) -> Option<u64> {
        self.poll();
        self.total(Whose::Descendants).0.map(|total| total.peak)
    }

    /// Records the shares. Whoever still runs is not counted. `lock` is the share waiting for locks
    /// of the kernel, where the experiment knows it.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn report(mut self, whose: Whose, lock: Option<f64>, recorder: &mut dyn Recorder) -> Result<()> {
        self.poll();
        let (total, whole, why) = self.total(whose);
        let switched = fs::read_to_string("/proc/sys/kernel/task_delayacct").is_ok_and(|t| t.trim() != "0");
        let delays = switched && whole;
        for (name, value) in shares(total.as_ref(), delays) {
            metric(recorder, name, value)?;
        }
        metric(recorder, metrics::STATE_LOCK, lock)?;
        if let Some(why) = why {
            note(recorder, Level::Info, format!("the metrics state.… are missing: {why}"))?;
        } else if !whole {
            note(
                recorder,
                Level::Info,
                "delay accounting was enabled while tasks ran, so their waits are \
                incomplete; repeat the run",
            )?;
        } else if !delays {
            note(
                recorder,
                Level::Info,
                "waits for input, reclaim and compaction are missing: --set \
                /proc/sys/kernel/task_delayacct=1 enables them; no kernel accounts waits for locks",
            )?;
        }
        Ok(())
    }

    /// The sum, whether every task's delays can be, or why there is none.
    fn total(&mut self, whose: Whose) -> (Option<Stats>, bool, Option<String>) {
        let listening = match &mut self.listening {
            Ok(listening) => listening,
            Err(why) => {
                return (None, true, Some(why.clone()));
            }
        };
        if listening.exits.overflowed {
            return (None, true, Some("more tasks ended than the kernel could report; use fewer".into()));
        }
        let mut all = descendants(&listening.ended, std::process::id());
        let ended: u64 = all.iter().map(|task| task.on_cpu).sum();
        if whose == Whose::Everybody {
            let now = listening.asking.task(thread_id());
            all.extend(now.zip(listening.own).map(|(now, before)| now.since(&before)));
        }
        let whole = all.iter().all(Stats::plausible);
        let total = all.into_iter().reduce(|a, b| a.plus(&b)).map(|mut total| {
            let used = rusage::children() - self.before;
            total.exits = (used.user + used.system).saturating_sub(ended);
            total.elapsed += total.exits;
            total
        });
        let why = total.is_none().then(|| "no thread of the experiment has ended".to_owned());
        (total, whole, why)
    }
}

fn thread_id() -> u32 {
    u32::try_from(rustix::thread::gettid().as_raw_nonzero().get()).unwrap_or(0)
}

/// The tasks whose line of parents leads to `root`. A thread has its process's parent; the threads of
/// `root` itself (its id is no task's parent but its children's) are left out.
fn descendants(ended: &[Stats], root: u32) -> Vec<Stats> {
    let parents: HashMap<u32, u32> = ended.iter().map(|task| (task.pid, task.parent)).collect();
    let mut known: HashSet<u32> = HashSet::from([root]);
    let leads = |task: &Stats, known: &mut HashSet<u32>| {
        let (mut line, mut at) = (vec![task.pid], task.parent);
        // A reused id could make a circle.
        for _ in 0..64 {
            if known.contains(&at) {
                known.extend(line);
                return true;
            }
            line.push(at);
            match parents.get(&at) {
                Some(&parent) => at = parent,
                None => return false,
            }
        }
        false
    };
    ended.iter().filter(|task| leads(task, &mut known)).copied().collect()
}

/// The shares by their metric's name. `delays`: whether the kernel accounted them.
fn shares(total: Option<&Stats>, delays: bool) -> [Figure; 9] {
    let share = |part: Option<u64>| {
        let total = total.filter(|t| t.elapsed > 0)?;
        Some(part? as f64 / total.elapsed as f64)
    };
    let of = |part: fn(&Stats) -> u64| share(total.map(part));
    let delay =
        |part: fn(&Delays) -> Option<u64>| share(total.and_then(|t| part(&t.waits)).filter(|_| delays));
    // The ticks part the exact time; what they met too seldom is not parted.
    let sampled = total.map(|t| t.user + t.system).filter(|&sum| processor::enough(sum as f64));
    let part = |ticks: fn(&Stats) -> u64, exits: u64| {
        let (total, sampled) = (total?, sampled?);
        if ticks(total) == 0 {
            return None;
        }
        share(Some((total.on_cpu as f64 * ticks(total) as f64 / sampled as f64) as u64 + exits))
    };
    let exits = total.map_or(0, |t| t.exits);
    let fault = delay(|t| Some(t.block_io.max(t.swap_in).max(t.thrashing.unwrap_or(0))));
    let sleep = total.and_then(|_| {
        let awake = of(|t| t.on_cpu + t.exits)? + of(|t| t.runnable)? + fault?;
        Some((1.0 - awake).max(0.0))
    });
    [
        (metrics::STATE_USER, part(|t| t.user, 0)),
        (metrics::STATE_SYSTEM, part(|t| t.system, exits)),
        (metrics::STATE_RUN_QUEUE, of(|t| t.runnable)),
        (metrics::STATE_FAULT, fault),
        (metrics::STATE_SWAP_IN, delay(|t| Some(t.swap_in))),
        (metrics::STATE_THRASHING, delay(|t| t.thrashing)),
        (metrics::STATE_RECLAIM, delay(|t| Some(t.reclaim))),
        (metrics::STATE_COMPACTION, delay(|t| t.compaction)),
        (metrics::STATE_SLEEP, sleep),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn task(pid: u32, parent: u32) -> Stats {
        Stats {
            pid,
            parent,
            elapsed: 100 * SECOND,
            user: 30 * SECOND,
            system: 10 * SECOND,
            on_cpu: 40 * SECOND,
            runnable: 20 * SECOND,
            ..Stats::default()
        }
    }

    #[test]
    fn descendants_are_found_whatever_the_order() {
        let ended = [task(12, 11), task(30, 2), task(11, 10), task(13, 12), task(10, 1), task(31, 30)];
        let found: Vec<u32> = descendants(&ended, 10).iter().map(|t| t.pid).collect();
        assert_eq!(found, [12, 11, 13]);
        assert!(descendants(&[task(5, 6), task(6, 5)], 10).is_empty(), "a circle");
    }

    #[test]
    fn shares_are_of_wall_time_and_add_up() {
        let waits = Delays {
            block_io: 15 * SECOND,
            swap_in: 10 * SECOND,
            thrashing: Some(5 * SECOND),
            ..Delays::default()
        };
        let total = Stats { waits, ..task(1, 2) };
        let shares = shares(Some(&total), true);
        let share = |name: &str| shares.iter().find(|(n, _)| n.name == name).unwrap().1;
        assert_eq!(share("state.user"), Some(0.3));
        assert_eq!(share("state.system"), Some(0.1));
        assert_eq!(share("state.fault"), Some(0.15));
        assert!((share("state.sleep").unwrap() - 0.25).abs() < 1e-12);
        assert_eq!(share("state.compaction"), None, "an old kernel has none");
        let without = super::shares(Some(&total), false);
        assert!(without.iter().filter(|(_, v)| v.is_some()).count() == 3, "{without:?}");
        let short = Stats { user: 1_000_000, system: 0, ..task(1, 2) };
        let parts = super::shares(Some(&short), true);
        assert_eq!([parts[0].1, parts[1].1], [None; 2], "one tick parts nothing");
        let unmet = Stats { user: 40 * SECOND, system: 0, ..task(1, 2) };
        let parts = super::shares(Some(&unmet), true);
        assert_eq!([parts[0].1, parts[1].1], [Some(0.4), None], "no tick met the kernel");
        assert!(super::shares(None, true).iter().all(|(_, v)| v.is_none()));
    }
}
