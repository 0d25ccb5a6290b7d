//! The notebook: every run, in one SQLite file that other programs can query.
//!
//! A repetition counts only when its end was written. So a killed pagelab leaves whole repetitions
//! and at most one that is torn, which is marked when its writer is seen to be dead. A run writes
//! nothing while it measures: [`Notebook::together`] writes a repetition in one transaction. The
//! schema is described in docs/src/reference/notebook.md.

mod budget;
mod error;
pub mod export;
mod file;
mod ids;
mod import;
pub mod links;
mod read;
mod turn;
mod write;
mod writer;

use std::path::{Path, PathBuf};

use pagelab_experiment::observation::Table;
use pagelab_experiment::{Observation, Outcome, Run, RunHeader};
use rusqlite::Connection;

use budget::Budget;
pub use error::{Error, Problem};
pub use ids::{RepetitionId, RunId};
pub use import::Imported;
use read::Parts;
pub use read::{Entry, Summary, Unreadable};
pub use turn::hurry_when;

/// An open notebook.
pub struct Notebook {
    path: PathBuf,
    connection: Connection,
    /// What its runs may still take in memory.
    budget: Budget,
}

/// Changes of a notebook that are made together, wholly or not at all.
pub struct Changes<'c>(&'c Connection);

impl Changes<'_> {
    /// Begins a run. An empty name is replaced by a free one such as `mapanon-3`.
    ///
    /// # Errors
    /// When the name is taken or impossible, or the file cannot be written; so with all others.
    pub fn begin_run(&self, header: &RunHeader) -> Result<RunId, Problem> {
        write::run(self.0, header, None)
    }

    /// Takes a run back that was begun and never performed; whether it was one.
    pub fn forget_empty(&self, run: RunId) -> Result<bool, Problem> {
        write::forget_empty(self.0, run)
    }

    /// Begins repetition `number` of a run, at the time `started` (RFC 3339, UTC).
    pub fn begin_repetition(&self, run: RunId, number: u32, started: &str) -> Result<RepetitionId, Problem> {
        write::repetition(self.0, run, number, started)
    }

    /// Takes a repetition back of which nothing is kept.
    pub fn forget(&self, repetition: RepetitionId) -> Result<(), Problem> {
        write::forget(self.0, repetition)
    }

    /// Keeps these observations of a repetition and ends it. From now on it is whole.
    pub fn finish_repetition(
        &self,
        repetition: RepetitionId,
        seen: &[Observation],
        outcome: &Outcome,
    ) -> Result<(), Problem> {
        seen.iter().try_for_each(|observation| write::observation(self.0, repetition, observation))?;
        write::outcome(self.0, repetition, outcome)
    }
}

impl Notebook {
    fn new(path: &Path, connection: Connection) -> Self {
        Self { path: path.to_owned(), connection, budget: Budget::of_a_command() }
    }

    /// Opens the notebook for writing, makes it when absent, and marks as torn what a dead pagelab
    /// left without an end.
    ///
    /// # Errors
    /// When the file is no notebook, newer, damaged, or cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let open = || {
            let mut connection = file::open(path, file::Mode::Write)?;
            write::mark_torn(&mut connection, path)?;
            Ok(connection)
        };
        open().map(|connection| Self::new(path, connection)).map_err(|p: Problem| p.at(path))
    }

    /// Opens the notebook only to read.
    ///
    /// # Errors
    /// When there is none, or it is foreign, newer or damaged.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        file::open(path, file::Mode::Read)
            .map(|connection| Self::new(path, connection))
            .map_err(|p| p.at(path))
    }

    /// Makes several changes in one transaction; they are on the disk when this returns.
    ///
    /// # Errors
    /// When one of them fails; then none is made.
    pub fn together<T>(&mut self, changes: impl FnOnce(&Changes) -> Result<T, Problem>) -> Result<T, Error> {
        self.change(|c| changes(&Changes(c)))
    }

    /// Begins a run. An empty name is replaced by a free one such as `mapanon-3`.
    ///
    /// # Errors
    /// When the name is taken or impossible, or the file cannot be written.
    pub fn begin_run(&mut self, header: &RunHeader) -> Result<RunId, Error> {
        self.together(|changes| changes.begin_run(header))
    }

    /// Keeps a run of one repetition that was wholly performed: what was computed.
    ///
    /// # Errors
    /// When the name is taken or impossible, or the file cannot be written.
    pub fn keep(&mut self, header: &RunHeader, seen: &[Observation]) -> Result<RunId, Error> {
        self.together(|changes| {
            let run = changes.begin_run(header)?;
            let repetition = changes.begin_repetition(run, 1, &header.started)?;
            changes.finish_repetition(repetition, seen, &Outcome::Done)?;
            Ok(run)
        })
    }

    /// The first of `base-1`, `base-2` … that no run has.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn free_name(&self, base: &str) -> Result<String, Error> {
        write::free_name(&self.connection, base, 1).map_err(|e| Problem::from(e).at(&self.path))
    }

    /// Begins repetition `number` of a run, at the time `started` (RFC 3339, UTC).
    ///
    /// # Errors
    /// When the run has this repetition already, or the file cannot be written.
    pub fn begin_repetition(
        &mut self,
        run: RunId,
        number: u32,
        started: &str,
    ) -> Result<RepetitionId, Error> {
        self.together(|changes| changes.begin_repetition(run, number, started))
    }

    /// Keeps one observation; it is on the disk when this returns.
    ///
    /// # Errors
    /// When the file cannot be written ([`Problem::Full`]); nothing of the observation is kept
    /// then.
    pub fn record(&mut self, repetition: RepetitionId, observation: &Observation) -> Result<(), Error> {
        self.change(|c| write::observation(c, repetition, observation))
    }

    /// Keeps more rows of a table: below those of the repetition's table of that name, columns by
    /// their names. They are on the disk when this returns.
    ///
    /// # Errors
    /// When the file cannot be written; nothing of the rows is kept then.
    pub fn extend_table(&mut self, repetition: RepetitionId, rows: &Table) -> Result<(), Error> {
        self.change(|c| write::extend_table(c, repetition, rows))
    }

    /// Ends a repetition. From now on it is whole.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn finish_repetition(&mut self, repetition: RepetitionId, outcome: &Outcome) -> Result<(), Error> {
        self.together(|changes| changes.finish_repetition(repetition, &[], outcome))
    }

    /// The runs, the oldest first, without their observations; those that cannot be read are among
    /// them.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        read::entries(&self.connection).map_err(|p| p.at(&self.path))
    }

    /// The runs that can be read, the oldest first, without their observations.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self) -> Result<Vec<Summary>, Error> {
        let readable = |entry| match entry {
            Entry::Readable(summary) => Some(summary),
            Entry::Unreadable(_) => None,
        };
        Ok(self.entries()?.into_iter().filter_map(readable).collect())
    }

    /// The same as [`Self::entries`], when every figure of every run was read.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn checked_entries(&self) -> Result<Vec<Entry>, Error> {
        let checked = |entry| match entry {
            Entry::Readable(summary) => {
                match read::run(&self.connection, summary.id, Parts::All, &Budget::of_a_run()) {
                    Err(Problem::Unreadable { why, .. }) => Ok(Entry::Unreadable(summary.unreadable(why))),
                    Err(other) => Err(other.at(&self.path)),
                    Ok(_) => Ok(Entry::Readable(summary)),
                }
            }
            unreadable => Ok(unreadable),
        };
        self.entries()?.into_iter().map(checked).collect()
    }

    /// The run of this name, id, or `@N` (`@1` is the newest). A name goes before an id.
    ///
    /// # Errors
    /// When there is none.
    pub fn resolve(&self, text: &str) -> Result<RunId, Error> {
        read::resolve(&self.connection, text).map_err(|p| p.at(&self.path))
    }

    /// The environment's entry `name` of the newest repetition on `target` whose entry `given.0` is
    /// `given.1`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest(&self, target: &str, name: &str, given: (&str, &str)) -> Result<Option<String>, Error> {
        read::newest(&self.connection, target, name, given).map_err(|p| p.at(&self.path))
    }

    /// A run with everything that was seen. A repetition that a live pagelab is writing is left
    /// out: see [`Summary::running`].
    ///
    /// # Errors
    /// When there is no such run or the file cannot be read.
    pub fn load(&self, run: RunId) -> Result<Run, Error> {
        self.load_parts(run, Parts::All)
    }

    /// The same with the environment and the metrics alone.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_figures(&self, run: RunId) -> Result<Run, Error> {
        self.load_parts(run, Parts::Figures)
    }

    /// Like [`load`](Self::load), for a caller that drops each run before it loads the next one:
    /// the limit on memory applies to each run, not to all of them together.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_in_turn(&self, run: RunId) -> Result<Run, Error> {
        self.load_within(run, Parts::All, &Budget::of_a_run())
    }

    fn load_parts(&self, run: RunId, parts: Parts) -> Result<Run, Error> {
        self.load_within(run, parts, &self.budget)
    }

    fn load_within(&self, run: RunId, parts: Parts, budget: &Budget) -> Result<Run, Error> {
        let load = || {
            // One view of the file, whatever others write meanwhile.
            let view = self.connection.unchecked_transaction()?;
            read::run(&view, run, parts, budget)
        };
        load().map_err(|p: Problem| p.at(&self.path))
    }

    /// Takes the runs of another notebook over, all that can be read, one after the other and each
    /// wholly or not at all. A run that is here already only gets the repetitions that it lacks; so
    /// an import that broke off can be made again.
    ///
    /// # Errors
    /// When either file is refused or this one cannot be written.
    pub fn import(&mut self, from: &Path) -> Result<Imported, Error> {
        let other = file::open(from, file::Mode::Read).map_err(|p| p.at(from))?;
        let mut report = Imported::default();
        for (id, uuid) in import::runs(&other).map_err(|p| p.at(from))? {
            match read::run(&other, id, Parts::All, &Budget::of_a_run()) {
                Ok(run) => self.change(|c| import::store(c, &uuid, &run, &mut report))?,
                Err(Problem::Unreadable { run, why }) => report.unreadable.push((run, why)),
                Err(problem) => return Err(problem.at(from)),
            }
        }
        Ok(report)
    }

    /// One transaction, begun as a writer's so that two pagelabs wait for each other.
    fn change<T>(&mut self, change: impl FnOnce(&Connection) -> Result<T, Problem>) -> Result<T, Error> {
        let run = || {
            let transaction = file::begin(&mut self.connection, &self.path)?;
            let result = change(&transaction)?;
            transaction.commit()?;
            Ok(result)
        };
        run().map_err(|p: Problem| p.at(&self.path))
    }
}
