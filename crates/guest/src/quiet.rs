//! Waits in the guest until the kernel's own work after booting is over, so that nothing but the experiment is
//! measured: a kernel tests its ciphers and runs deferred work on the same processor for seconds after it has
//! started its first process.

use std::fs;
use std::hint::black_box;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Steps of the calibrated loop: some three million instructions, close to the period of a timer's tick.
const STEPS: u64 = 1_000_000;
/// The loop costs the same when two in a row differ by less than this share: a tick more or less passes, a slice
/// of another task does not. Other tasks are none when they take less than this share of the processors.
const SAME: f64 = 0.01;
/// How many looks in a row have to be quiet.
const QUIET_POLLS: u32 = 3;
/// Time between two samples, for deferred work to come up.
const PAUSE: Duration = Duration::from_millis(20);
/// The guest's time after which it is measured all the same, and said not to have come to rest.
const LIMIT: Duration = Duration::from_secs(20);

/// What was seen before the experiment began.
pub struct Quiet {
    /// Whether the machine came to rest.
    pub calm: bool,
    /// How long that took, of the guest's time.
    pub waited: Duration,
    /// By what it is told.
    pub by: Sign,
    /// Tasks that could run at the last look, this one among them.
    pub runnable: Option<u64>,
}

/// By what a machine at rest is told: the last two looks.
pub enum Sign {
    /// What the loop cost.
    Loops([Duration; 2]),
    /// The share of the processors' time that other tasks had since the look before.
    Others([f64; 2]),
}

impl Quiet {
    /// Waits until no other task can run, and several looks in a row are quiet. Where the guest's clock has `counted`
    /// instructions the loop costs the same; where it is the host's the host does other things meanwhile, and no other task had
    /// the guest's processors. A kernel that does not say who had them has the loop, too.
    pub fn wait(counted: bool) -> Self {
        let start = Instant::now();
        let mut look = Snapshot::take(counted);
        let mut others_before = 1.0;
        let mut quiet = 0;
        loop {
            sleep(PAUSE);
            let now = Snapshot::take(counted);
            let runnable = runnable();
            let others = now.others(&look);
            let same =
                others.unwrap_or_else(|| (look.cost.as_secs_f64() / now.cost.as_secs_f64() - 1.0).abs());
            quiet = if same < SAME && runnable.is_none_or(|n| n <= 1) { quiet + 1 } else { 0 };
            let calm = quiet >= QUIET_POLLS;
            if calm || start.elapsed() > LIMIT {
                let by = match others {
                    Some(others) => Sign::Others([others_before, others]),
                    None => Sign::Loops([look.cost, now.cost]),
                };
                return Self { calm, waited: start.elapsed(), by, runnable };
            }
            others_before = others.unwrap_or(1.0);
            look = now;
        }
    }

    /// The proof, as a fact about the machine.
    pub fn proof(&self) -> String {
        let seen = match self.by {
            Sign::Loops(loops) => {
                let [one, two] = loops.map(|cost| cost.as_nanos());
                format!("loop {one} and {two} ns")
            }
            Sign::Others(shares) => {
                let [one, two] = shares.map(|share| share * 100.0);
                format!("other tasks {one:.2} and {two:.2}%")
            }
        };
        let runnable = self.runnable.map_or_else(|| "—".to_owned(), |n| n.to_string());
        let rest = if self.calm { "at rest" } else { "not at rest" };
        format!("{rest} after {} ms; {seen}; runnable {runnable}", self.waited.as_millis())
    }
}

/// A look at the machine.
struct Snapshot {
    at: Instant,
    /// Nanoseconds that all tasks have had of the processors, and this one, up to when each last gave one up.
    had: Option<(u64, u64)>,
    cost: Duration,
}

impl Snapshot {
    fn take(counted: bool) -> Self {
        let at = Instant::now();
        let had = if counted { None } else { had() };
        Self { at, had, cost: cost() }
    }

    /// The share of the time since the look `before` that other tasks had; `None` where the kernel does not say.
    fn others(&self, before: &Self) -> Option<f64> {
        let ((all, own), (all_before, own_before)) = self.had.zip(before.had)?;
        let others = all.saturating_sub(all_before).saturating_sub(own.saturating_sub(own_before));
        Some(others as f64 / (self.at - before.at).as_nanos() as f64)
    }
}

/// See [`Snapshot::had`]: `/proc/schedstat` and this task's own `schedstat`.
fn had() -> Option<(u64, u64)> {
    let all = all_tasks(&fs::read_to_string("/proc/schedstat").ok()?)?;
    let own = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some((all, own.split_ascii_whitespace().next()?.parse().ok()?))
}

/// The sum over the processors' lines of their seventh number (Documentation/scheduler/sched-stats.rst).
fn all_tasks(text: &str) -> Option<u64> {
    let lines = text.lines().filter(|line| line.starts_with("cpu"));
    let times = lines.map(|line| line.split_ascii_whitespace().nth(7)?.parse::<u64>().ok());
    times.reduce(|sum, time| sum?.checked_add(time?)).flatten()
}

/// What the calibrated loop costs now.
fn cost() -> Duration {
    let start = Instant::now();
    let mut value = 1_u64;
    for step in 0..STEPS {
        value = black_box(value.wrapping_mul(step | 1));
    }
    black_box(value);
    start.elapsed()
}

/// The tasks that can run now, as `/proc/stat` counts them.
fn runnable() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("procs_running "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_had_what_all_had_beyond_this_one() {
        let text = "version 16\ntimestamp 4294938432\ncpu0 0 0 9 8 7 6 5000 40 3\ndomain0 3 1 2 3 4 5 6 7 8\n\
                    cpu1 0 0 9 8 7 6 300 40 3\n";
        assert_eq!(
            (all_tasks(text), all_tasks("version 15\n"), all_tasks("cpu0 1 2\n")),
            (Some(5300), None, None)
        );
        let at = Instant::now();
        let look = |ms, had| Snapshot { at: at + Duration::from_millis(ms), had, cost: Duration::ZERO };
        let before = look(0, Some((1_000_000, 500_000)));
        assert_eq!(look(20, Some((5_000_000, 2_500_000))).others(&before), Some(0.1));
        assert_eq!(
            look(20, Some((1_000_000, 600_000))).others(&before),
            Some(0.0),
            "not yet counted for all"
        );
        assert_eq!(look(20, None).others(&before), None);
    }
}
