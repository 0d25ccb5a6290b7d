//! `pagelab bisect-run`: one kernel judged with the exit statuses that `git bisect run` wants.
//!
//! Whatever is no verdict must not look like one: git takes every status from 1 to 127 but 125 for «bad». So a wrong
//! usage, a failure and a bug of pagelab's own all end with 255.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use pagelab_analysis::bisect::{Judgement, Side};
use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::experiments::{Backing, Load, Paging};
use pagelab_experiment::setting::Limit;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Failure, FailureKind, Request, Run, Setting, Size, TargetSpec};
use pagelab_notebook::{Notebook, Summary};
use pagelab_reference::Pattern;
use pagelab_report::text::value;

use super::compare::{metric_name, percent};
use crate::context::Context;
use crate::failure::usage;
use crate::output::remark;
use crate::performance::{self, Planned};

/// What `git bisect run` takes for a commit that cannot be judged.
const SKIP: u8 = 125;
/// What ends the bisection.
const ABORT: u8 = 255;
/// What the runs that judge are called, with a number.
const NAME: &str = "bisect";
/// How often the good kernel is booted again to learn what boots differ by.
const BOOTS: usize = 2;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "pagelab bisect-run [OPTIONS] --metric <NAME>
         --worse-than <RUN|PERCENT%> --kernel <PATH> [EXPERIMENT]",
    before_help = "Example, in a kernel's git tree:
  pagelab run mapanon --memory none --name good \\
    --on kernel:good-bzImage,accel=icount
  git bisect run sh -c 'make -s bzImage || exit 125;
    pagelab --notebook ../pagelab.db bisect-run mapanon \\
      --metric fault.anonymous --worse-than 5% \\
      --kernel arch/x86/boot/bzImage'
",
    after_help = "Before the first verdict pagelab boots the good kernel twice more, each time with \
another word on its command line that has no effect. Twice the difference between these boots is the \
smallest detectable change; pagelab refuses a lower percentage.

Exit status: 0 the kernel is good; 1 the metric is worse than allowed; 125 the kernel does not boot (git \
bisect skips it); 255 there is no verdict (git bisect stops)."
)]
pub struct Arguments {
    /// The experiment [default: that of the good kernel's run]
    experiment: Option<String>,
    /// The metric (see: pagelab show)
    #[arg(long, value_name = "NAME", value_parser = metric_name)]
    metric: String,
    /// The run of a good kernel: a name, an id, @1 for the newest. Or a percentage such as 5%: the good kernel is
    /// then that of the newest run of EXPERIMENT that no bisection made
    #[arg(long, value_name = "RUN|PERCENT%", value_parser = bound)]
    worse_than: Bound,
    /// Percentage by which a bad kernel is worse than RUN [default: 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    by: Option<f64>,
    /// The kernel to judge
    #[arg(long, value_name = "PATH")]
    kernel: PathBuf,
    /// An option of the target that replaces the good kernel's, such as accel=icount or append="a b"
    #[arg(long, value_name = "KEY=VALUE")]
    option: Vec<String>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
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
        Some(_) => match percent(text) {
            Ok(percent) => Ok(Bound::Percent(percent)),
            Err(_) => Err(Refusal::new("must be the name of a run, or a percentage such as 1%")),
        },
    }
}

/// Whether a command line is one of this command, also where it cannot be parsed.
pub fn is_meant(mut words: impl Iterator<Item = OsString>) -> bool {
    while let Some(word) = words.next() {
        match word.to_string_lossy().as_ref() {
            "--notebook" | "--color" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return word == "bisect-run",
        }
    }
    false
}

/// What a command line that cannot be parsed ends with.
pub fn no_verdict() -> ExitCode {
    ExitCode::from(ABORT)
}

/// Performs the good run's experiment on the kernel and judges it; there is always a status.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let judged = catch_unwind(AssertUnwindSafe(|| judge(arguments, context)));
    let status = match judged {
        Ok(Ok(bad)) => u8::from(bad),
        Ok(Err(error)) => {
            remark!("{error:#}");
            let kind = error.downcast_ref::<Failure>().map(|failure| &failure.kind);
            if kind == Some(&FailureKind::NeverBooted) { SKIP } else { ABORT }
        }
        // What panicked has been said.
        Err(_) => ABORT,
    };
    Ok(ExitCode::from(status))
}

/// The good kernel's run, and how much worse is bad, in per cent.
fn good(arguments: &Arguments, notebook: &Notebook) -> Result<(Run, f64)> {
    let (id, percent) = match (&arguments.worse_than, &arguments.experiment) {
        (Bound::Run(run), _) => (notebook.resolve(run)?, arguments.by.unwrap_or(1.0)),
        (Bound::Percent(_), _) if arguments.by.is_some() => {
            return Err(usage("--worse-than already has a percentage\nhint: leave out --by".to_owned()));
        }
        (Bound::Percent(_), None) => {
            return Err(usage(
                "--worse-than PERCENT% needs the experiment\nhint: pagelab bisect-run EXPERIMENT …"
                    .to_owned(),
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
                    "the notebook has no run of {experiment} on a kernel\nhint: make one: pagelab run \
                    {experiment} --on kernel:GOOD …"
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

/// What is performed, and on which options.
struct Work {
    experiment: Experiment,
    setting: Setting,
    /// Whether the good run's own figures are of the same.
    as_good: bool,
}

impl Work {
    fn of(arguments: &Arguments, good: &Run) -> Self {
        let experiment = match (&arguments.pattern, good.header.experiment.declaration().load()) {
            (Some(pattern), Load::References(paging, backing)) if backing != Backing::File => {
                Experiment::Mapanon(Paging { pattern: pattern.clone(), ..paging.clone() })
            }
            _ => good.header.experiment.clone(),
        };
        let setting = Setting {
            memory: arguments.memory.map(Limit::Of).or(good.header.setting.memory),
            ..good.header.setting.clone()
        };
        let as_good = experiment == good.header.experiment && setting == good.header.setting;
        Self { experiment, setting, as_good }
    }

    fn plan(&self, name: String, target: &TargetSpec) -> Result<Planned> {
        Planned::new(Some(name), &Request::new(self.experiment.clone(), self.setting.clone()), target)
    }
}

/// Whether the kernel is bad.
fn judge(arguments: &Arguments, context: &Context) -> Result<bool> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let (good, percent) = good(arguments, &notebook)?;
    drop(notebook);
    // Before anything is booted: a metric that nobody measured, an image that is not there.
    Side::of(&[&good], &arguments.metric)?;
    let work = Work::of(arguments, &good);
    let target = target(arguments, &good)?;
    work.plan(String::new(), &target)?;
    let boots = good_boots(&good, &work, context)?;
    let mut runs: Vec<&Run> = boots.iter().collect();
    if work.as_good {
        runs.push(&good);
    }
    let side = Side::of(&runs, &arguments.metric)?;
    let told = format!("smallest detectable change {}%, from {} boots", side.told(), side.values.len());
    side.check(percent)?;
    let name = Notebook::open_existing(&context.notebook)?.free_name(NAME)?;
    let performed = performance::perform(&mut [work.plan(name, &target)?], arguments.repeat, context)?;
    if let Some(error) = performed.failure {
        return Err(error);
    }
    let run = performed.runs.first().ok_or_else(|| anyhow!("no repetition ran"))?;
    let judged = side.judge(&Side::of(&[run], &arguments.metric)?, percent)?;
    let Judgement { before, after, change, bad } = judged;
    let shown = |figure: f64| value(Some(figure), side.unit);
    let change = change
        .map_or_else(|| "the baseline is 0: no percentage".to_owned(), |change| format!("{change:+.2}%"));
    // A reader that went away changes no verdict.
    let _ = writeln!(
        crate::output::stdout(),
        "{}: {} {} against {} of {}: {change}, {} ({percent}% allowed; {told})",
        run.header.name,
        arguments.metric,
        shown(after),
        shown(before),
        good.header.name,
        if bad { "bad" } else { "good" }
    );
    Ok(bad)
}

/// The kernel to judge, with the good kernel's options where no other is given.
fn target(arguments: &Arguments, good: &Run) -> Result<TargetSpec> {
    let mut options = good.header.target.options.clone();
    for text in &arguments.option {
        let (key, value) =
            text.split_once('=').ok_or_else(|| usage(format!("--option {text}: must be KEY=VALUE")))?;
        options.retain(|(known, _)| known != key);
        options.push((key.to_owned(), value.to_owned()));
    }
    Ok(TargetSpec { kind: TargetKind::Kernel(arguments.kernel.display().to_string()), options })
}

/// The boots of the good kernel that tell what boots differ by: made once, before the first verdict, and kept in the
/// notebook. Each has another word on its command line that does nothing: the same boot of a guest that counts
/// instructions would be the same to the digit, and say nothing about another kernel's.
fn good_boots(good: &Run, work: &Work, context: &Context) -> Result<Vec<Run>> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let base = format!("{NAME}-boot-{}", good.id);
    let of_work = |run: &&Summary| {
        let header = &run.header;
        let named = header.name.strip_prefix(&base).is_some_and(|rest| rest.starts_with('-'));
        let same = header.experiment == work.experiment && header.setting.memory == work.setting.memory;
        run.done > 0 && named && same
    };
    let list = notebook.list()?;
    let known: Vec<Run> = list
        .iter()
        .filter(of_work)
        .map(|run| notebook.load(run.id))
        .collect::<std::result::Result<_, _>>()?;
    if known.len() >= BOOTS {
        return Ok(known);
    }
    drop(notebook);
    let TargetKind::Kernel(path) = &good.header.target.kind else {
        return Err(usage(format!("the run {} is not of a kernel image", good.header.name)));
    };
    if let Err(why) = untouched(Path::new(path), &good.header.started) {
        let own = good.done().count();
        if work.as_good && own > 1 {
            remark!("{why}: the difference between boots is that of its {own} repetitions");
            return Ok(Vec::new());
        }
        return Err(usage(format!(
            "{why}, so the difference between its boots is unknown\nhint: keep a copy of the good kernel, and \
            run it again"
        )));
    }
    let mut boots = Vec::new();
    for n in 0..BOOTS {
        let mut target = good.header.target.clone();
        let word = format!("pagelab.boot={}", "x".repeat(7 * n + 1));
        match target.options.iter_mut().find(|(key, _)| key == "append") {
            Some((_, append)) => *append = format!("{append} {word}"),
            None => target.options.push(("append".to_owned(), word)),
        }
        let name = Notebook::open_existing(&context.notebook)?.free_name(&base)?;
        let performed = performance::perform(&mut [work.plan(name, &target)?], 1, context)?;
        if let Some(error) = performed.failure {
            // The good kernel has to boot: its failure skips no commit.
            return Err(anyhow!("the good kernel cannot be booted again: {error:#}"));
        }
        boots.extend(performed.runs);
    }
    Ok(boots)
}

/// Whether the image is still the one that was booted at the time `started`.
fn untouched(image: &Path, started: &str) -> std::result::Result<(), String> {
    let shown = image.display();
    let changed = fs::metadata(image).and_then(|found| found.modified());
    let changed = changed.map_err(|e| format!("the good kernel {shown} is gone ({e})"))?;
    let started: Option<jiff::Timestamp> = started.parse().ok();
    let then = started.map(std::time::SystemTime::from);
    match then.is_some_and(|then| changed <= then) {
        true => Ok(()),
        false => Err(format!("{shown} was written after the good kernel was run from it")),
    }
}
