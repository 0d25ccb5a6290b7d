//! The script on several processors at once, operation by operation in virtual time: which lines
//! each note of the reverse map finds in its own cache, which on another processor, and which locks
//! it finds taken.
//!
//! A page's description has the flags with the lock's bit on one line and the chain's head on
//! another. A line is in the cache of whoever touched it since it was last written elsewhere;
//! capacity is not modelled. Elements are four to a line, from the processor's own list, which is
//! filled from and emptied to the slab in batches. An atomic operation waits for the stores before
//! it, so what adding writes is paid for at its unlock; removing frees an element between its
//! stores and its unlock, which hides them. The time between two notes is drawn from an exponential
//! distribution about its mean. Forks, execs and exits go over the same pages in the same order, so
//! walks that meet once meet again at the next page.

use std::collections::VecDeque;

use pagelab_reference::rng::Rng;

use super::kernel::KernelCosts;
use super::mechanism::{Costs, Mapper};
use super::script::{Instance, Script, step};
use super::space::{Caller, Memory, Op};

/// The machine that the script runs on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Processors {
    /// How many.
    pub count: u32,
    /// What the reverse map's parts cost.
    pub costs: Costs,
    /// What the kernel costs besides.
    pub kernel: KernelCosts,
    /// Processor time of the programs themselves, for a thirteenth of an iteration, in ns.
    pub user: f64,
    /// Whether the flags and the head of the chain are on one line.
    pub one_line: bool,
    /// Elements of one line: 4 of 8 bytes on lines of 32; 1: each has its own.
    pub elements_of_line: u32,
    /// Whether an element is allocated before the lock is taken and freed after it is given back.
    pub slab_outside: bool,
    /// Whether all pages have one lock.
    pub one_lock: bool,
}

/// What one kind of operation met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Calls.
    pub operations: u64,
    /// Lines missed in taking the lock.
    pub lock: u64,
    /// Lines missed in walking the chain.
    pub walk: u64,
    /// Of them, lines of elements behind the chain's first.
    pub beyond: u64,
    /// Lines that the unlock waited for.
    pub unlock: u64,
    /// Lines that were here, but had to leave the other caches before the unlock.
    pub shared: u64,
    /// Allocations and frees.
    pub slab: u64,
}

impl Parts {
    /// The time of the function itself in ns, by part: lock, walk, unlock and the rest; the slab's
    /// is its own.
    pub fn time(&self, costs: &Costs) -> [f64; 4] {
        let calls = self.operations as f64;
        let missed = |lines: u64| lines as f64 * costs.miss;
        [
            calls * costs.atomic + missed(self.lock),
            missed(self.walk),
            calls * costs.atomic + missed(self.unlock) + self.shared as f64 * costs.shared,
            calls * costs.call,
        ]
    }

    /// All lines missed.
    pub fn misses(&self) -> u64 {
        self.lock + self.walk + self.unlock
    }
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interleaved {
    /// Of `page_add_rmap`.
    pub adding: Parts,
    /// Of `page_remove_rmap`.
    pub removing: Parts,
    /// Locks found taken.
    pub contended: u64,
    /// Time waited for them, in ns.
    pub waited: f64,
}

impl Parts {
    /// A store that the unlock waits for.
    fn stored(&mut self, asked: Asked) {
        self.unlock += u64::from(asked == Asked::Line);
        self.shared += u64::from(asked == Asked::Alone);
    }

    /// The lock's line, which is always written.
    fn locked(asked: Asked) -> Self {
        Self { operations: 1, lock: u64::from(asked != Asked::Nothing), ..Self::default() }
    }
}

impl Interleaved {
    /// Locks taken.
    pub fn locks(&self) -> u64 {
        self.adding.operations + self.removing.operations
    }
}

/// No element: the pointer is direct.
const DIRECT: u32 = u32::MAX;
/// Elements that a processor keeps for itself, and how many it takes or gives at once (2.5's slab).
const CACHED_ELEMENTS: usize = 252;
const BATCH: usize = 126;

/// What is asked of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// That the others drop a line that is here.
    Alone,
    /// The line.
    Line,
}

/// Lines, and in whose caches they are: a bit for each processor.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn at(&mut self, line: usize) -> &mut u8 {
        if self.0.len() <= line {
            self.0.resize(line + 1, 0);
        }
        &mut self.0[line]
    }

    /// Whether reading misses.
    fn read(&mut self, line: usize, processor: usize) -> u64 {
        let held = self.at(line);
        let missed = *held & (1 << processor) == 0;
        *held |= 1 << processor;
        u64::from(missed)
    }

    /// What a write asks the bus for: nobody else may keep the line.
    fn write(&mut self, line: usize, processor: usize) -> Asked {
        let held = self.at(line);
        let own = 1 << processor;
        let before = std::mem::replace(held, own);
        match before {
            before if before == own => Asked::Nothing,
            before if before & own != 0 => Asked::Alone,
            _ => Asked::Line,
        }
    }
}

struct Processor {
    clock: f64,
    /// Whether it is at the next call, and not on the way there.
    arrived: bool,
    todo: VecDeque<Op>,
    instances: Vec<Instance>,
    elements: Vec<u32>,
}

struct Machine<'a> {
    set: &'a Processors,
    /// Of each page: its flags, and its chain's head.
    flags: Lines,
    heads: Lines,
    elements: Lines,
    chains: Vec<Vec<(Mapper, u32)>>,
    /// Until when each page's lock is held, and by whom.
    held: Vec<(f64, usize)>,
    slab: Vec<u32>,
    made: u32,
    rng: Rng,
    seen: Interleaved,
}

/// Runs the script. Each copy stays on its processor; of the copies on one a random one takes the
/// next step.
pub fn run(script: &Script, set: &Processors, seed: u64) -> Interleaved {
    let mut rng = Rng::new(seed);
    let mut memory = Memory::new();
    memory.record();
    let mut processors: Vec<Processor> = (0..set.count)
        .map(|_| Processor {
            clock: 0.0,
            arrived: false,
            todo: VecDeque::new(),
            instances: Vec::new(),
            elements: Vec::new(),
        })
        .collect();
    let mut machine = Machine {
        set,
        flags: Lines::default(),
        heads: Lines::default(),
        elements: Lines::default(),
        chains: Vec::new(),
        held: Vec::new(),
        slab: Vec::new(),
        made: 0,
        rng: Rng::new(seed.wrapping_add(1)),
        seen: Interleaved::default(),
    };
    for number in 0..script.instances {
        let at = (number % set.count) as usize;
        processors[at].instances.push(Instance::new(&mut memory, script));
        let ops = memory.ops();
        ops.into_iter().for_each(|op| machine.perform(op, at, &mut processors[at]));
    }
    memory.reset_counts();
    processors.iter_mut().for_each(|processor| processor.clock = 0.0);
    machine.held.fill((0.0, 0));
    machine.seen = Interleaved::default();
    loop {
        let busy = |p: &usize| !processors[*p].todo.is_empty() || !processors[*p].instances.is_empty();
        let earliest = |&a: &usize, &b: &usize| processors[a].clock.total_cmp(&processors[b].clock);
        let Some(at) = (0..processors.len()).filter(busy).min_by(earliest) else { return machine.seen };
        let processor = &mut processors[at];
        if let Some(op) = processor.todo.front() {
            // Whoever comes to a lock first takes it: first the time until then, then the call.
            if processor.arrived {
                let op = processor.todo.pop_front().expect("it was there");
                machine.perform(op, at, processor);
            } else {
                processor.clock += machine.before(op);
            }
            processor.arrived = !processor.arrived;
            continue;
        }
        let turn = rng.below(processor.instances.len() as u64) as usize;
        let calls = memory.counts.forks + memory.counts.execs;
        step(&mut memory, script, &mut processor.instances[turn]);
        let calls = memory.counts.forks + memory.counts.execs - calls;
        processor.clock += set.user + calls as f64 * set.kernel.call;
        processor.todo.extend(memory.ops());
        if processor.instances[turn].over() {
            processor.instances.swap_remove(turn);
        }
    }
}

impl Machine<'_> {
    /// The time that passes before a call, in ns.
    fn before(&mut self, op: &Op) -> f64 {
        let kernel = &self.set.kernel;
        let mean = match op.caller {
            Caller::Fork => kernel.copied,
            Caller::Drop => kernel.dropped,
            Caller::Touch => kernel.touched,
            Caller::Fresh => kernel.touched + kernel.fresh,
            Caller::Write => kernel.protected / 2.0,
        };
        -mean * (1.0 - self.rng.unit()).ln()
    }

    fn perform(&mut self, op: Op, at: usize, processor: &mut Processor) {
        let page = op.page as usize;
        if self.chains.len() <= page {
            self.chains.resize_with(page + 1, Vec::new);
            self.held.resize(page + 1, (0.0, 0));
        }
        let lock = if self.set.one_lock { 0 } else { page };
        let (until, holder) = self.held[lock];
        if until > processor.clock && holder != at {
            self.seen.contended += 1;
            self.seen.waited += until - processor.clock;
            processor.clock = until;
        }
        let parts =
            if op.add { self.add(op, at, processor) } else { self.remove(page, op.mapper, at, processor) };
        let costs = &self.set.costs;
        let slab = parts.slab as f64 * costs.slab;
        processor.clock += parts.time(costs).iter().sum::<f64>() + slab;
        self.held[lock] = (processor.clock - if self.set.slab_outside { slab } else { 0.0 }, at);
        let sum = if op.add { &mut self.seen.adding } else { &mut self.seen.removing };
        sum.operations += parts.operations;
        sum.lock += parts.lock;
        sum.walk += parts.walk;
        sum.beyond += parts.beyond;
        sum.unlock += parts.unlock;
        sum.shared += parts.shared;
        sum.slab += parts.slab;
    }

    fn write_head(&mut self, page: usize, at: usize) -> Asked {
        if self.set.one_line { Asked::Nothing } else { self.heads.write(page, at) }
    }

    fn element_line(&self, element: u32) -> usize {
        (element / self.set.elements_of_line) as usize
    }

    fn allocate(&mut self, processor: &mut Processor) -> u32 {
        if processor.elements.is_empty() {
            for _ in 0..BATCH {
                let element = self.slab.pop().unwrap_or_else(|| {
                    self.made += 1;
                    self.made - 1
                });
                processor.elements.push(element);
            }
            processor.elements.reverse();
        }
        processor.elements.pop().expect("a batch was taken")
    }

    fn free(&mut self, element: u32, processor: &mut Processor) {
        if processor.elements.len() >= CACHED_ELEMENTS {
            self.slab.extend(processor.elements.drain(..BATCH).rev());
        }
        processor.elements.push(element);
    }

    fn add(&mut self, op: Op, at: usize, processor: &mut Processor) -> Parts {
        let page = op.page as usize;
        if op.new {
            // Whoever allocates a page writes its flags and looks at its head.
            self.flags.write(page, at);
            self.heads.write(page, at);
        }
        let mut parts = Parts::locked(self.flags.write(page, at));
        let head = self.write_head(page, at);
        parts.stored(head);
        if self.chains[page].len() == 1 {
            let element = self.allocate(processor);
            parts.slab += 1;
            let line = self.element_line(element);
            parts.stored(self.elements.write(line, at));
            self.chains[page][0].1 = element;
        }
        let mut element = DIRECT;
        if !self.chains[page].is_empty() {
            element = self.allocate(processor);
            parts.slab += 1;
            let line = self.element_line(element);
            parts.stored(self.elements.write(line, at));
        }
        self.chains[page].push((op.mapper, element));
        parts
    }

    fn remove(&mut self, page: usize, mapper: Mapper, at: usize, processor: &mut Processor) -> Parts {
        let mut parts = Parts::locked(self.flags.write(page, at));
        parts.walk += if self.set.one_line { 0 } else { self.heads.read(page, at) };
        let Some(found) = self.chains[page].iter().rposition(|&(held, _)| held == mapper) else {
            debug_assert!(false, "page {page} is not mapped by {mapper}");
            return parts;
        };
        let last = self.chains[page].len() - 1;
        if last > 0 {
            // The latest is the first of the chain.
            for index in (found..=last).rev() {
                let line = self.element_line(self.chains[page][index].1);
                let missed = self.elements.read(line, at);
                parts.walk += missed;
                parts.beyond += if index < last { missed } else { 0 };
            }
            if found < last {
                let line = self.element_line(self.chains[page][found + 1].1);
                self.elements.write(line, at);
            }
            parts.slab += 1;
            let element = self.chains[page][found].1;
            self.free(element, processor);
        }
        // What is unlinked is stored before the element is freed, and done when the unlock comes;
        // only where the pointer was direct nothing is freed between.
        if found == last {
            let head = self.write_head(page, at);
            if last == 0 {
                parts.stored(head);
            }
        }
        self.chains[page].remove(found);
        if self.chains[page].len() == 1 && last == 1 {
            // The one that is left becomes direct again.
            let line = self.element_line(self.chains[page][0].1);
            parts.walk += self.elements.read(line, at);
            parts.slab += 1;
            let element = std::mem::replace(&mut self.chains[page][0].1, DIRECT);
            self.free(element, processor);
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(count: u32) -> Processors {
        Processors {
            count,
            costs: Costs::QUAD_PENTIUM_III,
            kernel: KernelCosts::QUAD_PENTIUM_III,
            user: 660_000.0,
            one_line: false,
            elements_of_line: 4,
            slab_outside: false,
            one_lock: false,
        }
    }

    #[test]
    fn alone_everything_is_soon_in_the_cache_and_no_lock_is_taken() {
        let script = Script { iterations: 5, ..Script::published(1) };
        let seen = run(&script, &set(1), 1);
        assert_eq!((seen.contended, seen.waited), (0, 0.0));
        assert!(seen.adding.misses() * 20 < seen.adding.operations, "{seen:?}");
        assert_eq!(seen.adding.slab, seen.removing.slab);
        let memory = super::super::script::run(&script, 1);
        let calls = memory.counts.adds() - memory.counts.add_nope;
        assert_eq!(seen.adding.operations, calls);
    }

    #[test]
    fn several_take_lines_and_locks_from_each_other() {
        let script = Script { iterations: 20, ..Script::published(4) };
        let seen = run(&script, &set(4), 1);
        assert!(seen.adding.lock * 3 > seen.adding.operations, "{seen:?}");
        assert!(seen.contended > 0 && seen.waited > 0.0, "{seen:?}");
        let scattered = run(&script, &Processors { elements_of_line: 1, ..set(4) }, 1);
        assert!(scattered.removing.walk > seen.removing.walk, "{scattered:?}");
        // A lock of all pages is met more often, and less often if it is given back before an
        // element is freed.
        let one = |slab_outside| run(&script, &Processors { one_lock: true, slab_outside, ..set(4) }, 1);
        let (inside, outside) = (one(false), one(true));
        assert!(inside.contended > 10 * seen.contended, "{inside:?}");
        assert!(outside.waited < inside.waited, "{outside:?}");
        // Calls that take no time are never met.
        let free = Costs { atomic: 0.0, miss: 0.0, shared: 0.0, slab: 0.0, call: 0.0 };
        let instant = run(&script, &Processors { costs: free, ..set(4) }, 1);
        assert_eq!((instant.contended, instant.waited), (0, 0.0));
    }
}
