//! Metrics of `oom`.

use crate::metrics::metrics;

metrics! {
    OOM_STALL_EQUAL = "oom.stall.equal", Nanoseconds, Value, Lower,
        "oom: time from first reaching the limit to the first kill",
        "No process inside the limit makes progress meanwhile. With swap the time includes \
         filling it. The resolution is one poll, 0.2 ms.";
    OOM_STALL_ADJUSTED = "oom.stall.adjusted", Nanoseconds, Value, Lower,
        "oom: oom.stall.equal with a higher oom_score_adj for the first process",
        "See oom.stall.equal.";
    OOM_STALL_GROUP = "oom.stall.group", Nanoseconds, Value, Lower,
        "oom: oom.stall.equal with memory.oom.group",
        "See oom.stall.equal. Missing with cgroup version 1.";
    OOM_KILLED_EQUAL = "oom.killed.equal", Bytes, Last, Neither,
        "oom: memory and swap held by the OOM victim",
        "The kernel kills the process that holds the most, not the one that asked for more. The \
         table kills identifies it.";
    OOM_KILLED_ADJUSTED = "oom.killed.adjusted", Bytes, Last, Neither,
        "oom: oom.killed.equal with a higher oom_score_adj for the first process",
        "The kernel counts each unit of oom_score_adj as a thousandth of the limit in addition.";
    OOM_KILLED_GROUP = "oom.killed.group", Count, Count, Neither,
        "oom: processes killed with memory.oom.group",
        "With this setting the kernel kills all processes of the cgroup. Missing with cgroup \
         version 1.";
    OOM_PREDICTED = "oom.predicted", Share, Share, Neither,
        "oom: share of the kills, without memory.oom.group, of the process with the highest score",
        "The score follows the kernel's formula: pages in memory, in swap and of page tables, \
         plus oom_score_adj. pagelab computes it from /proc at the last poll.";
}
