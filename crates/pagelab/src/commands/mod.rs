//! The commands, one file each: its arguments and what it does.

pub mod catalogue;
pub mod compare;
pub mod completions;
pub mod export;
pub mod import;
pub mod list;
pub mod manual;
pub mod mrc;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod run;
pub mod show;
pub mod wss;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_report::text::Style;

use crate::cli::{Cli, Command};
use crate::terminal;

/// What every command needs to know.
pub struct Context {
    /// The notebook's file.
    pub notebook: PathBuf,
    /// How to print to standard output.
    pub style: Style,
    /// Whether progress and remarks are unwanted.
    pub quiet: bool,
}

/// Performs the command.
pub fn dispatch(cli: Cli) -> Result<ExitCode> {
    let context = Context { notebook: cli.notebook, style: terminal::style(cli.color), quiet: cli.quiet };
    // Whatever an earlier pagelab could not undo is undone first.
    for line in pagelab_live::recover() {
        eprintln!("pagelab: {line}");
    }
    match cli.command {
        Command::Run(arguments) => run::run(&arguments, &context),
        Command::List(arguments) => list::run(&arguments, &context),
        Command::Show(arguments) => show::run(&arguments, &context),
        Command::Compare(arguments) => compare::run(&arguments, &context),
        Command::Replay(arguments) => replay::run(&arguments, &context),
        Command::Mrc(arguments) => mrc::run(&arguments, &context),
        Command::Wss(arguments) => wss::run(&arguments, &context),
        Command::Reproduce(arguments) => reproduce::run(&arguments, &context),
        Command::Report(arguments) => report::run(&arguments, &context),
        Command::Export(arguments) => export::run(&arguments, &context),
        Command::Import(arguments) => import::run(&arguments, &context),
        Command::Experiments(arguments) => catalogue::experiments(&arguments, &context),
        Command::Targets(arguments) => catalogue::targets(&arguments, &context),
        Command::Patterns(arguments) => catalogue::patterns(&arguments, &context),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Manual(arguments) => manual::run(&arguments),
    }
}
