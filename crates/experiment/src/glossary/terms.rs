//! The terms, in the order of the alphabet.

/// Each term with its paragraph.
pub const TERMS: &[(&str, &str)] = &[
    (
        "access time",
        "How long one reference took, from before it to after it, with the fault that it may have met. Times of \
         references are kept as histograms, one each for hits, minor and major faults.",
    ),
    (
        "anonymous memory",
        "Memory that no file stands behind: heaps, stacks, private mappings. When its frames are needed it can only go \
         to swap; without swap it stays, or the OOM killer ends a process.",
    ),
    (
        "change",
        "Of a comparison: what the other run's repetitions differ from the baseline's by, as a share of the baseline. It \
         is the middle of the differences of all pairs (Hodges and Lehmann), as ratios where no figure is 0, with the \
         95 % confidence interval that the test gives: the changes that it would not reject. The change of the medians, \
         which are shown beside it, may differ a little.",
    ),
    (
        "claim",
        "A sentence or figure of a published study as data, with the source's own words, the value that it gives, the \
         tolerance, and what pagelab found: reproduced, partly reproduced, or not reproduced.",
    ),
    (
        "condition",
        "What a run was performed under: memory limit, swap, huge pages, swappiness, other settings of the kernel. \
         Runs under different conditions can be compared; what differs is said.",
    ),
    (
        "DAMON",
        "The kernel's data access monitor (Documentation/admin-guide/mm/damon). A thread, kdamond, looks at the accessed \
         bit of one page of each region, parts regions that differ and joins those that are alike; a scheme acts on regions by \
         how often they were seen referenced and for how long that has been so, such as paging out those that never were.",
    ),
    (
        "delay accounting",
        "The kernel's account, for each thread, of the time that it waited: for a processor, for block devices, for \
         swap-in, for direct reclaim, for pages that it had lost a short while ago. It must be on when the thread \
         begins (the switch /proc/sys/kernel/task_delayacct).",
    ),
    (
        "deterministic",
        "Of a target: it gives the same figures every time, as models do. Two such runs differ exactly, so that there \
         are no p values and repetitions add nothing.",
    ),
    (
        "direct reclaim",
        "Reclaim by the task that needs a frame, which waits meanwhile. The kernel's own threads (kswapd) reclaim in \
         the background; direct reclaim begins where they are too slow, or at the limit of a cgroup.",
    ),
    (
        "dirty page",
        "A page of a file that was written in memory and not yet on the disk; under writeback it is on its way there. Its frame can \
         be reused only when it is written.",
    ),
    (
        "dirty throttling",
        "The kernel pauses whoever makes pages dirty faster than the disk takes them (balance_dirty_pages), from some share of memory \
         on (dirty_background_ratio and dirty_ratio, or their bytes). With cgroups of version 2 the share is of the cgroup's \
         limit, with version 1 of the whole machine's memory.",
    ),
    (
        "frame",
        "A piece of physical memory that holds one page. The number of frames that a load really has is smaller than \
         its limit over the page size, for page tables and whatever else is charged to the limit take some.",
    ),
    (
        "headline metrics",
        "The few metrics of an experiment beside the primary one that a comparison is most likely made for. Their p values \
         are corrected for each other's number, not for that of all metrics.",
    ),
    (
        "hit",
        "A reference to a page that is present: no fault. In the page cache, a read that needs no device.",
    ),
    (
        "knee",
        "A point at which a curve changes its slope: time against size where a cache, the TLB or memory ends, or run \
         time against the memory limit. The curve is fitted with a broken stick; the number of knees is that with the \
         lowest BIC, and each has a 95 % interval (docs/experiments/vmtest.md). Of a sweep over memory limits the knee \
         is bracketed: between the greatest limit that is too small and the least that is enough.",
    ),
    (
        "KSM",
        "Kernel samepage merging: ksmd compares pages of mappings that ask for it (MADV_MERGEABLE) and has equal ones use one frame, \
         write-protected; the next write to one of them is a fault that copies it.",
    ),
    (
        "LRU",
        "Least recently used: the page referenced longest ago is replaced. Kernels approximate it, for they see \
         accessed bits and not every reference.",
    ),
    (
        "major fault",
        "A fault whose page had to be read from a device: from a file or from swap. It costs a transfer, and the \
         thread waits for it.",
    ),
    (
        "Mann-Whitney test",
        "The test behind the p values of `compare` where the runs were not interleaved, or so few pairs cannot tell: \
         whether the repetitions of one run rank higher than those of the other. It uses the order of the values alone, \
         so that an outlier cannot decide.",
    ),
    (
        "memory protection",
        "memory.low and memory.min of a cgroup (version 2): from what it holds below them the kernel reclaims only when nothing else is \
         left, or never. What is above them, and what others hold, goes first.",
    ),
    (
        "memory tier",
        "Nodes of memory that are about as fast as each other (/sys/devices/virtual/memory_tiering). With demotion, reclaim moves pages \
         of a fast tier that are not used to a slower one; with promotion (kernel.numa_balancing 2) pages that hint faults find in use \
         are moved back. The machine's tables (ACPI HMAT) tell the kernel how fast a node is.",
    ),
    (
        "microstate",
        "What a thread does at a time: runs in user mode or in the kernel, waits for a processor, for a fault, for a \
         lock, or sleeps. `prstat -m` and the metrics `state.…` give the share of each.",
    ),
    (
        "minimum detectable change",
        "The smallest change that the same comparison, made once more, would find four times in five. It is simulated \
         from the run's own repetitions: their deviations are drawn anew, and the spread of so few is taken to be \
         uncertain. A comparison without a significant difference says nothing about smaller changes; more repetitions \
         make it smaller.",
    ),
    (
        "minor fault",
        "A fault that needed no device: the first touch of a page of anonymous memory, a page that was in the page \
         cache or had been read ahead, or the copy of a page shared since a fork.",
    ),
    (
        "miss ratio",
        "Misses over references: the share of the references whose page was not in memory. The miss ratio curve gives \
         it for every memory size (`pagelab mrc`).",
    ),
    (
        "model",
        "A VM system in virtual time: a replacement policy, or a system with its translation, reverse maps, page cache \
         and locks. It performs the same references as the running kernel, and it is deterministic.",
    ),
    (
        "notebook",
        "The SQLite file in which every run is kept, pagelab.db unless --notebook says otherwise (docs/notebook.md).",
    ),
    (
        "observation",
        "What was seen in a repetition: a metric, a histogram, a table, a page map, a counter, a note, an entry of the \
         environment.",
    ),
    (
        "OPT",
        "The offline optimum (Belady 1966): the page that is referenced again latest is replaced. No policy that \
         fetches pages on demand has fewer misses; none can be OPT, for it knows the future. It is computed from the \
         run's own stream with the frames that the run really had. Read-ahead fetches without demand, and can have \
         fewer major faults than OPT.",
    ),
    (
        "p value",
        "How probable a difference as large as the one seen would be if the two runs were the same. The primary metric \
         is tested by itself; the p values of the others are corrected for their number (Holm), so that of all of them \
         together one in twenty comparisons at most raises a false alarm. Of that, four fifths belong to the few headline \
         metrics of an experiment, so that the many others do not hide them.",
    ),
    (
        "page",
        "The unit of virtual memory, 4 KiB on x86-64. The pages of an experiment are those of its target; huge pages \
         are of 2 MiB on x86-64 and are said to be huge.",
    ),
    (
        "page cache",
        "Pages of files that the kernel keeps in memory. It takes whatever memory is free, and gives it back when it \
         is needed: a full page cache is no shortage.",
    ),
    (
        "page map",
        "Which pages of the mapping are present, and which are in swap, at a point of the run; with the number of \
         references to each page and when the last of them was.",
    ),
    (
        "pager",
        "The target pager:POLICY: real memory, paged in user space (userfaultfd) by the very code of a model's policy. \
         What the policy can know is a choice: hidden=SHARE of its frames are kept out of the page table, so that a \
         reference to them is a fault that tells of it (docs/pager.md).",
    ),
    (
        "pattern",
        "A seeded generator of references: which page is referenced when. The same pattern and seed give the same \
         references on every target, bit for bit (`pagelab patterns`).",
    ),
    (
        "pmeg",
        "Page map entry group: the unit in which the MMU of the Sun-4 maps memory. It has few of them, and a system \
         that uses more must reload them; that was the first knee of Irlam's measurements (1990).",
    ),
    (
        "primary metric",
        "The metric by which an experiment is judged, named beforehand: it is tested by itself and decides \
         `compare --fail-on`, unless --metric names others.",
    ),
    (
        "PSI",
        "Pressure stall information: the kernel's account of the time in which some task, or all of them (full), \
         waited for memory, I/O or a processor (/proc/pressure).",
    ),
    (
        "read-ahead",
        "Pages that are read before anybody asked for them, because their neighbours were. A page that came so costs \
         a minor fault, or none, where it would have cost a major one.",
    ),
    (
        "reclaim",
        "Taking frames back from those who hold them: clean pages of files are dropped, dirty ones written, anonymous \
         ones swapped out. See direct reclaim.",
    ),
    (
        "refault",
        "A page that is read again a short while after it was reclaimed, which the kernel can tell by the shadow entry \
         that it left in the page's place. Many refaults mean that the working set does not fit.",
    ),
    (
        "reference",
        "One touch of one page, by a load or a store. A stream of references is what an experiment performs.",
    ),
    (
        "regret",
        "The major faults beyond those that OPT would have had on the same stream with the same frames: how far the \
         kernel is from the best that is possible.",
    ),
    (
        "repetition",
        "One performance of an experiment. It is one sample of a comparison. Repetitions of several targets are \
         interleaved (A B B A), so that a drift of the machine meets all alike.",
    ),
    (
        "resident set",
        "The pages of a process that are in memory (RSS). It says how much memory a process holds, not how much it \
         needs: see working set.",
    ),
    (
        "reverse map",
        "The way from a frame to the page table entries that map it. Reclaim needs it to unmap a page; keeping it \
         costs time at every fork, exec and exit.",
    ),
    (
        "run",
        "One experiment on one target under one set of conditions, with all its repetitions. The notebook keeps it.",
    ),
    (
        "scan rate",
        "Pages that reclaim looks at in a second (`sr` in vmstat). It rises when memory is short; that nothing is \
         scanned means that nothing is short.",
    ),
    ("setting", "One condition that was asked for: --memory, --swap, --thp, --swappiness, --set."),
    (
        "signed-rank test",
        "Wilcoxon's test behind the p values of `compare` where the repetitions of both runs were interleaved: each is \
         compared with the one performed in turn with it, so that what slowed both counts for neither. Six pairs can tell \
         at the earliest.",
    ),
    (
        "significant",
        "Of a change: its p value is below 0.05, its interval excludes 0, and it is at least 1 %. All three must hold.",
    ),
    ("stall", "Time in which a task could not run because of memory: see PSI, direct reclaim, thrashing."),
    (
        "steal",
        "Time in which a virtual processor was ready to run and its hypervisor ran something else. Times measured \
         meanwhile are too long.",
    ),
    (
        "swap-in, swap-out",
        "Pages read from swap and pages written to it, in pages of the target. Swap-out alone costs little; swap-in is \
         what tasks wait for.",
    ),
    (
        "target",
        "What an experiment is done to: host (the running kernel), kernel:PATH (an image booted in a virtual machine), \
         model:NAME or pager:POLICY (`pagelab targets`).",
    ),
    (
        "thrashing",
        "Most of the time is spent on reading pages that were reclaimed a short while before, because the working sets \
         together do not fit.",
    ),
    (
        "TLB",
        "Translation lookaside buffer: the processor's cache of translations. Beyond its reach (entries × page size) \
         each reference to another page costs a page walk; huge pages lengthen the reach.",
    ),
    ("translation", "Finding the frame of a virtual address: in the TLB, else by a walk of the page tables."),
    (
        "window",
        "A stretch of a run's references, with its mean time, faults and swap traffic. The windows are the run's time \
         series.",
    ),
    (
        "working set",
        "The pages that are referenced within an interval (Denning 1968). It is what a program needs; the resident set \
         is what it holds. Of a running process it is measured by clearing the accessed bits and counting those that \
         are set again.",
    ),
    (
        "zram",
        "A block device in memory that compresses what is written to it. As swap it trades processor time for \
         transfers.",
    ),
];
