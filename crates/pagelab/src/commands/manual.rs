//! `pagelab man DIR`: a manual page for pagelab and for each of its commands.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Example:\n  pagelab man ~/.local/share/man/man1\n")]
pub struct Arguments {
    /// The folder; it is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages of this grammar.
pub fn run(arguments: &Arguments, grammar: clap::Command) -> Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(grammar, folder))
        .with_context(|| format!("the manual pages cannot be written to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
