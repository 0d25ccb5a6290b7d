//! What the study of Dillon's builds shows beside its claims: bars and tables by row, this machine's builds, finer locks, jobs,
//! the parameters.

use pagelab_analysis::figure::{Axis, BarRow, Bars, Column, Plot, Series, Table};
use pagelab_experiment::experiments::{Faultscale, Work};
use pagelab_experiment::tables::faultscale;
use pagelab_experiment::{Experiment, Run};
use pagelab_model::locks::network::{Locks, simulate};
use pagelab_model::locks::{ALONE, Outcome, Token};

use super::*;
use crate::here::{self, Live, at};
use crate::study::{Parameter, columns, facts, study_plot};

/// Real times of the builds of a kernel or a world, each machine's before and after the patch.
pub(super) fn builds_bars(rows: &[Row], outcomes: &[Outcome], world: bool, name: &str) -> Bars {
    let mut builds: Vec<&Row> = rows.iter().filter(|row| row.world == world).collect();
    builds.sort_by_key(|row| (!row.big, row.copies, row.jobs, !row.before));
    let bar = |row: &&Row| {
        let model = outcomes[row.number - 1].real;
        // Rows that repeat one measurement are one claim, under the number of the first.
        let first = rows.iter().find(|other| other.configuration() == row.configuration()).unwrap_or(row);
        let bar = BarRow::new(row.short(), Some(row.real), Some(model)).of(format!("real/{}", first.number));
        BarRow { color: usize::from(!row.before), ..bar }
    };
    Bars {
        title: format!("Real time of build{name} by kernel"),
        caption: "Before the patch one token is held for the whole of the VM system. What is not said to be test29's \
                  (4 processors) is monster's (48)."
            .into(),
        unit: "s",
        decimals: 0,
        models: vec!["model, before the patch", "model, after it"],
        rows: builds.iter().map(bar).collect(),
    }
}

const WORKERS: [u32; 4] = [1, 2, 4, 8];
/// Jobs of the small build, and its sources.
const JOBS: [u32; 3] = [1, 2, 4];
const SOURCES: u32 = 6;

/// A small build, and zero-fill faults, by the number of workers.
pub(crate) fn live() -> Vec<Live> {
    let build =
        Faultscale { work: Work::Build, workers: JOBS.to_vec(), sources: SOURCES, ..Faultscale::default() };
    let faults =
        Faultscale { work: Work::Anon, workers: WORKERS.to_vec(), seconds: 0.3, ..Faultscale::default() };
    vec![
        Live::free("build", Experiment::Faultscale(build)),
        Live::free("faults", Experiment::Faultscale(faults)),
    ]
}

pub(super) fn here(runs: &[Run], parameters: &Parameters, rows: &[Row]) -> Table {
    let live = live();
    let columns = columns! {
        "s/s" 2 "work of a build per second, before, published" "before, model" "after, published" "after, model"
            "here";
        "/s" 0 "zero-fill faults, one token, model" "queues divided, model" "here";
    };
    let mut table = here::table(NAME, &live, runs, "jobs", columns);
    let [build, faults] = [0, 1].map(|n| live[n].seen(runs).and_then(|seen| seen.table(faultscale::TABLE)));
    let models = [parameters.token(true), parameters.token(false), Token::ZERO_FILL, Token::ZERO_FILL_QUEUES]
        .map(|t| t.throughput(48));
    let printed = |jobs: u32, before: bool| {
        let row = rows.iter().find(|row| row.big && !row.world && row.jobs == jobs && row.before == before);
        row.map(|row| KERNEL_PARALLEL / (row.real - KERNEL_SERIAL))
    };
    let elapsed = |jobs: u32| at(build?, faultscale::WORKERS, f64::from(jobs), faultscale::TIME_ELAPSED);
    for jobs in WORKERS.into_iter().chain([48]) {
        let model = |n: usize| models[n][jobs as usize];
        table.row(
            jobs.to_string(),
            [
                printed(jobs, true),
                Some(model(0)),
                printed(jobs, false),
                Some(model(1)),
                elapsed(1).zip(elapsed(jobs)).map(|(one, many)| one / many),
                Some(model(2) * ALONE),
                Some(model(3) * ALONE),
                faults
                    .and_then(|seen| at(seen, faultscale::WORKERS, f64::from(jobs), faultscale::THROUGHPUT)),
            ],
        );
    }
    table
}

pub(super) fn rows_table(rows: &[Row], outcomes: &[Outcome], spun: Spun, asked: &[usize]) -> Table {
    let mut table = Table::new(
        "Every published row",
        "row",
        columns! {
            "" 0 "in the fit";
            "s" 1 "real published" "real model";
            "%" 1 "distance";
            "s" 0 "user published" "system published" "system model" "of it spun at the lock"
                "waited at the lock and idle, model";
            "%" 0 "of the waits, published as system";
        },
    );
    for (row, outcome) in rows.iter().zip(outcomes) {
        let beyond = row.system - own_system(row, rows, outcomes, spun);
        table.row(
            row.short(),
            [
                Some(f64::from(u8::from(asked.contains(&row.number)))),
                Some(row.real),
                Some(outcome.real),
                Some(100.0 * (outcome.real / row.real - 1.0)),
                Some(row.user),
                Some(row.system),
                Some(system(row, rows, outcomes, spun)),
                Some(spun.of(row) * outcome.waited),
                Some((1.0 - spun.of(row)) * outcome.waited),
                (outcome.waited > 0.0).then(|| 100.0 * beyond / outcome.waited),
            ],
        );
    }
    table
}

/// The exact solution beside discrete events.
pub(super) fn events_table(parameters: &Parameters, seed: u64) -> Table {
    let mut table = Table::new(
        "One lock for all (vm_token before, vmobj_token and the queues after): work per second by number of jobs",
        "jobs",
        ["before, exact", "before, by events", "after, exact", "after, by events"]
            .map(|name| Column::new(name, "s/s", 2))
            .to_vec(),
    );
    let exact = [true, false].map(|before| parameters.token(before).throughput(48));
    for jobs in [1u32, 2, 4, 8, 16, 32, 48] {
        let events = [true, false]
            .map(|before| Some(simulate(&Locks::one(parameters.token(before)), jobs, CYCLES, seed).rate));
        let at = jobs as usize;
        table.row(jobs.to_string(), [Some(exact[0][at]), events[0], Some(exact[1][at]), events[1]]);
    }
    table
}

/// What finer locks are worth: the share of locked work left under the token, and on shared objects.
pub(super) fn finer(parameters: &Parameters, seed: u64, rows: &[Row]) -> (Table, Plot) {
    let token = parameters.token(true);
    let mut table = Table::new(
        "Finer locks than before the patch, by events: work done by 48 jobs, and buildkernel -j48",
        "locks",
        vec![Column::new("work per second", "s/s", 1), Column::new("buildkernel -j48", "s", 1)],
    );
    let simulated = |global: f64, shared: f64| {
        let locks = Locks { token, global, shared, objects: 12, exponential: true };
        simulate(&locks, 48, CYCLES, seed).rate
    };
    let time = |rate: f64| KERNEL_SERIAL + KERNEL_PARALLEL / rate.min(48.0);
    for (name, global, shared) in [
        ("vm_token alone", 1.0, 0.0),
        ("64% under vm_token, 30% of the rest on 12 objects", 0.64, 0.3),
        ("30% under vm_token, 30% of the rest on 12 objects", 0.3, 0.3),
        ("10% under vm_token, 30% of the rest on 12 objects", 0.1, 0.3),
        ("objects only, 30% on 12 that all share", 0.0, 0.3),
        ("objects only, all work on 12 that all share", 0.0, 1.0),
        ("locks that nobody shares", 0.0, 0.0),
    ] {
        let rate = simulated(global, shared);
        table.row(name, [Some(rate), Some(time(rate))]);
    }
    // Real times of the kernel builds, turned into the rate that they need.
    let published = |row: &Row| KERNEL_PARALLEL / (row.real - KERNEL_SERIAL);
    let model = |token: Token| {
        token.throughput(64).into_iter().enumerate().skip(1).map(|(n, x)| (n as f64, x)).collect()
    };
    let series = by_patch(parameters, rows, published, model);
    let jobs = Axis::linear("jobs", "");
    (
        table,
        study_plot("Work of n jobs per second", jobs, Axis::log("seconds of work per second", ""), series),
    )
}

pub(super) fn jobs_plot(parameters: &Parameters, rows: &[Row]) -> Plot {
    let kernel = rows.iter().find(|row| row.big && !row.world).unwrap_or(&rows[0]);
    let model = |token: Token| {
        let real = |jobs: u32| perform(&Row { jobs, copies: 1, ..kernel.clone() }, token).real;
        [1u32, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48].map(|jobs| (f64::from(jobs), real(jobs))).to_vec()
    };
    let series = by_patch(parameters, rows, |row| row.real, model);
    study_plot(
        "buildkernel on 48 processors",
        Axis::log("jobs (-j)", ""),
        Axis::log("real time (s)", ""),
        series,
    )
}

/// Of the kernel builds on the large machine by their jobs: what was published before and after the patch, and the model's
/// lines with each token and with none.
fn by_patch(
    parameters: &Parameters,
    rows: &[Row],
    published: impl Fn(&Row) -> f64,
    model: impl Fn(Token) -> Vec<(f64, f64)>,
) -> Vec<Series> {
    let marks = |before: bool| {
        let builds = rows.iter().filter(|row| row.big && !row.world && row.before == before);
        Series::published(
            format!("published, {} the patch", if before { "before" } else { "after" }),
            builds.map(|row| (f64::from(row.jobs), published(row))),
        )
    };
    vec![
        marks(true),
        marks(false),
        Series::line("before the patch", model(parameters.token(true))),
        Series::line("after the patch", model(parameters.token(false))),
        Series::line("no lock", model(Token::NONE)),
    ]
}

/// Service demands of the zero-fill fault, from the rates in the commit messages.
pub(super) fn paths() -> Table {
    let mut table = Table::new(
        "A zero-fill fault, from published ceilings: one process alone makes 35,000 per second",
        "kernel",
        columns! {
            "faults/s" 0 "ceiling";
            "µs" 1 "time of a fault alone" "of it serial";
            "" 1 "useful processors";
        },
    );
    for (name, ceiling) in
        [("one token (200,000 to 250,000)", 225_000.0), ("queues fanned out (about 900,000)", 900_000.0)]
    {
        table.row(name, [Some(ceiling), Some(1e6 / 35e3), Some(1e6 / ceiling), Some(ceiling / 35e3)]);
    }
    table
}

pub(super) fn parameter_list(declared: &[Declared], own: f64) -> Vec<Parameter> {
    let facts = facts! {
        "the work's own system time on monster", own, "× test29's",
            derived("row 13 (monster, four jobs, after), less what is spun there, through row 14");
    };
    Parameter::of(declared).into_iter().chain(facts).collect()
}
