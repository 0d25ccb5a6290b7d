//! How much memory the page maps of runs may take when they are unpacked: a notebook comes from anywhere, and
//! zlib makes a thousand bytes of one.

use std::cell::Cell;

/// The most numbers of one array: a mapping of 256 GiB in pages of 4 KiB.
pub(crate) const ARRAY: usize = 1 << 26;
/// The most bytes of one run's arrays.
const RUN: u64 = 1 << 30;
/// The most bytes of all arrays that one command holds.
const COMMAND: u64 = 2 << 30;

/// The bytes that are left.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Cell<u64>,
}

impl Budget {
    /// For runs that are held together.
    pub(crate) fn of_a_command() -> Self {
        Self { left: Cell::new(COMMAND) }
    }

    /// For one run.
    pub(crate) fn of_a_run() -> Self {
        Self { left: Cell::new(RUN) }
    }

    /// What of this budget one run may take.
    pub(crate) fn for_run(&self) -> Self {
        Self { left: Cell::new(self.left.get().min(RUN)) }
    }

    /// The most numbers that the next array may have.
    pub(crate) fn numbers(&self) -> usize {
        usize::try_from(self.left.get() / 4).map_or(ARRAY, |left| left.min(ARRAY))
    }

    /// Takes what an array of `numbers` holds.
    pub(crate) fn take(&self, numbers: usize) {
        self.left.set(self.left.get().saturating_sub(numbers as u64 * 4));
    }

    /// Takes what a run took of `part`, which was made of this by [`Self::for_run`].
    pub(crate) fn settle(&self, part: &Self) {
        let given = self.left.get().min(RUN);
        self.left.set(self.left.get() - (given - part.left.get()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_more_than_its_runs_together() {
        let command = Budget::of_a_command();
        let mut held = 0;
        while command.numbers() > 0 {
            let run = command.for_run();
            while run.numbers() > 0 {
                let numbers = run.numbers();
                assert!(numbers <= ARRAY);
                run.take(numbers);
                held += numbers as u64 * 4;
            }
            command.settle(&run);
            assert!(held <= COMMAND);
        }
        assert_eq!(held, COMMAND);
        let run = Budget::of_a_run();
        run.take(3);
        assert_eq!(run.left.get(), RUN - 12);
    }
}
