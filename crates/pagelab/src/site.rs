//! Writes the notebook's site into a folder: first the runs' pages, drawn by several threads, then
//! the pages that cover all runs. The index comes last, so an interrupted update leaves the index of
//! the older site.

use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};

use anyhow::Result;
use pagelab_experiment::Run;
use pagelab_notebook::{Entry, Notebook, Problem};
use pagelab_report::site::{self, Page, Site};
use pagelab_simulation::Watch as _;

use crate::failure::CommandError;
use crate::folder::Folder;
use crate::watching::Watching;

/// The file that lists the files that pagelab wrote.
const LIST: &str = "pagelab-site.json";
/// Maximum number of threads that draw pages. Twice as many runs are in memory.
const MAX_THREADS: usize = 8;
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
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    let newest_first: Vec<&Entry> = entries.iter().rev().collect();
    let mut parts = newest_first.chunks(threads);
    let mut load_next = || parts.next().map(|part| load(notebook, part)).transpose();
    let (mut next, mut done) = (load_next()?, 0);
    while let Some(loaded) = next {
        if watching.stopped() {
            return Err(CommandError::Stopped.into());
        }
        done += loaded.len();
        let (pages, after) = draw(&site, &loaded, &mut load_next);
        next = after?;
        for (loaded, page) in loaded.into_iter().zip(pages) {
            match (loaded, page) {
                (Loaded::Run(run, running), Some(page)) => {
                    put(&site.add(*run, running, page))?;
                    runs += 1;
                }
                (Loaded::Unreadable { id, name, experiment, started, why, page }, _) => {
                    site.add_unreadable(id, name, experiment, started, &why);
                    missing.extend(page);
                    unreadable += 1;
                }
                (Loaded::Run(..), None) => unreachable!("every run has a page"),
            }
        }
        watching.at(PAGES_SHARE * done as f64 / entries.len() as f64);
    }
    let limited = site.limited();
    let files = site.finish(|| watching.stopped()).ok_or(CommandError::Stopped)?;
    files.iter().try_for_each(&mut put)?;
    unwritten.extend(missing);
    Ok((Written { runs, unreadable, limited, ..written }, unwritten))
}

/// A run as read from the notebook.
enum Loaded<'a> {
    /// With the number of repetitions that a live pagelab is still writing.
    Run(Box<Run>, usize),
    Unreadable {
        id: i64,
        name: &'a str,
        experiment: &'a str,
        started: &'a str,
        why: String,
        /// The announced page, which is not written.
        page: Option<String>,
    },
}

fn load<'a>(notebook: &Notebook, part: &[&'a Entry]) -> Result<Vec<Loaded<'a>>> {
    part.iter().map(|entry| load_one(notebook, entry)).collect()
}

fn load_one<'a>(notebook: &Notebook, entry: &'a Entry) -> Result<Loaded<'a>> {
    let run = match entry {
        Entry::Readable(run) => run,
        Entry::Unreadable(run) => {
            return Ok(Loaded::Unreadable {
                id: run.id.0,
                name: &run.name,
                experiment: &run.experiment,
                started: &run.started,
                why: run.why.clone(),
                page: None,
            });
        }
    };
    match notebook.load_in_turn(run.id) {
        Ok(whole) => Ok(Loaded::Run(Box::new(whole), run.running as usize)),
        Err(error) => {
            let Problem::Unreadable { why, .. } = &error.problem else { return Err(error.into()) };
            let header = &run.header;
            Ok(Loaded::Unreadable {
                id: run.id.0,
                name: &header.name,
                experiment: header.experiment.name(),
                started: &header.started,
                why: why.clone(),
                page: Some(Site::page_name(run.id.0, &header.name)),
            })
        }
    }
}

/// Draws the pages, each on a thread of its own where threads can be created, and calls `meanwhile`.
fn draw<T>(site: &Site, loaded: &[Loaded], meanwhile: impl FnOnce() -> T) -> (Vec<Option<Page>>, T) {
    thread::scope(|scope| {
        let mut begun = Vec::new();
        for one in loaded {
            begun.push(match one {
                Loaded::Run(run, _) => {
                    Some((run, thread::Builder::new().spawn_scoped(scope, || site.draw(run))))
                }
                Loaded::Unreadable { .. } => None,
            });
        }
        let result = meanwhile();
        let end = |(run, worker): (&Run, io::Result<ScopedJoinHandle<'_, Page>>)| match worker {
            Ok(worker) => worker.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => site.draw(run),
        };
        (begun.into_iter().map(|one| one.map(|(run, worker)| end((run, worker)))).collect(), result)
    })
}
