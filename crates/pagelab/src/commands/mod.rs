//! The commands, one file each: its arguments and what it does.

pub mod bisect_run;
pub mod catalogue;
pub mod clock;
pub mod compare;
pub mod completions;
pub mod convert;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod fixture;
pub mod import;
pub mod iostat;
pub mod list;
pub mod live_map;
pub mod manual;
pub mod memstat;
pub mod mrc;
pub mod policies;
pub mod prstat;
pub mod record;
pub mod reduce;
pub mod reference;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod run;
mod serve;
pub mod show;
pub mod stat;
pub mod top;
pub mod trace;
pub mod vmstat;
mod watcher;
pub mod wss;

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::{output, terminal};

/// Performs the command.
pub fn dispatch(cli: Cli) -> Result<ExitCode> {
    let context = Context { notebook: cli.notebook, style: terminal::style(cli.color), quiet: cli.quiet };
    output::set_style(&context.style);
    // Whatever an earlier pagelab could not undo is undone first.
    let recovery = pagelab_confine::Recovery::begin();
    for line in recovery.first() {
        output::remark!("{line}");
    }
    let done = perform(cli.command, &context);
    for line in recovery.rest() {
        output::remark!("{line}");
    }
    done
}

fn perform(command: Command, context: &Context) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => run::run(&arguments, context),
        Command::List(arguments) => list::run(&arguments, context),
        Command::Show(arguments) => show::run(&arguments, context),
        Command::Compare(arguments) => compare::run(&arguments, context),
        Command::Replay(arguments) => replay::run(&arguments, context),
        Command::Trace(arguments) => trace::run(&arguments, context),
        Command::Reduce(arguments) => reduce::run(&arguments, context),
        Command::Mrc(arguments) => mrc::run(&arguments, context),
        Command::Wss(arguments) => wss::run(&arguments, context),
        Command::Reproduce(arguments) => reproduce::run(&arguments, context),
        Command::BisectRun(arguments) => bisect_run::run(&arguments, context),
        Command::Report(arguments) => report::run(&arguments, context),
        Command::Export(arguments) => export::run(&arguments, context),
        Command::Import(arguments) => import::run(&arguments, context),
        Command::Stat(arguments) => stat::run(&arguments, context),
        Command::Vmstat(arguments) => vmstat::run(&arguments, context),
        Command::Iostat(arguments) => iostat::run(&arguments, context),
        Command::Memstat(arguments) => memstat::run(&arguments, context),
        Command::Prstat(arguments) => prstat::run(&arguments, context),
        Command::Doctor(arguments) => doctor::run(&arguments, context),
        Command::Top(arguments) => top::run(&arguments, context),
        Command::Record(arguments) => record::run(&arguments, context),
        Command::Fixture(arguments) => fixture::run(&arguments, context),
        Command::Clock(arguments) => clock::run(&arguments),
        Command::Experiments(arguments) => catalogue::experiments(&arguments, context),
        Command::Targets(arguments) => catalogue::targets(&arguments, context),
        Command::Convert(arguments) => convert::run(&arguments, context),
        Command::Patterns(arguments) => catalogue::patterns(&arguments, context),
        Command::Policies(arguments) => policies::run(&arguments, context),
        Command::Explain(arguments) => explain::run(&arguments, context),
        Command::Reference(arguments) => reference::run(&arguments, context),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Manual(arguments) => manual::run(&arguments, Cli::command()),
    }
}
