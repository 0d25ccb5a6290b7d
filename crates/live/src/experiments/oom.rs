//! `oom` on the running kernel.
//!
//! The worker stays outside the limit and looks; its children join the cgroup, hold what they are
//! to hold, and the last one grows. A sample, every fifth of a millisecond, reads the cgroup's
//! count of times at the limit, what each child holds (`/proc/PID/status`), and which children are
//! gone. The scores are the kernel's formula (`oom_badness`) at the last sample before the kill;
//! who was killed and what the cgroup counts are the kernel's own word.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

use pagelab_experiment::build::{Sheet, metrics, note, warn};
use pagelab_experiment::experiments::Oom;
use pagelab_experiment::experiments::oom::SITUATIONS;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, FailureKind, Recorder, Result, Setting, tables, warnings};
use pagelab_kernel::cgroup::Group;
use pagelab_kernel::files::stalled;
use pagelab_kernel::region::{Region, page_size};

use pagelab_procfs::value;

use crate::harness::clock::{Clock, Monotonic};
use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::family::{Barrier, Family};
use crate::harness::measurement::Harness;
use crate::harness::profiled;
use crate::harness::scans::Scans;

/// `oom_score_adj` of all that are not adjusted: should the machine itself run out of memory, they
/// go first.
const BASE: u32 = 500;
/// Between two samples.
const POLL_INTERVAL: Duration = Duration::from_micros(200);
/// Pages between two samples of the growing process at the count of kills: fewer than a killed one
/// gives back, so that nobody is killed after the first.
const STRIDE: usize = 16;
/// How long the others of a group may take to go after the first.
const REST: u64 = 2_000_000_000;

/// Cells: children ready, whether to go, whether the kernel refused one, when the growing one last
/// wrote a page, and whether it has all it was to have.
const READY: usize = 0;
const GO: usize = 1;
const REFUSED: usize = 2;
const LAST: usize = 3;
const DONE: usize = 4;

/// A child as it was last seen.
#[derive(Clone, Copy, Debug, Default)]
struct Child {
    pid: libc::pid_t,
    adjust: u32,
    /// Pages resident, in swap and of page tables.
    pages: u64,
    resident: u64,
    swapped: u64,
}

impl Child {
    /// Samples it, while it is there.
    fn sample(&mut self) {
        let Ok(text) = fs::read_to_string(format!("/proc/{}/status", self.pid)) else { return };
        let bytes = |name: &str| value(&text, name);
        // One that is ending has given its memory back, and says nothing of it.
        let Some(resident) = bytes("VmRSS") else { return };
        let (tables, swapped) = (bytes("VmPTE").unwrap_or(0), bytes("VmSwap").unwrap_or(0));
        // They hold more and more, in memory or in swap: one that holds less has been killed, and
        // is giving it back.
        if resident + swapped < self.resident + self.swapped {
            return;
        }
        (self.resident, self.swapped) = (resident, swapped);
        self.pages = (self.resident + self.swapped + tables) / page_size() as u64;
    }

    /// `oom_badness` where `total` pages may be used.
    fn score(&self, total: u64) -> f64 {
        self.pages as f64 + f64::from(self.adjust) * (total / 1000) as f64
    }
}

/// What the cgroup counts.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// How often a charge met the limit.
    limit: Option<u64>,
    kills: u64,
    /// Time in which somebody waited for memory, ns.
    stalled: Option<u64>,
}

impl Counts {
    fn read(group: Group<'_>) -> Self {
        // Of version 1 memory and swap together have a limit of their own, which is met first where
        // there is no swap; Linux 6.18 does not count that.
        let failures =
            || Some(group.number("memory.failcnt")? + group.number("memory.memsw.failcnt").unwrap_or(0));
        let stalled = group.text("memory.pressure").and_then(|text| stalled(&text));
        let limit = group.counted("memory.events", "max").or_else(failures);
        Self { limit, kills: group.kills(), stalled }
    }
}

/// What a situation showed.
struct OomResult {
    /// Who was killed, by their places.
    killed: Vec<usize>,
    children: Vec<Child>,
    total: u64,
    stall: Option<u64>,
    pause: u64,
    kills: u64,
    stalled: Option<u64>,
}

impl OomResult {
    fn highest(&self) -> Option<usize> {
        let scores = self.children.iter().map(|child| child.score(self.total));
        scores.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
    }
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// Without a limit, and when the kernel refuses.
pub fn perform(
    parameters: &Oom,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let Some(group) = context.group() else {
        return Err(Failure::unsupported("oom needs a memory limit", "give --memory SIZE"));
    };
    let mut harness = Harness::open(context, recorder)?;
    let total = total(group);
    let mut scans = Scans::open(context);
    harness.begin();
    let all = kills(parameters, total, group, &mut scans, recorder)?;
    let measured = harness.finish();
    measured.record(recorder)?;
    let mut sheet = Sheet::new(tables::kills::TABLE);
    for (situation, seen) in SITUATIONS.iter().zip(&all) {
        let Some(seen) = seen else {
            let text = "memory.oom.group needs cgroup version 2, so the kills of a group are missing";
            note(recorder, Level::Info, text.to_owned())?;
            continue;
        };
        let highest = seen.highest();
        let killed = || seen.killed.iter().map(|&place| seen.children[place]);
        let one = killed().next().filter(|_| seen.killed.len() == 1);
        let held: u64 = killed().map(|child| child.resident + child.swapped).sum();
        let who = |&place: &usize| match parameters.held.get(place) {
            Some(pages) => format!("holds {pages}"),
            None => "grows".to_owned(),
        };
        let who = match seen.killed.len() {
            0 => "nobody".to_owned(),
            all if all > 1 && all == seen.children.len() => format!("all {all}"),
            _ => seen.killed.iter().map(who).collect::<Vec<_>>().join(", "),
        };
        sheet.named(
            [situation, &who],
            [
                (!seen.killed.is_empty()).then_some(held as f64),
                one.map(|child| child.score(total)),
                highest.map(|place| seen.children[place].score(total)),
                seen.stall.map(|stall| stall as f64),
                (!seen.killed.is_empty()).then_some(seen.pause as f64),
                Some(seen.kills as f64),
                seen.stalled.map(|stalled| stalled as f64),
            ],
        );
        if seen.killed.is_empty() {
            let words = warnings::NO_KILL.0;
            let text = format!("{situation}: {words}, because all fit into the limit: raise --grow");
            warn(recorder, warnings::NO_KILL, text)?;
        }
    }
    sheet.record(recorder)?;
    record(&all, recorder)?;
    metrics(recorder, measured.scans())?;
    scans.record(recorder)?;
    measured.note_scope(recorder)?;
    profiled::repeat(setting, context, recorder, |recorder| {
        kills(parameters, total, group, &mut Scans::closed(), recorder).map(drop)
    })
}

/// Each situation; `None`: this version of cgroups does not have it.
fn kills(
    parameters: &Oom,
    total: u64,
    group: Group<'_>,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<Vec<Option<OomResult>>> {
    let together = group.path().join("memory.oom.group");
    let set = |value: &str| {
        fs::write(&together, value).map_err(failed(&format!("writing {value} to {}", together.display())))
    };
    let mut all = Vec::new();
    for situation in SITUATIONS {
        let grouped = situation == "group";
        if grouped && !together.exists() {
            all.push(None);
            continue;
        }
        if grouped {
            set("1")?;
        }
        let seen = kill(parameters, situation, total, group, scans, recorder);
        if grouped {
            set("0")?;
        }
        all.push(Some(seen?));
    }
    Ok(all)
}

/// The figures of the situations.
fn record(all: &[Option<OomResult>], recorder: &mut dyn Recorder) -> Result<()> {
    let of = |place: usize| all.get(place).and_then(Option::as_ref).filter(|seen| !seen.killed.is_empty());
    let stall = |place: usize| of(place)?.stall.map(|stall| stall as f64);
    let held = |place: usize| {
        let seen = of(place)?;
        let child = seen.children[*seen.killed.first()?];
        Some((child.resident + child.swapped) as f64)
    };
    // Where all go together it is nobody's score.
    let judged: Vec<&OomResult> = [0, 1].into_iter().filter_map(of).collect();
    let right = judged.iter().filter(|seen| seen.killed.first().copied() == seen.highest()).count();
    metrics(
        recorder,
        [
            (metrics::OOM_STALL_EQUAL, stall(0)),
            (metrics::OOM_STALL_ADJUSTED, stall(1)),
            (metrics::OOM_STALL_GROUP, stall(2)),
            (metrics::OOM_KILLED_EQUAL, held(0)),
            (metrics::OOM_KILLED_ADJUSTED, held(1)),
            (metrics::OOM_KILLED_GROUP, of(2).map(|seen| seen.killed.len() as f64)),
            (metrics::OOM_PREDICTED, (!judged.is_empty()).then(|| right as f64 / judged.len() as f64)),
        ],
    )
}

/// The pages that the cgroup may use, swap included: what `oom_badness` takes thousandths of.
fn total(group: Group<'_>) -> u64 {
    let number = |file: &str| group.number(file);
    let memory = number("memory.max").or_else(|| number("memory.limit_in_bytes")).unwrap_or(0);
    let swap = number("memory.swap.max")
        .or_else(|| number("memory.memsw.limit_in_bytes").map(|both| both.saturating_sub(memory)));
    // What is not bounded is what the machine has; the kernel counts no more than that.
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    bounded(memory, swap, &meminfo) / page_size() as u64
}

/// Bytes of memory and swap under a limit of memory and one of swap, on a machine with this
/// `/proc/meminfo`.
fn bounded(memory: u64, swap: Option<u64>, meminfo: &str) -> u64 {
    memory + swap.unwrap_or(u64::MAX).min(value(meminfo, "SwapTotal").unwrap_or(0))
}

/// Has processes hold and grow until one is gone, and sees how.
fn kill(
    parameters: &Oom,
    situation: &str,
    total: u64,
    group: Group<'_>,
    scans: &mut Scans,
    recorder: &mut dyn Recorder,
) -> Result<OomResult> {
    let barrier = Barrier::new(8).map_err(failed("making shared memory"))?;
    let mut family = Family::default();
    let mut children = Vec::new();
    let sizes = parameters.held.iter().copied().chain([parameters.grow]);
    for (index, pages) in sizes.enumerate() {
        let adjust = BASE + if situation == "adjusted" && index == 0 { parameters.adjust } else { 0 };
        let grows = index == parameters.held.len();
        let work = || child(group, &barrier, adjust, pages as usize, grows);
        family.fork(work).map_err(failed("starting a process"))?;
        let pid = family.pids().last().copied().unwrap_or(0);
        children.push(Child { pid, adjust, ..Child::default() });
    }
    let poll = |family: &mut Family, recorder: &mut dyn Recorder| -> Result<bool> {
        std::thread::sleep(POLL_INTERVAL);
        if barrier[REFUSED].load(Relaxed) > 0 {
            let what = "the kernel refused a process its place, its oom_score_adj or its memory";
            return Err(Failure::new(FailureKind::System { errno: None }, what.to_owned()));
        }
        recorder.check()?;
        Ok(family.poll().is_err())
    };
    let all = children.len() as u64;
    while barrier[READY].load(Acquire) < all {
        recorder.progress(&format!("{situation}: hold"), barrier[READY].load(Relaxed), all);
        if poll(&mut family, recorder)? {
            let remedy = "give less --held, or more --memory";
            return Err(Failure::refused("the held memory does not fit into the limit", remedy));
        }
    }
    scans.begin();
    let before = Counts::read(group);
    barrier[LAST].store(Monotonic.now(), Relaxed);
    barrier[GO].store(1, Release);
    let (mut limited, mut looked) = (None, Monotonic.now());
    let mut gone = false;
    // Looking ends a moment after the last page was written, should nobody be killed.
    while !gone && barrier[DONE].load(Acquire) == 0 {
        if limited.is_none() {
            looked = Monotonic.now();
        }
        children.iter_mut().for_each(Child::sample);
        if limited.is_none() && Counts::read(group).limit > before.limit {
            limited = Some(Monotonic.now());
        }
        gone = poll(&mut family, recorder)?;
    }
    let (end, last) = (Monotonic.now(), barrier[LAST].load(Relaxed));
    // A group goes together, but not in one moment.
    while gone && situation == "group" && !family.pids().is_empty() && Monotonic.now() - end < REST {
        poll(&mut family, recorder)?;
    }
    let after = Counts::read(group);
    scans.end(situation);
    // Met and killed between two samples: no longer ago than the one before.
    let limited = limited.or_else(|| (after.limit > before.limit).then_some(looked));
    let killed = children.iter().enumerate().filter(|(_, child)| !family.pids().contains(&child.pid));
    let killed = if gone { killed.map(|(place, _)| place).collect() } else { Vec::new() };
    drop(family);
    Ok(OomResult {
        killed,
        total,
        stall: limited.filter(|_| gone).map(|limited| end - limited),
        pause: end.saturating_sub(last),
        kills: after.kills - before.kills,
        stalled: before.stalled.zip(after.stalled).map(|(before, after)| after - before),
        children,
    })
}

/// One of the processes; it ends only when it is killed.
fn child(group: Group<'_>, barrier: &Barrier, adjust: u32, pages: usize, grows: bool) -> i32 {
    let prepared = || -> std::io::Result<Region> {
        fs::write(Path::new("/proc/self/oom_score_adj"), adjust.to_string())?;
        group.join()?;
        Region::base_pages(pages)
    };
    let Ok(region) = prepared() else {
        barrier[REFUSED].fetch_add(1, AcqRel);
        return 2;
    };
    if !grows {
        region.populate(|_, _| {});
    }
    barrier[READY].fetch_add(1, AcqRel);
    if grows {
        while barrier[GO].load(Acquire) == 0 {
            std::thread::sleep(POLL_INTERVAL);
        }
        let before = group.kills();
        let mut whole = true;
        for page in 0..region.pages() {
            if page.is_multiple_of(STRIDE) && group.kills() != before {
                whole = false;
                break;
            }
            region.populate_page(page, &Default::default());
            barrier[LAST].store(Monotonic.now(), Relaxed);
        }
        barrier[DONE].store(whole.into(), Release);
    }
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_the_kernels_formula() {
        let child = Child { adjust: 500, pages: 100, ..Child::default() };
        assert_eq!(child.score(16_384), 100.0 + 500.0 * 16.0);
    }

    #[test]
    fn swap_counts_up_to_its_limit_and_no_more_than_the_machine_has() {
        let meminfo = "MemTotal:  1000 kB\nSwapTotal:  2048 kB\n";
        assert_eq!(bounded(16 << 20, None, meminfo), (16 << 20) + (2 << 20));
        assert_eq!(bounded(16 << 20, Some(1 << 20), meminfo), (16 << 20) + (1 << 20));
        assert_eq!(bounded(16 << 20, Some(64 << 20), meminfo), (16 << 20) + (2 << 20));
        assert_eq!(bounded(16 << 20, None, ""), 16 << 20);
    }
}
