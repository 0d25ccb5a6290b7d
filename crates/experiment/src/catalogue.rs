//! The names under which things are observed, so that targets, analysis and report agree.

use crate::observation::{Better, Metric, Unit};

/// A metric's definition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Definition {
    /// The name.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// Which direction is an improvement.
    pub better: Better,
    /// One line.
    pub help: &'static str,
}

macro_rules! definitions {
    ($($constant:ident = $name:literal, $unit:ident, $better:ident, $help:literal;)*) => {
        /// The name of every metric.
        pub mod name {
            $(#[doc = concat!("`", $name, "`: ", $help)] pub const $constant: &str = $name;)*
        }

        /// Every metric.
        pub const METRICS: &[Definition] = &[
            $(Definition { name: $name, unit: Unit::$unit, better: Better::$better, help: $help },)*
        ];
    };
}

definitions! {
    TIME_ELAPSED = "time.elapsed", Nanoseconds, Lower, "time of the references or operations; of references without the pauses between windows";
    TIME_WALL = "time.wall", Nanoseconds, Lower, "wall time from the first reference to the last, pauses between windows included";
    TIME_PROCESSOR = "time.processor", Nanoseconds, Lower, "processor time, in user mode and in the kernel: the kernel's exact account";
    TIME_USER = "time.user", Nanoseconds, Lower, "processor time in user mode";
    TIME_SYSTEM = "time.system", Nanoseconds, Lower, "processor time in the kernel";
    TIME_STALLED = "time.stalled", Nanoseconds, Lower, "time in which some task waited for memory (PSI some)";
    ACCESS_MEAN = "access.mean", Nanoseconds, Lower, "mean time of a reference";
    ACCESS_P50 = "access.p50", Nanoseconds, Lower, "median time of a reference";
    ACCESS_P99 = "access.p99", Nanoseconds, Lower, "time that 99 % of references do not exceed";
    ACCESS_P999 = "access.p999", Nanoseconds, Lower, "time that 99.9 % of references do not exceed";
    ACCESS_MAX = "access.max", Nanoseconds, Lower, "longest reference";
    ACCESS_HIT_MEAN = "access.hit.mean", Nanoseconds, Lower, "mean time of a reference without a fault";
    ACCESS_HIT_UNINTERRUPTED = "access.hit.uninterrupted", Nanoseconds, Lower, "mean time of a reference without a fault, without those that an interrupt or another task interrupted";
    ACCESS_HIT_P50 = "access.hit.p50", Nanoseconds, Lower, "median time of a reference without a fault";
    ACCESS_MINOR_MEAN = "access.minor.mean", Nanoseconds, Lower, "mean time of a reference with a minor fault";
    ACCESS_MINOR_P50 = "access.minor.p50", Nanoseconds, Lower, "median time of a reference with a minor fault";
    ACCESS_MAJOR_MEAN = "access.major.mean", Nanoseconds, Lower, "mean time of a reference with a major fault";
    ACCESS_MAJOR_P50 = "access.major.p50", Nanoseconds, Lower, "median time of a reference with a major fault";
    ACCESS_MAJOR_P99 = "access.major.p99", Nanoseconds, Lower, "time that 99 % of references with a major fault do not exceed";
    ACCESS_READ_MEAN = "access.read.mean", Nanoseconds, Lower, "--writes: mean time of a reference that reads";
    ACCESS_WRITE_MEAN = "access.write.mean", Nanoseconds, Lower, "--writes: mean time of a reference that writes, with its pauses for dirty pages";
    WRITES = "writes", Count, Neither, "--writes: references that wrote, of those that were timed";
    DIRTY_MAX = "dirty.max", Bytes, Neither, "mapfile: most dirty bytes seen between windows, the cgroup's where it counts them";
    WRITEBACK_MAX = "writeback.max", Bytes, Neither, "mapfile: most bytes under writeback seen between windows";
    DIRTY_PAUSES = "dirty.pauses", Count, Lower, "mapfile: pauses of the referencing thread in balance_dirty_pages";
    DIRTY_THROTTLED = "dirty.throttled", Nanoseconds, Lower, "mapfile: length of those pauses together, as the kernel set them";
    PAGES_DIRTIED = "pages.dirtied", Pages, Neither, "mapfile: pages that became dirty, of the whole machine";
    PAGES_WRITTEN = "pages.written", Pages, Lower, "mapfile: pages that were written back to disks, of the whole machine";
    FSYNC_P50 = "fsync.p50", Nanoseconds, Lower, "mapfile: median time of fsync of the file that references write";
    FSYNC_MAX = "fsync.max", Nanoseconds, Lower, "mapfile: longest fsync";
    FAULT_ANONYMOUS = "fault.anonymous", Nanoseconds, Lower, "first touch of a page of anonymous memory and giving it back, measured before the run";
    FAULTS_MINOR = "faults.minor", Count, Lower, "minor faults";
    FAULTS_MAJOR = "faults.major", Count, Lower, "major faults";
    FAULTS_POPULATE = "faults.populate", Count, Lower, "mapanon: minor faults of writing every page once before the references; a huge page takes one";
    HUGE_FIRST = "huge.first", Bytes, Neither, "mapanon: bytes of the mapping in transparent huge pages before the first reference";
    HUGE_LAST = "huge.last", Bytes, Neither, "mapanon: bytes of the mapping in transparent huge pages after the last reference";
    HUGE_COVERAGE_FIRST = "huge.coverage.first", Share, Higher, "mapanon: share of the mapping in transparent huge pages before the first reference";
    HUGE_COVERAGE_LAST = "huge.coverage.last", Share, Higher, "mapanon: share of the mapping in transparent huge pages after the last reference";
    FOLIO_COVERAGE_FIRST = "folio.coverage.first", Share, Higher, "mapanon: share of the mapping in folios of more than one page before the first reference";
    FOLIO_COVERAGE_LAST = "folio.coverage.last", Share, Higher, "mapanon: share of the mapping in folios of more than one page after the last reference";
    ZRAM_STORED = "zram.stored", Bytes, Neither, "mapanon: bytes of pages that the run's zram device stored after the last reference";
    ZRAM_MEMORY = "zram.memory", Bytes, Lower, "mapanon: memory that zram took for them, its allocator's included";
    ZRAM_RATIO = "zram.ratio", Ratio, Higher, "mapanon: zram.stored for each byte of zram.memory";
    ZRAM_COMPRESSION = "zram.compression", Ratio, Higher, "mapanon: bytes of pages for each byte that zram's compressor made of them, same-filled pages aside";
    ZRAM_SAME = "zram.same", Pages, Neither, "mapanon: pages of one word again and again in zram, which take no memory";
    ZRAM_INCOMPRESSIBLE = "zram.incompressible", Pages, Neither, "mapanon: pages in zram that did not compress, stored as they are";
    ZSWAP_STORED = "zswap.stored", Bytes, Neither, "mapanon: bytes of pages in zswap after the last reference";
    ZSWAP_MEMORY = "zswap.memory", Bytes, Lower, "mapanon: memory that zswap took for them";
    ZSWAP_RATIO = "zswap.ratio", Ratio, Higher, "mapanon: zswap.stored for each byte of zswap.memory";
    ZSWAP_OUT = "zswap.out", Pages, Neither, "mapanon: pages that zswap took, from before the mapping was populated";
    ZSWAP_IN = "zswap.in", Pages, Neither, "mapanon: pages read back from zswap, likewise";
    ZSWAP_WRITEBACK = "zswap.writeback", Pages, Lower, "mapanon: pages written back from zswap to the swap behind it, likewise";
    ZSWAP_REJECTED = "zswap.rejected", Pages, Lower, "mapanon: pages written to swap that zswap did not take, likewise";
    SWAP_IN = "swap.in", Pages, Lower, "pages read from swap";
    SWAP_OUT = "swap.out", Pages, Lower, "pages written to swap";
    IO_READ = "io.read", Bytes, Lower, "bytes read from block devices for the references: files and swap, read-ahead included";
    SWITCHES_VOLUNTARY = "switches.voluntary", Count, Lower, "voluntary context switches";
    SWITCHES_INVOLUNTARY = "switches.involuntary", Count, Lower, "involuntary context switches";
    SPEED_FIRST = "speed.first", PerSecond, Higher, "vmtest: page reads a second at the smallest size";
    SPEED_LAST = "speed.last", PerSecond, Higher, "vmtest: page reads a second at the greatest size";
    CLOCK_TRUE = "clock.true", Count, Higher, "clock: 1 when no rule found time untrue, else 0 (suspect)";
    CLOCK_STEP_WORST = "clock.step.worst", Nanoseconds, Lower, "clock: the greatest difference between two clocks over one step";
    CLOCK_DRIFT_WORST = "clock.drift.worst", Ratio, Lower, "clock: the greatest drift of a clock against the raw monotonic one, 1e-6 = 1 ppm";
    CLOCK_SKEW_WORST = "clock.skew.worst", Nanoseconds, Lower, "clock: the greatest skew of the time stamp counter that is proven between two processors";
    CLOCK_SKEW_BOUND = "clock.skew.bound", Nanoseconds, Lower, "clock: the skew that cannot be excluded between two processors, at most";
    CLOCK_JUMPS = "clock.jumps", Count, Lower, "clock: steps of a clock backwards or forwards during the test";
    CLOCK_REFERENCE_DRIFT = "clock.reference.drift", Ratio, Neither, "clock: drift of this machine against the reference, 1e-6 = 1 ppm";
    CLOCK_REFERENCE_ERROR = "clock.reference.error", Ratio, Lower, "clock: what that drift may be wrong by";
    CLOCK_STEAL = "clock.steal", Share, Lower, "clock: the share of the processors' time stolen during the test";
    STATE_USER = "state.user", Share, Neither, "share of all threads' wall time on a processor in user mode";
    STATE_SYSTEM = "state.system", Share, Lower, "share of all threads' wall time on a processor in the kernel";
    STATE_RUN_QUEUE = "state.run-queue", Share, Lower, "share of all threads' wall time waiting for a processor";
    STATE_FAULT = "state.fault", Share, Lower, "share of all threads' wall time waiting for input: major faults, swap-in, reads";
    STATE_SWAP_IN = "state.swap-in", Share, Lower, "of that, waiting for swap-in";
    STATE_THRASHING = "state.thrashing", Share, Lower, "of that, waiting for pages that had been in memory a short while ago";
    STATE_RECLAIM = "state.reclaim", Share, Lower, "share of all threads' wall time inside direct reclaim";
    STATE_COMPACTION = "state.compaction", Share, Lower, "share of all threads' wall time inside direct compaction";
    STATE_SLEEP = "state.sleep", Share, Neither, "share of all threads' wall time asleep of their own accord, user locks included";
    STATE_LOCK = "state.lock", Share, Lower, "share of all threads' wall time waiting for locks of the kernel";
    REFAULTS = "refaults", Pages, Lower, "pages read again that had been in memory a short while ago";
    MEMORY_PEAK = "memory.peak", Bytes, Lower, "most resident memory of all processes at any look, or of one process ever";
    MEMORY_CHARGED_PEAK = "memory.charged.peak", Bytes, Lower, "most memory charged to the limit, page cache included";
    MEMORY_WORKING_SET_PEAK = "memory.working-set.peak", Bytes, Lower, "most memory of all processes referenced between two looks; what several share counts for each";
    LOOKS_CPU = "looks.cpu", Nanoseconds, Neither, "command: processor time of pagelab's looks at the program, in none of the program's figures";
    COMMAND_STATUS = "command.status", Count, Lower, "the program's exit status";
    FORKS_RATE = "forks.rate", PerSecond, Higher, "forkstorm: forks a second, all copies together";
    FORK_RESIDUAL = "fork.residual", Pages, Lower, "forkstorm: pages that a fork copies beyond the experiment's own: its stack, and what the kernel writes in every thread";
    FORK_COST = "fork.cost", Nanoseconds, Lower, "forkstorm: processor time of a fork, its caller's";
    FORK_P50 = "fork.p50", Nanoseconds, Lower, "forkstorm: median time of a fork as its caller saw it";
    FORK_P99 = "fork.p99", Nanoseconds, Lower, "forkstorm: time that 99 % of forks do not exceed";
    FORK_SYSTEM = "fork.system", Nanoseconds, Lower, "forkstorm: processor time in the kernel for each fork, with all that follows it";
    EXIT_COST = "exit.cost", Nanoseconds, Lower, "forkstorm: from fork's return to the child's end: its writes, exit and the wait for it";
    EXIT_P50 = "exit.p50", Nanoseconds, Lower, "forkstorm: median time from fork's return to the child's end";
    EXIT_P99 = "exit.p99", Nanoseconds, Lower, "forkstorm: time from fork's return to the child's end that 99 % do not exceed";
    EXEC_COST = "exec.cost", Nanoseconds, Lower, "forkstorm: from fork's return to the child's end: its writes, exec, start, exit and the wait for it";
    EXEC_P50 = "exec.p50", Nanoseconds, Lower, "forkstorm: median time from fork's return to the end of a child that executes";
    EXEC_P99 = "exec.p99", Nanoseconds, Lower, "forkstorm: time from fork's return to the end of a child that executes that 99 % do not exceed";
    PAGE_TABLES_PEAK = "page-tables.peak", Bytes, Lower, "forkstorm: most page-table memory of the machine beyond what it had before";
    INSTRUCTIONS_USER = "instructions.user", Instructions, Lower, "trace=functions: instructions in user mode of the load made once more";
    INSTRUCTIONS_KERNEL = "instructions.kernel", Instructions, Lower, "trace=functions: instructions in the kernel during the load made once more";
    REFERENCES_USER = "references.user", Count, Neither, "trace=cache: loads and stores in user mode, of the load made once more";
    REFERENCES_KERNEL = "references.kernel", Count, Neither, "trace=cache: loads and stores in the kernel, of the load made once more";
    MISSES_L1I_USER = "misses.l1i.user", Count, Lower, "trace=cache: fetches that missed the modelled L1I cache in user mode, of the load made once more";
    MISSES_L1I_KERNEL = "misses.l1i.kernel", Count, Lower, "trace=cache: fetches that missed the modelled L1I cache in the kernel, of the load made once more";
    MISSES_L1D_USER = "misses.l1d.user", Count, Lower, "trace=cache: loads and stores that missed the modelled L1D cache in user mode, of the load made once more";
    MISSES_L1D_KERNEL = "misses.l1d.kernel", Count, Lower, "trace=cache: loads and stores that missed the modelled L1D cache in the kernel, of the load made once more";
    MISSES_L2_USER = "misses.l2.user", Count, Lower, "trace=cache: fetches, loads and stores that missed the modelled L2 cache in user mode, of the load made once more";
    MISSES_L2_KERNEL = "misses.l2.kernel", Count, Lower, "trace=cache: fetches, loads and stores that missed the modelled L2 cache in the kernel, of the load made once more";
    MISSES_TLB_USER = "misses.tlb.user", Count, Lower, "trace=cache: fetches, loads and stores that missed the modelled first-level TLBs in user mode, of the load made once more";
    MISSES_TLB_KERNEL = "misses.tlb.kernel", Count, Lower, "trace=cache: fetches, loads and stores that missed the modelled first-level TLBs in the kernel, of the load made once more";
    WALKS_USER = "walks.user", Count, Lower, "trace=cache: fetches, loads and stores that missed both levels of the modelled TLBs in user mode, of the load made once more";
    WALKS_KERNEL = "walks.kernel", Count, Lower, "trace=cache: fetches, loads and stores that missed both levels of the modelled TLBs in the kernel, of the load made once more";
    PROFILE_SAMPLES = "profile.samples", Count, Neither, "samples of the profile, in the kernel or not";
    PROFILE_KERNEL = "profile.kernel", Share, Neither, "share of the samples in the kernel";
    THROUGHPUT_FIRST = "throughput.first", PerSecond, Higher, "faultscale: operations a second of the fewest workers";
    THROUGHPUT_BEST = "throughput.best", PerSecond, Higher, "faultscale: operations a second of the best number of workers";
    THROUGHPUT_BEST_WORKERS = "throughput.best.workers", Count, Neither, "faultscale: that number";
    THROUGHPUT_LAST = "throughput.last", PerSecond, Higher, "faultscale: operations a second of the most workers";
    OPERATION_P50 = "operation.p50", Nanoseconds, Lower, "faultscale: median time of an operation of the most workers, one in sixteen timed";
    OPERATION_P99 = "operation.p99", Nanoseconds, Lower, "faultscale: time that 99 % of those operations do not exceed";
    BESIDE_THROUGHPUT = "beside.throughput", PerSecond, Higher, "faultscale --beside: operations a second of the most workers, beside the other thread";
    BESIDE_P50 = "beside.p50", Nanoseconds, Lower, "faultscale --beside: median time of an operation of the most workers, beside the other thread";
    BESIDE_P99 = "beside.p99", Nanoseconds, Lower, "faultscale --beside: time that 99 % of those operations do not exceed";
    BESIDE_WAITS = "beside.waits", Count, Lower, "faultscale --beside: how often the most workers slept in a million of those operations";
    BESIDE_CALLS = "beside.calls", PerSecond, Neither, "faultscale --beside: calls of the other thread a second";
    READ_CPU_SMALL = "read.cpu.small", Nanoseconds, Lower, "fileread: processor time of a read from a file that is small in memory";
    READ_CPU_LARGE = "read.cpu.large", Nanoseconds, Lower, "fileread: processor time of a read from a file that is large in memory";
    READ_CPU_BEYOND = "read.cpu.beyond", Nanoseconds, Lower, "fileread: processor time of a read from a file larger than the limit";
    BANDWIDTH_BUFFERED = "bandwidth.buffered", BytesPerSecond, Higher, "seqread: bytes a second through the page cache, at the best transfer size";
    BANDWIDTH_DIRECT = "bandwidth.direct", BytesPerSecond, Higher, "seqread: bytes a second around the page cache, at the best transfer size";
    LATENCY_L1 = "latency.l1", Nanoseconds, Lower, "latency: a load from the first-level cache";
    LATENCY_L2 = "latency.l2", Nanoseconds, Lower, "latency: a load from the second-level cache";
    LATENCY_L3 = "latency.l3", Nanoseconds, Lower, "latency: a load from the third-level cache";
    LATENCY_DRAM = "latency.dram", Nanoseconds, Lower, "latency: a load from memory";
    LATENCY_TLB_MISS = "latency.tlb-miss", Nanoseconds, Lower, "latency: a load that misses every TLB";
    LATENCY_MINOR_FAULT = "latency.minor-fault", Nanoseconds, Lower, "latency: the first touch of a base page of anonymous memory";
    LATENCY_HUGE_FAULT = "latency.huge-fault", Nanoseconds, Lower, "latency: the first touch of a transparent huge page of anonymous memory";
    UNMAP_MUNMAP = "unmap.munmap", Nanoseconds, Lower, "unmap: processor time of munmap(2) for each page that was written";
    UNMAP_MUNMAP_SHARED = "unmap.munmap.shared", Nanoseconds, Lower, "unmap: the same as unmap.munmap with other threads running in the address space";
    UNMAP_PROTECT = "unmap.mprotect", Nanoseconds, Lower, "unmap: processor time of mprotect(2) to PROT_READ for each page that was written";
    UNMAP_PROTECT_SHARED = "unmap.mprotect.shared", Nanoseconds, Lower, "unmap: the same as unmap.mprotect with other threads running in the address space";
    UNMAP_DONTNEED = "unmap.dontneed", Nanoseconds, Lower, "unmap: processor time of madvise(MADV_DONTNEED) for each page that was written";
    UNMAP_FREE = "unmap.free", Nanoseconds, Lower, "unmap: processor time of madvise(MADV_FREE) for each page that was written";
    UNMAP_COLD = "unmap.cold", Nanoseconds, Lower, "unmap: processor time of madvise(MADV_COLD) for each page that was written";
    UNMAP_PAGEOUT = "unmap.pageout", Nanoseconds, Lower, "unmap: processor time of madvise(MADV_PAGEOUT) for each page that was written";
    MREMAP_ALIGNED = "mremap.aligned", Nanoseconds, Lower, "mremap: processor time of mremap(2) for each page, to where the mapping lies alike within 2 MiB";
    MREMAP_MOVE = "mremap.move", Nanoseconds, Lower, "mremap: processor time of mremap(2) for each page, to a page beyond that";
    MREMAP_MOVE_SHARED = "mremap.move.shared", Nanoseconds, Lower, "mremap: the same as mremap.move with other threads running in the address space";
    POPULATE_TOUCH = "populate.touch", Nanoseconds, Lower, "populate: processor time of the first write to each page";
    POPULATE_TOUCH_SHARED = "populate.touch.shared", Nanoseconds, Lower, "populate: the same as populate.touch with other threads running in the address space";
    POPULATE_MAP = "populate.map", Nanoseconds, Lower, "populate: processor time of mmap(2) with MAP_POPULATE for each page";
    POPULATE_ADVISE = "populate.advise", Nanoseconds, Lower, "populate: processor time of madvise(MADV_POPULATE_WRITE) for each page";
    VICTIM_COST_ALONE = "victim.cost.alone", Nanoseconds, Lower, "neighbour: processor time of a reference of the victim's alone";
    VICTIM_FAULTS_ALONE = "victim.faults.alone", Count, Lower, "neighbour: the victim's major faults alone";
    VICTIM_REFAULTS_ALONE = "victim.refaults.alone", Pages, Lower, "neighbour: the victim's refaults alone";
    VICTIM_COST_BESIDE = "victim.cost.beside", Nanoseconds, Lower, "neighbour: processor time of a reference of the victim's beside a neighbour";
    VICTIM_FAULTS_BESIDE = "victim.faults.beside", Count, Lower, "neighbour: the victim's major faults beside a neighbour";
    VICTIM_REFAULTS_BESIDE = "victim.refaults.beside", Pages, Lower, "neighbour: the victim's refaults beside a neighbour";
    VICTIM_COST_LOW = "victim.cost.low", Nanoseconds, Lower, "neighbour: processor time of a reference of the victim's beside a neighbour, with memory.low";
    VICTIM_FAULTS_LOW = "victim.faults.low", Count, Lower, "neighbour: the victim's major faults beside a neighbour, with memory.low";
    VICTIM_REFAULTS_LOW = "victim.refaults.low", Pages, Lower, "neighbour: the victim's refaults beside a neighbour, with memory.low";
    VICTIM_COST_MIN = "victim.cost.min", Nanoseconds, Lower, "neighbour: processor time of a reference of the victim's beside a neighbour, with memory.min";
    VICTIM_FAULTS_MIN = "victim.faults.min", Count, Lower, "neighbour: the victim's major faults beside a neighbour, with memory.min";
    VICTIM_REFAULTS_MIN = "victim.refaults.min", Pages, Lower, "neighbour: the victim's refaults beside a neighbour, with memory.min";
    VICTIM_PROTECTED = "victim.protected", Bytes, Neither, "neighbour: what memory.low and memory.min were set to, what was charged to the victim alone and an eighth more";
    BANDWIDTH_COPY = "bandwidth.copy", BytesPerSecond, Higher, "bandwidth: copy of the greatest working set with the least threads, median round";
    BANDWIDTH_SCALE = "bandwidth.scale", BytesPerSecond, Higher, "bandwidth: scale of the greatest working set with the least threads, median round";
    BANDWIDTH_ADD = "bandwidth.add", BytesPerSecond, Higher, "bandwidth: add of the greatest working set with the least threads, median round";
    BANDWIDTH_TRIAD = "bandwidth.triad", BytesPerSecond, Higher, "bandwidth: triad of the greatest working set with the least threads, median round";
    BANDWIDTH_TRIAD_THREADS = "bandwidth.triad.threads", BytesPerSecond, Higher, "bandwidth: triad of the greatest working set with the most threads, all together";
    BANDWIDTH_TRIAD_CACHE = "bandwidth.triad.cache", BytesPerSecond, Higher, "bandwidth: triad of the smallest working set with the least threads";
    KSM_SHARING = "ksm.sharing", Pages, Higher, "ksm: frames saved: pages of the mapping less the frames that they lie in";
    KSM_SHARED = "ksm.shared", Pages, Neither, "ksm: frames in which several pages of the mapping lie after merging";
    KSM_PROFIT = "ksm.profit", Bytes, Higher, "ksm: what the kernel says merging has saved the process, its own bookkeeping deducted";
    KSM_TIME = "ksm.time", Nanoseconds, Lower, "ksm: wall time from switching ksmd on to the last merge";
    KSM_SCANS = "ksm.scans", Count, Lower, "ksm: whole scans until a scan merged no more";
    KSM_PROCESSOR = "ksm.processor", Nanoseconds, Lower, "ksm: processor time of ksmd until the last merge";
    KSM_COPY = "ksm.copy", Nanoseconds, Lower, "ksm: processor time of a write to a merged page, which copies it";
    KSM_WRITE = "ksm.write", Nanoseconds, Neither, "ksm: processor time of a write to a page that was not merged";
    KSM_UNMERGE = "ksm.unmerge", Nanoseconds, Lower, "ksm: processor time of madvise(MADV_UNMERGEABLE) for each page that was merged still";
    TIER_COST_FAST = "tier.cost.fast", Nanoseconds, Lower, "tier: processor time of a reference to the hot set, bound to the fast node";
    TIER_HOT_FAST = "tier.hot.fast", Share, Higher, "tier: mean share of the hot set on the fast node, bound to the fast node";
    TIER_LATENCY_FAST = "tier.latency.fast", Nanoseconds, Lower, "tier: modelled wait of a reference to the hot set, bound to the fast node";
    TIER_COST_SLOW = "tier.cost.slow", Nanoseconds, Lower, "tier: processor time of a reference to the hot set, bound to the slow node";
    TIER_HOT_SLOW = "tier.hot.slow", Share, Higher, "tier: mean share of the hot set on the fast node, bound to the slow node";
    TIER_LATENCY_SLOW = "tier.latency.slow", Nanoseconds, Lower, "tier: modelled wait of a reference to the hot set, bound to the slow node";
    TIER_COST_INTERLEAVED = "tier.cost.interleaved", Nanoseconds, Lower, "tier: processor time of a reference to the hot set, interleaved over both";
    TIER_HOT_INTERLEAVED = "tier.hot.interleaved", Share, Higher, "tier: mean share of the hot set on the fast node, interleaved over both";
    TIER_LATENCY_INTERLEAVED = "tier.latency.interleaved", Nanoseconds, Lower, "tier: modelled wait of a reference to the hot set, interleaved over both";
    TIER_COST_OFF = "tier.cost.off", Nanoseconds, Lower, "tier: processor time of a reference to the hot set, left to the kernel, without demotion and balancing";
    TIER_HOT_OFF = "tier.hot.off", Share, Higher, "tier: mean share of the hot set on the fast node, left to the kernel, without demotion and balancing";
    TIER_LATENCY_OFF = "tier.latency.off", Nanoseconds, Lower, "tier: modelled wait of a reference to the hot set, left to the kernel, without demotion and balancing";
    TIER_COST_ON = "tier.cost.on", Nanoseconds, Lower, "tier: processor time of a reference to the hot set, left to the kernel, with demotion and balancing";
    TIER_HOT_ON = "tier.hot.on", Share, Higher, "tier: mean share of the hot set on the fast node, left to the kernel, with demotion and balancing";
    TIER_LATENCY_ON = "tier.latency.on", Nanoseconds, Lower, "tier: modelled wait of a reference to the hot set, left to the kernel, with demotion and balancing";
    TIER_PROMOTED = "tier.promoted", Pages, Neither, "tier: pages promoted to the fast tier, with demotion and balancing";
    TIER_DEMOTED = "tier.demoted", Pages, Neither, "tier: pages demoted to the slow tier, with demotion and balancing";
    TIER_HINTS = "tier.hints", Count, Lower, "tier: hint faults, with demotion and balancing";
    OOM_STALL_EQUAL = "oom.stall.equal", Nanoseconds, Lower, "oom: from the first time at the limit to the first kill";
    OOM_STALL_ADJUSTED = "oom.stall.adjusted", Nanoseconds, Lower, "oom: the same as oom.stall.equal where the first process has more of oom_score_adj";
    OOM_STALL_GROUP = "oom.stall.group", Nanoseconds, Lower, "oom: the same as oom.stall.equal with memory.oom.group";
    OOM_KILLED_EQUAL = "oom.killed.equal", Bytes, Neither, "oom: what the killed process held, in memory and in swap";
    OOM_KILLED_ADJUSTED = "oom.killed.adjusted", Bytes, Neither, "oom: the same as oom.killed.equal where the first process has more of oom_score_adj";
    OOM_KILLED_GROUP = "oom.killed.group", Count, Neither, "oom: processes killed with memory.oom.group";
    OOM_PREDICTED = "oom.predicted", Share, Neither, "oom: share of the kills without memory.oom.group that met the process with the highest score";
    RECLAIM_ASKED = "reclaim.asked", Bytes, Neither, "reclaim: what was asked for, or allowed to a scheme, all steps together";
    RECLAIM_HAD = "reclaim.had", Bytes, Neither, "reclaim: what the cgroup counts as reclaimed while it was asked";
    RECLAIM_FREED = "reclaim.freed", Bytes, Neither, "reclaim: fall of what is charged to the cgroup, all steps together";
    RECLAIM_PAGES = "reclaim.pages", Pages, Neither, "reclaim: pages of the mapping that were paged out, all steps together";
    RECLAIM_COLD = "reclaim.cold", Share, Higher, "reclaim: share of reclaim.pages that were of the cold part";
    RECLAIM_MISTAKES = "reclaim.mistakes", Count, Lower, "reclaim: major faults on the hot part, after steps and between them";
    RECLAIM_COST = "reclaim.cost", Nanoseconds, Lower, "reclaim: processor time of asking, or of DAMON's thread, for each page that was paged out";
    RECLAIM_TRIED = "reclaim.tried", Bytes, Neither, "reclaim: regions that DAMON's scheme tried, as it counts them";
    RECLAIM_APPLIED = "reclaim.applied", Bytes, Neither, "reclaim: regions on which the action of DAMON's scheme was done, as it counts them";
    RECLAIM_KDAMOND = "reclaim.kdamond", Nanoseconds, Lower, "reclaim: processor time of DAMON's thread, its watching included";
    RECLAIM_REFERENCE = "reclaim.reference", Nanoseconds, Lower, "reclaim: processor time of a reference to the hot part, faults included";
    RECLAIM_BACK_FAULTS = "reclaim.back.faults", Count, Lower, "reclaim: major faults of referencing the cold part once, at last";
    RECLAIM_BACK_COST = "reclaim.back.cost", Nanoseconds, Lower, "reclaim: processor time of each of those major faults";
    FRAGMENT_WHOLE = "fragment.whole", Count, Higher, "fragment: huge pages had at faults before memory was filled";
    FRAGMENT_PIECES = "fragment.pieces", Count, Higher, "fragment: huge pages had at faults in fragmented memory, without compaction";
    FRAGMENT_DIRECT = "fragment.direct", Count, Higher, "fragment: huge pages had at faults in fragmented memory, with direct compaction";
    FRAGMENT_COLLAPSE = "fragment.collapse", Count, Higher, "fragment: huge pages had by MADV_COLLAPSE in fragmented memory";
    FRAGMENT_COMPACTED = "fragment.compacted", Count, Higher, "fragment: huge pages had at faults without compaction after /proc/sys/vm/compact_memory";
    FRAGMENT_BLOCKS = "fragment.blocks", Count, Neither, "fragment: free blocks of a huge page's size in fragmented memory";
    FRAGMENT_COST_WHOLE = "fragment.cost.whole", Nanoseconds, Lower, "fragment: processor time of a huge page had before memory was filled";
    FRAGMENT_COST_DIRECT = "fragment.cost.direct", Nanoseconds, Lower, "fragment: processor time of asking with direct compaction for each huge page that was had";
    FRAGMENT_COST_COLLAPSE = "fragment.cost.collapse", Nanoseconds, Lower, "fragment: processor time of MADV_COLLAPSE for each huge page that was had";
    FRAGMENT_COMPACTING = "fragment.compacting", Nanoseconds, Lower, "fragment: processor time of compacting all of memory (/proc/sys/vm/compact_memory)";
    MISSES = "misses", Count, Lower, "replay, mrc: misses at the largest memory size";
    MISS_RATIO_MEAN = "miss.ratio.mean", Share, Lower, "replay, mrc: mean miss ratio over the memory sizes";
    WORKING_SET_MEAN = "working-set.mean", Pages, Neither, "wss: mean pages of the working set";
    WORKING_SET_PEAK = "working-set.peak", Pages, Neither, "wss: most pages of the working set";
    PAGER_SEEN = "pager.seen", Share, Neither, "pager: references that the policy saw, of those that were made";
    PAGER_SERVICE = "pager.service", Nanoseconds, Lower, "pager: mean time of a major fault in the pager itself";
    PAGER_POLICY = "pager.policy", Nanoseconds, Lower, "pager: of a fault, mean time in the policy and in finding its victim";
    PAGER_STORE_PEAK = "pager.store.peak", Bytes, Lower, "pager: most bytes of evicted pages, compressed";
    PAGES_PRESENT = "pages.present", Pages, Neither, "most pages of the mapping present at any snapshot: the frames it really had";
}

/// The metric of this name with a value.
///
/// # Panics
/// When the name is not in [`METRICS`]: names come from the program, not from users.
pub fn metric(name: &str, value: Option<f64>) -> Metric {
    let definition = METRICS.iter().find(|d| d.name == name);
    let definition = definition.unwrap_or_else(|| panic!("no metric '{name}' in the catalogue"));
    Metric {
        name: name.to_owned(),
        unit: definition.unit,
        better: definition.better,
        value: value.filter(|v| v.is_finite()),
    }
}

/// The name of the table with one row for each window of a run. Its columns: `reference` (the
/// window's last reference), `time` (ns since the start), `access.mean`, `access.max`,
/// `faults.minor`, `faults.major`, `swap.in`, `swap.out`, `pages.present`.
pub const WINDOWS: &str = "windows";

/// The name of the table of a miss ratio curve, with one row for each memory size. Its columns: `size`,
/// `frames`, `misses`, `miss.ratio`, `miss.ratio.error`; of a policy without a fixed number of frames `frames.mean`, of a
/// system that reads ahead `read-ahead.waits` and `read-ahead.pages`.
pub const CURVE: &str = "curve";

/// The environment's entries and what they hold.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("kernel.release", "uname -r"),
    ("kernel.version", "uname -v"),
    ("kernel.cmdline", "/proc/cmdline, cut at 1,000 characters"),
    ("machine.arch", "uname -m"),
    ("machine.hypervisor", "the hypervisor, where one shows"),
    ("cpu.model", "model name"),
    ("cpu.count", "processors online"),
    ("memory.total", "bytes"),
    ("memory.available", "bytes at the start"),
    ("page.size", "bytes"),
    ("thp.enabled", "the transparent huge page mode in force"),
    (
        "thp.sizes",
        "the sizes of transparent huge pages that anonymous memory may get, with their modes; Linux 6.8",
    ),
    ("zswap.enabled", "whether pages go to zswap before they go to swap: Y or N"),
    ("zswap.compressor", "its compressor"),
    ("zswap.max-pool-percent", "the most memory that its pool may take, percent of memory.total"),
    (
        "zswap.accept-threshold-percent",
        "how full the pool may be, percent of its limit, before zswap takes pages again once it was full",
    ),
    ("zswap.shrinker-enabled", "whether reclaim also has zswap write pages back: Y or N; Linux 6.8"),
    ("mglru.enabled", "lru_gen/enabled; absent where the kernel has none"),
    ("vm.swappiness", "0 to 200"),
    ("swap.kind", "file, zram, none, or the host's"),
    ("swap.size", "bytes"),
    ("swap.compressor", "the compressor of the run's own zram device"),
    ("disk.read-ahead", "bytes that the device of the scratch files reads ahead at most"),
    ("cgroup.version", "1, 2, or none"),
    ("memory.limit", "bytes of the limit in force"),
    ("set FILE", "a file of the kernel's that was set for the run: its value, read back"),
    ("pager.policy", "the policy that paged, with every parameter"),
    ("pager.frames", "pages that it could hold"),
    ("pager.mapped", "of those how many could be in the page table at once: references to them are not seen"),
    ("guest.image", "the kernel image that a guest booted"),
    (
        "guest.begun",
        "whether the guest was booted for this repetition, or restored where it had come to rest",
    ),
    (
        "guest.begun.after",
        "the host's time until the guest had booted and come to rest, or was restored: seconds",
    ),
    ("guest.accel", "how the guest's processor is made: kvm, tcg or icount"),
    ("guest.cpus", "processors of the guest"),
    ("guest.ram", "memory of the guest, bytes"),
    ("guest.append", "words added to the guest's command line"),
    ("guest.qemu", "the version of QEMU"),
    ("guest.quiet", "whether the guest had come to rest before the experiment, and how that was seen"),
    ("clock.source", "what times the references: tsc or clock_gettime"),
    ("clock.kernel", "the kernel's clock source"),
    ("fleet.host", "of a run that a fleet performed: the name of the host"),
    ("fleet.worker", "the worker's address"),
    ("fleet.attempt", "which attempt it is: above 1 a worker that had begun it was lost"),
    ("clock.verdict", "whether time was true before the suite: true, or suspect and why"),
    ("clock.cost", "ns of processor time for one reading, measured before the run"),
    ("clock.cost.interval", "its 95 % interval"),
    (
        "fault.detection",
        "how a reference is known to need a look at the fault counters: by a mark that each entry into the kernel takes away, or by its time",
    ),
    (
        "harness.cost",
        "ns of processor time that the harness adds to a reference, measured before the run; absent where it cannot be told",
    ),
    ("harness.cost.interval", "its 95 % interval"),
    (
        "classification.cost",
        "ns of processor time for a look at the fault counters: in time.user and time.system of each fault, in no reference's time",
    ),
    ("classification.cost.interval", "its 95 % interval"),
    (
        "worker.mappings",
        "mappings of pagelab's own in a worker process of vmtest or faultscale, beside those of its work: the kernel searches among them and, where it forks, goes through them",
    ),
    ("cache.l1d", "bytes of a processor's first-level data cache"),
    ("cache.l2", "bytes of the second-level cache that a processor uses"),
    ("cache.l3", "bytes of the third-level cache that a processor uses"),
    ("tlb.l1d", "entries of the first-level data TLB for base pages"),
    ("tlb.l2", "entries of the second-level TLB for base pages"),
    ("load.1min", "load average at the start"),
    ("steal.share", "share of the processors' time stolen during the run"),
    ("governor", "frequency governor, where one shows"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_lower_case_words() {
        let mut names: Vec<_> = METRICS.iter().map(|d| d.name).collect();
        assert!(
            names
                .iter()
                .all(|n| n.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c)))
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), METRICS.len());
    }

    #[test]
    fn a_value_that_is_no_number_becomes_a_dash() {
        assert_eq!(metric("time.user", Some(f64::NAN)).value, None);
    }
}
