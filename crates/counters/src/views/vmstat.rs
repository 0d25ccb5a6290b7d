//! Solaris' `vmstat -p` on Linux: available memory, reclaim, and page-ins, page-outs and frees by kind.
//!
//! Columns without a Linux counter are None and print as a dash: `de` and `epo` always, `epi` and
//! `epf` unless somebody traces ([`Executables`]).

use serde::Serialize;

use super::{Described, cell, fitting};
use crate::select::Selection;
use crate::tree::Snapshot;
use crate::value::Unit;

/// The counters the view is made of: choices of whole names, which are compared as words.
const OPERANDS: [&str; 7] = [
    "vmstat:0:vm:/^(pgfault|pgmajfault|pgactivate|pgpgin|pgpgout|pswpin|pswpout)$/",
    "vmstat:0:vm:/^(pgsteal_anon|pgsteal_file|pgsteal_kswapd|pgsteal_direct|pgsteal_khugepaged|pgsteal_proactive)$/",
    "vmstat:0:vm:/^(pgscan_anon|pgscan_file|pgscan_kswapd|pgscan_direct|pgscan_khugepaged|pgscan_proactive)$/",
    "meminfo:0:mem:/^(MemFree|MemAvailable|SwapFree|CommitLimit|Committed_AS)$/",
    "meminfo:0:mem:Inactive(file)",
    "settings:0:vm:overcommit_memory",
    "system:0:clock:uptime",
];

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&OPERANDS)
}

/// What to read for a line after the first: the time since boot is needed for that one alone.
pub fn selection_of_intervals() -> Selection {
    super::constant(&OPERANDS[..OPERANDS.len() - 1])
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
    pub avail: Option<f64>,
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
        let seconds = now.seconds_from(before);
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
            avail: mem("MemAvailable").or_else(|| Some(mem("MemFree")? + mem("Inactive(file)")?)),
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
    /// no figure. In few columns longer figures are in thousands, sizes in MiB and so on, with their letter.
    pub fn line(&self, layout: Layout) -> String {
        let cells = columns(layout).into_iter().map(|(column, width)| match (column.of)(self) {
            value if column.size => {
                let kib = value.map(|bytes| bytes / 1024.0);
                if layout.narrow {
                    fitting(kib, width, 1024.0, &["", "M", "G", "T"])
                } else {
                    cell(kib, width, 0)
                }
            }
            value if layout.narrow => fitting(value, width, 1000.0, &["", "K", "M", "G"]),
            value => cell(value, width, 0),
        });
        cells.collect::<String>().trim_end().to_owned()
    }
}

/// Which columns a line has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// What fits into 80 columns: without those that Linux has no figure for, in shorter figures.
    pub narrow: bool,
    /// Executables' pages are counted.
    pub traced: bool,
    /// Swap-ins and swap-outs instead of second references and minor faults.
    pub swapping: bool,
}

/// One column.
struct Column {
    group: &'static str,
    name: &'static str,
    /// Bytes, shown in KiB; else a number per second.
    size: bool,
    width: usize,
    of: fn(&Row) -> Option<f64>,
    help: &'static str,
}

/// The columns in order, as wide as they may be.
const COLUMNS: [Column; 18] = {
    const fn column(
        group: &'static str,
        name: &'static str,
        size: bool,
        width: usize,
        of: fn(&Row) -> Option<f64>,
        help: &'static str,
    ) -> Column {
        Column { group, name, size, width, of, help }
    }
    [
        column("memory", "swap", true, 10, |r| r.swap, "free swap; under strict overcommit, unreserved"),
        column("memory", "avail", true, 10, |r| r.avail, "available without paging out (MemAvailable)"),
        column("page", "re", false, 6, |r| r.re, "pages kept by a second reference (pgactivate)"),
        column("page", "mf", false, 7, |r| r.mf, "minor faults (pgfault - pgmajfault)"),
        column("page", "si", true, 7, |r| r.api, "with -S: swapped in (pswpin)"),
        column("page", "so", true, 7, |r| r.apo, "with -S: swapped out (pswpout)"),
        column("page", "fr", true, 7, |r| r.fr, "freed by reclaim (pgsteal_anon + pgsteal_file)"),
        column("page", "de", false, 3, |r| r.de, "Solaris' anticipated deficit: Linux has none"),
        column("page", "sr", false, 7, |r| r.sr, "pages scanned (pgscan_anon + pgscan_file)"),
        column("executable", "epi", true, 4, |r| r.epi, "executables paged in; needs --trace"),
        column("executable", "epo", true, 4, |r| r.epo, "executables paged out: Linux does not count them"),
        column("executable", "epf", true, 4, |r| r.epf, "executables freed; needs --trace"),
        column("anonymous", "api", true, 6, |r| r.api, "anonymous memory paged in (pswpin)"),
        column("anonymous", "apo", true, 6, |r| r.apo, "anonymous memory paged out (pswpout)"),
        column("anonymous", "apf", true, 6, |r| r.apf, "anonymous memory freed (pgsteal_anon)"),
        column("filesystem", "fpi", true, 7, |r| r.fpi, "read from files and devices (pgpgin - pswpin)"),
        column("filesystem", "fpo", true, 7, |r| r.fpo, "written to files and devices (pgpgout - pswpout)"),
        column("filesystem", "fpf", true, 7, |r| r.fpf, "file pages freed (pgsteal_file)"),
    ]
};

/// Every column with its meaning.
pub fn described() -> Vec<Described> {
    COLUMNS.iter().map(|column| (column.name, column.help)).collect()
}

/// The columns of a layout and their widths.
fn columns(layout: Layout) -> Vec<(&'static Column, usize)> {
    let shown = |column: &&Column| match column.name {
        "si" | "so" => layout.swapping,
        "re" | "mf" => !layout.swapping,
        "de" | "epo" => !layout.narrow,
        "epi" | "epf" => !layout.narrow || layout.traced,
        // Room for the executables.
        "swap" => !(layout.narrow && layout.traced),
        _ => true,
    };
    let width = |column: &Column| match column.name {
        _ if !layout.narrow => column.width,
        "swap" | "avail" => 7,
        "epi" | "epf" => 4,
        "mf" | "sr" => 6,
        _ => 5,
    };
    COLUMNS.iter().filter(shown).map(|column| (column, width(column))).collect()
}

/// The two lines above the rows.
pub fn heading(layout: Layout) -> String {
    let columns = columns(layout);
    let (mut groups, mut names) = (String::new(), String::new());
    for (n, (column, width)) in columns.iter().enumerate() {
        names += &format!("{:>width$} ", column.name);
        let last = columns.get(n + 1).is_none_or(|(next, _)| next.group != column.group);
        if last {
            // A group's name ends where its last column does; its beginning, where there is no room for all of it.
            let room = names.len() - 1 - groups.len();
            let name = if column.group.len() < room || n < 2 { column.group } else { &column.group[..4] };
            groups += &format!("{name:>room$}");
        }
    }
    format!("{}\n{}", groups, names.trim_end())
}

/// What has happened since the machine was booted: (number, what), as `vmstat -s` has it.
pub fn sums(now: &Snapshot) -> Vec<(f64, &'static str)> {
    const SUMS: [(&str, &str); 15] = [
        ("pgfault", "faults"),
        ("pgmajfault", "major faults"),
        ("pswpin", "pages swapped in"),
        ("pswpout", "pages swapped out"),
        ("pgpgin", "KiB paged in from devices"),
        ("pgpgout", "KiB paged out to devices"),
        ("pgactivate", "pages activated (second references)"),
        ("pgscan_anon", "anonymous pages scanned by reclaim"),
        ("pgscan_file", "file pages scanned by reclaim"),
        ("pgsteal_anon", "anonymous pages freed by reclaim"),
        ("pgsteal_file", "file pages freed by reclaim"),
        ("pgscan_kswapd", "pages scanned by kswapd"),
        ("pgscan_direct", "pages scanned by direct reclaim, global"),
        ("pgsteal_kswapd", "pages freed by kswapd"),
        ("pgsteal_direct", "pages freed by direct reclaim, global"),
    ];
    let of = |(statistic, what): (&str, &'static str)| {
        let sample = now.find("vmstat", 0, "vm", statistic)?;
        let value = sample.value.number()?;
        Some((if sample.unit == Unit::Bytes { value / 1024.0 } else { value }, what))
    };
    SUMS.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_fits_its_columns_and_keeps_them_under_their_names() {
        let large = Some(123_456_789_012.0);
        let row = Row {
            swap: large,
            avail: large,
            re: large,
            mf: large,
            fr: large,
            sr: large,
            epi: large,
            epf: large,
            api: large,
            apo: large,
            apf: large,
            fpi: large,
            fpo: large,
            fpf: large,
            ..Row::default()
        };
        for (traced, swapping) in [(false, false), (true, false), (false, true), (true, true)] {
            let layout = Layout { narrow: true, traced, swapping };
            let heading = heading(layout);
            assert!(
                heading.lines().chain([row.line(layout).as_str()]).all(|line| line.len() <= 80),
                "{heading}\n{}",
                row.line(layout)
            );
            let ends = |line: &str| -> Vec<usize> {
                let line = format!("{line} ");
                let bytes = line.as_bytes();
                (1..bytes.len()).filter(|&n| bytes[n] == b' ' && bytes[n - 1] != b' ').collect()
            };
            assert_eq!(ends(heading.lines().last().unwrap()), ends(&row.line(layout)), "{heading}");
        }
        assert!(heading(Layout { swapping: true, ..Layout::default() }).contains("si      so"));
    }
}
