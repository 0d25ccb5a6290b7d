//! `vmtest` on a Sun-4.

use pagelab_experiment::build::{Sheet, metrics, note, speeds};
use pagelab_experiment::environment;
use pagelab_experiment::experiments::{Mapping, PagesOf, Vmtest};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::tables::vmtest;
use pagelab_experiment::{Failure, Observation, Recorder};

use crate::parameter::Seed;
use crate::sun4::{Costs, Outcome, Sun4, VmTest};

/// What a Sun-4's model does not honour.
pub(super) fn refuses(vmtest: &Vmtest) -> Option<super::Refused> {
    if vmtest.mapping == Mapping::File {
        return super::refused("mapping", "models no mapped files", "use --mapping shared or private");
    }
    if vmtest.pages_of != PagesOf::Base {
        return super::refused("pages-of", "models base pages", "use --pages-of 4k");
    }
    (vmtest.cpus != 1).then(|| super::refusal("cpus", "models one processor", "use --cpus 1"))
}

/// The sweep of sizes.
pub(super) fn perform(
    system: &Sun4,
    seed: Seed,
    vmtest: &Vmtest,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    // The live experiment's time begins when all processes are ready.
    let costs = Costs { test: 0, test_faults: 0, child: 0, child_faults: 0, ..system.costs };
    let system = Sun4 { costs, ..*system };
    let reach = (environment::PMEGS_REACH.to_owned(), reach(&system, vmtest).to_string());
    recorder.observe(Observation::Environment([reach].into()))?;
    let page = u64::from(system.machine.page);
    let sizes = vmtest.sweep().bytes(page);
    let mut sheet =
        Sheet::without(vmtest::TABLE, &[vmtest::SWAP_IN, vmtest::TRANSLATION_MEAN, vmtest::WALKS]);
    let speed = |o: &Outcome| o.reads as f64 / o.elapsed;
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (n, &size) in sizes.iter().enumerate() {
        recorder.progress("sizes", n as u64, sizes.len() as u64);
        let test = sized(vmtest, size, page);
        let outcome = system.run(&test, seed.0);
        outcomes.push(outcome);
        let row = [
            size as f64,
            f64::from(test.children),
            speed(&outcome) / speed(&outcomes[0]),
            outcome.elapsed * 1e9,
            outcome.user * 1e9,
            outcome.system * 1e9,
            outcome.faults as f64,
            0.0,
            outcome.reads as f64,
            outcome.elapsed * 1e9 / outcome.reads as f64,
            (outcome.user + outcome.system) * 1e9 / outcome.reads as f64,
        ];
        sheet.row(row.map(Some));
    }
    sheet.record(recorder)?;
    let sum = |of: fn(&Outcome) -> f64| Some(outcomes.iter().map(of).sum::<f64>());
    let all: Vec<f64> = outcomes.iter().map(speed).collect();
    let figures = [
        (metrics::TIME_ELAPSED, sum(|o| o.elapsed * 1e9)),
        (metrics::TIME_USER, sum(|o| o.user * 1e9)),
        (metrics::TIME_SYSTEM, sum(|o| o.system * 1e9)),
        (metrics::FAULTS_MINOR, sum(|o| o.faults as f64)),
    ];
    metrics(recorder, figures.into_iter().chain(speeds(&all)))?;
    let allocations: u64 = outcomes.iter().map(|o| o.pool.allocations).sum();
    let steals: u64 = outcomes.iter().map(|o| o.pool.steals).sum();
    let swapped: u64 = outcomes.iter().map(|o| o.swap_ins).sum();
    note(
        recorder,
        Level::Info,
        format!("hatcnt: {allocations} pmegs allocated, {steals} of them taken; {swapped} swap-ins"),
    )
}

/// Active virtual memory whose processes have all their pmegs at once.
fn reach(system: &Sun4, vmtest: &Vmtest) -> u64 {
    let page = u64::from(system.machine.page);
    let segment = vmtest.process_size.bytes(page).max(page);
    let range = u64::from(system.machine.entries) * page;
    // Text, stack and the kernel's part besides the data; the parent has those and one page of data.
    let each = segment.div_ceil(range) + 3;
    let free = u64::from(system.machine.pmegs).saturating_sub(u64::from(system.locked) + 4);
    free * segment / each
}

/// The test at one size, as the live experiment has it: whole segments, or one process with a smaller one
/// that makes as many reads.
fn sized(vmtest: &Vmtest, size: u64, page: u64) -> VmTest {
    let (children, each) = vmtest.processes(size, page);
    let passes = vmtest.reads(each, page) / each;
    // The parent sleeps twice that many ticks and the rest of the present one.
    let ticks = 100u64.div_ceil(u64::from(vmtest.switch_rate.max(1)));
    VmTest {
        children: u32::try_from(children).unwrap_or(u32::MAX),
        bytes: each * page,
        passes: passes.clamp(1, u64::from(u32::MAX)) as u32,
        poll: 2 * ticks + 1,
        sleepers: 0,
        seconds: Some(vmtest.seconds),
    }
}
