//! Dillon 2011: DragonFly builds with one token for the VM system, and with finer locks.

use pagelab_analysis::figure::{Axis, BarRow, Bars, Column, Plot, Series, Table};
use pagelab_experiment::experiments::{Faultscale, Work};
use pagelab_experiment::{Experiment, Run};
use pagelab_model::locks::network::{Locks, simulate};
use pagelab_model::locks::{ALONE, Build, Machine, Outcome, Token};

use crate::book::{At, Said};
use crate::claim::{Parameter, Role, Standing, log_rms, study_plot};
use crate::here::{self, Live, at};
use crate::published::{Sheet, sheet};
use crate::{Answers, Options, Shown, StudyError};

const NAME: &str = "dillon-2011";
pub(crate) const PUBLISHED: Sheet = sheet!("dillon-2011.csv");
/// The rows that the three lock parameters are fitted on unless others are asked for: the kernel builds
/// with few and many jobs, and one build of the world in four.
const FIT: [usize; 5] = [4, 6, 12, 15, 16];
/// How much faster a processor of the small machine is: 2.8 GHz against 1.9.
const SPEED: f64 = 1.5;
/// Seconds of the kernel build with one job only.
const KERNEL_SERIAL: f64 = 45.0;
const KERNEL_PARALLEL: f64 = 322.0;
const WORLD_SERIAL: f64 = 1500.0;
const WORLD_PARALLEL: f64 = 4614.0;
const PHASES: u32 = 40;
/// Visits of a simulated run.
const CYCLES: u64 = 40_000;

#[derive(Clone, Debug)]
struct Row {
    number: usize,
    big: bool,
    world: bool,
    jobs: u32,
    copies: u32,
    before: bool,
    /// Phases of each kind, serial and parallel, in its build.
    phases: u32,
    real: f64,
    user: f64,
    system: f64,
}

impl Row {
    /// The row's name in a table's first column; what is not said to be test29's is monster's.
    fn short(&self) -> String {
        format!(
            "row {}: {}{} -j{}{} {}",
            self.number,
            if self.big { "" } else { "test29 " },
            if self.world { "world" } else { "kernel" },
            self.jobs,
            if self.copies > 1 { format!("×{}", self.copies) } else { String::new() },
            if self.before { "before" } else { "after" },
        )
    }
}

/// Machine, workload, jobs, copies, kernel; real, user and system time in s.
type Printed = (String, String, u32, u32, String, f64, f64, f64);

fn published() -> Result<Vec<Row>, StudyError> {
    let either = |text: &str, yes: &str, no: &str| match text {
        text if text == yes => Ok(true),
        text if text == no => Ok(false),
        text => Err(PUBLISHED.wrong(format!("'{text}' is neither {yes} nor {no}"))),
    };
    let rows: Vec<Printed> = PUBLISHED.rows()?;
    rows.into_iter()
        .zip(1..)
        .map(|((machine, workload, jobs, copies, kernel, real, user, system), number)| {
            Ok(Row {
                number,
                big: either(&machine, "monster", "test29")?,
                world: either(&workload, "buildworld", "buildkernel")?,
                before: either(&kernel, "prepatch", "postpatch")?,
                phases: PHASES,
                jobs,
                copies,
                real,
                user,
                system,
            })
        })
        .collect()
}

/// The lock before and after the patch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parameters {
    before: f64,
    after: f64,
    slowing: f64,
}

impl Parameters {
    fn token(&self, before: bool) -> Token {
        Token { held: if before { self.before } else { self.after }, slowing: self.slowing }
    }
}

fn perform(row: &Row, token: Token) -> Outcome {
    let (serial, parallel) =
        if row.world { (WORLD_SERIAL, WORLD_PARALLEL) } else { (KERNEL_SERIAL, KERNEL_PARALLEL) };
    let (processors, speed) = if row.big { (48, 1.0) } else { (4, SPEED) };
    let machine = Machine { processors, speed, throughput: token.throughput(processors) };
    Build { serial, parallel, jobs: row.jobs, phases: row.phases }.run(&machine, row.copies)
}

fn error(rows: &[&Row], parameters: &Parameters) -> f64 {
    log_rms(rows.iter().map(|row| (row.real, perform(row, parameters.token(row.before)).real)))
}

/// Fits by a pattern search: steps of each parameter up and down, halved when none helps.
fn fit(rows: &[&Row]) -> Parameters {
    let mut best = Parameters { before: 0.2, after: 0.1, slowing: 0.01 };
    let mut least = error(rows, &best);
    let mut step = 0.5f64;
    while step > 1e-4 {
        let mut moved = false;
        for index in 0..3 {
            for factor in [1.0 + step, 1.0 / (1.0 + step)] {
                let mut tried = best;
                match index {
                    0 => tried.before = (tried.before * factor).min(0.9),
                    1 => tried.after = (tried.after * factor).min(0.9),
                    _ => tried.slowing *= factor,
                }
                let found = error(rows, &tried);
                if found < least {
                    (best, least, moved) = (tried, found, true);
                }
            }
        }
        if !moved {
            step /= 2.0;
        }
    }
    best
}

/// The shares of the waits that are spun, and so counted as system time, before and after the patch; the rest of the
/// waits is counted as idle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spun {
    before: f64,
    after: f64,
}

impl Spun {
    fn of(self, row: &Row) -> f64 {
        if row.before { self.before } else { self.after }
    }
}

/// System time of the work itself, of a build alone. The small machine's is what it shows after the patch, where next
/// to nothing waits (rows 10, 11 and 14). The large one's is that of its kernel with four jobs after the patch (row 13)
/// without what was spun there; its world has as much more than the small machine's.
fn own_system(row: &Row, rows: &[Row], outcomes: &[Outcome], spun: Spun) -> f64 {
    let small = |world: bool| {
        let rows = rows.iter().filter(|other| !other.big && !other.before && other.world == world);
        rows.map(|other| other.system).fold(f64::INFINITY, f64::min)
    };
    if !row.big {
        return small(row.world);
    }
    let kernel = rows[FOUR_JOBS - 1].system - spun.after * outcomes[FOUR_JOBS - 1].waited;
    kernel / small(false) * small(row.world)
}

/// The row of the large machine's kernel with four jobs after the patch.
const FOUR_JOBS: usize = 13;

/// System time if these shares of the waits are counted as such.
fn system(row: &Row, rows: &[Row], outcomes: &[Outcome], spun: Spun) -> f64 {
    own_system(row, rows, outcomes, spun) + spun.of(row) * outcomes[row.number - 1].waited
}

/// The shares of the waits that are counted as system time, by the rows of the fit: of a hundred each the best.
fn spun(rows: &[Row], outcomes: &[Outcome], asked: &[usize]) -> Spun {
    let shares = || (0..=100).map(|n| f64::from(n) / 100.0);
    let error = |spun: Spun, before: bool| {
        let fitted = rows.iter().filter(|row| asked.contains(&row.number) && row.before == before);
        log_rms(fitted.map(|row| (row.system, system(row, rows, outcomes, spun))))
    };
    let best = |of: &dyn Fn(f64) -> f64| shares().min_by(|&a, &b| of(a).total_cmp(&of(b))).unwrap_or(1.0);
    let after = best(&|after| error(Spun { before: 0.0, after }, false));
    Spun { before: best(&|before| error(Spun { before, after }, true)), after }
}

fn rows_to_fit(options: &Options, rows: &[Row]) -> Result<Vec<usize>, StudyError> {
    let asked = options.fit.clone().unwrap_or_else(|| FIT.to_vec());
    let last = rows.len();
    if let Some(row) = asked.iter().find(|&&row| row == 0 || row > last) {
        return Err(StudyError::Fit(format!("there is no row {row}; the rows are 1 to {last}")));
    }
    let has = |before: bool| asked.iter().any(|&row| rows[row - 1].before == before);
    if asked.len() < 3 || !has(true) || !has(false) {
        let (old, new): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.before);
        let list =
            |rows: Vec<&Row>| rows.iter().map(|row| row.number.to_string()).collect::<Vec<_>>().join(", ");
        return Err(StudyError::Fit(format!(
            "three parameters need three rows at least, some from before the patch ({}) and some from after ({})",
            list(old),
            list(new)
        )));
    }
    Ok(asked)
}

/// Rows that the work of the builds is computed from: they are identities whatever is fitted.
const GIVEN: [usize; 3] = [10, 11, 14];
/// And the row that the large machine's own system time is taken from.
const GIVEN_SYSTEM: usize = FOUR_JOBS;

/// What the claims are answered from.
struct Model {
    rows: Vec<Row>,
    /// Numbers of the rows of the fit.
    asked: Vec<usize>,
    parameters: Parameters,
    /// The shares of the waits counted as system time.
    spun: Spun,
    outcomes: Vec<Outcome>,
    /// Seconds of buildkernel -j4 and -j48 before the patch, and -j48 later.
    few: f64,
    many: f64,
    later: f64,
}

fn model(options: &Options) -> Result<Model, StudyError> {
    let phases = options.assumed("phases", f64::from(PHASES)).round() as u32;
    let rows: Vec<Row> = published()?.into_iter().map(|row| Row { phases, ..row }).collect();
    let asked = rows_to_fit(options, &rows)?;
    let parameters = fit(&rows.iter().filter(|row| asked.contains(&row.number)).collect::<Vec<_>>());
    let token = |before: bool| {
        if options.without("no-lock") {
            Token::NONE
        } else {
            parameters.token(before || options.without("no-patch"))
        }
    };
    let outcomes: Vec<Outcome> = rows.iter().map(|row| perform(row, token(row.before))).collect();
    let spun = if options.without("waits-not-counted") {
        Spun { before: 0.0, after: 0.0 }
    } else {
        spun(&rows, &outcomes, &asked)
    };
    let kernel = |jobs, token| {
        let row = Row { jobs, copies: 1, world: false, big: true, ..rows[0].clone() };
        perform(&row, token).real
    };
    let later = if options.without("token-stays") { token(true) } else { Token::NONE };
    let (few, many, later) = (kernel(4, token(true)), kernel(48, token(true)), kernel(48, later));
    Ok(Model { asked, parameters, spun, outcomes, few, many, later, rows })
}

impl Model {
    fn role(&self, row: usize) -> Role {
        match row {
            given if GIVEN.contains(&given) => Role::Identity,
            fitted if self.asked.contains(&fitted) => Role::Fitted,
            _ => Role::HeldOut,
        }
    }

    /// By how many percent the row after the patch is faster than the one before.
    fn gain(&self, before: usize, after: usize) -> Said {
        let real = |row: usize| self.outcomes[row - 1].real;
        let fitted = [before, after].iter().all(|row| self.asked.contains(row));
        let role = if fitted { Role::Fitted } else { Role::HeldOut };
        Said { role: Some(role), ..Said::from(100.0 * (1.0 - real(after) / real(before))) }
    }
}

fn answering(model: Model) -> Answers {
    Box::new(move |At { id, row }| {
        let at = || {
            let index = row.checked_sub(1)?;
            Some((model.rows.get(index)?, model.outcomes.get(index)?))
        };
        let of = |figure: f64| Said { role: Some(model.role(row)), ..Said::from(figure) };
        Some(match id {
            "real" => {
                let real = at()?.1.real;
                // Row 14's system time is given, its real time is not.
                if row == 14 { real.into() } else { of(real) }
            }
            "system" => {
                let figure = system(at()?.0, &model.rows, &model.outcomes, model.spun);
                let role = if row == GIVEN_SYSTEM { Role::Identity } else { model.role(row) };
                Said { role: Some(role), ..Said::from(figure) }
            }
            "later" => model.later.into(),
            "retrograde" => {
                let both = model.asked.contains(&12) && model.asked.contains(&15);
                let role = if both { Role::Fitted } else { Role::HeldOut };
                let words = format!("{:.1} s with 4, {:.1} s with 48", model.few, model.many);
                Said { role: Some(role), ..Said::of(model.many / model.few, words) }
            }
            "gain-world" => model.gain(2, 3),
            "gain-worlds" => model.gain(4, 6),
            "gain-small" => model.gain(8, 10),
            "gain-kernel" => model.gain(15, 16),
            _ => return None,
        })
    })
}

pub(crate) fn answers(options: &Options) -> Result<Answers, StudyError> {
    Ok(answering(model(options)?))
}

pub(crate) fn study(options: &Options) -> Result<(Answers, Shown), StudyError> {
    let model = model(options)?;
    let Model { rows, asked, parameters, spun, outcomes, .. } = &model;
    let (finer, scaling) = finer(parameters, options.seed, rows);
    let held: Vec<(f64, f64)> = rows
        .iter()
        .zip(outcomes)
        .filter(|(row, _)| model.role(row.number) == Role::HeldOut)
        .map(|(row, outcome)| (row.real, outcome.real))
        .collect();
    let mut notes = vec![
        format!(
            "Rows fitted: {}. All others are predicted. The length of the world's phases comes from \
             rows 10 and 11, so those two check arithmetic, not the locks.",
            asked.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        ),
        "System time is the work's own and a share of the time that jobs wait at the lock: they spin a little, and \
         until 2013 the rest was counted as idle. The share differs between the rows (last column), most between \
         the kernel and the world, for no reason that the model has; one share before and one after the patch do not \
         meet them all."
            .into(),
        "The world's parallel phases have all their jobs throughout. Phases of one to forty jobs, as linkers that \
         everything waits for would make them, were tried: the waits of one world fall by half, but its real times \
         come out a quarter too short (rows 1 to 3)."
            .into(),
        "User time grows from 277 to 360 s between 4 and 48 jobs (caches, distant memory). The model's \
         work does not grow."
            .into(),
    ];
    if !held.is_empty() {
        notes.insert(
            0,
            format!("Rows held out: root mean square log error of real time {:.3}.", log_rms(held)),
        );
    }
    let shown = Shown {
        parameters: parameter_list(
            parameters,
            *spun,
            own_system(&rows[12], rows, outcomes, *spun) / rows[13].system,
            asked,
        ),
        here: here::repeated(&options.here, |runs| here(runs, parameters, rows)),
        tables: vec![
            rows_table(rows, outcomes, *spun, asked),
            events_table(parameters, options.seed),
            finer,
            paths(),
        ],
        bars: [(false, "kernel"), (true, "world")]
            .map(|(world, name)| builds_bars(rows, outcomes, world, name))
            .into(),
        plots: vec![jobs_plot(parameters, rows), scaling],
        opening: 1,
        notes,
    };
    Ok((answering(model), shown))
}

/// Real times of the builds of a kernel or a world, each machine's before and after the patch.
fn builds_bars(rows: &[Row], outcomes: &[Outcome], world: bool, name: &str) -> Bars {
    let mut builds: Vec<&Row> = rows.iter().filter(|row| row.world == world).collect();
    builds.sort_by_key(|row| (!row.big, row.copies, row.jobs, !row.before));
    let bar = |row: &&Row| {
        let model = outcomes[row.number - 1].real;
        let bar = BarRow::new(row.short(), Some(row.real), Some(model)).of(format!("real/{}", row.number));
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

fn here(runs: &[Run], parameters: &Parameters, rows: &[Row]) -> Table {
    let live = live();
    let columns = vec![
        Column::new("work of a build a second, before, published", "s/s", 2),
        Column::new("before, model", "s/s", 2),
        Column::new("after, published", "s/s", 2),
        Column::new("after, model", "s/s", 2),
        Column::new("here", "s/s", 2),
        Column::new("zero-fill faults, one token, model", "/s", 0),
        Column::new("queues divided, model", "/s", 0),
        Column::new("here", "/s", 0),
    ];
    let mut table = here::table(NAME, &live, runs, "jobs", columns);
    let [build, faults] = [0, 1].map(|n| live[n].seen(runs).and_then(|seen| seen.table("faultscale")));
    let models = [parameters.token(true), parameters.token(false), Token::ZERO_FILL, Token::ZERO_FILL_QUEUES]
        .map(|t| t.throughput(48));
    let printed = |jobs: u32, before: bool| {
        let row = rows.iter().find(|row| row.big && !row.world && row.jobs == jobs && row.before == before);
        row.map(|row| KERNEL_PARALLEL / (row.real - KERNEL_SERIAL))
    };
    let elapsed = |jobs: u32| at(build?, "workers", f64::from(jobs), "time.elapsed");
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
                faults.and_then(|seen| at(seen, "workers", f64::from(jobs), "throughput")),
            ],
        );
    }
    table
}

fn rows_table(rows: &[Row], outcomes: &[Outcome], spun: Spun, asked: &[usize]) -> Table {
    let mut table = Table::new(
        "Every published row",
        "row",
        vec![
            Column::new("in the fit", "", 0),
            Column::new("real published", "s", 1),
            Column::new("real model", "s", 1),
            Column::new("distance", "%", 1),
            Column::new("user published", "s", 0),
            Column::new("system published", "s", 0),
            Column::new("system model", "s", 0),
            Column::new("of it spun at the lock", "s", 0),
            Column::new("waited at the lock and idle, model", "s", 0),
            Column::new("of the waits, published as system", "%", 0),
        ],
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
fn events_table(parameters: &Parameters, seed: u64) -> Table {
    let mut table = Table::new(
        "One lock for all (vm_token before, vmobj_token and the queues after): work done in a second by so many jobs",
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
fn finer(parameters: &Parameters, seed: u64, rows: &[Row]) -> (Table, Plot) {
    let token = parameters.token(true);
    let mut table = Table::new(
        "Finer locks than before the patch, by events: work done by 48 jobs, and buildkernel -j48",
        "locks",
        vec![Column::new("work in a second", "s/s", 1), Column::new("buildkernel -j48", "s", 1)],
    );
    let simulated = |global: f64, shared: f64| {
        let locks = Locks { token, global, shared, objects: 12, exponential: true };
        simulate(&locks, 48, CYCLES, seed).rate
    };
    let time = |rate: f64| KERNEL_SERIAL + KERNEL_PARALLEL / rate.min(48.0);
    for (name, global, shared) in [
        ("vm_token alone", 1.0, 0.0),
        ("64 % under vm_token, 30 % of the rest on 12 objects", 0.64, 0.3),
        ("30 % under vm_token, 30 % of the rest on 12 objects", 0.3, 0.3),
        ("10 % under vm_token, 30 % of the rest on 12 objects", 0.1, 0.3),
        ("objects only, 30 % on 12 that all share", 0.0, 0.3),
        ("objects only, all work on 12 that all share", 0.0, 1.0),
        ("locks that nobody shares", 0.0, 0.0),
    ] {
        let rate = simulated(global, shared);
        table.row(name, [Some(rate), Some(time(rate))]);
    }
    let line = |name: &str, token: Token| {
        Series::line(name, token.throughput(64).into_iter().enumerate().skip(1).map(|(n, x)| (n as f64, x)))
    };
    // Real times of the kernel builds, turned into the rate that they need.
    let marks = |before: bool| {
        Series::published(
            format!("published, {} the patch", if before { "before" } else { "after" }),
            rows.iter()
                .filter(|row| row.big && !row.world && row.before == before)
                .map(|row| (f64::from(row.jobs), KERNEL_PARALLEL / (row.real - KERNEL_SERIAL))),
        )
    };
    let plot = study_plot(
        "Work that n jobs do in a second",
        Axis::linear("jobs", ""),
        Axis::log("seconds of work a second", ""),
        vec![
            marks(true),
            marks(false),
            line("before the patch", parameters.token(true)),
            line("after the patch", parameters.token(false)),
            line("no lock", Token::NONE),
        ],
    );
    (table, plot)
}

fn jobs_plot(parameters: &Parameters, rows: &[Row]) -> Plot {
    let line = |name: &str, token: Token| {
        Series::line(
            name,
            [1u32, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]
                .map(|jobs| {
                    let row = Row { jobs, copies: 1, world: false, big: true, ..rows[0].clone() };
                    (f64::from(jobs), perform(&row, token).real)
                })
                .to_vec(),
        )
    };
    let marks = |before: bool| {
        Series::published(
            format!("published, {} the patch", if before { "before" } else { "after" }),
            rows.iter()
                .filter(|row| row.big && !row.world && row.before == before)
                .map(|row| (f64::from(row.jobs), row.real)),
        )
    };
    study_plot(
        "buildkernel on 48 processors",
        Axis::log("jobs (-j)", ""),
        Axis::log("real time (s)", ""),
        vec![
            marks(true),
            marks(false),
            line("before the patch", parameters.token(true)),
            line("after the patch", parameters.token(false)),
            line("no lock", Token::NONE),
        ],
    )
}

/// Service demands of the zero-fill fault, from the rates in the commit messages.
fn paths() -> Table {
    let mut table = Table::new(
        "A zero-fill fault, from published ceilings: one process alone makes 35,000 a second",
        "kernel",
        vec![
            Column::new("ceiling", "faults/s", 0),
            Column::new("time of a fault alone", "µs", 1),
            Column::new("of it serial", "µs", 1),
            Column::new("useful processors", "", 1),
        ],
    );
    for (name, ceiling) in
        [("one token (200,000 to 250,000)", 225_000.0), ("queues fanned out (about 900,000)", 900_000.0)]
    {
        table.row(name, [Some(ceiling), Some(1e6 / 35e3), Some(1e6 / ceiling), Some(ceiling / 35e3)]);
    }
    table
}

fn parameter_list(parameters: &Parameters, spun: Spun, own: f64, asked: &[usize]) -> Vec<Parameter> {
    let rows = asked.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let fitted = || Standing::Fitted { on: format!("real times of rows {rows}") };
    let parameter = |name, value, unit, standing| Parameter { name, value, unit, standing };
    vec![
        parameter("work under vm_token before the patch", 100.0 * parameters.before, "%", fitted()),
        parameter(
            "work under what all share after it: vmobj_token and the page queues' locks",
            100.0 * parameters.after,
            "%",
            fitted(),
        ),
        parameter("by which each waiter lengthens a hold", 100.0 * parameters.slowing, "%", fitted()),
        parameter(
            "waits spun before the patch: system time; the rest is idle",
            100.0 * spun.before,
            "%",
            Standing::Fitted { on: format!("system times of rows {rows}") },
        ),
        parameter(
            "and after it",
            100.0 * spun.after,
            "%",
            Standing::Fitted { on: format!("system times of rows {rows}") },
        ),
        parameter(
            "the work's own system time on monster",
            own,
            "× test29's",
            Standing::Derived {
                from: "row 13 (monster, four jobs, after), less what is spun there, through row 14",
            },
        ),
        parameter("buildkernel, one job", KERNEL_SERIAL, "s", Standing::Documented { source: "Dillon 2011" }),
        parameter(
            "buildkernel, parallel work",
            KERNEL_PARALLEL,
            "s",
            Standing::Derived { from: "277 s user and about 90 s system without waits, less 45 s" },
        ),
        parameter(
            "buildworld, one job",
            WORLD_SERIAL,
            "s",
            Standing::Derived { from: "rows 10 and 11: S + (4,077 − S)/4 = 1,770 s, 1.5 times as long" },
        ),
        parameter(
            "buildworld, parallel work",
            WORLD_PARALLEL,
            "s",
            Standing::Derived {
                from: "rows 10 and 11: user and system time less the serial part, 1.5 times",
            },
        ),
        parameter("processor of test29", SPEED, "×", Standing::Derived { from: "2.8 GHz against 1.9" }),
        parameter(
            "phases of each kind",
            f64::from(PHASES),
            "",
            Standing::Assumed { why: "only with four builds does it matter that there are many" },
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_to_fit_are_checked() {
        let rows = published().unwrap();
        let ask =
            |fit: &[usize]| rows_to_fit(&Options { fit: Some(fit.to_vec()), ..Options::default() }, &rows);
        assert_eq!(ask(&[4, 15, 16]), Ok(vec![4, 15, 16]));
        for wrong in [&[][..], &[0, 1, 2], &[1, 2, 18], &[1, 2, 4], &[3, 6, 7]] {
            assert!(ask(wrong).is_err(), "{wrong:?}");
        }
    }

    /// The target that builds a kernel has the lock of the study's own fit.
    #[test]
    fn the_targets_token_is_the_fitted_one() {
        let model = model(&Options::default()).unwrap();
        let token = model.parameters.token(true);
        assert!((token.held / Token::BUILD.held - 1.0).abs() < 0.01, "{token:?}");
        assert!((token.slowing / Token::BUILD.slowing - 1.0).abs() < 0.02, "{token:?}");
    }

    #[test]
    fn a_fit_finds_parameters_that_made_the_rows() {
        let made = Parameters { before: 0.25, after: 0.12, slowing: 0.02 };
        let rows: Vec<Row> = published()
            .unwrap()
            .into_iter()
            .map(|row| Row { real: perform(&row, made.token(row.before)).real, ..row })
            .collect();
        let found = fit(&rows.iter().collect::<Vec<_>>());
        assert!((found.before / made.before - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.after / made.after - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.slowing / made.slowing - 1.0).abs() < 0.05, "{found:?}");
    }
}
