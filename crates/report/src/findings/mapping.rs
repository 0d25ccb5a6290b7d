//! Of references to a mapping, and of what taking one apart costs.

use pagelab_analysis::finding::Finding;
use pagelab_experiment::Size;

use super::{shown, with_spread};
use crate::text::{DASH, count, ratio, value};

/// Faults of a kind with their median and mean time.
fn faults(finding: &Finding, kind: &str) -> Option<String> {
    let faults = finding.figure(&format!("faults.{kind}"))?;
    if faults.value == 0.0 {
        return Some(format!("no {kind} faults"));
    }
    let time = |name: &str, statistic| {
        let figure = finding.figure(&format!("access.{kind}.{name}"))?;
        Some(format!("{statistic} {}", value(Some(figure.value), figure.unit)))
    };
    let times: Vec<String> = [time("p50", "median"), time("mean", "mean")].into_iter().flatten().collect();
    let times = if times.is_empty() { String::new() } else { format!(" ({})", times.join(", ")) };
    Some(format!("{} {kind} faults{times}", count(faults.value)))
}

pub(super) fn access_time(finding: &Finding, pattern: &str) -> String {
    let mut parts = vec![format!("mean access time {}", with_spread(finding, "access.mean"))];
    if finding.figure("access.hit.p50").is_some() {
        parts.push(format!("hit median {}", shown(finding, "access.hit.p50")));
    }
    parts.extend(["major", "minor"].into_iter().filter_map(|kind| faults(finding, kind)));
    if finding.figure("read-ahead").is_some() {
        parts.push(format!("a major fault read {} on average (read-ahead)", shown(finding, "read-ahead")));
    }
    let (references, pages) = (shown(finding, "references"), shown(finding, "pages"));
    parts.push(format!("{references} references to {pages} pages, {pattern}"));
    parts.join("; ")
}

pub(super) fn past_limit(finding: &Finding, limit: Size, within: &str) -> String {
    let slowdown = finding.figure("slowdown").map_or(f64::NAN, |f| f.value);
    let absent = finding.figure("pages.absent").map_or(f64::NAN, |f| f.value * 100.0);
    format!(
        "past the limit of {limit} references are {} slower ({} → {} mean access time, {within} → {}) with at least {absent:.0} % of the pages out of memory",
        ratio(slowdown),
        shown(finding, "access.mean.within"),
        shown(finding, "access.mean.past"),
        finding.run,
    )
}

/// Of huge pages: the shares of the mapping first, then what the kernel did.
pub(super) fn huge_pages(finding: &Finding) -> String {
    let percent = |name: &str| finding.figure(name).map(|f| format!("{:.0} %", f.value * 100.0));
    let first = percent("huge.coverage.first").unwrap_or_else(|| DASH.to_owned());
    let mut text = format!("huge pages cover {first} of the mapping before the references");
    match percent("huge.coverage.last") {
        Some(last) if last != first => text += &format!(" and {last} after them"),
        Some(_) => text += " and after them",
        None => {}
    }
    let folios = |name: &str| percent(&format!("folio.coverage.{name}"));
    if let Some(large) =
        folios("first").filter(|large| *large != first || folios("last") != percent("huge.coverage.last"))
    {
        text += &format!("; folios of any size above a page {large} before");
        text += &folios("last").map(|last| format!(" and {last} after")).unwrap_or_default();
    }
    if finding.figure("faults.populate").is_some() {
        text += &format!("; populating it took {} minor faults", shown(finding, "faults.populate"));
    }
    let counters = finding
        .figures
        .iter()
        .filter(|f| (f.name.starts_with("thp_") || f.name.contains('/')) && f.value != 0.0);
    let counters: Vec<String> = counters.map(|f| format!("{} {}", f.name, count(f.value))).collect();
    if !counters.is_empty() {
        text += &format!("; the kernel counted {} (whole machine)", counters.join(", "));
    }
    text
}

/// Of what references wrote to a file: who waited for it first, then how much there was of it.
pub(super) fn writeback(finding: &Finding) -> String {
    let figure = |name: &str| finding.figure(name).filter(|figure| figure.value.is_finite());
    let mut parts = Vec::new();
    match (figure("dirty.pauses").map(|pauses| pauses.value), figure("dirty.throttled")) {
        (Some(0.0), _) => parts.push("the kernel never paused the writer for dirty pages".to_owned()),
        (Some(_), Some(_)) => parts.push(format!(
            "the kernel paused the writer for dirty pages {} times, {} in all",
            shown(finding, "dirty.pauses"),
            with_spread(finding, "dirty.throttled"),
        )),
        (Some(_), None) => {
            parts.push(format!(
                "the kernel paused the writer for dirty pages {} times",
                shown(finding, "dirty.pauses")
            ));
        }
        (None, _) => {}
    }
    if figure("access.write.mean").is_some() {
        parts.push(format!(
            "mean write {}, mean read {}",
            with_spread(finding, "access.write.mean"),
            shown(finding, "access.read.mean")
        ));
    }
    parts.push(format!(
        "at most {} dirty and {} under writeback",
        shown(finding, "dirty.max"),
        shown(finding, "writeback.max")
    ));
    if figure("pages.written").is_some() {
        parts.push(format!("{} pages written to disks (whole machine)", shown(finding, "pages.written")));
    }
    if figure("fsync.p50").is_some() {
        parts.push(format!(
            "fsync median {}, max {}",
            shown(finding, "fsync.p50"),
            shown(finding, "fsync.max")
        ));
    }
    parts.join("; ")
}

/// Of what went through zswap: what came to the device after all first, where the kernel says.
pub(super) fn zswap(finding: &Finding) -> String {
    let figure = |name: &str| finding.figure(name).filter(|figure| figure.value.is_finite());
    let mut parts = Vec::new();
    match figure("zswap.writeback").map(|pages| pages.value) {
        Some(0.0) => parts.push("zswap wrote nothing back to swap".to_owned()),
        Some(_) => {
            parts.push(format!("zswap wrote {} pages back to swap", with_spread(finding, "zswap.writeback")));
        }
        None => parts.push("what zswap wrote back to swap is not counted".to_owned()),
    }
    parts.push(format!(
        "it took {} pages from before populating on, and gave {} back",
        shown(finding, "zswap.out"),
        shown(finding, "zswap.in")
    ));
    if figure("zswap.rejected").is_some() {
        parts.push(format!("{} pages went to swap past it", with_spread(finding, "zswap.rejected")));
    }
    if figure("zswap.ratio").is_some() {
        parts.push(format!(
            "after the references it held {} in {} of memory (ratio {})",
            shown(finding, "zswap.stored"),
            shown(finding, "zswap.memory"),
            shown(finding, "zswap.ratio")
        ));
    }
    parts.join("; ")
}

pub(super) fn regret(finding: &Finding) -> String {
    let figure = |name: &str| finding.figure(name).map_or(f64::NAN, |f| f.value);
    let mut text =
        format!("{} major faults with {} frames", shown(finding, "faults.major"), shown(finding, "frames"));
    if finding.figure("faults.minor").is_some() {
        text += &format!(
            " ({} more pages came by read-ahead or were still cached)",
            shown(finding, "faults.minor")
        );
    }
    text += &format!("; LRU would have had {}; ", shown(finding, "lru"));
    text += &match finding.figure("avoidable") {
        Some(share) => format!(
            "OPT (offline optimum) would have had {:.0} % fewer ({})",
            share.value * 100.0,
            count(figure("opt"))
        ),
        None => format!(
            "OPT (offline optimum, paging on demand) would have had {}: read-ahead brought the others",
            count(figure("opt"))
        ),
    };
    text
}

pub(super) fn operations(finding: &Finding) -> String {
    let named = [
        ("unmap.munmap", "munmap"),
        ("unmap.munmap.shared", "munmap beside other threads"),
        ("unmap.mprotect", "mprotect"),
        ("unmap.dontneed", "MADV_DONTNEED"),
        ("mremap.move", "mremap"),
        ("mremap.move.shared", "mremap beside other threads"),
        ("mremap.aligned", "mremap of whole tables"),
        ("populate.touch", "first write"),
        ("populate.map", "MAP_POPULATE"),
        ("populate.advise", "MADV_POPULATE_WRITE"),
    ];
    let measured = named.iter().filter(|(name, _)| finding.figure(name).is_some());
    let parts: Vec<String> =
        measured.map(|(name, what)| format!("{what} {}", with_spread(finding, name))).collect();
    format!("median processor time a page: {}", parts.join("; "))
}
