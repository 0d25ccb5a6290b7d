//! `pagelab cachestat`: hits, misses and read-ahead of the page cache.

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

/// Lines between two headers.
const PAGE: u64 = 20;

/// The width of a line with a name, in columns.
const WHOLE: usize = 140;

/// The owners to count requests for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Owners {
    /// One row per process
    Process,
    /// One row per memory cgroup
    Cgroup,
    /// One row per file
    File,
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  sudo pagelab cachestat 1\n  sudo pagelab cachestat 5 12 --by file\n  sudo pagelab cachestat 1 --by cgroup --json\n",
    after_help = format!("BPF programs count requests while the command runs, which needs root and a kernel \
with BTF. Columns, in pages per second:
{}
The first request of a page that read-ahead brought in is not a hit. A sequential read of uncached pages has \
a hit ratio of 0%. Pages cached before the start count as hits. A fault also requests the surrounding pages \
that the kernel maps with it. Direct I/O and tmpfs are not counted.

The programs attach to kernel functions, or to tracepoints (Linux 6.18) if the kernel refuses functions; \
standard error reports which. With tracepoints, the whole range around a fault counts, huge-page mappings do \
not count, and 'written' is known for the machine only.", described(&cachestat::described()))
)]
pub struct Arguments {
    /// Count requests by process, memory cgroup or file
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<Owners>,
    /// At most N processes, cgroups or files
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 20)]
    rows: usize,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object per interval, with pages instead of pages per second
    #[arg(long)]
    json: bool,
}

/// Prints a line or a table per interval; without an interval, one after one second.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let by = match arguments.by {
        None => By::Machine,
        Some(Owners::Process) => By::Process,
        Some(Owners::Cgroup) => By::Cgroup,
        Some(Owners::File) => By::File,
    };
    let mut requests = PageRequests::start(by)?;
    if !context.quiet && !arguments.json {
        remark!("counting with BPF programs on {}", requests.source());
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
            remark!(
                "warning: {lost} pages were not counted or not classified: a BPF map was full, or a request too large"
            );
        }
        lines += 1;
        if !ticker.more() {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
