//! Performs plans: interleaves their repetitions, shows progress, and ends in order on an
//! interrupt.
//!
//! Nothing is written while a repetition measures. One transaction keeps it whole and begins the
//! next.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result};
use pagelab_experiment::environment;
use pagelab_experiment::experiments::Load;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{
    Failure, FailureKind, Observation, Outcome, Plan, Recorder, RecorderError, Request, Run, RunHeader,
    Setting, TargetSpec,
};
use pagelab_model::target::Model;
use pagelab_model::target::together::Together;
use pagelab_notebook::{Changes, Notebook, Problem, RepetitionId, RunId};
use pagelab_simulation::cost;

use crate::bug;
use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::recording::Background;
use crate::targets;

/// One run to be made.
pub struct Planned {
    name: Option<String>,
    target: TargetSpec,
    plan: Plan,
    facts: BTreeMap<String, String>,
    more: u32,
    part: bool,
}

impl Planned {
    /// Leaves it out where its target turns out not to support it: a guest's kernel is known only
    /// once it runs.
    pub fn make_part(&mut self) {
        self.part = true;
    }

    /// Notes this entry of the environment with every repetition.
    pub fn mark(&mut self, key: &str, value: &str) {
        self.facts.insert(key.to_owned(), value.to_owned());
    }

    /// Has it performed so many times more than the others.
    pub fn perform_more(&mut self, more: u32) {
        self.more = more;
    }

    /// How often it is performed where `repeat` is asked for of all: a model plays a whole program
    /// every time alike, so once.
    pub fn repetitions(&self, repeat: u32) -> u32 {
        if self.plan.deterministic && matches!(self.plan.experiment.declaration().load(), Load::Program(_)) {
            1
        } else {
            repeat + self.more
        }
    }

    /// A run of what `request` asks for on `target`, whose own options come before what is asked
    /// for of all.
    ///
    /// # Errors
    /// When an option is unknown or its value impossible, and what the target does not honour.
    pub fn new(name: Option<String>, request: &Request, target: &TargetSpec) -> Result<Self> {
        let (asked, own) =
            target.setting(&request.asked).map_err(|e| usage(format!("--on {target}: {e}")))?;
        let request = Request { asked, ..request.clone() };
        let plan = targets::open(target, &own)?.plan(&request);
        let plan = plan.map_err(|refused| targets::with_alternatives(refused, target, &request))?;
        if matches!(target.kind, TargetKind::Model(_) | TargetKind::Pager(_)) {
            // The host and its guests look at the machine's memory themselves.
            cost::allow(plan.needs.memory, "use fewer pages or references, or a smaller --memory")?;
        }
        let target = targets::recorded(target, &own);
        Ok(Self { name, target, plan, facts: BTreeMap::new(), more: 0, part: false })
    }

    /// Whether it begins with a guest's boot.
    fn boots(&self) -> bool {
        matches!(self.target.kind, TargetKind::Kernel(_))
    }

    /// The target.
    pub fn target(&self) -> &TargetSpec {
        &self.target
    }

    /// What it will do.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// What was performed.
pub struct Performed {
    /// The runs as the notebook has them, in the order of the plans; without those that were never
    /// begun.
    pub runs: Vec<Run>,
    /// Why it ended early, if it did.
    pub failure: Option<anyhow::Error>,
}

/// Performs every plan `repeat` times, or as often as it says itself, forwards and backwards in
/// turn (A B B A …), so that a drift of the machine touches all alike.
///
/// # Errors
/// When the notebook cannot be written. A repetition that fails is kept with its reason, ends its
/// run, and the first one is given back as `failure`. A run that is refused before it measures
/// leaves nothing.
pub fn perform(plans: &mut [Planned], repeat: u32, context: &Context) -> Result<Performed> {
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    play_together(plans)?;
    let mut notebook = Notebook::open(&context.notebook)?;
    let batch = jiff::Timestamp::now().to_string();
    let header = |plan: &Planned| RunHeader {
        name: plan.name.clone().unwrap_or_default(),
        batch: batch.clone(),
        experiment: plan.plan.experiment.clone(),
        target: plan.target.clone(),
        setting: plan.plan.setting.clone(),
        conditions: plan.plan.conditions.clone(),
        deterministic: plan.plan.deterministic,
        started: jiff::Timestamp::now().to_string(),
        pagelab: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let repetitions: Vec<u32> = plans.iter().map(|plan| plan.repetitions(repeat)).collect();
    let order = order(&repetitions);
    let (ids, mut begun) = notebook.together(|changes| {
        let ids: Vec<RunId> =
            plans.iter().map(|plan| changes.begin_run(&header(plan))).collect::<Result<_, _>>()?;
        let first = order.first().map(|&(number, index)| begin(changes, ids[index], number));
        Ok((ids, first.transpose()?))
    })?;
    let last_boots: Vec<Option<Duration>> = plans
        .iter()
        .map(|plan| if plan.boots() { last_boot(&notebook, &plan.target) } else { Ok(None) })
        .collect::<Result<_>>()?;
    let boots = plans.iter().filter(|plan| plan.boots()).count() as u64;
    let mut progress = Progress::new(order.len() as u64, boots, context.quiet);
    let (mut failure, mut left_out) = (None, None);
    // A run that cannot be performed is given up; the others go on.
    let mut given_up = vec![false; plans.len()];
    let mut ended: Option<Ended> = None;
    for (number, index) in order {
        if given_up[index] {
            progress.finish_one();
            continue;
        }
        let boot = (number == 1 && plans[index].boots()).then_some(last_boots[index]);
        progress.begin(&format!("{} on {}", plans[index].plan.experiment.name(), plans[index].target), boot);
        bug::under_way(format!(
            "repetition {number} of the run {} ({} on {}) in {}",
            ids[index],
            plans[index].plan.experiment.name(),
            plans[index].target,
            context.notebook.display()
        ));
        let id = match begun.take() {
            Some(id) => Ok(id),
            None => notebook.together(|changes| {
                ended.iter().try_for_each(|ended| ended.keep(changes))?;
                begin(changes, ids[index], number)
            }),
        };
        let id = match id {
            Ok(id) => id,
            Err(error) => {
                failure.get_or_insert(error.into());
                break;
            }
        };
        let (performed, result) = repetition(id, number, &mut plans[index], &progress, &interrupt);
        ended = Some(performed);
        progress.finish_one();
        if let Err(error) = result {
            let kind = error.downcast_ref::<Failure>().map(|failure| &failure.kind);
            let others =
                kind.is_some_and(|kind| !matches!(kind, FailureKind::Interrupted | FailureKind::Recorder));
            let unsupported = matches!(kind, Some(FailureKind::Unsupported { .. }));
            match failure {
                _ if unsupported && plans[index].part => {
                    if !context.quiet {
                        crate::output::remark!("left out: {error:#}");
                    }
                    left_out.get_or_insert(error);
                }
                None => failure = Some(error),
                // The notebook may have no run that says it.
                Some(_) => crate::output::remark!("{error:#}"),
            }
            if !others {
                break;
            }
            given_up[index] = true;
        }
    }
    if let Err(error) = notebook.together(|changes| ended.iter().try_for_each(|ended| ended.keep(changes))) {
        failure.get_or_insert(error.into());
    }
    bug::done();
    progress.clear();
    let mut runs = Vec::new();
    for id in ids {
        // What was refused, or never performed because of an interrupt, leaves nothing.
        if !notebook.together(|changes| changes.forget_empty(id))? {
            runs.push(notebook.load(id)?);
        }
    }
    // Where nothing at all could be performed, the reason is an error.
    let failure = failure.or(left_out.filter(|_| runs.is_empty()));
    Ok(Performed { runs, failure })
}

/// Has the models that play the same recording play it together.
fn play_together(plans: &mut [Planned]) -> Result<()> {
    let together = Together::default();
    for Planned { target, plan, .. } in plans {
        if let TargetKind::Model(name) = &target.kind {
            let wrong = |e: String| usage(format!("--on {target}: {e}"));
            let (_, own) = target.setting(&Setting::default()).map_err(|e| wrong(e.to_string()))?;
            let model = Model::new(name, &own).map_err(|e| wrong(e.to_string()))?;
            if let Some(performer) = together.join(&model, &plan.experiment, &plan.setting) {
                plan.perform_by(performer);
            }
        }
    }
    Ok(())
}

/// How long the last boot of this target took that the notebook knows of.
fn last_boot(notebook: &Notebook, target: &TargetSpec) -> Result<Option<Duration>> {
    let took = notebook.newest(
        &target.to_string(),
        environment::GUEST_BEGUN_AFTER,
        (environment::GUEST_BEGUN, "booted"),
    )?;
    let seconds = took.and_then(|took| took.strip_suffix(" s")?.parse().ok());
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()))
}

/// Which repetition of which plan comes when.
fn order(repetitions: &[u32]) -> Vec<(u32, usize)> {
    let numbers = 1..=repetitions.iter().copied().max().unwrap_or(0);
    let round = |number: u32| {
        let mut plans: Vec<usize> =
            (0..repetitions.len()).filter(|&index| number <= repetitions[index]).collect();
        if number.is_multiple_of(2) {
            plans.reverse();
        }
        plans.into_iter().map(move |index| (number, index))
    };
    numbers.flat_map(round).collect()
}

fn begin(changes: &Changes, run: RunId, number: u32) -> Result<RepetitionId, Problem> {
    changes.begin_repetition(run, number, &jiff::Timestamp::now().to_string())
}

/// A repetition that was performed, until the notebook has it.
struct Ended {
    id: RepetitionId,
    seen: Vec<Observation>,
    /// None: it was refused before it measured, and is not kept.
    outcome: Option<Outcome>,
}

impl Ended {
    fn keep(&self, changes: &Changes) -> Result<(), Problem> {
        match &self.outcome {
            Some(outcome) => changes.finish_repetition(self.id, &self.seen, outcome),
            None => changes.forget(self.id),
        }
    }
}

fn repetition(
    id: RepetitionId,
    number: u32,
    plan: &mut Planned,
    progress: &Progress,
    interrupt: &Interrupt,
) -> (Ended, Result<()>) {
    let background = match plan.target.kind {
        TargetKind::Host | TargetKind::Pager(_) => Background::start(),
        _ => None,
    };
    let mut known = plan.facts.clone();
    known.extend(fleet().into_iter().flatten());
    let mut seen = Vec::new();
    if !known.is_empty() {
        seen.push(Observation::Environment(known));
    }
    let mut recorder = BufferedRecorder { seen, progress, interrupt, measured: false };
    let result = plan.plan.perform(&mut recorder);
    let BufferedRecorder { mut seen, measured, .. } = recorder;
    if let (Some(table), Ok(())) = (background.and_then(Background::finish), &result) {
        seen.push(Observation::Table(table));
    }
    let refused = result.as_ref().is_err_and(Failure::is_refusal);
    let outcome = match &result {
        Ok(()) => Some(Outcome::Done),
        Err(failure) if failure.is_interrupted() => Some(Outcome::Interrupted),
        Err(_) if number == 1 && !measured && refused => None,
        Err(failure) => Some(Outcome::Failed(failure.clone())),
    };
    let result = match result {
        Err(failure) if failure.is_interrupted() => Err(CommandError::Interrupted.into()),
        other => other.with_context(|| format!("{} on {}", plan.plan.experiment.name(), plan.target)),
    };
    (Ended { id, seen, outcome }, result)
}

/// Where a fleet performs this, as its client says in `PAGELAB_FLEET`: a line `host=`, `worker=`
/// and `attempt=` each.
fn fleet() -> Option<BTreeMap<String, String>> {
    let text = std::env::var("PAGELAB_FLEET").ok()?;
    let entries = text.lines().filter_map(|line| line.split_once('='));
    let known = entries.filter(|(key, _)| ["host", "worker", "attempt"].contains(key));
    Some(known.map(|(key, value)| (format!("fleet.{key}"), value.to_owned())).collect())
}

/// Holds observations in memory, for a write to the disk would disturb what is measured, and shows
/// progress.
struct BufferedRecorder<'a> {
    seen: Vec<Observation>,
    progress: &'a Progress,
    interrupt: &'a Interrupt,
    /// Whether anything came but facts about the machine and notes.
    measured: bool,
}

impl Recorder for BufferedRecorder<'_> {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        if let Observation::Environment(entries) = &observation {
            let undeclared = entries.keys().find(|key| environment::help(key).is_none());
            debug_assert!(undeclared.is_none(), "the catalogue lacks {undeclared:?}");
        }
        self.measured |= !matches!(observation, Observation::Environment(_) | Observation::Note(_));
        self.seen.push(observation);
        Ok(())
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        self.progress.advance(phase, done, total);
    }

    fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }
}
