//! Metrics of `forkstorm`.

use crate::metrics::metrics;

metrics! {
    FORKS_RATE = "forks.rate", PerSecond, Rate, Higher,
        "forkstorm: forks per second of all copies together",
        "The copies compete for the same locks, so the rate grows less than their number.";
    FORK_RESIDUAL = "fork.residual", Pages, Max, Lower,
        "forkstorm: pages copied per fork beyond the experiment's own: its stack, and pages that \
         the kernel writes in every thread",
        "These pages are part of the cost of each fork. The fewer there are, the smaller is \
         pagelab's share of the figures.";
    FORK_COST = "fork.cost", Nanoseconds, Mean, Lower,
        "forkstorm: mean CPU time of a fork in its caller",
        "Most of it is the copy of the page tables, so it grows with the parent's mapped memory. \
         If the child runs first on the same CPU, fork.p50 and fork.p99 include that time and \
         this metric does not.";
    FORK_P50 = "fork.p50", Nanoseconds, Median, Lower,
        "forkstorm: median time of a fork in its caller",
        "Over the last 65,536 forks of each copy.";
    FORK_P99 = "fork.p99", Nanoseconds, P99, Lower,
        "forkstorm: 99th percentile of the time of a fork in its caller",
        "Preemption and a busy CPU affect this metric, but not the median.";
    FORK_SYSTEM = "fork.system", Nanoseconds, Mean, Lower,
        "forkstorm: mean CPU time in the kernel per fork, including its consequences",
        "Includes the child's copies of pages, its exit and the parent's wait.";
    EXIT_COST = "exit.cost", Nanoseconds, Mean, Lower,
        "forkstorm: mean time from fork's return to the child's end: its writes, exit and the \
         wait for it",
        "The child releases its page tables and the pages that it copied.";
    EXIT_P50 = "exit.p50", Nanoseconds, Median, Lower,
        "forkstorm: median time from fork's return to the child's end",
        "Over the last 65,536 children of each copy.";
    EXIT_P99 = "exit.p99", Nanoseconds, P99, Lower,
        "forkstorm: 99th percentile of the time from fork's return to the child's end",
        "Preemption and a busy CPU affect this metric, but not the median.";
    EXEC_COST = "exec.cost", Nanoseconds, Mean, Lower,
        "forkstorm: mean time from fork's return to the child's end: its writes, exec, start, \
         exit and the wait for it",
        "Includes the new program's start and its faults.";
    EXEC_P50 = "exec.p50", Nanoseconds, Median, Lower,
        "forkstorm: median time from fork's return to the end of a child that calls exec",
        "Over the last 65,536 children of each copy.";
    EXEC_P99 = "exec.p99", Nanoseconds, P99, Lower,
        "forkstorm: 99th percentile of the time from fork's return to the end of a child that \
         calls exec",
        "Preemption and a busy CPU affect this metric, but not the median.";
    PAGE_TABLES_PEAK = "page-tables.peak", Bytes, Max, Lower,
        "forkstorm: peak growth of the machine's page-table memory",
        "Of the whole machine: other programs may have contributed.";
}
