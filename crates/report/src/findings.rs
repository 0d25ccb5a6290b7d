//! Findings as sentences: the main figure first, with its unit, statistic and spread, then what explains
//! it.

use pagelab_analysis::finding::{Figure, Finding, Interval, IntervalKind, MeasuredLimit, What};
use pagelab_analysis::vmtest::{Cause, Knee};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Outcome, Size};

use crate::text::{DASH, bytes, count, duration, ratio, value};
use crate::{TextTable, programs};

/// The finding as one sentence, without its run's name and a full stop.
pub fn text(finding: &Finding) -> String {
    match &finding.what {
        What::AccessTime { pattern } => access_time(finding, pattern),
        What::PastLimit { limit, within } => past_limit(finding, *limit, within),
        What::HugePages => huge_pages(finding),
        What::Writeback => writeback(finding),
        What::Regret => regret(finding),
        What::ReadTime { knees } => read_time(finding, knees),
        What::ForkRate { copies, exec, top_function } => {
            fork_rate(finding, *copies, *exec, top_function.as_deref())
        }
        What::Scaling { work, workers, lock } => scaling(finding, work, workers, lock.as_deref()),
        What::FileReads => file_reads(finding),
        What::SequentialReads => sequential_reads(finding),
        What::Latencies => latencies(finding),
        What::Operations => operations(finding),
        What::Neighbour => neighbour(finding),
        What::Bandwidth => bandwidth(finding),
        What::Merging => merging(finding),
        What::Tiers => tiers(finding),
        What::Kills { equal, adjusted } => kills(finding, equal.as_deref(), adjusted.as_deref()),
        What::Reclaimed => reclaimed(finding),
        What::HugePagesHad => huge_pages_had(finding),
        What::ClockAgreement { trusted } => clock_agreement(finding, *trusted),
        What::Program { program, limit } => program_time(finding, program, *limit),
        What::ProgramOnModels { program, limit, sides } => {
            programs::sentence(finding, program, *limit, sides)
        }
        What::LeastMemory { program, limits, early } => least_memory(finding, program, limits, *early),
        What::Recording => recording(finding),
        What::Traced { program, unit } => format!(
            "{program}: {} references to {} {} recorded in {} ({} loads, {} stores, {} fetches), {} of trace",
            shown(finding, "references"),
            shown(finding, "units"),
            if *unit == 4096 { "pages" } else { "lines of 64 bytes" },
            shown(finding, "time.elapsed"),
            shown(finding, "loads"),
            shown(finding, "stores"),
            shown(finding, "fetches"),
            shown(finding, "size"),
        ),
        What::Curve { stream } => curve(finding, stream),
        What::WorkingSet { of } => working_set(finding, of),
        What::Warning { text, .. } => text.clone(),
        What::NotPerformed { repetition, outcome } => not_performed(*repetition, outcome),
    }
}

/// The finding as a line: the run's name and the sentence.
pub fn line(finding: &Finding) -> String {
    match &finding.what {
        What::Warning { text, runs } => match runs.as_slice() {
            [one] => format!("Warning: {one}: {text}"),
            _ => format!("Warning: {text}"),
        },
        _ => format!("{}: {}.", finding.run, text(finding)),
    }
}

/// A finding's main figure.
pub(crate) struct Main {
    /// What it is, with its statistic.
    pub what: &'static str,
    /// The figure with its unit.
    pub value: String,
    /// The range of its repetitions, or empty.
    pub spread: String,
}

/// The main figure of a finding; `None` of those without figures.
pub(crate) fn main(finding: &Finding) -> Option<Main> {
    let what = match &finding.what {
        What::AccessTime { .. } => "mean access time",
        What::ReadTime { .. } => "mean read time at the smallest size",
        What::ForkRate { .. } => "fork rate",
        What::Scaling { .. } => "best throughput",
        What::FileReads => "mean processor time of a cached read",
        What::SequentialReads => "best sequential bandwidth",
        What::Latencies => "mean load from DRAM",
        What::Operations => "median processor time a page",
        What::Neighbour => "major faults beside a neighbour",
        What::Bandwidth => "median bandwidth of copy",
        What::Merging => "frames saved by merging",
        What::Tiers => "processor time a hot reference",
        What::Kills { .. } => "from the limit to the first kill",
        What::Reclaimed => "reclaimed as the cgroup counts it",
        What::HugePagesHad => "huge pages had in fragmented memory",
        What::ClockAgreement { .. } => "max difference of two clocks",
        What::Program { .. } => "elapsed time",
        What::LeastMemory { .. } => "memory for full speed",
        What::Recording => "counters recorded",
        _ => return None,
    };
    let figure = finding.figures.first()?;
    let interval = figure.interval.filter(|interval| interval.kind == IntervalKind::Range);
    let spread = interval.and_then(|Interval { low, high, .. }| {
        let high = high?;
        (low < high)
            .then(|| format!("{} … {}", value(Some(low), figure.unit), value(Some(high), figure.unit)))
    });
    Some(Main { what, value: value(Some(figure.value), figure.unit), spread: spread.unwrap_or_default() })
}

/// A figure in its unit; a dash where there is none.
fn shown(finding: &Finding, name: &str) -> String {
    let figure = finding.figure(name);
    value(figure.map(|f| f.value), figure.map_or(Unit::Count, |f| f.unit))
}

/// The same with the spread of its repetitions.
fn with_spread(finding: &Finding, name: &str) -> String {
    let spread = finding.figure(name).and_then(spread);
    shown(finding, name) + &spread.map_or_else(String::new, |spread| format!(" ({spread})"))
}

/// The ends of a figure's interval, where they differ.
pub(crate) fn spread(figure: &Figure) -> Option<String> {
    let Interval { low, high, kind } = figure.interval?;
    let (low, high) = (value(Some(low), figure.unit), high.map(|high| value(Some(high), figure.unit)));
    let high = high.unwrap_or_else(|| "unbounded".to_owned());
    match kind {
        IntervalKind::Range if low == high => None,
        IntervalKind::Range => Some(format!("{low} … {high}, n = {}", figure.n)),
        IntervalKind::Confidence95 => Some(format!("95 % interval {low} … {high}")),
    }
}

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

fn access_time(finding: &Finding, pattern: &str) -> String {
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

fn past_limit(finding: &Finding, limit: Size, within: &str) -> String {
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
fn huge_pages(finding: &Finding) -> String {
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
fn writeback(finding: &Finding) -> String {
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

fn regret(finding: &Finding) -> String {
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

/// What is at a knee, in words.
pub(crate) fn cause(cause: &Cause) -> String {
    match cause {
        Cause::FirstTlb => "first-level TLB reach".into(),
        Cause::SecondTlb => "second-level TLB reach".into(),
        Cause::Pmegs => "reach of the pmegs".into(),
        Cause::Cache(level) => format!("L{level} cache"),
        Cause::Processes => "several processes".into(),
        Cause::Limit => "memory limit".into(),
    }
}

fn knee(knee: &Knee) -> String {
    let explained = match &knee.cause {
        Some((what, at)) => format!("{} of {}", cause(what), bytes(*at)),
        None => "unexplained".to_owned(),
    };
    let (low, high) = knee.interval;
    format!("{} ({} … {}; {explained})", bytes(knee.at), bytes(low), bytes(high))
}

fn read_time(finding: &Finding, knees: &[Knee]) -> String {
    let n = finding.figures.first().map_or(0, |f| f.n);
    let fastest = if n > 1 { format!(", fastest of {n} repetitions") } else { String::new() };
    let mut text = format!(
        "mean read time {} at {} of active virtual memory, {} at {}{fastest}",
        shown(finding, "access.mean.first"),
        shown(finding, "size.first"),
        shown(finding, "access.mean.last"),
        shown(finding, "size.last"),
    );
    let knees: Vec<String> = knees.iter().map(knee).collect();
    text += &match knees.as_slice() {
        [] => "; no knee".to_owned(),
        [one] => format!("; knee at {one}"),
        several => format!("; knees at {}", several.join(", ")),
    };
    text
}

fn fork_rate(finding: &Finding, copies: u32, exec: bool, top_function: Option<&str>) -> String {
    let mut parts = vec![format!("fork rate {} by {copies} processes", with_spread(finding, "forks.rate"))];
    let end = if exec { "exec, start and exit" } else { "child's writes and exit" };
    for (name, what) in [("fork.cost", "fork"), ("exec.cost", end), ("exit.cost", end)] {
        if finding.figure(name).is_some() {
            parts.push(format!("{what} mean {}", shown(finding, name)));
        }
    }
    if finding.figure("each.faults").is_some() && finding.figure("each.pages").is_some() {
        let (faults, pages) = (shown(finding, "each.faults"), shown(finding, "each.pages"));
        parts.push(format!("{faults} faults and {pages} page allocations a fork"));
    }
    if let (Some(name), Some(share)) = (top_function, finding.figure("top-function")) {
        parts.push(format!("top kernel function: {name} ({:.0} %)", share.value * 100.0));
    }
    parts.join("; ")
}

fn scaling(finding: &Finding, work: &str, workers: &str, lock: Option<&str>) -> String {
    let what = match work {
        "anon" | "refill" => "anonymous faults",
        "file" => "shared file pages mapped",
        "map" => "mappings",
        "fork" => "forks",
        "build" => "compilations",
        other => other,
    };
    let at = |place: &str| {
        let number = finding.figure(&format!("workers.{place}"))?.value;
        Some(format!("{} with {number}", shown(finding, &format!("throughput.{place}"))))
    };
    let number = finding.figure("workers.best").map_or(f64::NAN, |f| f.value);
    let best = with_spread(finding, "throughput.best");
    let mut parts = Vec::new();
    if finding.figure("beside.throughput").is_some() {
        let number = finding.figure("workers.last").map_or(f64::NAN, |f| f.value);
        parts.push(format!(
            "beside another thread's {} calls {} of {what} with {number} {workers} ({} alone), {} waits in a million, p99 {} ({} \
             alone)",
            shown(finding, "beside.calls"),
            with_spread(finding, "beside.throughput"),
            shown(finding, "throughput.last"),
            with_spread(finding, "beside.waits"),
            with_spread(finding, "beside.p99"),
            shown(finding, "operation.p99"),
        ));
    }
    parts.push(format!("best throughput {best} of {what} with {number} {workers}"));
    parts.extend([at("first"), at("last")].into_iter().flatten());
    if let Some(contention) = finding.figure("contention") {
        let spread = spread(contention).unwrap_or_default();
        let fitted = shown(finding, "contention");
        parts.push(format!("universal scalability law: contention {fitted} ({spread})"));
        parts.push(match finding.figure("workers.predicted") {
            None => "no best number predicted".to_owned(),
            Some(_) => format!("predicted best number {}", with_spread(finding, "workers.predicted")),
        });
    }
    if finding.figure("state.lock").is_some() {
        let mut text = format!("lock wait {} of the workers' time", shown(finding, "state.lock"));
        if let Some(lock) = lock {
            text += &format!(", longest for {lock}");
        }
        parts.push(text);
    }
    parts.join("; ")
}

fn file_reads(finding: &Finding) -> String {
    let mut text = format!(
        "mean processor time of a random read {} (file small in memory), {} (large in memory), {} (larger than memory",
        shown(finding, "read.cpu.small"),
        shown(finding, "read.cpu.large"),
        shown(finding, "read.cpu.beyond"),
    );
    if let Some(hits) = finding.figure("hits") {
        text += &format!(", cache hit ratio {:.0} %", hits.value * 100.0);
    }
    text + ")"
}

fn sequential_reads(finding: &Finding) -> String {
    let of = |mode: &str| {
        let figure = |name: &str| finding.figure(&format!("{name}.{mode}")).map(|f| f.value);
        let mut text =
            format!("{}/s {mode} with {} transfers", bytes(figure("bandwidth")?), bytes(figure("transfer")?));
        if let Some(seen) = figure("device.transfer") {
            text += &format!(" (device transfer {})", bytes(seen));
        }
        Some(text)
    };
    let parts: Vec<String> = ["buffered", "direct"].into_iter().filter_map(of).collect();
    format!("best sequential bandwidth {}", parts.join(", "))
}

fn latencies(finding: &Finding) -> String {
    let of = |(name, what): &(&str, &str)| {
        finding.figure(name).map(|_| format!("{what} {}", with_spread(finding, name)))
    };
    let parts: Vec<String> = [
        ("latency.dram", "DRAM"),
        ("latency.l1", "L1"),
        ("latency.l2", "L2"),
        ("latency.l3", "L3"),
        ("latency.tlb-miss", "TLB miss"),
        ("latency.minor-fault", "minor fault"),
        ("latency.huge-fault", "THP fault"),
    ]
    .iter()
    .filter_map(of)
    .collect();
    format!("mean load: {}", parts.join("; "))
}

fn operations(finding: &Finding) -> String {
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

fn neighbour(finding: &Finding) -> String {
    let situation = |name: &str| {
        format!(
            "{} major faults and {} of processor time a reference",
            with_spread(finding, &format!("victim.faults.{name}")),
            with_spread(finding, &format!("victim.cost.{name}"))
        )
    };
    format!(
        "beside a neighbour the victim had {} (alone {}); with {} protected by memory.low {}; by memory.min {}",
        situation("beside"),
        situation("alone"),
        shown(finding, "victim.protected"),
        situation("low"),
        situation("min"),
    )
}

fn bandwidth(finding: &Finding) -> String {
    let measured = |list: &[(&str, &str)]| {
        let measured = list.iter().filter(|(name, _)| finding.figure(name).is_some());
        let parts: Vec<String> =
            measured.map(|(name, what)| format!("{what} {}", with_spread(finding, name))).collect();
        parts.join("; ")
    };
    let from_memory = measured(&[
        ("bandwidth.copy", "copy"),
        ("bandwidth.scale", "scale"),
        ("bandwidth.add", "add"),
        ("bandwidth.triad", "triad"),
        ("bandwidth.triad.threads", "triad with the most threads"),
        ("bandwidth.triad.cache", "triad of the smallest working set"),
    ]);
    format!("median bandwidth, greatest working set: {from_memory}")
}

fn merging(finding: &Finding) -> String {
    format!(
        "merging saved {} pages ({} serve the others) for {} of ksmd's processor time; a write to a merged page costs {}, to another {}; unmerging {} a page",
        with_spread(finding, "ksm.sharing"),
        shown(finding, "ksm.shared"),
        with_spread(finding, "ksm.processor"),
        with_spread(finding, "ksm.copy"),
        shown(finding, "ksm.write"),
        with_spread(finding, "ksm.unmerge"),
    )
}

fn tiers(finding: &Finding) -> String {
    let situation = |name: &str| {
        format!(
            "{} a reference with {} of the hot set on the fast node",
            with_spread(finding, &format!("tier.cost.{name}")),
            with_spread(finding, &format!("tier.hot.{name}"))
        )
    };
    let mut text = format!("left to the kernel {}", situation("off"));
    if finding.figure("tier.cost.on").is_some() {
        text += &format!("; with demotion and balancing {}", situation("on"));
    }
    if finding.figure("tier.promoted").is_some() {
        let (promoted, demoted) = (shown(finding, "tier.promoted"), shown(finding, "tier.demoted"));
        text += &format!(" ({promoted} promoted, {demoted} demoted)");
    }
    if finding.figure("tier.latency.on").is_some() {
        let (off, on) = (shown(finding, "tier.latency.off"), shown(finding, "tier.latency.on"));
        text += &format!("; modelled wait {off} → {on}");
    }
    text
}

fn kills(finding: &Finding, equal: Option<&str>, adjusted: Option<&str>) -> String {
    let situation = |who: Option<&str>, name: &str| match who {
        None | Some("nobody") => "nobody was killed".to_owned(),
        Some(who) => {
            let held = shown(finding, &format!("oom.killed.{name}"));
            let mut text = format!("the process that {who} was killed ({held} held)");
            let stall = format!("oom.stall.{name}");
            if finding.figure(&stall).is_some() {
                text += &format!(", {} after the first time at the limit", with_spread(finding, &stall));
            }
            text
        }
    };
    let mut parts = vec![
        format!("at the limit {}", situation(equal, "equal")),
        format!("with more oom_score_adj for the first {}", situation(adjusted, "adjusted")),
    ];
    if finding.figure("oom.killed.group").is_some() {
        let (count, stall) = (shown(finding, "oom.killed.group"), with_spread(finding, "oom.stall.group"));
        parts.push(format!("with memory.oom.group {count} processes were killed, the first after {stall}"));
    }
    parts.push(format!("the highest score predicted {} of the kills", shown(finding, "oom.predicted")));
    parts.join("; ")
}

fn reclaimed(finding: &Finding) -> String {
    format!(
        "of {} asked for {} were reclaimed, {} of the mapping's {} were cold; {} major faults on the hot part; {} of \
         processor time a page; referencing the cold part again took {} major faults of {}",
        shown(finding, "reclaim.asked"),
        with_spread(finding, "reclaim.had"),
        with_spread(finding, "reclaim.cold"),
        shown(finding, "reclaim.pages"),
        with_spread(finding, "reclaim.mistakes"),
        with_spread(finding, "reclaim.cost"),
        shown(finding, "reclaim.back.faults"),
        shown(finding, "reclaim.back.cost"),
    )
}

fn huge_pages_had(finding: &Finding) -> String {
    format!(
        "huge pages had in fragmented memory: {} without compaction ({} free blocks), {} with direct compaction ({} each), {} by \
         MADV_COLLAPSE ({} each), {} after compact_memory ({}); before memory was filled {} ({} each)",
        with_spread(finding, "fragment.pieces"),
        shown(finding, "fragment.blocks"),
        with_spread(finding, "fragment.direct"),
        shown(finding, "fragment.cost.direct"),
        with_spread(finding, "fragment.collapse"),
        shown(finding, "fragment.cost.collapse"),
        with_spread(finding, "fragment.compacted"),
        shown(finding, "fragment.compacting"),
        shown(finding, "fragment.whole"),
        shown(finding, "fragment.cost.whole"),
    )
}

fn clock_agreement(finding: &Finding, trusted: bool) -> String {
    let mut parts = Vec::new();
    if !trusted {
        parts.push("time is suspect".to_owned());
    }
    if finding.figure("clock.step.worst").is_some() {
        parts.push(format!("clocks agree within {}", shown(finding, "clock.step.worst")));
    }
    if let Some(drift) = finding.figure("clock.drift.worst") {
        parts.push(format!("drift {:.1} ppm", drift.value * 1e6));
    }
    if finding.figure("clock.skew.bound").is_some() {
        parts.push(format!("TSC skew under {}", shown(finding, "clock.skew.bound")));
    }
    if finding.figure("clock.steal").is_some() {
        parts.push(format!("steal {}", shown(finding, "clock.steal")));
    }
    parts.join("; ")
}

fn program_time(finding: &Finding, program: &str, limit: Option<Size>) -> String {
    // Known in parts where the kernel's ticks met both.
    let parted = ["time.user", "time.system"].iter().all(|name| finding.figure(name).is_some());
    let processor = if parted || finding.figure("time.processor").is_none() {
        format!("{} user and {} system", shown(finding, "time.user"), shown(finding, "time.system"))
    } else {
        shown(finding, "time.processor")
    };
    let elapsed = with_spread(finding, "time.elapsed");
    let mut parts = vec![format!("{program} took {elapsed}, of it {processor} processor time")];
    if let Some(status) = finding.figure("command.status").filter(|status| status.value != 0.0) {
        parts.push(format!("exit status {}", status.value));
    }
    parts.push(format!("peak RSS {}", shown(finding, "memory.peak")));
    parts.extend(limit.map(|limit| format!("memory limit {limit}")));
    parts.push(format!("{} major faults", shown(finding, "faults.major")));
    for (name, what) in [("swap.in", "swap-in"), ("swap.out", "swap-out")] {
        if finding.figure(name).is_some_and(|pages| pages.value > 0.0) {
            parts.push(format!("{what} {} pages", shown(finding, name)));
        }
    }
    let states = [
        ("state.user", "user"),
        ("state.system", "system"),
        ("state.fault", "waiting for input"),
        ("state.run-queue", "waiting for a processor"),
        ("state.sleep", "asleep"),
    ];
    let states: Vec<String> = states
        .iter()
        .filter_map(|(name, what)| Some(format!("{:.0} % {what}", finding.figure(name)?.value * 100.0)))
        .collect();
    if !states.is_empty() {
        parts.push(format!("its threads' time: {}", states.join(", ")));
    }
    parts.join("; ")
}

fn least_memory(finding: &Finding, program: &str, limits: &[MeasuredLimit], early: bool) -> String {
    let enough = shown(finding, "memory.enough");
    let full = shown(finding, "time.full");
    let lowest = limits.first().map(|limit| limit.memory as f64);
    let mut text = match finding.figure("memory.too-little") {
        None if !early && finding.figure("memory.enough").map(|f| f.value) == lowest => {
            format!(
                "{program} runs at full speed ({full}) even at {enough}: sweep from less to find the knee"
            )
        }
        None => {
            format!("{program} needs at most {enough} for full speed ({full}); no lower limit was measured")
        }
        Some(too_little) => {
            let below = limits.iter().find(|limit| limit.memory as f64 == too_little.value);
            let below = below.map_or_else(String::new, |limit| format!(" ({})", limit_time(limit)));
            format!(
                "{program} needs {enough} for full speed (fastest {full}, and up to {} counts as that); the knee is between {}{below} and {enough}",
                shown(finding, "time.allowed"),
                shown(finding, "memory.too-little"),
            )
        }
    };
    if early {
        let spent = shown(finding, "time.sweep");
        text += &format!("; ended after {spent} as --budget says: a greater one narrows the interval");
    }
    text
}

/// What a program took under a limit.
fn limit_time(limit: &MeasuredLimit) -> String {
    match (limit.time, limit.stopped) {
        (None, _) => "OOM-killed".to_owned(),
        (Some(ns), false) => duration(ns),
        (Some(ns), true) => format!("over {}", duration(ns)),
    }
}

/// The table of a finding that has one.
pub fn table(finding: &Finding) -> Option<TextTable> {
    limits(finding).or_else(|| programs::table(finding))
}

/// The limits of a sweep over memory, the knee marked; nothing of other findings.
pub fn limits(finding: &Finding) -> Option<TextTable> {
    let What::LeastMemory { program, limits, .. } = &finding.what else { return None };
    let value_of = |name: &str| finding.figure(name).map(|figure| figure.value);
    let (enough, too_little) = (value_of("memory.enough"), value_of("memory.too-little"));
    let full = value_of("time.full").filter(|&full| full > 0.0);
    let row = |limit: &MeasuredLimit| {
        let memory = Some(limit.memory as f64);
        let over = if limit.stopped { "over " } else { "" };
        let slowdown = limit.time.zip(full).map(|(time, full)| format!("{over}{}", ratio(time / full)));
        let mark = match (memory == enough, memory <= too_little) {
            (true, _) if too_little.is_some() => "< knee: the least at full speed",
            (true, _) => "< the least measured at full speed",
            (_, true) if limit.stopped => "too little (stopped: --give-up)",
            (_, true) => "too little",
            _ => "",
        };
        vec![
            bytes(limit.memory as f64),
            limit_time(limit),
            slowdown.unwrap_or_else(|| DASH.to_owned()),
            value(limit.fetched, Unit::Count),
            mark.to_owned(),
        ]
    };
    Some(TextTable {
        title: format!("Time of {program} against the memory limit"),
        headings: ["limit", "fastest", "slowdown", "pages fetched", ""].map(str::to_owned).to_vec(),
        rows: limits.iter().map(row).collect(),
        remarks: Vec::new(),
        warnings: Vec::new(),
        tones: Vec::new(),
    })
}

fn recording(finding: &Finding) -> String {
    format!(
        "{} counters, {} samples over {}",
        shown(finding, "counters"),
        shown(finding, "samples"),
        shown(finding, "time.elapsed")
    )
}

fn curve(finding: &Finding, stream: &str) -> String {
    format!(
        "miss ratio {} at {}, {} at {}; mean over the sizes {}; {stream}",
        shown(finding, "miss.ratio.first"),
        shown(finding, "size.min"),
        shown(finding, "miss.ratio.last"),
        shown(finding, "size.max"),
        shown(finding, "miss.ratio.mean"),
    )
}

fn working_set(finding: &Finding, of: &str) -> String {
    let pages = |name: &str| {
        let bytes = finding.figure(&format!("{name}.bytes")).map(|f| format!(" ({})", bytes(f.value)));
        format!("{} pages{}", shown(finding, name), bytes.unwrap_or_default())
    };
    format!("working set of {of}: mean {}, peak {}", pages("working-set.mean"), pages("working-set.peak"))
}

fn not_performed(repetition: u32, outcome: &Outcome) -> String {
    let what = match outcome {
        Outcome::Done => "is done".to_owned(),
        Outcome::Interrupted => "was interrupted and does not count".to_owned(),
        Outcome::Torn => "is torn (pagelab or the machine was killed) and does not count".to_owned(),
        Outcome::Failed(failure) => format!("failed and does not count: {}", failure.full()),
    };
    format!("repetition {repetition} {what}")
}
