//! The names under which things are observed, so that targets, analysis and report agree.

use crate::experiments::declared_metrics;
use crate::experiments::{
    addressing, bandwidth, clock, command, curve, faultscale, fileread, fragment, ksm, latency, neighbour,
    oom, paging, reclaim, tier, tracing, vmtest,
};
use crate::metrics::{MetricId, SHARED, current};
use crate::tables::TableId;

/// Every metric.
pub fn metrics() -> impl Iterator<Item = MetricId> {
    SHARED.iter().chain(declared_metrics::ALL).copied().flatten().copied()
}

impl MetricId {
    /// The metric of this present or former name, for names that come from users or files.
    pub fn find(name: &str) -> Option<Self> {
        let name = current(name);
        metrics().find(|metric| metric.name == name)
    }
}

/// Every table.
pub fn tables() -> impl Iterator<Item = TableId> {
    [
        crate::tables::harness::tables::ALL,
        paging::tables::ALL,
        vmtest::tables::ALL,
        clock::tables::ALL,
        command::tables::ALL,
        faultscale::tables::ALL,
        fileread::tables::ALL,
        latency::tables::ALL,
        addressing::tables::ALL,
        neighbour::tables::ALL,
        bandwidth::tables::ALL,
        ksm::tables::ALL,
        tier::tables::ALL,
        oom::tables::ALL,
        reclaim::tables::ALL,
        fragment::tables::ALL,
        curve::tables::ALL,
        tracing::tables::ALL,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// What the entry of the environment of this name holds; a name in capitals stands for any.
pub fn environment(key: &str) -> Option<&'static str> {
    let is = |name: &str| {
        let begin = name.strip_suffix("FILE").or(name.strip_suffix("NAME"));
        name == key || begin.is_some_and(|begin| key.starts_with(begin))
    };
    ENVIRONMENT.iter().find(|(name, _)| is(name)).map(|(_, help)| *help)
}

/// The environment's entries and what they hold.
pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("kernel.release", "uname -r"),
    ("kernel.version", "uname -v"),
    ("kernel.cmdline", "/proc/cmdline, cut at 1,000 characters"),
    ("machine.arch", "uname -m"),
    ("machine.hypervisor", "the hypervisor, if visible"),
    ("cpu.model", "model name"),
    ("cpu.count", "online CPUs"),
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
    ("zswap.max-pool-percent", "the pool's maximum, in percent of memory.total"),
    (
        "zswap.accept-threshold-percent",
        "after the pool was full: zswap accepts pages again below this percentage of the limit",
    ),
    ("zswap.shrinker-enabled", "whether reclaim also makes zswap write pages back: Y or N; Linux 6.8"),
    ("mglru.enabled", "lru_gen/enabled; absent if the kernel has none"),
    ("vm.swappiness", "0 to 200"),
    ("swap.kind", "file, zram, none, or the host's"),
    ("swap.size", "bytes"),
    ("swap.compressor", "the compressor of the run's own zram device"),
    ("disk.read-ahead", "maximum read-ahead of the scratch files' device, in bytes"),
    ("cgroup.version", "1, 2, or none"),
    ("memory.limit", "bytes of the limit in force"),
    ("set FILE", "a kernel file that was set for the run: its value, read back"),
    ("pager.policy", "the pager's policy, with every parameter"),
    ("pager.frames", "pages that it can hold"),
    (
        "pager.mapped",
        "of those, pages that can be in the page table at once: references to them are not seen",
    ),
    ("guest.image", "the guest's kernel image"),
    ("guest.begun", "whether the guest was booted for this repetition, or restored from a snapshot"),
    ("guest.begun.after", "seconds of host time until the guest was booted and at rest, or restored"),
    ("guest.accel", "kvm, tcg or icount"),
    ("guest.cpus", "CPUs of the guest"),
    ("guest.ram", "memory of the guest, bytes"),
    ("guest.append", "words added to the guest's command line"),
    ("guest.qemu", "the version of QEMU"),
    ("guest.programs", "the programs that the guest runs: its root, or how many files it was given"),
    ("guest.core", "the modelled caches and TLBs of trace=cache"),
    ("model.name", "the simulator"),
    ("model.frames", "its frames"),
    ("model.policy", "its policy, with every parameter"),
    ("model.cost.NAME", "the time that it charges for NAME (hit, minor, major, …)"),
    ("pmegs.reach", "bytes that the PMEGs of a modelled Sun-4 map"),
    ("tlb.page", "bytes of a page in the modelled TLB"),
    ("trace", "the recording that a simulator ran"),
    ("trace.references", "its references"),
    ("trace.pages", "its pages"),
    ("trace.file", "the recording that a guest wrote (trace=on)"),
    ("guest.quiet", "whether the guest was idle when the experiment began, with the evidence"),
    ("clock.source", "the clock of the references: tsc or clock_gettime"),
    ("clock.kernel", "the kernel's clock source"),
    ("fleet.host", "of a fleet's run: the name of the host"),
    ("fleet.worker", "the worker's address"),
    ("fleet.attempt", "the attempt's number: above 1 an earlier worker was lost"),
    ("clock.verdict", "whether the clocks agreed before the suite: true, or suspect with the reason"),
    ("clock.cost", "ns of CPU time per clock reading, measured before the run"),
    ("clock.cost.interval", "its 95% interval"),
    (
        "fault.detection",
        "the way to detect a reference that entered the kernel: a mark in a register, or its time",
    ),
    (
        "harness.cost",
        "ns of CPU time that timing adds to a reference, measured before the run; absent if not significant",
    ),
    ("harness.cost.interval", "its 95% interval"),
    (
        "classification.cost",
        "ns of CPU time to read the fault counters: part of time.user and time.system, not of a reference's time",
    ),
    ("classification.cost.interval", "its 95% interval"),
    (
        "worker.mappings",
        "pagelab's own mappings in a worker process of vmtest or faultscale, which the kernel searches and fork visits",
    ),
    ("cache.l1d", "bytes of a CPU's first-level data cache"),
    ("cache.l2", "bytes of the second-level cache that a CPU uses"),
    ("cache.l3", "bytes of the third-level cache that a CPU uses"),
    ("tlb.l1d", "entries of the first-level data TLB for base pages"),
    ("tlb.l2", "entries of the second-level TLB for base pages"),
    ("load.1min", "load average at the start"),
    ("steal.share", "share of CPU time stolen by the hypervisor during the run"),
    ("governor", "CPU frequency governor, if visible"),
];
