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

/// Every run of another notebook with its uuid.
pub(crate) fn runs(other: &Connection) -> Result<Vec<(RunId, String)>, Problem> {
    Ok(read::rows(other, "SELECT id, uuid FROM run ORDER BY id", [], |row| {
        Ok((RunId(row.get(0)?), row.get(1)?))
    })?)
}

/// Keeps one of them, or what is here not yet of it.
pub(crate) fn store(c: &Connection, uuid: &str, run: &Run, report: &mut Imported) -> Result<(), Problem> {
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
    Ok(())
}

fn new_run(c: &Connection, uuid: &str, header: &RunHeader) -> Result<(RunId, String), Problem> {
    let header = RunHeader { name: write::possible_name(&header.name), ..header.clone() };
    match write::run(c, &header, Some(uuid)) {
        Err(Problem::NameTaken(name)) => {
            let name = write::free_name(c, &name, 2)?;
            let header = RunHeader { name: name.clone(), ..header };
            Ok((write::run(c, &header, Some(uuid))?, name))
        }
        result => Ok((result?, header.name)),
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
