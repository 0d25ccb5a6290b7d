//! `interval [count]`, as every statistics command of Unix takes it, and the machine to look at.

use std::path::PathBuf;
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use pagelab_counters::{Root, Tree, text_files};
use pagelab_experiment::declaration::Refusal;

use crate::failure::usage;
use crate::interrupt::Interrupt;

/// How often a wait looks whether the user wants to end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Seconds between two samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval(pub Duration);

impl FromStr for Interval {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        let seconds: f64 = text.parse().map_err(|_| Refusal::new("an interval is a number of seconds"))?;
        if !(0.01..=86_400.0).contains(&seconds) {
            return Err(Refusal::new("an interval is from 0.01 to 86400 seconds"));
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

/// The trailing operands of a view.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Schedule {
    /// Seconds between two lines; once without it
    #[arg(value_name = "INTERVAL")]
    pub interval: Option<Interval>,
    /// The number of prints [default: until interrupted]
    #[arg(value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

/// The machine to look at.
#[derive(clap::Args, Clone, Debug)]
pub struct Machine {
    /// The folder of a recorded machine ('pagelab fixture') instead of this one
    #[arg(long, value_name = "FOLDER", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,
}

impl Machine {
    /// Its counters.
    pub fn tree(&self) -> Tree {
        Tree::new(Root::new(&self.root))
    }

    /// Whether it is the running one.
    pub fn is_live(&self) -> bool {
        self.root == std::path::Path::new("/")
    }
}

/// Counters that the user adds.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Extra {
    /// Read the *.prom files of this folder, too, in Prometheus' text form: the module 'extra'
    #[arg(long = "extra", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

impl Extra {
    /// Whether there are any.
    pub fn any(&self) -> bool {
        !self.folders.is_empty()
    }

    /// The tree with them.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn add(&self, tree: Tree) -> anyhow::Result<Tree> {
        self.folders.iter().try_fold(tree, |tree, folder| {
            std::fs::read_dir(folder).map_err(|why| usage(format!("--extra {}: {why}", folder.display())))?;
            Ok(tree.with(text_files(folder)))
        })
    }
}

/// Keeps time: looks are an interval apart however long they take.
pub struct Ticker {
    interval: Duration,
    next: Instant,
    left: Option<u64>,
    interrupt: Option<Interrupt>,
}

impl Ticker {
    /// The schedule's ticks: one only without an interval. With an [`Interrupt`], a signal ends a wait
    /// early and what was set up can be undone; without, a signal ends the program.
    pub fn new(schedule: Schedule, interrupt: Option<Interrupt>) -> Self {
        let left = if schedule.interval.is_none() { Some(1) } else { schedule.count };
        let interval = schedule.interval.map_or(Duration::from_secs(1), |i| i.0);
        Self { interval, next: Instant::now(), left, interrupt }
    }

    /// Whether the user wants to end.
    pub fn interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(Interrupt::requested)
    }

    /// Counts one line as printed; whether another is wanted.
    pub fn more(&mut self) -> bool {
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(1);
        }
        self.left != Some(0) && !self.interrupted()
    }

    /// Waits for the next tick; false when the user wants to end. Ticks that were missed are left out.
    pub fn wait(&mut self) -> bool {
        self.next = (self.next + self.interval).max(Instant::now());
        loop {
            if self.interrupted() {
                return false;
            }
            let left = self.next.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            sleep(if self.interrupt.is_some() { left.min(POLL_INTERVAL) } else { left });
        }
    }
}
