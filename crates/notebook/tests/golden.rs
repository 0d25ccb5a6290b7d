//! Notebooks of every version that was ever written are read, shown and imported; a run that cannot be
//! understood is said to be one and hides no other.

mod common;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use common::place;
use pagelab_experiment::{MetricId, Outcome, metrics};
use pagelab_notebook::export::{Format, export};
use pagelab_notebook::{Entry, Notebook, Problem};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn golden(version: i32) -> PathBuf {
    Path::new(GOLDEN).join(format!("v{version}.db"))
}

/// The version that this program writes.
fn last_version() -> i32 {
    let (_folder, path) = place();
    Notebook::open(&path).unwrap();
    rusqlite::Connection::open(&path)
        .unwrap()
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap()
}

/// A copy of the first golden notebook, spoiled by `sql`.
fn spoiled(sql: &str) -> (tempfile::TempDir, PathBuf) {
    let (folder, path) = place();
    std::fs::copy(golden(1), &path).unwrap();
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    (folder, path)
}

/// Why the run cannot be read, by the list and by its figures, which must agree; and that all others can.
fn why(path: &Path, name: &str) -> String {
    let notebook = Notebook::open_existing(path).unwrap();
    let mut found = None;
    for entry in notebook.checked_entries().unwrap() {
        match entry {
            Entry::Readable(run) => {
                assert_ne!(run.header.name, name);
                notebook.load(run.id).unwrap();
            }
            Entry::Unreadable(run) => {
                assert_eq!(run.name, name);
                found = Some(run);
            }
        }
    }
    let found = found.expect("an unreadable run");
    let error = notebook.load(notebook.resolve(name).unwrap()).unwrap_err();
    let text = error.to_string();
    let Problem::Unreadable { run, why } = error.problem else { panic!("{text}") };
    assert_eq!((run.as_str(), &why), (name, &found.why));
    assert!(text.contains(name) && text.contains(&why), "{text}");
    why
}

#[test]
fn every_version_is_read_exported_and_imported() {
    let last = last_version();
    for version in 1..=last {
        let golden = golden(version);
        if version == last && !golden.exists() {
            continue;
        }
        assert!(golden.exists(), "make a notebook with the last pagelab of version {version}: {golden:?}");
        let (folder, path) = place();
        std::fs::copy(&golden, &path).unwrap();
        let before = std::fs::read(&path).unwrap();
        let notebook = Notebook::open_existing(&path).unwrap();
        let mut outcomes = BTreeMap::<String, u32>::new();
        let mut runs = Vec::new();
        for entry in notebook.checked_entries().unwrap() {
            let Entry::Readable(summary) = entry else { panic!("version {version}: {entry:?}") };
            let run = notebook.load(summary.id).unwrap();
            for repetition in &run.repetitions {
                *outcomes.entry(format!("{:?}", repetition.outcome)).or_default() += 1;
                for metric in &repetition.observations.metrics {
                    assert!(MetricId::find(&metric.name).is_some_and(|known| known == *metric.name));
                }
                if repetition.outcome == Outcome::Done {
                    assert!(!repetition.observations.environment.is_empty(), "{}", run.header.name);
                }
            }
            runs.push(run);
        }
        assert!(runs.len() >= 15 && outcomes["Done"] >= 14 && outcomes["Torn"] >= 1, "{outcomes:?}");
        let agreed = runs.iter().filter(|run| !run.values(metrics::CLOCK_AGREEMENT).is_empty());
        assert!(agreed.count() > 0, "clock.true has been renamed since");
        let experiments: std::collections::BTreeSet<_> =
            runs.iter().map(|r| r.header.experiment.name()).collect();
        assert!(experiments.len() >= 10, "one of each: {experiments:?}");
        for format in [Format::Json, Format::Csv, Format::Parquet] {
            let mut to = Vec::new();
            export(&runs, format, &mut to).unwrap();
            assert!(to.len() > 10_000, "{format:?}");
        }
        drop(notebook);
        let mut other = Notebook::open(&folder.path().join("other.db")).unwrap();
        let imported = other.import(&path).unwrap();
        assert_eq!((imported.imported.len(), imported.unreadable.len()), (runs.len(), 0));
        for run in &runs {
            let here = other.load(other.resolve(&run.header.name).unwrap()).unwrap();
            assert_eq!((&here.header, &here.repetitions), (&run.header, &run.repetitions));
        }
        assert!(std::fs::read(&path).unwrap() == before, "reading changes nothing");
        // Its own program goes on with it.
        let mut writing = Notebook::open(&path).unwrap();
        writing.begin_run(&runs[0].header.clone_named("one more")).unwrap();
        assert_eq!(writing.list().unwrap().len(), runs.len() + 1);
    }
}

trait Named {
    fn clone_named(&self, name: &str) -> Self;
}

impl Named for pagelab_experiment::RunHeader {
    fn clone_named(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }
}

#[test]
fn a_run_that_cannot_be_understood_is_one_unreadable_run() {
    let run = "WHERE name = 'paging'";
    let of = "WHERE repetition IN (SELECT repetition.id FROM repetition JOIN run ON run = run.id AND run.name = 'paging')";
    for (sql, said) in [
        (format!("UPDATE run SET parameters = json_set(parameters, '$.experiment', 'zap') {run}"), "zap"),
        (format!("UPDATE run SET parameters = json_set(parameters, '$.prefault', 3) {run}"), "prefault"),
        (format!("UPDATE run SET parameters = json_set(parameters, '$.touch', 'twice') {run}"), "twice"),
        (format!("UPDATE run SET parameters = '{{' {run}"), "parameters"),
        (format!("UPDATE run SET setting = json_set(setting, '$.colour', 'blue') {run}"), "colour"),
        (format!("UPDATE run SET target = 'moon' {run}"), "moon"),
        (format!("UPDATE metric SET unit = 'furlongs' {of}"), "furlongs"),
        ("INSERT INTO note (repetition, level, text) VALUES (1, 'shrill', 'x')".to_owned(), "shrill"),
        (format!("UPDATE page_snapshot SET count = x'0011' {of}"), "count"),
        (format!("UPDATE page_snapshot SET last = substr(last, 1, length(last) / 2) {of}"), "last"),
        (format!("UPDATE page_snapshot SET pages = -1 {of}"), "out of range"),
    ] {
        let (folder, path) = spoiled(&sql);
        let why = why(&path, "paging");
        assert!(why.contains(said), "{sql}: {why}");
        let mut other = Notebook::open(&folder.path().join("other.db")).unwrap();
        let imported = other.import(&path).unwrap();
        assert_eq!(imported.unreadable, [("paging".to_owned(), why)]);
        assert!(imported.imported.len() >= 14);
    }
}

#[test]
fn what_the_list_can_tell_without_the_figures_it_tells() {
    for sql in [
        "UPDATE run SET parameters = json_set(parameters, '$.prefault', 3) WHERE name = 'paging'",
        "UPDATE metric SET unit = 'furlongs' WHERE repetition = 1",
        "UPDATE histogram SET unit = 'furlongs' WHERE repetition = 1",
    ] {
        let (_folder, path) = spoiled(sql);
        let entries = Notebook::open_existing(&path).unwrap().entries().unwrap();
        let unreadable: Vec<_> = entries.iter().filter(|e| matches!(e, Entry::Unreadable(_))).collect();
        assert_eq!(unreadable.iter().map(|e| e.name()).collect::<Vec<_>>(), ["paging"], "{sql}");
    }
}

#[test]
fn a_run_of_a_newer_pagelab_says_so() {
    let (_folder, path) = spoiled(
        "UPDATE run SET pagelab = '9.0.0', parameters = json_set(parameters, '$.prefault', 3) WHERE name = 'paging'",
    );
    let why = why(&path, "paging");
    assert!(why.contains("made by pagelab 9.0.0"), "{why}");
}

#[test]
fn a_parameter_that_an_older_pagelab_did_not_have_is_its_default() {
    let whole = Notebook::open_existing(&golden(1)).unwrap();
    let whole = whole.load(whole.resolve("model-1").unwrap()).unwrap();
    // The golden run has the default touch and no functions.
    let (_folder, path) = spoiled(
        "UPDATE run SET parameters = json_remove(parameters, '$.touch', '$.warm'), \
         setting = json_remove(setting, '$.functions', '$.set') WHERE name = 'model-1'",
    );
    let notebook = Notebook::open_existing(&path).unwrap();
    let listed = notebook.entries().unwrap();
    assert!(listed.iter().all(|e| matches!(e, Entry::Readable(_))), "{listed:?}");
    assert_eq!(notebook.load(notebook.resolve("model-1").unwrap()).unwrap(), whole);
}
