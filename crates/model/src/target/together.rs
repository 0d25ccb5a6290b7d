//! Models that play the same recordings: each recording is decoded for all of them at once.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pagelab_experiment::experiments::{Command, Experiment, Load};
use pagelab_experiment::{Failure, Observation, Performer, Recorder, Setting};

use super::program::{Outcome, Recording};
use super::{Kind, Model, PAGE_SIZE, PagingModel};

/// A model that is to play a recording, and what came of it when another one's turn played it.
struct Member {
    trace: PathBuf,
    model: PagingModel,
    setting: Setting,
    outcome: Option<Result<(u32, Outcome), Failure>>,
}

/// The models that play recordings together. The first that is performed plays its recording for
/// all of them.
#[derive(Default)]
pub struct Together(Rc<RefCell<Vec<Member>>>);

impl Together {
    /// A performer of `experiment` by `model` under `setting`; `None` unless `model` plays a recording.
    pub fn join(
        &self,
        model: &Model,
        experiment: &Experiment,
        setting: &Setting,
    ) -> Option<Box<dyn Performer>> {
        let declared = experiment.declaration();
        let (Kind::Paging(model), Load::Program(Command { trace: Some(trace), .. })) =
            (&model.0, declared.load())
        else {
            return None;
        };
        let mut members = self.0.borrow_mut();
        members.push(Member {
            trace: trace.clone(),
            model: model.of_a_program(),
            setting: setting.clone(),
            outcome: None,
        });
        Some(Box::new(Joined { members: Rc::clone(&self.0), number: members.len() - 1 }))
    }
}

/// One of those that play together.
struct Joined {
    members: Rc<RefCell<Vec<Member>>>,
    number: usize,
}

impl Performer for Joined {
    fn perform(&mut self, _: &Experiment, _: &Setting, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let mut members = self.members.borrow_mut();
        if members[self.number].outcome.is_none() {
            let trace = members[self.number].trace.clone();
            let mut playing: Vec<&mut Member> =
                members.iter_mut().filter(|one| one.trace == trace && one.outcome.is_none()).collect();
            let models: Vec<_> = playing.iter().map(|one| (&one.model, &one.setting)).collect();
            let outcomes = play(&trace, &models, recorder)?;
            playing.iter_mut().zip(outcomes).for_each(|(one, outcome)| one.outcome = Some(outcome));
        }
        let one = &mut members[self.number];
        let (frames, outcome) = one.outcome.take().expect("it was just played")?;
        recorder.observe(Observation::Environment(one.model.environment(frames)))?;
        outcome.observe(recorder)
    }
}

/// The frames of a member and what became of it.
type Played = Result<(u32, Outcome), Failure>;

/// What each of `models` makes of the recording at `trace`, and the frames that it had.
///
/// # Errors
/// When the recording cannot be read, or the user interrupts.
pub(super) fn play(
    trace: &Path,
    models: &[(&PagingModel, &Setting)],
    recorder: &mut dyn Recorder,
) -> Result<Vec<Played>, Failure> {
    let needs_future = models.iter().any(|(model, _)| model.player().needs_future());
    let recording = Recording::open(trace, needs_future, PAGE_SIZE, recorder)?;
    let players: Vec<_> = models
        .iter()
        .map(|(model, setting)| (model.player(), model.frames(setting, recording.pages)))
        .collect();
    let outcomes = recording.play(&players, recorder)?.into_iter();
    Ok(outcomes.zip(&players).map(|(outcome, player)| Ok((player.1, outcome?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyKind;
    use crate::systems::SYSTEMS;
    use pagelab_experiment::metrics::{FAULTS_MAJOR, FAULTS_MINOR, SWAP_IN, SWAP_OUT};
    use pagelab_experiment::{Observations, Request, Target};
    use pagelab_reference::trace::recorded::{Ending, Heading, LOAD, STORE, Writer};
    use proptest::prelude::*;

    /// A recording of these runs.
    fn recorded(path: &Path, runs: &[(u64, bool, u64)]) {
        let heading = Heading {
            program: vec!["true".into()],
            recorder: "test".into(),
            unit: PAGE_SIZE,
            kinds: vec!["load".into(), "store".into()],
            reduced: None,
            window: None,
        };
        let mut writer = Writer::new(std::fs::File::create(path).unwrap(), &heading).unwrap();
        let runs = runs.iter().map(|&(page, write, count)| (page, if write { STORE } else { LOAD }, count));
        writer.block(1, 1, runs).unwrap();
        writer.finish(Ending::default()).unwrap();
    }

    fn seen(plan: &mut pagelab_experiment::Plan) -> (Result<(), Failure>, Vec<Option<f64>>, Observations) {
        let mut seen = Observations::default();
        let result = plan.perform(&mut seen);
        let figures = [FAULTS_MINOR, FAULTS_MAJOR, SWAP_IN, SWAP_OUT].map(|id| seen.metric(id));
        (result, figures.into(), seen)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4))]
        #[test]
        fn one_pass_gives_every_model_what_it_gives_alone(
            runs in prop::collection::vec((0u64..400, any::<bool>(), prop_oneof![200 => 1u64..4, 1 => 1u64..70_000]), 200..900),
            limits in prop::collection::vec(prop_oneof![Just(None), (1u64..500).prop_map(Some)], 1..3),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.trace");
            recorded(&path, &runs);
            let mut command = Command::new(vec!["true".to_owned()]);
            command.trace = Some(path);
            let experiment = Experiment::Command(command);
            let policies = PolicyKind::catalogue().iter().map(|one| one.form.replace("TAU", "500"));
            let names = policies.chain(SYSTEMS.iter().map(|system| system.name.to_owned()));
            let together = Together::default();
            let (mut alone, mut joined) = (Vec::new(), Vec::new());
            for name in names {
                let model = Model::new(&name, &[]).unwrap();
                for limit in &limits {
                    let memory = limit.map(|pages| format!("{pages}p").parse().unwrap());
                    let request = Request::new(experiment.clone(), Setting { memory, ..Setting::default() });
                    alone.push((name.clone(), model.plan(&request).unwrap()));
                    let mut plan = model.plan(&request).unwrap();
                    plan.perform_by(together.join(&model, &plan.experiment, &plan.setting).unwrap());
                    joined.push(plan);
                }
            }
            for ((name, one), other) in alone.iter_mut().zip(&mut joined) {
                let ((result, figures, one), (again, same, other)) = (seen(one), seen(other));
                prop_assert_eq!(&result, &again, "{}", name);
                prop_assert!(result.is_err() || figures[1].is_some(), "{}", name);
                prop_assert_eq!(figures, same, "{}", name);
                prop_assert_eq!(one.environment, other.environment);
            }
        }
    }
}
