//! The standard suite: what `pagelab run` performs when no experiment is named: each part
//! [`REPEAT`] times, about a minute on a slow disk.
//!
//! Three looks at anonymous memory and one at a file, all inside a limit of 64 MiB: a mapping
//! that fits (what a reference costs), the same references where a third does not fit, in random
//! order (what paging costs, and what the kernel keeps) and in order; and a file larger than the
//! limit.

use pagelab_experiment::experiments::{Paging, Touch};
use pagelab_experiment::{Experiment, Size};
use pagelab_reference::Pattern;

/// The limit of the suite.
pub const MEMORY: Size = Size::Bytes(64 << 20);

/// Repetitions of each part, so that every figure has a spread.
pub const REPEAT: u32 = 3;

/// One part of the suite.
pub struct Part {
    /// Its name within the suite; the run is called after it.
    pub name: &'static str,
    /// What is done.
    pub experiment: Experiment,
}

/// The parts in order.
pub fn parts() -> Vec<Part> {
    let paging = |pages, references, pattern| Paging {
        pages,
        references,
        pattern,
        touch: Touch::Page,
        ..Paging::default()
    };
    vec![
        Part { name: FITS, experiment: Experiment::Mapanon(paging(12_288, 1_000_000, Pattern::Uniform)) },
        Part {
            name: RANDOM,
            experiment: Experiment::Mapanon(paging(24_576, 200_000, Pattern::SmoothSinRandom)),
        },
        Part { name: SWEEP, experiment: Experiment::Mapanon(paging(24_576, 2_000_000, Pattern::SmoothSin)) },
        Part { name: FILE, experiment: Experiment::Mapfile(paging(24_576, 5_000, Pattern::Zipf(0.8))) },
    ]
}

/// A mapping that fits into the limit.
pub const FITS: &str = "fits";
/// A mapping of one and a half times the limit, referenced at random.
pub const RANDOM: &str = "random";
/// The same mapping, referenced in order.
pub const SWEEP: &str = "sweep";
/// A file of one and a half times the limit.
pub const FILE: &str = "file";
