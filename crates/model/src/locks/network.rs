//! The same by discrete events, with as many locks as wanted: jobs compute, queue for one of them, hold it.
//!
//! Times of computing are exponential; a hold lasts longer the more wait for that lock when it begins. A
//! visit goes to the token of the whole system, to one of a few shared objects (Zipf), or to a lock that
//! nobody else wants.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pagelab_reference::rng::Rng;

use super::mva::Token;

/// Where locked work goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Locks {
    /// What one lock for all would be like.
    pub token: Token,
    /// Share of locked work under the one lock.
    pub global: f64,
    /// Of the rest, the share on objects that all jobs use: the libraries and the compiler.
    pub shared: f64,
    /// How many such objects there are.
    pub objects: u32,
    /// Exponential holds, as the exact solution has them; otherwise all holds are equally long.
    pub exponential: bool,
}

impl Locks {
    /// One lock for all.
    pub fn one(token: Token) -> Self {
        Self { token, global: 1.0, shared: 0.0, objects: 0, exponential: true }
    }
}

/// Holds in the time that a job alone needs for one unit of work.
const VISITS: f64 = 1.0;

/// What a run gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    /// Work done in a unit of time.
    pub rate: f64,
    /// Mean number of jobs that wait.
    pub waiting: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Time(f64);

impl Eq for Time {}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrives(u32),
    Leaves(u32),
}

struct Lock {
    holder: Option<u32>,
    queue: VecDeque<u32>,
}

/// Runs `jobs` jobs for `cycles` visits in all, a tenth of them before counting begins.
pub fn simulate(locks: &Locks, jobs: u32, cycles: u64, seed: u64) -> Throughput {
    let mut rng = Rng::new(seed);
    let weights: Vec<f64> = (1..=locks.objects).map(|rank| 1.0 / f64::from(rank)).collect();
    let total: f64 = weights.iter().sum();
    let mut stations: Vec<Lock> =
        (0..=locks.objects).map(|_| Lock { holder: None, queue: VecDeque::new() }).collect();
    let mut at = vec![0usize; jobs as usize];
    let mut events = BinaryHeap::new();
    let exponential = |rng: &mut Rng, mean: f64| -mean * (1.0 - rng.unit()).ln();
    let think = (1.0 - locks.token.held) / VISITS;
    for job in 0..jobs {
        events.push(Reverse((Time(exponential(&mut rng, think)), Event::Arrives(job))));
    }
    let (mut done, mut waiting, mut queued) = (0u64, 0.0, 0u64);
    let (mut start, mut now, warm) = (0.0, 0.0, cycles / 10);
    while done < warm + cycles {
        let Some(Reverse((Time(time), event))) = events.pop() else { break };
        if done >= warm {
            waiting += queued as f64 * (time - now);
        }
        now = time;
        let begin = |lock: &mut Lock, job: u32, rng: &mut Rng| {
            lock.holder = Some(job);
            let mean = locks.token.hold(1 + lock.queue.len() as u32) / VISITS;
            if locks.exponential { exponential(rng, mean) } else { mean }
        };
        match event {
            Event::Arrives(job) => {
                let draw = rng.unit();
                let station = if draw < locks.global {
                    0
                } else if draw < locks.global + (1.0 - locks.global) * locks.shared && locks.objects > 0 {
                    let mut left = rng.unit() * total;
                    let found = weights.iter().position(|weight| {
                        left -= weight;
                        left <= 0.0
                    });
                    1 + found.unwrap_or(weights.len() - 1)
                } else {
                    usize::MAX
                };
                at[job as usize] = station;
                match stations.get_mut(station) {
                    None => {
                        let hold = locks.token.hold(1) / VISITS;
                        events.push(Reverse((Time(now + hold), Event::Leaves(job))));
                    }
                    Some(lock) if lock.holder.is_some() => {
                        lock.queue.push_back(job);
                        queued += 1;
                    }
                    Some(lock) => {
                        let hold = begin(lock, job, &mut rng);
                        events.push(Reverse((Time(now + hold), Event::Leaves(job))));
                    }
                }
            }
            Event::Leaves(job) => {
                done += 1;
                if done == warm {
                    start = now;
                }
                if let Some(lock) = stations.get_mut(at[job as usize]) {
                    lock.holder = None;
                    if let Some(next) = lock.queue.pop_front() {
                        queued -= 1;
                        let hold = begin(lock, next, &mut rng);
                        events.push(Reverse((Time(now + hold), Event::Leaves(next))));
                    }
                }
                let again = now + exponential(&mut rng, think);
                events.push(Reverse((Time(again), Event::Arrives(job))));
            }
        }
    }
    let span = now - start;
    Throughput { rate: (done - warm) as f64 / VISITS / span, waiting: waiting / span }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_slowing_events_agree_with_the_exact_solution() {
        let token = Token { held: 0.2, slowing: 0.0 };
        let exact = token.throughput(48);
        for jobs in [1, 4, 8, 48] {
            let found = simulate(&Locks::one(token), jobs, 100_000, 1).rate;
            let exact = exact[jobs as usize];
            assert!((found / exact - 1.0).abs() < 0.02, "{jobs}: {found} {exact}");
        }
    }

    #[test]
    fn with_slowing_they_agree_nearly() {
        // The hold's length is fixed when it begins; the exact solution lets later waiters lengthen it.
        let token = Token { held: 0.233, slowing: 0.0124 };
        let exact = token.throughput(48)[48];
        let found = simulate(&Locks::one(token), 48, 100_000, 1).rate;
        assert!((found / exact - 1.0).abs() < 0.03, "{found} {exact}");
    }

    #[test]
    fn finer_locks_are_faster_and_locks_that_nobody_shares_cost_nothing() {
        let token = Token { held: 0.233, slowing: 0.0124 };
        let at = |global| {
            let locks = Locks { global, shared: 0.0, ..Locks::one(token) };
            simulate(&locks, 48, 50_000, 1).rate
        };
        assert!(at(0.5) > at(1.0) && at(0.1) > at(0.5));
        assert!((at(0.0) / 48.0 - 1.0).abs() < 0.02);
    }
}
