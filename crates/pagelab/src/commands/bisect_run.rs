//! `pagelab bisect-run`: one kernel judged with the exit statuses that `git bisect run` wants.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Run, Setting, Size, TargetError, TargetSpec};
use pagelab_notebook::Notebook;
use pagelab_reference::Pattern;

use super::Context;
use crate::failure::{Failure, usage};
use crate::output::say;
use crate::performance::{self, Plan};

/// What `git bisect run` takes for a commit that cannot be judged.
const SKIP: u8 = 125;
/// What ends the bisection.
const ABORT: u8 = 255;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Example, in a kernel's git tree:
  pagelab run mapanon --memory none --name good --on kernel:good-bzImage,accel=icount
  git bisect run sh -c 'make -s bzImage || exit 125;
    pagelab --notebook ../pagelab.db bisect-run --metric fault.anonymous --worse-than good --by 1 \\
      --kernel arch/x86/boot/bzImage --option accel=icount'
",
    after_help = "Exit status: 0 the kernel is good; 1 the metric is worse than the run's by more than --by per cent; 125 the \
kernel does not boot (git bisect skips it); 255 it could not be judged (git bisect stops)."
)]
pub struct Arguments {
    /// The metric (see: pagelab show)
    #[arg(long, value_name = "NAME")]
    metric: String,
    /// The run of a good kernel: a name, an id, @1 for the newest
    #[arg(long, value_name = "RUN")]
    worse_than: String,
    /// How much worse is bad, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    by: f64,
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

/// Performs the good run's experiment on the kernel and judges it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    match judge(arguments, context) {
        Ok(code) => Ok(ExitCode::from(code)),
        Err(error) if error.downcast_ref::<Failure>().is_some_and(|f| f.status() == 2) => Err(error),
        Err(error) if matches!(error.downcast_ref::<TargetError>(), Some(TargetError::NeverBooted(_))) => {
            eprintln!("pagelab: {error:#}");
            Ok(ExitCode::from(SKIP))
        }
        Err(error) => {
            eprintln!("pagelab: {error:#}");
            Ok(ExitCode::from(ABORT))
        }
    }
}

fn judge(arguments: &Arguments, context: &Context) -> Result<u8> {
    let good = {
        let notebook = Notebook::open_existing(&context.notebook)?;
        notebook.load(notebook.resolve(&arguments.worse_than)?)?
    };
    let before = middle(&good, &arguments.metric)
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
    let setting =
        Setting { memory: arguments.memory.or(good.header.setting.memory), ..good.header.setting.clone() };
    let mut plans = vec![Plan::new(None, experiment, &target, &setting)?];
    let performed = performance::perform(&mut plans, arguments.repeat, context)?;
    if let Some(error) = performed.failure {
        return Err(error);
    }
    let run = performed.runs.first().ok_or_else(|| anyhow!("nothing was performed"))?;
    let after =
        middle(run, &arguments.metric).ok_or_else(|| anyhow!("the run measured no {}", arguments.metric))?;
    let change = (after / before - 1.0) * 100.0;
    let bad = change > arguments.by;
    say!(
        "{}: {} {after:.1} against {before:.1}: {change:+.2} %, {}",
        run.header.name,
        arguments.metric,
        if bad { "bad" } else { "good" }
    );
    Ok(u8::from(bad))
}

fn middle(run: &Run, metric: &str) -> Option<f64> {
    pagelab_analysis::stats::median(&run.values(metric))
}
