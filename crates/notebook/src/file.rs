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

use rusqlite::backup::Backup;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::error::Problem;
use crate::links;
use crate::turn::{self, Turn};

/// Stands in the file's header, so that `file` and pagelab know a notebook: "PgLb".
pub(crate) const APPLICATION_ID: i32 = 0x5067_4c62;

/// Entry `n` leads from version `n` to `n + 1`; version 0 is an empty file. A new entry needs its tables
/// in [`TABLES`], and a notebook made before it in tests/golden.
const MIGRATIONS: &[&str] = &[include_str!("schema.sql"), include_str!("schema_2.sql")];

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
    open_to(path, mode, MIGRATIONS)
}

/// Opens the file as of the version that `migrations` lead to.
fn open_to(path: &Path, mode: Mode, migrations: &[&str]) -> Result<Connection, Problem> {
    let known = migrations.len() as i32;
    let there = check(path, known)?;
    if !there && mode == Mode::Read {
        return Err(Problem::Missing);
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if mode == Mode::Write {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    // Absolute, so that no name is special to SQLite (":memory:").
    let mut connection = Connection::open_with_flags(std::path::absolute(path)?, flags)?;
    connection.busy_handler(Some(turn::again))?;
    // The schema is somebody else's: none of its functions, triggers or virtual tables is trusted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    let version = version(&connection)?;
    // SQLite itself finds missing pages, but takes a torn last page for zeros.
    let torn: u64 = fs::metadata(path)?.len() % 512;
    if torn != 0 {
        return Err(Problem::Damaged("its last page is torn".to_owned()));
    }
    if version > known {
        return Err(Problem::Newer { found: version, known });
    }
    if version < known {
        if mode == Mode::Read {
            // Who reads changes nothing: the file stays of its version, for the pagelab that made it.
            connection = copy(&connection)?;
        }
        migrate(&mut connection, path, migrations)?;
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
    // A large transaction stays in memory until its end: every spill would wait for the disk.
    connection.pragma_update(None, "cache_spill", false)?;
    if mode == Mode::Read {
        connection.pragma_update(None, "query_only", true)?;
    }
    Ok(connection)
}

/// The same notebook in a temporary file, which goes with the connection.
fn copy(from: &Connection) -> Result<Connection, Problem> {
    let mut to = Connection::open("")?;
    Backup::new(from, &mut to)?.run_to_completion(1024, Duration::ZERO, None)?;
    Ok(to)
}

/// Whether something is there, by its first bytes alone; refuses everything but a notebook up to the
/// version `known` and an empty file.
fn check(path: &Path, known: i32) -> Result<bool, Problem> {
    let foreign = |what: &str| Err(Problem::Foreign(what.to_owned()));
    if let Err(planted) = links::refuse_planted(path) {
        return foreign(&format!("a file behind a planted link ({planted})"));
    }
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
        found if found > known => Err(Problem::Newer { found, known }),
        found if found < 1 => Err(Problem::Damaged(format!("its version is {found}"))),
        _ => Ok(true),
    }
}

fn version(connection: &Connection) -> rusqlite::Result<i32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Begins a transaction that writes, when it is this writer's turn.
pub(crate) fn begin<'c>(connection: &'c mut Connection, path: &Path) -> rusqlite::Result<Transaction<'c>> {
    let _turn = Turn::wait(path);
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

/// Brings the schema to the last version in one transaction; another pagelab may have been quicker.
fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), Problem> {
    let transaction = begin(connection, path)?;
    let from = version(&transaction)?;
    for migration in migrations.iter().skip(from.max(0) as usize) {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", migrations.len() as i32)?;
    Ok(transaction.commit()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A notebook of version 1 with runs in it.
    fn golden() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pagelab.db");
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/v1.db"), &path).unwrap();
        (folder, path)
    }

    fn runs(connection: &Connection) -> i64 {
        connection.query_row("SELECT count(*) FROM run", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn the_tables_that_are_asked_for_are_those_that_are_made() {
        let folder = tempfile::tempdir().unwrap();
        let connection = open(&folder.path().join("new.db"), Mode::Write).unwrap();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let made = crate::read::rows(&connection, sql, [], |row| row.get::<_, String>(0)).unwrap();
        let mut asked = TABLES.to_vec();
        asked.sort_unstable();
        let mut made: Vec<&str> = made.iter().map(String::as_str).collect();
        made.sort_unstable();
        assert_eq!(made, asked);
    }

    #[test]
    fn a_later_program_reads_an_older_notebook_as_it_is_and_brings_it_on_when_it_writes() {
        let (folder, path) = golden();
        let before = fs::read(&path).unwrap();
        let mut later = MIGRATIONS.to_vec();
        later.push("ALTER TABLE run ADD COLUMN later TEXT NOT NULL DEFAULT 'x'");
        let next = later.len() as i32;

        let reading = open_to(&path, Mode::Read, &later).unwrap();
        assert!(runs(&reading) > 10);
        let column: String = reading.query_row("SELECT later FROM run LIMIT 1", [], |r| r.get(0)).unwrap();
        assert_eq!(column, "x");
        drop(reading);
        assert!(fs::read(&path).unwrap() == before, "who reads changes nothing");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

        let count = runs(&open_to(&path, Mode::Read, MIGRATIONS).unwrap());
        assert_eq!(runs(&open_to(&path, Mode::Write, &later).unwrap()), count);
        let error = open(&path, Mode::Read).unwrap_err();
        assert!(matches!(error, Problem::Newer { found, known } if found == next && known == next - 1));
        assert_eq!(runs(&open_to(&path, Mode::Read, &later).unwrap()), count);
    }
}
