//! `pagelab need PID | CGROUP | -- PROGRAM…`: how much memory a process, a container or a program
//! needs.

pub mod cgroup;
mod process;
mod running;
mod sampled;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use pagelab_analysis::findings::assess_sweep;
use pagelab_analysis::least_memory::{Effort, Goal};
use pagelab_experiment::experiments::Command;
use pagelab_experiment::{Run, Setting, Size, TargetSpec, words};
use pagelab_reference::room;

use self::running::{Output, Running};
use super::run;
use crate::context::Context;
use crate::failure::usage;
use crate::summary::Detail;
use crate::sweep::{self, Sweep};

/// The heading of the options of one kind only.
const PROGRAM: &str = "Options for a program";

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab need -- sort big.txt
  pagelab need --max-memory 2G -- ./server --self-test
  sudo pagelab need system.slice/nginx.service   # a running container
  sudo pagelab need 1234 --for 300               # a running process
  sudo pagelab need web --watch 600 --json
",
    after_help = "A running cgroup (version 2): pagelab reclaims a little of its memory per second \
through memory.reclaim and watches how much comes back. Memory in use comes back; the rest is not needed. The measurement \
makes the tasks stall for at most --max-stall of --for; a single step can exceed that where a page takes more than 2 ms \
to come back, and is then the last. It changes no setting. Before Linux 5.19 there is no \
memory.reclaim: pagelab lowers memory.high for each step and restores it at once, after a kill -9 at its next start. \
Anonymous memory that grows throughout has no steady need, and the answer says so. Memory that is used more rarely \
than --for counts as not needed. Without swap the kernel cannot reclaim anonymous memory, so all of it counts as needed.

A running process: pagelab clears the accessed bits of its pages and counts the private pages that are referenced within \
--for. The result is a lower bound: the bits do not show files that the process reads with read(2), kernel memory, or \
shared pages. Where reading all bits would take more than --max-stall of the time, pagelab has DAMON sample 1,000 anonymous \
pages instead, within 1, 2, 4, … seconds one after another, and gives a 95% confidence interval. That needs root, Linux \
6.2, and that nobody else uses DAMON. A histogram shows the memory by the time since its last reference. If the process \
is alone in a cgroup of version 2, pagelab measures that cgroup.

A program runs first under a limit that it does not meet, then under smaller ones, ten to twenty times in all. It must do \
the same each time and end by itself. pagelab judges a limit by the pages that the program fetched again and by its stall \
time (PSI) rather than by elapsed time, which other load changes. Without cgroups of version 2 and PSI, the stall is an \
estimate: those pages times the lowest measured cost of one. Pages of files that are cached before the first run are not \
charged to the program. Ctrl-C ends the search and undoes everything.

Each measurement of a running process or cgroup is a repetition of one run in the notebook. Its note has the answer. \
'pagelab export --listen localhost:9750 need' serves the newest of each as Prometheus gauges."
)]
pub struct Arguments {
    /// The running process (its number) or cgroup (its path, or the last part of it)
    #[arg(value_name = "PID|CGROUP", conflicts_with = "program", required_unless_present = "program")]
    of: Option<String>,
    #[command(flatten)]
    running: Running,
    /// The largest limit: the first run has it [default: a third of the memory available]
    #[arg(long, help_heading = PROGRAM, value_name = "SIZE", conflicts_with = "of")]
    max_memory: Option<Size>,
    /// Stop a run after this multiple of the program's own run time: it does not complete
    #[arg(long, help_heading = PROGRAM, value_name = "FACTOR", default_value_t = 10.0, value_parser = factor, conflicts_with = "of")]
    give_up: f64,
    /// The time limit of the search, in multiples of the program's own run time
    #[arg(long, help_heading = PROGRAM, value_name = "FACTOR", default_value_t = 60.0, value_parser = factor, conflicts_with = "of")]
    budget: f64,
    /// Runs under each limit; a doubtful limit has up to three times as many
    #[arg(long, help_heading = PROGRAM, value_name = "N", default_value_t = sweep::REPEAT, value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "of")]
    repeat: u32,
    /// Where the program runs: this host, or a guest
    #[arg(long, help_heading = PROGRAM, value_name = "TARGET", default_value = "host", conflicts_with = "of")]
    on: TargetSpec,
    /// The run's name in the notebook; of a program, what the names of its runs begin with
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The file for the page of plots; none: no page
    #[arg(long, alias = "report", value_name = "FILE", default_value = "report.html")]
    html: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", value_parser = word())]
    program: Vec<String>,
}

/// The smallest limit that is tried: less holds no program.
const MIN_MEMORY: u64 = 1 << 20;

fn word() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|word| words::escaped(&word))
}

fn factor(text: &str) -> Result<f64, &'static str> {
    let factor = text.parse().ok().filter(|&factor: &f64| factor.is_finite() && factor > 1.0);
    factor.ok_or("write a number above 1, such as 10")
}

/// Measures or searches, and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    match &arguments.of {
        Some(of) => running(of, arguments, context),
        None => program(arguments, context),
    }
}

/// Of a running process or cgroup.
fn running(of: &str, arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let html = (arguments.html.as_os_str() != "none").then_some(arguments.html.as_path());
    let output = Output { html, json: arguments.json, name: arguments.name.as_deref() };
    let folder = match of.parse::<u32>() {
        Ok(pid) => match cgroup::alone(pid) {
            Some(folder) => folder,
            None => return process::run(pid, arguments.running, output, context),
        },
        Err(_) => cgroup::find(of)?,
    };
    cgroup::run(&folder, arguments.running, output, context)
}

/// Of a program that pagelab starts.
fn program(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let page = pagelab_kernel::region::page_size() as u64;
    let most = match (arguments.max_memory, room::available()) {
        (Some(size), _) => size.bytes(page),
        (None, Some(available)) => available / 3 / MIN_MEMORY * MIN_MEMORY,
        (None, None) => {
            return Err(usage(
                "the memory available is unknown (no MemAvailable in /proc/meminfo)\nhint: give --max-memory",
            ));
        }
    };
    let command = Command::new(arguments.program.clone());
    let sweep = Sweep {
        command: &command,
        name: arguments.name.as_deref(),
        target: &arguments.on,
        setting: &Setting::default(),
        effort: Effort { give_up: arguments.give_up, budget: arguments.budget, repeat: arguments.repeat },
        goals: &Goal::ALL,
        asked_by: "need",
    };
    let sizes = (Size::Bytes(MIN_MEMORY.min(most)), Size::Bytes(most));
    let (done, found) = sweep.perform(sizes, context)?;
    let runs: Vec<&Run> = done.runs.iter().collect();
    let assessment = assess_sweep(&runs, found);
    run::conclude(&assessment, Detail::Verdict, done.failure, &arguments.html, arguments.json, context)
}
