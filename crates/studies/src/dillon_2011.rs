//! Dillon 2011: DragonFly builds with one token for the VM system, and with finer locks.

mod shown;

use pagelab_model::locks::{Build, Machine, Outcome, Token};
use pagelab_model::parameter::{Declared, Parameter as Declaration, Parts};
use pagelab_model::parameter_table;

pub(crate) use self::shown::live;
use self::shown::{builds_bars, events_table, finer, jobs_plot, parameter_list, paths, rows_table};
use crate::book::{At, ModelFigure};
use crate::claim::Role;
use crate::error::StudyError;
use crate::here;
use crate::options::{Answers, Options, Shown};
use crate::published::{Sheet, sheet};
use crate::study::log_rms;

const NAME: &str = "dillon-2011";
pub(crate) const PUBLISHED: Sheet = sheet!("dillon-2011.csv");
/// The rows that the three lock parameters are fitted on unless others are asked for: the kernel
/// builds with few and many jobs, and one build of the world in four.
const FIT: [usize; 5] = [4, 6, 12, 15, 16];
/// How much faster a processor of the small machine is: 2.8 GHz against 1.9.
const SPEED: f64 = 1.5;
/// Seconds of the kernel build with one job only.
const KERNEL_SERIAL: f64 = 45.0;
/// Of its user time with four jobs on the large machine (rows 12 and 13).
const KERNEL_USER: f64 = 277.0;
/// Of the work's own system time, that of row 13 without what was spun there.
const KERNEL_OWN: f64 = 119.0;
/// Seconds of work with all its jobs.
const KERNEL_PARALLEL: f64 = KERNEL_USER + KERNEL_OWN - KERNEL_SERIAL;
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
    /// The speed of its machine's CPUs relative to the large machine's, and their number.
    speed: f64,
    processors: u32,
    /// Seconds of serial and of parallel work.
    serial: f64,
    parallel: f64,
    real: f64,
    user: f64,
    system: f64,
}

impl Row {
    /// What was measured; rows of the same repeat each other.
    fn configuration(&self) -> (bool, bool, u32, u32, bool) {
        (self.big, self.world, self.jobs, self.copies, self.before)
    }

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

/// The published rows, with the parameters of the machines.
fn published(of: &Machines) -> Result<Vec<Row>, StudyError> {
    let either = |text: &str, yes: &str, no: &str| match text {
        text if text == yes => Ok(true),
        text if text == no => Ok(false),
        text => Err(PUBLISHED.wrong(format!("'{text}' is neither {yes} nor {no}"))),
    };
    let rows: Vec<Printed> = PUBLISHED.rows()?;
    rows.into_iter()
        .zip(1..)
        .map(|((machine, workload, jobs, copies, kernel, real, user, system), number)| {
            let big = either(&machine, "monster", "test29")?;
            let world = either(&workload, "buildworld", "buildkernel")?;
            Ok(Row {
                number,
                big,
                world,
                before: either(&kernel, "prepatch", "postpatch")?,
                phases: of.phases,
                speed: if big { 1.0 } else { of.speed },
                processors: if big { of.processors } else { of.small },
                serial: if world { of.world_serial } else { of.serial },
                parallel: if world { of.world_parallel } else { of.parallel },
                jobs,
                copies,
                real,
                user,
                system,
            })
        })
        .collect()
}

/// The two machines, and the work of their builds.
#[derive(Clone, Copy, Debug)]
struct Machines {
    processors: u32,
    small: u32,
    /// The speed of a CPU of the small machine, relative to one of the large machine.
    speed: f64,
    /// Seconds of serial and of parallel work of the builds of a kernel and a world.
    serial: f64,
    parallel: f64,
    world_serial: f64,
    world_parallel: f64,
    /// Phases of each kind in a build.
    phases: u32,
}

const MACHINES: Machines = Machines {
    processors: 48,
    small: 4,
    speed: SPEED,
    serial: KERNEL_SERIAL,
    parallel: KERNEL_PARALLEL,
    world_serial: WORLD_SERIAL,
    world_parallel: WORLD_PARALLEL,
    phases: PHASES,
};

const WORK: &[Declaration<Machines>] = parameter_table! {
    whole "processors" "" [1.0, 1024.0] "CPUs of monster", documented("Dillon 2011"), (processors);
    whole "small-processors" "" [1.0, 1024.0] "CPUs of test29", documented("Dillon 2011"), (small);
    number "speed" "×" [0.1, 100.0] "speed of a test29 CPU relative to a monster CPU",
        derived("2.8 GHz and 1.9 GHz"), (speed);
    number "serial" "s" [1.0, 100000.0] "buildkernel, serial work", documented("Dillon 2011"), (serial);
    number "parallel" "s" [1.0, 100000.0] "buildkernel, parallel work",
        derived("277 s user time and the work's own system time of row 13, minus 45 s"), (parallel);
    number "world-serial" "s" [1.0, 100000.0] "buildworld, serial work",
        derived("rows 10 and 11: S + (4,077 − S)/4 = 1,770 s, times 1.5"), (world_serial);
    number "world-parallel" "s" [1.0, 100000.0] "buildworld, parallel work",
        derived("rows 10 and 11: user and system time minus the serial part, times 1.5"), (world_parallel);
    whole "phases" "" [1.0, 1000.0] "phases of each kind (serial, parallel) in a build",
        assumed("a large number matters only with four builds; the locks are fitted with it"), (phases);
};

/// The lock before and after the patch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parameters {
    before: f64,
    after: f64,
    slowing: f64,
}

const LOCKS: &[Declaration<Parameters>] = parameter_table! {
    number "before" "" [0.0, 0.95] "share of work under vm_token before the patch",
        fitted("the real times of the fitted rows"), (before);
    number "after" "" [0.0, 0.95] "share of work under common locks after the patch: vmobj_token and the page queues' locks",
        fitted("the real times of the fitted rows"), (after);
    number "slowing" "" [0.0, 1.0] "increase of the hold time per waiter, as a share",
        fitted("the real times of the fitted rows"), (slowing);
};

impl Parameters {
    fn token(&self, before: bool) -> Token {
        Token { held: if before { self.before } else { self.after }, slowing: self.slowing }
    }
}

fn perform(row: &Row, token: Token) -> Outcome {
    let Row { serial, parallel, processors, .. } = *row;
    let machine = Machine { processors, speed: row.speed, throughput: token.throughput(processors) };
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

/// The shares of the waits that are spun, and so counted as system time, before and after the
/// patch; the rest of the waits is counted as idle.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spun {
    before: f64,
    after: f64,
}

const SPINS: &[Declaration<Spun>] = parameter_table! {
    number "spun-before" "" [0.0, 1.0] "share of waits spent spinning before the patch (system time; the rest is idle)",
        fitted("the system times of the fitted rows"), (before);
    number "spun-after" "" [0.0, 1.0] "share of waits spent spinning after the patch",
        fitted("the system times of the fitted rows"), (after);
};

impl Spun {
    fn of(self, row: &Row) -> f64 {
        if row.before { self.before } else { self.after }
    }
}

/// System time of the work itself, of a build alone. The small machine's is what it shows after the
/// patch, where next to nothing waits (rows 10, 11 and 14). The large one's is that of its kernel
/// with four jobs after the patch (row 13) without what was spun there; its world has as much more
/// than the small machine's.
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

/// The shares of the waits that are counted as system time, by the rows of the fit: of a hundred
/// each the best.
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

/// User time of a build alone, by how much faster a processor of the small machine is. The world's
/// is read off the small machine (rows 10 and 11), the kernel's off the large one. It grows neither
/// with jobs nor with builds.
fn user(row: &Row, rows: &[Row], speed: f64) -> f64 {
    match (row.world, row.big) {
        (true, big) => (rows[9].user + rows[10].user) / 2.0 * if big { speed } else { 1.0 },
        (false, true) => KERNEL_USER,
        (false, false) => KERNEL_USER / speed,
    }
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
            "three parameters need at least three rows, some from before the patch ({}) and some from after ({})",
            list(old),
            list(new)
        )));
    }
    Ok(asked)
}

/// Rows that the work of the world is computed from: they are identities whatever is fitted.
const GIVEN: [usize; 2] = [10, 11];
/// And the rows that the work's own system time is taken from.
const GIVEN_SYSTEM: [usize; 4] = [10, 11, FOUR_JOBS, 14];

/// What the claims are answered from.
struct Model {
    /// The parameters with their values.
    declared: Vec<Declared>,
    rows: Vec<Row>,
    /// Numbers of the rows of the fit.
    asked: Vec<usize>,
    parameters: Parameters,
    /// The shares of the waits counted as system time.
    spun: Spun,
    outcomes: Vec<Outcome>,
    /// The speed of a CPU of the small machine, relative to one of the large machine.
    speed: f64,
    /// Seconds of buildkernel -j4 and -j48 before the patch, and -j48 without a lock.
    few: f64,
    many: f64,
    later: f64,
}

/// The inputs of the model.
struct Given {
    machines: Machines,
    parameters: Parameters,
    spun: Spun,
    /// Numbers of the rows of the fit.
    asked: Vec<usize>,
}

impl Given {
    /// The values fitted to the rows of the fit, under the options' ablation.
    fn usual(options: &Options) -> Result<Self, StudyError> {
        // The locks are fitted with the requested phases, and with the machines of the study.
        let mut asked_for = MACHINES;
        options.apply(Parts::default().and(WORK, &mut asked_for));
        let machines = Machines { phases: asked_for.phases, ..MACHINES };
        let rows = published(&machines)?;
        let asked = rows_to_fit(options, &rows)?;
        let parameters = fit(&rows.iter().filter(|row| asked.contains(&row.number)).collect::<Vec<_>>());
        let spun = if options.without("waits-not-counted") {
            Spun { before: 0.0, after: 0.0 }
        } else {
            spun(&rows, &perform_all(options, &rows, &parameters), &asked)
        };
        Ok(Self { machines, parameters, spun, asked })
    }

    fn parts(&mut self) -> Parts<'_> {
        Parts::default()
            .and(LOCKS, &mut self.parameters)
            .and(SPINS, &mut self.spun)
            .and(WORK, &mut self.machines)
    }
}

pub(crate) fn parameters(options: &Options) -> Result<Vec<Declared>, StudyError> {
    Ok(Given::usual(options)?.parts().declared())
}

/// The lock, with the options' ablation.
fn token(options: &Options, parameters: &Parameters, before: bool) -> Token {
    if options.without("no-lock") {
        Token::NONE
    } else {
        parameters.token(before || options.without("no-patch"))
    }
}

fn perform_all(options: &Options, rows: &[Row], parameters: &Parameters) -> Vec<Outcome> {
    let at_clock = |row: &Row| {
        if options.without("same-clock") { Row { speed: 1.0, ..row.clone() } } else { row.clone() }
    };
    rows.iter().map(|row| perform(&at_clock(row), token(options, parameters, row.before))).collect()
}

fn model(options: &Options) -> Result<Model, StudyError> {
    let mut given = Given::usual(options)?;
    // A change affects only its own parameter: fitted values are not fitted again.
    options.apply(given.parts());
    let declared = given.parts().declared();
    let Given { machines, parameters, spun, asked } = given;
    let rows = published(&machines)?;
    let outcomes = perform_all(options, &rows, &parameters);
    let kernel = |jobs, token| {
        let big = rows.iter().find(|row| row.big && !row.world).unwrap_or(&rows[0]);
        perform(&Row { jobs, copies: 1, ..big.clone() }, token).real
    };
    let before = token(options, &parameters, true);
    let (few, many, later) = (kernel(4, before), kernel(48, before), kernel(48, Token::NONE));
    let speed = if options.without("same-clock") { 1.0 } else { machines.speed };
    Ok(Model { declared, asked, parameters, spun, outcomes, speed, few, many, later, rows })
}

impl Model {
    /// The role of a row's figure, where those of these rows are given.
    fn role(&self, row: usize, given: &[usize]) -> Role {
        if given.contains(&row) {
            return Role::Identity;
        }
        self.role_of(&[row])
    }

    /// Whether a figure computed from these rows has seen the fit, or a repetition of it has.
    fn role_of(&self, rows: &[usize]) -> Role {
        let seen = |row: &usize| {
            self.asked
                .iter()
                .any(|&asked| self.rows[asked - 1].configuration() == self.rows[row - 1].configuration())
        };
        if rows.iter().all(seen) { Role::Fitted } else { Role::HeldOut }
    }

    /// By how many percent the row after the patch is faster than the one before.
    fn gain(&self, before: usize, after: usize) -> ModelFigure {
        let real = |row: usize| self.outcomes[row - 1].real;
        let role = Some(self.role_of(&[before, after]));
        ModelFigure { role, ..ModelFigure::from(100.0 * (1.0 - real(after) / real(before))) }
    }
}

fn answering(model: Model) -> Answers {
    Box::new(move |At { id, row }| {
        let at = || {
            let index = row.checked_sub(1)?;
            Some((model.rows.get(index)?, model.outcomes.get(index)?))
        };
        let of = |figure: f64, given: &[usize]| ModelFigure {
            role: Some(model.role(row, given)),
            ..ModelFigure::from(figure)
        };
        Some(match id {
            "real" => of(at()?.1.real, &GIVEN),
            "system" => of(system(at()?.0, &model.rows, &model.outcomes, model.spun), &GIVEN_SYSTEM),
            "user" => user(at()?.0, &model.rows, model.speed).into(),
            "too-many-jobs" => {
                let real = |row: usize| model.outcomes[row - 1].real;
                let role = Some(model.role_of(&[14, 17]));
                let words = format!("{:.1} s with 48, {:.1} s with 4", real(17), real(14));
                ModelFigure { role, ..ModelFigure::of(real(17) / real(14), words) }
            }
            "later" => model.later.into(),
            "retrograde" => {
                let role = model.role_of(&[12, 15]);
                let words = format!("{:.1} s with 4, {:.1} s with 48", model.few, model.many);
                ModelFigure { role: Some(role), ..ModelFigure::of(model.many / model.few, words) }
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
        .filter(|(row, _)| model.role(row.number, &GIVEN) == Role::HeldOut)
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
         come out a quarter too short (rows 1 to 3). The user times speak for such phases: a kernel's grow by 30% with \
         48 jobs, and those of one world by 2%. The world's own share of locked work would then have to be larger than \
         the kernel's, which it is taken from."
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
            &model.declared,
            own_system(&rows[12], rows, outcomes, *spun) / rows[13].system,
        ),
        here: here::repeated(&options.here, |runs| shown::here(runs, parameters, rows)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_to_fit_are_checked() {
        let rows = published(&MACHINES).unwrap();
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

    /// The parallel work has the system time that the claims on system time take for the work's
    /// own.
    #[test]
    fn the_parallel_work_has_the_own_system_time_of_the_claims() {
        let Model { rows, outcomes, spun, .. } = model(&Options::default()).unwrap();
        let own = own_system(&rows[FOUR_JOBS - 1], &rows, &outcomes, spun);
        assert!((own - KERNEL_OWN).abs() < 0.5, "{own} {spun:?}");
    }

    #[test]
    fn a_fit_finds_parameters_that_made_the_rows() {
        let made = Parameters { before: 0.25, after: 0.12, slowing: 0.02 };
        let rows: Vec<Row> = published(&MACHINES)
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
