//! Irlam's vmtest on a Sun-4: children that sweep a shared segment, a parent that polls for their end,
//! a daemon that wakes every 30 seconds, and the processes that wait for the test to end.
//!
//! The parent's wake-ups cut the children's slices. It sleeps two fiftieths of a second, which is four ticks
//! and the rest of the one that has begun, so a child runs for five ticks, 50 ms, before the parent and then
//! the next child get their turn. A slice is time for 170 faults; a child that lost its 2 MiB needs 512.

use pagelab_reference::rng::Rng;

use super::family::{Machine, SEGMENT};
use super::pool::{Contexts, Copies, Counts, Pool, Space, Touch, Victim};
use super::scheduler::{QUANTUM, RunQueue, Scheduler, TICK};

/// What things cost, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Reading a byte of a page whose translation is there.
    pub read: u64,
    /// System time of one translation fault.
    pub fault: u64,
    /// User time that goes with it.
    pub fault_user: u64,
    /// System time of writing back a whole pmeg.
    pub reload: u64,
    /// System time of a switch between processes.
    pub switch: u64,
    /// System time of bringing back a process that was swapped out, without disk.
    pub swap_in: u64,
    /// System time of starting and ending a child, without its faults.
    pub child: u64,
    /// Its faults outside the segment.
    pub child_faults: u64,
    /// System time of starting and ending the test, without its faults.
    pub test: u64,
    /// Its faults.
    pub test_faults: u64,
}

impl Costs {
    /// A SPARCstation 1 under SunOS 4.0.3, read off the published table.
    pub const SPARCSTATION_1: Self = Self {
        read: 1_050,
        fault: 273_000,
        fault_user: 20_300,
        reload: 150_000,
        switch: 150_000,
        swap_in: 10_000_000,
        child: 30_000_000,
        child_faults: 86,
        test: 440_000_000,
        test_faults: 568,
    };
}

/// A Sun-4 and its system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sun4 {
    /// The machine.
    pub machine: Machine,
    /// Pmegs that user processes never get: the kernel's, the daemons', the one that means unmapped.
    pub locked: u32,
    /// Which pmeg is taken.
    pub victim: Victim,
    /// Which context is taken.
    pub contexts: Contexts,
    /// How the next process is chosen.
    pub scheduler: Scheduler,
    /// What things cost.
    pub costs: Costs,
    /// What is kept of a pmeg that was taken.
    pub copies: Copies,
    /// Whether processes that map the same segment share its pmegs.
    pub shared: bool,
    /// Whether a process without resident pages is swapped out.
    pub eager_swapping: bool,
    /// Whether programs are linked with libraries that take pmegs of their own.
    pub libraries: bool,
}

/// The workload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VmTest {
    /// Children.
    pub children: u32,
    /// Bytes of the segment that each sweeps.
    pub bytes: u64,
    /// Sweeps of each.
    pub passes: u32,
    /// Ticks between two polls of the parent.
    pub poll: u64,
    /// Processes that run before the test and after it, and sleep in between: the shell, `time` …
    pub sleepers: u32,
    /// Seconds after which the children stop, done or not.
    pub seconds: Option<f64>,
}

impl VmTest {
    /// The published test with `megabytes` of virtual memory.
    pub fn published(megabytes: u32) -> Self {
        Self { children: megabytes / 2, bytes: 2 << 20, passes: 5000, poll: 5, sleepers: 4, seconds: None }
    }
}

/// What a run gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Seconds from start to end.
    pub elapsed: f64,
    /// Seconds in user mode.
    pub user: f64,
    /// Seconds in the kernel.
    pub system: f64,
    /// Pages read.
    pub reads: u64,
    /// Translation faults, reloads of whole pmegs included.
    pub faults: u64,
    /// Processes brought back after they were swapped out.
    pub swap_ins: u64,
    /// Switches between processes.
    pub switches: u64,
    /// Mean ms from the daemon's wake-up to the end of its work; none if it never woke.
    pub response_ms: Option<f64>,
    /// The pool's counts, as `hatcnt` shows them.
    pub pool: Counts,
}

const U_AREA: usize = 0;
const STACK: usize = 1;
const TEXT: usize = 2;
const LIBRARY: [usize; 2] = [3, 4];
const DATA: usize = 5;
const DAEMON_PERIOD: u64 = 30_000_000_000;
const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Parent,
    Daemon,
    Sleeper,
    Child,
}

struct Process {
    role: Role,
    space: Space,
    /// Where its data are: its own space, or the shared one.
    data: Space,
    wake: Option<u64>,
    started: bool,
    position: u64,
    left: u64,
}

struct Run<'a> {
    system: &'a Sun4,
    test: &'a VmTest,
    rng: Rng,
    pool: Pool,
    queue: RunQueue,
    processes: Vec<Process>,
    now: u64,
    user: u64,
    kernel: u64,
    pages: u64,
    reads: u64,
    other_faults: u64,
    swap_ins: u64,
    switches: u64,
    responses: (u64, u64),
    remaining: u32,
}

impl Sun4 {
    /// A machine under SunOS 4.0.3, with the parameters of the published table.
    pub const fn sunos403(machine: Machine) -> Self {
        Self {
            machine,
            locked: 33,
            victim: Victim::Contextless,
            contexts: Contexts::Random,
            scheduler: Scheduler::RoundRobin,
            costs: Costs::SPARCSTATION_1,
            copies: Copies::None,
            shared: false,
            eager_swapping: true,
            libraries: false,
        }
    }

    /// Runs vmtest; the random choices follow from `seed`.
    pub fn run(&self, test: &VmTest, seed: u64) -> Outcome {
        let mut run = Run::new(self, test, seed);
        run.perform();
        let counts = run.pool.counts();
        let seconds = |ns: u64| ns as f64 / 1e9;
        Outcome {
            elapsed: seconds(run.now),
            user: seconds(run.user),
            system: seconds(run.kernel),
            reads: run.reads,
            faults: counts.faults + counts.reloads + run.other_faults,
            swap_ins: run.swap_ins,
            switches: run.switches,
            response_ms: (run.responses.1 > 0).then(|| run.responses.0 as f64 / 1e6 / run.responses.1 as f64),
            pool: counts,
        }
    }
}

/// The most entries of a PMEG, and so of what is read at once.
const MAX_ENTRIES: u64 = 64;

/// The pages that are begun within `time` if each takes `each`, at most [`MAX_ENTRIES`].
fn pages_within(time: u64, each: u64) -> u64 {
    // A division takes longer than all else here, and is seldom needed.
    if time >= MAX_ENTRIES * each { MAX_ENTRIES } else { time.div_ceil(each) }
}

impl<'a> Run<'a> {
    fn new(system: &'a Sun4, test: &'a VmTest, seed: u64) -> Self {
        let machine = &system.machine;
        let mut pool = Pool::new(
            machine.pmegs.saturating_sub(system.locked).max(1),
            machine.entries,
            (machine.contexts - 1).max(1),
            system.victim,
            system.contexts,
            system.copies,
        );
        // The swept segment begins on a pmeg's boundary.
        let segments = DATA + test.bytes.div_ceil(SEGMENT) as usize;
        let shared = system.shared.then(|| pool.space(segments));
        let pages = test.bytes / u64::from(machine.page);
        let roles = [Role::Parent, Role::Daemon]
            .into_iter()
            .chain((0..test.sleepers).map(|_| Role::Sleeper))
            .chain((0..test.children).map(|_| Role::Child));
        let processes: Vec<Process> = roles
            .map(|role| {
                let space = pool.space(segments);
                Process {
                    role,
                    space,
                    data: shared.unwrap_or(space),
                    wake: (role == Role::Daemon).then_some(DAEMON_PERIOD),
                    started: false,
                    position: 0,
                    left: if role == Role::Child { pages * u64::from(test.passes) } else { 0 },
                }
            })
            .collect();
        let queue = RunQueue::new(system.scheduler, processes.len());
        Self {
            system,
            test,
            rng: Rng::new(seed),
            pool,
            queue,
            processes,
            now: 0,
            user: 0,
            kernel: 0,
            pages,
            reads: 0,
            other_faults: 0,
            swap_ins: 0,
            switches: 0,
            responses: (0, 0),
            remaining: test.children,
        }
    }

    fn perform(&mut self) {
        let costs = self.system.costs;
        self.charge(costs.test, 0);
        self.charge_faults(costs.test_faults);
        for sleeper in self.sleepers() {
            self.switch_to(sleeper);
        }
        for process in 0..self.processes.len() {
            if matches!(self.processes[process].role, Role::Parent | Role::Child) {
                self.queue.ready(process, self.processes[process].role == Role::Parent);
            }
        }
        let mut last = None;
        let mut next_second = SECOND;
        let end = self.test.seconds.map_or(u64::MAX, |seconds| self.now + (seconds.max(0.0) * 1e9) as u64);
        loop {
            if self.now >= end && self.remaining > 0 {
                self.stop();
            }
            let next_event = self.wake_up(&mut next_second);
            let Some(process) = self.queue.take() else {
                self.now = next_event;
                continue;
            };
            let begun = self.now;
            if last != Some(process) {
                self.switch_to(process);
                last = Some(process);
            }
            let until = next_event.min(begun + QUANTUM).min(end).max(self.now + 1);
            let again = match self.processes[process].role {
                Role::Child => self.run_child(process, until),
                Role::Parent => {
                    if self.remaining == 0 {
                        self.pool.release(self.processes[process].space);
                        for sleeper in self.sleepers() {
                            self.switch_to(sleeper);
                        }
                        return;
                    }
                    self.processes[process].wake = Some((self.now / TICK + self.test.poll) * TICK);
                    false
                }
                Role::Sleeper => unreachable!("a sleeper is not in the queue"),
                Role::Daemon => {
                    let woken = self.now / DAEMON_PERIOD * DAEMON_PERIOD;
                    self.responses.0 += self.now - woken;
                    self.responses.1 += 1;
                    self.processes[process].wake = Some(woken + DAEMON_PERIOD);
                    false
                }
            };
            self.queue.ran(process, self.now - begun);
            if again {
                self.queue.ready(process, false);
            }
        }
    }

    /// Those that wait for the test to end.
    fn sleepers(&self) -> std::ops::Range<usize> {
        2..2 + self.test.sleepers as usize
    }

    /// The time is up: no child has anything left to read.
    fn stop(&mut self) {
        self.remaining = 0;
        for process in self.processes.iter_mut().filter(|process| process.role == Role::Child) {
            process.left = 0;
        }
    }

    /// Wakes who is due; returns the next time something is.
    fn wake_up(&mut self, next_second: &mut u64) -> u64 {
        while *next_second <= self.now {
            *next_second += SECOND;
            self.queue.second(self.remaining as usize);
        }
        let mut next = *next_second;
        for process in 0..2 {
            match self.processes[process].wake {
                Some(wake) if wake <= self.now => {
                    self.processes[process].wake = None;
                    self.queue.ready(process, true);
                }
                Some(wake) => next = next.min(wake),
                None => {}
            }
        }
        next
    }

    fn switch_to(&mut self, process: usize) {
        self.switches += 1;
        self.charge(self.system.costs.switch, 0);
        let space = self.processes[process].space;
        // Only who sleeps long is swapped out, never a child that waits for the processor.
        let slept = matches!(self.processes[process].role, Role::Daemon | Role::Sleeper);
        if self.system.eager_swapping
            && slept
            && self.processes[process].started
            && self.pool.held(space) == 0
        {
            self.swap_ins += 1;
            self.charge(self.system.costs.swap_in, 0);
        }
        self.pool.switch_to(space, &mut self.rng);
        let libraries = self.system.libraries;
        match self.processes[process].role {
            Role::Child => {
                if !std::mem::replace(&mut self.processes[process].started, true) {
                    self.charge(self.system.costs.child, 0);
                    self.charge_faults(self.system.costs.child_faults);
                    if libraries {
                        for segment in LIBRARY {
                            self.touch(space, segment, 0);
                        }
                    }
                }
                for entry in 0..2 {
                    self.touch(space, U_AREA, entry);
                }
                self.touch(space, STACK, 0);
                self.touch(space, TEXT, 0);
            }
            Role::Parent | Role::Daemon | Role::Sleeper => {
                self.processes[process].started = true;
                for entry in 0..2 {
                    for segment in [U_AREA, STACK, TEXT, DATA] {
                        self.touch(space, segment, entry);
                    }
                    if libraries {
                        for segment in LIBRARY {
                            self.touch(space, segment, entry);
                        }
                    }
                }
            }
        }
    }

    /// Sweeps until `until` or the end; true if there is more to do.
    fn run_child(&mut self, index: usize, until: u64) -> bool {
        let entries = u64::from(self.system.machine.entries);
        let costs = self.system.costs;
        let (space, data) = (self.processes[index].space, self.processes[index].data);
        let (mut position, mut left) = (self.processes[index].position, self.processes[index].left);
        let sweep = self.pages * costs.read;
        let (mut segment, mut entry) = (DATA + (position / entries) as usize, (position % entries) as u32);
        while left > 0 && self.now < until {
            if position == 0 {
                // Whole sweeps at once, when every page is there.
                let sweeps = (left / self.pages).min((until - self.now) / sweep);
                if sweeps > 0 && self.all_present(data, entries) {
                    self.charge(0, sweeps * sweep);
                    left -= sweeps * self.pages;
                    continue;
                }
            }
            let most = (self.pages - position).min(left).min(pages_within(until - self.now, costs.read));
            let mut run = u64::from(self.pool.present(data, segment, entry, most as u32));
            if run == 0 {
                if !self.pool.holds(data, segment) {
                    self.touch(data, segment, entry);
                    // That may have taken the pmeg of the loop itself, or of its stack.
                    self.touch(space, TEXT, 0);
                    self.touch(space, STACK, 0);
                    continue;
                }
                let each = costs.fault + costs.fault_user + costs.read;
                let most = (self.pages - position).min(left).min(pages_within(until - self.now, each));
                run = u64::from(self.pool.fill(data, segment, entry, most as u32));
                self.charge(run * costs.fault, run * costs.fault_user);
            }
            self.charge(0, run * costs.read);
            left -= run;
            position += run;
            entry += run as u32;
            // A run ends with its segment.
            if u64::from(entry) == entries {
                (segment, entry) = (segment + 1, 0);
            }
            if position == self.pages {
                (position, segment, entry) = (0, DATA, 0);
            }
        }
        self.reads += self.processes[index].left - left;
        self.processes[index].position = position;
        self.processes[index].left = left;
        // Who was stopped is no longer counted.
        if left == 0 && self.remaining > 0 {
            self.pool.release(space);
            self.remaining -= 1;
        }
        left > 0
    }

    /// Whether every page of the swept segment is there.
    fn all_present(&self, data: Space, entries: u64) -> bool {
        (0..self.pages).step_by(entries as usize).all(|page| {
            let wanted = entries.min(self.pages - page) as u32;
            self.pool.present(data, DATA + (page / entries) as usize, 0, wanted) == wanted
        })
    }

    fn touch(&mut self, space: Space, segment: usize, entry: u32) {
        let costs = self.system.costs;
        match self.pool.touch(space, segment, entry, &mut self.rng) {
            Touch::Present => {}
            Touch::Fault => self.charge(costs.fault, costs.fault_user),
            Touch::Reload => self.charge(costs.reload, costs.fault_user),
        }
    }

    fn charge_faults(&mut self, faults: u64) {
        let costs = self.system.costs;
        self.other_faults += faults;
        self.charge(faults * costs.fault, faults * costs.fault_user);
    }

    fn charge(&mut self, kernel: u64, user: u64) {
        self.kernel += kernel;
        self.user += user;
        self.now += kernel + user;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sun4::SPARCSTATION_1;
    use proptest::prelude::*;

    fn test(children: u32) -> VmTest {
        VmTest { passes: 1000, ..VmTest::published(2 * children) }
    }

    #[test]
    fn with_room_for_all_a_child_faults_once_for_each_page() {
        let system = Sun4::sunos403(SPARCSTATION_1);
        for children in 1..=4 {
            let outcome = system.run(&test(children), 1);
            assert_eq!(outcome.pool.steals, 0);
            // 568 of the test, 8 of the parent and of each sleeper; 86, 512 and 4 of each child.
            assert_eq!(outcome.faults, 608 + 602 * u64::from(children));
            assert_eq!(outcome.swap_ins, 0);
        }
    }

    #[test]
    fn beyond_the_pool_everything_faults_and_a_copy_of_the_pmegs_cures_it() {
        let system = Sun4::sunos403(SPARCSTATION_1);
        let (room, none) = (system.run(&test(4), 1), system.run(&test(16), 1));
        assert!(none.elapsed > 8.0 * 4.0 * room.elapsed, "{} {}", none.elapsed, room.elapsed);
        let copies = Sun4 { copies: Copies::All, ..system }.run(&test(16), 1);
        assert!(copies.elapsed < none.elapsed / 5.0);
        let shared = Sun4 { shared: true, ..system }.run(&test(16), 1);
        assert!(shared.pool.steals == 0 && shared.elapsed < copies.elapsed);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        /// Time is user and system time together, unless all wait; the same seed gives the same run.
        #[test]
        fn time_adds_up(seed: u64, children in 1u32..18, locked in 0u32..110) {
            let system = Sun4 { locked, ..Sun4::sunos403(SPARCSTATION_1) };
            let test = VmTest { passes: 40, ..test(children) };
            let outcome = system.run(&test, seed);
            prop_assert_eq!(outcome, system.run(&test, seed));
            let busy = outcome.user + outcome.system;
            prop_assert!(busy <= outcome.elapsed + 1e-9);
            // Only the last wait for the poll is idle.
            prop_assert!(outcome.elapsed - busy <= 0.051, "{} {}", outcome.elapsed, busy);
            prop_assert!(outcome.faults >= 600 + 600 * u64::from(children));
        }
    }
}
