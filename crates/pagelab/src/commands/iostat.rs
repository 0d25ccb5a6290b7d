//! `pagelab iostat`: what each block device does, and how long its requests take.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::views::described;
use pagelab_counters::views::iostat::{self, Moment};
use pagelab_kernel::bpf::requests::Requests;
use serde_json::json;

use crate::context::Context;
use crate::output::write_interval;
use crate::terminal;
use crate::ticker::{Machine, Schedule, Ticker};

/// The columns of the extended view with a device's name.
const WHOLE: usize = 96;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab iostat -xn 1\n  pagelab iostat -xnc 5 3\n  sudo pagelab iostat -xn 1 --trace\n",
    after_help = format!("The first print is the average since boot; idle devices are left out. -x has \
the first twelve of these columns, -c the last five, in percent:
{}
A dash is a figure that Linux does not have. It does not split the time of a request into waiting and \
service: actv and asvc_t contain both, unless --trace (root) separates them. In 80 columns the columns of \
--trace are shown only with it.",
        described(&iostat::described()))
)]
pub struct Arguments {
    /// The extended view
    #[arg(short = 'x', long)]
    extended: bool,
    /// Device names as in the kernel (the default; accepted for users of -xn)
    #[arg(short = 'n', long)]
    names: bool,
    /// Also print the CPUs' time
    #[arg(short = 'c', long)]
    cpu: bool,
    /// Separate waiting from service
    #[arg(long, conflicts_with = "root")]
    trace: bool,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object per print; sizes in bytes, times in nanoseconds
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
        let waits = tracing.as_ref().map(Requests::sample);
        let now = Moment { counters: tree.read(&selection), waits };
        let rows = iostat::rows(before.as_ref(), &now);
        let processors = iostat::processors(before.as_ref(), &now).filter(|_| arguments.cpu);
        let mut out = crate::output::stdout();
        if arguments.json {
            write_interval(&mut out, before.is_none(), json!({ "devices": rows, "cpu": processors }))?;
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
