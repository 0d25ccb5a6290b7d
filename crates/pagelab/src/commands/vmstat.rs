//! `pagelab vmstat`: available memory, reclaim, and page-ins, page-outs and frees by kind.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::views::vmstat::{self, Layout, Row};
use pagelab_counters::views::{Width, described, xcalls};
use pagelab_kernel::bpf::pages::Pages;
use serde_json::json;

use crate::context::Context;
use crate::output::{print_json, remark, say, write_interval};
use crate::terminal;
use crate::ticker::{Machine, Schedule, Ticker};

/// Lines between two headings.
const PAGE: u64 = 20;

/// The columns of a line with all its figures.
const WHOLE: usize = 128;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab vmstat 1\n  pagelab vmstat 5 12 --json\n  pagelab vmstat -s\n  sudo pagelab vmstat 1 --trace\n",
    after_help = format!("The first line is the average since boot. Sizes are in KiB, rates per second:
{}
A dash is a figure that Linux does not have; apf and fpf need Linux 5.8. A scan rate above 0 is no \
shortage by itself, because filling the page cache scans too: see 'pagelab doctor'. --trace needs root; an \
executable is a file that a process maps executable, and its pages count in fpi and fpf too. In 80 columns \
some columns are left out, and long figures have a letter: M or G for MiB or GiB, K or M for thousands or \
millions.

--xcalls prints one line per CPU, per second, on x86:
{}",
        described(&vmstat::described()), described(&xcalls::COLUMNS))
)]
pub struct Arguments {
    /// Paging by kind (the default; accepted for users of vmstat -p)
    #[arg(short = 'p', long)]
    paging: bool,
    /// The sums since boot, one per line
    #[arg(short = 's', long, conflicts_with_all = ["swapping", "trace", "interval"])]
    sums: bool,
    /// Swapped in and out (si, so) instead of re and mf
    #[arg(short = 'S', long)]
    swapping: bool,
    /// Cross-calls of each CPU: function calls and TLB flushes that others asked for
    #[arg(long, conflicts_with_all = ["paging", "sums", "swapping", "trace"])]
    xcalls: bool,
    /// Count the pages of executables separately
    #[arg(long, conflicts_with = "root")]
    trace: bool,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object per line; sizes in bytes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

/// Prints one line per interval.
pub fn run(arguments: &Arguments, _context: &Context) -> Result<ExitCode> {
    let tree = arguments.machine.tree();
    let selection = vmstat::selection();
    if arguments.sums {
        let sums = vmstat::sums(&tree.read(&selection));
        if arguments.json {
            let object = |(number, what): &(f64, &str)| json!({ "what": what, "number": number });
            return print_json("since_boot", sums.iter().map(object).collect());
        }
        sums.iter().for_each(|(number, what)| say!("{number:>16.0} {what}"));
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.xcalls {
        return cross_calls(arguments);
    }
    let layout = Layout {
        narrow: terminal::width(WHOLE) != Width::Whole,
        traced: arguments.trace,
        swapping: arguments.swapping,
    };
    let of_intervals = vmstat::selection_of_intervals();
    let page_size = tree.root().page_size();
    let mut tracing = arguments.trace.then(Pages::start).transpose()?;
    let mut ticker = Ticker::new(arguments.schedule, None);
    let mut before = None;
    let mut lines = 0;
    loop {
        let now = tree.read(if before.is_none() { &selection } else { &of_intervals });
        let executables = tracing.as_mut().map(|pages| pages.sample(tree.root()));
        let row = Row::between(before.as_ref(), &now, page_size, executables.filter(|_| before.is_some()));
        let mut out = crate::output::stdout();
        if arguments.json {
            write_interval(&mut out, before.is_none(), json!({ "vmstat": row }))?;
        } else {
            if lines % PAGE == 0 {
                writeln!(out, "{}", vmstat::heading(layout))?;
            }
            writeln!(out, "{}", row.line(layout))?;
        }
        out.flush()?;
        drop(out);
        lines += 1;
        before = Some(now);
        if !ticker.more() || !ticker.wait() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Prints every CPU's cross-calls once per interval.
fn cross_calls(arguments: &Arguments) -> Result<ExitCode> {
    let tree = arguments.machine.tree();
    let mut ticker = Ticker::new(arguments.schedule, None);
    let mut before = None;
    loop {
        let now = tree.read(&xcalls::selection());
        let rows = xcalls::rows(before.as_ref(), &now);
        if rows.is_empty() {
            remark!("/proc/interrupts does not count cross-calls; Linux counts them on x86");
            return Ok(ExitCode::from(3));
        }
        let mut out = crate::output::stdout();
        if arguments.json {
            write_interval(&mut out, before.is_none(), json!({ "xcalls": rows }))?;
        } else {
            write!(out, "{}", xcalls::table(&rows))?;
        }
        out.flush()?;
        drop(out);
        before = Some(now);
        if !ticker.more() || !ticker.wait() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}
