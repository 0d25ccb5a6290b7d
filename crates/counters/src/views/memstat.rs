//! Where physical memory is: Solaris' `::memstat` from /proc/meminfo. The exact count, page by page,
//! is the [`Census`]'; this view is for everybody and for every kernel.

use std::sync::Arc;

use serde::Serialize;

use super::prstat::size;
use super::{Described, Width, fitting};
use crate::Sample;
use crate::census::{Census, SHARING, Use};
use crate::select::Selection;
use crate::tree::{Snapshot, of_group};

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&["meminfo", "zoneinfo:::/^(present|managed)$/", "vmstat:0:vm:nr_free_pages"])
}

/// One kind of memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// What it is used for.
    pub kind: &'static str,
    /// Bytes; None where this source cannot tell.
    pub bytes: Option<f64>,
    /// A part of the line above it that is already counted there, or a sum over several.
    pub part: bool,
}

/// The lines, the largest classes in Solaris' order. Those that are no `part` add up to MemTotal: the
/// kernel's memory of no known use is what remains.
///
/// | line | from |
/// |---|---|
/// | slab, page tables, stacks, per-CPU | Slab, PageTables + SecPageTables, KernelStack, Percpu |
/// | vmalloc | VmallocUsed − KernelStack (stacks are in it), since kernels account it (5.3) |
/// | anonymous | AnonPages (transparent huge pages included) |
/// | shared memory | Shmem (tmpfs and SysV; its mapped pages are not counted as mapped file cache) |
/// | mapped file cache | Mapped − mapped shared memory, which meminfo does not tell: Mapped − Shmem at least, so at most Mapped |
/// | unmapped file cache | Cached + Buffers + SwapCached − Shmem − Mapped |
/// | huge pages | HugePages_Total × Hugepagesize (Hugetlb, since 4.18) |
/// | free | MemFree |
pub fn lines(now: &Snapshot) -> Vec<Line> {
    let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
    let or_zero = |statistic| mem(statistic).unwrap_or(0.0);
    let Some(total) = mem("MemTotal") else { return Vec::new() };
    let whole = |kind, bytes: Option<f64>| Line { kind, bytes, part: false };
    let part = |kind, bytes: Option<f64>| Line { kind, bytes, part: true };

    let slab = mem("Slab");
    let tables = mem("PageTables").map(|t| t + or_zero("SecPageTables"));
    let vmalloc = mem("VmallocUsed").map(|v| (v - or_zero("KernelStack")).max(0.0));
    let known_kernel = [slab, tables, mem("KernelStack"), mem("Percpu"), vmalloc];
    let anonymous = mem("AnonPages");
    let shared = mem("Shmem");
    let mapped = mem("Mapped");
    let file =
        mem("Cached").map(|c| (c + or_zero("Buffers") + or_zero("SwapCached") - or_zero("Shmem")).max(0.0));
    // Mapped holds mapped shared memory too, so it may exceed the file cache.
    let mapped_file = file.zip(mapped).map(|(f, m)| m.min(f));
    let unmapped_file = file.zip(mapped_file).map(|(f, m)| f - m);
    let huge = mem("Hugetlb").or_else(|| Some(mem("HugePages_Total")? * mem("Hugepagesize")?));
    let free = mem("MemFree");
    let rest: f64 = total
        - known_kernel
            .iter()
            .chain([&anonymous, &shared, &mapped_file, &unmapped_file, &huge, &free])
            .flatten()
            .sum::<f64>();

    vec![
        whole("kernel: slab", slab),
        part("  of it reclaimable", mem("SReclaimable")),
        whole("kernel: page tables", tables),
        whole("kernel: stacks", mem("KernelStack")),
        whole("kernel: per-CPU", mem("Percpu")),
        whole("kernel: vmalloc", vmalloc),
        whole("kernel: other", Some(rest.max(0.0))),
        whole("anonymous", anonymous),
        part("  of it transparent huge", mem("AnonHugePages")),
        whole("shared memory", shared),
        // Only the page flags and the mappings tell executables from other files.
        part("executables and libraries", None),
        whole("mapped file cache", mapped_file),
        whole("unmapped file cache", unmapped_file),
        part("  dirty or being written", mem("Dirty").map(|d| d + or_zero("Writeback"))),
        whole("huge pages", huge),
        whole("free", free),
    ]
}

/// The table to print: kind, pages, MiB, percent of the total.
pub fn table(lines: &[Line], page_size: u64) -> String {
    let total = 0.0 + lines.iter().filter(|l| !l.part).filter_map(|l| l.bytes).sum::<f64>();
    let mut out = format!("{:<28} {:>12} {:>10} {:>5}\n", "where memory is", "pages", "MiB", "%");
    for line in lines {
        out.push_str(&row(line.kind, line.bytes, total, page_size));
    }
    out.push_str(&row("total", Some(total), total, page_size));
    out
}

fn row(kind: &str, bytes: Option<f64>, total: f64, page_size: u64) -> String {
    match bytes {
        Some(bytes) => format!(
            "{kind:<28} {:>12.0} {:>10.1} {:>5.1}\n",
            bytes / page_size as f64,
            bytes / 1_048_576.0,
            if total > 0.0 { 100.0 * bytes / total } else { 0.0 }
        ),
        None => format!("{kind:<28} {:>12} {:>10} {:>5}\n", "-", "-", "-"),
    }
}

/// The lines of an exact count, with what only the kernel's own account (`now`) splits further.
///
/// Pages that the allocator does not manage (present − managed of /proc/zoneinfo: the memory map, the
/// kernel's image, what a balloon gave back to the hypervisor) mostly carry no flag, like the kernel's
/// own pages, so they are taken from these by their number.
pub fn exact_lines(census: &Census, now: &Snapshot, page_size: u64) -> Vec<Line> {
    let page = page_size as f64;
    let bytes = |pages: u64| Some(pages as f64 * page);
    let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
    let zones = |statistic: &str| -> f64 {
        now.groups("zoneinfo").filter_map(|(_, _, group)| of_group(group, statistic)).sum()
    };
    let unmanaged = zones("present") - zones("managed");
    let seen = census.of(Use::Reserved) + census.of(Use::Gone);
    let unseen = (unmanaged - seen as f64).clamp(0.0, census.of(Use::Kernel) as f64) * page;
    let mut lines = Vec::new();
    for what in Use::ALL {
        let bytes_of = match what {
            Use::Kernel => bytes(census.of(what)).map(|b| b - unseen),
            Use::Reserved => bytes(census.of(what)).map(|b| b + unseen),
            _ => bytes(census.of(what)),
        };
        lines.push(Line { kind: what.title(), bytes: bytes_of, part: false });
        let mut part = |kind, bytes| lines.push(Line { kind, bytes, part: true });
        match what {
            Use::Slab => part("  of it reclaimable", mem("SReclaimable")),
            Use::Kernel => {
                part("  of it stacks", mem("KernelStack"));
                part("  of it per-CPU", mem("Percpu"));
                part(
                    "  of it vmalloc",
                    mem("VmallocUsed").zip(mem("KernelStack")).map(|(v, s)| (v - s).max(0.0)),
                );
            }
            Use::Anonymous => part("  of it transparent huge", bytes(census.transparent_huge)),
            Use::UnmappedFile => part("  dirty or being written", bytes(census.dirty)),
            _ => {}
        }
    }
    lines
}

/// Bytes that /proc/meminfo calls free and the allocator does not have, as some virtual machines
/// count what their balloon gave to the hypervisor; None when it is less than a hundredth of all.
pub fn free_elsewhere(now: &Snapshot, page_size: u64) -> Option<f64> {
    let mem = |statistic: &str| now.number("meminfo", 0, "mem", statistic);
    let allocator = now.number("vmstat", 0, "vm", "nr_free_pages")? * page_size as f64;
    let more = mem("MemFree")? - allocator;
    (more > mem("MemTotal")? / 100.0).then_some(more)
}

/// Who shares memory: mapped pages by the number of their mappings.
pub fn sharing_table(census: &Census, width: Width) -> String {
    let cell = if width == Width::Whole { 9 } else { 5 };
    let mut out = format!("{:<28}", "pages by mappings");
    let mut from = 1;
    for end in SHARING {
        let class = match end {
            u64::MAX => format!("{from}+"),
            _ if end == from => from.to_string(),
            _ => format!("{from}-{end}"),
        };
        out.push_str(&format!(" {class:>cell$}"));
        from = end.saturating_add(1);
    }
    out.push('\n');
    let kinds = ["anonymous", "shared memory", "executables and libraries", "mapped file cache"];
    for (kind, row) in kinds.into_iter().zip(&census.sharing) {
        out.push_str(&format!("{kind:<28}"));
        let figures =
            row.iter().map(|&pages| fitting(Some(pages as f64), cell, 1000.0, &["", "K", "M", "G"]));
        out.push_str(&format!(" {}", figures.collect::<String>().trim_end()));
        out.push('\n');
    }
    out
}

/// One process or cgroup and its memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Holder {
    /// The process's number; None for a cgroup.
    pub pid: Option<u64>,
    /// The command or the cgroup's path.
    pub name: String,
    /// Everything it holds in memory: a process's share of what it shares, a cgroup's charge.
    pub total: Option<f64>,
    /// Anonymous.
    pub anonymous: Option<f64>,
    /// Shared memory.
    pub shared: Option<f64>,
    /// Files.
    pub file: Option<f64>,
    /// The kernel's on its behalf; None for a process.
    pub kernel: Option<f64>,
    /// Swapped out.
    pub swap: Option<f64>,
}

/// What to read for [`by_process`].
pub fn process_selection() -> Selection {
    super::constant(&["smaps", "process:::/^(rss|swap|rss_)/"])
}

/// Each process's proportional share (Pss of smaps_rollup: a page mapped by n counts 1/n); where that
/// may not be read, its resident set, which counts shared pages in full. The largest first.
pub fn by_process(now: &Snapshot) -> Vec<Holder> {
    let holder = |(pid, name, group): (u64, &Arc<str>, &[Sample])| {
        let own = |statistic: &str| of_group(group, statistic).filter(|bytes| *bytes > 0.0);
        let share = |statistic: &str| now.number("smaps", pid, name, statistic);
        let or = |statistic: &str, resident: &str| share(statistic).or_else(|| own(resident));
        Some(Holder {
            pid: Some(pid),
            name: name.to_string(),
            total: Some(or("pss", "rss")?),
            anonymous: or("pss_anon", "rss_anon"),
            shared: or("pss_shmem", "rss_shmem"),
            file: or("pss_file", "rss_file"),
            kernel: None,
            swap: share("swappss").or_else(|| of_group(group, "swap")),
        })
    };
    largest_first(now.groups("process").filter_map(holder).collect())
}

/// What to read for [`by_cgroup`].
pub fn cgroup_selection() -> Selection {
    super::constant(&["cgroup:::/^(current|anon|rss|shmem|file|cache|kernel|slab|swap|swap_current)$/"])
}

/// Each cgroup's charge with its children's, by its own account. The largest first.
pub fn by_cgroup(now: &Snapshot) -> Vec<Holder> {
    let holder = |(version, name, group): (u64, &Arc<str>, &[Sample])| {
        let own = |statistic| of_group(group, statistic);
        // Version 1's cache holds shared memory, as version 2's file does.
        let (anonymous, file) =
            if version == 1 { (own("rss"), own("cache")) } else { (own("anon"), own("file")) };
        let shared = own("shmem");
        Some(Holder {
            pid: None,
            name: name.to_string(),
            total: own("current").or_else(|| Some(anonymous? + file?)),
            anonymous,
            shared,
            file: file.map(|f| (f - shared.unwrap_or(0.0)).max(0.0)),
            kernel: own("kernel").or_else(|| own("slab")),
            swap: own("swap_current").or_else(|| own("swap")),
        })
        .filter(|holder| holder.total.is_some())
    };
    largest_first(now.groups("cgroup").filter_map(holder).collect())
}

fn largest_first(mut holders: Vec<Holder>) -> Vec<Holder> {
    holders.sort_by(|a, b| b.total.partial_cmp(&a.total).unwrap_or(std::cmp::Ordering::Equal));
    holders
}

/// The columns of a holder: name, figure, meaning.
type Column = (&'static str, fn(&Holder) -> Option<f64>, &'static str);
const COLUMNS: [Column; 6] = [
    ("total", |h| h.total, "memory of the process (its share of shared pages), or charged to the cgroup"),
    ("anon", |h| h.anonymous, "its anonymous memory"),
    ("shared", |h| h.shared, "its shared memory: tmpfs, System V, shared anonymous mappings"),
    ("file", |h| h.file, "its pages of files"),
    ("kernel", |h| h.kernel, "kernel memory charged to the cgroup"),
    ("swap", |h| h.swap, "its pages in swap"),
];

/// Every column with its meaning.
pub fn described() -> Vec<Described> {
    let names = [("PID", "the process"), ("COMMAND", "the name of the process"), ("CGROUP", "the cgroup")];
    COLUMNS.iter().map(|(name, _, help)| (*name, *help)).chain(names).collect()
}

/// The line above the holders.
pub fn holder_heading(by_process: bool) -> String {
    let numbers = COLUMNS.map(|(name, ..)| format!("{name:>7}")).concat();
    if by_process { format!("    PID{numbers}  COMMAND") } else { format!("{numbers}  CGROUP") }
}

impl Holder {
    /// The line under [`holder_heading`].
    pub fn line(&self, width: Width) -> String {
        let numbers = COLUMNS.map(|(_, of, _)| format!("{:>7}", size(of(self)))).concat();
        let pid = self.pid.map(|pid| format!("{pid:>7}")).unwrap_or_default();
        let line = format!("{pid}{numbers}  ");
        let taken = line.chars().count();
        line + &width.cut(&self.name, taken)
    }
}
