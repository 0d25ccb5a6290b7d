//! Morton 2002: what reverse maps cost a script that forks and execs, and what they are worth.

use pagelab_analysis::figure::{Axis, Column, Plot, Series, Table};
use pagelab_experiment::experiments::Forkstorm;
use pagelab_experiment::{Experiment, Run};
use pagelab_model::rmap::layout::{SHELL, SHELL_OWN};
use pagelab_model::rmap::mechanism::{KINDS, Work};
use pagelab_model::rmap::reclaim::{Wanted, entry_life, unmap_time};
use pagelab_model::rmap::space::Memory;
use pagelab_model::rmap::{Costs, Kind, Script, run};

use crate::book::At;
use crate::claim::{Parameter, Standing, study_plot};
use crate::here::{self, Live};
use crate::published::{Sheet, sheet};
use crate::{Answers, Options, Shown, StudyError};

const NAME: &str = "morton-2002";
pub(crate) const CALLS: Sheet = sheet!("morton-2002-calls.csv");
pub(crate) const RUN: Sheet = sheet!("morton-2002-run.csv");
pub(crate) const PROFILE: Sheet = sheet!("morton-2002-profile.csv");
const WITH: &str = "2.5.27-rmap";
const WITHOUT: &str = "2.5.27-no-rmap";
const PROCESSORS: f64 = 4.0;

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
    five: Memory,
    ten: Memory,
    costs: Costs,
    /// The reverse map whose work counts.
    kind: Kind,
}

fn model(options: &Options) -> Model {
    let script = |instances| {
        let mut script = Script::published(instances);
        if options.without("no-exec") {
            script.execs = false;
        } else if options.without("no-fork-copy") {
            script.copies = false;
        } else if options.without("no-writes") {
            (script.child_writes, script.parent_writes) = (0, 0);
        }
        script
    };
    let (five, ten) = std::thread::scope(|scope| {
        let five = scope.spawn(|| run(&script(5), options.seed));
        let ten = run(&script(10), options.seed);
        (five.join().unwrap(), ten)
    });
    let usual = Costs::QUAD_PENTIUM_III;
    let mut costs = Costs { miss: options.assumed("miss", usual.miss), ..usual };
    if options.without("free-chains") {
        costs = Costs { atomic: 0.0, miss: 0.0, slab: 0.0, call: 0.0 };
    }
    let kind = if options.without("lazy-chains") { Kind::Lazy } else { Kind::Chain };
    Model { five, ten, costs, kind }
}

impl Model {
    /// Seconds of adding and of removing in ten copies.
    fn halves(&self) -> (f64, f64) {
        let time = |work: &Work| self.costs.time(work) / 1e9;
        if self.kind == Kind::Chain {
            let (adding, removing) = self.ten.chains.work();
            (time(&adding), time(&removing))
        } else {
            // Counts go up and down in the same way.
            let all = time(&self.ten.work(self.kind));
            (all / 2.0, all / 2.0)
        }
    }

    /// The chance that a lock is found taken: another processor is at that moment in an operation, and that
    /// is on the same page. The kinds that count take no lock.
    fn contention(&self, without: [f64; 4]) -> f64 {
        if self.kind != Kind::Chain {
            return 0.0;
        }
        let held = self.costs.time(&self.five.work(Kind::Chain)) / 1e9;
        // Half of the ten copies' processor time is that of five.
        let busy = (without[0] + without[1]) / 2.0 + held;
        (PROCESSORS - 1.0) * held / busy * self.five.chains.concentration()
    }
}

pub(crate) fn answers(options: &Options) -> Result<Answers, StudyError> {
    answering(model(options), published()?)
}

fn answering(model: Model, published: Published) -> Result<Answers, StudyError> {
    let without = published.run(WITHOUT)?;
    let (add, remove) = model.halves();
    let system = without[1] + add + remove;
    let share = without[2] / 100.0 / PROCESSORS;
    let elapsed = (without[0] + system) / PROCESSORS / share;
    let slab = {
        let (adding, removing) = model.ten.chains.work();
        let work = if model.kind == Kind::Chain {
            (adding + removing).slab
        } else {
            model.ten.work(model.kind).slab
        };
        model.costs.slab * work as f64 / 1e9
    };
    Ok(Box::new(move |At { id, row }| {
        Some(match id {
            "forks" | "counter" => count(&model.five, &published.calls.get(row.checked_sub(1)?)?.0)?.into(),
            "system-without" => without[1].into(),
            "system-of-map" => (add + remove).into(),
            "elapsed-with" => elapsed.into(),
            "share" => {
                let seconds = match published.profile.get(row.checked_sub(1)?)?.1.as_str() {
                    "page_add_rmap" => add,
                    "page_remove_rmap" => remove,
                    // What has nothing to do with the reverse map takes as long as without.
                    function => published.share(WITHOUT, function)? * without[1],
                };
                (100.0 * seconds / system).into()
            }
            "slab-share" => (100.0 * slab / system).into(),
            "contention" => (100.0 * model.contention(without)).into(),
            _ => return None,
        })
    }))
}

pub(crate) fn study(options: &Options) -> Result<(Answers, Shown), StudyError> {
    let published = published()?;
    let model = model(options);
    let costs = model.costs;
    let (reclaim, reclaim_plot) = reclaim(&costs);
    let (even, trade_plot) = trade(&costs);
    let shown = Shown {
        parameters: parameters(&Script::published(5), &costs),
        here: here(&options.here, &published, &model.ten, &costs)?,
        tables: vec![
            counts_table(&published, &model.five),
            kinds_table(&published, &model.ten, &costs)?,
            reclaim,
            even,
        ],
        plots: vec![reclaim_plot, trade_plot],
        notes: vec![
            "The kernel's counters are not atomic on four processors: the sums of the published callers \
             differ from the published totals by up to 1.8 %. No model can be closer than that to both."
                .into(),
            "The time without reverse map is the published one: the model adds what the reverse map costs \
             to it. Its costs of a cache miss and an atomic operation are assumed, not fitted."
                .into(),
            "Locks found taken come out a third of the published number: the estimate takes operations as \
             spread evenly in time, but forks and exits go over the same pages in the same order."
                .into(),
            "page_add_rmap comes out cheaper and page_remove_rmap dearer than in the profile: an element's \
             first line is charged to whoever walks it, and interrupts' samples fall where locks are dropped."
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

fn here(runs: &[Run], published: &Published, ten: &Memory, costs: &Costs) -> Result<Table, StudyError> {
    let live = live();
    let columns = ["2.5.27 published", "with chains published", "with chains, model", "here"]
        .map(|name| Column::new(name, "", 2));
    let mut table = here::table(NAME, &live, runs, "the script, by its forks", columns.to_vec());
    let (with, without) = (published.run(WITH)?, published.run(WITHOUT)?);
    let forks = ten.counts.forks as f64;
    let system = without[1] + costs.time(&ten.work(Kind::Chain)) / 1e9;
    let metric = |name: &str| live[0].metric(runs, name);
    // 200 iterations of five forks each.
    let made = metric("forks.rate").zip(metric("time.elapsed")).map(|(rate, ns)| rate * ns / 1e9);
    let each = |name: &str, scale: f64| metric(name).zip(made).map(|(sum, forks)| sum / forks / scale);
    let faults = published.calls.iter().filter(|(name, _)| name == "do_no_page" || name == "do_wp_page");
    let five = published.calls.iter().find(|(name, _)| name == "forks").map_or(f64::NAN, |(_, count)| *count);
    let faults = faults.map(|(_, count)| count).sum::<f64>() / five;
    let modelled = (ten.counts.do_no_page + ten.counts.do_wp_page) as f64 / forks;
    let ms = |seconds: f64| Some(seconds / forks * 1e3);
    table.row(
        "system time of a fork, ms",
        [ms(without[1]), ms(with[1]), ms(system), each("time.system", 1e6)],
    );
    table.row("user time of a fork, ms", [ms(without[0]), ms(with[0]), None, each("time.user", 1e6)]);
    table.row("faults a fork", [None, Some(faults), Some(modelled), each("faults.minor", 1.0)]);
    table
        .row("forks a second", [Some(forks / without[3]), Some(forks / with[3]), None, metric("forks.rate")]);
    Ok(table)
}

fn counts_table(published: &Published, five: &Memory) -> Table {
    let mut table = Table::new(
        "Five copies of the script: calls",
        "counter",
        vec![
            Column::new("published", "", 0),
            Column::new("model", "", 0),
            Column::new("model a fork", "", 2),
            Column::new("distance", "%", 1),
        ],
    );
    for (name, printed) in &published.calls {
        let model = count(five, name);
        table.row(
            name.as_str(),
            [
                Some(*printed),
                model,
                model.map(|m| m / five.counts.forks as f64),
                model.filter(|_| *printed > 0.0).map(|m| 100.0 * (m / printed - 1.0)),
            ],
        );
    }
    let chain = five.chains.counts();
    table
        .row("elements walked a removal", [None, Some(chain.walked as f64 / chain.walks as f64), None, None]);
    table
}

fn kinds_table(published: &Published, ten: &Memory, costs: &Costs) -> Result<Table, StudyError> {
    let without = published.run(WITHOUT)?;
    let mut table = Table::new(
        "Ten copies of the script under each reverse map",
        "reverse map",
        vec![
            Column::new("operations", "", 0),
            Column::new("atomics", "", 0),
            Column::new("cache misses", "", 0),
            Column::new("allocations and frees", "", 0),
            Column::new("time", "s", 2),
            Column::new("system time", "s", 1),
            Column::new("more than without", "%", 1),
        ],
    );
    for kind in KINDS {
        let work = ten.work(kind);
        let time = costs.time(&work) / 1e9;
        table.row(
            kind.name(),
            [
                Some(work.operations as f64),
                Some(work.atomics as f64),
                Some(work.misses as f64),
                Some(work.slab as f64),
                Some(time),
                Some(without[1] + time),
                Some(100.0 * time / without[1]),
            ],
        );
    }
    Ok(table)
}

const SHARERS: [u64; 7] = [1, 2, 5, 10, 50, 200, 1000];

fn wanted(sharers: u64) -> Wanted {
    Wanted { sharers, others: 0, entries: 100_000, batch: 32 }
}

fn reclaim(costs: &Costs) -> (Table, Plot) {
    let mut table = Table::new(
        "Reclaim: finding and clearing all mappings of a page (32 pages wanted, 100,000 entries in all page tables)",
        "reverse map",
        SHARERS.map(|sharers| Column::new(format!("{sharers} share"), "µs", 2)).to_vec(),
    );
    let mut series = Vec::new();
    for kind in KINDS {
        let times = SHARERS.map(|sharers| unmap_time(kind, &wanted(sharers), costs) / 1e3);
        table.row(kind.name(), times.map(Some));
        let points = SHARERS.iter().zip(times).map(|(&s, t)| (s as f64, t));
        series.push(Series::line(kind.name(), points));
    }
    // Children that copied the page since the fork are looked up through the object in vain.
    for kind in [Kind::Chain, Kind::Object, Kind::Folio] {
        let times = SHARERS.map(|all| {
            let wanted = Wanted { sharers: 1, others: all - 1, ..wanted(1) };
            Some(unmap_time(kind, &wanted, costs) / 1e3)
        });
        table.row(format!("{}, all but one have copied it", kind.name()), times);
    }
    let plot = study_plot(
        "Reclaim: finding all mappings of a page",
        Axis::log("processes that share it", ""),
        Axis::log("µs a page", ""),
        series,
    );
    (table, plot)
}

fn trade(costs: &Costs) -> (Table, Plot) {
    let life = |kind, sharers| costs.time(&entry_life(kind, sharers, 16)) / 1e3;
    let mut table = Table::new(
        "The trade: time of an entry's life, and of its share in one reclaim of the page",
        "reverse map",
        vec![
            Column::new("fork to exit, 1 shares", "µs", 2),
            Column::new("fork to exit, 10 share", "µs", 2),
            Column::new("reclaim, 1 shares", "µs", 2),
            Column::new("reclaim, 10 share", "µs", 2),
            Column::new("reclaims a 100 lives to repay, 10 share", "", 2),
        ],
    );
    for kind in KINDS {
        let of = |sharers: u64| unmap_time(kind, &wanted(sharers), costs) / 1e3 / sharers as f64;
        let saved = unmap_time(Kind::None, &wanted(10), costs) / 1e4 - of(10);
        let repay = (saved > 0.0).then(|| 100.0 * life(kind, 10) / saved);
        table.row(kind.name(), [Some(life(kind, 1)), Some(life(kind, 10)), Some(of(1)), Some(of(10)), repay]);
    }
    let reclaims = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];
    let series = KINDS
        .iter()
        .map(|&kind| {
            Series::line(
                kind.name(),
                reclaims
                    .iter()
                    .map(|&r| (r, life(kind, 10) + r * unmap_time(kind, &wanted(10), costs) / 1e4)),
            )
        })
        .collect();
    let plot = study_plot(
        "The trade: ten processes share a page",
        Axis::log("reclaims for each life of an entry", ""),
        Axis::log("µs an entry, from fork to exit", ""),
        series,
    );
    (table, plot)
}

fn parameters(script: &Script, costs: &Costs) -> Vec<Parameter> {
    let fitted = |on: &str| Standing::Fitted { on: on.to_owned() };
    let assumed = |why| Standing::Assumed { why };
    let parameter = |name, value, unit, standing| Parameter { name, value, unit, standing };
    let calls = "the published counters of five copies";
    vec![
        parameter("copies", f64::from(script.instances), "", Standing::Documented { source: "Morton 2002" }),
        parameter(
            "iterations",
            f64::from(script.iterations),
            "",
            Standing::Documented { source: "Morton 2002" },
        ),
        parameter(
            "forks an iteration",
            5.0,
            "",
            Standing::Derived { from: "12,477 forks in 5 × 500 iterations" },
        ),
        parameter("mappings of the shell", SHELL.segments.len() as f64, "", fitted(calls)),
        parameter("pages of the shell", 222.0, "", fitted(calls)),
        parameter("of them its own", f64::from(SHELL_OWN), "", fitted("page_add_rmap_2nd")),
        parameter(
            "pages a child writes after a fork",
            f64::from(script.child_writes),
            "",
            fitted("add_do_wp_page"),
        ),
        parameter(
            "pages a parent writes after a fork",
            f64::from(script.parent_writes),
            "",
            fitted("do_wp_page"),
        ),
        parameter("cache miss", costs.miss, "ns", assumed("a line over the bus that four Pentium III share")),
        parameter("atomic operation", costs.atomic, "ns", assumed("some 40 cycles at 700 MHz")),
        parameter("allocation or free", costs.slab, "ns", assumed("some 60 cycles at 700 MHz")),
        parameter("call", costs.call, "ns", assumed("some 20 cycles at 700 MHz")),
    ]
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
