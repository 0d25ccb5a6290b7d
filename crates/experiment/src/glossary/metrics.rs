//! How each metric is read.

/// Each metric of the catalogue with what its reader should know beside its help.
pub const READING: &[(&str, &str)] = &[
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
    (
        "bandwidth.copy",
        "16 bytes for each element, as STREAM counts: what a cache reads in order to write is not in it. One thread's by its processor time, several threads' by wall time.",
    ),
    (
        "bandwidth.scale",
        "16 bytes for each element, as STREAM counts: what a cache reads in order to write is not in it. One thread's by its processor time, several threads' by wall time.",
    ),
    (
        "bandwidth.add",
        "24 bytes for each element, as STREAM counts: what a cache reads in order to write is not in it. One thread's by its processor time, several threads' by wall time.",
    ),
    (
        "bandwidth.triad",
        "24 bytes for each element, as STREAM counts: what a cache reads in order to write is not in it. One thread's by its processor time, several threads' by wall time.",
    ),
    (
        "bandwidth.triad.threads",
        "By wall time: other programs lengthen it. A dash where there are fewer processors.",
    ),
    ("bandwidth.triad.cache", "Of 256K, the default, within the second-level cache of most processors."),
    (
        "ksm.sharing",
        "By the frames in /proc/self/pagemap, so other programs' pages are not in it. A dash where the kernel shows no frames.",
    ),
    ("ksm.shared", "By the frames in /proc/self/pagemap. A frame serves at most max_page_sharing pages."),
    (
        "ksm.profit",
        "ksm_process_profit of /proc/self/ksm_stat (Linux 6.4): merged pages less 64 bytes for each page that is known to ksmd. Below 0 where little is equal.",
    ),
    (
        "ksm.time",
        "Seen at looks 2 ms apart; ksmd's sleeps are in it, and it takes a scan to remember each page and another to merge it. A dash where instructions are counted: sleeping is none.",
    ),
    ("ksm.scans", "The growth of full_scans."),
    (
        "ksm.processor",
        "The first number of the thread's schedstat. A dash where /proc does not show the thread.",
    ),
    ("ksm.copy", "A fault, a frame and a copy; beside ksm.write."),
    ("ksm.write", "What a write of the same loop costs without a fault."),
    ("ksm.unmerge", "The kernel goes through the whole mapping, and copies every merged page."),
    (
        "tier.cost.fast",
        "Hint faults and promotions are in it, and what kswapd does is not. Where instructions are counted, slow memory takes no more of them.",
    ),
    ("tier.hot.fast", "At looks twenty times at each position (move_pages(2))."),
    (
        "tier.latency.fast",
        "tier.hot, and the latencies of both nodes as the machine's tables (HMAT) tell them: a model, in which no cache holds the hot set. A dash where they do not tell.",
    ),
    (
        "tier.cost.slow",
        "Hint faults and promotions are in it, and what kswapd does is not. Where instructions are counted, slow memory takes no more of them.",
    ),
    ("tier.hot.slow", "At looks twenty times at each position (move_pages(2))."),
    (
        "tier.latency.slow",
        "tier.hot, and the latencies of both nodes as the machine's tables (HMAT) tell them: a model, in which no cache holds the hot set. A dash where they do not tell.",
    ),
    (
        "tier.cost.interleaved",
        "Hint faults and promotions are in it, and what kswapd does is not. Where instructions are counted, slow memory takes no more of them.",
    ),
    ("tier.hot.interleaved", "At looks twenty times at each position (move_pages(2))."),
    (
        "tier.latency.interleaved",
        "tier.hot, and the latencies of both nodes as the machine's tables (HMAT) tell them: a model, in which no cache holds the hot set. A dash where they do not tell.",
    ),
    (
        "tier.cost.off",
        "Hint faults and promotions are in it, and what kswapd does is not. Where instructions are counted, slow memory takes no more of them.",
    ),
    ("tier.hot.off", "At looks twenty times at each position (move_pages(2))."),
    (
        "tier.latency.off",
        "tier.hot, and the latencies of both nodes as the machine's tables (HMAT) tell them: a model, in which no cache holds the hot set. A dash where they do not tell.",
    ),
    (
        "tier.cost.on",
        "Hint faults and promotions are in it, and what kswapd does is not. Where instructions are counted, slow memory takes no more of them.",
    ),
    ("tier.hot.on", "At looks twenty times at each position (move_pages(2))."),
    (
        "tier.latency.on",
        "tier.hot, and the latencies of both nodes as the machine's tables (HMAT) tell them: a model, in which no cache holds the hot set. A dash where they do not tell.",
    ),
    ("tier.promoted", "The growth of pgpromote_success, of the whole machine."),
    (
        "tier.demoted",
        "The growth of pgdemote_kswapd, _direct, _khugepaged and _proactive, of the whole machine, while the mapping is filled too.",
    ),
    (
        "tier.hints",
        "The growth of numa_hint_faults: pages that the kernel unmapped to see whether they are in use, and that were.",
    ),
    (
        "oom.stall.equal",
        "Nobody inside the limit gets on meanwhile. With swap it is the time of filling that; a look each fifth of a millisecond is how finely it is told.",
    ),
    ("oom.stall.adjusted", "See oom.stall.equal."),
    ("oom.stall.group", "See oom.stall.equal. A dash where cgroups are of version 1."),
    (
        "oom.killed.equal",
        "The kernel kills who holds most, whoever asked for more: the table kills says who it was.",
    ),
    ("oom.killed.adjusted", "oom_score_adj counts as so many thousandths of the limit held in addition."),
    (
        "oom.killed.group",
        "With it the kernel kills all processes of the cgroup. A dash where cgroups are of version 1.",
    ),
    (
        "oom.predicted",
        "The score is the kernel's formula (pages in memory, in swap and of page tables, and oom_score_adj), on what /proc said at the last look.",
    ),
    ("reclaim.asked", "The parameter --ask."),
    (
        "reclaim.had",
        "pgsteal of memory.stat; more than reclaim.asked is what the kernel takes at once. A dash by DAMON, whose action is not counted there.",
    ),
    (
        "reclaim.freed",
        "memory.current before and after each step. Less than reclaim.pages where pages are away and lie in the swap cache still, as they do after a scheme on a disk.",
    ),
    (
        "reclaim.pages",
        "/proc/self/pagemap before and after each step; by DAMON, with the faults on the hot part, each of which brought a page back.",
    ),
    ("reclaim.cold", "1 where the kernel knew which pages were not in use."),
    ("reclaim.mistakes", "Each is a page that was wanted and had been paged out."),
    (
        "reclaim.cost",
        "Of the thread that writes to memory.reclaim, which itself reclaims; of DAMON's thread, which also watches.",
    ),
    (
        "reclaim.tried",
        "sz_tried of the scheme's stats. A region is tried again when it is old enough again, whether its pages are in memory or not.",
    ),
    ("reclaim.applied", "sz_applied of the scheme's stats: whole regions, so at least what was paged out."),
    ("reclaim.kdamond", "The first number of its schedstat. A dash by memory.reclaim."),
    (
        "reclaim.reference",
        "Between the steps, and after them: what the load itself pays, its faults above all.",
    ),
    ("reclaim.back.faults", "Fewer than pages that are gone, for the kernel reads ahead."),
    ("reclaim.back.cost", "With the pages read ahead, and the references themselves."),
    ("fragment.whole", "Of --huge asked for: the base of the others."),
    ("fragment.pieces", "Hardly more than fragment.blocks."),
    ("fragment.direct", "/sys/kernel/mm/transparent_hugepage/defrag is always."),
    ("fragment.collapse", "Of parts of a mapping that have all their base pages; 0 before Linux 6.1."),
    ("fragment.compacted", "What compacting all of memory at once gives back."),
    ("fragment.blocks", "/proc/buddyinfo, all zones; a larger block is as many."),
    ("fragment.cost.whole", "Most of it is filling the page with zeros."),
    (
        "fragment.cost.direct",
        "Beside fragment.cost.whole it is what compaction costs who faults; attempts that failed are in it.",
    ),
    ("fragment.cost.collapse", "With copying its base pages; attempts that failed are in it."),
    ("fragment.compacting", "The calling thread does it."),
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
        "zswap.out",
        "Growth of zswpout from before the mapping was populated to the last reference: the cgroup's memory.stat (version 2, Linux \
         6.13), else /proc/vmstat, which is the machine's. Such a page comes to the device only by being written back. Where nothing \
         else is swapped, less zswap.in and zswap.writeback it is what zswap holds. Only where zswap is on; Linux 5.19.",
    ),
    (
        "zswap.in",
        "Growth of zswpin, as zswap.out. They were not read from the device, and are not in swap.in.",
    ),
    (
        "zswap.writeback",
        "Growth of zswpwb, as zswap.out: decompressed and written, because the pool was at its limit (zswap.max-pool-percent), the \
         cgroup at memory.zswap.max, or reclaim asked (zswap.shrinker-enabled). A dash before Linux 6.8.",
    ),
    (
        "zswap.rejected",
        "Growth of pswpout less zswap.writeback: zswap takes no page while its pool is full, nor again until it is down to \
         zswap.accept-threshold-percent of its limit, and on some kernels none that does not compress. A dash before Linux 6.8.",
    ),
    (
        "pages.present",
        "The models of the verdict get as many frames; page tables and the rest of the charge are not among them.",
    ),
];
