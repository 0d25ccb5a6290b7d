//! `forkstorm --script` on the reverse maps.

use pagelab_experiment::catalogue::metric;
use pagelab_experiment::experiments::Forkstorm;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Observation, Recorder, TargetError};

use super::sheet::{Sheet, note, unsupported};
use crate::rmap::{self, Kind, Script};

/// The system time of one fork, with its share of execs and faults, without reverse map: 76.19 s for 25,000.
const FORK: f64 = 76.19e9 / 25_000.0;
/// And the user time: 43.01 s.
const FORK_USER: f64 = 43.01e9 / 25_000.0;
const PROCESSORS: f64 = 4.0;

/// The published script.
pub(super) fn perform(
    name: &str,
    kind: Kind,
    forkstorm: &Forkstorm,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    if forkstorm.script.is_none() {
        return Err(unsupported(
            name,
            "the published script of forkstorm".into(),
            "use --script FILE (the model reads no file; any name will do)".into(),
        ));
    }
    let script = Script {
        instances: forkstorm.copies,
        iterations: forkstorm.forks,
        ..Script::published(forkstorm.copies)
    };
    let memory = rmap::run(&script, 1);
    let work = memory.work(kind);
    let counts = &memory.counts;
    let names = ["forks", "execs", "copy_page_range", "do_no_page", "do_wp_page", "adds", "removes"];
    let values = [
        counts.forks,
        counts.execs,
        counts.copy_page_range,
        counts.do_no_page,
        counts.do_wp_page,
        counts.adds(),
        counts.removes(),
    ];
    let mut columns = Sheet::new(&[("count", Unit::Count), ("each.fork", Unit::Count)]);
    let work_names = ["reverse map: operations", "atomic operations", "cache misses", "allocations"];
    let work_values = [work.operations, work.atomics, work.misses, work.slab];
    let mut texts = Vec::new();
    for (name, value) in names.into_iter().zip(values).chain(work_names.into_iter().zip(work_values)) {
        texts.push(name.to_owned());
        columns.row(&[value as f64, value as f64 / counts.forks as f64]);
    }
    recorder.observe(columns.with_texts("operation", texts).table("operations"))?;
    let forks = counts.forks as f64;
    let system = forks * FORK + rmap::Costs::QUAD_PENTIUM_III.time(&work);
    let user = forks * FORK_USER;
    let elapsed = (system + user) / PROCESSORS.min(f64::from(forkstorm.copies));
    for (name, value) in [
        ("time.elapsed", elapsed),
        ("time.user", user),
        ("time.system", system),
        ("faults.minor", (counts.do_no_page + counts.do_wp_page) as f64),
        ("forks.rate", forks / elapsed * 1e9),
        ("fork.system", system / forks),
    ] {
        recorder.observe(Observation::Metric(metric(name, Some(value))))?;
    }
    note(recorder, "times are those of a quad Pentium III: the published time without reverse map for each fork, and the modelled reverse map's".into())
}
