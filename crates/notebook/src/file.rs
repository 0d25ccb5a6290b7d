//! Opens the file: refuses what is no notebook before SQLite sees it, makes or migrates the schema.
//!
//! The journal is SQLite's rollback journal with `synchronous = FULL`. A killed writer leaves a
//! journal beside the file, and the next connection rolls the torn transaction back. Between
//! transactions the notebook is one file, so it can be copied and sent; with a write-ahead log,
//! recent runs would be in a second file that people forget.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::Problem;

/// Stands in the file's header, so that `file` and pagelab know a notebook: "PgLb".
pub(crate) const APPLICATION_ID: i32 = 0x5067_4c62;

/// Entry `n` leads from version `n` to `n + 1`; version 0 is an empty file.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql"), include_str!("schema_2.sql")];

/// The version that this program writes.
pub(crate) const VERSION: i32 = MIGRATIONS.len() as i32;

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// The tables of the last version.
const TABLES: &[&str] = &[
    "run",
    "condition",
    "repetition",
    "environment",
    "metric",
    "histogram",
    "bucket",
    "series",
    "series_column",
    "cell",
    "page_snapshot",
    "counter",
    "note",
    "log",
];

/// What the caller will do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Write; the file is made when absent or empty.
    Write,
    /// Only read; the file must be there. (A killed writer's journal is still rolled back.)
    Read,
}

pub(crate) fn open(path: &Path, mode: Mode) -> Result<Connection, Problem> {
    let there = check(path)?;
    if !there && mode == Mode::Read {
        return Err(Problem::Missing);
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if mode == Mode::Write {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    // Absolute, so that no name is special to SQLite (":memory:").
    let mut connection = Connection::open_with_flags(std::path::absolute(path)?, flags)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.set_prepared_statement_cache_capacity(64);
    let version = version(&connection)?;
    // SQLite itself finds missing pages, but takes a torn last page for zeros.
    let torn: u64 = fs::metadata(path)?.len() % 512;
    if torn != 0 {
        return Err(Problem::Damaged("its last page is torn".to_owned()));
    }
    if version > VERSION {
        return Err(Problem::Newer { found: version, known: VERSION });
    }
    if version < VERSION {
        if version == 0 && mode == Mode::Read {
            // A writer was killed before it made the tables: nothing is in it, and nothing is written.
            connection = Connection::open_in_memory()?;
        }
        migrate(&mut connection)?;
    }
    for &table in TABLES {
        let found: bool = connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)",
            [table],
            |row| row.get(0),
        )?;
        if !found {
            return Err(Problem::Damaged(format!("the table '{table}' is missing")));
        }
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    if mode == Mode::Read {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(connection)
}

/// Whether something is there, by its first bytes alone; refuses everything but a notebook and an
/// empty file.
fn check(path: &Path) -> Result<bool, Problem> {
    let foreign = |what: &str| Err(Problem::Foreign(what.to_owned()));
    match fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(e.into()),
        Ok(metadata) if metadata.is_dir() => return foreign("a folder"),
        Ok(metadata) if !metadata.is_file() => return foreign("a special file"),
        Ok(_) => {}
    }
    let mut header = Vec::new();
    File::open(path)?.take(100).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(true);
    }
    if !header.starts_with(MAGIC) {
        return foreign("a file of another kind");
    }
    if header.len() < 100 {
        return Err(Problem::Damaged(format!("only {} bytes are left", header.len())));
    }
    // https://www.sqlite.org/fileformat2.html#the_database_header
    let word = |at: usize| i32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if word(68) != APPLICATION_ID {
        return foreign("the SQLite file of another program");
    }
    match word(60) {
        found if found > VERSION => Err(Problem::Newer { found, known: VERSION }),
        found if found < 1 => Err(Problem::Damaged(format!("its version is {found}"))),
        _ => Ok(true),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings the schema to [`VERSION`] in one transaction; another pagelab may have been quicker.
fn migrate(connection: &mut Connection) -> Result<(), Problem> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let from = version(&transaction)?;
    for migration in MIGRATIONS.iter().skip(from.max(0) as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    Ok(transaction.commit()?)
}
