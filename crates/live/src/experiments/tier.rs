//! `tier` on the running kernel.
//!
//! In each situation the hot set is referenced, a word of a page at a time in random order, for so
//! much processor time at each of its positions, and in between it is asked on which nodes its
//! pages are. Placements have a mapping of the hot sets alone; what is left to the kernel is larger
//! than the fast node, so that it lies on both. On a machine whose nodes are in one tier that
//! mapping begins on the slow node instead, and balancing moves it. What is changed is put back
//! with everything else that a run changes.

use std::fs;
use std::path::Path;

use pagelab_experiment::build::{Sheet, metric, metrics, note};
use pagelab_experiment::experiments::Tier;
use pagelab_experiment::experiments::tier::{BALANCING, DEMOTION, METRICS, SCANNING, SITUATIONS};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Recorder, Result, Setting, tables};
use pagelab_kernel::affinity::{Pinned, allowed};
use pagelab_kernel::files::text;
use pagelab_kernel::kthread::KernelThreads;
use pagelab_kernel::numa::{self, Nodes, Policy};
use pagelab_kernel::region::{Region, page_size};
use pagelab_kernel::rusage;
use pagelab_procfs::value;
use pagelab_reference::rng::Rng;

use crate::harness::context::ExecutionContext;
use crate::harness::failure::failed;
use crate::harness::measurement::Harness;
use crate::harness::processor;
use crate::harness::profiled;
use crate::harness::scans::Scans;
use crate::harness::timing::bare;
use crate::harness::touch::Write;

/// Looks at the pages' nodes at each position.
const POLLS_PER_POSITION: u64 = 20;
/// The mapping that is left to the kernel is larger than what is free on the fast node by this part
/// of it.
const MORE: u64 = 8;

/// The kernel's counters, of the whole machine.
#[derive(Clone, Copy, Default)]
struct Counts {
    promoted: u64,
    demoted: u64,
    migrated: u64,
    hints: u64,
}

impl Counts {
    fn read() -> Self {
        let text = text("/proc/vmstat").unwrap_or_default();
        let of = |name: &str| value(&text, name).unwrap_or(0);
        let ways = ["kswapd", "direct", "khugepaged", "proactive"];
        Self {
            promoted: of("pgpromote_success"),
            demoted: ways.iter().map(|way| of(&format!("pgdemote_{way}"))).sum(),
            migrated: of("numa_pages_migrated"),
            hints: of("numa_hint_faults"),
        }
    }
}

/// What a situation showed.
struct TierResult {
    cost: f64,
    mean: f64,
    end: f64,
    promoted: u64,
    demoted: u64,
    migrated: u64,
    hints: u64,
    kswapd: Option<u64>,
}

/// What all situations share.
struct Machine<'a> {
    parameters: &'a Tier,
    nodes: Nodes,
    pages: u64,
    kswapd: KernelThreads,
}

/// Pages of a mapping that is larger than what the fast node of the first processor has free: none
/// where both nodes are in one tier, because it begins on the slow node there; `None` where there
/// are not two nodes.
pub fn beyond_the_fast_node() -> Option<u64> {
    let nodes = Nodes::of(*allowed().ok()?.first()?)?;
    if !nodes.tiered {
        return Some(0);
    }
    let free = numa::free(nodes.fast)?;
    Some((free + free / MORE) / page_size() as u64)
}

/// Performs `parameters`; see the module's comment.
///
/// # Errors
/// On a machine without two nodes, and when the kernel refuses memory or its settings.
pub fn perform(
    parameters: &Tier,
    setting: &Setting,
    context: &ExecutionContext,
    recorder: &mut dyn Recorder,
) -> Result<()> {
    let mut harness = Harness::open(context, recorder)?;
    let mut scans = Scans::open(context);
    context.join()?;
    let lacks = || Failure::unsupported("tier needs two nodes with memory", REMEDY);
    let nodes = Nodes::of(*allowed().map_err(failed("reading the CPU affinity"))?.first().ok_or_else(lacks)?)
        .ok_or_else(lacks)?;
    let _processor = Pinned::to(1).map_err(failed("pinning to a CPU"))?;
    let pages = parameters.pages.unwrap_or(0).max(2 * parameters.hot);
    let machine = Machine { parameters, nodes, pages, kswapd: KernelThreads::find("kswapd") };
    let balances = Path::new(BALANCING).exists();
    for file in SCANNING.iter().filter(|file| Path::new(file).exists()) {
        let _ = fs::write(file, parameters.scan_period.to_string());
    }
    let mut looks = Sheet::new(tables::tier_pages::TABLE);
    harness.begin();
    let start = rusage::thread_up_to_date();
    let mut all = machine.all(balances, (&mut looks, &mut scans), recorder)?;
    let used = rusage::thread_up_to_date() - start;
    let measured = harness.finish();
    measured.record(recorder)?;
    let mut sheet = Sheet::new(tables::tiers::TABLE);
    for (situation, seen) in SITUATIONS.iter().zip(&all) {
        let of = |figure: fn(&TierResult) -> f64| seen.as_ref().map(figure);
        let row = [
            of(|seen| seen.cost),
            of(|seen| seen.mean),
            of(|seen| seen.end),
            seen.as_ref().and_then(|seen| machine.latency(seen)),
            of(|seen| seen.promoted as f64),
            of(|seen| seen.demoted as f64),
            of(|seen| seen.hints as f64),
            seen.as_ref().and_then(|seen| seen.kswapd).map(|time| time as f64),
        ];
        sheet.named([situation], row);
    }
    sheet.record(recorder)?;
    looks.record(recorder)?;
    scans.record(recorder)?;
    for (names, seen) in METRICS.iter().zip(&all) {
        metric(recorder, names[0], seen.as_ref().map(|seen| seen.cost))?;
        metric(recorder, names[1], seen.as_ref().map(|seen| seen.mean))?;
        metric(recorder, names[2], seen.as_ref().and_then(|seen| machine.latency(seen)))?;
    }
    let on = all.pop().flatten();
    // Between nodes of one tier nothing is promoted: there balancing migrates.
    let tiered = |figure: Option<f64>| figure.filter(|_| nodes.tiered);
    metric(recorder, metrics::TIER_PROMOTED, tiered(on.as_ref().map(|on| on.promoted as f64)))?;
    metric(recorder, metrics::TIER_DEMOTED, tiered(on.as_ref().map(|on| on.demoted as f64)))?;
    metric(recorder, metrics::TIER_HINT_FAULTS, on.as_ref().map(|on| on.hints as f64))?;
    metrics(recorder, processor::totals(&used).into_iter().chain(measured.scans()))?;
    machine.remarks(balances, on.as_ref(), recorder)?;
    profiled::repeat(setting, context, recorder, |recorder| {
        let looks = &mut Sheet::new(tables::tier_pages::TABLE);
        machine.all(balances, (looks, &mut Scans::closed()), recorder).map(drop)
    })
}

/// What to do where there are not two nodes.
pub const REMEDY: &str = "run it in a guest with nodes: --on kernel:IMAGE,numa=256M+512M@slow";

impl Machine<'_> {
    fn both(&self) -> [usize; 2] {
        [self.nodes.fast, self.nodes.slow]
    }

    /// What a reference waits by the latencies of both nodes.
    fn latency(&self, seen: &TierResult) -> Option<f64> {
        self.nodes.latency.map(|[fast, slow]| seen.mean * fast + (1.0 - seen.mean) * slow)
    }

    /// Switches demotion and balancing.
    fn switch(&self, on: bool) -> Result<()> {
        let mode = match (on, self.nodes.tiered) {
            (false, _) => "0",
            (true, true) => "2",
            (true, false) => "1",
        };
        let demotion = if on && self.nodes.tiered { "1" } else { "0" };
        for (file, value) in [(DEMOTION, demotion), (BALANCING, mode)] {
            if Path::new(file).exists() {
                fs::write(file, value).map_err(failed(&format!("writing {value} to {file}")))?;
            }
        }
        Ok(())
    }

    /// The mapping of a situation, written once.
    fn mapping(&self, situation: &str, recorder: &mut dyn Recorder) -> Result<Region> {
        let left_to_the_kernel = matches!(situation, "off" | "on");
        let pages =
            if left_to_the_kernel && self.nodes.tiered { self.pages } else { 2 * self.parameters.hot };
        let [fast, slow] = self.both();
        let policy = match situation {
            "fast" => Policy::Bind(fast),
            "slow" => Policy::Bind(slow),
            "interleaved" => Policy::Interleave(fast, slow),
            _ if self.nodes.tiered => Policy::Default,
            _ => Policy::Bind(slow),
        };
        let region = Region::base_pages(pages as usize).map_err(failed(&format!("mapping {pages} pages")))?;
        region.keep_apart().map_err(failed("pinning the mapping to a node"))?;
        numa::place(&region, policy).map_err(failed("mbind"))?;
        region.populate(|done, of| recorder.progress(&format!("{situation}: populate"), done, of));
        if left_to_the_kernel {
            numa::place(&region, Policy::Default).map_err(failed("mbind"))?;
        }
        Ok(region)
    }

    /// Each situation; `None`: the kernel does not have it.
    fn all(
        &self,
        balances: bool,
        (looks, scans): (&mut Sheet, &mut Scans),
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<Option<TierResult>>> {
        let mut all = Vec::new();
        for (n, situation) in (0..).zip(SITUATIONS) {
            recorder.progress(situation, n, SITUATIONS.len() as u64);
            all.push(match situation {
                "on" if !balances => None,
                _ => {
                    scans.begin();
                    let seen = self.perform(situation, looks, recorder)?;
                    scans.end(situation);
                    Some(seen)
                }
            });
        }
        Ok(all)
    }

    fn perform(&self, situation: &str, looks: &mut Sheet, recorder: &mut dyn Recorder) -> Result<TierResult> {
        self.switch(situation == "on")?;
        let (before, kswapd) = (Counts::read(), self.kswapd.time());
        let region = self.mapping(situation, recorder)?;
        let hot = self.parameters.hot as usize;
        let each = ((self.parameters.seconds * 1e9) as u64 / POLLS_PER_POSITION).max(1);
        let mut rng = Rng::new(self.parameters.seed);
        let (mut time, mut references, mut fast, mut of, mut end) = (0, 0, 0, 0, 0);
        for position in 0..self.parameters.positions {
            let first = if position % 2 == 0 { region.pages() - hot } else { 0 };
            let mut order: Vec<u32> = (first as u32..(first + hot) as u32).collect();
            for last in (1..order.len()).rev() {
                order.swap(last, rng.below(last as u64 + 1) as usize);
            }
            let mut here = 0;
            for look in 0..=POLLS_PER_POSITION {
                let on = numa::nodes_of(&region, first, hot, self.both()).map_err(failed("move_pages"))?;
                let whole = numa::mapped(&region, self.both());
                let now = Counts::read();
                let row = [
                    Some(f64::from(position)),
                    Some(here as f64),
                    Some(on[0] as f64),
                    Some(on[1] as f64),
                    whole.map(|whole| whole[0] as f64),
                    whole.map(|whole| whole[1] as f64),
                    Some((now.promoted - before.promoted) as f64),
                    Some((now.demoted - before.demoted) as f64),
                ];
                looks.named([situation], row);
                (fast, of) = (fast + on[0], of + hot as u64);
                if look == POLLS_PER_POSITION {
                    end += on[0];
                    break;
                }
                let mut part = 0;
                while part < each {
                    let begun = rusage::thread_time();
                    bare::<Write>(&region, &order);
                    part += rusage::thread_time() - begun;
                    references += order.len() as u64;
                }
                here += part;
                recorder.check()?;
            }
            time += here;
            recorder.progress(situation, u64::from(position) + 1, u64::from(self.parameters.positions));
        }
        let (after, spent) = (Counts::read(), self.kswapd.time());
        Ok(TierResult {
            cost: time as f64 / references as f64,
            mean: fast as f64 / of as f64,
            end: end as f64 / (u64::from(self.parameters.positions) * hot as u64) as f64,
            promoted: after.promoted - before.promoted,
            demoted: after.demoted - before.demoted,
            migrated: after.migrated - before.migrated,
            hints: after.hints - before.hints,
            kswapd: kswapd.zip(spent).map(|(before, after)| after - before),
        })
    }

    /// Says what a figure lacks, or is not.
    fn remarks(&self, balances: bool, on: Option<&TierResult>, recorder: &mut dyn Recorder) -> Result<()> {
        let Nodes { fast, slow, .. } = self.nodes;
        let mut say = |text: String| note(recorder, Level::Info, text);
        if !balances {
            say("this kernel has no NUMA balancing, so there is no promotion".to_owned())?;
        } else if !self.nodes.tiered {
            let migrated = on.map_or(0, |on| on.migrated);
            say(format!(
                "this kernel has the nodes {fast} and {slow} in one tier, so no page is demoted or promoted; with balancing {migrated} pages were migrated"
            ))?;
        }
        if self.nodes.latency.is_none() {
            say(
                "the machine's tables (HMAT) lack the latencies of both nodes, so there is no modelled wait"
                    .to_owned(),
            )?;
        }
        if balances && !Path::new(SCANNING[0]).exists() {
            say("no debugfs: the kernel ignores --scan-period and scans at its own interval".to_owned())?;
        }
        Ok(())
    }
}
