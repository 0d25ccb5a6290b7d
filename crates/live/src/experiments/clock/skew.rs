//! Skew of the time stamp counter between processors: a bound from a ping-pong over one cache line.
//!
//! Processor A writes its counter t₁; B sees it, reads its own t₂ and writes it; A sees that and reads
//! t₃. By causality A's counter stood between t₁ and t₃ when B's stood at t₂, so B is ahead of A by at
//! least t₂ − t₃ and at most t₂ − t₁. Over many rounds the greatest of the former and the least of the
//! latter enclose the skew. An interval that holds 0 proves no skew; one that does not proves it.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use pagelab_experiment::build::Sheet;
use pagelab_experiment::{Recorder, Result, tables};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::sources::tsc;

/// Rounds for each pair, and the time after which fewer must do (another program has a processor).
const ROUNDS: u64 = 4000;
const TIMEOUT: Duration = Duration::from_millis(500);
/// Rounds below which nothing is said.
const MIN_ROUNDS: u64 = 100;

/// Two processors and how far the second's counter is ahead of the first's, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pair {
    pub(crate) cpus: (usize, usize),
    /// (at least, at most); `None` when too few rounds were made.
    pub(crate) ahead: Option<(f64, f64)>,
}

impl Pair {
    /// The skew that is proven: how far from 0 the nearer end is.
    pub(crate) fn proven(&self) -> Option<f64> {
        self.ahead.map(|(least, most)| least.max(-most).max(0.0))
    }

    /// The skew that cannot be excluded.
    pub(crate) fn bound(&self) -> Option<f64> {
        self.ahead.map(|(least, most)| least.abs().max(most.abs()))
    }
}

/// A line of its own for each direction.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Measures every pair of the processors that this process may use; none without a TSC.
pub(crate) fn every_pair(ticks_a_second: Option<f64>, recorder: &mut dyn Recorder) -> Result<Vec<Pair>> {
    let (Some(rate), Ok(allowed), Some(_)) = (ticks_a_second, sched_getaffinity(None), tsc()) else {
        return Ok(Vec::new());
    };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu)).collect();
    let mut pairs = Vec::new();
    let total = (cpus.len() * cpus.len().saturating_sub(1) / 2).max(1);
    for (n, &first) in cpus.iter().enumerate() {
        for &second in &cpus[n + 1..] {
            recorder.progress("processors", pairs.len() as u64, total as u64);
            recorder.check()?;
            let ahead = ping_pong(first, second);
            let ns = |ticks: i64| ticks as f64 * 1e9 / rate;
            pairs.push(Pair {
                cpus: (first, second),
                ahead: ahead.map(|(least, most)| (ns(least), ns(most))),
            });
        }
    }
    Ok(pairs)
}

fn keep_to(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// (at least, at most) ticks that `second` is ahead of `first`.
fn ping_pong(first: usize, second: usize) -> Option<(i64, i64)> {
    let (ping, pong) = (Line::default(), Line::default());
    let deadline = Instant::now() + TIMEOUT;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new;
        let answering =
            thread().spawn_scoped(scope, || keep_to(second) && answer(&ping.0, &pong.0, deadline)).ok()?;
        let ask = || keep_to(first).then(|| ask(&ping.0, &pong.0, deadline)).flatten();
        let bounds = thread().spawn_scoped(scope, ask).ok().and_then(|asking| asking.join().ok().flatten());
        // Whoever waits is let go.
        ping.0.store(u64::MAX, Release);
        answering.join().ok().filter(|&kept| kept).and(bounds)
    })
}

/// Waits until `line` differs from `last`; `None` at the deadline.
#[inline(always)]
fn wait(line: &AtomicU64, last: u64, deadline: Instant) -> Option<u64> {
    loop {
        for _ in 0..10_000 {
            let now = line.load(Acquire);
            if now != last {
                return Some(now);
            }
            std::hint::spin_loop();
        }
        if Instant::now() > deadline {
            return None;
        }
    }
}

fn ask(ping: &AtomicU64, pong: &AtomicU64, deadline: Instant) -> Option<(i64, i64)> {
    let (mut least, mut most, mut rounds) = (i64::MIN, i64::MAX, 0);
    let mut seen = 0;
    while rounds < ROUNDS {
        let t1 = tsc()?;
        ping.store(t1 as u64, Release);
        let Some(t2) = wait(pong, seen, deadline) else { break };
        let t3 = tsc()?;
        seen = t2;
        let t2 = t2 as i64;
        least = least.max(t2 - t3);
        most = most.min(t2 - t1);
        rounds += 1;
    }
    (rounds >= MIN_ROUNDS).then_some((least, most))
}

fn answer(ping: &AtomicU64, pong: &AtomicU64, deadline: Instant) -> bool {
    let mut seen = 0;
    loop {
        match wait(ping, seen, deadline) {
            None | Some(u64::MAX) => return true,
            Some(asked) => {
                seen = asked;
                pong.store(tsc().unwrap_or(0) as u64, Release);
            }
        }
    }
}

/// The table `clock.skew`, one row for each pair.
pub(crate) fn report(pairs: &[Pair], recorder: &mut dyn Recorder) -> Result<()> {
    let mut sheet = Sheet::new(tables::clock_skew::TABLE);
    for pair in pairs {
        let (least, most) = pair.ahead.unzip();
        sheet.row([Some(pair.cpus.0 as f64), Some(pair.cpus.1 as f64), least, most]);
    }
    sheet.record(recorder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interval_proves() {
        let pair = |least, most| Pair { cpus: (0, 1), ahead: Some((least, most)) };
        assert_eq!((pair(-40.0, 50.0).proven(), pair(-40.0, 50.0).bound()), (Some(0.0), Some(50.0)));
        assert_eq!(pair(100.0, 180.0).proven(), Some(100.0));
        assert_eq!(pair(-180.0, -100.0).proven(), Some(100.0));
        assert_eq!(Pair { cpus: (0, 1), ahead: None }.proven(), None);
    }
}
