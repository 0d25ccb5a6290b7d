//! Files that are no notebook are refused and stay as they are, byte for byte.

mod common;

use std::fs;
use std::path::Path;

use common::{NOW, header, place, some};
use pagelab_experiment::Outcome;
use pagelab_notebook::{Error, Notebook, Problem};
use proptest::prelude::*;

/// Opens both ways; the file and its folder stay as they are.
fn refused(path: &Path) -> Vec<Error> {
    let before = fs::read(path).unwrap();
    let errors = [Notebook::open(path).err(), Notebook::open_existing(path).err()];
    assert_eq!(fs::read(path).unwrap(), before, "not touched");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing beside it");
    errors.into_iter().map(|e| e.expect("refused")).collect()
}

fn notebook(path: &Path) {
    let mut notebook = Notebook::open(path).unwrap();
    let run = notebook.begin_run(&header("first")).unwrap();
    let repetition = notebook.begin_repetition(run, 1, NOW).unwrap();
    for observation in some(2000) {
        notebook.record(repetition, &observation).unwrap();
    }
    notebook.finish_repetition(repetition, &Outcome::Done).unwrap();
}

#[test]
fn the_sqlite_file_of_another_program() {
    let (_folder, path) = place();
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE run (a); PRAGMA user_version = 1")
        .unwrap();
    for error in refused(&path) {
        assert!(matches!(error.problem, Problem::Foreign(_)), "{error}");
        assert!(error.to_string().contains("pagelab.db") && error.to_string().contains("another program"));
    }
}

#[test]
fn a_newer_notebook() {
    let (_folder, path) = place();
    notebook(&path);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let this: i32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    connection.pragma_update(None, "user_version", this + 1).unwrap();
    drop(connection);
    for error in refused(&path) {
        let Problem::Newer { found, known } = error.problem else { panic!("{error}") };
        assert_eq!((found, known), (this + 1, this));
    }
}

#[test]
fn a_folder_and_nothing() {
    let (folder, path) = place();
    let error = Notebook::open(folder.path()).err().unwrap();
    assert!(error.to_string().contains("folder"), "{error}");
    let error = Notebook::open_existing(&path).err().unwrap();
    assert!(error.to_string().contains("pagelab run"), "{error}");
    assert!(!path.exists());
    let error = Notebook::open(&folder.path().join("no/such.db")).err().unwrap();
    assert!(matches!(error.problem, Problem::CannotOpen), "{error}");
}

#[test]
fn an_empty_file_reads_as_an_empty_notebook_and_becomes_one_when_written() {
    let (_folder, path) = place();
    fs::write(&path, []).unwrap();
    assert!(Notebook::open_existing(&path).unwrap().list().unwrap().is_empty());
    assert!(fs::read(&path).unwrap().is_empty());
    notebook(&path);
    assert_eq!(Notebook::open_existing(&path).unwrap().list().unwrap().len(), 1);
}

#[test]
fn a_truncated_notebook_at_every_kind_of_length() {
    let (_folder, path) = place();
    notebook(&path);
    let whole = fs::read(&path).unwrap();
    for length in [1, 15, 16, 99, 100, 512, 4095, 4096, 5000, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        for error in refused(&path) {
            assert!(matches!(error.problem, Problem::Damaged(_) | Problem::Foreign(_)), "{length}: {error}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 1..5000)) {
        let (_folder, path) = place();
        fs::write(&path, bytes).unwrap();
        refused(&path);
    }

    #[test]
    fn random_bytes_behind_the_header_of_a_notebook(bytes in prop::collection::vec(any::<u8>(), 1..20_000)) {
        let (_folder, path) = place();
        notebook(&path);
        let mut mixed = fs::read(&path).unwrap()[..100].to_vec();
        mixed.extend(bytes);
        fs::write(&path, mixed).unwrap();
        refused(&path);
    }

    /// Damage anywhere: an error or a run, never a panic.
    #[test]
    fn overwritten_bytes(places in prop::collection::vec((100usize..60_000, any::<u8>()), 1..200)) {
        let (_folder, path) = place();
        notebook(&path);
        let mut bytes = fs::read(&path).unwrap();
        for (at, byte) in places {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        fs::write(&path, bytes).unwrap();
        if let Ok(notebook) = Notebook::open_existing(&path) && let Ok(runs) = notebook.list() {
            for run in runs {
                let _ = notebook.load(run.id);
            }
        }
    }
}
