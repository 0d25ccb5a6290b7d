//! The study `mm-today`: what memory management of today does on a target: first touches, huge pages of both
//! kinds, compressed swap, dirty pages, faults of several threads, forks. Each has a few figures, which are explained beside their
//! values by the glossary, so that whoever does not know them need not look them up.

use pagelab_analysis::finding::Figure;
use pagelab_experiment::experiments::{Addressing, Faultscale, Forkstorm, Paging, Touch};
use pagelab_experiment::metrics;
use pagelab_experiment::setting::{Limit, Swap};
use pagelab_experiment::{Experiment, MetricId, Run, Setting, Size, glossary};
use pagelab_reference::Pattern;

use crate::context::Context;
use crate::output::{say, sentences};
use crate::suite::Part;

/// Its name.
pub const NAME: &str = "mm-today";

/// One line for help and completion.
pub const TITLE: &str = "a tour of today's memory management, each figure explained";

/// The figures of each part that are explained, the first first.
const FIGURES: [(&str, &[MetricId]); 8] = [
    ("populate", &[metrics::POPULATE_TOUCH, metrics::POPULATE_MAP]),
    ("unmap", &[metrics::UNMAP_MUNMAP, metrics::UNMAP_DONTNEED]),
    ("thp", &[metrics::HUGE_COVERAGE_BEFORE, metrics::FAULTS_POPULATE]),
    ("mthp", &[metrics::FOLIO_COVERAGE_BEFORE, metrics::FAULTS_POPULATE]),
    ("zram", &[metrics::ACCESS_MAJOR_P50, metrics::ZRAM_RATIO]),
    (
        "dirty",
        &[
            metrics::ACCESS_READ_MEAN,
            metrics::ACCESS_WRITE_MEAN,
            metrics::DIRTY_THROTTLED,
            metrics::FSYNC_P50,
        ],
    ),
    ("faults", &[metrics::THROUGHPUT_FIRST, metrics::THROUGHPUT_BEST]),
    ("forks", &[metrics::FORK_COST, metrics::EXIT_COST]),
];

/// The parts in order.
pub fn parts() -> Vec<Part> {
    let paging = |pages, references, pattern| Paging {
        pages,
        references,
        pattern,
        touch: Touch::Word,
        ..Paging::default()
    };
    let limit = |mib: u64| Some(Limit::Of(Size::Bytes(mib << 20)));
    let huge = |sizes: &str| Setting {
        memory: Some(Limit::None),
        thp: Some(sizes.parse().expect("sizes as they are typed")),
        ..Setting::default()
    };
    let small = Addressing { pages: 2048, rounds: 9, ..Addressing::default() };
    let part = |name, experiment, asked| Part { name, experiment, asked, more: 0 };
    let fresh = || Experiment::Mapanon(paging(16_384, 20_000, Pattern::Uniform));
    let dirty = Paging {
        writes: "5%".parse().expect("a percentage as it is typed"),
        syncs: 10,
        ..paging(8192, 50_000, Pattern::Zipf(0.9))
    };
    let compressed = Setting { memory: limit(16), swap: Some(Swap::Zram), ..Setting::default() };
    vec![
        part("populate", Experiment::Populate(small.clone()), Setting::default()),
        part("unmap", Experiment::Unmap(small), Setting::default()),
        part("thp", fresh(), huge("always")),
        part("mthp", fresh(), huge("64k:always")),
        part("zram", Experiment::Mapanon(paging(8192, 50_000, Pattern::Zipf(0.9))), compressed),
        part("dirty", Experiment::Mapfile(dirty), Setting { memory: limit(64), ..Setting::default() }),
        part(
            "faults",
            Experiment::Faultscale(Faultscale { workers: vec![1, 2], seconds: 0.5, ..Faultscale::default() }),
            Setting::default(),
        ),
        part(
            "forks",
            Experiment::Forkstorm(Forkstorm { copies: 1, forks: 400, ..Forkstorm::default() }),
            Setting::default(),
        ),
    ]
}

/// What parts are performed under that are about no condition: no limit, which takes setting up, and of a guest a boot more, for it
/// would come with a disk for swap that the others do not have.
pub fn usual() -> Setting {
    Setting { memory: Some(Limit::None), ..Setting::default() }
}

/// The figures of `runs` with what each means. A run's name is `prefix`, its part's and, where there are several targets, its
/// target's number.
fn explained(prefix: &str, runs: &[&Run]) -> Vec<String> {
    let meanings = glossary::metrics();
    let meaning =
        |name: &str| meanings.iter().find(|entry| entry.name == name).map_or("", |entry| &entry.text);
    let of_part = |run: &Run, part: &str| {
        let rest = run.header.name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('-'));
        rest.and_then(|rest| rest.split('-').next()) == Some(part)
    };
    let lines = runs.iter().flat_map(|run| {
        let figures = FIGURES.iter().filter(|(part, _)| of_part(run, part)).flat_map(|(_, names)| *names);
        figures.filter_map(|name| {
            let figure = Figure::of(run, *name)?;
            let value = pagelab_report::text::value(Some(figure.value), figure.unit);
            Some(format!("{}: {name} {value}. {}", run.header.name, meaning(name.name)))
        })
    });
    lines.collect()
}

/// Prints what the figures of `runs` mean.
pub fn explain(prefix: &str, runs: &[&Run], context: &Context) {
    say!("\nWhat the figures mean");
    for line in explained(prefix, runs) {
        sentences(&line, "  ", "    ", &context.style);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_figures_that_the_glossary_explains() {
        let named: Vec<&str> = parts().iter().map(|part| part.name).collect();
        assert_eq!(named, FIGURES.map(|(part, _)| part));
        let known = glossary::metrics();
        for name in FIGURES.iter().flat_map(|(_, names)| *names) {
            assert!(known.iter().any(|entry| *name == *entry.name && !entry.text.is_empty()), "{name}");
        }
    }
}
