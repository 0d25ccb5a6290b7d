//! Writes the notebook's site into a folder: the runs' pages one by one, then the pages that cover
//! all runs. The index comes last, so an interrupted update leaves the index of the older site.

use std::path::Path;

use anyhow::Result;
use pagelab_notebook::{Entry, Notebook, Problem};
use pagelab_report::site::{self, Site};
use pagelab_simulation::Watch as _;

use crate::failure::CommandError;
use crate::folder::Folder;
use crate::watching::Watching;

/// The file that lists the files that pagelab wrote.
const LIST: &str = "pagelab-site.json";
/// The share of the progress for the runs' pages.
const PAGES_SHARE: f64 = 0.9;

/// Counts of what was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// The runs that have a page.
    pub runs: usize,
    /// The runs that cannot be read.
    pub unreadable: usize,
    /// The runs whose pages lack charts.
    pub limited: usize,
    /// The files of the site, excluding the list of files.
    pub files: usize,
    /// The total size of these files.
    pub bytes: u64,
    /// The files whose content changed or that are new.
    pub changed: usize,
    /// The removed files of an older site.
    pub removed: usize,
}

/// Writes the site of all runs into the folder at `path`; `full` draws every chart of every run.
///
/// # Errors
/// When the notebook cannot be read, the folder is refused or cannot be written, or the user interrupts.
pub fn write(notebook: &Notebook, path: &Path, full: bool, quiet: bool) -> Result<Written> {
    let watching = Watching::new("writing the site", quiet)?;
    let entries = notebook.entries()?;
    let page = |entry: &Entry| match entry {
        Entry::Readable(run) => Some(Site::page_name(run.id.0, &run.header.name)),
        Entry::Unreadable(_) => None,
    };
    let files = Site::names().into_iter().chain(entries.iter().filter_map(page));
    let mut folder = Folder::open(path, site::RUNS, LIST, files)?;
    match fill(notebook, &entries, full, &mut folder, &watching) {
        Ok((mut written, unwritten)) => {
            written.removed = folder.end(&unwritten)?;
            Ok(written)
        }
        Err(error) => {
            folder.abandon(site::INDEX);
            Err(error)
        }
    }
}

/// Writes the files. Returns the counts and the names of the announced files that it did not write.
fn fill(
    notebook: &Notebook,
    entries: &[Entry],
    full: bool,
    folder: &mut Folder,
    watching: &Watching,
) -> Result<(Written, Vec<String>)> {
    folder.begin()?;
    let mut site = Site::new(entries.len(), full);
    let (mut written, mut unwritten) = (Written::default(), Site::names());
    let mut put = |file: &site::File| -> Result<()> {
        written.files += 1;
        written.bytes += file.text.len() as u64;
        written.changed += usize::from(folder.write(&file.name, &file.text)?);
        unwritten.retain(|name| *name != file.name);
        Ok(())
    };
    Site::shared().iter().try_for_each(&mut put)?;
    let (mut runs, mut unreadable, mut missing) = (0, 0, Vec::new());
    for (n, entry) in entries.iter().rev().enumerate() {
        if watching.stopped() {
            return Err(CommandError::Stopped.into());
        }
        match entry {
            Entry::Readable(run) => match notebook.load_in_turn(run.id) {
                Ok(whole) => {
                    put(&site.add(whole, run.running as usize))?;
                    runs += 1;
                }
                Err(error) => {
                    let Problem::Unreadable { why, .. } = &error.problem else { return Err(error.into()) };
                    let header = &run.header;
                    let (experiment, started) = (header.experiment.name(), &header.started);
                    site.add_unreadable(run.id.0, &header.name, experiment, started, why);
                    missing.push(Site::page_name(run.id.0, &header.name));
                    unreadable += 1;
                }
            },
            Entry::Unreadable(run) => {
                site.add_unreadable(run.id.0, &run.name, &run.experiment, &run.started, &run.why);
                unreadable += 1;
            }
        }
        watching.at(PAGES_SHARE * (n + 1) as f64 / entries.len() as f64);
    }
    let limited = site.limited();
    let files = site.finish(|| watching.stopped()).ok_or(CommandError::Stopped)?;
    files.iter().try_for_each(&mut put)?;
    unwritten.extend(missing);
    Ok((Written { runs, unreadable, limited, ..written }, unwritten))
}
