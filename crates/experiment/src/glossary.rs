//! What the terms of the output mean, a paragraph each: `pagelab explain`, and docs/glossary.md.

use crate::catalogue::METRICS;
use crate::observation::{Better, Unit};

/// A term or a metric with its paragraph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it means.
    pub text: String,
}

/// The terms, in the order of the alphabet.
pub fn terms() -> Vec<Entry> {
    TERMS.iter().map(|&(name, text)| Entry { name, text: text.to_owned() }).collect()
}

/// The metrics, in the order of the catalogue: what each is, its unit, and how to read it.
pub fn metrics() -> Vec<Entry> {
    let paragraph = |name| READING.iter().find(|(metric, _)| *metric == name).map_or("", |(_, text)| text);
    let metric = |metric: &crate::catalogue::Definition| {
        let better = match metric.better {
            Better::Lower => "; lower is better",
            Better::Higher => "; higher is better",
            Better::Neither => "",
        };
        let mut help = metric.help.to_owned();
        help[..1].make_ascii_uppercase();
        let text = format!("{help} ({}{better}). {}", words(metric.unit), paragraph(metric.name));
        Entry { name: metric.name, text }
    };
    METRICS.iter().map(metric).collect()
}

/// A unit in words.
fn words(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count => "a count",
        Unit::Pages => "pages",
        Unit::Bytes => "bytes",
        Unit::Share => "a share from 0 to 1",
        Unit::PerSecond => "a second",
        Unit::BytesPerSecond => "bytes a second",
        Unit::Instructions => "instructions",
        Unit::Ratio => "a ratio",
    }
}

const TERMS: &[(&str, &str)] = &[
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

/// How each metric is read.
const READING: &[(&str, &str)] = &[
    (
        "time.elapsed",
        "Of references: the sum of their times. The pauses between two windows, in which pagelab looks, are not in it, \
         and neither are most preemptions, for the kernel likes to preempt where a task enters it: time.wall has both. \
         Of a program: from its start to its end.",
    ),
    (
        "time.wall",
        "What a clock on the wall shows for all references, with pagelab's looks between them. Beside time.elapsed it \
         tells how much was spent in looks and in preemptions outside the references.",
    ),
    (
        "time.processor",
        "Of the load's own processes. The kernel accounts for it exactly; how it is parted into time.user and time.system \
         it samples at its ticks.",
    ),
    (
        "time.user",
        "Of the load's own processes: time.processor parted as samples at the kernel's ticks, some milliseconds apart, \
         tell; of ten samples the standard error of a share is up to 16 points. A dash of fewer, and where no tick met the \
         load in user mode; also in a guest that counts instructions.",
    ),
    (
        "time.system",
        "Of the load's own processes: faults, direct reclaim, copies; what kernel threads such as kswapd did is not in it. \
         Sampled and a dash as time.user.",
    ),
    (
        "time.stalled",
        "Of the cgroup where it has a pressure file, else of the machine; a dash where the kernel has no PSI.",
    ),
    (
        "access.mean",
        "The sum of the times of all references over their number; a few major faults can make most of it. Every \
         interruption of a reference is in it, also by another task.",
    ),
    (
        "access.p50",
        "Half of the references took no longer. Where most are hits it says nothing about faults.",
    ),
    ("access.p99", "From a histogram exact to three digits."),
    (
        "access.p999",
        "From a histogram exact to three digits; of fewer than 1,000 references it is the slowest.",
    ),
    ("access.max", "Exact. One interrupt is enough to make it; it is no measure of the load."),
    (
        "access.hit.mean",
        "A hit is a reference during which the thread's own fault counters did not move. Those that another task \
         interrupted for milliseconds are in it, so beside other load it is far above the median.",
    ),
    (
        "access.hit.uninterrupted",
        "A hit during which the processor did not enter the kernel. Known on x86-64, where a mark in a segment register \
         is taken away by every interrupt; a dash elsewhere.",
    ),
    (
        "access.hit.p50",
        "What memory costs where nothing is in the way: caches, TLB and the harness's own cost (harness.cost).",
    ),
    ("access.minor.mean", "Told from hits by the thread's own fault counters, not by a threshold of time."),
    ("access.minor.p50", "Told from hits by the thread's own fault counters, not by a threshold of time."),
    (
        "access.major.mean",
        "Includes the wait for the device, and whatever reclaim the fault had to do first.",
    ),
    ("access.major.p50", "The usual cost of a page that has to be read; compare swap devices by it."),
    ("access.major.p99", "The slowest hundredth: a busy device, or reclaim that had to write."),
    (
        "fault.anonymous",
        "In a guest that counts instructions it is in instructions, and the same every time.",
    ),
    ("faults.minor", "As the kernel counts them for the thread that refers; see minor fault."),
    ("faults.major", "As the kernel counts them for the thread that refers; see major fault."),
    ("swap.in", "Read-ahead from swap is in it, so that it can be more than the major faults."),
    (
        "swap.out",
        "A page that is clean in swap is dropped without being written, so that it can be less than what was reclaimed.",
    ),
    (
        "access.read.mean",
        "Of the references that --writes leaves to read, faults included. Beside access.write.mean it says who pays for dirty pages.",
    ),
    (
        "access.write.mean",
        "Faults included: of a mapped file the first write to a clean page is one, in which the kernel may pause the writer.",
    ),
    ("writes", "Drawn by the seed, so it is the same on every target."),
    (
        "dirty.max",
        "See dirty page. Of the cgroup where its memory.stat counts them, else of the machine, with a remark. A page that was \
         written through a mapping counts once the kernel knows: at its first write since it was last written back.",
    ),
    (
        "writeback.max",
        "Pages on their way to the disk. They are read between windows, so a short peak may be missed.",
    ),
    (
        "dirty.pauses",
        "See dirty throttling. From the tracepoint writeback:balance_dirty_pages of the thread that makes the references; a \
         dash where the user may not trace.",
    ),
    (
        "dirty.throttled",
        "The lengths that the kernel set, in whole ticks of its timer, not those that came of it. They are in time.elapsed, and in \
         access.write.mean.",
    ),
    (
        "pages.dirtied",
        "nr_dirtied of /proc/vmstat: also what other programs wrote. Each page once for each time that it was clean before. \
         Exact as root; else up to 125 of each processor are missing at either end.",
    ),
    (
        "pages.written",
        "nr_written of /proc/vmstat: also what other programs wrote. What an fsync after the last reference brings out is in it.",
    ),
    (
        "fsync.p50",
        "From the call to its return, between two windows and so in no reference's time; --syncs says how many. What the disk's \
         own cache does with a flush is in it.",
    ),
    ("fsync.max", "Of as many as --syncs says; of one it is the same as the median."),
    ("io.read", "As the kernel accounts it to the process; what the page cache held is not in it."),
    (
        "switches.voluntary",
        "The thread waited: for a device or a lock. About one for each major fault that waits for a device.",
    ),
    ("switches.involuntary", "Somebody else got the processor. Many of them mean that the machine was busy."),
    ("speed.first", "Everything is in the first-level cache there."),
    ("speed.last", "Beyond the memory limit, if the sweep goes so far."),
    (
        "clock.true",
        "The rules: clocks agree over a step, none jumps, sleeps are neither early nor far too late.",
    ),
    ("clock.step.worst", "A time daemon may bend a clock by 500 ppm; more is suspect."),
    ("clock.drift.worst", "Where a time daemon is at work, up to 500 ppm is its doing."),
    (
        "clock.skew.worst",
        "Proven: no order of events could explain the readings otherwise. 0 means that none is proven.",
    ),
    (
        "clock.skew.bound",
        "How far apart two processors' counters may be without a test from outside being able to tell.",
    ),
    ("clock.jumps", "None is the only good number."),
    ("clock.reference.drift", "Neither clock is taken to be the true one."),
    (
        "clock.reference.error",
        "What the round trips to the reference leave uncertain; a drift below it cannot be told from none.",
    ),
    ("clock.steal", "See steal. Times of a machine that lost some are too long by as much."),
    ("state.user", "See microstate. The shares are of all threads together."),
    ("state.system", "Faults and reclaim of the threads themselves are in it."),
    ("state.run-queue", "Ready to run, and no processor was free: the machine was busy."),
    ("state.fault", "From delay accounting; a dash where it is off."),
    ("state.swap-in", "A part of state.fault. From delay accounting; a dash where it is off."),
    (
        "state.thrashing",
        "See thrashing and refault. From delay accounting; a dash where it is off or the kernel has none.",
    ),
    ("state.reclaim", "See direct reclaim. From delay accounting; a dash where it is off."),
    (
        "state.compaction",
        "Moving pages together so that a huge page can be had. From delay accounting; a dash where it is off.",
    ),
    ("state.sleep", "What is left when all else is told: it also holds waits that nobody accounts."),
    (
        "state.lock",
        "From the tracepoints of lock contention; a dash where the kernel has none or the user may not trace.",
    ),
    (
        "refaults",
        "See refault. Of the cgroup where its memory.stat counts them, else of the machine; of files and anonymous memory together.",
    ),
    ("memory.peak", "Peak RSS. Shared pages count once for each process that maps them."),
    (
        "memory.charged.peak",
        "The cgroup's own peak; a dash without a limit. It reaches the limit when the page cache fills what is left.",
    ),
    ("memory.working-set.peak", "See working set. The interval between two looks decides what it means."),
    (
        "looks.cpu",
        "The looks do not preempt the program and take a fiftieth of a processor at most; where all processors are \
         busy they still take it from somebody.",
    ),
    ("command.status", "0 is success. A dash for a program that a signal ended."),
    ("forks.rate", "The copies compete for the same locks, so that it grows less than their number."),
    (
        "fork.residual",
        "They are in the figures of each fork; the fewer they are, the less of pagelab is in them.",
    ),
    (
        "fork.cost",
        "The copying of the page tables is most of it; it grows with the memory that the parent has mapped. Where the \
         child runs first on the same processor, that is in fork.p50 and fork.p99 and not in this.",
    ),
    ("fork.p50", "Of the last 65,536 forks of each copy, as their caller saw them."),
    ("fork.p99", "What preemption and a busy processor add shows here, and not in the median."),
    ("fork.system", "The child's copies of pages, its exit and its parent's wait are in it."),
    ("exit.cost", "The child gives back its page tables and the pages that it copied."),
    ("exit.p50", "Of the last 65,536 children of each copy."),
    ("exit.p99", "What preemption and a busy processor add shows here, and not in the median."),
    ("exec.cost", "The new program's start and its faults are in it."),
    ("exec.p50", "Of the last 65,536 children of each copy."),
    ("exec.p99", "What preemption and a busy processor add shows here, and not in the median."),
    ("page-tables.peak", "Of the whole machine: others may have added to it."),
    ("instructions.user", "The machine counts them one by one; the table instructions has them by file."),
    (
        "instructions.kernel",
        "Whoever they are of: interrupts and kernel threads are in them. The machine counts them one by one, an instruction \
         that faults each time that it is begun; the table instructions has them by function.",
    ),
    (
        "references.user",
        "The table cache-misses has them by function. An instruction that reads and writes has two.",
    ),
    ("references.kernel", "As references.user, of the kernel: interrupts and kernel threads are in it."),
    (
        "misses.l1i.user",
        "Lines of 64 bytes, LRU within a set, no prefetching. The environment's guest.core has the sizes.",
    ),
    ("misses.l1i.kernel", "As misses.l1i.user, of the kernel: interrupts and kernel threads are in it."),
    (
        "misses.l1d.user",
        "Lines of 64 bytes, LRU within a set, no prefetching; stores fetch their line too. The buffers are empty when the load begins.",
    ),
    ("misses.l1d.kernel", "As misses.l1d.user, of the kernel: interrupts and kernel threads are in it."),
    (
        "misses.l2.user",
        "The second level holds instructions and data. What misses it would go to a third level, which is not modelled.",
    ),
    ("misses.l2.kernel", "As misses.l2.user, of the kernel: interrupts and kernel threads are in it."),
    (
        "misses.tlb.user",
        "User memory is taken for base pages; the kernel's direct map, text and struct pages for large ones.",
    ),
    ("misses.tlb.kernel", "As misses.tlb.user, of the kernel: interrupts and kernel threads are in it."),
    (
        "walks.user",
        "Each would read the page tables; those reads are not counted. A switch of address spaces drops all translations but the kernel's.",
    ),
    ("walks.kernel", "As walks.user, of the kernel: interrupts and kernel threads are in it."),
    ("profile.samples", "At the frequency of --profile; profile.kernel is a share of them."),
    ("profile.kernel", "The table of kernel functions says where."),
    ("throughput.first", "The base against which scaling is judged."),
    ("throughput.best", "Beyond that number of workers more of them make it no faster."),
    ("throughput.best.workers", "The number of workers with throughput.best."),
    ("throughput.last", "Below throughput.best, workers stand in one another's way."),
    (
        "beside.throughput",
        "Beside throughput.last it is what the other thread costs; with fewer processors than threads its turns on them are in it, too.",
    ),
    ("beside.p50", "Beside operation.p50: most operations meet no lock that is held."),
    ("beside.p99", "Beside operation.p99: it shows waits once one operation in a hundred has one."),
    (
        "beside.waits",
        "Voluntary context switches (getrusage) while the workers make their operations: a fault that finds mmap_lock held for writing sleeps, \
      one under the lock of its own mapping (CONFIG_PER_VMA_LOCK) does not.",
    ),
    (
        "beside.calls",
        "mmap and munmap of a page are a call each, mprotect is one; more of them are more chances to wait.",
    ),
    (
        "operation.p50",
        "With one reading of the clock in it; two readings for sixteen operations are the sample's price.",
    ),
    ("operation.p99", "Waits for locks and for a processor show here first."),
    ("read.cpu.small", "The cost of a read from the page cache: system call, lookup, copy."),
    ("read.cpu.large", "More than of a small file: the processor's caches and TLB no longer hold it."),
    ("read.cpu.beyond", "Reclaim and the device's requests are in it; the wait for the device is not."),
    ("bandwidth.buffered", "Read-ahead and copying included."),
    ("bandwidth.direct", "With O_DIRECT; a dash where the file system has none."),
    ("unmap.munmap", "The pages are given back in it."),
    (
        "unmap.munmap.shared",
        "Their processors have to drop their translations before the pages are given back.",
    ),
    ("unmap.mprotect", "No page is given back: the page-table entries are rewritten."),
    ("unmap.mprotect.shared", "Their processors have to drop their translations."),
    ("unmap.dontneed", "The pages are given back and the mapping stays."),
    ("unmap.free", "The pages stay until the kernel wants them: what is paid is marking them."),
    ("unmap.cold", "The pages become the first to be reclaimed, and stay. A dash before Linux 5.4."),
    (
        "unmap.pageout",
        "The pages are reclaimed at once, to swap where there is any; where there is none they stay. Waiting for a disk is not in it. A dash before Linux 5.4.",
    ),
    ("mremap.aligned", "The kernel moves whole tables of page-table entries there."),
    ("mremap.move", "The kernel moves each page-table entry by itself."),
    ("mremap.move.shared", "Their processors have to drop their translations."),
    ("populate.touch", "A fault for each page, with the clearing of the page in it."),
    ("populate.touch.shared", "Nothing has to be taken back from their processors."),
    ("populate.map", "The same pages without a fault for each."),
    ("populate.advise", "As populate.map, of a mapping that is there. A dash before Linux 5.14."),
    (
        "latency.l1",
        "Each load waits for the one before it, in random order, so no prefetcher helps. The working set is the greatest \
         up to half the cache.",
    ),
    ("latency.l2", "As latency.l1, of working sets beyond the first-level cache and up to half the second."),
    (
        "latency.l3",
        "The working set is the smallest from twice the second-level cache on: how much of a shared cache one processor \
         gets is not known. A dash where it costs as much as memory, because others fill the cache.",
    ),
    (
        "latency.dram",
        "The greatest working set, in huge pages, where it has twice the last cache; without huge pages TLB misses are in \
         it.",
    ),
    (
        "latency.tlb-miss",
        "One line of each base page, of twice as many pages as the second-level TLB has entries: the walk of the page \
         tables, and a load of a line that is still in a cache.",
    ),
    ("latency.minor-fault", "Without giving the page back, which fault.anonymous has in it."),
    (
        "latency.huge-fault",
        "2 MiB are cleared in it on x86-64. A dash where the kernel gave base pages instead (transparent huge pages off, \
         or none free).",
    ),
    (
        "victim.cost.alone",
        "With its faults; the neighbour's turns on the same processor are not in it, nor is waiting for a disk.",
    ),
    ("victim.faults.alone", "Its mapping has been touched once before; 0 where it fits into the limit."),
    ("victim.refaults.alone", "Of its cgroup; see refault."),
    (
        "victim.cost.beside",
        "Beside victim.cost.alone it is what the neighbour costs, faults and reclaim done by the victim itself included.",
    ),
    ("victim.faults.beside", "Pages that the neighbour had taken from it."),
    ("victim.refaults.beside", "Of its cgroup; see refault."),
    ("victim.cost.low", "See memory protection."),
    (
        "victim.faults.low",
        "See memory protection. The kernel reclaims from below memory.low only when nothing else is left; the table's column low counts that.",
    ),
    ("victim.refaults.low", "Of its cgroup; see refault."),
    ("victim.cost.min", "See memory protection."),
    ("victim.faults.min", "See memory protection. From below memory.min nothing is reclaimed at all."),
    ("victim.refaults.min", "Of its cgroup; see refault."),
    ("victim.protected", "Page tables and the kernel's own for it included."),
    ("misses", "The first reference to a page is one; a dash where only a share of the pages was looked at."),
    (
        "miss.ratio.mean",
        "Every size counts alike, whatever lies between two; the figure that two curves are compared by.",
    ),
    ("working-set.mean", "Over the points that were taken."),
    ("working-set.peak", "Over the points that were taken."),
    (
        "faults.populate",
        "As the kernel counts them: of base pages as many as the mapping has, of huge pages one for each 2 MiB on x86-64. \
         They are in no other figure of the run.",
    ),
    (
        "huge.first",
        "AnonHugePages of the mapping itself in /proc/self/smaps, once it is populated. Only where --thp allows huge \
         pages; a dash where the kernel does not say it of the mapping alone.",
    ),
    ("huge.last", "As huge.first. Less than it where the kernel split huge pages to reclaim them."),
    (
        "huge.coverage.first",
        "huge.first of the whole mapping. Less than all where its ends are not aligned to huge pages, where no huge \
         page was free, and where the mapping exceeds the limit.",
    ),
    (
        "huge.coverage.last",
        "huge.last of the whole mapping. What is swapped in again comes as base pages, until khugepaged collapses them.",
    ),
    (
        "pager.seen",
        "1 where every reference is visible: the misses are then exactly the model's. Less where the pages that the \
         policy holds are in the page table: a reference to one of those goes by without a fault.",
    ),
    (
        "pager.service",
        "From the pager's beginning with the fault to the page's being there again: the policy, the eviction, \
         decompression, the system calls. What access.major.mean has beyond it is the way to the pager's thread and back.",
    ),
    ("pager.policy", "The model's own code, and the search for the page that it gave up."),
    (
        "pager.store.peak",
        "Evicted pages are compressed by zstd and kept in memory; pages of zeroes take nothing.",
    ),
    (
        "folio.coverage.first",
        "By /proc/kpageflags, of each page of the mapping that is in memory: so also of sizes that the processor does not \
         map in one entry. The table folios has each size. A dash for who is not root.",
    ),
    ("folio.coverage.last", "As folio.coverage.first. What is not in memory is in no folio."),
    (
        "zram.stored",
        "orig_data_size of the device's mm_stat, while the mapping is there. A page that was read back stays stored until it \
         is written or its slot is wanted.",
    ),
    ("zram.memory", "mem_used_total of mm_stat."),
    ("zram.ratio", "What swapping to zram wins: memory that is free for each byte that is taken, less one."),
    (
        "zram.compression",
        "Of compr_data_size of mm_stat. zram.ratio is less where the allocator rounds sizes up, and more where pages are \
         same-filled.",
    ),
    ("zram.same", "same_pages of mm_stat."),
    ("zram.incompressible", "huge_pages of mm_stat. A dash before Linux 4.19."),
    (
        "zswap.stored",
        "zswapped of the cgroup's memory.stat (version 2), else Zswapped of /proc/meminfo, which is the machine's. Only where \
         zswap is on; Linux 5.19.",
    ),
    ("zswap.memory", "zswap of the same, Zswap of /proc/meminfo."),
    ("zswap.ratio", "As zram.ratio. Same-filled pages take no memory."),
    (
        "pages.present",
        "The models of the verdict get as many frames; page tables and the rest of the charge are not among them.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_one_paragraph_and_each_paragraph_a_metric() {
        let mut metrics: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
        let mut read: Vec<&str> = READING.iter().map(|(name, _)| *name).collect();
        metrics.sort_unstable();
        read.sort_unstable();
        assert_eq!(metrics, read);
    }

    #[test]
    fn terms_are_in_order_and_all_is_sentences() {
        let names: Vec<String> = TERMS.iter().map(|(name, _)| name.to_lowercase()).collect();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        for entry in terms().into_iter().chain(metrics()) {
            assert!(entry.text.ends_with('.') && !entry.text.contains("  "), "{entry:?}");
        }
    }
}
