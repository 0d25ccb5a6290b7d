//! `pagelab memstat`: where physical memory is, and who shares it.

mod files;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{ValueEnum, ValueHint};
use pagelab_counters::census::{Census, SHARING};
use pagelab_counters::views::{described, files as cached, memstat, prstat::size};
use serde_json::json;

use crate::context::Context;
use crate::output::print_json;
use crate::terminal;
use crate::ticker::Machine;

/// The columns of the widest table.
const WHOLE: usize = 110;

/// Whose memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Each process's share
    Process,
    /// Each cgroup's charge
    Cgroup,
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab memstat\n  pagelab memstat --by process\n  pagelab memstat --by cgroup --json\n  sudo pagelab memstat --files /var /home\n",
    after_help = format!("As root every physical page is counted by its flags. Otherwise the figures \
are those of /proc/meminfo, with a dash where it has none (it counts executables as file pages). The \
unmapped file cache is available at once unless dirty; 'dirty' includes mapped file pages.

Columns of --by, where a page that n processes map counts 1/n for each (others' processes need root; \
without it: resident sets, with shared pages in full), and a cgroup includes its children:
{}
--files shows the cached bytes of the files below the directories given. Without directories, it shows the \
files that processes have open or mapped, and those below the working directory. It omits a directory if all \
its cached files are below one subdirectory. Columns 'mapped' and 'active' need root and double the run time; \
--quick omits them. Columns 'dirty' and 'evicted' need Linux 6.5. Columns of --files:
{}", described(&memstat::described()), described(&cached::described()))
)]
pub struct Arguments {
    /// The memory of each process or cgroup
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Option<By>,
    /// Cached bytes of the files and directories below DIR
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..,
        value_hint = ValueHint::AnyPath,
        conflicts_with_all = ["by", "root"]
    )]
    files: Option<Vec<PathBuf>>,
    /// Use /proc/meminfo even as root; with --files, omit 'mapped' and 'active'
    #[arg(long, conflicts_with = "by")]
    quick: bool,
    /// At most N processes, cgroups, directories or files
    #[arg(short = 'n', long = "rows", value_name = "N", default_value_t = 20)]
    rows: usize,
    /// Print JSON; sizes in bytes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

/// Prints the table.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(directories) = &arguments.files {
        return files::run(directories, !arguments.quick, arguments.rows, arguments.json, context);
    }
    let tree = arguments.machine.tree();
    if let Some(by) = arguments.by {
        let holders = match by {
            By::Process => memstat::by_process(&tree.read(&memstat::process_selection())),
            By::Cgroup => memstat::by_cgroup(&tree.read(&memstat::cgroup_selection())),
        };
        let shown = &holders[..holders.len().min(arguments.rows)];
        if arguments.json {
            return print_json("holders", serde_json::to_value(shown)?);
        }
        let mut out = crate::output::stdout();
        writeln!(out, "{}", memstat::holder_heading(by == By::Process))?;
        for holder in shown {
            writeln!(out, "{}", holder.line(terminal::width(WHOLE)))?;
        }
        return Ok(crate::output::complete(tree.root()));
    }
    let now = tree.read(&memstat::selection());
    let page_size = tree.root().page_size();
    if memstat::lines(&now).is_empty() {
        let why =
            crate::output::unread(tree.root()).unwrap_or_else(|| "it is missing or not readable".to_owned());
        anyhow::bail!("/proc/meminfo: {why}");
    }
    let census = if arguments.quick { None } else { Some(Census::take(tree.root())) };
    let (lines, census) = match census {
        Some(Ok(census)) => (memstat::exact_lines(&census, &now, page_size), Some(census)),
        Some(Err(why)) => {
            if !context.quiet {
                crate::output::remark!("{why}; the figures are from /proc/meminfo instead");
            }
            (memstat::lines(&now), None)
        }
        None => (memstat::lines(&now), None),
    };
    if arguments.json {
        let sharing = census.map(|c| json!({ "up_to_mappings": SHARING, "pages": c.sharing }));
        return print_json(
            "memory",
            json!({ "lines": lines, "exact": sharing.is_some(), "sharing": sharing }),
        );
    }
    if let Some(bytes) = memstat::free_elsewhere(&now, page_size).filter(|_| !context.quiet) {
        crate::output::remark!(
            "/proc/meminfo counts {} as free that the allocator does not have (a balloon gave it to the host)",
            size(Some(bytes))
        );
    }
    let mut out = crate::output::stdout();
    write!(out, "{}", memstat::table(&lines, page_size))?;
    if let Some(census) = census {
        write!(out, "\n{}", memstat::sharing_table(&census, terminal::width(WHOLE)))?;
    }
    Ok(crate::output::complete(tree.root()))
}
