//! A full disk, and how much room a run takes.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use common::{NOW, header, place, some};
use pagelab_experiment::observation::{PageSet, PageSnapshot};
use pagelab_experiment::{Observation, Outcome};
use pagelab_notebook::{Error, Notebook, Problem};
use pagelab_reference::Pattern;
use pagelab_testing::{TMPFS, run, tests};

fn main() -> ExitCode {
    run(tests! {
        full_disk_is_reported_and_finished_repetitions_stay: TMPFS;
        a_standard_run_stays_well_below_a_megabyte;
    })
}

/// Writes repetitions until it fails.
fn fill(path: &Path) -> Error {
    let mut notebook = Notebook::open(path).unwrap();
    let run = notebook.begin_run(&header("full")).unwrap();
    let mut one = |number: u32| {
        let repetition = notebook.begin_repetition(run, number, NOW)?;
        for observation in some(5000) {
            notebook.record(repetition, &observation)?;
        }
        notebook.finish_repetition(repetition, &Outcome::Done)
    };
    (1..1000).find_map(|number| one(number).err()).expect("it becomes full")
}

fn full_disk_is_reported_and_finished_repetitions_stay() {
    let (folder, _) = place();
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=500k", "none"]).arg(&disk).status();
    assert!(mounted.unwrap().success());
    let path = disk.join("pagelab.db");
    let result = std::panic::catch_unwind(|| {
        let error = fill(&path);
        assert!(matches!(error.problem, Problem::Full), "{error}");
        assert!(error.to_string().contains("full"));
        let notebook = Notebook::open_existing(&path).unwrap();
        let summary = &notebook.list().unwrap()[0];
        assert!(summary.done >= 1, "{summary:?}");
        let run = notebook.load(summary.id).unwrap();
        assert_eq!(run.done().count() as u32, summary.done);
        assert!(run.done().all(|r| r.observations.pages[0].last.len() == 5000));
    });
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    result.unwrap();
}

/// The standard run: 2,000,000 references to 24,576 pages, 16 page maps.
fn a_standard_run_stays_well_below_a_megabyte() {
    const PAGES: u32 = 24_576;
    const REFERENCES: u64 = 2_000_000;
    let (_folder, path) = place();
    let mut notebook = Notebook::open(&path).unwrap();
    let run = notebook.begin_run(&header("")).unwrap();
    let repetition = notebook.begin_repetition(run, 1, NOW).unwrap();
    for observation in some(1).into_iter().take(3) {
        notebook.record(repetition, &observation).unwrap();
    }
    let (mut count, mut last) = (vec![0_u32; PAGES as usize], vec![0_u32; PAGES as usize]);
    let stream = Pattern::SmoothSin.stream(PAGES.into(), REFERENCES, 1).unwrap();
    for (index, page) in stream.references().iter().enumerate() {
        count[*page as usize] += 1;
        last[*page as usize] = index as u32 + 1;
        let made = index as u64 + 1;
        if made.is_multiple_of(REFERENCES / 16) {
            // The 16,384 pages referenced last are present, as under LRU.
            let mut newest = last.clone();
            newest.sort_unstable_by(|a, b| b.cmp(a));
            let oldest = newest[16_383].max(1);
            let snapshot = PageSnapshot {
                reference: made,
                pages: PAGES,
                present: PageSet::from_flags(last.iter().map(|&l| l >= oldest)),
                swapped: PageSet::from_flags(last.iter().map(|&l| l < oldest)),
                count: count.clone(),
                last: last.clone(),
            };
            notebook.record(repetition, &Observation::Pages(snapshot)).unwrap();
        }
    }
    notebook.finish_repetition(repetition, &Outcome::Done).unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    println!("{bytes} bytes");
    assert!(bytes < 700_000, "{bytes} bytes");
}
