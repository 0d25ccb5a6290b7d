//! A shell of the user's in a guest, on this terminal: `pagelab run --shell`. The machine is the one that experiments get;
//! it ends with the shell.

use std::io;
use std::path::{Path, PathBuf};

use pagelab_experiment::experiments::Command;
use pagelab_experiment::{Experiment, Unsupported, What};
use pagelab_kernel::init::show_below;
use pagelab_kernel::root;
use serde::{Deserialize, Serialize};

use crate::image::Image;
use crate::initramfs::{Content, program};
use crate::options::Options;
use crate::root::Root;

/// The shell of a root of the user's.
const SHELL: &str = "/bin/sh";
/// What has one, and what is called in it, where there is no root.
const BUSYBOX: &str = "busybox";

/// Where pagelab itself is in the shell's root.
const OWN: &str = "/usr/local/bin/pagelab";

/// What the guest starts in place of a performance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shell {
    /// The program and its arguments.
    pub words: Vec<String>,
    /// The device of the terminal.
    pub terminal: PathBuf,
}

/// What the shell is, as a load, and what it finds.
///
/// # Errors
/// When there is none, or no room for it.
pub fn plan(options: &Options, image: &Image, target: &str) -> Result<(Command, Root), Unsupported> {
    let words: &[&str] = if options.root.is_some() { &[SHELL] } else { &[BUSYBOX, "sh"] };
    let load = Command::new(words.iter().map(|&word| word.to_owned()).collect());
    match Root::of(&Experiment::Command(load.clone()), options, image, target) {
        Ok(Some(root)) => Ok((load, root)),
        Ok(None) => unreachable!("a command starts a program"),
        Err(refused) if options.root.is_none() && refused.what == What::Parameter("program".to_owned()) => {
            let why = "has no shell of its own, and this machine no busybox to bring";
            let remedy = "give a root with one: root=DIR, or install it: apt-get install busybox-static";
            Err(Unsupported::new(target, What::Machine, why, remedy))
        }
        Err(refused) => Err(refused),
    }
}

/// Makes pagelab a command in the shell's `root`, with its libraries where the root has none.
///
/// # Errors
/// When a file of it cannot be shown there.
pub fn bring_pagelab(root: &mut root::Root) -> io::Result<()> {
    for (number, (place, content)) in program()?.into_iter().enumerate() {
        let from = if let Content::Link(to) = &content { to } else { &place };
        show_below(&root.folder, from, if number == 0 { Path::new(OWN) } else { &place })?;
    }
    let folder = Path::new(OWN).parent().unwrap_or(Path::new("/"));
    if !root.path.split(':').any(|known| Path::new(known) == folder) {
        root.path += &format!(":{}", folder.display());
    }
    Ok(())
}
