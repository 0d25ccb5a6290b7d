//! Words that several of the kernel's files share: pairs of a name and a number, and what the names
//! of memory events mean.

use crate::value::{Kind, Unit};

/// The `key=value` of a line as numbers.
pub fn assignments(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.split_ascii_whitespace().filter_map(|word| word.split_once('='))
}

/// Microseconds, as most of /proc writes times, in nanoseconds.
pub fn from_us(us: u64) -> u64 {
    us.saturating_mul(1000)
}

/// Milliseconds in nanoseconds.
pub fn from_ms(ms: u64) -> u64 {
    ms.saturating_mul(1_000_000)
}

/// The `nr_` counters that only grow; every other `nr_` is a state (include/linux/mmzone.h).
const GROWING: [&str; 9] = [
    "nr_dirtied",
    "nr_written",
    "nr_vmscan_write",
    "nr_vmscan_immediate_reclaim",
    "nr_throttled_written",
    "nr_foll_pin_acquired",
    "nr_foll_pin_released",
    "nr_tlb_remote_flush",
    "nr_tlb_local_flush_all",
];

/// Names of pages that begin like events and are none, and the other way round.
const EVENTS: [&str; 5] =
    ["pgfault", "pgmajfault", "pgscan_direct_throttle", "workingset_nodes", "nr_unstable"];

/// What a name of /proc/vmstat (or of a cgroup's or zone's copy of it) counts in.
pub fn memory_event(name: &str) -> (Kind, Unit) {
    let kind = if (name.starts_with("nr_") && !GROWING.contains(&name)) || name == "workingset_nodes" {
        Kind::Gauge
    } else {
        Kind::Counter
    };
    let pages = [
        "nr_",
        "pg",
        "pswp",
        "workingset_",
        "unevictable_",
        "swap_ra",
        "swpin",
        "swpout",
        "zswp",
        "compact_isolated",
    ];
    let unit = if matches!(name, "pgpgin" | "pgpgout" | "nr_kernel_stack" | "nr_shadow_call_stack") {
        Unit::Bytes // the kernel gives KiB
    } else if EVENTS.contains(&name) {
        Unit::Count
    } else if pages.iter().any(|p| name.starts_with(p)) || name.ends_with("_scanned") {
        Unit::Pages
    } else {
        Unit::Count
    };
    (kind, unit)
}

/// The value in its unit: the few names that the kernel gives in KiB become bytes.
pub fn memory_value(unit: Unit, value: u64) -> u64 {
    if unit == Unit::Bytes { value.saturating_mul(1024) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_states_from_events() {
        assert_eq!(memory_event("nr_dirty"), (Kind::Gauge, Unit::Pages));
        assert_eq!(memory_event("nr_dirtied"), (Kind::Counter, Unit::Pages));
        assert_eq!(memory_event("pgfault"), (Kind::Counter, Unit::Count));
        assert_eq!(memory_event("pgscan_kswapd"), (Kind::Counter, Unit::Pages));
        assert_eq!(memory_event("pgpgin"), (Kind::Counter, Unit::Bytes));
        assert_eq!(memory_event("oom_kill"), (Kind::Counter, Unit::Count));
        assert_eq!(memory_event("workingset_nodes"), (Kind::Gauge, Unit::Count));
    }
}
