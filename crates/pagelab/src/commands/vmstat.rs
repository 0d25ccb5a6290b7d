//! `pagelab vmstat`: free memory, reclaim, and page-ins, page-outs and frees by kind.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::views::Width;
use pagelab_counters::views::vmstat::{self, Layout, Row};
use pagelab_kernel::bpf::pages::Pages;
use serde_json::json;

use crate::context::Context;
use crate::output::{SCHEMA_VERSION, print_json, say};
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
    after_help = "The first line is the average since boot. Sizes are in KiB, rates per second:
  swap  swap that is free (under strict overcommit, what may still be reserved)
  free  memory that can be had without paging out (MemAvailable)
  re    pages saved from reclaim by a second reference (pgactivate)
  mf    minor faults (pgfault - pgmajfault)
  fr    freed by reclaim (pgsteal_anon + pgsteal_file; cgroups' own reclaim included)
  sr    pages that reclaim looked at (pgscan_anon + pgscan_file); 'pagelab doctor' tells whether
        that is a shortage: filling the page cache scans too
  api apo apf   anonymous memory paged in (pswpin), out (pswpout), freed (pgsteal_anon)
  fpi fpo fpf   blocks read (pgpgin - pswpin), written (pgpgout - pswpout), file pages freed
and with --trace (root), from the kernel's tracepoints:
  epi epf   pages of executables that came into the page cache and left it; in fpi and fpf too. An
            executable is a file that a process maps executable at the time of a line, or did before
A dash is a figure that Linux does not keep:
  de            Solaris' anticipated deficit: Linux swaps no whole process in
  epi epf       without --trace: Linux counts executables' pages as files'. It costs a little for each
                page (or larger folio) that comes or goes, and a line the reading of all processes' maps
  epo           no tracepoint sees every page of a file that is written
  apf fpf       before Linux 5.8, which does not split what reclaim freed
In 80 columns de and epo are left out, epi and epf unless traced (then swap), and figures that are too
long have a letter: sizes M or G for MiB or GiB, numbers K or M for thousands or millions."
)]
pub struct Arguments {
    /// Paging by kind (always so; taken for the habit of vmstat -p)
    #[arg(short = 'p', long)]
    paging: bool,
    /// What has happened since boot, a line each
    #[arg(short = 's', long, conflicts_with_all = ["swapping", "trace", "interval"])]
    sums: bool,
    /// Swapped in and out (si, so) in place of re and mf
    #[arg(short = 'S', long)]
    swapping: bool,
    /// Count executables' pages apart
    #[arg(long, conflicts_with = "root")]
    trace: bool,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object a line; sizes in bytes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

/// Prints a line an interval.
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
    let layout = Layout {
        narrow: terminal::width(WHOLE) != Width::Whole,
        traced: arguments.trace,
        swapping: arguments.swapping,
    };
    let page_size = tree.root().page_size();
    let mut tracing = arguments.trace.then(Pages::start).transpose()?;
    let mut ticker = Ticker::new(arguments.schedule, None);
    let mut before = None;
    let mut lines = 0;
    loop {
        let now = tree.read(&selection);
        let executables = tracing.as_mut().map(|pages| pages.look(tree.root()));
        let row = Row::between(before.as_ref(), &now, page_size, executables.filter(|_| before.is_some()));
        let mut out = crate::output::stdout();
        if arguments.json {
            let object = json!({
                "schema_version": SCHEMA_VERSION,
                "time": jiff::Timestamp::now().to_string(),
                "since_boot": before.is_none(),
                "vmstat": row,
            });
            writeln!(out, "{object}")?;
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
