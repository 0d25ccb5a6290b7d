//! `pagelab man DIR`: a manual page for pagelab and for each of its commands.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::CommandFactory;

use crate::cli::Cli;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Example:\n  pagelab man ~/.local/share/man/man1\n")]
pub struct Arguments {
    /// The folder; it is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("the manual pages cannot be written to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
