//! Times of every experiment.

use super::metrics;

metrics! {
    TIME_ELAPSED = "time.elapsed", Nanoseconds, Total, Lower,
        "time of the references or operations; of references without the pauses between windows",
        "Of references: the sum of their times. It excludes the pauses between windows, in which \
         pagelab polls. It also excludes most preemptions, because the kernel prefers to preempt \
         a task when that task enters it. time.wall includes both. Of a program: from its start \
         to its end.";
    TIME_WALL = "time.wall", Nanoseconds, Total, Lower,
        "wall time from the first reference to the last, including the pauses between windows",
        "The difference from time.elapsed is the time spent in pagelab's polls and in preemptions \
         outside the references.";
    TIME_CPU = "time.cpu", Nanoseconds, Total, Lower,
        "CPU time, user and system; exact",
        "CPU time of the load's own processes. The kernel accounts for the sum exactly. It \
         samples the split into time.user and time.system at its ticks.";
    TIME_USER = "time.user", Nanoseconds, Total, Lower,
        "CPU time in user mode",
        "The user part of time.cpu, for the load's own processes. The kernel samples the split at \
         its ticks, a few milliseconds apart. With ten samples the standard error of a share is \
         up to 16 points. Missing with fewer than ten samples, if no tick met the load in user \
         mode, and in a guest that counts instructions.";
    TIME_SYSTEM = "time.system", Nanoseconds, Total, Lower,
        "CPU time in the kernel",
        "The system part of time.cpu, for the load's own processes: faults, direct reclaim, \
         copies. It excludes kernel threads such as kswapd. Sampled, and missing in the same \
         cases as time.user.";
    TIME_STALLED = "time.stalled", Nanoseconds, Total, Lower,
        "time in which at least one task waited for memory (PSI some)",
        "Of the cgroup if it has a pressure file, otherwise of the whole machine. Missing if the \
         kernel has no PSI.";
}
