//! The built-in storm of `forkstorm`: a process with pages of its own forks, the child writes some of them
//! and exits, or executes a small program that exits; the process waits for it and forks the next.
//!
//! The process itself is a small program with the C library, as `cat` is.

use pagelab_reference::rng::Rng;

use super::layout::CAT;
use super::mechanism::Mapper;
use super::space::Memory;

/// Pages besides those of the storm that each side writes after a fork: stack, data, the library's data.
/// Assumed.
const OWN_WRITES: u32 = 3;

/// The parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    /// Copies that run at once.
    pub copies: u32,
    /// Forks of each.
    pub forks: u32,
    /// Pages that a copy has written before.
    pub pages: u32,
    /// Of them, pages that a child writes.
    pub touch: u32,
    /// Whether a child executes a program.
    pub exec: bool,
}

struct Copy {
    process: Mapper,
    child: Option<Mapper>,
    left: u32,
}

/// Runs the storm; the copies take turns at random. Counting begins when their pages are written.
pub fn run(storm: &Storm, seed: u64) -> Memory {
    let mut rng = Rng::new(seed);
    let mut memory = Memory::new();
    let mut copies: Vec<Copy> = (0..storm.copies)
        .map(|_| {
            let process = memory.process();
            memory.exec(process, &CAT, 1);
            memory.map_written(process, storm.pages);
            Copy { process, child: None, left: storm.forks }
        })
        .collect();
    memory.reset_counts();
    memory.chains.reset_counts();
    while !copies.is_empty() {
        let turn = rng.below(copies.len() as u64) as usize;
        let copy = &mut copies[turn];
        match copy.child.take() {
            None => {
                let child = memory.fork(copy.process);
                memory.write_own(child, OWN_WRITES);
                memory.write_own(copy.process, OWN_WRITES);
                memory.write_last(child, storm.touch.min(storm.pages));
                copy.child = Some(child);
            }
            Some(child) => {
                if storm.exec {
                    memory.exec(child, &CAT, 1);
                }
                memory.exit(child);
                copy.left -= 1;
            }
        }
        if copies[turn].left == 0 {
            copies.swap_remove(turn);
        }
    }
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_copies_what_it_writes_and_drops_what_it_has() {
        let storm = Storm { copies: 2, forks: 5, pages: 100, touch: 20, exec: false };
        let counts = run(&storm, 1).counts;
        assert_eq!((counts.forks, counts.execs), (10, 0));
        // The storm's pages, and those of the program.
        assert!(counts.add_copy_page_range > 1000 && counts.add_copy_page_range < 2500);
        assert!(counts.add_do_wp_page >= 10 * 20 && counts.add_do_wp_page <= 10 * 26);
        assert_eq!(counts.remove_zap_pte_range, counts.add_copy_page_range);
        let exec = run(&Storm { exec: true, ..storm }, 1).counts;
        assert_eq!(exec.execs, 10);
        assert!(exec.remove_zap_pte_range > counts.remove_zap_pte_range);
    }
}
