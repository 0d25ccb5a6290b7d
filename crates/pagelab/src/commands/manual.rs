//! `pagelab man DIR`: a manual page for pagelab and for each of its commands.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::file;

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
    let failed = || format!("the manual pages cannot be written to {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    // Made aside first, then each put in its place as every output is.
    let aside = tempfile::tempdir_in(folder).with_context(failed)?;
    clap_mangen::generate_to(grammar, aside.path()).with_context(failed)?;
    for page in std::fs::read_dir(aside.path()).with_context(failed)? {
        let page = page.with_context(failed)?;
        let text = std::fs::read(page.path()).with_context(failed)?;
        file::write(&folder.join(page.file_name()), |out| Ok(out.write_all(&text)?))?;
    }
    Ok(ExitCode::SUCCESS)
}
