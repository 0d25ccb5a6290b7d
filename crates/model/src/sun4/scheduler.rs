//! The run queue: 4.3BSD's decaying priorities, or plain turns.
//!
//! Priorities follow Leffler et al., *The Design and Implementation of the 4.3BSD UNIX Operating
//! System*, 4.4: a process pays a quarter point for each 10 ms tick it ran; once a second the ticks decay
//! by 2L/(2L+1), L the load average; 32 queues hold four priorities each.

use std::collections::VecDeque;

/// How the next process is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Decaying priorities.
    Bsd,
    /// In turns.
    RoundRobin,
}

/// A clock tick in ns: 100 a second.
pub const TICK: u64 = 10_000_000;

/// The round-robin quantum in ns.
pub const QUANTUM: u64 = 10 * TICK;

const BASE: f64 = 50.0;

/// The processes that are ready to run.
#[derive(Clone, Debug)]
pub struct RunQueue {
    scheduler: Scheduler,
    queues: Vec<VecDeque<usize>>,
    ticks: Vec<f64>,
    load: f64,
}

impl RunQueue {
    /// An empty queue for processes 0 to `processes` − 1.
    pub fn new(scheduler: Scheduler, processes: usize) -> Self {
        Self { scheduler, queues: vec![VecDeque::new(); 32], ticks: vec![0.0; processes], load: 0.0 }
    }

    /// A process is ready; `woken` from a sleep it goes before all that only wait for the processor.
    pub fn ready(&mut self, process: usize, woken: bool) {
        let queue = if woken { 0 } else { self.queue(process) };
        self.queues[queue].push_back(process);
    }

    /// The next to run.
    pub fn take(&mut self) -> Option<usize> {
        self.queues.iter_mut().find_map(VecDeque::pop_front)
    }

    /// `process` ran for `ns`.
    pub fn ran(&mut self, process: usize, ns: u64) {
        self.ticks[process] = (self.ticks[process] + ns as f64 / TICK as f64).min(255.0);
    }

    /// A second has passed with `ready` processes ready or running: ticks decay.
    pub fn second(&mut self, ready: usize) {
        // The one-minute load average.
        self.load += (ready as f64 - self.load) * (1.0 - (-1.0f64 / 60.0).exp());
        let decay = 2.0 * self.load / (2.0 * self.load + 1.0);
        for ticks in &mut self.ticks {
            *ticks = (*ticks * decay).floor();
        }
        let waiting: Vec<usize> = self.queues[1..].iter_mut().flat_map(std::mem::take).collect();
        for process in waiting {
            let queue = self.queue(process);
            self.queues[queue].push_back(process);
        }
    }

    fn queue(&self, process: usize) -> usize {
        match self.scheduler {
            Scheduler::RoundRobin => 16,
            Scheduler::Bsd => ((BASE + self.ticks[process] / 4.0).min(127.0) / 4.0) as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_processes_run_before_cpu_hogs() {
        let mut queue = RunQueue::new(Scheduler::Bsd, 3);
        queue.ran(0, 100 * TICK);
        queue.ready(0, false);
        queue.ready(1, false);
        queue.ready(2, true);
        assert_eq!(
            [queue.take(), queue.take(), queue.take(), queue.take()],
            [Some(2), Some(1), Some(0), None]
        );
    }

    #[test]
    fn ticks_decay_with_time() {
        let mut queue = RunQueue::new(Scheduler::Bsd, 2);
        queue.ran(0, 100 * TICK);
        for _ in 0..30 {
            queue.second(2);
        }
        assert!(queue.ticks[0] < 5.0, "{}", queue.ticks[0]);
    }
}
