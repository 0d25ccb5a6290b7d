//! Facts about the machine: the entries of [`pagelab_experiment::environment::ALL`] that exist
//! here. What the machine does not show is absent.

use pagelab_experiment::environment::{
    CACHE_L1D, CACHE_L2, CACHE_L3, CGROUP_VERSION, CLOCK_KERNEL, CPU_COUNT, CPU_MODEL, KERNEL_CMDLINE,
    KERNEL_RELEASE, KERNEL_VERSION, LOAD_1MIN, MACHINE_ARCH, MACHINE_HYPERVISOR, MEMORY_AVAILABLE,
    MEMORY_TOTAL, MGLRU_ENABLED, PAGE_SIZE, SWAP_KIND, SWAP_SIZE, THP_ENABLED, THP_SIZES, TLB_L1D, TLB_L2,
    VM_SWAPPINESS, ZSWAP_ACCEPT_THRESHOLD_PERCENT, ZSWAP_COMPRESSOR, ZSWAP_ENABLED, ZSWAP_MAX_POOL_PERCENT,
    ZSWAP_SHRINKER_ENABLED,
};
use std::collections::BTreeMap;
use std::path::Path;

use pagelab_kernel::files::{self, KernelFile};
use pagelab_kernel::geometry::{self, Geometry};
use pagelab_kernel::hierarchy::{Version, hierarchy};
use pagelab_kernel::region::page_size;
use pagelab_kernel::{settings, swap_area, thp};
use pagelab_procfs::{chosen, list, value};

use crate::harness::clock;

/// Entries by name.
pub type Entries = BTreeMap<String, String>;

/// No command line is kept beyond this many characters.
const COMMAND_LINE: usize = 1000;

/// The machine as it is now, before the load.
pub fn machine() -> Entries {
    let uname = rustix::system::uname();
    let memory = text("/proc/meminfo").unwrap_or_default();
    let memory = |name: &str| value(&memory, name).map(|v| v.to_string());
    let online = std::thread::available_parallelism().ok().map(|n| n.to_string());
    let cpu_info = text("/proc/cpuinfo").unwrap_or_default();
    let load = text("/proc/loadavg").and_then(|t| t.split(' ').next().map(str::to_owned));
    let thp = text("/sys/kernel/mm/transparent_hugepage/enabled").map(|t| chosen(&t).to_owned());
    let swap = swap_area::total();
    let zswap = |parameter: &str| text(&format!("/sys/module/zswap/parameters/{parameter}"));
    let swap_kind = swap.map(|bytes| if bytes > 0 { "host" } else { "none" }.to_owned());
    let cgroup = match hierarchy().map(|hierarchy| hierarchy.version) {
        Some(Version::Two) => "2",
        Some(Version::One) => "1",
        None => "none",
    };
    entries([
        (KERNEL_RELEASE, Some(uname.release().to_string_lossy().into_owned())),
        (KERNEL_VERSION, Some(uname.version().to_string_lossy().into_owned())),
        (KERNEL_CMDLINE, text("/proc/cmdline").map(|t| t.chars().take(COMMAND_LINE).collect())),
        (MACHINE_ARCH, Some(uname.machine().to_string_lossy().into_owned())),
        (MACHINE_HYPERVISOR, hypervisor()),
        (CPU_MODEL, cpu_model(&cpu_info)),
        (CPU_COUNT, cpus_online().or(online)),
        (MEMORY_TOTAL, memory("MemTotal")),
        (MEMORY_AVAILABLE, memory("MemAvailable")),
        (PAGE_SIZE, Some(page_size().to_string())),
        (THP_ENABLED, thp),
        (THP_SIZES, thp::in_force()),
        (ZSWAP_ENABLED, text(settings::ZSWAP)),
        (ZSWAP_COMPRESSOR, zswap("compressor")),
        (ZSWAP_MAX_POOL_PERCENT, zswap("max_pool_percent")),
        (ZSWAP_ACCEPT_THRESHOLD_PERCENT, zswap("accept_threshold_percent")),
        (ZSWAP_SHRINKER_ENABLED, zswap("shrinker_enabled")),
        (MGLRU_ENABLED, text("/sys/kernel/mm/lru_gen/enabled")),
        (VM_SWAPPINESS, text("/proc/sys/vm/swappiness")),
        (SWAP_KIND, swap_kind),
        (SWAP_SIZE, swap.map(|bytes| bytes.to_string())),
        (CGROUP_VERSION, Some(cgroup.to_owned())),
        (CLOCK_KERNEL, clock::kernel_source()),
        (LOAD_1MIN, load),
        ("governor", text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
    ])
}

/// The sizes of the machine's caches, bytes, and of its TLBs, entries for base pages.
pub fn geometry() -> Entries {
    let Geometry { caches: [l1d, l2, l3], tlbs: [first, second] } = geometry::machine();
    let sizes = [(CACHE_L1D, l1d), (CACHE_L2, l2), (CACHE_L3, l3), (TLB_L1D, first), (TLB_L2, second)];
    entries(sizes.map(|(name, size)| (name, size.map(|size| size.to_string()))))
}

/// Entries from pairs, without the absent and the empty.
pub fn entries<'a>(pairs: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Entries {
    let present = pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    present.filter(|(_, value)| !value.is_empty()).collect()
}

/// Processor time of the whole machine since boot (`/proc/stat`), to see what the hypervisor took.
#[derive(Debug)]
pub struct Steal {
    file: KernelFile,
    before: (u64, u64),
}

impl Steal {
    /// Starts counting; `None` without `/proc/stat`.
    pub fn start() -> Option<Self> {
        let mut file = KernelFile::open(Path::new("/proc/stat"))?;
        let before = stolen(file.read()?)?;
        Some(Self { file, before })
    }

    /// The share of all processors' time stolen since the start; `None` when too little passed.
    pub fn share(&mut self) -> Option<f64> {
        let now = stolen(self.file.read()?)?;
        let (steal, total) = (now.0.saturating_sub(self.before.0), now.1.saturating_sub(self.before.1));
        (total > 0).then(|| steal as f64 / total as f64)
    }
}

/// (stolen, all) clock ticks of the `cpu` line. Guest time is already part of user time.
fn stolen(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|t| t.parse().ok()).take(8).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

fn text(path: &str) -> Option<String> {
    files::text(path).ok().map(|text| text.trim().to_owned())
}

fn cpu_model(cpu_info: &str) -> Option<String> {
    let named = |name: &str| {
        cpu_info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    };
    named("model name").or_else(|| named("CPU part").map(|part| format!("part {part}")))
}

/// The processors online, which may be more than this process may use.
fn cpus_online() -> Option<String> {
    let online = text("/sys/devices/system/cpu/online")?;
    Some(list(&online).len()).filter(|count| *count > 0).map(|count| count.to_string())
}

/// What the processor says it runs under (x86), or what Xen's sysfs says.
fn hypervisor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        const PRESENT: u32 = 1 << 31;
        if __cpuid(1).ecx & PRESENT != 0 {
            let leaf = __cpuid(0x4000_0000);
            let name: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
            let name: String = name.iter().map(|&b| char::from(b)).filter(char::is_ascii_graphic).collect();
            return Some(if name.is_empty() { "unnamed".to_owned() } else { name });
        }
    }
    text("/sys/hypervisor/type")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::environment::ALL;
    use proptest::prelude::*;

    #[test]
    fn every_entry_is_in_the_catalogue() {
        let mut all = machine();
        all.extend(geometry());
        for name in all.keys() {
            assert!(ALL.iter().any(|(known, _)| known == name), "{name}");
        }
        for name in ["kernel.release", "memory.total", "page.size", "cpu.count"] {
            assert!(all.contains_key(name), "{name}: {all:?}");
        }
    }

    #[test]
    fn forms_of_the_kernel() {
        assert_eq!(stolen("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), Some((8, 36)));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parsers_panic(text: String) {
            let _ = (stolen(&text), cpu_model(&text));
        }
    }
}
