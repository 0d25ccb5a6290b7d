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
//! struct Entropy;
//!
//! impl Provider for Entropy {
//!     fn module(&self) -> &'static str {
//!         "entropy"
//!     }
//!     fn class(&self) -> &'static str {
//!         "misc"
//!     }
//!     fn source(&self) -> &'static str {
//!         "/proc/sys/kernel/random/entropy_avail"
//!     }
//!     fn read(&self, root: &Root, sink: &mut Sink<'_>) {
//!         if let Some(mut pool) = sink.group(0, "pool") {
//!             pool.gauge("available", root.number("proc/sys/kernel/random/entropy_avail"), Unit::Count);
//!         }
//!     }
//! }
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
pub use textfile::TextFiles;

/// Every provider there is.
pub fn all() -> Vec<Box<dyn Provider>> {
    vec![
        Box::new(buddyinfo::BuddyInfo),
        Box::new(cgroup::Cgroup),
        Box::new(damon::Damon),
        Box::new(diskstats::DiskStats),
        Box::new(interrupts::Interrupts),
        Box::new(meminfo::MemInfo),
        Box::new(mglru::MgLru),
        Box::new(pressure::Pressure),
        Box::new(process::Processes),
        Box::new(process::Threads),
        Box::new(schedstat::SchedStat),
        Box::new(settings::Settings),
        Box::new(slabinfo::SlabInfo),
        Box::new(smaps::Smaps),
        Box::new(stat::Stat),
        Box::new(swaps::Swaps),
        Box::new(system::System),
        Box::new(vmstat::VmStat),
        Box::new(zoneinfo::ZoneInfo),
        Box::new(zram::Zram),
        Box::new(zswap::Zswap),
    ]
}
