//! Solaris' `vmstat -p` on Linux: free memory, reclaim, and page-ins, page-outs and frees by kind.
//!
//! Columns without a Linux counter are None and print as a dash:
//! - `de`, the memory deficit: Solaris raised it when a process was swapped in as a whole, in
//!   anticipation of its pages. Linux anticipates nothing of the kind.
//! - `epo`: no tracepoint counts the pages of a file that are written on every way to the device. (A
//!   program's are not: it cannot be written while it runs.)
//! - `epi`, `epf`: Linux accounts an executable's pages as file pages; they are counted while somebody
//!   traces ([`Executables`]).

use serde::Serialize;

use super::cell;
use crate::select::Selection;
use crate::tree::Snapshot;

/// The counters the view is made of.
const OPERANDS: [&str; 6] = [
    "vmstat:0:vm:/^(pgfault|pgmajfault|pgactivate|pgpgin|pgpgout|pswpin|pswpout)$/",
    "vmstat:0:vm:/^pgsteal_(anon|file|kswapd|direct|khugepaged|proactive)/",
    "vmstat:0:vm:/^pgscan_(anon|file|kswapd|direct|khugepaged|proactive)/",
    "meminfo:0:mem:/^(MemFree|MemAvailable|Inactive.file.|SwapFree|CommitLimit|Committed_AS)$/",
    "settings:0:vm:overcommit_memory",
    "system:0:clock:uptime",
];

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&OPERANDS)
}

/// Pages of executables since the look before, from the kernel's tracepoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executables {
    /// That came into the page cache.
    pub paged_in: u64,
    /// That left it.
    pub freed: u64,
}

/// One line of the view. Sizes are in bytes, rates per second; None where Linux has no such figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    /// Swap that can still be had: SwapFree; under strict overcommit (`vm.overcommit_memory` = 2),
    /// where Linux reserves as Solaris did, CommitLimit − Committed_AS.
    pub swap: Option<f64>,
    /// Memory that can be had without paging out: MemAvailable (before 3.14 MemFree +
    /// Inactive(file)). Solaris' freemem is the free list and the unmapped file cache.
    pub free: Option<f64>,
    /// Pages per second saved from reclaim by a second reference: pgactivate.
    pub re: Option<f64>,
    /// Minor faults per second: pgfault − pgmajfault.
    pub mf: Option<f64>,
    /// Bytes per second that reclaim freed: pgsteal_anon + pgsteal_file, cgroups' own reclaim
    /// included (before 5.8, which has no such split, the sum over the reclaimers).
    pub fr: Option<f64>,
    /// Anticipated shortage: no Linux counter.
    pub de: Option<f64>,
    /// Pages per second that reclaim looked at: pgscan_anon + pgscan_file, as `fr`.
    pub sr: Option<f64>,
    /// Bytes per second of executables that came into the page cache; None unless traced.
    pub epi: Option<f64>,
    /// Executables paged out: not split by Linux.
    pub epo: Option<f64>,
    /// Bytes per second of executables that left the page cache; None unless traced.
    pub epf: Option<f64>,
    /// Anonymous bytes per second paged in: pswpin.
    pub api: Option<f64>,
    /// Anonymous bytes per second paged out: pswpout.
    pub apo: Option<f64>,
    /// Anonymous bytes per second freed: pgsteal_anon (shared memory included).
    pub apf: Option<f64>,
    /// File bytes per second read from devices: pgpgin less pswpin. It counts every block read, direct
    /// I/O and file systems' own included.
    pub fpi: Option<f64>,
    /// File bytes per second written to devices: pgpgout less pswpout.
    pub fpo: Option<f64>,
    /// File bytes per second freed: pgsteal_file.
    pub fpf: Option<f64>,
}

impl Row {
    /// The row between two snapshots, or since boot when `before` is None; `executables` are those of
    /// that time, where they were traced.
    pub fn between(
        before: Option<&Snapshot>,
        now: &Snapshot,
        page_size: u64,
        executables: Option<Executables>,
    ) -> Self {
        let seconds = match before {
            Some(before) => now.seconds_since(before),
            None => now.number("system", 0, "clock", "uptime").map(|ns| ns / 1e9).filter(|s| *s > 0.0),
        };
        let rate = |statistic: &str| {
            let end = now.number("vmstat", 0, "vm", statistic)?;
            let start = before.map_or(Some(0.0), |b| b.number("vmstat", 0, "vm", statistic))?;
            Some((end - start).max(0.0) / seconds?)
        };
        let sum = |names: &[&str]| names.iter().filter_map(|n| rate(n)).reduce(|a, b| a + b);
        // The sums over the reclaimers leave out what a cgroup reclaims for its own limit.
        let reclaimed = |what: &str| {
            rate(&format!("{what}_anon")).zip(rate(&format!("{what}_file"))).map(|(a, f)| a + f).or_else(
                || {
                    let names: Vec<String> = ["kswapd", "direct", "khugepaged", "proactive"]
                        .iter()
                        .map(|by| format!("{what}_{by}"))
                        .collect();
                    sum(&names.iter().map(String::as_str).collect::<Vec<_>>())
                },
            )
        };
        let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
        let page = page_size as f64;
        let bytes = |pages: Option<f64>| pages.map(|p| p * page);
        let less = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| (a - b).max(0.0));
        let strict = now.number("settings", 0, "vm", "overcommit_memory") == Some(2.0);
        Self {
            swap: if strict { less(mem("CommitLimit"), mem("Committed_AS")) } else { mem("SwapFree") },
            free: mem("MemAvailable").or_else(|| Some(mem("MemFree")? + mem("Inactive(file)")?)),
            re: rate("pgactivate"),
            mf: less(rate("pgfault"), rate("pgmajfault")),
            fr: bytes(reclaimed("pgsteal")),
            sr: reclaimed("pgscan"),
            api: bytes(rate("pswpin")),
            apo: bytes(rate("pswpout")),
            apf: bytes(rate("pgsteal_anon")),
            fpi: less(rate("pgpgin"), bytes(rate("pswpin"))),
            fpo: less(rate("pgpgout"), bytes(rate("pswpout"))),
            fpf: bytes(rate("pgsteal_file")),
            de: None,
            epi: bytes(executables.and_then(|e| Some(e.paged_in as f64 / seconds?))),
            epo: None,
            epf: bytes(executables.and_then(|e| Some(e.freed as f64 / seconds?))),
        }
    }

    /// The line under [`heading`]: sizes in KiB, rates rounded to whole numbers, a dash where there is
    /// no figure.
    pub fn line(&self) -> String {
        let kib = |v: Option<f64>| v.map(|v| v / 1024.0);
        let cells = [
            (kib(self.swap), 10),
            (kib(self.free), 10),
            (self.re, 6),
            (self.mf, 7),
            (kib(self.fr), 7),
            (self.de, 3),
            (self.sr, 7),
            (self.epi, 4),
            (self.epo, 4),
            (self.epf, 4),
            (kib(self.api), 6),
            (kib(self.apo), 6),
            (kib(self.apf), 6),
            (kib(self.fpi), 7),
            (kib(self.fpo), 7),
            (kib(self.fpf), 7),
        ];
        let line: String = cells.into_iter().map(|(value, width)| cell(value, width, 0)).collect();
        line.trim_end().to_owned()
    }
}

/// The two lines above the rows.
pub fn heading() -> String {
    format!(
        "{:>21} {:>34} {:>16} {:>20} {:>23}\n{:>10} {:>10} {:>6} {:>7} {:>7} {:>3} {:>7} {:>5} {:>4} {:>5} {:>6} {:>6} {:>6} {:>7} {:>7} {:>7}",
        "memory",
        "page",
        "executable",
        "anonymous",
        "filesystem",
        "swap",
        "free",
        "re",
        "mf",
        "fr",
        "de",
        "sr",
        "epi",
        "epo",
        "epf",
        "api",
        "apo",
        "apf",
        "fpi",
        "fpo",
        "fpf"
    )
}
