//! `pagelab cachestat`: hits and misses of the page cache, and the work of read-ahead.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use pagelab_counters::views::cachestat::{self, By};
use pagelab_counters::views::described;
use pagelab_kernel::bpf::page_requests::PageRequests;
use serde_json::json;

use crate::context::Context;
use crate::output::{remark, write_interval};
use crate::terminal;
use crate::ticker::{Interval, Schedule, Ticker};

/// Lines between two headings.
const PAGE: u64 = 20;

/// The columns of a line with a name.
const WHOLE: usize = 140;

/// Whose requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Owners {
    /// Each process's
    Process,
    /// Each memory cgroup's
    Cgroup,
    /// Those for each file
    File,
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  sudo pagelab cachestat 1\n  sudo pagelab cachestat 5 12 --by file\n  sudo pagelab cachestat 1 --by cgroup --json\n",
    after_help = format!("Counts while it runs, with BPF: needs root, and a kernel with BTF. Figures are pages \
per second:
{}
The first request of a page that read-ahead brought in is no hit: a sequential read of uncached pages has a \
ratio of 0%. Pages that were cached before the start count as hits. A fault requests \
the pages around it that the kernel maps with it, too. Direct I/O and tmpfs request nothing.

The counts come from programs on kernel functions, or on tracepoints (Linux 6.18) where the kernel refuses \
those; standard error says which. With tracepoints the range around a fault counts as a whole, mappings of \
huge pages do not count, and 'written' is known for the machine only.", described(&cachestat::described()))
)]
pub struct Arguments {
    /// The requests of each process or cgroup, or for each file
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<Owners>,
    /// At most N processes, cgroups or files
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 20)]
    rows: usize,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object per interval; pages of the interval, not per second
    #[arg(long)]
    json: bool,
}

/// Prints a line, or a table, per interval; without an interval after one second.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let by = match arguments.by {
        None => By::Machine,
        Some(Owners::Process) => By::Process,
        Some(Owners::Cgroup) => By::Cgroup,
        Some(Owners::File) => By::File,
    };
    let mut requests = PageRequests::start(by)?;
    if !context.quiet && !arguments.json {
        remark!("counting with programs on {}", requests.source());
    }
    let mut schedule = arguments.schedule;
    if schedule.interval.is_none() {
        schedule.interval = Some(Interval(Duration::from_secs(1)));
        schedule.count = Some(1);
    }
    let mut ticker = Ticker::new(schedule, None);
    let mut begun = Instant::now();
    let mut lines = 0;
    while ticker.wait() {
        let sample = requests.sample();
        let seconds = std::mem::replace(&mut begun, Instant::now()).elapsed().as_secs_f64();
        let lost = sample.lost;
        let rows = cachestat::rows(sample, by, arguments.rows);
        let mut out = crate::output::stdout();
        if arguments.json {
            let figures = json!({
                "seconds": seconds, "source": requests.source(), "lost": lost, "requests": rows,
            });
            write_interval(&mut out, false, figures)?;
        } else {
            if lines % PAGE == 0 || by != By::Machine {
                writeln!(out, "{}", cachestat::heading(by))?;
            }
            for row in &rows {
                writeln!(out, "{}", row.line(by, seconds, terminal::width(WHOLE)))?;
            }
        }
        out.flush()?;
        drop(out);
        if lost > 0 && !arguments.json {
            remark!("{lost} pages were not counted: too many owners, or too many pages at a time");
        }
        lines += 1;
        if !ticker.more() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
