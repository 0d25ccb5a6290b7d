//! Metrics of `neighbour`.

use crate::metrics::metrics;

metrics! {
    VICTIM_COST_ALONE = "victim.cost.alone", Nanoseconds, Mean, Lower,
        "neighbour: mean CPU time of a reference by the victim without a neighbour",
        "Includes its faults. Excludes the neighbour's own CPU time and waiting for a disk.";
    VICTIM_FAULTS_ALONE = "victim.faults.alone", Count, Count, Lower,
        "neighbour: the victim's major faults without a neighbour",
        "All pages have been touched once before; 0 if the mapping fits into the limit.";
    VICTIM_REFAULTS_ALONE = "victim.refaults.alone", Pages, Count, Lower,
        "neighbour: the victim's refaults without a neighbour",
        "Of its cgroup; see refault.";
    VICTIM_COST_NEIGHBOUR = "victim.cost.neighbour", Nanoseconds, Mean, Lower,
        "neighbour: mean CPU time of a reference by the victim with a neighbour",
        "The difference from victim.cost.alone is the cost of the neighbour. It includes faults \
         and reclaim by the victim itself.";
    VICTIM_FAULTS_NEIGHBOUR = "victim.faults.neighbour", Count, Count, Lower,
        "neighbour: the victim's major faults with a neighbour",
        "Faults on pages that the neighbour's demand evicted.";
    VICTIM_REFAULTS_NEIGHBOUR = "victim.refaults.neighbour", Pages, Count, Lower,
        "neighbour: the victim's refaults with a neighbour",
        "Of its cgroup; see refault.";
    VICTIM_COST_LOW = "victim.cost.low", Nanoseconds, Mean, Lower,
        "neighbour: mean CPU time of a reference by the victim with a neighbour, protected by \
         memory.low",
        "See memory protection.";
    VICTIM_FAULTS_LOW = "victim.faults.low", Count, Count, Lower,
        "neighbour: the victim's major faults with a neighbour, protected by memory.low",
        "See memory protection. The kernel reclaims below memory.low only if nothing else is \
         left. The table's column low counts these cases.";
    VICTIM_REFAULTS_LOW = "victim.refaults.low", Pages, Count, Lower,
        "neighbour: the victim's refaults with a neighbour, protected by memory.low",
        "Of its cgroup; see refault.";
    VICTIM_COST_MIN = "victim.cost.min", Nanoseconds, Mean, Lower,
        "neighbour: mean CPU time of a reference by the victim with a neighbour, protected by \
         memory.min",
        "See memory protection.";
    VICTIM_FAULTS_MIN = "victim.faults.min", Count, Count, Lower,
        "neighbour: the victim's major faults with a neighbour, protected by memory.min",
        "See memory protection. The kernel never reclaims below memory.min.";
    VICTIM_REFAULTS_MIN = "victim.refaults.min", Pages, Count, Lower,
        "neighbour: the victim's refaults with a neighbour, protected by memory.min",
        "Of its cgroup; see refault.";
    VICTIM_PROTECTED = "victim.protected", Bytes, Value, Neither,
        "neighbour: value of memory.low and memory.min: the charge of the victim alone, plus 64 \
         pages per CPU",
        "The charge includes page tables and the kernel's own memory for the victim. The kernel \
         charges up to 64 pages in advance on each CPU.";
}
