//! Morton 2002: what reverse maps cost a script that forks and execs, and what they are worth.

mod shown;

use std::sync::LazyLock;

use pagelab_analysis::figure::{Axis, BarRow, Bars, Column, Plot, Series, Table};
use pagelab_experiment::experiments::Forkstorm;
use pagelab_experiment::metrics;
use pagelab_experiment::{Experiment, Run};
use pagelab_model::parameter::{self, Declared, Parameter as Declaration, SEED, Seed};
use pagelab_model::parameter_table;
use pagelab_model::rmap::interleave::{Interleaved, Parts, Processors, run as interleave};
use pagelab_model::rmap::layout::SHELL;
use pagelab_model::rmap::mechanism::{KINDS, Work};
use pagelab_model::rmap::reclaim::{Wanted, entry_life, unmap_time};
use pagelab_model::rmap::script::STEPS;
use pagelab_model::rmap::space::Memory;
use pagelab_model::rmap::{self, Costs, KernelCosts, Kind, Script, run};
use pagelab_simulation::spread::each;

use crate::book::{At, ModelFigure};
use crate::error::StudyError;
use crate::here::{self, Live};
use crate::options::{Answers, Later, Options, Shown, later};
use crate::published::{Sheet, sheet};
use crate::study::{Parameter, columns, facts, study_plot};
use shown::{
    counts_table, here, kinds_table, parameter_list, parts_table, profile_bars, profile_table, reclaim, trade,
};

const NAME: &str = "morton-2002";
pub(crate) const CALLS: Sheet = sheet!("morton-2002-calls.csv");
pub(crate) const RUN: Sheet = sheet!("morton-2002-run.csv");
pub(crate) const PROFILE: Sheet = sheet!("morton-2002-profile.csv");
pub(crate) const INSTRUCTIONS: Sheet = sheet!("morton-2002-instructions.csv");
const WITH: &str = "2.5.27-rmap";
const WITHOUT: &str = "2.5.27-no-rmap";
const PROCESSORS: f64 = 4.0;
/// Iterations that are performed on four processors at once; what they meet is the same in all 500.
const INTERLEAVED: u32 = 60;
/// Seeds under which five copies run: where they stand to each other changes how often they meet.
const PHASES: usize = 9;
/// Iterations of each.
const PHASE: u32 = 20;

struct Published {
    calls: Vec<(String, f64)>,
    /// Kernel, user s, system s, percent of a processor, elapsed s.
    runs: Vec<(String, [f64; 4])>,
    /// Kernel, function, samples, percent of the kernel's samples.
    profile: Vec<(String, String, f64, f64)>,
}

fn published() -> Result<Published, StudyError> {
    Ok(Published { calls: CALLS.rows()?, runs: RUN.rows()?, profile: PROFILE.rows()? })
}

impl Published {
    fn run(&self, kernel: &'static str) -> Result<[f64; 4], StudyError> {
        self.runs
            .iter()
            .find(|(name, _)| name == kernel)
            .map(|(_, run)| *run)
            .ok_or_else(|| RUN.wrong(format!("no row of {kernel}")))
    }

    fn share(&self, kernel: &str, function: &str) -> Option<f64> {
        let row = self.profile.iter().find(|(k, f, ..)| k == kernel && f == function);
        row.map(|&(_, _, _, percent)| percent / 100.0)
    }
}

/// The model's count for a published counter.
fn count(memory: &Memory, name: &str) -> Option<f64> {
    let counts = &memory.counts;
    let chain = memory.chains.counts();
    let count = match name {
        "forks" => counts.forks,
        "copy_page_range_calls" => counts.copy_page_range,
        "page_add_rmap" => counts.adds(),
        "page_add_rmap_nope" => counts.add_nope,
        "page_add_rmap_1st" => chain.add_first,
        "page_add_rmap_2nd" => chain.add_second,
        "page_add_rmap_3rd" => chain.add_more,
        "page_remove_rmap" => counts.removes(),
        "page_remove_rmap_1st" => chain.remove_first,
        "page_remove_rmap_nope" => counts.remove_nope,
        "add_put_dirty_page" => counts.add_put_dirty_page,
        "add_copy_page_range" => counts.add_copy_page_range,
        "add_do_wp_page" => counts.add_do_wp_page,
        "add_do_anonymous_page" => counts.add_do_anonymous_page,
        "add_do_no_page" => counts.add_do_no_page,
        "remove_zap_pte_range" => counts.remove_zap_pte_range,
        "remove_do_wp_page" => counts.remove_do_wp_page,
        "do_no_page" => counts.do_no_page,
        "do_wp_page" => counts.do_wp_page,
        "pte_chain_locks" => counts.adds() + counts.removes() - counts.add_nope - counts.remove_nope,
        _ => return None,
    };
    Some(count as f64)
}

/// What the claims are answered from.
struct Model {
    /// The parameters with their values.
    declared: Vec<Declared>,
    five: Later<Memory>,
    ten: Later<Memory>,
    /// Ten copies on the processors at once, and five copies in different phases.
    ten_at_once: Later<Interleaved>,
    five_at_once: [Later<Interleaved>; PHASES],
    /// Ten copies with the slab's work outside of the lock.
    ten_slab_outside: Later<Interleaved>,
    costs: Costs,
    /// One poll of a held lock, in ns.
    spin: f64,
    /// The reverse map whose work counts.
    kind: Kind,
}

const SCRIPT: &[Declaration<Script>] = parameter_table! {
    whole "shell-own" "" [21.0, 132.0] "the shell's own pages", fitted("page_add_rmap_2nd"), (shell_own);
    whole "child-writes" "" [0.0, 132.0] "pages written by a child after a fork", fitted("add_do_wp_page"), (child_writes);
    whole "parent-writes" "" [0.0, 132.0] "pages written by a parent after a fork", fitted("do_wp_page"), (parent_writes);
};

/// The inputs of the model other than script and costs.
#[derive(Clone, Copy)]
struct Machine {
    processors: u32,
    elements_of_line: u32,
    /// One poll of a held lock, in ns.
    spin: f64,
}

const MACHINE: &[Declaration<Machine>] = parameter_table! {
    whole "processors" "" [1.0, 8.0] "CPUs of the machine", documented("Morton 2002"), (processors);
    whole "elements-of-line" "" [1.0, 64.0] "chain elements per cache line",
        derived("8 bytes per element, 32 bytes per line"), (elements_of_line);
    number "spin" "ns" [0.1, 10000.0] "poll of a held lock", assumed("about 10 cycles at 700 MHz"), (spin);
};

/// The inputs of the model.
struct Given {
    script: Script,
    costs: Costs,
    kernel: KernelCosts,
    machine: Machine,
    seed: Seed,
}

impl Given {
    fn usual(options: &Options) -> Self {
        Self {
            script: Script::published(0),
            costs: Costs::QUAD_PENTIUM_III,
            kernel: KernelCosts::QUAD_PENTIUM_III,
            machine: Machine { processors: PROCESSORS as u32, elements_of_line: 4, spin: 14.0 },
            seed: Seed(options.seed),
        }
    }

    fn parts(&mut self) -> parameter::Parts<'_> {
        parameter::Parts::default()
            .and(SCRIPT, &mut self.script)
            .and(rmap::parameters::COSTS, &mut self.costs)
            .and(rmap::parameters::KERNEL, &mut self.kernel)
            .and(MACHINE, &mut self.machine)
            .and(SEED, &mut self.seed)
    }
}

pub(crate) fn parameters(options: &Options) -> Result<Vec<Declared>, StudyError> {
    Ok(Given::usual(options).parts().declared())
}

fn model(options: &Options) -> Result<Model, StudyError> {
    let mut given = Given::usual(options);
    options.apply(given.parts());
    let declared = given.parts().declared();
    let Given { script, mut costs, kernel, machine, seed: Seed(seed) } = given;
    let script = |instances| {
        let mut script = Script { instances, ..script };
        if options.without("no-exec") {
            script.execs = false;
        } else if options.without("no-fork-copy") {
            script.copies = false;
        }
        script
    };
    if options.without("free-chains") {
        costs = Costs { atomic: 0.0, miss: 0.0, shared: 0.0, slab: 0.0, call: 0.0 };
    }
    // A copy's own time for one of the steps of an iteration.
    let user = published()?.run(WITHOUT)?[0] / 10.0 / 500.0 / f64::from(STEPS) * 1e9;
    let processors = Processors {
        count: if options.without("one-processor") { 1 } else { machine.processors },
        costs,
        kernel,
        user,
        one_line: options.without("one-line"),
        elements_of_line: if options.without("scattered-elements") { 1 } else { machine.elements_of_line },
        slab_outside: false,
        one_lock: options.without("one-lock"),
    };
    let at_once = |instances, iterations, slab_outside, seed| {
        let processors = Processors { slab_outside, ..processors };
        let script = Script { iterations, ..script(instances) };
        later(move || interleave(&script, &processors, seed))
    };
    let counted = |instances| {
        let script = script(instances);
        later(move || run(&script, seed))
    };
    let five_at_once = std::array::from_fn(|phase| at_once(5, PHASE, false, seed + phase as u64));
    let (ten_at_once, ten_slab_outside) =
        (at_once(10, INTERLEAVED, false, seed), at_once(10, INTERLEAVED, true, seed));
    let (five, ten) = (counted(5), counted(10));
    let kind = if options.without("lazy-chains") { Kind::Lazy } else { Kind::Chain };
    let spin = machine.spin;
    Ok(Model { declared, five, ten, five_at_once, ten_at_once, ten_slab_outside, costs, spin, kind })
}

/// How many times what was interleaved all iterations are.
const ALL: f64 = 500.0 / INTERLEAVED as f64;

impl Model {
    /// Makes all runs, on every core.
    fn run_all(&self) {
        let interleaved: Vec<_> =
            [&self.ten_at_once, &self.ten_slab_outside].into_iter().chain(&self.five_at_once).collect();
        each(interleaved.len() + 2, |n| {
            match n.checked_sub(interleaved.len()) {
                None => _ = LazyLock::force(interleaved[n]),
                Some(0) => _ = LazyLock::force(&self.ten),
                Some(_) => _ = LazyLock::force(&self.five),
            };
        });
    }

    /// Seconds of adding to chains, of removing, and of the slab for both, in ten copies.
    fn of_chains(&self) -> [f64; 3] {
        let Interleaved { adding, removing, .. } = &*self.ten_at_once;
        let own = |parts: [f64; 4]| ALL * parts.iter().sum::<f64>() / 1e9;
        let slab = ALL * (adding.slab + removing.slab) as f64 * self.costs.slab / 1e9;
        [own(adding.time(&self.costs)), own(removing.time(&self.costs)), slab]
    }

    fn chain_seconds(&self) -> f64 {
        self.of_chains().iter().sum()
    }

    /// The same of the reverse map whose work counts.
    fn seconds(&self) -> [f64; 3] {
        if self.kind == Kind::Chain {
            self.of_chains()
        } else {
            // Counts go up and down in the same way.
            let work = self.ten.work(self.kind);
            let slab = self.costs.slab * work.slab as f64 / 1e9;
            let own = self.costs.time(&work) / 1e9 - slab;
            [own / 2.0, own / 2.0, slab]
        }
    }

    /// The work of the chains in ten copies, as it is counted for the other kinds.
    fn chain_work(&self) -> Work {
        let Interleaved { adding, removing, .. } = &*self.ten_at_once;
        let all = |count: u64| (ALL * count as f64) as u64;
        let operations = all(adding.operations + removing.operations);
        Work {
            operations,
            atomics: 2 * operations,
            misses: all(adding.misses() + removing.misses()),
            slab: all(adding.slab + removing.slab),
        }
    }

    /// Percent of a function's time in the part at this place of [`Parts::time`]. The kinds that
    /// count have none.
    fn part(&self, add: bool, part: usize) -> f64 {
        let Interleaved { adding, removing, .. } = &*self.ten_at_once;
        let time = if add { adding } else { removing }.time(&self.costs);
        if self.kind == Kind::Chain { 100.0 * time[part] / time.iter().sum::<f64>() } else { f64::NAN }
    }

    /// Percent of removing that the elements behind a chain's first cost.
    fn length(&self) -> f64 {
        let removing = &self.ten_at_once.removing;
        100.0 * removing.beyond as f64 * self.costs.miss / removing.time(&self.costs).iter().sum::<f64>()
    }

    /// The reverse map's time with the slab outside of the lock, through that with it inside; both
    /// with the waits.
    fn slab_outside(&self) -> f64 {
        let time = |seen: &Interleaved| {
            let own = |parts: &Parts| parts.time(&self.costs).iter().sum::<f64>();
            let slab = (seen.adding.slab + seen.removing.slab) as f64 * self.costs.slab;
            own(&seen.adding) + own(&seen.removing) + slab + seen.waited
        };
        time(&self.ten_slab_outside) / time(&self.ten_at_once)
    }

    /// A figure of five copies in each phase, ascending.
    fn phases(&self, of: impl Fn(&Interleaved) -> f64) -> [f64; PHASES] {
        let mut found: [f64; PHASES] = std::array::from_fn(|phase| of(&self.five_at_once[phase]));
        found.sort_by(f64::total_cmp);
        found
    }

    /// Percent of the locks of five copies found taken. The kinds that count take none.
    fn contention(&self) -> [f64; PHASES] {
        let taken = |seen: &Interleaved| 100.0 * seen.contended as f64 / seen.locks() as f64;
        if self.kind == Kind::Chain { self.phases(taken) } else { [0.0; PHASES] }
    }
}

/// The median of the phases, with their extremes.
fn median_of(phases: [f64; PHASES]) -> ModelFigure {
    ModelFigure::of(phases[PHASES / 2], format!("{:.3} to {:.3}", phases[0], phases[PHASES - 1]))
}

pub(crate) fn answers(options: &Options) -> Result<Answers, StudyError> {
    answering(model(options)?, published()?)
}

fn answering(model: Model, published: Published) -> Result<Answers, StudyError> {
    let without = published.run(WITHOUT)?;
    Ok(Box::new(move |At { id, row }| {
        let system = || without[1] + model.seconds().iter().sum::<f64>();
        Some(match id {
            "forks" | "counter" => count(&model.five, &published.calls.get(row.checked_sub(1)?)?.0)?.into(),
            "system-without" => without[1].into(),
            "system-of-map" => model.seconds().iter().sum::<f64>().into(),
            "elapsed-with" => {
                let share = without[2] / 100.0 / PROCESSORS;
                ((without[0] + system()) / PROCESSORS / share).into()
            }
            "share" => {
                let [add, remove, _] = model.seconds();
                let seconds = match published.profile.get(row.checked_sub(1)?)?.1.as_str() {
                    "page_add_rmap" => add,
                    "page_remove_rmap" => remove,
                    // What has nothing to do with the reverse map takes as long as without.
                    function => published.share(WITHOUT, function)? * without[1],
                };
                (100.0 * seconds / system()).into()
            }
            "slab-share" => {
                let [_, _, slab] = model.seconds();
                (100.0 * slab / system()).into()
            }
            "contention" => median_of(model.contention()),
            "contention-most" => model.contention()[PHASES - 1].into(),
            "spins" => median_of(model.phases(|seen| seen.waited / seen.contended as f64 / model.spin)),
            "add-lock" => model.part(true, 0).into(),
            "add-unlock" => model.part(true, 2).into(),
            "unlock-as-lock" => (model.part(true, 2) / model.part(true, 0)).into(),
            "remove-lock" => model.part(false, 0).into(),
            "remove-walk" => model.part(false, 1).into(),
            "remove-unlock" => model.part(false, 2).into(),
            "length" => model.length().into(),
            "slab-outside" => model.slab_outside().into(),
            _ => return None,
        })
    }))
}

pub(crate) fn study(options: &Options) -> Result<(Answers, Shown), StudyError> {
    let published = published()?;
    let model = model(options)?;
    model.run_all();
    let costs = model.costs;
    let times = [published.run(WITH)?, published.run(WITHOUT)?];
    let (reclaim, reclaim_plot) = reclaim(&costs);
    let (even, trade_plot) = trade(&costs);
    let profile = profile_table(&published, &model)?;
    let shown = Shown {
        parameters: parameter_list(&model.declared, &Script::published(5)),
        here: here::repeated(&options.here, |runs| here(runs, &published, times, &model)),
        bars: vec![profile_bars(&published, &profile)],
        plots: vec![reclaim_plot, trade_plot],
        opening: 0,
        tables: vec![
            counts_table(&published, &model.five),
            kinds_table(&published, &model)?,
            profile,
            parts_table(&model),
            reclaim,
            even,
        ],
        notes: vec![
            "The kernel's counters are not atomic on four processors: the sums of the published callers \
             differ from the published totals by up to 1.8%. No model can be closer than that to both."
                .into(),
            "The time without reverse map is the published one: the model adds what the reverse map costs \
             to it. Its costs of a cache miss and an atomic operation are assumed, not fitted."
                .into(),
            "An unlock of page_add_rmap is dearer here than in the profile, where a third of the function falls on no \
             part of it; the walk of page_remove_rmap has a larger share, because its lock is cheaper than the \
             published half a microsecond."
                .into(),
            "Elements move between a processor's own list and the slab for nothing, so the slab's share is short of \
             the published one."
                .into(),
            "Functions that have nothing to do with the reverse map are taken to cost what they cost without it. \
             The profile says that some cost more: the chains take their lines out of the cache."
                .into(),
        ],
    };
    Ok((answering(model, published)?, shown))
}

/// The script, fifty times in each of as many copies as the machine of the study had processors.
pub(crate) fn live() -> Vec<Live> {
    let storm = Forkstorm {
        copies: PROCESSORS as u32,
        forks: 50,
        script: Some("/etc/passwd".into()),
        ..Forkstorm::default()
    };
    vec![Live::free("forkstorm", Experiment::Forkstorm(storm))]
}

#[cfg(test)]
mod tests {
    use pagelab_model::rmap::KernelCosts;

    use super::*;

    #[test]
    fn the_kernels_costs_are_those_of_the_published_profile() {
        let published = published().unwrap();
        let call = |name: &str| published.calls.iter().find(|(n, _)| n == name).unwrap().1;
        let system = published.run(WITHOUT).unwrap()[1] * 1e9;
        let share = |function| published.share(WITHOUT, function).unwrap();
        let each = |share: f64, calls: f64| share * system / (2.0 * calls);
        let costs = KernelCosts::QUAD_PENTIUM_III;
        let dropped = share("zap_pte_range") + share("page_cache_release");
        let listed: f64 =
            ["do_wp_page", "do_no_page", "copy_page_range", "do_anonymous_page"].map(share).iter().sum();
        for (derived, target) in [
            (each(share("copy_page_range"), call("add_copy_page_range")), costs.copied),
            (each(dropped, call("remove_zap_pte_range")), costs.dropped),
            (each(share("do_no_page"), call("do_no_page")), costs.touched),
            (each(share("do_anonymous_page"), call("add_do_anonymous_page")), costs.fresh),
            (each(share("do_wp_page"), call("do_wp_page")), costs.protected),
            (each(1.0 - listed - dropped, call("forks") + 7_500.0), costs.call),
        ] {
            assert!((derived / target - 1.0).abs() < 0.001, "{derived} {target}");
        }
        // So the script's time without reverse map is the published one, as near as its counts are.
        let ten = run(&Script::published(10), 1);
        assert!((costs.time(&ten.counts) / system - 1.0).abs() < 0.01);
    }

    #[test]
    fn every_published_counter_but_those_of_the_spins_has_a_count_or_is_nought() {
        let published = published().unwrap();
        let memory = run(&Script { iterations: 1, ..Script::published(1) }, 1);
        for (name, printed) in &published.calls {
            let spins = name.contains("contended") || name.contains("spins");
            assert!(count(&memory, name).is_some() || *printed == 0.0 || spins, "{name}");
        }
        assert!(published.share(WITH, "page_add_rmap").is_some());
        assert!(published.run(WITHOUT).is_ok());
    }
}
