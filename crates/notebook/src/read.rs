//! Reads runs back.

use pagelab_experiment::declaration::closest;
use pagelab_experiment::metrics::current;
use pagelab_experiment::observation::{
    Better, Column, Counter, Histogram, Level, Metric, Note, PageSet, PageSnapshot, Table, Unit, Values,
};
use pagelab_experiment::packed::unpack_at_most;
use pagelab_experiment::{
    Condition, Failure, FailureKind, Observations, Outcome, Repetition, Run, RunHeader,
};
use rusqlite::types::{FromSql, Type, ValueRef};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::budget::Budget;
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

impl Summary {
    /// The same run, found to be unreadable.
    pub(crate) fn unreadable(self, why: String) -> Unreadable {
        let RunHeader { name, started, experiment, .. } = self.header;
        Unreadable { id: self.id, name, started, experiment: experiment.name().to_owned(), why }
    }
}

/// A run that this pagelab does not understand: a newer one made it, or something spoiled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// Its number in this notebook.
    pub id: RunId,
    /// Its name.
    pub name: String,
    /// When it began.
    pub started: String,
    /// The name of its experiment.
    pub experiment: String,
    /// What cannot be understood.
    pub why: String,
}

/// A run in the list.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "nearly all are readable")]
pub enum Entry {
    /// One that can be read.
    Readable(Summary),
    /// One that cannot.
    Unreadable(Unreadable),
}

impl Entry {
    /// The run's number in this notebook.
    pub fn id(&self) -> RunId {
        match self {
            Self::Readable(run) => run.id,
            Self::Unreadable(run) => run.id,
        }
    }

    /// The run's name.
    pub fn name(&self) -> &str {
        match self {
            Self::Readable(run) => &run.header.name,
            Self::Unreadable(run) => &run.name,
        }
    }
}

const HEADER: &str = "SELECT id, name, batch, parameters, target, setting, started, pagelab, experiment, deterministic FROM run";

fn header(c: &Connection, row: &Row<'_>) -> rusqlite::Result<RunHeader> {
    let target: String = row.get(4)?;
    Ok(RunHeader {
        name: row.get(1)?,
        batch: row.get(2)?,
        experiment: json(row, 3)?,
        target: target.parse().map_err(|e| content(row, 4, e))?,
        setting: json(row, 5)?,
        conditions: conditions(c, RunId(row.get(0)?))?,
        deterministic: row.get(9)?,
        started: row.get(6)?,
        pagelab: row.get(7)?,
    })
}

fn conditions(c: &Connection, run: RunId) -> rusqlite::Result<Vec<Condition>> {
    rows(c, "SELECT name, value, origin FROM condition WHERE run = ?1 ORDER BY rowid", [run.0], |row| {
        Ok(Condition::new(row.get::<_, String>(0)?, row.get::<_, String>(1)?, word(row, 2)?))
    })
}

/// Every run, the oldest first, as far as it can be told without reading its figures.
pub(crate) fn entries(c: &Connection) -> Result<Vec<Entry>, Problem> {
    Ok(rows(c, &format!("{HEADER} ORDER BY id"), [], |row| entry(c, row))?)
}

fn entry(c: &Connection, row: &Row<'_>) -> rusqlite::Result<Entry> {
    let id = RunId(row.get(0)?);
    match header(c, row).and_then(|header| summary(c, id, header)) {
        Ok(summary) => Ok(Entry::Readable(summary)),
        Err(error) => {
            let why = why(&error, &plain(row, 7)).ok_or(error)?;
            let [name, started, experiment] = [1, 6, 8].map(|at| plain(row, at));
            Ok(Entry::Unreadable(Unreadable { id, name, started, experiment, why }))
        }
    }
}

fn summary(c: &Connection, id: RunId, header: RunHeader) -> rusqlite::Result<Summary> {
    let outcomes = rows(c, "SELECT outcome, writer FROM repetition WHERE run = ?1", [id.0], |row| {
        Ok((row.get::<_, Option<String>>(0)?, row.get::<_, Option<String>>(1)?))
    })?;
    let of_run = |columns: &str, table: &str| {
        format!(
            "SELECT DISTINCT {columns} FROM {table} JOIN repetition ON repetition = repetition.id WHERE run = ?1"
        )
    };
    rows(c, &of_run("unit, better", "metric"), [id.0], |row| Ok((unit(row, 0)?, word::<Better>(row, 1)?)))?;
    rows(c, &of_run("unit", "histogram"), [id.0], |row| unit(row, 0))?;
    rows(c, &of_run("level", "note"), [id.0], |row| word::<Level>(row, 0))?;
    let done = |o: &&(Option<String>, Option<String>)| o.0.as_deref() == Some("done");
    let running =
        |o: &&(Option<String>, Option<String>)| o.0.is_none() && o.1.as_deref().is_some_and(writer::lives);
    Ok(Summary {
        id,
        header,
        repetitions: outcomes.len() as u32,
        done: outcomes.iter().filter(done).count() as u32,
        running: outcomes.iter().filter(running).count() as u32,
    })
}

pub(crate) fn newest(
    c: &Connection,
    target: &str,
    name: &str,
    given: (&str, &str),
) -> Result<Option<String>, Problem> {
    let found = c.query_row(
        "SELECT wanted.value FROM run JOIN repetition ON repetition.run = run.id
         JOIN environment wanted ON wanted.repetition = repetition.id AND wanted.name = ?2
         JOIN environment given ON given.repetition = repetition.id AND given.name = ?3 AND given.value = ?4
         WHERE run.target = ?1 ORDER BY repetition.id DESC LIMIT 1",
        [target, name, given.0, given.1],
        |row| row.get(0),
    );
    Ok(found.optional()?)
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
    match found {
        Some(run) => Ok(run),
        None => {
            let names: Vec<String> = rows(c, "SELECT name FROM run", [], |row| row.get(0))?;
            let meant = closest(text, names.iter().map(String::as_str)).map(str::to_owned);
            Err(Problem::NoRun { name: text.to_owned(), meant })
        }
    }
}

/// How much of a run is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// The environment and the metrics.
    Figures,
}

/// A run, whose arrays may take what `budget` has left.
pub(crate) fn run(c: &Connection, id: RunId, parts: Parts, budget: &Budget) -> Result<Run, Problem> {
    let named = c
        .query_row("SELECT name, pagelab FROM run WHERE id = ?1", [id.0], |row| {
            Ok((plain(row, 0), plain(row, 1)))
        })
        .optional()?;
    let (name, pagelab) = named.ok_or_else(|| Problem::NoRun { name: id.to_string(), meant: None })?;
    let part = budget.for_run();
    let run = whole_run(c, id, parts, &part).map_err(|error| match why(&error, &pagelab) {
        Some(why) => Problem::Unreadable { run: name, why },
        None => error.into(),
    })?;
    budget.settle(&part);
    Ok(run)
}

fn whole_run(c: &Connection, id: RunId, parts: Parts, budget: &Budget) -> rusqlite::Result<Run> {
    let header = c.query_row(&format!("{HEADER} WHERE id = ?1"), [id.0], |row| header(c, row))?;
    let mut repetitions = Vec::new();
    for (repetition, number, started, outcome) in rows(
        c,
        "SELECT id, number, started, outcome, reason, writer, failure FROM repetition WHERE run = ?1 ORDER BY number",
        [id.0],
        |row| Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, outcome(row)?)),
    )? {
        if let Some(outcome) = outcome {
            let observations = observations(c, repetition, parts, budget)?;
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

fn observations(c: &Connection, id: i64, parts: Parts, budget: &Budget) -> rusqlite::Result<Observations> {
    let by = |table: &str, columns: &str| format!("SELECT {columns} FROM {table} WHERE repetition = ?1");
    let environment = rows(c, &by("environment", "name, value"), [id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let figures = Observations {
        environment: environment.into_iter().collect(),
        metrics: rows(c, &(by("metric", "name, unit, better, value") + " ORDER BY id"), [id], |row| {
            let name = current(&row.get::<_, String>(0)?).to_owned();
            Ok(Metric { name, unit: unit(row, 1)?, better: word(row, 2)?, value: row.get(3)? })
        })?,
        ..Observations::default()
    };
    if parts == Parts::Figures {
        return Ok(figures);
    }
    Ok(Observations {
        histograms: histograms(c, &(by("histogram", "id, name, unit, min, max, sum") + " ORDER BY id"), id)?,
        tables: tables(c, &(by("series", "id, name") + " ORDER BY id"), id)?,
        pages: rows(
            c,
            &(by("page_snapshot", "reference, pages, present, swapped, count, last") + " ORDER BY id"),
            [id],
            |row| {
                let packed = |at: usize| packed(row, at, budget);
                Ok(PageSnapshot {
                    reference: whole(row, 0)?,
                    pages: row.get(1)?,
                    present: PageSet::from_runs(packed(2)?),
                    swapped: PageSet::from_runs(packed(3)?),
                    count: packed(4)?,
                    last: packed(5)?,
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
        ..figures
    })
}

fn histograms(c: &Connection, sql: &str, repetition: i64) -> rusqlite::Result<Vec<Histogram>> {
    let heads = rows(c, sql, [repetition], |row| {
        let histogram = Histogram {
            name: row.get(1)?,
            unit: unit(row, 2)?,
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

fn tables(c: &Connection, sql: &str, repetition: i64) -> rusqlite::Result<Vec<Table>> {
    let heads = rows(c, sql, [repetition], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    heads.into_iter().map(|(id, name)| Ok(Table { name, columns: columns(c, id)? })).collect()
}

fn columns(c: &Connection, series: i64) -> rusqlite::Result<Vec<Column>> {
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

fn cells<T: FromSql>(c: &Connection, kind: &str, column: i64) -> rusqlite::Result<Vec<T>> {
    rows(c, &format!("SELECT {kind} FROM cell WHERE series_column = ?1 ORDER BY row"), [column], |row| {
        row.get(0)
    })
}

pub(crate) fn rows<T>(
    c: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    c.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}

/// A number that is never negative.
fn whole(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|e| content(row, at, e))
}

fn unit(row: &Row<'_>, at: usize) -> rusqlite::Result<Unit> {
    word(row, at)
}

fn word<T: DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    serde_json::from_value(text.into()).map_err(|e| content(row, at, e))
}

/// A value whose every part is understood: a parameter that this program does not know could have
/// made the run another than the one that it would be taken for.
fn json<T: DeserializeOwned + Serialize>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    let text: String = row.get(at)?;
    let read = || {
        let stored: Value = serde_json::from_str(&text)?;
        let value = T::deserialize(&stored)?;
        match unknown(&stored, &serde_json::to_value(&value)?) {
            Some(key) => Err(serde::de::Error::custom(format_args!("'{key}' is unknown"))),
            None => Ok(value),
        }
    };
    read().map_err(|e: serde_json::Error| content(row, at, e))
}

/// Parameters of older notebooks and their names since, which read both.
const RENAMED: [(&str, &str); 2] = [("most", "max_memory"), ("patience", "timeout")];

/// The first key of `stored` that `understood` lacks.
fn unknown<'a>(stored: &'a Value, understood: &Value) -> Option<&'a str> {
    let (Value::Object(stored), Value::Object(understood)) = (stored, understood) else { return None };
    let now = |key: &str| RENAMED.iter().find(|(old, _)| *old == key).map(|(_, new)| *new);
    stored.iter().find_map(|(key, value)| match understood.get(now(key).unwrap_or(key)) {
        Some(understood) => unknown(value, understood),
        None => (!value.is_null()).then_some(key),
    })
}

fn packed(row: &Row<'_>, at: usize, budget: &Budget) -> rusqlite::Result<Vec<u32>> {
    let bytes = row.get_ref(at)?.as_blob()?;
    let numbers = unpack_at_most(bytes, budget.numbers()).map_err(|e| content(row, at, e))?;
    budget.take(numbers.len());
    Ok(numbers)
}

/// A text as far as it is one.
fn plain(row: &Row<'_>, at: usize) -> String {
    match row.get_ref(at) {
        Ok(ValueRef::Text(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => "?".to_owned(),
    }
}

/// A cell whose content cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{column}: {problem}")]
struct Content {
    column: String,
    problem: String,
}

fn content(row: &Row<'_>, at: usize, problem: impl std::error::Error) -> rusqlite::Error {
    let column = row.as_ref().column_name(at).unwrap_or_default().to_owned();
    let kind = row.get_ref(at).map_or(Type::Null, |value| value.data_type());
    let error = Content { column, problem: problem.to_string() };
    rusqlite::Error::FromSqlConversionFailure(at, kind, Box::new(error))
}

/// What is wrong with a run's content, where `error` is of that kind and not the file's.
fn why(error: &rusqlite::Error, pagelab: &str) -> Option<String> {
    use rusqlite::Error as E;
    let what = match error {
        E::FromSqlConversionFailure(_, _, inner) => inner.to_string(),
        E::InvalidColumnType(_, name, kind) => format!("{name}: holds a value of type {kind}"),
        E::IntegralValueOutOfRange(_, number) => format!("{number} is out of range"),
        E::Utf8Error(..) => "a text is not UTF-8".to_owned(),
        _ => return None,
    };
    let this = env!("CARGO_PKG_VERSION");
    let maker =
        if pagelab == this { String::new() } else { format!(" (made by pagelab {pagelab}; this is {this})") };
    Some(what + &maker)
}
