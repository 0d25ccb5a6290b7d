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
/// of another task does not.
const SAME: f64 = 0.01;
/// How many looks in a row have to be quiet.
const LOOKS: u32 = 3;
/// Time between two looks, for deferred work to come up.
const PAUSE: Duration = Duration::from_millis(20);
/// The guest's time after which it is measured all the same, and said not to have come to rest.
const LIMIT: Duration = Duration::from_secs(20);

/// What was seen before the experiment began.
pub struct Quiet {
    /// Whether the machine came to rest.
    pub calm: bool,
    /// How long that took, of the guest's time.
    pub waited: Duration,
    /// The last two costs of the loop.
    pub loops: [Duration; 2],
    /// Tasks that could run at the last look, this one among them.
    pub runnable: Option<u64>,
}

impl Quiet {
    /// Waits until no other task can run and the loop costs the same, several looks in a row.
    pub fn wait() -> Self {
        let start = Instant::now();
        let mut before = cost();
        let mut quiet = 0;
        loop {
            sleep(PAUSE);
            let now = cost();
            let runnable = runnable();
            let same = before.as_secs_f64() / now.as_secs_f64() - 1.0;
            quiet = if same.abs() < SAME && runnable.is_none_or(|n| n <= 1) { quiet + 1 } else { 0 };
            let calm = quiet >= LOOKS;
            if calm || start.elapsed() > LIMIT {
                return Self { calm, waited: start.elapsed(), loops: [before, now], runnable };
            }
            before = now;
        }
    }

    /// The proof, as a fact about the machine.
    pub fn proof(&self) -> String {
        let [one, two] = self.loops.map(|cost| cost.as_nanos());
        let runnable = self.runnable.map_or_else(|| "—".to_owned(), |n| n.to_string());
        let rest = if self.calm { "at rest" } else { "not at rest" };
        format!("{rest} after {} ms; loop {one} and {two} ns; runnable {runnable}", self.waited.as_millis())
    }
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
