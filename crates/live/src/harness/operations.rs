//! What the kernel does for a load, counted: page faults, tracepoints, and calls of chosen functions.
//!
//! Probes slow what they count, so this is done in a load of its own whose times are not kept.

use pagelab_experiment::build::{Sheet, note};
use pagelab_experiment::observation::{Level, Table};
use pagelab_experiment::tables::operations;
use pagelab_experiment::{Failure, Observation, Recorder, Result};
use pagelab_kernel::perf::functions::{self, FUNCTIONS};
use pagelab_kernel::perf::symbols::Symbols;
use pagelab_kernel::perf::{self, Counted, Counting};

/// The tracepoints that are counted.
const TRACEPOINTS: &[&str] = &[
    "exceptions:page_fault_user",
    "exceptions:page_fault_kernel",
    "kmem:mm_page_alloc",
    "kmem:mm_page_free",
    "kmem:mm_page_free_batched",
    "kmem:rss_stat",
    "tlb:tlb_flush",
    FORK,
    "sched:sched_process_exec",
    "sched:sched_process_exit",
];
const FORK: &str = "sched:sched_process_fork";
const FAULTS: &str = "page-faults";

/// What is to be counted in this kernel: the row's name, and the event where there is one.
fn wanted(with_functions: bool) -> Vec<(&'static str, Option<Counted>)> {
    let mut list = vec![(FAULTS, Some(Counted::PageFaults))];
    list.extend(TRACEPOINTS.iter().map(|&name| (name, Some(Counted::Tracepoint(name)))));
    if with_functions {
        let symbols = Symbols::read();
        let found = |function| functions::find(function, symbols.as_ref()?).map(str::to_owned);
        list.extend(FUNCTIONS.iter().map(|f| (f.what, found(f).map(Counted::Function))));
        if let Some(symbols) = symbols {
            symbols.release();
        }
    }
    list
}

/// Performs `load`, counts, and records the table `operations`: each count, and its share of a fork
/// and of a fault. What cannot be counted is a dash, and a remark says why.
///
/// # Errors
/// Those of the load, when the table cannot be kept, and when functions were asked for and nothing can be counted.
pub fn count(
    with_functions: bool,
    recorder: &mut dyn Recorder,
    load: impl FnOnce(&mut dyn Recorder) -> Result<()>,
) -> Result<()> {
    let wanted = wanted(with_functions);
    let events: Vec<Counted> = wanted.iter().filter_map(|(_, event)| event.clone()).collect();
    let counting = Counting::start(&events);
    if !counting.works() {
        if with_functions {
            return Err(Failure::unsupported("the kernel's functions cannot be counted", perf::REMEDY));
        }
        return note(recorder, Level::Info, format!("operations were not counted: {}", perf::REMEDY));
    }
    load(recorder)?;
    let mut counts = counting.finish().into_iter();
    let (mut rows, mut absent, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for (what, event) in wanted {
        let count = event.as_ref().and_then(|_| counts.next());
        match (&event, &count) {
            (None, _) => absent.push(what),
            (Some(Counted::Function(name)), Some(Err(error))) => refused.push(format!("{name} ({error})")),
            _ => {}
        }
        let function = match event {
            Some(Counted::Function(name)) => name,
            _ => String::new(),
        };
        rows.push(Row { what, function, count: count.and_then(Result::ok).map(|n| n as f64) });
    }
    recorder.observe(Observation::Table(table(&rows)))?;
    if !absent.is_empty() {
        let text = format!(
            "these operations were not counted, because their function is missing, inlined or hidden in \
            this kernel: {}",
            absent.join("; ")
        );
        note(recorder, Level::Info, text)?;
    }
    if !refused.is_empty() {
        note(recorder, Level::Info, format!("the kernel takes no probe at {}", refused.join(", ")))?;
    }
    Ok(())
}

/// One operation.
struct Row {
    what: &'static str,
    /// The function that was probed; empty of an event.
    function: String,
    count: Option<f64>,
}

fn table(rows: &[Row]) -> Table {
    let mut sheet = Sheet::new(operations::TABLE);
    let of = |what: &str| rows.iter().find(|row| row.what == what).and_then(|row| row.count);
    let (faults, forks) = (of(FAULTS), of(FORK));
    for Row { what, function, count } in rows {
        let each = |whole: Option<f64>| Some((*count)? / whole.filter(|&whole| whole > 0.0)?);
        sheet.named([what, function], [*count, each(faults), each(forks)]);
    }
    sheet.table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_was_counted() {
        let row = |what, count| Row { what, function: String::new(), count };
        let table =
            table(&[row(FAULTS, Some(10.0)), row(FORK, Some(0.0)), row("a", Some(25.0)), row("b", None)]);
        assert_eq!(table.numbers(operations::EACH_FAULT).unwrap(), [Some(1.0), Some(0.0), Some(2.5), None]);
        assert_eq!(table.numbers(operations::EACH_FORK).unwrap(), [None; 4], "no forks, no share of one");
    }
}
