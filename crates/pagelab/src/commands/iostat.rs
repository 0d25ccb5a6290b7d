//! `pagelab iostat`: what each block device does, and how long its requests take.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::views::iostat::{self, Moment};
use pagelab_kernel::bpf::requests::Requests;
use serde_json::json;

use crate::context::Context;
use crate::output::SCHEMA_VERSION;
use crate::terminal;
use crate::ticker::{Machine, Schedule, Ticker};

/// The columns of the extended view with a device's name.
const WHOLE: usize = 96;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab iostat -xn 1\n  pagelab iostat -xnc 5 3\n  sudo pagelab iostat -xn 1 --trace\n",
    after_help = "The first print is the average since boot; devices that did nothing are left out. With -x:
  r/s w/s kr/s kw/s   reads, writes and KiB of each, a second
  actv                requests in flight on average: growth of their time in flight / interval
  asvc_t              ms a request: actv / (r/s + w/s + discards/s + flushes/s)
  %b                  percent of the time with a request in flight
  avg-kB              KiB a transfer
and with --trace (root), from the kernel's tracepoints, of devices with a queue of requests:
  wait wsvc_t         requests that wait to be issued to the device, and ms a request waited
  %w                  percent of the time with a request waiting
A dash is a figure that Linux does not keep by itself: it does not split a request's time in waiting
and being served, and without --trace actv and asvc_t hold both. In 80 columns the three stand there only
when traced. With -c, first percent of the CPUs' time: us(er), sy(stem), wt (idle, waiting for a request),
id(le), st(olen by the hypervisor)."
)]
pub struct Arguments {
    /// The extended view
    #[arg(short = 'x', long)]
    extended: bool,
    /// Device names as the kernel's (always so; taken for the habit of -xn)
    #[arg(short = 'n', long)]
    names: bool,
    /// The CPUs' time, too
    #[arg(short = 'c', long)]
    cpu: bool,
    /// Split waiting from being served
    #[arg(long, conflicts_with = "root")]
    trace: bool,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object a print; sizes in bytes, times in nanoseconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

/// Prints the devices once an interval.
pub fn run(arguments: &Arguments, _context: &Context) -> Result<ExitCode> {
    let tree = arguments.machine.tree();
    let selection = iostat::selection();
    let tracing = arguments.trace.then(Requests::start).transpose()?;
    let mut ticker = Ticker::new(arguments.schedule, None);
    let mut before = None;
    loop {
        let waits = tracing.as_ref().map(Requests::look);
        let now = Moment { counters: tree.read(&selection), waits };
        let rows = iostat::rows(before.as_ref(), &now);
        let processors = iostat::processors(before.as_ref(), &now).filter(|_| arguments.cpu);
        let mut out = crate::output::stdout();
        if arguments.json {
            let object = json!({
                "schema_version": SCHEMA_VERSION,
                "time": jiff::Timestamp::now().to_string(),
                "since_boot": before.is_none(),
                "devices": rows,
                "cpu": processors,
            });
            writeln!(out, "{object}")?;
        } else {
            if let Some(processors) = processors {
                writeln!(out, "{}", processors.lines())?;
            }
            let (width, traced) = (terminal::width(WHOLE), arguments.trace);
            let extended = arguments.extended;
            let heading = if extended { iostat::heading(width, traced) } else { iostat::short_heading() };
            writeln!(out, "{heading}")?;
            for row in &rows {
                writeln!(out, "{}", if extended { row.line(width, traced) } else { row.short_line() })?;
            }
        }
        out.flush()?;
        drop(out);
        before = Some(now);
        if !ticker.more() || !ticker.wait() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
