//! `pagelab run`: performs an experiment, or the standard suite, and keeps what was seen.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use pagelab_analysis::findings::{Assessment, assess, assess_sweep, clock_verdict};
use pagelab_analysis::least_memory::{Effort, Goal};
use pagelab_experiment::environment;
use pagelab_experiment::experiments::{Command, Load};
use pagelab_experiment::setting::Value;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Request, Run, Setting, TargetSpec, Unsupported};
use pagelab_guest::Guest;
use pagelab_notebook::Notebook;
use pagelab_studies::{STUDIES, StudyKind};

use crate::context::Context;
use crate::dry_run;
use crate::failure::{CommandError, is_interrupted, usage};
use crate::output::remark;
use crate::performance::{self, Planned};
use crate::program::Recording;
use crate::summary::Detail;
use crate::sweep::{self, Sweep};
use crate::{consoles, page, suite, summary, today};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    subcommand_value_name = "EXPERIMENT",
    subcommand_help_heading = "Experiments",
    before_help = "Examples:
  pagelab run
  pagelab run mapanon --pattern zipf:0.9 --memory 128M --pages 65536
  pagelab run mapanon --repeat 8 --on host,swap=file --on host,swap=zram
  pagelab run mapanon --on host --on model:linux-lru --on model:opt
  pagelab run command --memory 64M -- sort big.txt
"
)]
pub struct Arguments {
    /// Instead of an experiment or the suite: the experiments of a published study, each a few
    /// seconds and under the study's limit; or mm-today
    #[arg(long, value_name = "STUDY", value_parser = chosen())]
    study: Option<Chosen>,
    /// Open a shell in the guest instead of running an experiment (from root=DIR, or busybox)
    #[arg(long)]
    shell: bool,
    #[command(flatten)]
    conditions: Conditions,
    /// The experiment; none: the standard suite
    #[command(subcommand)]
    experiment: Option<Experiment>,
}

/// A set of experiments.
#[derive(Clone, Copy, Debug)]
enum Chosen {
    /// Those of a published study.
    Paper(&'static StudyKind),
    /// Those of [`today`].
    Today,
}

impl Chosen {
    fn name(self) -> &'static str {
        match self {
            Self::Paper(study) => study.name,
            Self::Today => today::NAME,
        }
    }
}

/// A set by its name.
fn chosen() -> impl TypedValueParser<Value = Chosen> {
    let papers = STUDIES.iter().map(|study| PossibleValue::new(study.name).help(study.title));
    let names = papers.chain([PossibleValue::new(today::NAME).help(today::TITLE)]);
    PossibleValuesParser::new(names).try_map(|name| match pagelab_studies::named(&name) {
        Some(study) => Ok(Chosen::Paper(study)),
        None if name == today::NAME => Ok(Chosen::Today),
        None => Err("it is no study"),
    })
}

/// What is common to all experiments.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of every experiment")]
struct Conditions {
    /// The target; several are interleaved (A B B A) [default: host]
    #[arg(long, value_name = "TARGET", global = true)]
    on: Vec<TargetSpec>,
    /// Repetitions on each target [default: 1; of the suite: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), global = true)]
    repeat: Option<u32>,
    #[command(flatten)]
    setting: Setting,
    /// Use the times that this run measured for simulators: hit, minor and major fault
    #[arg(long, value_name = "RUN", global = true)]
    costs: Option<String>,
    /// The run's name [default: one made from the experiment's]
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
    /// The revision measured, such as a git commit: 'pagelab history --by revision' shows metrics
    /// over it
    #[arg(long, value_name = "TEXT", env = "PAGELAB_REVISION", value_parser = NonEmptyStringValueParser::new(), global = true)]
    revision: Option<String>,
    /// The file for the page of plots; none: no page
    #[arg(long, alias = "report", value_name = "FILE", default_value = "report.html", global = true)]
    html: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Leave the console of each repetition of a guest in the working folder:
    /// RUN-REPETITION.console
    #[arg(long, global = true)]
    keep: bool,
    /// Print the plan (conditions, requirements, changes to this machine) and do nothing
    #[arg(long, global = true)]
    dry_run: bool,
}

impl Conditions {
    /// `experiment` under what was asked for; where nothing was, under what is `usual`.
    fn request(&self, experiment: &Experiment, usual: &Setting) -> Request {
        Request { experiment: experiment.clone(), asked: self.setting.clone(), usual: usual.clone() }
    }

    /// Whether nothing else was asked for than a part of the suite is about, on any target.
    fn leaves(&self, part: &Setting) -> bool {
        let taken = self.setting.values();
        part.values().iter().map(Value::key).all(|key| {
            let on_a_target = self.on.iter().any(|target| target.options.iter().any(|(own, _)| own == key));
            !on_a_target && !taken.iter().any(|other| other.key() == key)
        })
    }

    /// The targets, the modelled ones with the costs of the run that `--costs` names.
    fn targets(&self, context: &Context) -> Result<Vec<TargetSpec>> {
        let mut targets = if self.on.is_empty() { vec![TargetSpec::host()] } else { self.on.clone() };
        let Some(run) = &self.costs else { return Ok(targets) };
        let notebook = Notebook::open_existing(&context.notebook)?;
        let costs = pagelab_analysis::costs::measured(&notebook.load(notebook.resolve(run)?)?);
        let costs = costs.ok_or_else(|| {
            anyhow!(
                "--costs {run}: that run timed no references\nhint: name a run of mapanon or mapfile on the host"
            )
        })?;
        for target in targets.iter_mut().filter(|t| matches!(t.kind, TargetKind::Model(_))) {
            for (key, value) in &costs {
                if !target.options.iter().any(|(own, _)| own == key) {
                    target.options.push(((*key).to_owned(), value.to_string()));
                }
            }
        }
        Ok(targets)
    }
}

/// Performs what was asked, then prints the verdict and draws the page.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let conditions = &arguments.conditions;
    let targets = conditions.targets(context)?;
    if arguments.shell {
        return shell(arguments, &targets);
    }
    if conditions.keep {
        consoles::wanted(&targets)?;
    }
    let name = conditions.name.as_deref();
    let mut plans = Plans { targets: &targets, list: Vec::new(), left_out: Vec::new() };
    let (mut repeat, mut explained) = (1, None);
    match (&arguments.experiment, arguments.study) {
        (Some(experiment), None) => {
            if let Load::Program(command @ Command { sweep_memory: Some(sizes), .. }) =
                experiment.declaration().load()
            {
                let [target] = targets.as_slice() else {
                    return Err(usage(
                        "--sweep-memory searches on one target\nhint: give --on once".to_owned(),
                    ));
                };
                let repeat = conditions.repeat.unwrap_or(sweep::REPEAT);
                remark!("--sweep-memory: the next release removes this option; use pagelab need -- PROGRAM");
                let sweep = Sweep {
                    command,
                    name,
                    target,
                    setting: &conditions.setting,
                    effort: Effort {
                        give_up: command.give_up.unwrap_or(Command::GIVE_UP),
                        budget: command.budget.unwrap_or(Command::BUDGET),
                        repeat,
                    },
                    goals: &[Goal::Slowdown],
                    asked_by: "--sweep-memory",
                };
                if conditions.dry_run {
                    return dry_run::print(&[sweep.first(*sizes)?], repeat, conditions.json, context);
                }
                let (done, found) = sweep.perform(*sizes, context)?;
                let runs: Vec<&Run> = done.runs.iter().collect();
                let assessment = assess_sweep(&runs, found);
                return finish(&assessment, Detail::Verdict, done.failure, conditions, context);
            }
            let mut experiment = experiment.clone();
            let recording = Recording::wanted(&mut experiment, &targets)?;
            let request = conditions.request(&experiment, &experiment.declaration().usual());
            plans.add(name, &request)?;
            if let (Some(recording), false) = (recording, conditions.dry_run) {
                recording.make(context)?;
                // What the models need is known now.
                plans.list.clear();
                plans.add(name, &request)?;
            }
        }
        (Some(_), Some(study)) => {
            return Err(usage(format!(
                "--study {} has experiments of its own\nhint: leave out the other one",
                study.name()
            )));
        }
        (None, Some(Chosen::Today)) => {
            let prefix = prefix(name, today::NAME, context)?;
            plans.add_parts(&prefix, &today::parts(), conditions, |_| today::usual())?;
            explained = Some(prefix);
        }
        (None, Some(Chosen::Paper(study))) => {
            let prefix = prefix(name, study.name, context)?;
            for live in (study.live)() {
                let name = format!("{prefix}-{}", live.name);
                plans.add_part(&name, &conditions.request(&live.experiment, &live.setting()))?;
            }
        }
        (None, None) => {
            let prefix = prefix(name, "suite", context)?;
            plans.add_parts(&prefix, &suite::parts(), conditions, |experiment| {
                experiment.declaration().usual()
            })?;
            repeat = suite::REPEAT;
            // A machine whose time is not true measures nothing: every run of the suite says so.
            if !conditions.dry_run {
                let request = Request::new(suite::clock(), Setting::default());
                let mut clock = [Planned::new(None, &request, &TargetSpec::host())?];
                let timed = performance::perform(&mut clock, 1, context)?;
                if let Some(error) = timed.failure.filter(is_interrupted) {
                    return Err(error);
                }
                let word = clock_verdict(&timed.runs);
                plans.list.iter_mut().for_each(|plan| plan.mark(environment::CLOCK_VERDICT, &word));
            }
        }
    }
    let mut plans = plans.finish(context)?;
    if let Some(revision) = &conditions.revision {
        plans.iter_mut().for_each(|plan| plan.mark(environment::REVISION, revision));
    }
    let repeat = conditions.repeat.unwrap_or(repeat);
    if conditions.dry_run {
        return dry_run::print(&plans, repeat, conditions.json, context);
    }
    let done = performance::perform(&mut plans, repeat, context)?;
    let runs: Vec<&Run> = done.runs.iter().collect();
    let finished = finish(&assess(&runs), Detail::Full, done.failure, conditions, context);
    if let (Some(prefix), false) = (explained, conditions.json) {
        today::explain(&prefix, &runs, context);
    }
    finished
}

/// A shell in the one guest that is named.
fn shell(arguments: &Arguments, targets: &[TargetSpec]) -> Result<ExitCode> {
    if arguments.experiment.is_some() || arguments.study.is_some() {
        return Err(usage("--shell runs no experiment\nhint: leave out one of them".to_owned()));
    }
    let [target @ TargetSpec { kind: TargetKind::Kernel(path), .. }] = targets else {
        return Err(usage("--shell needs a guest\nhint: give one: --on kernel:PATH,root=DIR".to_owned()));
    };
    let (setting, own) = target.setting(&arguments.conditions.setting).map_err(|e| usage(e.to_string()))?;
    if let Some(value) = setting.values().first() {
        return Err(usage(format!("--shell opens the guest as it boots\nhint: leave out {}", value.key())));
    }
    let guest = Guest::new(Path::new(path), &own).map_err(|e| usage(format!("--on {target}: {e}")))?;
    guest.shell()?;
    Ok(ExitCode::SUCCESS)
}

/// The runs to be made.
struct Plans<'a> {
    targets: &'a [TargetSpec],
    list: Vec<Planned>,
    /// Why a part of a suite is not performed on a target.
    left_out: Vec<anyhow::Error>,
}

impl Plans<'_> {
    /// Plans `request` on every target; of several, each run's name ends with its number.
    ///
    /// # Errors
    /// What a target does not honour: then nothing is performed at all.
    fn add(&mut self, name: Option<&str>, request: &Request) -> Result<()> {
        for (n, target) in self.targets.iter().enumerate() {
            self.list.push(Planned::new(self.numbered(name, n), request, target)?);
        }
        Ok(())
    }

    /// The same for one of many experiments, which is left out where a target does not perform it.
    ///
    /// # Errors
    /// When a target is none at all.
    fn add_part(&mut self, name: &str, request: &Request) -> Result<()> {
        for (n, target) in self.targets.iter().enumerate() {
            match Planned::new(self.numbered(Some(name), n), request, target) {
                Ok(mut planned) => {
                    planned.make_part();
                    self.list.push(planned);
                }
                Err(error) if error.is::<CommandError>() || error.is::<Unsupported>() => {
                    self.left_out.push(error)
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Plans the parts of a suite, but those that are about a condition of which something else was
    /// asked for.
    ///
    /// # Errors
    /// When a target is none at all.
    fn add_parts(
        &mut self,
        prefix: &str,
        parts: &[suite::Part],
        conditions: &Conditions,
        usual: fn(&Experiment) -> Setting,
    ) -> Result<()> {
        for part in parts.iter().filter(|part| conditions.leaves(&part.asked)) {
            let name = format!("{prefix}-{}", part.name);
            let mut request = conditions.request(&part.experiment, &usual(&part.experiment));
            part.asked.values().into_iter().for_each(|value| request.asked.put(value));
            let before = self.list.len();
            self.add_part(&name, &request)?;
            // Whoever says how often has said it of all.
            if conditions.repeat.is_none() {
                self.list[before..].iter_mut().for_each(|planned| planned.perform_more(part.more));
            }
        }
        Ok(())
    }

    fn numbered(&self, name: Option<&str>, n: usize) -> Option<String> {
        name.map(|name| match self.targets {
            [_] => name.to_owned(),
            _ => format!("{name}-{}", n + 1),
        })
    }

    /// What is to be performed; says what is left out.
    ///
    /// # Errors
    /// When nothing is left.
    fn finish(mut self, context: &Context) -> Result<Vec<Planned>> {
        if self.list.is_empty() && !self.left_out.is_empty() {
            return Err(self.left_out.swap_remove(0));
        }
        if !context.quiet {
            self.left_out.iter().for_each(|refused| remark!("left out: {refused:#}"));
        }
        Ok(self.list)
    }
}

/// What the names of several runs begin with: `name`, else `usual`, or `usual-2` and so on where
/// the notebook has such runs already.
fn prefix(name: Option<&str>, usual: &str, context: &Context) -> Result<String> {
    if let Some(name) = name {
        return Ok(name.to_owned());
    }
    if !context.notebook.exists() {
        return Ok(usual.to_owned());
    }
    let runs = Notebook::open_existing(&context.notebook)?.entries()?;
    let taken = |prefix: &str| {
        let begin = format!("{prefix}-");
        runs.iter().any(|run| run.name().starts_with(&begin))
    };
    let mut prefix = usual.to_owned();
    let mut number = 1;
    while taken(&prefix) {
        number += 1;
        prefix = format!("{usual}-{number}");
    }
    Ok(prefix)
}

/// Prints what the runs say and draws the page.
fn finish(
    assessment: &Assessment,
    detail: Detail,
    failure: Option<anyhow::Error>,
    conditions: &Conditions,
    context: &Context,
) -> Result<ExitCode> {
    if conditions.keep {
        consoles::keep(&assessment.runs)?;
    }
    conclude(assessment, detail, failure, &conditions.html, conditions.json, context)
}

/// The same without consoles; `html`: the page's file, or none.
pub fn conclude(
    assessment: &Assessment,
    detail: Detail,
    failure: Option<anyhow::Error>,
    html: &Path,
    json: bool,
    context: &Context,
) -> Result<ExitCode> {
    // A page without a figure would replace one that has some.
    let seen = assessment.runs.iter().any(|run| run.done().next().is_some());
    let drawn = if html.as_os_str() == "none" || !seen {
        None
    } else {
        page::write(assessment, html)?;
        Some(html)
    };
    if json {
        summary::print_json(assessment, drawn)?;
    } else {
        summary::print(assessment, detail, drawn, context);
    }
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(error),
    }
}
