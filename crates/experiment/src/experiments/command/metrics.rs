//! Metrics of `command`.

use crate::metrics::metrics;

metrics! {
    MEMORY_PEAK = "memory.peak", Bytes, Max, Lower,
        "peak resident memory: of all processes at any poll, or of one process at any time",
        "Peak RSS. A shared page counts once per process that maps it.";
    MEMORY_CHARGED_PEAK = "memory.charged.peak", Bytes, Max, Lower,
        "peak memory charged to the limit, including page cache",
        "The cgroup's own peak; missing without a limit. It reaches the limit as soon as the page \
         cache fills the remaining memory.";
    MEMORY_WORKING_SET_PEAK = "memory.working-set.peak", Bytes, Max, Lower,
        "peak memory of all processes referenced between two polls; shared pages count once per \
         process",
        "See working set. Its meaning depends on the interval between two polls.";
    POLLS_CPU = "polls.cpu", Nanoseconds, Total, Neither,
        "command: CPU time for polling the program, in no other metric of the program",
        "The polls do not preempt the program and take at most 2% of one CPU. If all CPUs are \
         busy they still take time from other tasks.";
    COMMAND_STATUS = "command.status", Count, Value, Lower,
        "the program's exit status",
        "0 means success. Missing if a signal ended the program.";
}
