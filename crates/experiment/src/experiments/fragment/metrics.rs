//! Metrics of `fragment`.

use crate::metrics::metrics;

metrics! {
    FRAGMENT_UNFRAGMENTED = "fragment.unfragmented", Count, Count, Higher,
        "fragment: huge pages obtained by faults before memory was filled",
        "Of the number that --huge requests: the baseline of the other figures.";
    FRAGMENT_FRAGMENTED = "fragment.fragmented", Count, Count, Higher,
        "fragment: huge pages obtained by faults in fragmented memory, without compaction",
        "Hardly more than fragment.blocks.";
    FRAGMENT_DIRECT = "fragment.direct", Count, Count, Higher,
        "fragment: huge pages obtained by faults in fragmented memory, with direct compaction",
        "/sys/kernel/mm/transparent_hugepage/defrag is set to always.";
    FRAGMENT_COLLAPSE = "fragment.collapse", Count, Count, Higher,
        "fragment: huge pages obtained by MADV_COLLAPSE in fragmented memory",
        "From parts of a mapping with all base pages present; 0 before Linux 6.1.";
    FRAGMENT_COMPACTED = "fragment.compacted", Count, Count, Higher,
        "fragment: huge pages obtained by faults without compaction after a write to \
         compact_memory",
        "The gain of compacting all memory at once.";
    FRAGMENT_BLOCKS = "fragment.blocks", Count, First, Neither,
        "fragment: free blocks of a huge page's size in fragmented memory",
        "From /proc/buddyinfo, all zones; a larger block counts as several.";
    FRAGMENT_COST_UNFRAGMENTED = "fragment.cost.unfragmented", Nanoseconds, Mean, Lower,
        "fragment: mean CPU time per huge page obtained before memory was filled",
        "Most of it is clearing the page.";
    FRAGMENT_COST_DIRECT = "fragment.cost.direct", Nanoseconds, Mean, Lower,
        "fragment: mean CPU time of faults with direct compaction per huge page obtained",
        "The difference from fragment.cost.unfragmented is the cost of compaction in the faulting \
         thread. Includes failed attempts.";
    FRAGMENT_COST_COLLAPSE = "fragment.cost.collapse", Nanoseconds, Mean, Lower,
        "fragment: mean CPU time of MADV_COLLAPSE per huge page obtained",
        "Includes the copy of its base pages and failed attempts.";
    FRAGMENT_COMPACTION_CPU = "fragment.compaction.cpu", Nanoseconds, Total, Lower,
        "fragment: CPU time of compacting all memory (/proc/sys/vm/compact_memory)",
        "The calling thread does the work.";
}
