//! Morton's script: `( cat FILE | wc -l )`, then the loop's `expr`, 500 times, in several copies at once.
//!
//! An iteration forks five times (subshell, cat, wc, command substitution, expr) and execs three times.

use pagelab_reference::rng::Rng;

use super::layout::{CAT, EXPR, Program, SHELL, SHELL_OWN, WC, shell_with};
use super::mechanism::Mapper;
use super::space::Memory;

/// The parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script {
    /// Copies that run at once.
    pub instances: u32,
    /// Iterations of each.
    pub iterations: u32,
    /// Pages of the shell that are its own.
    pub shell_own: u32,
    /// Pages of its own that a child of the shell writes after a fork.
    pub child_writes: u32,
    /// Pages that the parent writes after a fork.
    pub parent_writes: u32,
    /// Whether fork copies the parent's entries; otherwise a child begins with none.
    pub copies: bool,
    /// Whether the programs are executed; otherwise the shell's children only exit.
    pub execs: bool,
}

impl Script {
    /// As published, with this many copies.
    pub fn published(instances: u32) -> Self {
        Self {
            instances,
            iterations: 500,
            shell_own: SHELL_OWN,
            child_writes: 20,
            parent_writes: 12,
            copies: true,
            execs: true,
        }
    }
}

/// Every sixth program has arguments and environment on two pages: 1.17 on average.
const SECOND_ARGUMENT_PAGE: u64 = 6;

/// One copy of the script.
pub(super) struct Instance {
    shell: Mapper,
    /// The processes that run now: subshell or substitution, and what it started.
    middle: Mapper,
    tools: [Mapper; 2],
    step: u32,
    left: u32,
}

impl Instance {
    /// A shell that is up.
    pub(super) fn new(memory: &mut Memory, script: &Script) -> Self {
        let shell = memory.process();
        let segments = shell_with(script.shell_own);
        memory.exec(shell, &Program { segments: &segments, ..SHELL }, 0);
        Self { shell, middle: 0, tools: [0; 2], step: 0, left: script.iterations }
    }

    /// Whether it has done all its iterations.
    pub(super) fn over(&self) -> bool {
        self.left == 0
    }
}

/// Steps of an iteration.
pub const STEPS: u32 = 13;

/// Runs the script; the copies take turns at random. Counting begins when the shells are up.
pub fn run(script: &Script, seed: u64) -> Memory {
    let mut rng = Rng::new(seed);
    let mut memory = Memory::new();
    let mut instances: Vec<Instance> =
        (0..script.instances).map(|_| Instance::new(&mut memory, script)).collect();
    memory.reset_counts();
    memory.chains.reset_counts();
    while !instances.is_empty() {
        let turn = rng.below(instances.len() as u64) as usize;
        step(&mut memory, script, &mut instances[turn]);
        if instances[turn].over() {
            instances.swap_remove(turn);
        }
    }
    memory
}

/// Performs the next step of a copy.
pub(super) fn step(memory: &mut Memory, script: &Script, it: &mut Instance) {
    let fork = |memory: &mut Memory, parent: Mapper| {
        let child = if script.copies { memory.fork(parent) } else { memory.fork_empty() };
        memory.write_own(child, script.child_writes);
        memory.write_own(parent, script.parent_writes);
        child
    };
    let exec = |memory: &mut Memory, process: Mapper, program: &Program| {
        if !script.execs {
            return;
        }
        let pages = 1 + u32::from(memory.counts.execs.is_multiple_of(SECOND_ARGUMENT_PAGE));
        memory.exec(process, program, pages);
    };
    match it.step {
        0 => it.middle = fork(memory, it.shell),
        1 => it.tools[0] = fork(memory, it.middle),
        2 => exec(memory, it.tools[0], &CAT),
        3 => it.tools[1] = fork(memory, it.middle),
        4 => exec(memory, it.tools[1], &WC),
        5 => memory.exit(it.tools[0]),
        6 => memory.exit(it.tools[1]),
        7 | 12 => memory.exit(it.middle),
        8 => it.middle = fork(memory, it.shell),
        9 => it.tools[0] = fork(memory, it.middle),
        10 => exec(memory, it.tools[0], &EXPR),
        _ => memory.exit(it.tools[0]),
    }
    it.step += 1;
    if it.step == STEPS {
        it.step = 0;
        it.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iteration_is_five_forks_and_three_execs() {
        let memory = run(&Script { iterations: 4, ..Script::published(2) }, 1);
        assert_eq!((memory.counts.forks, memory.counts.execs), (40, 24));
        // 222 pages and 14 mappings a fork.
        assert_eq!(memory.counts.copy_page_range, 14 * 40);
        assert_eq!(memory.counts.add_copy_page_range, 222 * 40);
    }
}
