//! The providers, one file for each part of the kernel that counts.
//!
//! # Adding one
//! A provider says what its module is called and gives what it finds to the [`Sink`](crate::sink::Sink). The sink knows
//! what is wanted: ask it before a file is opened, and give it all of a file that was.
//!
//! ```
//! use pagelab_counters::{Provider, Root, Sink, Unit};
//!
//! /// Entropy the kernel has gathered: `entropy:0:pool:available`.
//! fn read(root: &Root, sink: &mut Sink<'_>) {
//!     if let Some(mut pool) = sink.group(0, "pool") {
//!         pool.gauge("available", root.number("proc/sys/kernel/random/entropy_avail"), Unit::Count);
//!     }
//! }
//!
//! let entropy = Provider::new("entropy", "misc", "/proc/sys/kernel/random/entropy_avail", read);
//! assert_eq!(entropy.module, "entropy");
//! ```
//!
//! Outside this crate, hand it to [`Tree::with`](crate::Tree::with). Inside, name it in [`all`] and add its files to a fixture, so that the golden test sees it.

mod buddyinfo;
mod cgroup;
mod damon;
mod diskstats;
pub(crate) mod fields;
mod interrupts;
mod meminfo;
mod mglru;
mod pressure;
pub(crate) mod process;
mod provider;
mod schedstat;
mod settings;
mod slabinfo;
mod smaps;
mod stat;
mod swaps;
mod system;
mod textfile;
mod vmstat;
mod zoneinfo;
mod zram;
mod zswap;

pub use provider::Provider;
pub use textfile::text_files;

/// Every provider there is.
pub fn all() -> Vec<Provider> {
    vec![
        Provider::new("buddyinfo", "vm", "/proc/buddyinfo", buddyinfo::read),
        Provider::new(
            "cgroup",
            "cgroup",
            "memory.*, cpu.stat and *.pressure below the cgroup mounts",
            cgroup::read,
        ),
        Provider::new("damon", "vm", "/sys/kernel/mm/damon/admin/kdamonds", damon::read),
        Provider::new("diskstats", "disk", "/proc/diskstats", diskstats::read),
        Provider::new("interrupts", "cpu", "/proc/interrupts", interrupts::read),
        Provider::new("meminfo", "vm", "/proc/meminfo", meminfo::read),
        Provider::new("mglru", "vm", "/sys/kernel/mm/lru_gen, /sys/kernel/debug/lru_gen (root)", mglru::read),
        Provider::new("pressure", "vm", "/proc/pressure", pressure::read),
        Provider::new("process", "process", "/proc/PID/stat, status, io, cgroup", process::processes),
        Provider::new("schedstat", "cpu", "/proc/schedstat", schedstat::read),
        Provider::new(
            "settings",
            "misc",
            "/proc/sys/vm, /proc/sys/kernel, /sys/kernel/mm, /sys/devices/system",
            settings::read,
        ),
        Provider::new("slabinfo", "vm", "/proc/slabinfo (root)", slabinfo::read),
        Provider::new("smaps", "process", "/proc/PID/smaps_rollup (only when named)", smaps::read)
            .on_demand(),
        Provider::new("stat", "cpu", "/proc/stat", stat::read),
        Provider::new("swaps", "vm", "/proc/swaps", swaps::read),
        Provider::new("system", "misc", "/proc/loadavg, /proc/uptime", system::read),
        Provider::new("thread", "process", "/proc/PID/task/TID/stat, status, schedstat", process::threads),
        Provider::new("vmstat", "vm", "/proc/vmstat", vmstat::read),
        Provider::new("zoneinfo", "vm", "/proc/zoneinfo", zoneinfo::read),
        Provider::new("zram", "vm", "/sys/block/zram*/mm_stat, io_stat", zram::read),
        Provider::new(
            "zswap",
            "vm",
            "/sys/module/zswap/parameters, /sys/kernel/debug/zswap (root)",
            zswap::read,
        ),
    ]
}
