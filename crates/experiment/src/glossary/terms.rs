//! The terms, in the order of the alphabet.

/// Each term with its paragraph.
pub const TERMS: &[(&str, &str)] = &[
    (
        "ablation",
        "A mechanism taken out of a model. A claim that holds without the mechanism it is about \
         says nothing of it, so each claim names an ablation under which it fails \
         (`reproduce STUDY --without ABLATION`).",
    ),
    (
        "access time",
        "The time of one reference, from before it to after it, including any fault. Access \
         times are stored as histograms for hits, minor faults and major faults.",
    ),
    (
        "anonymous memory",
        "Memory without a file: heaps, stacks, private mappings. Its pages can only be \
         reclaimed by writing them to swap. Without swap they stay, or the OOM killer ends a \
         process.",
    ),
    (
        "change",
        "In a comparison: the difference from the baseline, relative to the baseline. It is the \
         Hodges-Lehmann estimate (the median of all pairwise differences, computed as ratios if \
         no value is 0) with the 95% confidence interval obtained by inverting the test. The \
         change of the two medians can differ slightly.",
    ),
    (
        "claim",
        "A sentence or figure of a published study as data: the source's words, the value, the \
         tolerance, and the result (reproduced, partly reproduced, or not reproduced).",
    ),
    (
        "condition",
        "The environment of a run: memory limit, swap, huge pages, swappiness, other kernel \
         settings. Runs under different conditions can be compared; `compare` lists the \
         differences.",
    ),
    (
        "DAMON",
        "The kernel's data access monitor (Documentation/admin-guide/mm/damon). Its thread \
         kdamond samples the accessed bit of one page per region, and splits and merges regions \
         by the result. A scheme acts on regions by their access frequency and age, for example \
         by paging out those that were never referenced.",
    ),
    (
        "degrees of freedom",
        "Of claims (column df): published figures less the constants that were computed from them \
         or fitted with them. Five figures with three constants have two, and each claim 0.4. A \
         prediction has 1. An identity, or a claim that follows from others, has none.",
    ),
    (
        "delay accounting",
        "The kernel's account of the time that each thread waited for a CPU, block I/O, \
         swap-in, direct reclaim, or pages that it lost recently (thrashing). It must be on \
         when the thread starts (/proc/sys/kernel/task_delayacct).",
    ),
    (
        "derived",
        "The role of a claim whose figure, or one like it, a parameter of the model was \
         computed from. See claim.",
    ),
    (
        "deterministic",
        "Of a target: every repetition gives the same figures, as simulators do. Two such runs \
         differ exactly, so there are no p-values and repetitions add nothing.",
    ),
    (
        "direct reclaim",
        "Reclaim by the task that needs a frame, which waits meanwhile. The kernel's own \
         threads (kswapd) reclaim in the background. Direct reclaim starts if they are too \
         slow, or at the limit of a cgroup.",
    ),
    (
        "dirty page",
        "A page of a file that was written in memory and not yet to the disk. Its frame can be \
         reused after it is written; under writeback it is on its way.",
    ),
    (
        "dirty throttling",
        "The kernel pauses a task that dirties pages faster than the disk writes them \
         (balance_dirty_pages), from a share of memory on (dirty_background_ratio and \
         dirty_ratio, or their bytes). With cgroup v2 it is a share of the cgroup's limit, with \
         cgroup v1 of the machine's memory.",
    ),
    (
        "distinct prediction",
        "A held-out claim whose model figure no other claim of the study has. The score counts a \
         figure once, however many published rows show it; and never if a constant was computed \
         from it or fitted with it.",
    ),
    (
        "fitted",
        "The role of a claim whose figure a parameter of the model was fitted with. Its \
         agreement says little. See held out.",
    ),
    (
        "frame",
        "A piece of physical memory that holds one page. A load has fewer frames than its limit \
         divided by the page size, because page tables and other memory are charged too.",
    ),
    (
        "headline metrics",
        "The few metrics of an experiment, apart from the primary one, that most comparisons \
         are made for. Their p-values are corrected for their own number, not for that of all \
         metrics.",
    ),
    (
        "held out",
        "The role of a claim whose figure no parameter of the model has seen. Only held-out \
         claims test the model. See claim, derived, fitted, identity.",
    ),
    (
        "hit",
        "A reference to a page that is present, without a fault. In the page cache: a read \
         without a device.",
    ),
    (
        "Hodges-Lehmann estimate",
        "The median of all pairwise differences between the repetitions of two runs. \
         `compare` prints it as the change. See change.",
    ),
    (
        "icount",
        "A guest that counts instructions (--on kernel:PATH,accel=icount): QEMU translates the \
         guest's code, and each instruction advances the guest's clock by the same step. \
         Costs are then instructions and repeat exactly; they include no caches and no \
         waiting.",
    ),
    (
        "identity",
        "The role of a claim that follows without a model: arithmetic, a unit, or a rule on \
         the source's own rows. It is never counted as reproduced. See claim.",
    ),
    (
        "knee",
        "A point where a curve changes its slope: time against size at the end of a cache, the \
         TLB or memory, or run time against the memory limit. pagelab fits a piecewise linear \
         regression. Each knee is significant, changes the figure by a minimum effect, and has \
         a 95% interval. In a memory-limit sweep the knee lies between the largest limit that \
         is too small and the smallest that suffices.",
    ),
    (
        "KSM",
        "Kernel samepage merging: ksmd compares pages of mappings that ask for it \
         (MADV_MERGEABLE) and merges identical pages into one write-protected frame. The next \
         write to such a page takes a copy-on-write fault.",
    ),
    (
        "LRU",
        "Least recently used: the page that was referenced longest ago is replaced. Kernels \
         approximate it, because they see accessed bits and not every reference.",
    ),
    (
        "major fault",
        "A fault whose page had to be read from a device, from a file or from swap. The thread \
         waits for the transfer.",
    ),
    (
        "Mann-Whitney test",
        "The test behind the p-values of `compare` for runs that were not interleaved, or with few pairs. \
        It asks whether the repetitions of one run rank higher than those of the other. It uses the order \
        of the values only, so an outlier cannot decide.",
    ),
    (
        "marginal",
        "Of a claim: reproduced with less than a tenth of its tolerance to spare. A slightly \
         different model would miss it.",
    ),
    (
        "memory protection",
        "memory.low and memory.min of a cgroup (version 2): the kernel reclaims memory below \
         them only if nothing else is left (low), or never (min). It first reclaims memory \
         above them, and that of others.",
    ),
    (
        "memory tier",
        "Nodes of memory with similar speed (/sys/devices/virtual/memory_tiering). With \
         demotion, reclaim moves unused pages of a fast tier to a slower one. With promotion \
         (kernel.numa_balancing 2) pages in use move back. The firmware's tables (ACPI HMAT) \
         give the speed of each node.",
    ),
    (
        "microstate",
        "The state of a thread at a time: running in user mode or in the kernel, waiting for a \
         CPU, a fault or a lock, or sleeping. `prstat -m` and the metrics `state.…` give the \
         share of each.",
    ),
    (
        "minimum detectable change",
        "The smallest change that the same comparison would find in 80% of cases if it were \
         repeated. It is simulated from the run's own repetitions and allows for the \
         uncertainty of their spread. A comparison without a significant difference says \
         nothing about smaller changes. More repetitions reduce it.",
    ),
    (
        "minor fault",
        "A fault that needed no device. Examples are the first touch of anonymous memory, a page in the \
        page cache, a page that was read ahead, and the copy of a page shared since a fork.",
    ),
    (
        "miss ratio",
        "Misses divided by references. The miss-ratio curve gives it for every memory size \
         (`pagelab mrc`).",
    ),
    (
        "model",
        "A simulator in virtual time: a replacement policy, or a VM system with its \
         translation, reverse maps, page cache and locks. It runs the same references as the \
         kernel and is deterministic.",
    ),
    ("notebook", "The SQLite file with every run: pagelab.db unless --notebook names another."),
    (
        "observation",
        "A result of a repetition: a metric, a histogram, a table, a page map, a counter, a \
         note, or a fact about the environment.",
    ),
    (
        "OPT",
        "The offline optimum (Belady 1966): the page whose next reference is farthest in the \
         future is replaced. No policy that fetches pages on demand has fewer misses, and none \
         can reach it without knowing the future. pagelab computes it from the run's own stream \
         and frames. Read-ahead fetches without demand and can have fewer major faults than \
         OPT.",
    ),
    (
        "p-value",
        "The probability of a difference at least as large as the observed one if the two runs \
         were the same. The primary metric is tested on its own. Holm's method corrects the \
         p-values of the others, so that at most one in twenty comparisons of identical runs \
         raises a false alarm. Four fifths of that belong to the headline metrics.",
    ),
    (
        "page",
        "The unit of virtual memory, a base page of 4 KiB on x86-64. Transparent huge pages (2 \
         MiB on x86-64) are always called huge pages.",
    ),
    (
        "page cache",
        "Pages of files that the kernel keeps in memory. It uses all free memory and returns it \
         on demand, so a full page cache is no shortage.",
    ),
    (
        "page map",
        "The pages of the mapping that are present or in swap at one point of the run. It has the number of \
        references to each page and the time of the last one.",
    ),
    (
        "pager",
        "The target pager:POLICY: real memory, paged in user space (userfaultfd) by the code of \
         a simulated policy. hidden=SHARE of its frames are kept out of the page table, so that \
         a reference to them is visible as a fault.",
    ),
    (
        "pattern",
        "A seeded generator of references. The same pattern and seed give the same references \
         on every target, bit for bit (`pagelab patterns`).",
    ),
    (
        "phase",
        "A part of a program's run in which it references mostly the same pages. `trace` \
         finds the phases of a recording and gives the mean working set of each.",
    ),
    (
        "pmeg",
        "Page map entry group: the unit in which the MMU of the Sun-4 maps memory. There are \
         few, and a system that uses more must reload them. That was the first knee of Irlam's \
         measurements (1990).",
    ),
    (
        "primary metric",
        "The metric that judges an experiment, named in advance. It is tested on its own and \
         decides `compare --fail-on`, unless --metric names others. If it was not measured on \
         both sides, the first headline metric that was takes its place. For `command`, elapsed \
         time and CPU time decide together.",
    ),
    (
        "PSI",
        "Pressure stall information: the kernel's account of the time in which some task, or \
         all of them (full), waited for memory, I/O or a CPU (/proc/pressure).",
    ),
    (
        "read-ahead",
        "Pages that are read before any task references them, because their neighbours were. \
         Such a page costs a minor fault or none, instead of a major fault.",
    ),
    (
        "reclaim",
        "Freeing frames in use: clean file pages are dropped, dirty ones written, anonymous \
         ones swapped out. See direct reclaim.",
    ),
    (
        "refault",
        "A fault on a page that was reclaimed recently, which the kernel detects by the shadow \
         entry left in its place (workingset_refault). Many refaults mean that the working set \
         does not fit.",
    ),
    (
        "reference",
        "One touch of one page, by a load or a store. The cache literature calls it a request. \
         An experiment runs a stream of references.",
    ),
    ("regret", "The major faults that OPT would have avoided on the same stream with the same frames."),
    (
        "repetition",
        "One execution of an experiment, and one sample of a comparison. Repetitions of several \
         targets are interleaved (A B B A), so that a drift of the machine affects all alike.",
    ),
    (
        "resident set",
        "The pages of a process that are in memory (RSS). It shows the memory that a process \
         holds, not the memory that it needs: see working set.",
    ),
    (
        "reverse map",
        "The way from a frame to the page-table entries that map it. Reclaim needs it to unmap \
         a page. Maintaining it costs time at every fork, exec and exit.",
    ),
    (
        "run",
        "One experiment on one target under one set of conditions, with all its repetitions. \
         The notebook stores it.",
    ),
    (
        "scan rate",
        "Pages that reclaim examines per second (`sr` in vmstat). It rises when memory is \
         short. If nothing is scanned, memory is not short.",
    ),
    (
        "sensitivity",
        "Of a study: how many of the reproduced held-out claims survive if a fitted constant is \
         10% less, and 10% more (column survive ±10%). A count changes by one at least.",
    ),
    ("setting", "A requested condition: --memory, --swap, --thp, --swappiness, --set."),
    (
        "signed-rank test",
        "Wilcoxon's test behind the p-values of `compare` for interleaved repetitions. It \
         compares each repetition with its partner, so that a disturbance of both counts for \
         neither. It needs at least six pairs.",
    ),
    (
        "significant",
        "Of a change: its p-value is below 0.05, its interval excludes 0, and it is at least \
         1%. All three must hold.",
    ),
    (
        "slowdown",
        "The run time of a program under a memory limit, divided by its run time at full speed; \
         both without the time that it waited for a CPU. `need` judges a slowdown of 10% by the \
         stalls for memory, because other load does not change them.",
    ),
    (
        "stall",
        "Time in which a task could not run because of memory: see PSI, direct reclaim, \
         thrashing.",
    ),
    (
        "steal",
        "Time in which a virtual CPU was ready to run while the hypervisor ran something else. \
         Times measured meanwhile are too long.",
    ),
    (
        "swap-in, swap-out",
        "Pages read from swap and pages written to it, in pages of the target. Tasks wait for \
         swap-in; swap-out alone costs little.",
    ),
    (
        "target",
        "The place where an experiment runs: host (the running kernel), kernel:PATH (an image \
         booted in a virtual machine), model:NAME or pager:POLICY (`pagelab targets`).",
    ),
    (
        "thrashing",
        "Most of the time is spent reading pages that were reclaimed recently, because the \
         working sets together do not fit.",
    ),
    (
        "TLB",
        "Translation lookaside buffer: the CPU's cache of translations. Beyond its reach \
         (entries × page size) each reference to another page costs a page walk. Huge pages \
         extend the reach.",
    ),
    (
        "tolerance",
        "The distance from the published figure within which a model reproduces a claim. It \
         is stated with its reason before the model runs. Up to twice that distance the claim \
         is partly reproduced.",
    ),
    ("translation", "Finding the frame of a virtual address, in the TLB or by a walk of the page tables."),
    (
        "verdict",
        "The word that a comparison, a claim or `doctor` ends with, such as better, inconclusive \
         or reproduced. Each is explained under its own name.",
    ),
    (
        "window",
        "A section of a run's references, with its mean time, faults and swap traffic. The \
         windows are the run's time series.",
    ),
    (
        "working set",
        "The pages that are referenced within an interval (Denning 1968): the memory that a \
         program needs, while the resident set is the memory that it holds. In a running \
         process it is measured by clearing the accessed bits and counting those that are set \
         again.",
    ),
    (
        "zram",
        "A block device in memory that compresses the data written to it. As swap it trades CPU \
         time for transfers.",
    ),
];
