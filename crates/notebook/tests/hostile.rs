//! Notebooks that somebody made to do harm: memory is bounded, names are, and nothing of the schema runs.

mod common;

use common::{NOW, header, place, some};
use pagelab_experiment::Outcome;
use pagelab_experiment::packed::pack;
use pagelab_notebook::{Entry, Notebook, Problem};

/// A notebook with one run of one repetition.
fn notebook(path: &std::path::Path) -> rusqlite::Connection {
    let mut notebook = Notebook::open(path).unwrap();
    let run = notebook.begin_run(&header("bad")).unwrap();
    let repetition = notebook.begin_repetition(run, 1, NOW).unwrap();
    some(100).iter().for_each(|o| notebook.record(repetition, o).unwrap());
    notebook.finish_repetition(repetition, &Outcome::Done).unwrap();
    notebook.begin_run(&header("good")).unwrap();
    rusqlite::Connection::open(path).unwrap()
}

#[test]
fn a_small_blob_that_becomes_large_makes_its_run_unreadable() {
    let (folder, path) = place();
    let connection = notebook(&path);
    let bomb = pack(&vec![0; (1 << 26) + 1]);
    assert!(bomb.len() < 2 << 20, "{} bytes", bomb.len());
    connection.execute("UPDATE page_snapshot SET last = ?1", [bomb]).unwrap();
    let read = Notebook::open_existing(&path).unwrap();
    let error = read.load(read.resolve("bad").unwrap()).unwrap_err();
    assert!(matches!(&error.problem, Problem::Unreadable { why, .. } if why.contains("last")), "{error}");
    let entries = read.checked_entries().unwrap();
    assert!(matches!(&entries[..], [Entry::Unreadable(_), Entry::Readable(_)]), "{entries:?}");
    let imported = Notebook::open(&folder.path().join("other.db")).unwrap().import(&path).unwrap();
    assert_eq!((imported.imported.len(), imported.unreadable.len()), (1, 1));
}

#[test]
fn names_are_bounded_and_plain() {
    let (folder, path) = place();
    let connection = notebook(&path);
    let long = "x".repeat(100_000);
    for (foreign, here) in [
        ("\u{1b}[2J\nfake", "\u{fffd}[2J\u{fffd}fake"),
        ("@1", "run-@1"),
        ("17", "run-17"),
        ("", "run-"),
        (&long, &"x".repeat(180)),
    ] {
        connection.execute("UPDATE run SET name = ?1 WHERE id = 1", [foreign]).unwrap();
        let target = folder.path().join("other.db");
        let mut other = Notebook::open(&target).unwrap();
        other.import(&path).unwrap();
        assert_eq!(other.list().unwrap()[0].header.name, *here);
        drop(other);
        std::fs::remove_file(&target).unwrap();
    }
    let mut own = Notebook::open(&path).unwrap();
    for name in ["a\nb", "\u{1b}[31m", "\u{9b}31m", &"y".repeat(201)] {
        let error = own.begin_run(&header(name)).unwrap_err();
        assert!(matches!(error.problem, Problem::NameImpossible(_)), "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
}

#[test]
fn no_message_shows_a_statement() {
    let (_folder, path) = place();
    notebook(&path).execute_batch("ALTER TABLE metric RENAME COLUMN better TO worse").unwrap();
    let error = Notebook::open_existing(&path).unwrap().list().unwrap_err().to_string();
    assert!(error.contains("better") && !error.contains("SELECT"), "{error}");
}

#[test]
fn a_trigger_of_theirs_does_not_run_when_their_notebook_is_read() {
    let (folder, path) = place();
    notebook(&path)
        .execute_batch("CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM metric; END; CREATE VIEW v AS SELECT * FROM run")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let imported = Notebook::open(&folder.path().join("other.db")).unwrap().import(&path).unwrap();
    assert_eq!(imported.imported.len(), 2);
    assert!(std::fs::read(&path).unwrap() == before);
}
