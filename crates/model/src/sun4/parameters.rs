//! The parameters of a Sun-4 and of its operating system.

use super::vmtest::Sun4;
use crate::parameter::Parameter;
use crate::parameter_table;
use pagelab_experiment::declaration::Refusal;

const KERNELS: &str = "NetBSD arch/sparc/sparc/cpu.c; Linux arch/sparc/mm/sun4c.c";

/// Minimum of PMEGs for user processes, so that each of them makes progress.
const MIN_USER_PMEGS: u32 = 12;

/// The parameters of the machine, then those of the system.
pub const PARAMETERS: &[Parameter<Sun4>] = parameter_table! {
    whole "pmegs" "" [32.0, 8192.0] "page map entry groups (PMEGs)", documented(KERNELS), (machine.pmegs);
    whole "contexts" "" [3.0, 1024.0] "hardware contexts", documented(KERNELS), (machine.contexts);
    whole "locked" "" [0.0, 8000.0] "PMEGs that user processes cannot use",
        fitted("the published rows from 16 to 32 MB; 4.4BSD also reserves a few dozen of 128"), (locked);
    scaled "read" "µs" [0.01, 100.0] "read of a page with a valid translation",
        derived("user time of the rows up to 12 MB: 2.69 s per child"), (costs.read * 1e3);
    scaled "fault" "µs" [0.0, 10000.0] "system time per translation fault",
        derived("system time divided by faults, rows from 28 to 32 MB"), (costs.fault * 1e3);
    scaled "fault-user" "µs" [0.0, 10000.0] "user time per translation fault",
        derived("regression of user time on faults, rows from 18 to 32 MB"), (costs.fault_user * 1e3);
    scaled "switch" "µs" [0.0, 10000.0] "system time of a process switch",
        fitted("the rows from 16 to 32 MB: the best of 0.1, 0.15, 0.25 and 0.5 ms"), (costs.switch * 1e3);
    whole "child-faults" "" [0.0, 10000.0] "faults per child outside its segment",
        derived("faults of the rows up to 14 MB"), (costs.child_faults);
    scaled "child" "ms" [0.0, 10000.0] "system time of starting and ending a child",
        derived("regression of system time on children, rows up to 14 MB"), (costs.child * 1e6);
    whole "test-faults" "" [0.0, 100000.0] "faults of the test itself",
        derived("faults of the rows up to 14 MB"), (costs.test_faults);
    scaled "test" "s" [0.0, 100.0] "system time of the test itself",
        derived("regression of system time on children, rows up to 14 MB"), (costs.test * 1e9);
    scaled "reload" "µs" [0.0, 10000.0] "reload of a whole PMEG from its copy",
        assumed("64 stores and a trap; no source states it"), (costs.reload * 1e3);
    scaled "swap-in" "ms" [0.0, 1000.0] "swap-in of a process, without disk I/O",
        assumed("too rare under vmtest to matter"), (costs.swap_in * 1e6);
};

impl Sun4 {
    /// Refuses a machine on which processes cannot make progress.
    ///
    /// # Errors
    /// A sentence if user processes can get too few PMEGs.
    pub fn check(&self) -> Result<(), Refusal> {
        let (pmegs, locked) = (self.machine.pmegs, self.locked);
        if pmegs >= locked + MIN_USER_PMEGS {
            return Ok(());
        }
        Err(Refusal::new(format!(
            "pmegs={pmegs}, locked={locked}: at least {MIN_USER_PMEGS} pmegs must remain for user processes"
        )))
    }
}
