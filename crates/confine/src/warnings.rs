//! The warnings about a confinement: words that occur in each, and what they mean.

type Warning = (&'static str, &'static str);

pub const MAY_SWAP: Warning = (
    "is at its memory limit and may swap to the run's own swap",
    "Linux cannot reserve a swap device for one cgroup, so the swap traffic of this cgroup \
     may be in the run's figures. Wait until it ends, or measure in a guest",
);
pub const OTHERS_SWAPPED: Warning = (
    "of other cgroups were in the run's own swap when it ended",
    "Other cgroups swapped to the run's device, so its times and counts of the device include \
     theirs. Repeat the run when they are idle, or measure in a guest",
);
pub const NO_SWAP_LIMIT: Warning = (
    "the kernel does not account swap to cgroups (swapaccount=0)",
    "The memory limit is in force, but the run may use more swap than was asked for. Boot \
     with swapaccount=1",
);
pub const ABOVE_MEMORY: Warning = (
    "exceeds this machine's memory",
    "The kernel runs out of memory before the load reaches the limit, so the limit makes \
     nothing page. Choose a smaller one",
);
pub const HOLDS_OTHER: Warning = (
    "and holds",
    "The kernel shows another value than --set wrote, and pagelab cannot tell whether it is \
     the same setting. Check the file before you trust a comparison of settings",
);
pub const CHANGED: Warning = (
    "another program changed",
    "A setting of the run was changed while it measured, so its figures belong to neither \
     value. Find the program, and repeat the run",
);
pub const NOT_UNDONE: Warning = (
    "cannot undo",
    "The figures are valid, but the machine still has a change of this run. The warning gives \
     the command that undoes it, and 'pagelab doctor --leftovers' lists it until then",
);

/// All of them.
pub const ALL: [Warning; 7] =
    [MAY_SWAP, OTHERS_SWAPPED, NO_SWAP_LIMIT, ABOVE_MEMORY, HOLDS_OTHER, CHANGED, NOT_UNDONE];
