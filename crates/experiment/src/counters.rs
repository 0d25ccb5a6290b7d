//! The kernel's counters by the names that people have for them, and what belongs together.

/// A counter as a picture has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The heading of the picture that it belongs to.
    pub title: String,
    /// What it is.
    pub words: String,
    /// Whether it counts pages, so that it can be bytes.
    pub pages: bool,
}

/// Module, name (of the middle part; any where empty), statistic; title; words; whether it counts pages.
type Known = (&'static str, &'static str, &'static str, &'static str, &'static str, bool);

const FAULTS: &str = "Page faults";
const HUGE: &str = "Transparent huge pages";
const SWAP: &str = "Swap traffic";
const RECLAIM: &str = "Reclaim and refaults";
const STALLED: &str = "Time stalled (PSI)";
const MEMORY: &str = "Memory by kind";
const FREE: &str = "Free memory and watermarks";

const KNOWN: &[Known] = &[
    ("pressure", "memory", "some_total", STALLED, "memory, some tasks", false),
    ("pressure", "memory", "full_total", STALLED, "memory, all tasks", false),
    ("pressure", "io", "some_total", STALLED, "input and output, some tasks", false),
    ("pressure", "io", "full_total", STALLED, "input and output, all tasks", false),
    ("pressure", "cpu", "some_total", STALLED, "processor, some tasks", false),
    ("pressure", "cpu", "full_total", STALLED, "processor, all tasks", false),
    ("vmstat", "", "pgfault", FAULTS, "page faults", false),
    ("vmstat", "", "pgmajfault", FAULTS, "major faults", false),
    ("vmstat", "", "thp_fault_alloc", HUGE, "huge pages given at a fault", false),
    ("vmstat", "", "thp_fault_fallback", HUGE, "base pages given at a fault instead", false),
    (
        "vmstat",
        "",
        "thp_fault_fallback_charge",
        HUGE,
        "base pages given because the cgroup's limit was met",
        false,
    ),
    ("vmstat", "", "thp_collapse_alloc", HUGE, "huge pages allocated to collapse base pages", false),
    ("vmstat", "", "thp_collapse_alloc_failed", HUGE, "failed allocations to collapse base pages", false),
    ("vmstat", "", "thp_split_page", HUGE, "huge pages split", false),
    ("vmstat", "", "thp_split_page_failed", HUGE, "failed splits of huge pages", false),
    ("vmstat", "", "thp_deferred_split_page", HUGE, "huge pages to be split, partly unmapped", false),
    ("vmstat", "", "thp_underused_split_page", HUGE, "huge pages split, mostly zero", false),
    ("vmstat", "", "thp_split_pmd", HUGE, "mappings of huge pages split", false),
    ("vmstat", "", "thp_zero_page_alloc", HUGE, "huge zero pages allocated", false),
    ("vmstat", "", "thp_swpout", HUGE, "huge pages swapped out whole", false),
    ("vmstat", "", "thp_swpout_fallback", HUGE, "huge pages split before swap-out", false),
    ("vmstat", "", "pswpin", SWAP, "swap-in", true),
    ("vmstat", "", "pswpout", SWAP, "swap-out", true),
    ("vmstat", "", "pgscan_anon", RECLAIM, "anonymous memory scanned", true),
    ("vmstat", "", "pgscan_file", RECLAIM, "page cache scanned", true),
    ("vmstat", "", "pgsteal_anon", RECLAIM, "anonymous memory reclaimed", true),
    ("vmstat", "", "pgsteal_file", RECLAIM, "page cache reclaimed", true),
    ("vmstat", "", "pgscan_kswapd", RECLAIM, "scanned by kswapd", true),
    ("vmstat", "", "pgscan_direct", RECLAIM, "scanned by direct reclaim", true),
    ("vmstat", "", "pgsteal_kswapd", RECLAIM, "reclaimed by kswapd", true),
    ("vmstat", "", "pgsteal_direct", RECLAIM, "reclaimed by direct reclaim", true),
    ("vmstat", "", "workingset_refault_anon", RECLAIM, "anonymous refaults", true),
    ("vmstat", "", "workingset_refault_file", RECLAIM, "page cache refaults", true),
    ("vmstat", "", "allocstall_normal", "Direct reclaim", "direct reclaim stalls", false),
    ("vmstat", "", "oom_kill", "OOM kills", "OOM kills", false),
    ("meminfo", "", "MemFree", MEMORY, "free", false),
    ("meminfo", "", "MemAvailable", MEMORY, "available", false),
    ("meminfo", "", "AnonPages", MEMORY, "anonymous", false),
    ("meminfo", "", "Cached", MEMORY, "page cache", false),
    ("meminfo", "", "Shmem", MEMORY, "shared memory", false),
    ("meminfo", "", "Slab", MEMORY, "slab", false),
    ("meminfo", "", "Dirty", MEMORY, "dirty", false),
    ("meminfo", "", "SwapFree", MEMORY, "free swap", false),
    ("zoneinfo", "", "free", FREE, "free", true),
    ("zoneinfo", "", "low", FREE, "low watermark", true),
    ("zoneinfo", "", "min", FREE, "min watermark", true),
    ("zoneinfo", "", "high", FREE, "high watermark", true),
];

/// The name of a recorded counter, `module:instance:name:statistic`, with `/s` behind it where it is a rate. One
/// that is not known has its module as the title, and its own name.
pub fn named(counter: &str) -> Named {
    let plain = counter.strip_suffix("/s").unwrap_or(counter);
    let mut parts = plain.splitn(4, ':');
    let [module, instance, name, statistic] = [(); 4].map(|()| parts.next().unwrap_or_default());
    let known = KNOWN.iter().find(|(its, middle, last, ..)| {
        *its == module && (middle.is_empty() || *middle == name) && *last == statistic
    });
    match known {
        Some((.., title, words, pages)) if module == "zoneinfo" => Named {
            title: format!("{title} of zone {name}"),
            words: if instance == "0" { (*words).to_owned() } else { format!("{words}, node {instance}") },
            pages: *pages,
        },
        Some((.., title, words, pages)) => {
            Named { title: (*title).to_owned(), words: (*words).to_owned(), pages: *pages }
        }
        None if statistic.is_empty() => {
            Named { title: "Counters".to_owned(), words: plain.to_owned(), pages: false }
        }
        None => Named {
            title: format!("Counters of {module}"),
            words: format!("{instance}:{name}:{statistic}"),
            pages: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_names_that_people_read() {
        let of = |counter: &str| {
            let Named { title, words, pages } = named(counter);
            (title, words, pages)
        };
        let text = |title: &str, words: &str, pages| (title.to_owned(), words.to_owned(), pages);
        assert_eq!(of("vmstat:0:vm:pswpin/s"), text(SWAP, "swap-in", true));
        assert_eq!(of("pressure:0:io:some_total/s"), text(STALLED, "input and output, some tasks", false));
        assert_eq!(
            of("zoneinfo:1:Normal:low"),
            text("Free memory and watermarks of zone Normal", "low watermark, node 1", true)
        );
        assert_eq!(of("cgroup:a/b:memory:current"), text("Counters of cgroup", "a/b:memory:current", false));
        assert_eq!(of("odd"), text("Counters", "odd", false));
    }
}
