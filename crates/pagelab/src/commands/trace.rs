//! `pagelab trace -- PROGRAM…`: the references of a program, recorded into a file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Tracing;
use pagelab_live::harness::tracer::{MAX_WINDOW, MIN_WINDOW, Selection, Streams, Window};
use pagelab_reference::trace::recorded::{Heading, Origin, Outside};
use pagelab_report::text;

use crate::computed::{Computed, Keeping};
use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::output::remark;
use crate::tracing::{self, Order, Recorded};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab trace -- sort words
  pagelab trace -o import.trace -- sqlite3 my.db '.import big.csv t'
  pagelab trace --window auto -- ./server --once   # cheaper, for large memory
  pagelab mrc import.trace                     # its miss curve
  pagelab replay import.trace --memory 10%,50% --on model:lru --on model:opt
",
    after_help = "The program runs under QEMU's user mode, typically 8 to 50 times slower (median 28), \
with its own input and output. References of the kernel to its memory (a buffer of read(2)) are not \
recorded. Threads, forked processes and programs that it executes are recorded, each process separately; a \
program of another architecture, or one that changes the user, is not.

With --window K the program runs without QEMU. The trace has each reference to a page outside the K to K + 64 \
most recent ones, and no others. Such a trace holds for memory of 4 K pages and more; replay, mrc, report and \
run command refuse less. It does not distinguish loads from stores, and lacks stacks. A static program is \
refused. With auto, K starts at 256 and doubles while the predicted slowdown exceeds a factor of 3; the trace \
states the largest K.

To record an experiment in a guest with its kernel, use pagelab run mapanon --on kernel:PATH,accel=icount,trace=on."
)]
pub struct Arguments {
    /// The file to write [default: the program's name and .trace]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing output file
    #[arg(long)]
    force: bool,
    /// The unit of a reference: pages of 4096 bytes, or lines of 64
    #[arg(long, value_enum, default_value_t = Granularity::Page)]
    granularity: Granularity,
    /// Record loads and stores alone, or instruction fetches alone
    #[arg(long, value_enum)]
    only: Option<Only>,
    /// Record only references outside the K most recent pages; auto: choose a K that limits the
    /// slowdown to a factor of 3
    #[arg(long, value_name = "K|auto", value_parser = window)]
    window: Option<Window>,
    #[command(flatten)]
    keeping: Keeping,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The initial size of a window that grows, in pages.
const FIRST_WINDOW: u32 = 256;

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Granularity {
    Page,
    Line,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Only {
    Data,
    Code,
}

/// Parses a window: a number of pages, or `auto`.
fn window(text: &str) -> Result<Window, String> {
    if text == "auto" {
        return Ok(Window { pages: FIRST_WINDOW, grows: true });
    }
    match text.parse() {
        Ok(pages) if (MIN_WINDOW..=MAX_WINDOW).contains(&pages) => Ok(Window { pages, grows: false }),
        _ => Err(format!("must be auto or a number of pages between {MIN_WINDOW} and {MAX_WINDOW}")),
    }
}

/// Records.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let shift = match arguments.granularity {
        Granularity::Page => 12,
        Granularity::Line => 6,
    };
    let kinds = match arguments.only {
        None => 0b111,
        Some(Only::Data) => 0b011,
        Some(Only::Code) => 0b100,
    };
    if arguments.window.is_some() && arguments.granularity == Granularity::Line {
        return Err(usage(
            "--window records pages, not cache lines\nhint: leave out --granularity or --window",
        ));
    }
    let path = arguments.output.clone().unwrap_or_else(|| tracing::usual_path(&arguments.program[0]));
    let recorded = tracing::record(&Order {
        program: &arguments.program,
        path: &path,
        force: arguments.force,
        selection: Selection { shift, kinds },
        streams: Streams::Own,
        window: arguments.window,
    })?;
    if !context.quiet {
        summary(&path, &recorded);
    }
    arguments.keeping.keep(vec![computed(&path, &recorded)], true, context)?;
    if recorded.interrupted {
        return Err(CommandError::Stopped.into());
    }
    Ok(ExitCode::from(recorded.status.code().map_or(1, |code| code as u8)))
}

/// The run that the notebook keeps.
fn computed(path: &Path, recorded: &Recorded) -> Computed {
    let Recorded { heading, ending, units, bytes, elapsed, .. } = recorded;
    let experiment = Experiment::Trace(Tracing {
        program: heading.program.clone(),
        file: path.to_owned(),
        unit: heading.unit,
        kinds: heading.kinds.clone(),
        window: heading.window,
    });
    let figures = [
        ending.references(),
        ending.loads,
        ending.stores,
        ending.fetches,
        *units as u64,
        ending.processes,
        ending.threads,
        *bytes,
    ];
    Computed::recorded(experiment, figures, elapsed.as_nanos() as f64)
}

/// Says what was recorded.
fn summary(path: &Path, recorded: &Recorded) {
    let Recorded { heading, ending, units, bytes, elapsed, .. } = recorded;
    let (pages, bytes) = (*units, *bytes);
    let count = |n: u64| text::count(n as f64);
    let units = if heading.unit == 4096 { "pages" } else { "lines of 64 bytes" };
    remark!(
        "{}: {} references to {} {units}, in {} ({} loads, {} stores, {} fetches; {} after {})",
        path.display(),
        count(ending.references()),
        count(pages as u64),
        text::bytes(bytes as f64),
        count(ending.loads),
        count(ending.stores),
        count(ending.fetches),
        ending.status,
        text::duration(elapsed.as_nanos() as f64),
    );
    if ending.threads > 1 {
        let order = if heading.window.is_some() {
            "in the order in which their faults were read"
        } else {
            "each in its own order"
        };
        remark!("processes: {}; threads: {}, {order}", ending.processes, ending.threads);
    }
    if let Some(outside) = &ending.outside {
        window_summary(heading, outside);
    }
    let others = ending.streams.iter().any(|stream| stream.program != ending.streams[0].program);
    if others {
        remark!("references: {}", shares(&ending.streams));
    }
    if ending.unrecorded_programs > 0 {
        remark!(
            "not in the trace: {} that it executed, because of another architecture or user",
            match ending.unrecorded_programs {
                1 => "one program".to_owned(),
                number => format!("{number} programs"),
            }
        );
    }
    if ending.unrecorded_threads > 0 {
        remark!(
            "{} threads beyond 256 at a time, or of processes beyond 4,096, are not in the trace",
            ending.unrecorded_threads
        );
    }
}

/// Prints the smallest memory for which a recording through a window holds, and the number of pages
/// outside the window.
fn window_summary(heading: &Heading, outside: &Outside) {
    let count = |n: u64| text::count(n as f64);
    remark!(
        "window: {} pages; the trace holds for memory of {} pages and more",
        count(heading.window.unwrap_or(0).into()),
        count(heading.least().into()),
    );
    remark!(
        "not in the trace: {} pages of stacks, {} other pages; references of the kernel: {}",
        count(outside.stack_pages),
        count(outside.other_pages),
        if outside.kernel { count(outside.kernel_references) } else { "not recorded".to_owned() },
    );
    if outside.emptied > 0 {
        remark!("all pages were hidden {} times", count(outside.emptied));
    }
}

/// The share of each program, the largest first.
fn shares(streams: &[Origin]) -> String {
    const SHOWN: usize = 6;
    let mut list = tracing::by_program(streams);
    let all = list.iter().map(|program| program.references).sum::<u64>().max(1);
    let share = |references: u64| format!("{:.1}%", references as f64 / all as f64 * 100.0);
    let rest = list.split_off(list.len().min(SHOWN));
    let named = |one: &tracing::Part| match one.processes {
        1 => format!("{} {}", one.name, share(one.references)),
        many => format!("{} ({many}) {}", one.name, share(one.references)),
    };
    let mut parts: Vec<String> = list.iter().map(named).collect();
    if !rest.is_empty() {
        parts.push(format!("others {}", share(rest.iter().map(|one| one.references).sum())));
    }
    parts.join(", ")
}
