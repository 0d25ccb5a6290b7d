//! Many pagelabs write to one notebook at once: none fails, no repetition is lost, none waits for long.

mod common;

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{NOW, header, place, some};
use pagelab_experiment::Outcome;
use pagelab_notebook::Notebook;

const VARIABLE: &str = "PAGELAB_TEST_NOTEBOOK_FOR_MANY";
/// More rounds, for a long trial.
const ROUNDS: &str = "PAGELAB_TEST_ROUNDS";

const WRITERS: usize = 8;
const REPETITIONS: u32 = 20;

/// Not a test by itself: one of the writers. Writes without a pause, as nothing else would.
#[test]
fn one_of_many() {
    let Some(path) = env::var_os(VARIABLE) else { return };
    let mut notebook = Notebook::open(Path::new(&path)).unwrap();
    let run = notebook.begin_run(&header("")).unwrap();
    for number in 1..=REPETITIONS {
        let repetition = notebook.begin_repetition(run, number, NOW).unwrap();
        for observation in some(200) {
            notebook.record(repetition, &observation).unwrap();
        }
        notebook.finish_repetition(repetition, &Outcome::Done).unwrap();
    }
}

#[test]
fn eight_writers_lose_nothing() {
    let rounds = env::var(ROUNDS).ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        let (_folder, path) = place();
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                Command::new(env::current_exe().unwrap())
                    .args(["--exact", "one_of_many", "--nocapture"])
                    .env(VARIABLE, &path)
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for writer in writers {
            let output = writer.wait_with_output().unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        }
        let list = Notebook::open_existing(&path).unwrap().list().unwrap();
        assert_eq!(list.len(), WRITERS);
        assert!(list.iter().all(|run| (run.repetitions, run.done) == (REPETITIONS, REPETITIONS)), "{list:?}");
        let check: String = rusqlite::Connection::open(&path)
            .unwrap()
            .pragma_query_value(None, "integrity_check", |row| row.get(0))
            .unwrap();
        assert_eq!(check, "ok");
    }
}
