//! `pagelab reduce STREAM`: a shorter stream that faults as the whole one does.

use std::io::BufWriter;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_model::reduce::Method;
use pagelab_reference::trace::recorded::{Ending, Heading, RUNS, Reduced, Writer};
use pagelab_report::text;
use pagelab_simulation::reduced::reduced;

use crate::context::Context;
use crate::output::say;
use crate::stream::{Memory, StreamArguments, sizes};
use crate::watching::Watching;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab reduce sort.trace --memory 100p -o small.trace
  pagelab mrc small.trace                      # the curve from 100 pages on
  pagelab reduce sort.trace --memory 10% --method olr -o smaller.trace
",
    after_help = "From the given size on, LRU and (with sad) OPT have exactly as many misses on the \
shorter trace as on the whole one. pagelab refuses smaller sizes and other policies."
)]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// The smallest memory for which the result is exact: a size, or a percentage of the pages
    #[arg(long, value_name = "SIZE")]
    memory: Memory,
    /// sad: exact for LRU and OPT; olr: shorter, exact for LRU alone
    #[arg(long, value_enum, default_value_t = Name::Sad)]
    method: Name,
    /// The file to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite an existing output file
    #[arg(long)]
    force: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Sad,
    Olr,
}

/// Reduces and writes.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let method = match arguments.method {
        Name::Sad => Method::Sad,
        Name::Olr => Method::Olr,
    };
    let memory = [arguments.memory];
    let sizes = sizes(&memory, arguments.stream.page_size(), 0)?;
    let watching = Watching::new("reducing", context.quiet)?;
    let short = reduced(&arguments.stream.source()?, &sizes, method, &watching)?;
    drop(watching);
    let path = &arguments.output;
    let file = crate::tracing::created(path, arguments.force)?;
    let heading = Heading {
        program: vec![arguments.stream.words()],
        recorder: format!("pagelab reduce --method {}", method.name()),
        unit: arguments.stream.page_size(),
        kinds: vec!["load".into()],
        reduced: Some(Reduced {
            method: method.name().into(),
            frames: short.frames,
            references: short.references,
        }),
        window: None,
    };
    let write = || -> std::io::Result<u64> {
        let mut writer = Writer::new(BufWriter::new(file), &heading)?;
        for part in short.kept.chunks(RUNS) {
            writer.block(1, 0, part.iter().map(|&page| (u64::from(page), 0, 1)))?;
        }
        Ok(writer.finish(Ending { status: "reduced".into(), ..Ending::default() })?.1)
    };
    let bytes = write().with_context(|| format!("{} cannot be written", path.display()))?;
    let of_page = arguments.stream.page_size() as f64;
    say!(
        "{}: {} of {} references ({}), {}; {} misses exactly as on the whole from {} pages ({}) on",
        path.display(),
        text::count(short.kept.len() as f64),
        text::count(short.references as f64),
        format_args!("{:.2}%", short.kept.len() as f64 / short.references as f64 * 100.0),
        text::bytes(bytes as f64),
        match method {
            Method::Sad => "LRU and OPT",
            Method::Olr => "LRU",
        },
        text::count(f64::from(short.frames)),
        text::bytes(f64::from(short.frames) * of_page),
    );
    Ok(ExitCode::SUCCESS)
}
