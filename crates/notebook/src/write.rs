//! Writes headers and observations as rows. Every function is called within a transaction.

use std::path::Path;

use pagelab_experiment::observation::{Column, Histogram, PageSnapshot, Table, Values};
use pagelab_experiment::packed::pack;
use pagelab_experiment::{Failure, Observation, Outcome, RunHeader};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use crate::error::Problem;
use crate::{RepetitionId, RunId, file, writer};

/// A run; `uuid` is given when it was made in another notebook.
pub(crate) fn run(c: &Connection, header: &RunHeader, uuid: Option<&str>) -> Result<RunId, Problem> {
    let name = if header.name.is_empty() {
        free_name(c, header.experiment.name(), 1)?
    } else {
        check_name(c, &header.name)?;
        header.name.clone()
    };
    c.prepare_cached(
        "INSERT INTO run (uuid, name, batch, experiment, parameters, target, setting, started, pagelab, deterministic)
         VALUES (coalesce(?1, lower(hex(randomblob(16)))), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
    )?
    .execute(params![
        uuid,
        name,
        header.batch,
        header.experiment.name(),
        json(&header.experiment),
        header.target.to_string(),
        json(&header.setting),
        header.started,
        header.pagelab,
        header.deterministic,
    ])?;
    let id = c.last_insert_rowid();
    let mut insert =
        c.prepare_cached("INSERT INTO condition (run, name, value, origin) VALUES (?1, ?2, ?3, ?4)")?;
    for condition in &header.conditions {
        insert.execute(params![id, condition.name, condition.value, word(&condition.origin)])?;
    }
    Ok(RunId(id))
}

/// Removes a run that has no repetition; whether it had none.
pub(crate) fn forget_empty(c: &Connection, run: RunId) -> Result<bool, Problem> {
    c.execute(
        "DELETE FROM condition WHERE run = ?1 AND NOT EXISTS (SELECT 1 FROM repetition WHERE run = ?1)",
        [run.0],
    )?;
    let removed = c.execute(
        "DELETE FROM run WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM repetition WHERE run = ?1)",
        [run.0],
    )?;
    Ok(removed > 0)
}

/// The most bytes of a run's name.
const MAX_NAME: usize = 200;

/// A name that may be any text, made one that a run can have.
pub(crate) fn possible_name(name: &str) -> String {
    let plain = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut possible: String = name.chars().map(plain).collect();
    // Room for the number that makes it another than one that is taken.
    possible.truncate(possible.floor_char_boundary(MAX_NAME - 20));
    if is_possible(&possible) { possible } else { format!("run-{possible}") }
}

fn is_possible(name: &str) -> bool {
    let digits = name.bytes().all(|b| b.is_ascii_digit());
    !name.starts_with('@') && !digits && name.len() <= MAX_NAME && !name.contains(char::is_control)
}

fn check_name(c: &Connection, name: &str) -> Result<(), Problem> {
    if !is_possible(name) {
        return Err(Problem::NameImpossible(name.to_owned()));
    }
    if taken(c, name)? { Err(Problem::NameTaken(name.to_owned())) } else { Ok(()) }
}

fn taken(c: &Connection, name: &str) -> rusqlite::Result<bool> {
    c.prepare_cached("SELECT EXISTS (SELECT 1 FROM run WHERE name = ?1)")?.query_row([name], |row| row.get(0))
}

/// The first free name of `base-N` from `N = first`.
pub(crate) fn free_name(c: &Connection, base: &str, first: u64) -> rusqlite::Result<String> {
    let mut number = first;
    loop {
        let name = format!("{base}-{number}");
        if !taken(c, &name)? {
            return Ok(name);
        }
        number += 1;
    }
}

pub(crate) fn repetition(
    c: &Connection,
    run: RunId,
    number: u32,
    started: &str,
) -> Result<RepetitionId, Problem> {
    c.prepare_cached("INSERT INTO repetition (run, number, started, writer) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![run.0, number, started, writer::this_process()])?;
    Ok(RepetitionId(c.last_insert_rowid()))
}

/// Removes a repetition of which nothing is kept.
pub(crate) fn forget(c: &Connection, RepetitionId(repetition): RepetitionId) -> Result<(), Problem> {
    c.execute("DELETE FROM repetition WHERE id = ?1", [repetition])?;
    Ok(())
}

pub(crate) fn outcome(c: &Connection, repetition: RepetitionId, outcome: &Outcome) -> Result<(), Problem> {
    let (word, failure) = match outcome {
        Outcome::Done => ("done", None),
        Outcome::Interrupted => ("interrupted", None),
        Outcome::Failed(failure) => ("failed", Some(failure)),
        Outcome::Torn => ("torn", None),
    };
    c.prepare_cached(
        "UPDATE repetition SET outcome = ?2, reason = ?3, failure = ?4, writer = NULL WHERE id = ?1",
    )?
    .execute(params![repetition.0, word, failure.map(Failure::full), failure.map(json)])?;
    Ok(())
}

/// Marks the repetitions that have no end and whose writer is dead.
pub(crate) fn mark_torn(c: &mut Connection, path: &Path) -> Result<(), Problem> {
    let dead = |c: &Connection| -> rusqlite::Result<Vec<i64>> {
        let mut open = c.prepare("SELECT id, writer FROM repetition WHERE outcome IS NULL")?;
        let open = open.query_map([], |row| Ok((row.get(0)?, row.get::<_, Option<String>>(1)?)))?;
        let open: Vec<(i64, Option<String>)> = open.collect::<Result<_, _>>()?;
        Ok(open
            .into_iter()
            .filter(|(_, w)| !w.as_deref().is_some_and(writer::lives))
            .map(|(id, _)| id)
            .collect())
    };
    if dead(c)?.is_empty() {
        return Ok(());
    }
    let transaction = file::begin(c, path)?;
    for id in dead(&transaction)? {
        outcome(&transaction, RepetitionId(id), &Outcome::Torn)?;
    }
    Ok(transaction.commit()?)
}

pub(crate) fn observation(
    c: &Connection,
    RepetitionId(repetition): RepetitionId,
    observation: &Observation,
) -> Result<(), Problem> {
    match observation {
        Observation::Environment(entries) => {
            let mut insert = c.prepare_cached("INSERT OR REPLACE INTO environment VALUES (?1, ?2, ?3)")?;
            for (name, value) in entries {
                insert.execute(params![repetition, name, value])?;
            }
        }
        Observation::Metric(m) => {
            c.prepare_cached(
                "INSERT INTO metric (repetition, name, unit, better, value) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![repetition, m.name, word(&m.unit), word(&m.better), m.value])?;
        }
        Observation::Histogram(h) => histogram(c, repetition, h)?,
        Observation::Table(t) => table(c, repetition, t)?,
        Observation::Pages(p) => pages(c, repetition, p)?,
        Observation::Counters(counters) => {
            let mut insert = c.prepare_cached(
                "INSERT INTO counter (repetition, source, name, before, after) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?;
            for n in counters {
                insert.execute(params![repetition, n.source, n.name, n.before, n.after])?;
            }
        }
        Observation::Note(n) => {
            c.prepare_cached("INSERT INTO note (repetition, level, text) VALUES (?1, ?2, ?3)")?
                .execute(params![repetition, word(&n.level), n.text])?;
        }
        Observation::Log(name, text) => {
            c.prepare_cached("INSERT INTO log (repetition, name, text) VALUES (?1, ?2, ?3)")?
                .execute(params![repetition, name, text])?;
        }
    }
    Ok(())
}

fn histogram(c: &Connection, repetition: i64, h: &Histogram) -> Result<(), Problem> {
    c.prepare_cached(
        "INSERT INTO histogram (repetition, name, unit, min, max, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![repetition, h.name, word(&h.unit), whole(h.min)?, whole(h.max)?, whole(h.sum)?])?;
    let id = c.last_insert_rowid();
    let mut insert = c.prepare_cached("INSERT INTO bucket VALUES (?1, ?2, ?3)")?;
    for &(value, count) in &h.buckets {
        insert.execute(params![id, whole(value)?, whole(count)?])?;
    }
    Ok(())
}

fn table(c: &Connection, repetition: i64, t: &Table) -> Result<(), Problem> {
    c.prepare_cached("INSERT INTO series (repetition, name) VALUES (?1, ?2)")?
        .execute(params![repetition, t.name])?;
    let series = c.last_insert_rowid();
    for column in &t.columns {
        let id = new_column(c, series, column)?;
        cells(c, id, 0, &column.values)?;
    }
    Ok(())
}

/// Puts the rows of a table below those of the repetition's table of that name, and its columns under
/// those of their names; where either has no figure there is none. Begins the table where it is absent.
pub(crate) fn extend_table(
    c: &Connection,
    RepetitionId(repetition): RepetitionId,
    t: &Table,
) -> Result<(), Problem> {
    let known = c
        .prepare_cached("SELECT id FROM series WHERE repetition = ?1 AND name = ?2")?
        .query_row(params![repetition, t.name], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(series) = known else { return table(c, repetition, t) };
    let mut statement =
        c.prepare_cached("SELECT id, name, type FROM series_column WHERE series = ?1 ORDER BY id")?;
    let known: Vec<(i64, String, String)> = statement
        .query_map([series], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let last = c
        .prepare_cached("SELECT row FROM cell WHERE series_column = ?1 ORDER BY row DESC LIMIT 1")?
        .query_row([known.first().map(|(id, ..)| *id)], |row| row.get::<_, i64>(0))
        .optional()?;
    let first = last.map_or(0, |row| row + 1);
    let rows = t.columns.first().map_or(0, |column| match &column.values {
        Values::Number(numbers) => numbers.len(),
        Values::Text(texts) => texts.len(),
    });
    let empty = |kind: &str, rows: usize| match kind {
        "number" => Values::Number(vec![None; rows]),
        _ => Values::Text(vec![String::new(); rows]),
    };
    for (id, name, kind) in &known {
        let more = t.columns.iter().find(|c| c.name == *name && type_of(&c.values) == kind);
        cells(c, *id, first, more.map_or(&empty(kind, rows), |column| &column.values))?;
    }
    for column in &t.columns {
        let kind = type_of(&column.values);
        if !known.iter().any(|(_, name, k)| *name == column.name && k == kind) {
            let id = new_column(c, series, column)?;
            cells(c, id, 0, &empty(kind, usize::try_from(first).unwrap_or(0)))?;
            cells(c, id, first, &column.values)?;
        }
    }
    Ok(())
}

fn type_of(values: &Values) -> &'static str {
    match values {
        Values::Number(_) => "number",
        Values::Text(_) => "text",
    }
}

fn new_column(c: &Connection, series: i64, column: &Column) -> Result<i64, Problem> {
    c.prepare_cached("INSERT INTO series_column (series, name, unit, type) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![series, column.name, column.unit.as_ref().map(word), type_of(&column.values)])?;
    Ok(c.last_insert_rowid())
}

/// Writes cells from the row `first` on.
fn cells(c: &Connection, column: i64, first: i64, values: &Values) -> Result<(), Problem> {
    let mut cell = c.prepare_cached("INSERT INTO cell VALUES (?1, ?2, ?3, ?4)")?;
    match values {
        Values::Number(numbers) => {
            for (row, number) in (first..).zip(numbers) {
                cell.execute(params![column, row, number, None::<&str>])?;
            }
        }
        Values::Text(texts) => {
            for (row, text) in (first..).zip(texts) {
                cell.execute(params![column, row, None::<f64>, text])?;
            }
        }
    }
    Ok(())
}

fn pages(c: &Connection, repetition: i64, p: &PageSnapshot) -> Result<(), Problem> {
    c.prepare_cached(
        "INSERT INTO page_snapshot (repetition, reference, pages, present, swapped, count, last)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        repetition,
        whole(p.reference)?,
        p.pages,
        pack(p.present.runs()),
        pack(p.swapped.runs()),
        pack(&p.count),
        pack(&p.last),
    ])?;
    Ok(())
}

/// The run of this uuid.
pub(crate) fn known(c: &Connection, uuid: &str) -> rusqlite::Result<Option<RunId>> {
    c.query_row("SELECT id FROM run WHERE uuid = ?1", [uuid], |row| row.get(0).map(RunId)).optional()
}

fn whole(number: u64) -> Result<i64, Problem> {
    i64::try_from(number).map_err(|_| Problem::TooLarge(number))
}

/// The word that stands for a unit, a direction, a level: the same as in JSON.
pub(crate) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => unreachable!("a plain enum is a JSON string, not {other:?}"),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("headers hold only texts and numbers")
}
