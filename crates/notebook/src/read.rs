//! Reads runs back.

use pagelab_experiment::observation::{
    Column, Counter, Histogram, Metric, Note, PageSet, PageSnapshot, Table, Values,
};
use pagelab_experiment::packed::unpack;
use pagelab_experiment::{Failure, FailureKind, Observations, Outcome, Repetition, Run, RunHeader};
use rusqlite::types::{FromSql, Type};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use crate::error::Problem;
use crate::{RunId, writer};

/// A run without its observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its number in this notebook.
    pub id: RunId,
    /// What identifies it.
    pub header: RunHeader,
    /// The repetitions begun.
    pub repetitions: u32,
    /// Those wholly performed.
    pub done: u32,
    /// Those that a live pagelab is writing.
    pub running: u32,
}

const HEADER: &str = "SELECT id, name, batch, parameters, target, setting, started, pagelab FROM run";

fn header(row: &Row<'_>) -> rusqlite::Result<(RunId, RunHeader)> {
    let target: String = row.get(4)?;
    let header = RunHeader {
        name: row.get(1)?,
        batch: row.get(2)?,
        experiment: json(row, 3)?,
        target: target.parse().map_err(|e| content(4, Type::Text, e))?,
        setting: json(row, 5)?,
        started: row.get(6)?,
        pagelab: row.get(7)?,
    };
    Ok((RunId(row.get(0)?), header))
}

pub(crate) fn list(c: &Connection) -> Result<Vec<Summary>, Problem> {
    let runs = rows(c, &format!("{HEADER} ORDER BY id"), [], header)?;
    let mut summaries = Vec::with_capacity(runs.len());
    for (id, header) in runs {
        let outcomes = rows(c, "SELECT outcome, writer FROM repetition WHERE run = ?1", [id.0], |row| {
            Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?))
        })?;
        let done = |o: &&(Option<String>, Option<String>)| o.0.as_deref() == Some("done");
        let running = |o: &&(Option<String>, Option<String>)| {
            o.0.is_none() && o.1.as_deref().is_some_and(writer::lives)
        };
        summaries.push(Summary {
            id,
            header,
            repetitions: outcomes.len() as u32,
            done: outcomes.iter().filter(done).count() as u32,
            running: outcomes.iter().filter(running).count() as u32,
        });
    }
    Ok(summaries)
}

pub(crate) fn resolve(c: &Connection, text: &str) -> Result<RunId, Problem> {
    let find = |sql: &str, value: &dyn rusqlite::ToSql| {
        c.query_row(sql, [value], |row| row.get(0).map(RunId)).optional()
    };
    let mut found = find("SELECT id FROM run WHERE name = ?1", &text)?;
    if found.is_none()
        && let Some(back) = text.strip_prefix('@').and_then(|n| n.parse::<u32>().ok())
    {
        if back >= 1 {
            found = find("SELECT id FROM run ORDER BY id DESC LIMIT 1 OFFSET ?1", &(back - 1))?;
        }
    } else if found.is_none()
        && let Ok(id) = text.parse::<i64>()
    {
        found = find("SELECT id FROM run WHERE id = ?1", &id)?;
    }
    found.ok_or_else(|| Problem::NoRun(text.to_owned()))
}

pub(crate) fn run(c: &Connection, id: RunId) -> Result<Run, Problem> {
    let (_, header) = c
        .query_row(&format!("{HEADER} WHERE id = ?1"), [id.0], header)
        .optional()?
        .ok_or_else(|| Problem::NoRun(id.to_string()))?;
    let mut repetitions = Vec::new();
    for (repetition, number, started, outcome) in rows(
        c,
        "SELECT id, number, started, outcome, reason, writer, failure FROM repetition WHERE run = ?1 ORDER BY number",
        [id.0],
        |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, outcome(row)?)),
    )? {
        if let Some(outcome) = outcome {
            let observations = observations(c, repetition)?;
            repetitions.push(Repetition { number, started, outcome, observations });
        }
    }
    Ok(Run { id: id.0, header, repetitions })
}

/// `None` while a live pagelab writes it.
fn outcome(row: &Row<'_>) -> rusqlite::Result<Option<Outcome>> {
    let word: Option<String> = row.get(3)?;
    Ok(Some(match word.as_deref() {
        Some("done") => Outcome::Done,
        Some("interrupted") => Outcome::Interrupted,
        Some("failed") => Outcome::Failed(failure(row)?),
        Some(_) => Outcome::Torn,
        None if row.get::<_, Option<String>>(5)?.as_deref().is_some_and(writer::lives) => return Ok(None),
        None => Outcome::Torn,
    }))
}

/// Why it failed; in a notebook of before failures had kinds, only the text.
fn failure(row: &Row<'_>) -> rusqlite::Result<Failure> {
    if row.get_ref(6)?.data_type() != Type::Null {
        return json(row, 6);
    }
    let reason: Option<String> = row.get(4)?;
    Ok(Failure::new(FailureKind::Unclassified, reason.unwrap_or_default()))
}

fn observations(c: &Connection, id: i64) -> Result<Observations, Problem> {
    let by = |table: &str, columns: &str| format!("SELECT {columns} FROM {table} WHERE repetition = ?1");
    let environment = rows(c, &by("environment", "name, value"), [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Observations {
        environment: environment.into_iter().collect(),
        metrics: rows(c, &(by("metric", "name, unit, better, value") + " ORDER BY id"), [id], |row| {
            Ok(Metric { name: row.get(0)?, unit: word(row, 1)?, better: word(row, 2)?, value: row.get(3)? })
        })?,
        histograms: histograms(c, &(by("histogram", "id, name, unit, min, max, sum") + " ORDER BY id"), id)?,
        tables: tables(c, &(by("series", "id, name") + " ORDER BY id"), id)?,
        pages: rows(
            c,
            &(by("page_snapshot", "reference, pages, present, swapped, count, last") + " ORDER BY id"),
            [id],
            |row| {
                Ok(PageSnapshot {
                    reference: whole(row, 0)?,
                    pages: row.get(1)?,
                    present: PageSet::from_runs(packed(row, 2)?),
                    swapped: PageSet::from_runs(packed(row, 3)?),
                    count: packed(row, 4)?,
                    last: packed(row, 5)?,
                })
            },
        )?,
        counters: rows(c, &(by("counter", "source, name, before, after") + " ORDER BY id"), [id], |row| {
            Ok(Counter { source: row.get(0)?, name: row.get(1)?, before: row.get(2)?, after: row.get(3)? })
        })?,
        notes: rows(c, &(by("note", "level, text") + " ORDER BY id"), [id], |row| {
            Ok(Note { level: word(row, 0)?, text: row.get(1)? })
        })?,
        logs: rows(c, &(by("log", "name, text") + " ORDER BY id"), [id], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?,
    })
}

fn histograms(c: &Connection, sql: &str, repetition: i64) -> Result<Vec<Histogram>, Problem> {
    let heads = rows(c, sql, [repetition], |row| {
        let histogram = Histogram {
            name: row.get(1)?,
            unit: word(row, 2)?,
            buckets: Vec::new(),
            min: whole(row, 3)?,
            max: whole(row, 4)?,
            sum: whole(row, 5)?,
        };
        Ok((row.get::<_, i64>(0)?, histogram))
    })?;
    heads
        .into_iter()
        .map(|(id, histogram)| {
            let buckets = rows(
                c,
                "SELECT value, count FROM bucket WHERE histogram = ?1 ORDER BY value",
                [id],
                |row| Ok((whole(row, 0)?, whole(row, 1)?)),
            )?;
            Ok(Histogram { buckets, ..histogram })
        })
        .collect()
}

fn tables(c: &Connection, sql: &str, repetition: i64) -> Result<Vec<Table>, Problem> {
    let heads = rows(c, sql, [repetition], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    heads.into_iter().map(|(id, name)| Ok(Table { name, columns: columns(c, id)? })).collect()
}

fn columns(c: &Connection, series: i64) -> Result<Vec<Column>, Problem> {
    let heads = rows(
        c,
        "SELECT id, name, unit, type FROM series_column WHERE series = ?1 ORDER BY id",
        [series],
        |row| {
            let unit = if row.get_ref(2)?.data_type() == Type::Null { None } else { Some(word(row, 2)?) };
            Ok((row.get::<_, i64>(0)?, row.get(1)?, unit, row.get::<_, String>(3)? == "number"))
        },
    )?;
    heads
        .into_iter()
        .map(|(id, name, unit, number)| {
            let values = if number {
                Values::Number(cells(c, "number", id)?)
            } else {
                Values::Text(cells(c, "text", id)?)
            };
            Ok(Column { name, unit, values })
        })
        .collect()
}

fn cells<T: FromSql>(c: &Connection, kind: &str, column: i64) -> Result<Vec<T>, Problem> {
    rows(c, &format!("SELECT {kind} FROM cell WHERE series_column = ?1 ORDER BY row"), [column], |row| {
        row.get(0)
    })
}

pub(crate) fn rows<T>(
    c: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Problem> {
    Ok(c.prepare_cached(sql)?.query_map(parameters, read)?.collect::<Result<_, _>>()?)
}

/// A number that is never negative.
fn whole(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|e| content(at, Type::Integer, e))
}

fn word<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_value(text.into()).map_err(|e| content(at, Type::Text, e))
}

fn json<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_str(&text).map_err(|e| content(at, Type::Text, e))
}

fn packed(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<u32>> {
    let bytes: Vec<u8> = row.get(at)?;
    unpack(&bytes).map_err(|e| content(at, Type::Blob, e))
}

/// A cell whose content cannot be understood.
fn content(at: usize, kind: Type, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(at, kind, Box::new(error))
}
