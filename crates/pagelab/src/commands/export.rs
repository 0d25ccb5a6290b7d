//! `pagelab export RUN…`: runs for other programs.

use std::io::{BufWriter, IsTerminal};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use pagelab_experiment::Run;
use pagelab_experiment::declaration::Refusal;
use pagelab_notebook::Notebook;
use pagelab_notebook::export::{self, Format};

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
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab export @1 --format csv > run.csv\n  pagelab export before after --format parquet -o runs.parquet\n  pagelab export --listen localhost:9750 vmstat pressure meminfo\n  pagelab export --listen localhost:9750 --extra counters/\n"
)]
pub struct Arguments {
    /// The runs: names, ids, @1 for the newest. With --listen: selectors as of 'pagelab stat'
    #[arg(value_name = "RUN", required_unless_present = "listen")]
    runs: Vec<String>,
    /// Serve the kernel's counters over HTTP in place of runs, in OpenMetrics' form, until Ctrl-C; :PORT is on every
    /// address of this machine
    #[arg(long, value_name = "HOST:PORT", value_parser = addresses, conflicts_with_all = ["format", "output"])]
    listen: Option<Addresses>,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "json")]
    format: Form,
    /// The file; standard output without it, or with -
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    extra: Extra,
}

/// Where to listen: the first that can be had.
#[derive(Clone, Debug)]
struct Addresses(Vec<SocketAddr>);

fn addresses(text: &str) -> Result<Addresses, Refusal> {
    let refused = |why: String| Refusal::new(format!("{why}; write localhost:9750, 127.0.0.1:9750 or :9750"));
    let found = match text.strip_prefix(':') {
        // IPv6's any is IPv4's too, where the machine has both.
        Some(port) => {
            let port = port.parse().map_err(|_| refused(format!("'{port}' is no port")))?;
            vec![(Ipv6Addr::UNSPECIFIED, port).into(), (Ipv4Addr::UNSPECIFIED, port).into()]
        }
        None => text.to_socket_addrs().map_err(|e| refused(e.to_string()))?.collect(),
    };
    if found.is_empty() { Err(refused("it has no address".to_owned())) } else { Ok(Addresses(found)) }
}

/// Writes the runs.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(Addresses(addresses)) = &arguments.listen {
        return serve::serve(addresses, &arguments.runs, &arguments.extra, context);
    }
    if arguments.extra.any() {
        return Err(usage("--extra is for counters that are served: add --listen HOST:PORT"));
    }
    let notebook = Notebook::open_existing(&context.notebook)?;
    let runs = arguments
        .runs
        .iter()
        .map(|name| Ok(notebook.load(notebook.resolve(name)?)?))
        .collect::<Result<Vec<Run>>>()?;
    let format = match arguments.format {
        Form::Json => Format::Json,
        Form::Csv => Format::Csv,
        Form::Parquet => Format::Parquet,
    };
    match &arguments.output {
        Some(path) if !file::is_stdout(path) => {
            file::write(path, |out| Ok(export::export(&runs, format, out)?))?;
        }
        _ => match (arguments.format, std::io::stdout().is_terminal()) {
            (Form::Parquet, true) => {
                return Err(usage("Parquet is not for a terminal: name a file with -o"));
            }
            // In JSON nothing is lost by it; a terminal is not to obey what a run of somebody else holds.
            (Form::Json, _) | (Form::Csv, true) => {
                export::export(&runs, format, BufWriter::new(output::stdout()))?;
            }
            (Form::Csv | Form::Parquet, _) => {
                export::export(&runs, format, BufWriter::new(std::io::stdout()))?;
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}
