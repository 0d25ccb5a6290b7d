//! The standard suite: what `pagelab run` performs when no experiment is named: each part
//! [`REPEAT`] times or more, about two minutes in all on a slow disk.
//!
//! First what one access costs from the caches to a page fault, which pages nothing. Then looks at anonymous
//! memory and one at a file, all inside a limit of 64 MiB: a mapping that fits (what a reference costs), the same
//! references where a third does not fit, in random order (what paging costs, and what the kernel keeps) to a swap
//! file and to zram, and in order; and a file larger than the limit. Then every other experiment in a short form;
//! the clock goes before them all, too.

use pagelab_experiment::experiments::{
    Access, Clock, Command, Faultscale, Fileread, Forkstorm, Latency, Paging, Seqread, Touch, Vmtest,
};
use pagelab_experiment::setting::Swap;
use pagelab_experiment::{Experiment, Setting, Size, Sizes};
use pagelab_reference::Pattern;

/// Repetitions of each part, so that every figure has a spread; a part may have [`Part::more`].
pub const REPEAT: u32 = 3;

/// One part of a suite.
pub struct Part {
    /// Its name within the suite; the run is called after it.
    pub name: &'static str,
    /// What is done.
    pub experiment: Experiment,
    /// The conditions that the part is about; without them it is none.
    pub asked: Setting,
    /// Repetitions beyond those of the others: for parts that are compared, as no rank test tells three from three.
    pub more: u32,
}

/// A part that is about no condition.
fn part(name: &'static str, experiment: Experiment) -> Part {
    Part { name, experiment, asked: Setting::default(), more: 0 }
}

/// The standard suite's parts in order.
pub fn parts() -> Vec<Part> {
    let paging = |pages, references, pattern| Paging {
        pages,
        references,
        pattern,
        touch: Touch::Page,
        ..Paging::default()
    };
    let random = || Experiment::Mapanon(paging(24_576, 100_000, Pattern::SmoothSinRandom));
    let sizes = |list: &[u64]| Sizes::List(list.iter().map(|&mib| Size::Bytes(mib << 20)).collect());
    vec![
        part("latency", Experiment::Latency(Latency::default())),
        part(FITS, Experiment::Mapanon(paging(12_288, 1_000_000, Pattern::Uniform))),
        Part { more: 1, ..part(RANDOM, random()) },
        Part {
            asked: Setting { swap: Some(Swap::Zram), ..Setting::default() },
            more: 1,
            ..part("zram", random())
        },
        part(SWEEP, Experiment::Mapanon(paging(24_576, 2_000_000, Pattern::SmoothSin))),
        part(FILE, Experiment::Mapfile(paging(24_576, 1_000, Pattern::Zipf(0.8)))),
        part("clock", clock()),
        part(
            "vmtest",
            Experiment::Vmtest(Vmtest {
                sizes: Some(sizes(&[1, 4, 16, 32, 48, 56, 64, 72, 96])),
                seconds: 0.15,
                ..Vmtest::default()
            }),
        ),
        part("forkstorm", Experiment::Forkstorm(Forkstorm { forks: 400, ..Forkstorm::default() })),
        part(
            "faultscale",
            Experiment::Faultscale(Faultscale {
                workers: vec![1, 2, 4, 8],
                seconds: 0.15,
                ..Faultscale::default()
            }),
        ),
        part(
            "fileread",
            Experiment::Fileread(Fileread {
                access: vec![Access::Pread, Access::Nowait],
                sizes: Some(sizes(&[8, 32, 96])),
                reads: 4000,
                seconds: 0.5,
                ..Fileread::default()
            }),
        ),
        part(
            "seqread",
            Experiment::Seqread(Seqread {
                size: Size::Bytes(8 << 20),
                transfers: Sizes::List([4096, 65536, 1 << 20].map(Size::Bytes).to_vec()),
                seconds: 0.3,
                ..Seqread::default()
            }),
        ),
        part("command", Experiment::Command(sort())),
    ]
}

/// The clock's short form.
pub fn clock() -> Experiment {
    Experiment::Clock(Clock::short())
}

/// A program that every system has: it sorts two hundred thousand numbers.
fn sort() -> Command {
    Command::new(["sh", "-c", "seq 200000 | sort -r"].map(str::to_owned).to_vec())
}

/// A mapping that fits into the limit.
pub const FITS: &str = "fits";
/// A mapping of one and a half times the limit, referenced at random.
pub const RANDOM: &str = "random";
/// The same mapping, referenced in order.
pub const SWEEP: &str = "sweep";
/// A file of one and a half times the limit.
pub const FILE: &str = "file";
