//! The target `model:NAME`: an experiment performed on a model, with the observations of the live one.
//!
//! A policy (`lru`, `opt` …) is demand paging over a fixed number of frames: a reference that misses is
//! a major fault, and costs what one costs. A system (`linux-lru` …) is a
//! [`Machine`](crate::paging::Machine) with reclaim, output and a clock. Both begin as the live
//! experiment does: anonymous memory is first populated, every page written once, in order, which
//! is not counted; a file has no page in memory. The systems model anonymous memory alone. Of
//! `command` they play what the program was recorded with (`program`).

pub mod play;
mod players;
mod program;
pub mod together;

use pagelab_experiment::environment;
use std::collections::BTreeMap;

use pagelab_experiment::build::note;
use pagelab_experiment::declaration::{Refusal, closest};
use pagelab_experiment::experiments::Dishonoured;
use pagelab_experiment::experiments::{Bounds, Command, Content, Experiment, Paging};
use pagelab_experiment::observation::Level;
use pagelab_experiment::plan::Settled;
use pagelab_experiment::setting::{Limit, Value, names};
use pagelab_experiment::{
    Failure, Observation, Origin, Performer, Plan, Recorder, Request, Setting, Target, Unsupported, What,
};
use pagelab_reference::progress::unwatched;
use pagelab_reference::room::can_be_had;

use self::play::{BLOCK, SNAPSHOTS, future, play, unmade};
use self::players::{PolicyPlayer, SystemPlayer};
use crate::paging::Costs;
use crate::paging::costs;
use crate::paging::machine::Tally;
use crate::parameter::{self, Declared, Parts};
use crate::policy::PolicyKind;
use crate::policy::opt::Opt;
use crate::published::{PUBLISHED, Published};
use crate::systems::{Configuration, SystemKind};

/// The page size of the models that page references to one mapping, bytes.
const PAGE_SIZE: u64 = crate::BASE_PAGE;

/// The option that replaces the memory limit of a model that pages.
const FRAMES: &str = "frames";
/// The cost of a hit, whose default differs for a program.
const HIT: &str = "hit";
/// Costs without effect on a policy, which has neither minor faults nor a scan.
const NOT_OF_POLICIES: &[&str] = &["minor", "scan"];

/// A model as a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Model(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Paging(PagingModel),
    Published(Published),
}

/// What pages references to one mapping.
#[derive(Clone, Debug, PartialEq)]
enum Pager {
    Policy(PolicyKind),
    System(Configuration),
}

#[derive(Clone, Debug, PartialEq)]
struct PagingModel {
    name: String,
    pager: Pager,
    frames: Option<u32>,
    costs: Costs,
    /// What a hit costs, where the user said it.
    hit: Option<u64>,
}

/// A name or an option that is none.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(String);

impl Model {
    /// The model of this name (a system, or a policy with its parameters) with its own options. Those
    /// of a model that pages are `frames=N` and each of [`Costs::named`] in ns; options that belong to a
    /// policy's parameters (`kin=0.25`) are handed to it.
    ///
    /// # Errors
    /// When there is no such model, option or value.
    pub fn new(name: &str, options: &[(String, String)]) -> Result<Self, ModelError> {
        match Published::named(name) {
            Some(system) => {
                system.with(options).map(Kind::Published).map(Self).map_err(|e| ModelError(e.to_string()))
            }
            None => PagingModel::new(name, options).map(Kind::Paging).map(Self),
        }
    }
}

impl Target for Model {
    fn plan(&self, request: &Request) -> Result<Plan, Unsupported> {
        let target = format!("model:{}", self.name());
        match &self.0 {
            Kind::Paging(model) => model.honours(&request.experiment)?,
            Kind::Published(system) => system.honours(&request.experiment)?,
        }
        let page_size = self.page_size();
        let mut settled =
            Settled::new(request, &target, page_size, Bounds::default(), |value| self.honours(value))?;
        settled.also(names::MEMORY, "none", Origin::Target);
        if let Kind::Paging(PagingModel { frames: Some(frames), .. }) = &self.0 {
            settled.also(names::FRAMES, frames.to_string(), Origin::Asked);
        }
        let mut plan = Plan::new(settled, page_size, Box::new(self.clone()));
        if let (Kind::Paging(model), Some(paging)) = (&self.0, paging(&plan.experiment)) {
            plan.frames = model.frames.map(u64::from).or(plan.frames);
            plan.needs.memory = model.memory(paging);
        }
        if let (Kind::Paging(model), Experiment::Command(Command { trace: Some(trace), .. })) =
            (&self.0, &plan.experiment)
        {
            plan.frames = model.frames.map(u64::from).or(plan.frames);
            plan.needs.memory = program::memory(trace, model.player());
        }
        plan.deterministic = true;
        Ok(plan)
    }
}

impl Performer for Model {
    fn perform(
        &mut self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Failure> {
        match &self.0 {
            Kind::Paging(model) => model.perform(experiment, setting, recorder),
            Kind::Published(system) => system.perform(experiment, setting, recorder),
        }
    }
}

impl Model {
    /// Its parameters with their values: the defaults unless options were given. A policy's own
    /// parameters are those of [`PolicyKind`].
    pub fn parameters(&self) -> Vec<Declared> {
        match &self.0 {
            Kind::Published(system) => system.parameters(),
            Kind::Paging(PagingModel { pager: Pager::System(system), .. }) => {
                let mut system = *system;
                system.parts().declared()
            }
            Kind::Paging(PagingModel { costs, .. }) => {
                let mut costs = *costs;
                Parts::default().and(costs::PARAMETERS, &mut costs).without(NOT_OF_POLICIES).declared()
            }
        }
    }

    /// The accepted options that differ from the defaults, each once, as a run records them. All
    /// options of a model that pages are recorded, because its defaults differ between experiments.
    pub fn changed(name: &str, options: &[(String, String)]) -> Vec<(String, String)> {
        let Some(system) = Published::named(name) else { return options.to_vec() };
        let Ok(changed) = system.with(options) else { return options.to_vec() };
        let both = system.parameters().into_iter().zip(changed.parameters());
        let differ = both.filter(|(usual, changed)| usual.value != changed.value);
        differ.map(|(_, one)| (one.name.to_owned(), one.written(one.value))).collect()
    }

    fn name(&self) -> &str {
        match &self.0 {
            Kind::Paging(model) => &model.name,
            Kind::Published(system) => system.name,
        }
    }

    /// The page size of the modelled machine, bytes.
    fn page_size(&self) -> u64 {
        match &self.0 {
            Kind::Paging(_) => PAGE_SIZE,
            Kind::Published(system) => system.page_size(),
        }
    }

    /// Whether the condition can be in force in the model.
    fn honours(&self, condition: &Value) -> Result<(), Dishonoured> {
        let no = |why: &str, remedy: &str| Err((why.to_owned(), remedy.to_owned()));
        match (condition, &self.0) {
            (Value::Memory(Limit::None), _) => Ok(()),
            (Value::Memory(_), Kind::Paging(PagingModel { frames: Some(_), .. })) => {
                no("has frames=N, which stands for the memory limit", "give one of the two")
            }
            (Value::Memory(_), Kind::Published(system)) if !system.honours_memory() => {
                no("pages nothing that a limit could bound", "leave it out, or use memory=none")
            }
            (Value::Memory(_) | Value::Profile(0), _) => Ok(()),
            (Value::Swap(_) | Value::SwapSize(_), _) => {
                no("has a modelled swap of its own, without limit", "leave it out, or run it on host")
            }
            (Value::Functions | Value::Profile(_), _) => {
                no("runs no kernel to profile", "leave it out, or run it on host")
            }
            _ => no("has no kernel's settings", "leave it out, or run it on host"),
        }
    }
}

/// The references to one mapping that an experiment is, where it is one.
fn paging(experiment: &Experiment) -> Option<&Paging> {
    match experiment {
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => Some(paging),
        _ => None,
    }
}

impl PagingModel {
    fn new(name: &str, options: &[(String, String)]) -> Result<Self, ModelError> {
        let (mut frames, mut hit) = (None, None);
        let mut costs = Costs::TODAY;
        let mut system = SystemKind::named(name).map(SystemKind::configuration);
        let refused = |error: Refusal| ModelError(error.to_string());
        let owner = format!("model:{name}");
        let mut parameters = Vec::new();
        for (key, value) in options {
            if key == FRAMES {
                let valid = value.parse::<u32>().ok().filter(|&n| n > 0);
                frames = Some(valid.ok_or_else(|| {
                    ModelError(format!("{FRAMES}={value}: must be a whole number from 1 to {}", u32::MAX))
                })?);
                continue;
            }
            let is_system = system.is_some();
            let mut parts = match &mut system {
                Some(system) => system.parts(),
                None => Parts::default().and(costs::PARAMETERS, &mut costs),
            };
            let list = parts.declared();
            match parameter::find(&owner, &list, key) {
                Ok(declared) => {
                    let value = declared.read(value).map_err(refused)?;
                    parts.set(key, value);
                    if key == HIT {
                        hit = value.number().map(|ns| ns as u64);
                    }
                }
                Err(error) if is_system => return Err(refused(error)),
                // It may be a parameter of the policy.
                Err(_) => parameters.push(format!("{key}={value}")),
            }
        }
        if let Some(system) = &system {
            costs = system.costs;
        }
        let pager = match system {
            Some(system) => Pager::System(system),
            None => {
                let separator = if name.contains(':') { "," } else { ":" };
                let text = match parameters.is_empty() {
                    true => name.to_owned(),
                    false => format!("{name}{separator}{}", parameters.join(",")),
                };
                Pager::Policy(text.parse().map_err(|e| {
                    let systems: Vec<_> = crate::systems::SYSTEMS
                        .iter()
                        .map(|s| s.name)
                        .chain(PUBLISHED.iter().map(|s| s.name))
                        .collect();
                    let meant = closest(name, systems.iter().copied());
                    let meant = meant.map(|name| format!(" (did you mean {name}?)")).unwrap_or_default();
                    ModelError(format!("{e}; or one of the systems: {}{meant}", systems.join(", ")))
                })?)
            }
        };
        Ok(Self { name: name.to_owned(), pager, frames, costs, hit })
    }

    /// Refuses what is not references to one mapping, and files on a system that models anonymous memory alone.
    fn honours(&self, experiment: &Experiment) -> Result<(), Unsupported> {
        let target = format!("model:{}", self.name);
        if let Experiment::Command(command) = experiment {
            return match command.sweep_memory {
                None => Ok(()),
                Some(_) => Err(Unsupported::new(
                    target,
                    What::Parameter("sweep-memory".to_owned()),
                    "takes no time that a sweep could compare",
                    "record the program and draw its miss curve: pagelab trace, pagelab mrc",
                )),
            };
        }
        let Some(paging) = paging(experiment) else { return Err(self.unmodelled(experiment)) };
        if let (Pager::System(_), Experiment::Mapfile(_)) = (&self.pager, experiment) {
            return Err(Unsupported::new(
                target,
                What::Experiment,
                "models anonymous memory alone, not the mapping of a file",
                "use mapanon, or a policy such as model:lru",
            ));
        }
        if paging.evictions && !self.names_pages() {
            let what = What::Parameter("evictions".to_owned());
            let why = "does not know which pages are in memory";
            return Err(Unsupported::new(target, what, why, "use another policy, such as model:lru"));
        }
        if paging.sample != 1 {
            let what = What::Parameter("sample".to_owned());
            return Err(Unsupported::new(target, what, "times every reference, at no cost", "leave it out"));
        }
        if paging.syncs != Paging::default().syncs {
            let what = What::Parameter("syncs".to_owned());
            let why = "models which pages are in memory, and no disk that a file is brought to";
            return Err(Unsupported::new(target, what, why, "leave it out, or run it on host"));
        }
        if paging.backing != Paging::default().backing {
            let what = What::Parameter("backing".to_owned());
            let why = "models anonymous memory only";
            return Err(Unsupported::new(target, what, why, "leave it out, or run it on host"));
        }
        if paging.content != Content::default() {
            let what = What::Parameter("content".to_owned());
            return Err(Unsupported::new(
                target,
                what,
                "models which page is referenced, not what it holds",
                "leave it out, or run it on host",
            ));
        }
        Ok(())
    }

    /// Whether it knows which pages are in memory.
    fn names_pages(&self) -> bool {
        match &self.pager {
            Pager::Policy(kind) => kind.needs_future() || kind.build(1, 1, None).contains(0).is_some(),
            Pager::System(_) => true,
        }
    }

    fn unmodelled(&self, experiment: &Experiment) -> Unsupported {
        Unsupported::new(
            format!("model:{}", self.name),
            What::Experiment,
            "models references to one mapping, or a recorded program's",
            format!("use mapanon, mapfile or command, or run {} on host", experiment.name()),
        )
    }

    /// Bytes that a performance takes: the tables of the policy or the machine, counts and page maps, what makes
    /// the stream and a block of it; where the future is needed, all references twice.
    fn memory(&self, paging: &Paging) -> u64 {
        /// Tables, the counts and their copy in a page map, its sets; and the maps as they are packed and kept.
        const A_PAGE: u64 = 64 + 16 + 16 + 32;
        /// The maps of a run as the notebook gives them back, which it bounds.
        const MAPS: u64 = 16 * SNAPSHOTS as u64;
        const READ_BACK: u64 = 1 << 30;
        let future = match &self.pager {
            Pager::Policy(kind) if kind.needs_future() => {
                paging.references.saturating_add(paging.pages.saturating_mul(3)).saturating_mul(4 + 4 + 1)
            }
            _ => 0,
        };
        let made = paging.pattern.memory(paging.pages, paging.references);
        (paging.pages.saturating_mul(A_PAGE))
            .saturating_add(paging.pages.saturating_mul(MAPS).min(READ_BACK))
            .saturating_add(future)
            .saturating_add(made)
            .saturating_add(4 * BLOCK as u64)
    }

    fn frames(&self, setting: &Setting, pages: u32) -> u32 {
        let limit = setting.limit().map(|size| size.pages(PAGE_SIZE).min(u64::from(u32::MAX)) as u32);
        // Without a limit: as much as the mapping needs, and what a system keeps free.
        self.frames.or(limit).unwrap_or(pages.saturating_mul(2)).max(1)
    }

    fn perform(
        &self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Failure> {
        if let Experiment::Command(command) = experiment {
            return self.play_program(command, setting, recorder);
        }
        let populated = matches!(experiment, Experiment::Mapanon(_));
        let paging = paging(experiment).ok_or_else(|| self.unmodelled(experiment))?;
        let bytes = self.memory(paging);
        if !can_be_had(bytes) {
            let what = format!("there is no memory for the {bytes} bytes of the model");
            return Err(Failure::refused(what, "use fewer pages, or fewer references"));
        }
        let stream = || {
            let blocks = paging.pattern.blocks(paging.pages, paging.references, paging.seed, &mut unwatched);
            blocks.map_err(unmade)
        };
        let pages = u32::try_from(paging.pages).expect("a plan has no more");
        let frames = self.frames(setting, pages);
        recorder.observe(Observation::Environment(self.environment(frames)))?;
        note(
            recorder,
            Level::Info,
            format!(
                "model:{} in virtual time: {frames} frames of {PAGE_SIZE} bytes; {}",
                self.name,
                if populated { "populated in order first" } else { "begun with no page in memory" }
            ),
        )?;
        match &self.pager {
            Pager::Policy(kind) => {
                // The populating sweep is part of what OPT must foresee.
                // The stream is made once more then, as it was.
                let future = match kind.needs_future() {
                    true => Some(future(paging.opening(pages, populated), stream()?, recorder)?),
                    false => None,
                };
                let mut policy = match &future {
                    Some(future) if paging.evictions => Box::new(Opt::naming(pages, frames, future)),
                    future => kind.build(pages, frames, future.as_ref()),
                };
                let mut player = PolicyPlayer {
                    pages,
                    residents: None,
                    populated,
                    policy: policy.as_mut(),
                    costs: self.costs,
                    time: 0,
                    tally: Tally::default(),
                };
                play(&mut player, stream()?, paging, populated, recorder)
            }
            Pager::System(configuration) => {
                let machine = configuration.machine(pages, frames);
                let mut system = configuration.build(pages, frames);
                let mut player =
                    SystemPlayer { machine, system: system.as_mut(), before: Tally::default(), start: 0 };
                play(&mut player, stream()?, paging, populated, recorder)
            }
        }
    }

    /// Who plays a recorded program.
    fn player(&self) -> program::Pager<'_> {
        match &self.pager {
            Pager::Policy(kind) => program::Pager::Policy(kind),
            Pager::System(configuration) => {
                program::Pager::System(Configuration { costs: self.costs, ..*configuration })
            }
        }
    }

    fn play_program(
        &self,
        command: &Command,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Failure> {
        let trace = command.trace.as_deref().ok_or_else(|| {
            Failure::unsupported("there is no recording of the program", "name one: --trace FILE")
        })?;
        let own = self.of_a_program();
        let mut outcomes = together::play(trace, &[(&own, setting)], recorder)?;
        let (frames, outcome) = outcomes.remove(0)?;
        recorder.observe(Observation::Environment(own.environment(frames)))?;
        outcome.observe(recorder)
    }

    /// The same for a program's references, which are to what the processor's caches hold, unless the user says
    /// what they cost.
    fn of_a_program(&self) -> Self {
        Self { costs: Costs { hit: self.hit.unwrap_or(1), ..self.costs }, ..self.clone() }
    }

    fn environment(&self, frames: u32) -> BTreeMap<String, String> {
        let mut entries = BTreeMap::new();
        entries.insert(environment::PAGE_SIZE.to_owned(), PAGE_SIZE.to_string());
        entries.insert(environment::MODEL_NAME.to_owned(), self.name.clone());
        entries.insert(environment::MODEL_FRAMES.to_owned(), frames.to_string());
        if let Pager::Policy(kind) = &self.pager {
            entries.insert(environment::MODEL_POLICY.to_owned(), kind.to_string());
        }
        for (name, cost) in self.costs.named() {
            entries.insert(format!("model.cost.{name}"), format!("{cost} ns"));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::Observations;
    use pagelab_experiment::build::{HIT, MAJOR, MINOR};
    use pagelab_experiment::observation::Values;
    use pagelab_experiment::tables::windows;
    use pagelab_reference::Stream;

    fn perform(name: &str, options: &[(&str, &str)], pattern: &str, memory: &str) -> Observations {
        let options: Vec<_> = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let paging = Paging {
            pages: 2000,
            references: 30_000,
            pattern: pattern.parse().unwrap(),
            ..Paging::default()
        };
        let setting =
            Setting { memory: (!memory.is_empty()).then(|| memory.parse().unwrap()), ..Setting::default() };
        let mut seen = Observations::default();
        Model::new(name, &options)
            .unwrap()
            .plan(&Request::new(Experiment::Mapanon(paging), setting))
            .unwrap()
            .perform(&mut seen)
            .unwrap();
        seen
    }

    #[test]
    fn a_policy_has_the_misses_of_the_replay() {
        let seen = perform("lru", &[], "zipf:0.9", "1000p");
        let stream =
            "zipf:0.9".parse::<pagelab_reference::Pattern>().unwrap().stream(2000, 30_000, 1).unwrap();
        let all: Vec<u32> = (0..2000).chain(stream.references().iter().copied()).collect();
        let expected = crate::policy::lru_misses(&Stream::new(2000, all), 1000) - 2000;
        assert_eq!(seen.metric_named("faults.major"), Some(expected as f64));
        assert_eq!(seen.metric_named("pages.present"), Some(1000.0));
        let table = seen.table(windows::TABLE).unwrap();
        assert!(
            table.columns[0].values
                == Values::Number((1..=240).map(|w| Some((30_000 * w / 240) as f64)).collect())
        );
        let faults: f64 = table.numbers(windows::FAULTS_MAJOR).unwrap().iter().flatten().sum();
        assert_eq!(faults, expected as f64);
    }

    #[test]
    fn a_system_shows_its_pages_and_its_time_adds_up() {
        let seen = perform("linux-2.4.19", &[], "smooth-sin-random", "1200p");
        assert!(seen.metric_named("faults.major").unwrap() > 0.0);
        assert_eq!(seen.pages.len(), SNAPSHOTS);
        assert!(seen.pages.iter().all(|s| s.present.len() + s.swapped.len() <= 2000));
        let of = |name: &str| seen.histogram(name).unwrap();
        assert_eq!(of(HIT).count() + of(MINOR).count() + of(MAJOR).count(), 30_000);
        let sum = of(HIT).sum + of(MINOR).sum + of(MAJOR).sum;
        assert_eq!(seen.metric_named("time.elapsed"), Some(sum as f64));
    }

    #[test]
    fn options_reach_the_policy_and_unknown_ones_are_errors() {
        let seen = perform("2q", &[("kin", "0.5"), ("frames", "100")], "uniform", "");
        assert_eq!(seen.environment["model.policy"], "2q:kin=0.5,kout=0.5");
        assert_eq!(seen.metric_named("pages.present"), Some(100.0));
        for (name, key) in [("linux-lru", "kin"), ("lru", "colour"), ("nothing", "hit")] {
            assert!(Model::new(name, &[(key.to_owned(), "1".to_owned())]).is_err(), "{name}");
        }
    }
}
