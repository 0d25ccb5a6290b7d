//! `pagelab completions SHELL`: a completion script on standard output.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Example:\n  pagelab completions bash > ~/.local/share/bash-completion/completions/pagelab\n"
)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for this grammar.
pub fn run(arguments: &Arguments, mut grammar: clap::Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut grammar, "pagelab", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
