//! `pagelab export RUN…`: runs for other programs.

use std::io::{BufWriter, IsTerminal, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use pagelab_experiment::Run;
use pagelab_experiment::declaration::Refusal;
use pagelab_notebook::Notebook;
use pagelab_notebook::export::{self, Format};
use pagelab_report::exchange::{self, Build};

use super::compare::{measured, metric_name};
use super::serve;
use crate::context::Context;
use crate::failure::usage;
use crate::ticker::Extra;
use crate::{file, output};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Everything, as one document
    Json,
    /// One figure a row: run, repetition, kind, name, row, value, unit, text
    Csv,
    /// The same rows, typed and compressed
    Parquet,
    /// Bencher Metric Format: medians with their 95% intervals
    Bencher,
    /// For github-action-benchmark's customSmallerIsBetter: medians of what is better when smaller
    SmallerIsBetter,
    /// For its customBiggerIsBetter: medians of what is better when bigger
    BiggerIsBetter,
    /// Go's benchmark format, which benchstat reads: one line per repetition, with units
    Benchfmt,
    /// Tests for KCIDB (KernelCI), version 5.3; needs --build
    Kcidb,
    /// Folded stacks of a run with --profile, for flame graphs (speedscope, inferno)
    Folded,
    /// A Perfetto trace of what was seen over time (ui.perfetto.dev)
    Perfetto,
    /// One eviction per row of a run with --evictions: age, next reference, OPT's decision
    Evictions,
}

/// Whose writer a format has.
enum Writer {
    Notebook(Format),
    Exchange(exchange::Format),
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab export @1 --format csv > run.csv\n  pagelab export before after --format parquet -o runs.parquet\n    pagelab export @1 --format kcidb --build maestro:6650a1b2 -o tests.json\n  pagelab export @1 --format perfetto -o run.perfetto-trace\n  pagelab export --listen localhost:9750 vmstat pressure meminfo\n"
)]
pub struct Arguments {
    /// The runs: names, ids, @1 for the newest. With --listen: selectors as of 'pagelab stat'
    #[arg(value_name = "RUN", required_unless_present = "listen")]
    runs: Vec<String>,
    /// Serve the kernel's counters over HTTP as OpenMetrics until Ctrl-C, instead of runs; :PORT is on every
    /// address of this machine
    #[arg(long, value_name = "HOST:PORT", value_parser = addresses, conflicts_with_all = ["format", "output"])]
    listen: Option<Addresses>,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "json")]
    format: Form,
    /// The file; standard output without it, or with -
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// These metrics only, in the formats of benchmarks and tests
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "listen", value_parser = metric_name)]
    metric: Vec<String>,
    /// The build that KCIDB's tests belong to
    #[arg(long, value_name = "ORIGIN:ID", value_parser = build, conflicts_with = "listen")]
    build: Option<Build>,
    #[command(flatten)]
    extra: Extra,
}

/// Where to listen: the first that can be had.
#[derive(Clone, Debug)]
struct Addresses(Vec<SocketAddr>);

fn addresses(text: &str) -> Result<Addresses, Refusal> {
    let refused =
        |why: String| Refusal::new(format!("{why}\nhint: write localhost:9750, 127.0.0.1:9750 or :9750"));
    let found = match text.strip_prefix(':') {
        // IPv6's any is IPv4's too, where the machine has both.
        Some(port) => {
            let port =
                port.parse().map_err(|_| refused(format!("'{port}' must be a port from 0 to 65535")))?;
            vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
        }
        None => text.to_socket_addrs().map_err(|e| refused(e.to_string()))?.collect(),
    };
    if found.is_empty() { Err(refused("it has no address".to_owned())) } else { Ok(Addresses(found)) }
}

fn build(text: &str) -> Result<Build, Refusal> {
    text.parse().map_err(|why: &str| Refusal::new(why))
}

/// Writes the runs.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(Addresses(addresses)) = &arguments.listen {
        return serve::serve(addresses, &arguments.runs, &arguments.extra, context);
    }
    if arguments.extra.any() {
        return Err(usage("--extra is for counters that are served\nhint: add --listen HOST:PORT"));
    }
    let notebook = Notebook::open_existing(&context.notebook)?;
    let runs = arguments
        .runs
        .iter()
        .map(|name| Ok(notebook.load(notebook.resolve(name)?)?))
        .collect::<Result<Vec<Run>>>()?;
    let writer = writer(arguments)?;
    for metric in &arguments.metric {
        if !matches!(&writer, Writer::Exchange(format) if format.has_metrics()) {
            return Err(usage(
                "--metric is for the formats of benchmarks and tests: bencher, smaller-is-better, bigger-is-better, benchfmt, kcidb",
            ));
        }
        measured(metric, &runs)?;
    }
    let write = |out: &mut (dyn Write + Send)| -> Result<()> {
        match &writer {
            Writer::Notebook(format) => Ok(export::export(&runs, *format, out)?),
            Writer::Exchange(format) => Ok(exchange::write(&runs, format, &arguments.metric, out)?),
        }
    };
    let binary = match &writer {
        Writer::Notebook(format) => *format == Format::Parquet,
        Writer::Exchange(format) => format.is_binary(),
    };
    match &arguments.output {
        Some(path) if !file::is_stdout(path) => file::write(path, write)?,
        _ => match (arguments.format, std::io::stdout().is_terminal()) {
            (_, true) if binary => {
                return Err(usage(format!(
                    "{} is not for a terminal\nhint: name a file with -o",
                    name(arguments.format)
                )));
            }
            // In JSON nothing is lost by it; a terminal is not to obey what a run of somebody else holds.
            (Form::Json, _) | (_, true) => write(&mut BufWriter::new(output::stdout()))?,
            _ => write(&mut BufWriter::new(std::io::stdout()))?,
        },
    }
    Ok(ExitCode::SUCCESS)
}

fn writer(arguments: &Arguments) -> Result<Writer> {
    let build = arguments.build.clone();
    if build.is_some() && arguments.format != Form::Kcidb {
        return Err(usage("--build is for --format kcidb"));
    }
    Ok(match arguments.format {
        Form::Json => Writer::Notebook(Format::Json),
        Form::Csv => Writer::Notebook(Format::Csv),
        Form::Parquet => Writer::Notebook(Format::Parquet),
        Form::Bencher => Writer::Exchange(exchange::Format::Bencher),
        Form::SmallerIsBetter => Writer::Exchange(exchange::Format::SmallerIsBetter),
        Form::BiggerIsBetter => Writer::Exchange(exchange::Format::BiggerIsBetter),
        Form::Benchfmt => Writer::Exchange(exchange::Format::Benchfmt),
        Form::Kcidb => {
            let build = build.ok_or_else(|| {
                usage("--format kcidb needs the build that was tested\nhint: add --build ORIGIN:ID, as KernelCI names it")
            })?;
            Writer::Exchange(exchange::Format::Kcidb(build))
        }
        Form::Folded => Writer::Exchange(exchange::Format::Folded),
        Form::Perfetto => Writer::Exchange(exchange::Format::Perfetto),
        Form::Evictions => Writer::Exchange(exchange::Format::Evictions),
    })
}

/// A format's name as it is typed.
fn name(format: Form) -> String {
    format.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
