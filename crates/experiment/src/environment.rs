//! The entries of the environment: facts about the machine and its state, each declared once with
//! its name and what it holds. Names are text only on disk and on display.

/// Declares the entries: constant, name, what it holds.
macro_rules! environment {
    ($($constant:ident = $name:literal, $help:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`: ", $help)]
            pub const $constant: &str = $name;
        )*
        /// Every entry's name and what it holds.
        pub const ALL: &[(&str, &str)] = &[$(($name, $help)),*];
    };
}

environment! {
    KERNEL_RELEASE = "kernel.release", "uname -r";
    KERNEL_VERSION = "kernel.version", "uname -v";
    KERNEL_CMDLINE = "kernel.cmdline", "/proc/cmdline, cut at 1,000 characters";
    MACHINE_ARCH = "machine.arch", "uname -m";
    MACHINE_HYPERVISOR = "machine.hypervisor", "the hypervisor, if visible";
    CPU_MODEL = "cpu.model", "model name";
    CPU_COUNT = "cpu.count", "online CPUs";
    MEMORY_TOTAL = "memory.total", "bytes";
    MEMORY_AVAILABLE = "memory.available", "bytes at the start";
    PAGE_SIZE = "page.size", "bytes";
    THP_ENABLED = "thp.enabled", "the transparent huge page mode in force";
    THP_SIZES = "thp.sizes", "the sizes of transparent huge pages that anonymous memory may get, with their modes; Linux 6.8";
    ZSWAP_ENABLED = "zswap.enabled", "whether pages go to zswap before they go to swap: Y or N";
    ZSWAP_COMPRESSOR = "zswap.compressor", "its compressor";
    ZSWAP_MAX_POOL_PERCENT = "zswap.max-pool-percent", "the pool's maximum, in percent of memory.total";
    ZSWAP_ACCEPT_THRESHOLD_PERCENT = "zswap.accept-threshold-percent", "after the pool was full: zswap accepts pages again below this percentage of the limit";
    ZSWAP_SHRINKER_ENABLED = "zswap.shrinker-enabled", "whether reclaim also makes zswap write pages back: Y or N; Linux 6.8";
    MGLRU_ENABLED = "mglru.enabled", "lru_gen/enabled; absent if the kernel has none";
    VM_SWAPPINESS = "vm.swappiness", "0 to 200";
    SWAP_KIND = "swap.kind", "file, zram, none, or the host's";
    SWAP_SIZE = "swap.size", "bytes";
    SWAP_COMPRESSOR = "swap.compressor", "the compressor of the run's own zram device";
    DISK_READ_AHEAD = "disk.read-ahead", "maximum read-ahead of the scratch files' device, in bytes";
    CGROUP_VERSION = "cgroup.version", "1, 2, or none";
    MEMORY_LIMIT = "memory.limit", "bytes of the limit in force";
    SET_FILE = "set FILE", "a kernel file that was set for the run: its value, read back";
    PAGER_POLICY = "pager.policy", "the pager's policy, with every parameter";
    PAGER_FRAMES = "pager.frames", "pages that it can hold";
    PAGER_MAPPED = "pager.mapped", "of those, pages that can be in the page table at once: references to them are not seen";
    GUEST_IMAGE = "guest.image", "the guest's kernel image";
    GUEST_BEGUN = "guest.begun", "whether the guest was booted for this repetition, or restored from a snapshot";
    GUEST_BEGUN_AFTER = "guest.begun.after", "seconds of host time until the guest was booted and at rest, or restored";
    GUEST_ACCEL = "guest.accel", "kvm, tcg or icount";
    GUEST_CPUS = "guest.cpus", "CPUs of the guest";
    GUEST_RAM = "guest.ram", "memory of the guest, bytes";
    GUEST_APPEND = "guest.append", "words added to the guest's command line";
    GUEST_QEMU = "guest.qemu", "the version of QEMU";
    GUEST_PROGRAMS = "guest.programs", "the programs that the guest runs: its root, or how many files it was given";
    GUEST_CORE = "guest.core", "the modelled caches and TLBs of trace=cache";
    EVICTIONS_INTERVAL = "evictions.interval", "references between two reads of the page table for --evictions";
    EVICTIONS_SOURCE = "evictions.source", "what --evictions read: the page table, kernel functions, tracepoints";
    ARRIVALS_LOST = "arrivals.lost", "pages that entered the page cache after the log of --evictions was full";
    MODEL_NAME = "model.name", "the simulator";
    MODEL_FRAMES = "model.frames", "its frames";
    MODEL_POLICY = "model.policy", "its policy, with every parameter";
    MODEL_COST_NAME = "model.cost.NAME", "the time that it charges for NAME (hit, minor, major, …)";
    PMEGS_REACH = "pmegs.reach", "bytes that the PMEGs of a modelled Sun-4 map";
    TLB_PAGE = "tlb.page", "bytes of a page in the modelled TLB";
    TRACE = "trace", "the recording that a simulator ran";
    TRACE_REFERENCES = "trace.references", "its references";
    TRACE_PAGES = "trace.pages", "its pages";
    TRACE_FILE = "trace.file", "the recording that a guest wrote (trace=on, trace=restored)";
    GUEST_QUIET = "guest.quiet", "whether the guest was idle when the experiment began, with the evidence";
    CLOCK_SOURCE = "clock.source", "the clock of the references: tsc or clock_gettime";
    CLOCK_KERNEL = "clock.kernel", "the kernel's clock source";
    FLEET_HOST = "fleet.host", "of a fleet's run: the name of the host";
    FLEET_WORKER = "fleet.worker", "the worker's address";
    FLEET_ATTEMPT = "fleet.attempt", "the attempt's number: above 1 an earlier worker was lost";
    CLOCK_VERDICT = "clock.verdict", "whether the clocks agreed before the suite: true, or suspect with the reason";
    CLOCK_COST = "clock.cost", "ns of CPU time per clock reading, measured before the run";
    CLOCK_COST_INTERVAL = "clock.cost.interval", "its 95% interval";
    FAULT_DETECTION = "fault.detection", "the way to detect a reference that entered the kernel: a mark in a register, or its time";
    HARNESS_COST = "harness.cost", "ns of CPU time that timing adds to a reference, measured before the run; absent if not significant";
    HARNESS_COST_INTERVAL = "harness.cost.interval", "its 95% interval";
    CLASSIFICATION_COST = "classification.cost", "ns of CPU time to read the fault counters: part of time.user and time.system, not of a reference's time";
    CLASSIFICATION_COST_INTERVAL = "classification.cost.interval", "its 95% interval";
    WORKER_MAPPINGS = "worker.mappings", "pagelab's own mappings in a worker process of vmtest or faultscale, which the kernel searches and fork visits";
    CACHE_L1D = "cache.l1d", "bytes of a CPU's first-level data cache";
    CACHE_L2 = "cache.l2", "bytes of the second-level cache that a CPU uses";
    CACHE_L3 = "cache.l3", "bytes of the third-level cache that a CPU uses";
    TLB_L1D = "tlb.l1d", "entries of the first-level data TLB for base pages";
    TLB_L2 = "tlb.l2", "entries of the second-level TLB for base pages";
    REVISION = "revision", "the revision that --revision names: a commit or any other text";
    LOAD_1MIN = "load.1min", "load average at the start";
    STEAL_SHARE = "steal.share", "share of CPU time stolen by the hypervisor during the run";
    GOVERNOR = "governor", "CPU frequency governor, if visible";
}

/// What the entry of the environment of this name holds; a name in capitals stands for any.
pub fn help(key: &str) -> Option<&'static str> {
    let is = |name: &str| {
        let begin = name.strip_suffix("FILE").or(name.strip_suffix("NAME"));
        name == key || begin.is_some_and(|begin| key.starts_with(begin))
    };
    ALL.iter().find(|(name, _)| is(name)).map(|(_, help)| *help)
}
