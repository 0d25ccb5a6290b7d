//! `pagelab bisect-run`: one kernel judged with the exit statuses that `git bisect run` wants.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use pagelab_analysis::bisect::{self, Judgement};
use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::setting::Limit;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Failure, FailureKind, Request, Run, Setting, Size, TargetSpec};
use pagelab_notebook::{Notebook, Summary};
use pagelab_reference::Pattern;

use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::output::say;
use crate::performance::{self, Planned};

/// What `git bisect run` takes for a commit that cannot be judged.
const SKIP: u8 = 125;
/// What ends the bisection.
const ABORT: u8 = 255;
/// What the runs that judge are called, with a number.
const NAME: &str = "bisect";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Example, in a kernel's git tree:
  pagelab run mapanon --memory none --name good --on kernel:good-bzImage,accel=icount
  git bisect run sh -c 'make -s bzImage || exit 125;
    pagelab --notebook ../pagelab.db bisect-run mapanon --metric fault.anonymous --worse-than 1% \\
      --kernel arch/x86/boot/bzImage --option accel=icount'
",
    after_help = "Exit status: 0 the kernel is good; 1 the metric is worse than the good kernel's by more than was allowed; 125 the \
kernel does not boot (git bisect skips it); 255 it could not be judged (git bisect stops)."
)]
pub struct Arguments {
    /// The experiment [default: that of the good kernel's run]
    experiment: Option<String>,
    /// The metric (see: pagelab show)
    #[arg(long, value_name = "NAME")]
    metric: String,
    /// The run of a good kernel: a name, an id, @1 for the newest; or how much worse is bad, such as 1%, than
    /// the newest run of EXPERIMENT on a kernel that was not made to bisect
    #[arg(long, value_name = "RUN|PERCENT%", value_parser = bound)]
    worse_than: Bound,
    /// How much worse than RUN is bad, in per cent [default: 1]
    #[arg(long, value_name = "PERCENT")]
    by: Option<f64>,
    /// The kernel to judge
    #[arg(long, value_name = "PATH")]
    kernel: PathBuf,
    /// An option of the target, such as accel=icount or append="a b"
    #[arg(long, value_name = "KEY=VALUE")]
    option: Vec<String>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 1)]
    repeat: u32,
    /// Other references than those of the good kernel's run
    #[arg(long, value_name = "PATTERN")]
    pattern: Option<Pattern>,
    /// Another memory limit than that of the good kernel's run
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
}

/// What a kernel is held against.
#[derive(Clone, Debug)]
enum Bound {
    Run(String),
    Percent(f64),
}

fn bound(text: &str) -> Result<Bound, Refusal> {
    match text.strip_suffix('%') {
        None => Ok(Bound::Run(text.to_owned())),
        Some(number) => match number.trim().parse::<f64>() {
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Bound::Percent(percent)),
            _ => Err(Refusal::new("write a run's name, or per cent as in 1%")),
        },
    }
}

/// The good kernel's run, and how much worse is bad, in per cent.
fn good(arguments: &Arguments, notebook: &Notebook) -> Result<(Run, f64)> {
    let (id, percent) = match (&arguments.worse_than, &arguments.experiment) {
        (Bound::Run(run), _) => (notebook.resolve(run)?, arguments.by.unwrap_or(1.0)),
        (Bound::Percent(_), _) if arguments.by.is_some() => {
            return Err(usage("--worse-than says how many per cent already; leave out --by".to_owned()));
        }
        (Bound::Percent(_), None) => {
            return Err(usage(
                "--worse-than PERCENT% needs the experiment: pagelab bisect-run EXPERIMENT …".to_owned(),
            ));
        }
        (Bound::Percent(percent), Some(experiment)) => {
            let suits = |run: &&Summary| {
                let header = &run.header;
                run.done > 0
                    && header.experiment.name() == experiment
                    && matches!(header.target.kind, TargetKind::Kernel(_))
                    && !header.name.strip_prefix(NAME).is_some_and(|rest| rest.starts_with('-'))
            };
            let found = notebook.list()?.iter().rev().find(suits).map(|run| run.id);
            let missing = || {
                usage(format!(
                    "no run of {experiment} on a kernel is in the notebook; make one: pagelab run {experiment} --on kernel:GOOD …"
                ))
            };
            (found.ok_or_else(missing)?, *percent)
        }
    };
    let run = notebook.load(id)?;
    match &arguments.experiment {
        Some(name) if run.header.experiment.name() != name => Err(usage(format!(
            "the run {} is of {}, not of {name}",
            run.header.name,
            run.header.experiment.name()
        ))),
        _ => Ok((run, percent)),
    }
}

/// Performs the good run's experiment on the kernel and judges it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    match judge(arguments, context) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) if error.downcast_ref::<CommandError>().is_some_and(|f| f.status() == 2) => Err(error),
        Err(error) if error.downcast_ref::<Failure>().is_some_and(|f| f.kind == FailureKind::NeverBooted) => {
            crate::output::remark!("{error:#}");
            Ok(ExitCode::from(SKIP))
        }
        Err(error) => {
            crate::output::remark!("{error:#}");
            Ok(ExitCode::from(ABORT))
        }
    }
}

fn judge(arguments: &Arguments, context: &Context) -> Result<u8> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let (good, percent) = good(arguments, &notebook)?;
    let name = notebook.free_name(NAME)?;
    drop(notebook);
    let before = bisect::median(&good, &arguments.metric)
        .ok_or_else(|| usage(format!("the run {} measured no {}", good.header.name, arguments.metric)))?;
    let options: Result<Vec<_>> = arguments
        .option
        .iter()
        .map(|text| {
            let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
            pair.ok_or_else(|| usage(format!("--option {text}: write KEY=VALUE")))
        })
        .collect();
    let target =
        TargetSpec { kind: TargetKind::Kernel(arguments.kernel.display().to_string()), options: options? };
    let mut experiment = good.header.experiment.clone();
    if let (Some(pattern), Experiment::Mapanon(paging)) = (&arguments.pattern, &mut experiment) {
        *paging = Paging { pattern: pattern.clone(), ..paging.clone() };
    }
    let setting = Setting {
        memory: arguments.memory.map(Limit::Of).or(good.header.setting.memory),
        ..good.header.setting.clone()
    };
    let mut plans = vec![Planned::new(Some(name), &Request::new(experiment, setting), &target)?];
    let performed = performance::perform(&mut plans, arguments.repeat, context)?;
    if let Some(error) = performed.failure {
        return Err(error);
    }
    let run = performed.runs.first().ok_or_else(|| anyhow!("nothing was performed"))?;
    let Judgement { after, change, bad } = bisect::judge(before, run, &arguments.metric, percent)
        .ok_or_else(|| anyhow!("the run measured no {}", arguments.metric))?;
    say!(
        "{}: {} {after:.1} against {before:.1} of {}: {change:+.2} %, {}",
        run.header.name,
        arguments.metric,
        good.header.name,
        if bad { "bad" } else { "good" }
    );
    Ok(u8::from(bad))
}
