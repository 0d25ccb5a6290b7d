//! Of references to a mapping, and of what taking one apart costs.

use pagelab_analysis::finding::Finding;
use pagelab_experiment::metrics;
use pagelab_experiment::{MetricId, Size};

use super::{shown, with_spread};
use crate::text::{DASH, count, ratio, value};

/// Faults of a kind with their median and mean time.
fn faults(finding: &Finding, kind: &str, [faults, median, mean]: [MetricId; 3]) -> Option<String> {
    let faults = finding.figure(faults)?;
    if faults.value == 0.0 {
        return Some(format!("no {kind} faults"));
    }
    let time = |metric, statistic| {
        let figure = finding.figure(metric)?;
        Some(format!("{statistic} {}", value(Some(figure.value), figure.unit)))
    };
    let times: Vec<String> = [time(median, "median"), time(mean, "mean")].into_iter().flatten().collect();
    let times = if times.is_empty() { String::new() } else { format!(" ({})", times.join(", ")) };
    Some(format!("{} {kind} faults{times}", count(faults.value)))
}

pub(super) fn access_time(finding: &Finding, pattern: &str) -> String {
    let mut parts = vec![format!("mean access time {}", with_spread(finding, metrics::ACCESS_MEAN))];
    if finding.figure(metrics::ACCESS_HIT_P50).is_some() {
        parts.push(format!("hit median {}", shown(finding, metrics::ACCESS_HIT_P50)));
    }
    let major = [metrics::FAULTS_MAJOR, metrics::ACCESS_MAJOR_P50, metrics::ACCESS_MAJOR_MEAN];
    let minor = [metrics::FAULTS_MINOR, metrics::ACCESS_MINOR_P50, metrics::ACCESS_MINOR_MEAN];
    parts.extend([faults(finding, "major", major), faults(finding, "minor", minor)].into_iter().flatten());
    if finding.figure("read-ahead").is_some() {
        let read = shown(finding, "read-ahead");
        parts.push(format!("{read} read per major fault, by read-ahead, which minor faults also start"));
    }
    let (references, pages) = (shown(finding, "references"), shown(finding, "pages"));
    parts.push(format!("{references} references to {pages} pages, {pattern}"));
    parts.join("; ")
}

pub(super) fn past_limit(finding: &Finding, limit: Size, within: &str) -> String {
    let slowdown = finding.figure("slowdown").map_or(f64::NAN, |f| f.value);
    let absent = finding.figure("pages.absent").map_or(f64::NAN, |f| f.value * 100.0);
    format!(
        "past the limit of {limit} references are {} slower ({} → {} mean access time, {within} → {}) with at least {absent:.0}% of the pages out of memory",
        ratio(slowdown),
        shown(finding, "access.mean.within"),
        shown(finding, "access.mean.past"),
        finding.run,
    )
}

/// Of huge pages: the shares of the mapping first, then what the kernel did.
pub(super) fn huge_pages(finding: &Finding) -> String {
    let percent = |metric| finding.figure(metric).map(|f| format!("{:.0}%", f.value * 100.0));
    let first = percent(metrics::HUGE_COVERAGE_BEFORE).unwrap_or_else(|| DASH.to_owned());
    let mut text = format!("huge pages cover {first} of the mapping before the references");
    match percent(metrics::HUGE_COVERAGE_AFTER) {
        Some(last) if last != first => text += &format!(" and {last} after them"),
        Some(_) => text += " and after them",
        None => {}
    }
    let folios = [metrics::FOLIO_COVERAGE_BEFORE, metrics::FOLIO_COVERAGE_AFTER].map(percent);
    if let Some(large) = folios[0]
        .clone()
        .filter(|large| *large != first || folios[1] != percent(metrics::HUGE_COVERAGE_AFTER))
    {
        text += &format!("; folios of any size above a page {large} before");
        text += &folios[1].as_ref().map(|last| format!(" and {last} after")).unwrap_or_default();
    }
    if finding.figure(metrics::FAULTS_POPULATE).is_some() {
        text += &format!("; populating it took {} minor faults", shown(finding, metrics::FAULTS_POPULATE));
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
    let figure = |metric: MetricId| finding.figure(metric).filter(|figure| figure.value.is_finite());
    let mut parts = Vec::new();
    match (figure(metrics::DIRTY_PAUSES).map(|pauses| pauses.value), figure(metrics::DIRTY_THROTTLED)) {
        (Some(0.0), _) => parts.push("the kernel never paused the writer for dirty pages".to_owned()),
        (Some(_), Some(_)) => parts.push(format!(
            "the kernel paused the writer for dirty pages {} times, {} in all",
            shown(finding, metrics::DIRTY_PAUSES),
            with_spread(finding, metrics::DIRTY_THROTTLED),
        )),
        (Some(_), None) => {
            parts.push(format!(
                "the kernel paused the writer for dirty pages {} times",
                shown(finding, metrics::DIRTY_PAUSES)
            ));
        }
        (None, _) => {}
    }
    if figure(metrics::ACCESS_WRITE_MEAN).is_some() {
        parts.push(format!(
            "mean write {}, mean read {}",
            with_spread(finding, metrics::ACCESS_WRITE_MEAN),
            shown(finding, metrics::ACCESS_READ_MEAN)
        ));
    }
    parts.push(format!(
        "at most {} dirty and {} under writeback",
        shown(finding, metrics::DIRTY_MAX),
        shown(finding, metrics::WRITEBACK_MAX)
    ));
    if figure(metrics::PAGES_WRITTEN).is_some() {
        parts.push(format!(
            "{} pages written to disks (whole machine)",
            shown(finding, metrics::PAGES_WRITTEN)
        ));
    }
    if figure(metrics::FSYNC_P50).is_some() {
        parts.push(format!(
            "fsync median {}, max {}",
            shown(finding, metrics::FSYNC_P50),
            shown(finding, metrics::FSYNC_MAX)
        ));
    }
    parts.join("; ")
}

/// Of what went through zswap: what came to the device after all first, where the kernel says.
pub(super) fn zswap(finding: &Finding) -> String {
    let figure = |metric: MetricId| finding.figure(metric).filter(|figure| figure.value.is_finite());
    let mut parts = Vec::new();
    match figure(metrics::ZSWAP_WRITEBACK).map(|pages| pages.value) {
        Some(0.0) => parts.push("zswap wrote no pages back to swap".to_owned()),
        Some(_) => {
            parts.push(format!(
                "zswap wrote {} pages back to swap",
                with_spread(finding, metrics::ZSWAP_WRITEBACK)
            ));
        }
        None => parts.push("pages that zswap wrote back to swap are not counted".to_owned()),
    }
    parts.push(format!(
        "zswap took {} pages from before populating on, and returned {}",
        shown(finding, metrics::ZSWAP_OUT),
        shown(finding, metrics::ZSWAP_IN)
    ));
    if figure(metrics::ZSWAP_REJECTED).is_some() {
        parts.push(format!("{} pages bypassed it to swap", with_spread(finding, metrics::ZSWAP_REJECTED)));
    }
    if figure(metrics::ZSWAP_RATIO).is_some() {
        parts.push(format!(
            "after the references it held {} in {} of memory (ratio {})",
            shown(finding, metrics::ZSWAP_STORED),
            shown(finding, metrics::ZSWAP_MEMORY),
            shown(finding, metrics::ZSWAP_RATIO)
        ));
    }
    parts.join("; ")
}

pub(super) fn regret(finding: &Finding) -> String {
    let figure = |name: &str| finding.figure(name).map_or(f64::NAN, |f| f.value);
    let mut text = format!(
        "{} major faults with {} frames",
        shown(finding, metrics::FAULTS_MAJOR),
        shown(finding, "frames")
    );
    if finding.figure(metrics::FAULTS_MINOR).is_some() {
        text += &format!(
            " ({} more pages came by read-ahead or were still cached)",
            shown(finding, metrics::FAULTS_MINOR)
        );
    }
    text += &format!("; LRU would have had {}; ", shown(finding, "lru"));
    text += &match finding.figure("avoidable") {
        Some(share) => format!(
            "OPT (offline optimum) would have had {:.0}% fewer ({})",
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
        (metrics::UNMAP_MUNMAP, "munmap"),
        (metrics::UNMAP_MUNMAP_SHARED, "munmap with other threads"),
        (metrics::UNMAP_PROTECT, "mprotect"),
        (metrics::UNMAP_DONTNEED, "MADV_DONTNEED"),
        (metrics::MREMAP_MOVE, "mremap"),
        (metrics::MREMAP_MOVE_SHARED, "mremap with other threads"),
        (metrics::MREMAP_ALIGNED, "mremap of whole tables"),
        (metrics::POPULATE_TOUCH, "first write"),
        (metrics::POPULATE_MAP, "MAP_POPULATE"),
        (metrics::POPULATE_ADVISE, "MADV_POPULATE_WRITE"),
    ];
    let measured = named.iter().filter(|(name, _)| finding.figure(name).is_some());
    let parts: Vec<String> =
        measured.map(|(name, what)| format!("{what} {}", with_spread(finding, name))).collect();
    format!("median CPU time per page: {}", parts.join("; "))
}
