//! `pagelab gate -- PROGRAM`: a program's exact counts against a baseline in a file.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::builder::{OsStringValueParser, TypedValueParser};
use pagelab_analysis::gate::{Baselines, Counts, Judgement};
use pagelab_experiment::experiments::Command;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Request, Setting, TargetSpec, words};
use pagelab_report::gate::Report;

use super::compare::percent;
use crate::context::Context;
use crate::failure::usage;
use crate::file;
use crate::output::{self, remark};
use crate::performance::{self, Planned};

/// How long the guest may be silent, in seconds: it is while the program runs.
const TIMEOUT: u32 = 3600;
/// What the guest has in any case: a clock of instructions, and the tracer that counts them.
const FIXED: [(&str, &str); 2] = [("accel", "icount"), ("trace", "functions")];

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab gate --bless -- ./parse big.json   # write the baseline
  pagelab gate -- ./parse big.json           # status 1 if a count got worse
  pagelab gate --fail-on 0 --junit gate.xml -- ./parse big.json
  pagelab gate --on kernel:/boot/vmlinuz-6.1.0-51-amd64 -- sort words.txt
",
    after_help = "The program runs in a guest whose clock counts instructions (QEMU, without KVM), so the counts \
do not depend on how busy the machine is. They include the kernel: its instructions, the page faults, and each \
system call by name. The guest has the program, its libraries, the files that its arguments name, and those of \
--file; or the folder of --root. It has no network.

The program must do the same each time. Each repetition runs it twice: once for the faults and the peak memory, \
and once alone for the rest. Where the repetitions differ, the spread says by how much, and a change within the \
spread is none.

The baseline is a JSON file for the repository. It holds the counts of any number of programs, and of one kernel \
each: another kernel needs another baseline. The runs are in the notebook too: 'pagelab compare @2 @1' shows which \
kernel functions account for a change.

Exit status: 0 no count got worse; 1 at least one did; 2 wrong usage, or no baseline; 3 the program could not run."
)]
pub struct Arguments {
    /// The kernel that runs the program, with options such as ram=1G [default: the running kernel's
    /// image in /boot]
    #[arg(long, value_name = "kernel:PATH")]
    on: Option<TargetSpec>,
    /// The folder that the program finds as / [default: the program with its libraries and the files
    /// that its arguments name]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Another file or folder that the program finds at the same path
    #[arg(long, value_name = "PATH", conflicts_with = "root")]
    file: Vec<PathBuf>,
    /// The file of baselines
    #[arg(long, value_name = "FILE", default_value = "pagelab-gate.json")]
    baseline: PathBuf,
    /// Write the counts into the file of baselines instead of judging them
    #[arg(long)]
    bless: bool,
    /// By how much a count may be higher than in the baseline
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percent)]
    fail_on: f64,
    /// The program's name in the file of baselines [default: its command line]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Repetitions
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Write the verdicts as JUnit's XML
    #[arg(long, value_name = "FILE", conflicts_with = "bless")]
    junit: Option<PathBuf>,
    /// Append the table to this file in Markdown, as for the summary of a step of GitHub Actions
    #[arg(long, value_name = "FILE", env = "GITHUB_STEP_SUMMARY", hide_env_values = true)]
    summary: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_parser = word())]
    program: Vec<String>,
}

fn word() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|word| words::escaped(&word))
}

/// Counts, then judges or keeps what was counted.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let name = arguments.name.clone().unwrap_or_else(|| arguments.program.join(" "));
    let mut baselines = baselines(&arguments.baseline)?;
    // Before minutes of counting.
    let before = match (baselines.programs.get(&name).cloned(), arguments.bless) {
        (None, false) => return Err(without_baseline(&baselines, &name, &arguments.baseline)),
        (before, _) => before,
    };
    let counts = counted(arguments, context)?;
    let judgement = match &before {
        Some(before) if before.kernel == counts.kernel => {
            Some(Judgement::new(before, &counts, arguments.fail_on))
        }
        Some(before) if !arguments.bless => {
            return Err(usage(format!(
                "the baseline of '{name}' is of Linux {}, and this is {}\nhint: give that kernel with --on, or \
                 write a new baseline with --bless",
                before.kernel, counts.kernel
            )));
        }
        _ => None,
    };
    let report =
        Report { name: &name, counts: &counts, judgement: judgement.as_ref(), percent: arguments.fail_on };
    let failed = !arguments.bless && judgement.as_ref().is_some_and(|judged| judged.worse().next().is_some());
    output::set_status(u8::from(failed));
    if let Some(path) = &arguments.junit {
        file::write(path, |out| Ok(out.write_all(report.junit().as_bytes())?))?;
    }
    if let Some(path) = &arguments.summary {
        append(path, &report.markdown())?;
    }
    if arguments.json {
        output::print_json("gate", report.json())?;
    } else {
        output::text(&report.terminal(&context.style));
    }
    if arguments.bless {
        baselines.programs.insert(name, counts);
        file::write(&arguments.baseline, |out| Ok(out.write_all(baselines.text().as_bytes())?))?;
        if !context.quiet {
            remark!("wrote the baseline to {}", arguments.baseline.display());
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// The file of baselines; an empty one where there is none.
fn baselines(path: &Path) -> Result<Baselines> {
    match fs::read_to_string(path) {
        Ok(text) => Baselines::parse(&text).map_err(|error| {
            usage(format!(
                "--baseline {}: {error}\nhint: name another file, or remove it and write a new one with --bless",
                path.display()
            ))
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Baselines::default()),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn without_baseline(baselines: &Baselines, name: &str, path: &Path) -> anyhow::Error {
    let others: Vec<&str> = baselines.programs.keys().map(String::as_str).collect();
    let others = match others.as_slice() {
        [] => String::new(),
        others => format!(" (it has: {})", others.join("; ")),
    };
    usage(format!(
        "{} has no baseline of '{name}'{others}\nhint: write one with --bless, or name one with --name",
        path.display()
    ))
}

/// What the program's runs in the guest counted.
fn counted(arguments: &Arguments, context: &Context) -> Result<Counts> {
    let target = target(arguments)?;
    let experiment = Experiment::Command(Command::new(arguments.program.clone()));
    let request = Request::new(experiment, Setting::default());
    let mut planned = [Planned::new(None, &request, &target)?];
    let done = performance::perform(&mut planned, arguments.repeat, context)?;
    if let Some(failure) = done.failure {
        return Err(failure);
    }
    done.runs
        .first()
        .and_then(Counts::of)
        .context("the guest did not report every count\nhint: 'pagelab show @1' lists those that it did")
}

/// The guest.
fn target(arguments: &Arguments) -> Result<TargetSpec> {
    let mut target = match &arguments.on {
        Some(target) => target.clone(),
        None => running_kernel()?,
    };
    if !matches!(target.kind, TargetKind::Kernel(_)) {
        return Err(usage(format!(
            "--on {target}: the gate counts in a guest\nhint: give a kernel image: --on kernel:PATH"
        )));
    }
    for (key, value) in FIXED {
        match target.options.iter().find(|(own, _)| own == key) {
            Some((_, own)) if own != value => {
                return Err(usage(format!(
                    "--on {target}: the gate counts with {key}={value}\nhint: leave out {key}={own}"
                )));
            }
            Some(_) => {}
            None => target.options.push((key.to_owned(), value.to_owned())),
        }
    }
    if !target.options.iter().any(|(key, _)| key == "timeout") {
        target.options.push(("timeout".to_owned(), TIMEOUT.to_string()));
    }
    let path = |path: &Path| path.display().to_string();
    target.options.extend(arguments.root.iter().map(|root| ("root".to_owned(), path(root))));
    target.options.extend(arguments.file.iter().map(|file| ("file".to_owned(), path(file))));
    Ok(target)
}

/// The image of the running kernel.
fn running_kernel() -> Result<TargetSpec> {
    let release =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("the running kernel is unknown")?;
    let path = PathBuf::from(format!("/boot/vmlinuz-{}", release.trim()));
    match fs::File::open(&path) {
        Ok(_) => Ok(TargetSpec { kind: TargetKind::Kernel(path.display().to_string()), options: Vec::new() }),
        Err(error) => Err(usage(format!(
            "{}: {error}\nhint: give a kernel image that you can read: --on kernel:PATH",
            path.display()
        ))),
    }
}

/// Writes `text` behind what is in the file.
fn append(path: &Path, text: &str) -> Result<()> {
    let before = match fs::read_to_string(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{} cannot be read", path.display()));
        }
        before => before.unwrap_or_default(),
    };
    file::write(path, |out| Ok(out.write_all((before + text).as_bytes())?))
}
