//! The target: what `pager:POLICY` honours, and its performances.

use pagelab_experiment::environment;
use std::collections::BTreeMap;
use std::io;

use pagelab_experiment::build::{Figure, metrics, note, warn};
use pagelab_experiment::experiments::Dishonoured;
use pagelab_experiment::experiments::{
    Backing, Bounds, Command, Content, Declaration, Experiment, Load, Paging, Touch,
};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Level, PageSet};
use pagelab_experiment::plan::Settled;
use pagelab_experiment::setting::{Limit, Value, names};
use pagelab_experiment::warnings;
use pagelab_experiment::{
    Failure, Observation, Origin, Performer, Plan, Recorder, Request, Result, Setting, Target, Unsupported,
    What, words,
};
use pagelab_kernel::content::Filler;
use pagelab_kernel::region::page_size;
use pagelab_kernel::rusage::{self, Usage};
use pagelab_kernel::userfault::{self, Features, Paged};
use pagelab_live::ExecutionContext;
use pagelab_live::harness::clock::{Clock, Monotonic};
use pagelab_live::harness::measurement::Harness;
use pagelab_live::harness::timing::bare;
use pagelab_live::harness::touch::{Page, Word, Write};
use pagelab_model::paging::machine::Tally as Faults;
use pagelab_model::policy::PolicyKind;
use pagelab_model::target::play::{Access, Met, Player, future, play, unmade};
use pagelab_reference::progress::unwatched;

use crate::engine::{Engine, Tally};
use crate::mapping::Shared;
use crate::policy::{Chooser, refusal};
use crate::program;

/// The share of the frames that is hidden where nothing is said.
const HIDDEN: f64 = 0.25;

/// Bytes of tables a page: the policy's, the engine's, counts and page maps.
const A_PAGE: u64 = 64 + 64 + 16 + 32;

/// A policy that pages real memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Pager {
    kind: PolicyKind,
    frames: Option<u32>,
    hidden: Option<f64>,
}

/// A name or an option that is none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct PagerError(String);

impl Pager {
    /// The policy of this name, with the options `frames=N`, `hidden=SHARE` and the policy's own parameters.
    ///
    /// # Errors
    /// When there is no such policy, option or value.
    pub fn new(name: &str, options: &[(String, String)]) -> Result<Self, PagerError> {
        let (mut frames, mut hidden, mut parameters) = (None, None, Vec::new());
        for (key, value) in options {
            match key.as_str() {
                "frames" => {
                    let number = value.parse().ok().filter(|&frames: &u32| frames > 0);
                    let wrong = || PagerError(format!("frames={value}: must be between 1 and {}", u32::MAX));
                    frames = Some(number.ok_or_else(wrong)?);
                }
                "hidden" => {
                    let share = value.parse().ok().filter(|share| (0.0..=1.0).contains(share));
                    let wrong = || {
                        PagerError(format!(
                            "hidden={value}: must be a share of the frames from 0 \
                        to 1"
                        ))
                    };
                    hidden = Some(share.ok_or_else(wrong)?);
                }
                _ => parameters.push(format!("{key}={value}")),
            }
        }
        let separator = if name.contains(':') { "," } else { ":" };
        let text = match parameters.is_empty() {
            true => name.to_owned(),
            false => format!("{name}{separator}{}", parameters.join(",")),
        };
        let kind: PolicyKind = text.parse().map_err(|error| PagerError(format!("{error}")))?;
        match refusal(&kind) {
            Some(why) => Err(PagerError(format!("{name} {why}\nhint: use model:{name}"))),
            None => Ok(Self { kind, frames, hidden }),
        }
    }

    fn name(&self) -> String {
        format!("pager:{}", self.kind)
    }

    /// Which share of the frames is hidden: all for a policy that must see every reference.
    fn hidden(&self) -> f64 {
        self.hidden.unwrap_or(if self.kind.needs_future() { 1.0 } else { HIDDEN })
    }

    fn honours_condition(&self, condition: &Value) -> Result<(), Dishonoured> {
        let no = |why: &str, remedy: &str| Err((why.to_owned(), remedy.to_owned()));
        match condition {
            Value::Memory(Limit::Of(_)) if self.frames.is_some() => {
                no("has frames=N, which stands for the memory limit", "give one of the two")
            }
            Value::Memory(_) | Value::Profile(0) => Ok(()),
            Value::Swap(_) | Value::SwapSize(_) => {
                no("keeps evicted pages in a store of its own", "leave it out, or run it on host")
            }
            Value::Functions | Value::Profile(_) => no(
                "pages outside the kernel, so it sees nothing of the kernel",
                "leave it out, or run it on host",
            ),
            _ => no("changes no kernel settings", "leave it out, or run it on host"),
        }
    }

    /// The frames: no more than there are pages, for tables are as long.
    fn frames(&self, setting: &Setting, pages: u32) -> u32 {
        let size = page_size() as u64;
        let limit = setting.limit().map(|limit| limit.pages(size).min(u64::from(u32::MAX)) as u32);
        self.frames.or(limit).map_or(pages, |frames| frames.min(pages)).max(1)
    }

    /// Refuses what is not honoured on any kernel.
    fn performs(&self, target: &str, experiment: &Experiment) -> Result<(), Unsupported> {
        let refuse = |what, why: &str, remedy: &str| Err(Unsupported::new(target, what, why, remedy));
        let declared = experiment.declaration();
        let paging = match declared.load() {
            Load::References(paging, Backing::Anonymous) => paging,
            Load::References(_, Backing::Shmem | Backing::Hugetlb) => {
                let what = What::Parameter("backing".to_owned());
                return refuse(what, "pages anonymous memory only", "leave it out, or run it on host");
            }
            Load::Program(command) => return self.performs_program(target, command),
            _ => {
                let remedy = format!("use mapanon or command, or run {} on host", experiment.name());
                return refuse(
                    What::Experiment,
                    "pages anonymous memory of mapanon and of programs",
                    &remedy,
                );
            }
        };
        if paging.sample != 1 {
            let what = What::Parameter("sample".to_owned());
            return refuse(what, "times every reference", "leave it out");
        }
        if paging.evictions {
            let what = What::Parameter("evictions".to_owned());
            return refuse(what, "logs no evictions", "run it on host, or on the model of the policy");
        }
        if paging.content != Content::default() {
            let what = What::Parameter("content".to_owned());
            return refuse(what, "has only one content for pages", "leave it out, or run it on host");
        }
        if self.kind.needs_future() && self.hidden() < 1.0 {
            let what = What::Parameter("hidden".to_owned());
            return refuse(
                what,
                "must see every reference to know the next",
                "leave it out, or use hidden=1",
            );
        }
        Ok(())
    }
}

impl Pager {
    /// Refuses what cannot be had of a program.
    fn performs_program(&self, target: &str, command: &Command) -> Result<(), Unsupported> {
        let refuse = |what, why: &str, remedy: &str| Err(Unsupported::new(target, what, why, remedy));
        if self.kind.needs_future() {
            let what = What::Experiment;
            return refuse(
                what,
                "must know every reference of a program beforehand",
                "use model:opt with --trace",
            );
        }
        if command.sweep_memory.is_some() {
            let what = What::Parameter("sweep-memory".to_owned());
            return refuse(what, "pages in user space, so its times say little about the kernel", "use host");
        }
        if command.sample != Command::default().sample {
            let what = What::Parameter("sample".to_owned());
            return refuse(what, "does not sample the program's memory", "leave it out");
        }
        Ok(())
    }
}

impl Pager {
    /// The conditions of `request`, as far as that does not depend on this machine; `target` is what it is called.
    ///
    /// # Errors
    /// What is not honoured.
    pub fn honours(&self, target: &str, request: &Request) -> Result<Settled, Unsupported> {
        self.performs(target, &request.experiment)?;
        let page = page_size() as u64;
        Settled::new(request, target, page, Bounds::default(), |value| self.honours_condition(value))
    }
}

impl Target for Pager {
    fn plan(&self, request: &Request) -> Result<Plan, Unsupported> {
        let size = page_size() as u64;
        let mut settled = self.honours(&self.name(), request)?;
        settled.also(names::MEMORY, "none", Origin::Target);
        if let Some(frames) = self.frames {
            settled.also(names::FRAMES, frames.to_string(), Origin::Asked);
        }
        let origin = if self.hidden.is_some() { Origin::Asked } else { Origin::Default };
        settled.also(names::HIDDEN, self.hidden().to_string(), origin);
        let program = match settled.experiment.declaration().load() {
            Load::Program(command) => {
                let machine = |why, remedy| Unsupported::new(self.name(), What::Machine, why, remedy);
                if program::library().is_none() {
                    return Err(machine(
                        "has no libpagelab_preload.so, which the program must load",
                        "install it next to pagelab (cargo build --release -p pagelab-preload), or name it: \
                        PAGELAB_PRELOAD",
                    ));
                }
                let file = command.program.first().and_then(|name| program::found(&words::unescaped(name)));
                if file.is_some_and(|file| program::is_static(&file)) {
                    let what = What::Parameter("program".to_owned());
                    let why =
                        format!("cannot page {}: it is static and loads no library", command.program[0]);
                    return Err(Unsupported::new(self.name(), what, why, "use a dynamically linked program"));
                }
                true
            }
            _ => false,
        };
        userfault::available(Features { program })
            .map_err(|(why, remedy)| Unsupported::new(self.name(), What::Machine, why, remedy))?;
        let mut plan = Plan::new(settled, size, Box::new(self.clone()));
        let experiment = plan.experiment.clone();
        match experiment.declaration().load() {
            Load::Program(_) => {
                let most = experiment.footprint(size).anonymous;
                let frames = u64::from(self.frames(&plan.setting, (most / size) as u32));
                plan.frames = Some(frames);
                plan.needs.memory = most + 2 * frames * size + most / size * A_PAGE;
            }
            Load::References(paging, _) => {
                let frames = u64::from(self.frames(&plan.setting, paging.pages as u32));
                plan.frames = Some(frames);
                let future =
                    if self.kind.needs_future() { 9 * (paging.references + 3 * paging.pages) } else { 0 };
                // Resident, hidden, and, at worst, all of them stored as they are.
                plan.needs.memory = (paging.pages + 2 * frames.min(paging.pages)) * size
                    + paging.pages * A_PAGE
                    + future
                    + paging.pattern.memory(paging.pages, paging.references);
            }
            Load::Own | Load::None => {}
        }
        Ok(plan)
    }
}

impl Performer for Pager {
    fn perform(
        &mut self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        match experiment.declaration().load() {
            Load::References(paging, Backing::Anonymous) => {
                #[cfg(target_arch = "x86_64")]
                {
                    use pagelab_live::harness::clock::Tsc;
                    // Calibrating takes a tenth of a second.
                    static TSC: std::sync::OnceLock<Option<Tsc>> = std::sync::OnceLock::new();
                    if let Some(tsc) = TSC.get_or_init(Tsc::calibrated) {
                        return self.mapanon(paging, setting, tsc, recorder);
                    }
                }
                self.mapanon(paging, setting, &Monotonic, recorder)
            }
            Load::Program(command) => self.program(command, setting, recorder),
            _ => Err(Failure::unsupported("the pager pages only anonymous memory", "use mapanon or command")),
        }
    }
}

fn refused(doing: &'static str) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::system(doing, &error)
}

impl Pager {
    fn mapanon(
        &self,
        paging: &Paging,
        setting: &Setting,
        clock: &impl Clock,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        let stream = || {
            let blocks = paging.pattern.blocks(paging.pages, paging.references, paging.seed, &mut unwatched);
            blocks.map_err(unmade)
        };
        let blocks = stream()?;
        let pages = blocks.pages();
        let frames = self.frames(setting, pages);
        let future = match self.kind.needs_future() {
            true => Some(future(paging.opening(pages, true), stream()?, recorder)?),
            false => None,
        };
        let window = ((f64::from(frames) * (1.0 - self.hidden())).round() as u32).max(1);
        let sees_all = self.hidden() >= 1.0;
        let mut harness = Harness::open(&ExecutionContext::default(), recorder)?;
        recorder
            .observe(Observation::Environment(self.environment(frames, if sees_all { 0 } else { window })))?;
        note(recorder, Level::Info, self.says(frames, window, sees_all))?;
        let paged = Paged::new(pages as usize).map_err(refused("mapping memory to be paged"))?;
        let chooser = Chooser::new(&self.kind, pages, frames, future.as_ref());
        let engine =
            Engine::new(&paged, pages, frames, window, chooser).map_err(refused("making the pager"))?;
        let shared = Shared::new(engine, &paged).map_err(refused("making the pager"))?;
        std::thread::scope(|scope| {
            let stop = shared.stop();
            std::thread::Builder::new()
                .spawn_scoped(scope, || shared.serve())
                .map_err(refused("starting the pager's thread"))?;
            let mut player = Real {
                shared: &shared,
                paged: &paged,
                clock,
                touch: paging.touch,
                sees_all,
                populated: 0,
                pages,
                references: 0,
                time: 0,
                before: Tally::default(),
                last: Tally::default(),
                used: Usage::default(),
            };
            harness.begin();
            play(&mut player, blocks, paging, true, recorder)?;
            harness.finish().record(recorder)?;
            let figures = player.own_figures();
            drop(stop);
            metrics(recorder, figures)
        })
    }

    fn program(&self, command: &Command, setting: &Setting, recorder: &mut dyn Recorder) -> Result<()> {
        let most =
            (Declaration::footprint(command, page_size() as u64).anonymous / page_size() as u64) as u32;
        let frames = self.frames(setting, most);
        let share = f64::from(frames) * (1.0 - self.hidden());
        let window = (share.round() as u32).max(program::MAPPED.min(frames)).max(1);
        let mut harness = Harness::open(&ExecutionContext::default(), recorder)?;
        recorder.observe(Observation::Environment(self.environment(frames, window)))?;
        note(recorder, Level::Info, self.says(frames, window, false))?;
        harness.begin();
        let before = rusage::children();
        let policy = Chooser::new(&self.kind, 0, frames, None);
        let paged = program::run(command, policy, frames, window, recorder)?;
        let used = rusage::children() - before;
        harness.finish().record(recorder)?;
        let tally = paged.tally;
        metrics(
            recorder,
            [
                (metrics::TIME_ELAPSED, Some(paged.elapsed.as_nanos() as f64)),
                (metrics::TIME_CPU, Some((used.user + used.system) as f64)),
                (metrics::TIME_USER, Some(used.user as f64)),
                (metrics::TIME_SYSTEM, Some(used.system as f64)),
                (metrics::FAULTS_MINOR, Some((tally.first + tally.hidden) as f64)),
                (metrics::FAULTS_MAJOR, Some(tally.fetched as f64)),
                (metrics::SWAP_IN, Some(tally.fetched as f64)),
                (metrics::SWAP_OUT, Some(tally.stored as f64)),
                (metrics::SWITCHES_VOLUNTARY, Some(used.voluntary as f64)),
                (metrics::SWITCHES_INVOLUNTARY, Some(used.involuntary as f64)),
                (metrics::COMMAND_STATUS, paged.status.and_then(|status| status.code()).map(f64::from)),
                (metrics::PAGER_VISIBLE, None),
            ],
        )?;
        metrics(recorder, cost(&tally, paged.stored))?;
        let left =
            "not paged: stacks, data of the program and its libraries, files, shared memory, forked children";
        note(recorder, Level::Info, format!("{} pages of anonymous memory were paged; {left}", paged.pages))?;
        if paged.unpaged > 0 {
            let text = format!("{} {}", paged.unpaged, warnings::NOT_PAGED.0);
            warn(recorder, warnings::NOT_PAGED, text)?;
        }
        let program = command.program.first().map_or("the program", String::as_str);
        match paged.status {
            Some(status) if status.success() => Ok(()),
            Some(status) if command.allow_failure => {
                let text = format!("{program} {} {status}", warnings::ENDED_WITH.0);
                warn(recorder, warnings::ENDED_WITH, text)
            }
            Some(status) => Err(Failure::program(program, status)),
            None => Ok(()),
        }
    }

    /// What a reader must know of the run.
    fn says(&self, frames: u32, window: u32, sees_all: bool) -> String {
        let sees = match (sees_all, self.hidden() > 0.0) {
            (true, _) => "the policy sees every reference".to_owned(),
            (false, true) => format!(
                "the policy sees misses, and references to the {} frames that are hidden",
                frames.saturating_sub(window)
            ),
            (false, false) => "the policy sees only misses".to_owned(),
        };
        format!(
            "{} pages in user space: {frames} frames, evicted pages compressed in memory; {sees}",
            self.name()
        )
    }

    fn environment(&self, frames: u32, mapped: u32) -> BTreeMap<String, String> {
        [
            (environment::PAGER_POLICY, self.kind.to_string()),
            (environment::PAGER_FRAMES, frames.to_string()),
            (environment::PAGER_MAPPED, mapped.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }
}

/// What faults cost, and what evicted pages took.
fn cost(done: &Tally, stored: u64) -> [Figure; 3] {
    let mean = |time: u64, of: u64| (of > 0).then(|| time as f64 / of as f64);
    [
        (metrics::PAGER_SERVICE, mean(done.service[1], done.fetched)),
        (metrics::PAGER_POLICY, mean(done.policy, done.hidden + done.fetched)),
        (metrics::PAGER_STORE_PEAK, Some(stored as f64)),
    ]
}

/// Real references to real memory.
struct Real<'s, 'p, C> {
    shared: &'s Shared<'p>,
    paged: &'p Paged,
    clock: &'s C,
    touch: Touch,
    /// Whether every page is hidden after each reference.
    sees_all: bool,
    populated: u32,
    pages: u32,
    references: u64,
    time: u64,
    before: Tally,
    last: Tally,
    used: Usage,
}

impl<C: Clock> Real<'_, '_, C> {
    fn make(&self, page: u32, write: bool) {
        match if write { Touch::Write } else { self.touch } {
            Touch::Page => bare::<Page>(self.paged.region(), &[page]),
            Touch::Word => bare::<Word>(self.paged.region(), &[page]),
            Touch::Write => bare::<Write>(self.paged.region(), &[page]),
        }
    }

    fn hide(&self) -> Result<(), Box<Failure>> {
        match self.sees_all {
            true => self.shared.with(Engine::hide_all).map_err(|e| Box::new(refused("hiding a page")(e))),
            false => Ok(()),
        }
    }

    fn done(&self) -> Tally {
        self.shared.tally().since(&self.before)
    }

    /// What a pager alone has.
    fn own_figures(&self) -> Vec<Figure> {
        let done = self.done();
        let mut figures =
            vec![(metrics::PAGER_VISIBLE, Some(done.seen() as f64 / self.references.max(1) as f64))];
        figures.extend(cost(&done, self.shared.with(|engine| engine.store().peak())));
        figures
    }
}

impl<C: Clock> Player for Real<'_, '_, C> {
    fn populate(&mut self, page: u32) -> Result<(), Box<Failure>> {
        if self.populated < self.pages {
            self.paged.region().populate_page(page as usize, &Filler::default());
            self.populated += 1;
        } else {
            self.make(page, false);
        }
        self.shared.check()?;
        self.hide()
    }

    fn begin(&mut self) -> Result<(), Box<Failure>> {
        self.before = self.shared.tally();
        self.last = self.before;
        self.used = rusage::process();
        Ok(())
    }

    fn reference(&mut self, page: u32, write: bool) -> Result<Access, Box<Failure>> {
        let before = self.clock.now();
        self.make(page, write);
        let time = self.clock.nanoseconds(self.clock.now().saturating_sub(before));
        self.references += 1;
        self.time += time;
        let now = self.shared.tally();
        let met = match (now.hidden > self.last.hidden, now.fetched > self.last.fetched) {
            (_, true) => Met::Major,
            (true, false) => Met::Minor,
            (false, false) => Met::Hit,
        };
        self.last = now;
        self.shared.check()?;
        self.hide()?;
        Ok(Access { time, met })
    }

    fn tally(&self) -> Faults {
        let done = self.done();
        Faults {
            references: self.references,
            minor: done.hidden,
            major: done.fetched,
            swapped_in: done.fetched,
            swapped_out: done.stored,
            ..Faults::default()
        }
    }

    fn swapped_out(&self) -> Option<u64> {
        Some(self.done().stored)
    }

    fn time(&self) -> u64 {
        self.time
    }

    fn present(&self) -> u64 {
        self.shared.with(|engine| engine.resident())
    }

    fn map(&self) -> Option<(PageSet, PageSet)> {
        self.shared.with(|engine| {
            let present = PageSet::from_flags((0..self.pages).map(|page| engine.is_resident(page)));
            let stored = PageSet::from_flags((0..self.pages).map(|page| engine.is_stored(page)));
            Some((present, stored))
        })
    }

    /// Of both threads: what resolves a fault works while the other waits.
    fn times(&self) -> Vec<Figure> {
        let used = rusage::process() - self.used;
        vec![
            (metrics::TIME_ELAPSED, Some(self.time as f64)),
            (metrics::TIME_CPU, Some((used.user + used.system) as f64)),
            (metrics::TIME_SYSTEM, Some(used.system as f64)),
            (metrics::TIME_USER, Some(used.user as f64)),
        ]
    }
}
