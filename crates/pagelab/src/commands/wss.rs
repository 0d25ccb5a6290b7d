//! `pagelab wss PID|STREAM`: the working set over time.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::builder::ArgPredicate;
use pagelab_counters::Tree;
use pagelab_counters::views::{Described, capped};
use pagelab_experiment::experiments::WorkingSet;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, TargetSpec};
use pagelab_kernel::working_set::Process;
use pagelab_report::live::{Bounded, Watched};
use pagelab_report::text;
use pagelab_simulation::working_set::working_set;
use serde_json::json;

use super::live_map::Map;
use crate::computed::{self, Computed, Keeping};
use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::output::{CAPPED, SCHEMA_VERSION, say};
use crate::page::Drawing;
use crate::stream::{StreamArguments, described};
use crate::watching::Watching;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab wss -p 1234 --interval 1 --count 10  # a running process
  pagelab wss 1234 --count 30 --map            # by mapping and interval
  pagelab wss 1234 --count 30 --html map.html  # the same as a page
  pagelab wss trace.zst --window 100000        # a recorded trace
  pagelab wss drift --pages 100000
",
    after_help = "To measure a process, pagelab clears the accessed bits of its pages and counts those that are set \
again after the interval. That walks its page tables twice (the column 'cost'), makes the CPU set every \
bit again, and hides references from the kernel's reclaim: do not leave it running.

The working set has the private pages: anonymous pages, and pages of files that no other process maps. The \
column 'shared' has the other pages of files: any process that maps one may have referenced it. The kernel \
sums both per mapping, so pagelab splits a mapping with both kinds in proportion to its resident pages. The \
lower bound assigns as many references as possible to its shared pages; the upper bound assigns them to its \
private pages, and adds as many pages as the TLB may hide, because the kernel does not flush it.

Accessed bits do not show which shared pages the process itself uses. The code of a program that runs twice is \
shared. A page of a file also counts as referenced when another process reads it with read(2).

With --map each mapping is a row and each interval a cell: the share of its resident pages, private and \
shared, that were referenced (· none, ░ up to 25%, ▒ 50%, ▓ 75%, █ more). The kernel gives sums per mapping; single pages \
and their order are only in a recording (pagelab trace).",
    mut_arg("stream", |stream| {
        stream.required(false).required_unless_present("pid").conflicts_with("pid").default_value_if(
            "pid",
            ArgPredicate::IsPresent,
            "-",
        )
    })
)]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// The process to measure, also where a file is named like it
    #[arg(short = 'p', long = "pid", value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// A process: seconds per sample [default: 1, or more for a large process, so that sampling takes below 0.5%]
    #[arg(long, value_name = "SECONDS")]
    interval: Option<f64>,
    /// A process: the number of samples
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: u32,
    /// A stream: the window in references [default: a 50th of the stream]
    #[arg(long, value_name = "REFERENCES", value_parser = clap::value_parser!(u64).range(1..))]
    window: Option<u64>,
    /// A process: its referenced mappings, by interval
    #[arg(long)]
    map: bool,
    #[command(flatten)]
    drawing: Drawing,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keeping: Keeping,
}

/// The columns of a process, with their meanings.
pub const COLUMNS: [Described; 7] = [
    ("second", "the end of the interval, in seconds since the start"),
    ("working set", "private memory that the process referenced in the interval"),
    ("lower", "lower bound: as many references as possible were to shared pages"),
    ("upper", "upper bound: as few as possible were, and the TLB hides as many pages as it has entries"),
    ("shared", "referenced pages of files that other processes map, whichever process referenced them"),
    ("resident", "memory of the process that was resident at the end"),
    ("cost", "time that the two walks of its page tables took, and its share of the interval"),
];

/// The longest interval.
const MAX_INTERVAL: Duration = Duration::from_secs(86_400);
/// The shortest and the longest that are chosen, and how many times as long as a look takes one is.
const CHOSEN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
const INTERVAL_PER_COST: u32 = 200;

/// The interval where a look costs so much: whole seconds.
fn usual(cost: Duration) -> Duration {
    Duration::from_secs((cost * INTERVAL_PER_COST).as_secs_f64().ceil() as u64).clamp(CHOSEN[0], CHOSEN[1])
}

/// How often a wait looks whether the user wants to end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Measures and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(pid) = arguments.pid {
        return process(pid, arguments, context);
    }
    match arguments.stream.stream.parse::<u32>() {
        Ok(pid) if !Path::new(&arguments.stream.stream).exists() => process(pid, arguments, context),
        _ if arguments.map || arguments.drawing.wanted() => Err(usage(
            "--map, --html and --plot need a running process\nhint: draw a trace with: pagelab report FILE",
        )),
        _ => stream(arguments, context),
    }
}

fn process(pid: u32, arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let asked = arguments.interval.map(|seconds| {
        let interval =
            Duration::try_from_secs_f64(seconds).ok().filter(|i| !i.is_zero() && *i <= MAX_INTERVAL);
        interval.ok_or_else(|| {
            usage(format!(
                "--interval {seconds}: must be above 0, and at most 86400 \
            seconds"
            ))
        })
    });
    let asked = asked.transpose()?;
    let remedy = || {
        format!(
            "cannot read process {pid}: check that it is running\nhint: run as root if it is another user's"
        )
    };
    let process = Process::open(pid).with_context(remedy)?;
    let interrupt = Interrupt::listen().context("cannot install signal handlers")?;
    let interval = match asked {
        Some(interval) => interval,
        None => usual(process.cost().with_context(remedy)?),
    };
    let row = |cells: [&str; COLUMNS.len()]| {
        let [second, size, lower, upper, shared, resident, cost] = cells;
        say!("{second:>6}  {size:>11}  {lower:>9}  {upper:>9}  {shared:>9}  {resident:>9}  {cost:>15}");
    };
    if !arguments.json {
        if interval > CHOSEN[0] && asked.is_none() {
            let seconds = interval.as_secs();
            say!("Samples every {seconds} s, because each costs the process time (set with --interval)");
        }
        row(COLUMNS.map(|(name, _)| name));
    }
    let tlb = pagelab_kernel::geometry::tlb_entries();
    let page = pagelab_kernel::region::page_size() as f64;
    let (mut sizes, mut map, mut bounded) = (Vec::new(), Map::default(), Vec::new());
    let (tree, limits) = (Tree::live(), capped::selection(pid.into())?);
    let before = tree.read(&limits);
    for number in 1..=arguments.count {
        let ended = || format!("the process {pid} ended");
        let clearing = process.clear().with_context(ended)?;
        let end = Instant::now() + interval;
        while let Some(left) = end.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            std::thread::sleep(left.min(POLL_INTERVAL));
            if interrupt.requested() {
                return Err(CommandError::Stopped.into());
            }
        }
        let (seen, bounds, areas) = process.sample_areas(tlb).with_context(ended)?;
        let cost = clearing + seen.cost;
        let share = cost.as_secs_f64() / interval.as_secs_f64();
        let time = interval.saturating_mul(number).as_secs_f64();
        let private = seen.referenced - seen.shared;
        sizes.push((time * 1e9, private as f64 / page));
        bounded.push(Bounded {
            size: private,
            lower: bounds.lower,
            upper: bounds.upper,
            shared: seen.shared,
        });
        if arguments.json {
            let mappings = areas.iter().filter(|area| arguments.map && area.resident > 0);
            let mappings: Vec<_> = mappings
                .map(|area| {
                    json!({
                        "start": area.start, "name": area.name, "referenced_bytes": area.referenced,
                        "shared_referenced_bytes": area.shared, "resident_bytes": area.resident,
                    })
                })
                .collect();
            say!(
                "{}",
                json!({
                    "schema_version": SCHEMA_VERSION, "mappings": arguments.map.then_some(mappings),
                    "time_seconds": time, "referenced_bytes": seen.referenced,
                    "private_referenced_bytes": private, "shared_referenced_bytes": seen.shared,
                    "lower_bound_bytes": bounds.lower, "upper_bound_bytes": bounds.upper, "cost_share": share,
                    "resident_bytes": seen.resident, "cost_nanoseconds": cost.as_nanos() as u64,
                })
            );
            map.add(areas);
            continue;
        }
        map.add(areas);
        row([
            &time.to_string(),
            &text::bytes(private as f64),
            &text::bytes(bounds.lower as f64),
            &text::bytes(bounds.upper as f64),
            &text::bytes(seen.shared as f64),
            &text::bytes(seen.resident as f64),
            &format!("{} ({:.1}%)", text::duration(cost.as_nanos() as f64), share * 100.0),
        ]);
    }
    if let Some(found) = capped::capped(&before, &tree.read(&limits), pid.into()) {
        crate::output::remark!(
            "warning: {} {} ({}): process {pid} has {:.0} major faults per second and needs more; measure it with a \
             higher limit",
            CAPPED.0,
            found.cgroup,
            text::bytes(found.limit),
            found.faults
        );
    }
    if arguments.map && !arguments.json {
        say!("{}", map.drawn(&context.style));
    }
    if arguments.drawing.wanted() {
        let watched = Watched {
            name: process.name().map_or_else(|| format!("process {pid}"), |name| format!("{name} ({pid})")),
            page_size: page as u64,
            interval: interval.as_nanos() as f64,
            sizes: bounded,
            mappings: map.mappings(),
        };
        arguments.drawing.draw(&watched.name.clone(), &[watched.section()], arguments.json)?;
    }
    let of =
        WorkingSet { of: pid.to_string(), window: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX) };
    let run = Computed::working_set(
        Experiment::Wss(of),
        TargetSpec::host(),
        page as u64,
        Unit::Nanoseconds,
        &sizes,
    );
    arguments.keeping.keep(vec![run], arguments.json, context)?;
    Ok(ExitCode::SUCCESS)
}

fn stream(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let window = arguments.window.map(|window| usize::try_from(window).unwrap_or(usize::MAX));
    let watching = Watching::new("reading the trace", context.quiet)?;
    let (sizes, reading) = working_set(&arguments.stream.source()?, window, None, &watching)?;
    let (tau, most) = (sizes.tau, sizes.peak.max(1));
    if let Some(reading) = reading {
        crate::output::aside(&described(&reading), arguments.json);
    }
    if arguments.json {
        for (reference, size) in &sizes.sizes {
            say!(
                "{}",
                json!({ "schema_version": SCHEMA_VERSION, "reference": reference, "window": tau, "pages": size })
            );
        }
        return keep(arguments, tau, &sizes.sizes, context);
    }
    let rows: Vec<Vec<String>> = sizes
        .sizes
        .iter()
        .map(|&(reference, size)| {
            let bar = "█".repeat((f64::from(size) / f64::from(most) * 40.0).round() as usize);
            vec![text::count(reference as f64), text::count(f64::from(size)), bar]
        })
        .collect();
    say!("Pages referenced within the last {} references", text::count(tau as f64));
    say!("{}", text::table(&["reference", "pages", ""], &rows, &context.style));
    keep(arguments, tau, &sizes.sizes, context)
}

/// Keeps the working set of a stream.
fn keep(arguments: &Arguments, window: usize, sizes: &[(u64, u32)], context: &Context) -> Result<ExitCode> {
    let of = WorkingSet { of: arguments.stream.words(), window: window as u64 };
    let sizes: Vec<(f64, f64)> = sizes.iter().map(|&(at, pages)| (at as f64, f64::from(pages))).collect();
    let target = computed::model(&format!("ws:{window}"))?;
    let run =
        Computed::working_set(Experiment::Wss(of), target, arguments.stream.page_size(), Unit::Count, &sizes);
    arguments.keeping.keep(vec![run], arguments.json, context)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_processes_are_looked_at_less_often() {
        let of = |milliseconds| usual(Duration::from_millis(milliseconds)).as_secs();
        assert_eq!([of(0), of(5), of(6), of(100), of(10_000)], [1, 1, 2, 20, 60]);
    }
}
