//! The command line of pagelab: parses, wires the crates together, prints.
//!
//! Exit status: 0 done; 1 `compare --fail-on` found a regression, `doctor` a shortage, `stat` nothing;
//! 2 wrong usage; 3 the experiment could not be performed, or anything else that failed.

mod bug;
mod cells;
mod cli;
mod commands;
mod computed;
mod consoles;
mod context;
mod dry_run;
mod failure;
mod file;
mod folder;
mod interrupt;
mod output;
mod page;
mod performance;
mod portrait;
mod program;
mod progress;
mod recording;
mod recordings;
mod site;
mod sized;
mod stream;
mod suite;
mod summary;
mod sweep;
mod targets;
mod terminal;
mod ticker;
mod today;
mod tracing;
mod watching;

use std::process::ExitCode;
use std::sync::Arc;

use pagelab_kernel::lifetime;
use signal_hook::consts::SIGXFSZ;

use crate::failure::CommandError;

#[global_allocator]
static ALLOCATOR: pagelab_kernel::allocator::Allocator = pagelab_kernel::allocator::Allocator;

/// The stack that commands need, bytes.
const STACK: u64 = 8 << 20;

/// On a stack that suffices, whatever `ulimit -s` says.
fn main() -> ExitCode {
    if lifetime::stack_limit().is_none_or(|limit| limit >= STACK / 2) {
        return run();
    }
    match std::thread::Builder::new().stack_size(STACK as usize).spawn(run).map(std::thread::JoinHandle::join)
    {
        Ok(Ok(status)) => status,
        // The panic was told where it was.
        Ok(Err(_)) => ExitCode::from(101),
        Err(error) => {
            let what = format!("cannot create a thread with a stack of {STACK} bytes ({error})");
            output::error(&anyhow::anyhow!("{what}{}raise ulimit -s", output::HINT));
            ExitCode::from(3)
        }
    }
}

fn run() -> ExitCode {
    // As the first process of a guest.
    if std::process::id() == 1 && std::path::Path::new(pagelab_guest::JOB).exists() {
        return pagelab_guest::init_main();
    }
    // The load runs in a process of its own, which is this program again.
    if std::env::args_os().nth(1).is_some_and(|a| a == "__worker") {
        return pagelab_live::worker_main();
    }
    // What a storm of forks executes.
    if std::env::args_os().nth(1).is_some_and(|a| a == pagelab_live::experiments::forkstorm::copy::NOTHING) {
        return ExitCode::SUCCESS;
    }
    bug::install();
    // Where the size of files is limited, a write gives an error and does not end the program.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    // Of a program that started this one and may be killed: what is set up is undone all the same.
    let parent = std::env::var("PAGELAB_PARENT").ok().and_then(|parent| parent.parse().ok());
    if parent.is_some_and(|parent| !lifetime::end_with(parent).unwrap_or(true)) {
        return ExitCode::from(CommandError::Stopped.status());
    }
    commands::completions::answer(<cli::Cli as clap::CommandFactory>::command);
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && commands::bisect_run::is_meant(std::env::args_os().skip(1)) => {
            cli::usage_error(&error);
            return commands::bisect_run::no_verdict();
        }
        Err(error) if error.use_stderr() => {
            cli::usage_error(&error);
            return ExitCode::from(2);
        }
        Err(error) => error.exit(),
    };
    let bisects = matches!(cli.command, cli::Command::BisectRun(_));
    match cli::dispatch(cli) {
        Ok(code) => code,
        Err(error) if bisects => {
            output::error(&error);
            commands::bisect_run::no_verdict()
        }
        Err(error) if failure::is_broken_pipe(&error) => output::closed(),
        // Whatever it is that was broken off.
        Err(error) if interrupt::came() && error.downcast_ref::<CommandError>().is_none() => {
            output::error(&CommandError::Stopped.into());
            ExitCode::from(CommandError::Stopped.status())
        }
        Err(error) => {
            output::error(&error);
            ExitCode::from(failure::status(&error))
        }
    }
}
