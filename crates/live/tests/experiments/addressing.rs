//! `unmap`, `mremap` and `populate`: what each operation leaves, and the same calls in C.

use std::process::Command;

use pagelab_experiment::experiments::Addressing;
use pagelab_experiment::observation::{Unit, Values};
use pagelab_experiment::{Experiment, Observations, Setting};
use pagelab_testing::{CC, Test, tests};

use crate::{figure, has_column, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        what_takes_no_page_takes_no_fault;
        operations_cost_what_their_twins_cost: CC;
    }
}

fn small() -> Addressing {
    Addressing { pages: 2048, rounds: 9, ..Addressing::default() }
}

/// A row of the table, by operation and sharers.
fn row(seen: &Observations, operation: &str, sharers: f64, column: &str) -> Option<f64> {
    let table = seen.table("operations.cost").unwrap();
    let Values::Text(names) = &table.columns[0].values else { panic!("names first") };
    let name = if sharers > 0.0 { format!("{operation} beside {sharers}") } else { operation.to_owned() };
    let row = names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("no {name}: {names:?}"));
    assert_eq!(table.numbers("sharers").unwrap()[row], Some(sharers));
    table.numbers(column).unwrap()[row]
}

fn what_takes_no_page_takes_no_fault() {
    let populate = perform(Experiment::Populate(small()), &Setting::default()).unwrap();
    has_column(&populate, "operations.cost", "page.median", Unit::Nanoseconds);
    let faults = row(&populate, "first writes", 0.0, "faults").unwrap();
    assert!((1.0..1.05).contains(&faults), "{faults} faults a page");
    // The kernel counts what it populates itself as faults too (mm/memory.c, mm_account_fault), and takes no exception.
    let populated = row(&populate, "mmap(MAP_POPULATE)", 0.0, "faults").unwrap();
    assert!((1.0..1.05).contains(&populated), "{populated} faults a page");
    // An exception is about a twelfth of a first write: other load is told from it by the least of many rounds.
    let (mut mapped, mut touched) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..4 {
        let again = perform(Experiment::Populate(small()), &Setting::default()).unwrap();
        let least = |operation| row(&again, operation, 0.0, "page.least").unwrap();
        mapped = least("mmap(MAP_POPULATE)").min(mapped);
        touched = least("first writes").min(touched);
    }
    assert!(mapped < touched, "no exception a page: {mapped} ns against {touched}");
    // Other load can make any one of them longer.
    let whole = (0..5).any(|_| {
        let mremap = perform(Experiment::Mremap(small()), &Setting::default()).unwrap();
        figure(&mremap, "mremap.aligned") * 2.0 < figure(&mremap, "mremap.move")
    });
    assert!(whole, "tables are moved whole where they lie alike");
    let unmap = perform(Experiment::Unmap(small()), &Setting::default()).unwrap();
    let [given, kept] =
        ["munmap", "mprotect(PROT_READ)"].map(|operation| row(&unmap, operation, 0.0, "page.least").unwrap());
    assert!(given > kept, "pages are given back: {given} ns against {kept}");
    for operation in ["munmap", "mprotect(PROT_READ)", "madvise(MADV_DONTNEED)"] {
        // A page of the program itself that the kernel took away is one fault in some thousands of pages.
        let faults = row(&unmap, operation, 0.0, "faults").unwrap();
        assert!(faults < 0.01, "{operation} references nothing: {faults} faults a page");
    }
    // Where a processor is left for it, a thread of the same address space has to be told.
    if let Some(told) = row(&unmap, "munmap", 1.0, "shootdowns") {
        // A thread whose processor another program has is not running, and is told nothing.
        let again = || perform(Experiment::Unmap(small()), &Setting::default()).unwrap();
        let more = (0..5).map(|_| row(&again(), "munmap", 1.0, "shootdowns").unwrap());
        assert!(std::iter::once(told).chain(more).any(|told| told >= 0.5), "{told} shootdowns a munmap");
        assert!(unmap.metric("unmap.munmap.shared").is_some());
    } else {
        assert!(
            unmap.notes.iter().any(|note| note.text.contains("needs as many processors beside the first"))
        );
    }
}

/// The least of several of each, as other programs only add.
fn operations_cost_what_their_twins_cost() {
    let folder = tempfile::tempdir().unwrap();
    let twin = folder.path().join("twin");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/twins/addressing.c");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    assert!(Command::new(cc).args(["-O2", "-o"]).arg(&twin).arg(source).status().unwrap().success());
    let alone = Addressing { sharers: 0, ..small() };
    let names =
        ["unmap.munmap", "unmap.mprotect", "unmap.dontneed", "mremap.move", "populate.touch", "populate.map"];
    let (mut ours, mut twins) = ([f64::INFINITY; 6], [f64::INFINITY; 6]);
    let mut ratios = [f64::INFINITY; 6];
    for round in 0..8 {
        if round >= 2 && ratios.iter().all(|ratio| (0.75..1.33).contains(ratio)) {
            break;
        }
        let output = Command::new(&twin).args(["2048", "9"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let figures = text.split_whitespace().map(|word| word.parse::<f64>().unwrap());
        twins.iter_mut().zip(figures).for_each(|(least, figure)| *least = least.min(figure));
        let seen = [
            Experiment::Unmap(alone.clone()),
            Experiment::Mremap(alone.clone()),
            Experiment::Populate(alone.clone()),
        ]
        .map(|experiment| perform(experiment, &Setting::default()).unwrap());
        for (least, name) in ours.iter_mut().zip(names) {
            let value = seen.iter().find_map(|seen| seen.metric(name));
            *least = least.min(value.unwrap_or_else(|| panic!("no {name}")));
        }
        ratios = std::array::from_fn(|n| ours[n] / twins[n]);
    }
    println!("{names:?}: ours {ours:.1?}, the twin's {twins:.1?}, {ratios:.2?}");
    assert!(ratios.iter().all(|ratio| (0.6..1.6).contains(ratio)), "{names:?}: {ratios:?}");
}
