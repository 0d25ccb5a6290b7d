//! Where physical memory is: Solaris' `::memstat` from /proc/meminfo. The exact count, page by page,
//! is the census's; this view is for everybody and for every kernel.

use serde::Serialize;

use crate::select::Selection;
use crate::tree::Snapshot;

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&["meminfo"])
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
    let total: f64 = lines.iter().filter(|l| !l.part).filter_map(|l| l.bytes).sum();
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
