//! Metrics of `need` for a running cgroup or process.

use crate::metrics::metrics;

metrics! {
    NEED_MEMORY = "need.memory", Bytes, Value, Lower,
        "need: memory that the running tasks need",
        "Of a cgroup: the memory in use when most of the memory that the kernel reclaims comes back. Of a \
         process: the private memory that it referenced, a lower bound. A note says which, and how \
         the search ended.";
    NEED_LIMIT = "need.limit", Bytes, Value, Neither,
        "need: the lowest memory limit of the tasks' cgroup and those above it",
        "Missing if there is no limit.";
    NEED_GROWTH = "need.growth", Bytes, Value, Lower,
        "need: anonymous memory by which the tasks grew per minute",
        "Swapped memory included, so that reclaim does not change it. 0 unless the peaks of all four \
         quarters of the measurement increase, or all decrease. Missing for a process.";
    NEED_STALL = "need.stall", Share, Value, Lower,
        "need: share of the measurement in which some task stalled for memory",
        "Without PSI an estimate from the pages that came back. Missing for a process.";
}
