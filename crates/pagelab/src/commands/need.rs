//! `pagelab need -- PROGRAM…`: how much memory a program needs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{OsStringValueParser, TypedValueParser};
use pagelab_analysis::findings::assess_sweep;
use pagelab_analysis::least_memory::{Effort, Goal};
use pagelab_experiment::experiments::Command;
use pagelab_experiment::{Run, Setting, Size, TargetSpec, words};
use pagelab_reference::room;

use super::run;
use crate::context::Context;
use crate::failure::usage;
use crate::summary::Detail;
use crate::sweep::{self, Sweep};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab need -- sort big.txt
  pagelab need --max-memory 2G -- ./server --self-test
  pagelab need --on host,swap=zram --json -- python3 script.py
",
    after_help = "The program first runs under a limit that it does not meet, then under smaller ones. pagelab judges a \
limit by the pages that the program fetched again and the time in which it stalled for them (PSI), which other load does \
not change, before elapsed time. Without the pressure of a cgroup (version 2 with PSI) the stall is an estimate: those pages at the lowest cost per page measured.

The program runs about ten times, so it must do the same each time and end by itself. Pages of files that were cached \
before the first run are not charged to it. Ctrl-C ends the search and undoes everything."
)]
pub struct Arguments {
    /// The largest limit: the first run has it [default: a third of the memory available]
    #[arg(long, value_name = "SIZE")]
    max_memory: Option<Size>,
    /// Stop a run after this multiple of the program's own run time: it does not complete
    #[arg(long, value_name = "FACTOR", default_value_t = 10.0, value_parser = factor)]
    give_up: f64,
    /// The time limit of the search, in multiples of the program's own run time
    #[arg(long, value_name = "FACTOR", default_value_t = 60.0, value_parser = factor)]
    budget: f64,
    /// Runs under each limit; a doubtful limit has up to three times as many
    #[arg(long, value_name = "N", default_value_t = sweep::REPEAT, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Where the program runs: this host, or a guest
    #[arg(long, value_name = "TARGET", default_value = "host")]
    on: TargetSpec,
    /// What the names of the runs begin with
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The file for the page of plots; none: no page
    #[arg(long, alias = "report", value_name = "FILE", default_value = "report.html")]
    html: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM", value_parser = word())]
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

/// Searches and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
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
