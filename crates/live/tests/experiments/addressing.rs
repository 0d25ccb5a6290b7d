//! `unmap`, `mremap` and `populate`: what each operation leaves, and the same calls in C.

use pagelab_experiment::experiments::Addressing;
use pagelab_experiment::observation::{Unit, Values};
use pagelab_experiment::{Experiment, Observations, Setting};
use pagelab_testing::{Test, tests};

use crate::{figure, has_column, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        operations_without_pages_take_no_faults;
    }
}

fn small() -> Addressing {
    Addressing { pages: 2048, rounds: 9, ..Addressing::default() }
}

/// A row of the table, by operation and sharers.
fn row(seen: &Observations, operation: &str, sharers: f64, column: &str) -> Option<f64> {
    let table = seen.table_named("operations.cost").unwrap();
    let Values::Text(names) = &table.columns[0].values else { panic!("names first") };
    let name = if sharers > 0.0 { format!("{operation} beside {sharers}") } else { operation.to_owned() };
    let row = names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("no {name}: {names:?}"));
    assert_eq!(table.numbers_named("sharers").unwrap()[row], Some(sharers));
    table.numbers_named(column).unwrap()[row]
}

fn operations_without_pages_take_no_faults() {
    let populate = perform(Experiment::Populate(small()), &Setting::default()).unwrap();
    has_column(&populate, "operations.cost", "page.median", Unit::Nanoseconds);
    let faults = row(&populate, "first writes", 0.0, "faults").unwrap();
    assert!((1.0..1.05).contains(&faults), "{faults} faults a page");
    // The kernel counts what it populates itself as faults too (mm/memory.c, mm_account_fault), and takes no exception.
    let populated = row(&populate, "mmap(MAP_POPULATE)", 0.0, "faults").unwrap();
    assert!((1.0..1.05).contains(&populated), "{populated} faults a page");
    let mremap = perform(Experiment::Mremap(small()), &Setting::default()).unwrap();
    assert!(figure(&mremap, "mremap.aligned") > 0.0 && figure(&mremap, "mremap.move") > 0.0);
    let unmap = perform(Experiment::Unmap(small()), &Setting::default()).unwrap();
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
        assert!(unmap.metric_named("unmap.munmap.shared").is_some());
    } else {
        assert!(
            unmap.notes.iter().any(|note| note.text.contains("needs as many CPUs in addition to the first"))
        );
    }
}
