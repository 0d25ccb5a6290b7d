//! Irlam 1990: throughput of a SPARCstation 1 against active virtual memory, on the model of its
//! pmegs.

pub(super) mod here;
mod sweeps;

use pagelab_analysis::figure::{Axis, Column, Plot, Series, Table};
use pagelab_analysis::stats::median;
use pagelab_model::parameter::{Declared, Parameter as Declaration, Parts, SEED, Seed};
use pagelab_model::parameter_table;
use pagelab_model::sun4::{self, Copies, FAMILY, Machine, Outcome, SPARCSTATION_1, Sun4, VmTest};
use pagelab_simulation::spread::each;
use serde::Deserialize;

use crate::book::{At, ModelFigure};
use crate::error::StudyError;
use crate::options::{Answers, Change, Options, Shown};
use crate::published::{Sheet, sheet};
use crate::study::{Parameter, columns, facts, log_rms, study_plot};

const NAME: &str = "irlam-1990";
pub(crate) const PUBLISHED: Sheet = sheet!("irlam-1990.csv");
pub(crate) const MACHINES: Sheet = sheet!("irlam-1990-family.csv");
/// Runs of which the smallest elapsed time counts, as the author gives it; how many he made is not
/// said.
const OF: u64 = 5;
/// So many times over, and the mean of that: heavily loaded rows vary by a tenth.
const GROUPS: u64 = 7;
/// The same under a change of the model, of which only the verdicts count.
const CHANGED_GROUPS: u64 = 2;
/// The knee is the last size at which the speed is above this share of the best.
const KNEE: f64 = 1.0 / 1.5;

#[derive(Clone, Deserialize)]
struct Row {
    #[serde(rename = "virtual_mb")]
    megabytes: u32,
    #[serde(rename = "relative_speed")]
    speed: f64,
    #[serde(rename = "elapsed_s")]
    elapsed: f64,
    #[serde(rename = "user_s")]
    user: f64,
    #[serde(rename = "system_s")]
    system: f64,
    #[serde(rename = "translation_faults")]
    faults: f64,
    swap_ins: f64,
}

#[derive(Clone, Copy)]
struct Mean {
    elapsed: f64,
    user: f64,
    system: f64,
    faults: f64,
    swap_ins: f64,
    allocations: f64,
    steals: f64,
    switches: f64,
    response_ms: Option<f64>,
}

fn mean(outcomes: &[Outcome]) -> Mean {
    let count = outcomes.len() as f64;
    let average = |of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / count;
    let responses: Vec<f64> = outcomes.iter().filter_map(|o| o.response_ms).collect();
    Mean {
        elapsed: average(|o| o.elapsed),
        user: average(|o| o.user),
        system: average(|o| o.system),
        faults: average(|o| o.faults as f64),
        swap_ins: average(|o| o.swap_ins as f64),
        allocations: average(|o| o.pool.allocations as f64),
        steals: average(|o| o.pool.steals as f64),
        switches: average(|o| o.switches as f64),
        response_ms: (!responses.is_empty()).then(|| responses.iter().sum::<f64>() / responses.len() as f64),
    }
}

/// Runs every (system, test) with each seed, on all cores; of each `of` runs the one with the
/// smallest elapsed time counts.
fn run_all(cases: &[(Sun4, VmTest)], seeds: std::ops::Range<u64>, of: usize) -> Vec<Mean> {
    // The last cases are the longest: they come first.
    let mut means = each(cases.len(), |turn| {
        let (system, test) = &cases[cases.len() - 1 - turn];
        let outcomes: Vec<Outcome> = seeds.clone().map(|seed| system.run(test, seed)).collect();
        let smallest = |runs: &[Outcome]| runs.iter().copied().min_by(|a, b| a.elapsed.total_cmp(&b.elapsed));
        mean(&outcomes.chunks(of).filter_map(smallest).collect::<Vec<_>>())
    });
    means.reverse();
    means
}

/// The size after which the speed falls below two thirds of the best, and the next.
fn knee(speeds: &[(u32, f64)]) -> Option<(u32, u32)> {
    drop_below(KNEE, speeds)
}

/// The last size after the best speed that is above `share` of it, and the next.
fn drop_below(share: f64, speeds: &[(u32, f64)]) -> Option<(u32, u32)> {
    let best = (0..speeds.len()).max_by(|&a, &b| speeds[a].1.total_cmp(&speeds[b].1))?;
    let after = &speeds[best..];
    after.windows(2).find(|pair| pair[1].1 < share * after[0].1).map(|pair| (pair[0].0, pair[1].0))
}

/// The size at which a line through the speeds after the best falls to `share` of it.
fn crossing(share: f64, speeds: &[(u32, f64)]) -> Option<f64> {
    let (last, next) = drop_below(share, speeds)?;
    let best = speeds.iter().map(|&(_, speed)| speed).fold(0.0, f64::max);
    let at = |size: u32| speeds.iter().find(|(megabytes, _)| *megabytes == size).map(|&(_, speed)| speed);
    let part = (at(last)? - share * best) / (at(last)? - at(next)?);
    Some(f64::from(last) + part * f64::from(next - last))
}

/// The parameters of the workload.
#[derive(Clone, Copy)]
struct Workload {
    /// Ticks between two polls of the parent.
    poll: u64,
    sleepers: u32,
    /// Runs of which the smallest elapsed time counts.
    of: u64,
}

const WORKLOAD: &[Declaration<Workload>] = parameter_table! {
    scaled "poll" "ms" [10.0, 10000.0] "polling interval of the parent, in ticks of 10 ms",
        documented("usleep(2 * (1000000 / 50)): four ticks and the current one"), (poll * 0.1);
    whole "sleepers" "" [0.0, 100.0] "processes waiting for the end of the test",
        fitted("the swap-ins of the 18 and 20 MB rows: shell, time and two more"), (sleepers);
    whole "runs" "" [1.0, 20.0] "runs of which the smallest elapsed time counts",
        assumed("the author does not state the number"), (of);
};

/// The inputs of the model.
struct Given {
    system: Sun4,
    workload: Workload,
    seed: Seed,
}

impl Given {
    fn usual(options: &Options) -> Self {
        let VmTest { poll, sleepers, .. } = VmTest::published(2);
        let workload = Workload { poll, sleepers, of: OF };
        Self { system: Sun4::sunos403(SPARCSTATION_1), workload, seed: Seed(options.seed) }
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts::default()
            .and(sun4::PARAMETERS, &mut self.system)
            .and(WORKLOAD, &mut self.workload)
            .and(SEED, &mut self.seed)
    }

    /// The inputs with the options' change.
    fn by(options: &Options) -> Result<Self, StudyError> {
        let mut given = Self::usual(options);
        options.apply(given.parts());
        given.system.check().map_err(|error| StudyError::Parameter(error.to_string()))?;
        let Self { system, .. } = &mut given;
        let costs = &mut system.costs;
        if options.without("more-pmegs") {
            system.locked = system.locked.saturating_sub(20);
        } else if options.without("dear-reads") {
            costs.read += costs.read / 4;
        } else if options.without("free-start") {
            (costs.test, costs.test_faults, costs.child, costs.child_faults) = (0, 0, 0, 0);
        } else if options.without("free-user-faults") {
            costs.fault_user = 0;
        } else if options.without("no-eager-swapping") {
            system.eager_swapping = false;
        } else if options.without("copies") {
            system.copies = Copies::All;
        }
        Ok(given)
    }
}

pub(crate) fn parameters(options: &Options) -> Result<Vec<Declared>, StudyError> {
    Ok(Given::usual(options).parts().declared())
}

/// What the claims are answered from.
struct Model {
    given: Given,
    cases: Vec<(Sun4, VmTest)>,
    rows: Vec<Mean>,
    speeds: Vec<(u32, f64)>,
}

fn model(options: &Options, published: &[Row]) -> Result<Model, StudyError> {
    let given = Given::by(options)?;
    let Workload { poll, sleepers, of } = given.workload;
    let of = of.max(1);
    let changed = matches!(options.change, Change::Without(_) | Change::Scaled(..));
    let groups = if changed { CHANGED_GROUPS } else { GROUPS };
    let poll = if options.without("rare-polls") { 10 * poll } else { poll };
    let test = |megabytes: u32| VmTest { sleepers, poll, ..VmTest::published(megabytes) };
    let cases: Vec<(Sun4, VmTest)> =
        published.iter().map(|row| (given.system, test(row.megabytes))).collect();
    let seed = given.seed.0;
    let rows = run_all(&cases, seed..seed + groups * of, of as usize);
    let speeds = speeds(&cases, &rows);
    Ok(Model { given, cases, rows, speeds })
}

/// Steals of pmegs that the author counted in 48 hours.
const COUNTED_STEALS: f64 = 2_685_512.0;

/// The claims' figures. The drop of 4 MB processes and the sleeper without eager swapping are runs
/// of their own.
fn answering(model: Model) -> Answers {
    let Given { system, workload, seed: Seed(seed) } = model.given;
    let few = seed..seed + 2;
    let last = *model.cases.last().expect("sixteen rows");
    let calm = Sun4 { eager_swapping: false, ..last.0 };
    let calm = (calm, last.1);
    let one = seed..seed + 1;
    Box::new(move |At { id, row }| {
        let at = || model.rows.get(row.checked_sub(1)?);
        let reach = |machine: &Machine| (machine.reach() >> 20) as f64;
        let last = model.rows.last()?;
        // How many times faster or slower a variant is than the model of this row.
        let variant = |row: usize, changed: Sun4, poll: u64| -> f64 {
            let test = VmTest { poll, ..model.cases[row - 1].1 };
            run_all(&[(changed, test)], one.clone(), 1)[0].elapsed / model.rows[row - 1].elapsed
        };
        let poll = model.cases[0].1.poll;
        Some(match id {
            "elapsed" => at()?.elapsed.into(),
            "faults" => at()?.faults.into(),
            "user" => at()?.user.into(),
            "system" => at()?.system.into(),
            "swap-ins" => at()?.swap_ins.into(),
            "knee" => knee(&model.speeds).map_or(f64::NAN, |(last, _)| f64::from(last)).into(),
            "swap-in-rate" => {
                let rates: Vec<f64> =
                    model.rows[10..].iter().map(|r| r.swap_ins / r.elapsed * 60.0).collect();
                median(&rates)?.into()
            }
            "four-mb-processes" => {
                let of = |speeds: &[(u32, f64)]| crossing(KNEE, speeds).unwrap_or(f64::NAN);
                let (small, large) = (of(&model.speeds), of(&sweeps::speeds_of_large(system, &few)));
                ModelFigure::of(large - small, format!("{large:.1} and {small:.1} MB"))
            }
            "faults-a-steal" => (last.faults / last.steals).into(),
            "faults-a-steal-of-32" => {
                let machine = *FAMILY.iter().find(|machine| machine.name == "4/1xx")?;
                let test = VmTest { passes: 1000, ..VmTest::published((machine.reach() >> 20) as u32) };
                let seen = run_all(&[(Sun4 { machine, ..system }, test)], few.start..few.start + 1, 1)[0];
                (seen.faults / seen.steals).into()
            }
            "ten-times-slower" => {
                let at = |row: usize| model.speeds[row - 1].1;
                let best = model.speeds.iter().map(|&(_, speed)| speed).fold(0.0, f64::max);
                (2.0 * best / (at(12) + at(13))).into()
            }
            "switches" => {
                let row = &model.rows[6];
                (row.switches / row.elapsed).into()
            }
            "hours-of-faults" => {
                let each = (system.costs.fault + system.costs.fault_user) as f64 / 3.6e12;
                (COUNTED_STEALS * last.faults / last.steals * each).into()
            }
            "libraries" => variant(8, Sun4 { libraries: true, ..system }, poll).into(),
            "copies" => (1.0 / variant(16, Sun4 { copies: Copies::All, ..system }, poll)).into(),
            "sharing" => (1.0 / variant(16, Sun4 { shared: true, ..system }, poll)).into(),
            "slices" => (1.0 / variant(16, system, 10 * workload.poll)).into(),
            "fault-cost" => (1e6 * last.system / last.faults).into(),
            "steals" => {
                let first = &model.rows[8];
                (100.0 * first.steals / first.allocations).into()
            }
            "reads-a-fault" => {
                let (test, pages) = (&model.cases[15].1, f64::from(SPARCSTATION_1.page));
                let reads = f64::from(test.children) * f64::from(test.passes) * test.bytes as f64 / pages;
                (reads / last.faults).into()
            }
            "answer-without-eager-swapping" => {
                let calm = run_all(&[calm], few.clone(), 1)[0].response_ms;
                last.response_ms.zip(calm).map_or(f64::NAN, |(with, without)| with / without).into()
            }
            "reach" => {
                let machines: Vec<(String, f64)> = MACHINES.rows().ok()?;
                let named = &machines.get(row.checked_sub(1)?)?.0;
                reach(FAMILY.iter().find(|machine| named.split(',').next() == Some(machine.name))?).into()
            }
            _ => return None,
        })
    })
}

pub(crate) fn answers(options: &Options) -> Result<Answers, StudyError> {
    Ok(answering(model(options, &PUBLISHED.rows::<Row>()?)?))
}

pub(crate) fn study(options: &Options) -> Result<(Answers, Shown), StudyError> {
    let published: Vec<Row> = PUBLISHED.rows()?;
    let mut model = model(options, &published)?;
    let parameters = parameter_list(model.given.parts().declared(), &model.cases[0].0.machine);
    let (rows, speeds) = (&model.rows, &model.speeds);
    let mut tables = vec![rows_table(&published, rows), hatcnt_table(&published, rows)];
    let beside = |runs: &[pagelab_experiment::Run]| here::beside(runs, &published, rows, speeds);
    let here = crate::here::repeated(&options.here, beside);
    let line = here::line(&options.here, &here, &published);
    let mut plots = rows_plots(&published, rows, speeds, line);
    if options.in_full {
        let few = options.seed..options.seed + 2;
        let one = options.seed..options.seed + 1;
        let (table, plot) = sweeps::family(&few);
        tables.push(table);
        plots.push(plot);
        tables.push(sweeps::sizes(&few));
        tables.push(sweeps::rates(&few));
        tables.push(sweeps::half(&few));
        let (table, plot) = sweeps::remedies(&one);
        tables.push(table);
        plots.push(plot);
        tables.push(sweeps::rules(&published, &one));
        let (table, plot) = sweeps::today(options.seed);
        tables.push(table);
        plots.push(plot);
    }
    let error = |of: fn(&Row) -> f64, by: fn(&Mean) -> f64| {
        log_rms(published.iter().zip(rows).map(|(row, mean)| (of(row), by(mean))))
    };
    let shown = Shown {
        parameters,
        here,
        tables,
        bars: Vec::new(),
        plots,
        opening: 1,
        notes: vec![
            format!(
                "Root mean square log error over all rows: elapsed {:.2}, faults {:.2}.",
                error(|row| row.elapsed, |mean| mean.elapsed),
                error(|row| row.faults, |mean| mean.faults)
            ),
            "The published 24 MB row is slower than the 26 MB row, and the author reports a spread of 30% \
             under heavy load. A smooth curve has to pass below the one and above the other."
                .into(),
            "The victim rule, the pmegs that users can get, the cost of a switch and the layout of a child \
             were chosen with the \
             table in view; the costs were read off it. Only the rate of swap-ins, the process size remark, \
             the sleeper's answer, the share of steals, the faults for each steal, the switches and that the \
             remedies help are predictions."
                .into(),
            "Swap-ins come from one daemon that sleeps 30 s and finds its pmegs gone, and from four processes \
             that wait for the test to end and come back once. Other daemons of that machine, which woke more \
             rarely, are not in the model."
                .into(),
            "With 64 pmegs and 8 MB, four children want 44 pmegs and users can get 31. One pmeg more or fewer changes \
             the time by a quarter to a third there, so a model of such a machine is no better known than its pool."
                .into(),
            "Costs are those of the SPARCstation 1 on every machine of the family, so that speeds compare \
             translation alone, not processors."
                .into(),
        ],
    };
    Ok((answering(model), shown))
}

fn speeds(cases: &[(Sun4, VmTest)], model: &[Mean]) -> Vec<(u32, f64)> {
    let one = model[0].elapsed / f64::from(cases[0].1.children);
    cases
        .iter()
        .zip(model)
        .map(|((_, test), mean)| {
            let megabytes = (u64::from(test.children) * test.bytes) >> 20;
            (megabytes as u32, f64::from(test.children) * one / mean.elapsed)
        })
        .collect()
}

fn rows_table(published: &[Row], model: &[Mean]) -> Table {
    let columns = ["elapsed", "user", "system"]
        .into_iter()
        .flat_map(|name| {
            [Column::new(format!("{name} published"), "s", 1), Column::new(format!("{name} model"), "s", 1)]
        })
        .chain([
            Column::new("faults published", "", 0),
            Column::new("faults model", "", 0),
            Column::new("swap-ins published", "", 0),
            Column::new("swap-ins model", "", 1),
        ])
        .collect();
    let mut table = Table::new(
        "vmtest on a SPARCstation 1 with SunOS 4.0.3, the smallest of five runs",
        "active memory",
        columns,
    );
    for (row, mean) in published.iter().zip(model) {
        table.row(
            format!("{} MB", row.megabytes),
            [
                row.elapsed,
                mean.elapsed,
                row.user,
                mean.user,
                row.system,
                mean.system,
                row.faults,
                mean.faults,
                row.swap_ins,
                mean.swap_ins,
            ]
            .map(Some),
        );
    }
    table
}

fn hatcnt_table(published: &[Row], model: &[Mean]) -> Table {
    let mut table = Table::new(
        "What hatcnt would have counted",
        "active memory",
        columns! {
            "" 0 "allocations" "steals";
            "%" 1 "steals of all allocations";
            "" 1 "faults for each steal";
            "1/s" 0 "faults per second" "faults per second published";
        },
    );
    for (row, mean) in published.iter().zip(model) {
        let stole = mean.steals > 0.0;
        table.row(
            format!("{} MB", row.megabytes),
            [
                Some(mean.allocations),
                Some(mean.steals),
                Some(100.0 * mean.steals / mean.allocations),
                stole.then(|| mean.faults / mean.steals),
                Some(mean.faults / mean.elapsed),
                Some(row.faults / row.elapsed),
            ],
        );
    }
    table
}

/// Published and model, and the speeds with the line of this machine where there is one.
fn rows_plots(published: &[Row], model: &[Mean], speeds: &[(u32, f64)], here: Option<Series>) -> Vec<Plot> {
    let both = |of: &dyn Fn(&Row) -> f64, by: &dyn Fn(usize) -> f64| {
        let x = |row: &Row| f64::from(row.megabytes);
        vec![
            Series::published("published", published.iter().map(|row| (x(row), of(row)))),
            Series::line("model", published.iter().enumerate().map(|(index, row)| (x(row), by(index)))),
        ]
    };
    let x = || Axis::linear("active virtual memory (MB)", "");
    let speed = study_plot(
        "Throughput against active virtual memory",
        x(),
        Axis::linear("relative speed", ""),
        both(&|row| row.speed, &|index| speeds[index].1).into_iter().chain(here).collect(),
    );
    vec![
        Plot { wide: true, ..speed },
        study_plot(
            "Translation faults",
            x(),
            Axis::log("faults", ""),
            both(&|row| row.faults, &|index| model[index].faults),
        ),
    ]
}

fn parameter_list(declared: Vec<Declared>, machine: &Machine) -> Vec<Parameter> {
    let kernels = "NetBSD arch/sparc/sparc/cpu.c; Linux arch/sparc/mm/sun4c.c";
    let facts = facts! {
        "entries in a pmeg", f64::from(machine.entries), "", documented(kernels);
        "pmegs of a child besides its data", 3.0, "",
            documented("Irlam, May 1990: text, data, stack and one for the kernel");
        "pmegs of the 2 MB segment", 8.0, "", assumed("a shared segment begins on a 256 KiB boundary");
    };
    Parameter::of(&declared).into_iter().chain(facts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_where_the_speed_falls() {
        assert_eq!(knee(&[(2, 1.0), (4, 1.2), (6, 0.81), (8, 0.5)]), Some((6, 8)));
        assert_eq!(knee(&[(2, 0.5), (4, 1.2)]), None);
        // Two thirds of 1.2 are 0.8.
        assert!((crossing(KNEE, &[(2, 1.0), (4, 1.2), (8, 0.4)]).unwrap() - 6.0).abs() < 1e-9);
    }

    /// A figure of the claims that is computed from the table.
    #[test]
    fn the_published_rate_and_drop_follow_from_the_table() {
        let rows: Vec<Row> = PUBLISHED.rows().unwrap();
        let rates: Vec<f64> = rows[10..].iter().map(|row| row.swap_ins / row.elapsed * 60.0).collect();
        assert!((median(&rates).unwrap() - 3.07).abs() < 0.01, "{rates:?}");
        let speeds: Vec<(u32, f64)> = rows.iter().map(|row| (row.megabytes, row.speed)).collect();
        assert!((crossing(KNEE, &speeds).unwrap() - 17.2).abs() < 0.05);
    }

    #[test]
    fn published_rows_say_what_they_say() {
        let rows: Vec<Row> = PUBLISHED.rows().unwrap();
        assert_eq!(rows.len(), 16);
        for row in &rows {
            let children = f64::from(row.megabytes) / 2.0;
            assert!((row.speed - 3.5 * children / row.elapsed).abs() <= 0.006, "{}", row.megabytes);
        }
    }
}
