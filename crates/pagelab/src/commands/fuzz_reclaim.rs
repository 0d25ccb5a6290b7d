//! `pagelab fuzz-reclaim`: searches for a load on which two targets differ most, and makes it small.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use pagelab_analysis::fuzz::{By, Found, Load, Pair, Search, Shrinking, faults};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::{Experiment, Request, Run, TargetSpec};
use pagelab_report::fuzz::{answer, difference};
use serde_json::json;

use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::output::{print_json, remark, say, sentences};
use crate::performance::{self, Planned};
use crate::progress::Work;
use crate::targets;

/// Maximum share of the time that goes into making the load smaller.
const SHRINKING: f64 = 0.3;
/// Failures in a row after which the search gives up.
const MAX_FAILURES: u32 = 5;
/// Maximum length of a target's name in a sentence.
const MAX_NAME_CHARS: usize = 40;
/// Repetitions of the found load on each target.
const REPEAT: u32 = 2;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab fuzz-reclaim --on model:linux-lru --on model:clock --loads 500
  pagelab fuzz-reclaim --on kernel:old --on kernel:new --for 3600
  pagelab fuzz-reclaim --on kernel:vmlinuz --on kernel:patched --instructions
",
    after_help = "A load is a run of mapanon: one to five phases of patterns on one mapping under a memory limit \
(pagelab patterns). Half of the loads are random; the others change the best load so far. The difference is in \
faults, as multiples of OPT's (offline optimum) with as many frames as the limit has. The load with the \
largest difference is then made smaller as long as nine tenths of the difference remain, and repeated on both \
targets with --evictions; these runs are in the notebook.

Kernel images run with accel=icount and swap=zram unless --on says otherwise: a guest that counts instructions \
does the same each time. The loads follow from --seed, so a search with --loads can be repeated.

Exit status: 0 a load was found; 2 wrong usage; 3 no load ran on both targets."
)]
pub struct Arguments {
    /// A target; give two
    #[arg(long, value_name = "TARGET", required = true)]
    on: Vec<TargetSpec>,
    /// End the search after this many seconds
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    seconds: u64,
    /// End the search after this many loads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    loads: Option<u64>,
    /// The seed of the loads
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Search for the largest difference in instructions, of guests with accel=icount
    #[arg(long)]
    instructions: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Searches, makes the load smaller, and repeats it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let by = if arguments.instructions { By::Instructions } else { By::Faults };
    let mut fuzzer = Fuzzer::new(arguments, by, context)?;
    let (search, shrunk) = fuzzer.search(arguments)?;
    let Some(found) = shrunk.as_ref().map(Shrinking::found) else {
        return Err(match fuzzer.failure.take() {
            Some(failure) => failure,
            None if fuzzer.interrupt.requested() => CommandError::Stopped.into(),
            None => {
                anyhow!("no load told the targets apart: OPT had too few faults, or a figure was missing")
            }
        });
    };
    let [first, second] = fuzzer.targets.each_ref().map(ToString::to_string);
    if fuzzer.interrupt.requested() {
        remark!("{}", answer(in_a_sentence([&first, &second]), &found.pair, by));
        remark!("pagelab run {} --on {first} --on {second}", found.load);
        return Err(CommandError::Stopped.into());
    }
    let is_same = is_same(&fuzzer.repeat(found, context)?, found, by);
    if arguments.json {
        return print_json(
            "fuzz",
            json!({
                "targets": [first, second],
                "by": by,
                "load": found.load.to_string(),
                "figures": found.pair,
                "difference": found.pair.difference(by),
                "loads": search.measured(),
                "failed": fuzzer.failed,
                "median_difference": search.median(),
                "largest_difference": search.best().map(|best| best.pair.difference(by)),
                "shrinking_loads": shrunk.as_ref().map(Shrinking::tried),
                "repeats_exactly": is_same,
            }),
        );
    }
    sentences(&answer(in_a_sentence([&first, &second]), &found.pair, by), "", "", &context.style);
    say!("\npagelab run {} --on {first} --on {second}\n", found.load);
    let best = search.best().map_or(0.0, |best| best.pair.difference(by).abs());
    let text = format!(
        "{} loads were compared: the median difference is {}, the largest {}. {} further comparisons made its load \
         smaller. The runs in the notebook are @2 and @1 ('pagelab show @1' explains the evictions); {}",
        search.measured(),
        difference(search.median().unwrap_or(0.0), by),
        difference(best, by),
        shrunk.as_ref().map_or(0, Shrinking::tried),
        if is_same {
            "all repetitions have the same figures."
        } else {
            "repetitions differ ('pagelab compare @2 @1' shows by how much)."
        }
    );
    sentences(&text, "", "", &context.style);
    if let Some(failure) = &fuzzer.failure {
        let text = format!(
            "{} loads failed on one of the targets and were left out. The last failure: {failure:#}",
            fuzzer.failed
        );
        sentences(&text, "", "", &context.style);
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of the targets, if they are short enough for a sentence.
fn in_a_sentence(names: [&str; 2]) -> [&str; 2] {
    if names.iter().all(|name| name.len() <= MAX_NAME_CHARS) {
        names
    } else {
        ["The first target", "the second"]
    }
}

/// Whether all repetitions have the faults that were found, or the same faults in a search for
/// instructions.
fn is_same(runs: &[Run], found: &Found, by: By) -> bool {
    runs.iter().zip([found.pair.first, found.pair.second]).all(|(run, figure)| {
        let faults = faults(run);
        let wanted = match by {
            By::Faults => figure * found.pair.opt as f64,
            By::Instructions => faults.first().copied().unwrap_or(f64::NAN),
        };
        faults.len() > 1 && faults.iter().all(|faults| (faults - wanted).abs() < 0.5)
    })
}

/// Runs loads on both targets.
struct Fuzzer {
    targets: [TargetSpec; 2],
    by: By,
    interrupt: Interrupt,
    /// The context of the search: no progress of its own, and a notebook that is removed.
    context: Context,
    _folder: tempfile::TempDir,
    /// Failed loads, and how many of them in a row.
    failed: u32,
    in_a_row: u32,
    failure: Option<anyhow::Error>,
}

impl Fuzzer {
    fn new(arguments: &Arguments, by: By, context: &Context) -> Result<Self> {
        let [first, second] = arguments.on.as_slice() else {
            return Err(usage(
                "--on: give two targets\nhint: for example --on model:linux-lru --on model:lru",
            ));
        };
        let targets = [first, second].map(|target| targets::counting(target.clone()));
        let folder = tempfile::Builder::new().prefix("pagelab-fuzz-").tempdir();
        let folder = folder.context("cannot create a folder for the runs of the search")?;
        let inner = Context { notebook: folder.path().join("runs.db"), style: context.style, quiet: true };
        let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
        let new = Self {
            targets,
            by,
            interrupt,
            context: inner,
            _folder: folder,
            failed: 0,
            in_a_row: 0,
            failure: None,
        };
        // Wrong targets are found before the search begins.
        new.planned(&Search::new(arguments.seed, by).next_load())?;
        Ok(new)
    }

    /// Searches, and makes the best load smaller.
    fn search(&mut self, arguments: &Arguments) -> Result<(Search, Option<Shrinking>)> {
        let (begun, whole) = (Instant::now(), Duration::from_secs(arguments.seconds));
        let mut search = Search::new(arguments.seed, self.by);
        let work = Work::new("Comparing loads", self.context.quiet);
        let time = whole.mul_f64(1.0 - SHRINKING);
        let mut tried = 0;
        while begun.elapsed() < time && arguments.loads.is_none_or(|loads| tried < loads) && self.goes_on() {
            let load = search.next_load();
            if let Some(pair) = self.measure(&load)? {
                search.add(load, pair);
            }
            tried += 1;
            let of_loads = arguments.loads.map_or(0.0, |loads| tried as f64 / loads as f64);
            work.at(of_loads.max(begun.elapsed().div_duration_f64(time)) * (1.0 - SHRINKING));
        }
        let Some(best) = search.best().cloned() else { return Ok((search, None)) };
        let mut shrinking = Shrinking::new(best, self.by);
        while begun.elapsed() < whole && self.goes_on() {
            let Some(load) = shrinking.next_load() else { break };
            if let Some(pair) = self.measure(&load)? {
                shrinking.add(load, pair);
            }
            work.at(begun.elapsed().div_duration_f64(whole));
        }
        Ok((search, Some(shrinking)))
    }

    /// An interrupt ends the search; what was found is shown.
    fn goes_on(&self) -> bool {
        !self.interrupt.requested() && self.in_a_row < MAX_FAILURES
    }

    /// The figures of a load; `None` if it tells nothing, or a target failed.
    fn measure(&mut self, load: &Load) -> Result<Option<Pair>> {
        let done = performance::perform(&mut self.planned(load)?, 1, &self.context)?;
        if let Some(failure) = done.failure {
            if !self.interrupt.requested() {
                self.failed += 1;
                self.in_a_row += 1;
                self.failure = Some(failure);
            }
            return Ok(None);
        }
        self.in_a_row = 0;
        Ok(Pair::of(load, self.by, &done.runs)?)
    }

    fn planned(&self, load: &Load) -> Result<Vec<Planned>> {
        self.planned_with(load, false)
    }

    /// The runs of a load, with or without a log of evictions.
    fn planned_with(&self, load: &Load, evictions: bool) -> Result<Vec<Planned>> {
        let paging = Paging { evictions, ..load.paging() };
        let request = Request::new(Experiment::Mapanon(paging), load.setting());
        self.targets.iter().map(|target| Planned::new(None, &request, target)).collect()
    }

    /// Repeats the found load, with a log of evictions if both targets support it. The notebook keeps
    /// the runs.
    fn repeat(&self, found: &Found, context: &Context) -> Result<Vec<Run>> {
        let planned = self.planned_with(&found.load, true).or_else(|_| self.planned(&found.load));
        let done = performance::perform(&mut planned?, REPEAT, context)?;
        match done.failure {
            Some(failure) if done.runs.len() < 2 => Err(failure),
            Some(failure) => {
                remark!("{failure:#}");
                Ok(done.runs)
            }
            None => Ok(done.runs),
        }
    }
}
