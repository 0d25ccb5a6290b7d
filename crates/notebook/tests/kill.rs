//! A writer killed at random moments leaves a notebook that opens, whole repetitions, and at most
//! one that is torn.

mod common;

use std::env;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::{NOW, header, place, some};
use pagelab_experiment::{Observations, Outcome};
use pagelab_notebook::Notebook;

const VARIABLE: &str = "PAGELAB_TEST_NOTEBOOK_TO_WRITE";

/// Not a test by itself: the process that is killed.
#[test]
fn writer() {
    let Some(path) = env::var_os(VARIABLE) else { return };
    let mut notebook = Notebook::open(Path::new(&path)).unwrap();
    let run = notebook.begin_run(&header("")).unwrap();
    for number in 1.. {
        let repetition = notebook.begin_repetition(run, number, NOW).unwrap();
        for observation in some(5000) {
            notebook.record(repetition, &observation).unwrap();
        }
        notebook.finish_repetition(repetition, &Outcome::Done).unwrap();
    }
}

fn start(path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "writer", "--nocapture"])
        .env(VARIABLE, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_killed_writer_leaves_whole_repetitions() {
    let (_folder, path) = place();
    let mut expected = Observations::default();
    some(5000).into_iter().for_each(|o| expected.add(o));
    for round in 0_u64.. {
        let mut child = start(&path);
        // Uneven moments, from before the schema is there to some hundred transactions later, later yet where others
        // keep the writer from its work.
        sleep(Duration::from_micros(500 + round * round * 311 % (150_000 * (1 + round / 25))));
        child.kill().unwrap();
        child.wait().unwrap();

        let notebook = Notebook::open(&path).unwrap();
        let check: String = rusqlite::Connection::open(&path)
            .unwrap()
            .pragma_query_value(None, "integrity_check", |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
        let (mut done, mut torn) = (0, 0);
        for summary in notebook.list().unwrap() {
            assert_eq!(summary.running, 0);
            let run = notebook.load(summary.id).unwrap();
            for (index, repetition) in run.repetitions.iter().enumerate() {
                assert_eq!(repetition.number as usize, index + 1);
                if repetition.outcome == Outcome::Done {
                    assert_eq!(repetition.observations, expected, "whole");
                    done += 1;
                } else {
                    assert_eq!(repetition.outcome, Outcome::Torn);
                    assert_eq!(index + 1, run.repetitions.len(), "only the last one can be torn");
                    torn += 1;
                }
            }
        }
        if round >= 24 && done > 0 && torn > 0 {
            break;
        }
        assert!(round < 250, "{done} done, {torn} torn: the kills came at useless moments");
    }
    // A journal that the writer had not begun to fill says nothing, and goes with the next one.
    Notebook::open(&path).unwrap().begin_run(&header("")).unwrap();
    assert!(!path.with_extension("db-journal").exists(), "nothing is left beside it");
}

#[test]
fn run_of_a_living_writer_is_running_not_torn() {
    let (_folder, path) = place();
    let mut child = start(&path);
    let mut seen = false;
    while !seen {
        assert!(child.try_wait().unwrap().is_none(), "the writer ended");
        if let Ok(notebook) = Notebook::open(&path) {
            for summary in notebook.list().unwrap() {
                seen |= summary.running == 1;
                let run = notebook.load(summary.id).unwrap();
                assert!(run.repetitions.iter().all(|r| r.outcome == Outcome::Done), "none is torn");
            }
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Notebook::open_existing(&path).unwrap().list().unwrap().iter().all(|s| s.running == 0));
}
