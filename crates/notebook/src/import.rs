//! Takes the runs of another notebook over. A run is known by its uuid, wherever it was copied.

use pagelab_experiment::{Observation, Observations, Run, RunHeader};
use rusqlite::Connection;

use crate::error::Problem;
use crate::{RepetitionId, RunId, read, write};

/// What an import did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// The new runs: (name there, name here).
    pub imported: Vec<(String, String)>,
    /// The number of runs that were here already.
    pub known: usize,
    /// The runs that cannot be read and were left out: (name there, why).
    pub unreadable: Vec<(String, String)>,
}

/// What another notebook holds.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Every readable run with its uuid.
    runs: Vec<(String, Run)>,
    /// The others: name, why.
    unreadable: Vec<(String, String)>,
}

/// Every run, as of one moment.
pub(crate) fn gather(other: &Connection) -> Result<Gathered, Problem> {
    let view = other.unchecked_transaction()?;
    let ids = read::rows(&view, "SELECT id, uuid FROM run ORDER BY id", [], |row| {
        Ok((RunId(row.get(0)?), row.get(1)?))
    })?;
    let mut gathered = Gathered::default();
    for (id, uuid) in ids {
        match read::run(&view, id) {
            Ok(run) => gathered.runs.push((uuid, run)),
            Err(Problem::Unreadable { run, why }) => gathered.unreadable.push((run, why)),
            Err(other) => return Err(other),
        }
    }
    Ok(gathered)
}

pub(crate) fn store(c: &Connection, gathered: &Gathered) -> Result<Imported, Problem> {
    let mut report = Imported { unreadable: gathered.unreadable.clone(), ..Imported::default() };
    for (uuid, run) in &gathered.runs {
        let id = if let Some(id) = write::known(c, uuid)? {
            report.known += 1;
            id
        } else {
            let (id, name) = new_run(c, uuid, &run.header)?;
            report.imported.push((run.header.name.clone(), name));
            id
        };
        let here = read::rows(c, "SELECT number FROM repetition WHERE run = ?1", [id.0], |row| row.get(0))?;
        for repetition in run.repetitions.iter().filter(|r| !here.contains(&r.number)) {
            let to = write::repetition(c, id, repetition.number, &repetition.started)?;
            observations(c, to, &repetition.observations)?;
            write::outcome(c, to, &repetition.outcome)?;
        }
    }
    Ok(report)
}

fn new_run(c: &Connection, uuid: &str, header: &RunHeader) -> Result<(RunId, String), Problem> {
    match write::run(c, header, Some(uuid)) {
        Err(Problem::NameTaken(name)) => {
            let name = write::free_name(c, &name, 2)?;
            let header = RunHeader { name: name.clone(), ..header.clone() };
            Ok((write::run(c, &header, Some(uuid))?, name))
        }
        result => Ok((result?, header.name.clone())),
    }
}

fn observations(c: &Connection, to: RepetitionId, seen: &Observations) -> Result<(), Problem> {
    let mut all = vec![Observation::Environment(seen.environment.clone())];
    all.extend(seen.metrics.iter().cloned().map(Observation::Metric));
    all.extend(seen.histograms.iter().cloned().map(Observation::Histogram));
    all.extend(seen.tables.iter().cloned().map(Observation::Table));
    all.extend(seen.pages.iter().cloned().map(Observation::Pages));
    all.push(Observation::Counters(seen.counters.clone()));
    all.extend(seen.notes.iter().cloned().map(Observation::Note));
    all.extend(seen.logs.iter().cloned().map(|(name, text)| Observation::Log(name, text)));
    all.iter().try_for_each(|o| write::observation(c, to, o))
}
