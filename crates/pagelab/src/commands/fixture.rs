//! `pagelab fixture`: a machine's counters as files, to look at elsewhere or to test with.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use pagelab_counters::{Root, Selection, Tree};

use crate::context::Context;
use crate::failure::usage;
use crate::file;
use crate::output::say;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab fixture machine/\n  pagelab fixture machine/ vmstat meminfo process:$$ 'cgroup:2:/system.slice*'\n  pagelab stat --root machine/ vmstat\n"
)]
pub struct Arguments {
    /// The folder to record into: absent or empty
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The counters to record, as in 'pagelab stat' [default: all]
    #[arg(value_name = "SELECTOR")]
    selectors: Vec<String>,
}

/// Copies every file that the selection reads.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let folder = &arguments.folder;
    let selection =
        Selection::parse(arguments.selectors.iter().map(String::as_str)).map_err(|e| usage(e.to_string()))?;
    file::create_folder(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    if std::fs::read_dir(folder)?.next().is_some() {
        bail!("{} is not empty\nhint: name an empty or a new folder", folder.display());
    }
    let tree = Tree::new(Root::copying("/", folder));
    // Units depend on it.
    tree.root().page_size();
    let wanted = tree.read(&selection).samples().len();
    let kept = Tree::new(Root::new(folder)).read(&selection).samples().len();
    if kept != wanted {
        bail!(
            "{} holds {kept} of {wanted} statistics\nhint: check that the disk is not full",
            folder.display()
        );
    }
    if !context.quiet {
        let folder = folder.display();
        say!("{kept} statistics in {folder}: read them with 'pagelab stat --root {folder}'");
    }
    Ok(ExitCode::SUCCESS)
}
