//! `pagelab run`: performs an experiment, or the standard suite, and keeps what was seen.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use pagelab_experiment::setting::{MOST_SAMPLES, Swap, Thp};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Run, Setting, Size, TargetSpec};
use pagelab_notebook::Notebook;

use super::Context;
use super::experiments::ExperimentArguments;
use crate::failure::usage;
use crate::performance::{self, Plan};
use crate::{costs, page, suite, summary, sweep, verdict};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:
  pagelab run
  pagelab run mapanon --pattern zipf:0.9 --memory 128M --pages 65536
  pagelab run mapanon --repeat 8 --on host,swap=file --on host,swap=zram
  pagelab run mapfile --touch write --name dirty-pages
  pagelab run mapanon --on host --on model:linux-lru --on model:lru --on model:opt
  pagelab run vmtest --repeat 3
  pagelab run command --sweep-memory 32M..1G -- sort big.txt
")]
pub struct Arguments {
    #[command(flatten)]
    conditions: Conditions,
    /// The experiment; none: the standard suite
    #[command(subcommand)]
    experiment: Option<ExperimentArguments>,
}

/// What is common to all experiments.
#[derive(clap::Args, Debug)]
struct Conditions {
    /// What to perform it on; several are interleaved (A B B A) [default: host]
    #[arg(long, value_name = "TARGET", global = true)]
    on: Vec<TargetSpec>,
    /// Repetitions on each target [default: 1; of the suite: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), global = true)]
    repeat: Option<u32>,
    /// The memory limit: a SIZE, or none [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = limit, global = true)]
    memory: Option<Limit>,
    /// The swap for the run: a file or a zram device made for it, or none [default: file]
    #[arg(long, value_name = "file|zram|none", global = true)]
    swap: Option<Swap>,
    /// The size of that swap [default: what the experiment needs]
    #[arg(long, value_name = "SIZE", global = true)]
    swap_size: Option<Size>,
    /// Transparent huge pages during the run
    #[arg(long, value_name = "always|madvise|never", global = true)]
    thp: Option<Thp>,
    /// The kernel's inclination to swap during the run
    #[arg(long, value_name = "0-200", value_parser = clap::value_parser!(u8).range(0..=200), global = true)]
    swappiness: Option<u8>,
    /// A file under /sys or /proc/sys and its value during the run
    #[arg(long, value_name = "FILE=VALUE", global = true)]
    set: Vec<String>,
    /// Count the calls of chosen kernel functions, in a load performed once more for it (root)
    #[arg(long, global = true)]
    functions: bool,
    /// Sample where the kernel is, so often a second, in a load performed once more for it (root) [default: forkstorm 997, others 0]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_SAMPLES)), global = true)]
    profile: Option<u32>,
    /// Give modelled targets the times that this run measured: hit, minor and major fault
    #[arg(long, value_name = "RUN", global = true)]
    costs: Option<String>,
    /// The run's name [default: one made from the experiment's]
    #[arg(long, value_name = "NAME", global = true)]
    name: Option<String>,
    /// Where the page of plots goes; none: no page
    #[arg(long, value_name = "FILE", default_value = "report.html", global = true)]
    report: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

/// A limit or the wish for none.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    Of(Size),
}

fn limit(text: &str) -> Result<Limit, String> {
    match text {
        "none" => Ok(Limit::None),
        _ => text.parse().map(Limit::Of).map_err(|e: pagelab_experiment::size::SizeError| e.to_string()),
    }
}

impl Conditions {
    fn setting(&self) -> Result<Setting> {
        let memory = match self.memory {
            None => Some(suite::MEMORY),
            Some(Limit::None) => None,
            Some(Limit::Of(size)) => Some(size),
        };
        let mut setting = Setting {
            memory,
            swap: self.swap,
            swap_size: self.swap_size,
            thp: self.thp,
            swappiness: self.swappiness,
            functions: self.functions,
            profile: self.profile,
            ..Setting::default()
        };
        for pair in &self.set {
            setting.apply("set", pair).map_err(usage)?;
        }
        Ok(setting)
    }

    /// The targets, the modelled ones with the costs of the run that `--costs` names.
    fn targets(&self, context: &Context) -> Result<Vec<TargetSpec>> {
        let mut targets = if self.on.is_empty() { vec![TargetSpec::host()] } else { self.on.clone() };
        let Some(run) = &self.costs else { return Ok(targets) };
        let notebook = Notebook::open_existing(&context.notebook)?;
        let costs = costs::measured(&notebook.load(notebook.resolve(run)?)?)?;
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
    let setting = conditions.setting()?;
    let targets = conditions.targets(context)?;
    let name = conditions.name.as_deref();
    let range = arguments.experiment.as_ref().and_then(ExperimentArguments::sweep);
    let repeat = conditions.repeat.unwrap_or(match (&arguments.experiment, range) {
        (_, Some(_)) => sweep::REPEAT,
        (Some(_), None) => 1,
        (None, None) => suite::REPEAT,
    });
    if let (Some(experiment), Some(range)) = (&arguments.experiment, range) {
        let [target] = targets.as_slice() else {
            return Err(usage("--sweep-memory searches on one target; give --on once".to_owned()));
        };
        let experiment = experiment.experiment(&setting);
        let (done, lines) = sweep::sweep(&experiment, range, name, target, &setting, repeat, context)?;
        return finish(done, lines, conditions, context);
    }
    let mut plans = Vec::new();
    match &arguments.experiment {
        Some(experiment) => {
            for (n, target) in targets.iter().enumerate() {
                let name =
                    name.map(
                        |name| if targets.len() > 1 { format!("{name}-{}", n + 1) } else { name.to_owned() },
                    );
                plans.push(Plan::new(name, experiment.experiment(&setting), target, &setting)?);
            }
        }
        None => {
            for part in suite::parts() {
                for (n, target) in targets.iter().enumerate() {
                    let mut part_name = format!("{}-{}", name.unwrap_or("suite"), part.name);
                    if targets.len() > 1 {
                        part_name += &format!("-{}", n + 1);
                    }
                    plans.push(Plan::new(Some(part_name), part.experiment.clone(), target, &setting)?);
                }
            }
        }
    }
    if arguments.experiment.is_none() {
        // A machine whose time is not true measures nothing: every run of the suite says so.
        let mut clock = [Plan::new(None, suite::clock(), &TargetSpec::host(), &Setting::default())?];
        let timed = performance::perform(&mut clock, 1, context)?;
        let word = verdict::of_clock(&timed.runs);
        plans.iter_mut().for_each(|plan| plan.mark(&word));
    }
    let done = performance::perform(&mut plans, repeat, context)?;
    finish(done, Vec::new(), conditions, context)
}

/// Prints the verdict, `lines` first, and draws the page.
fn finish(
    done: performance::Performed,
    mut lines: Vec<String>,
    conditions: &Conditions,
    context: &Context,
) -> Result<ExitCode> {
    let runs: Vec<&Run> = done.runs.iter().collect();
    // A sweep has said it all in a sentence for all runs; `pagelab show` has the figures of each.
    let swept = !lines.is_empty();
    lines.extend(if lines.is_empty() { verdict::verdict(&runs) } else { verdict::warnings(&runs) });
    let drawn = if conditions.report.as_os_str() == "none" {
        None
    } else {
        page::write(&runs, &lines, &conditions.report)?;
        Some(conditions.report.as_path())
    };
    if conditions.json {
        summary::print_json(&runs, &lines, drawn)?;
    } else if swept {
        summary::print_end(&runs, &lines, drawn, context)?;
    } else {
        summary::print(&runs, &lines, drawn, context)?;
    }
    match done.failure {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(anyhow!(error)),
    }
}
