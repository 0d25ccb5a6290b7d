//! Published traces of every format.

use std::path::PathBuf;
use std::process::ExitCode;

use pagelab_reference::trace::{Format, Options, load};
use pagelab_testing::{Need, run, tests};

fn main() -> ExitCode {
    run(tests! {
        published_traces_are_read: TRACES;
    })
}

/// The traces.
const TRACES: Need = Need {
    name: "traces",
    on: &[],
    met: || {
        let there = folder().exists();
        if there { Ok(()) } else { Err(format!("no {}", folder().display())) }
    },
};

fn folder() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces").into()
}

fn published_traces_are_read() {
    for (name, format, references, pages) in [
        ("cloudPhysicsIO.oracleGeneral.bin", Format::OracleGeneral, 113_872, 48_974),
        ("gcc.trace.gz", Format::LoadStore, 515_683, 0),
        ("loop.trace.gz", Format::Text, 505_500, 0),
        ("2_pools.trace.gz", Format::Text, 0, 0),
        ("gli.trace.gz", Format::Text, 0, 0),
    ] {
        let trace = load(&folder().join(name), &Options::default()).unwrap();
        assert_eq!(trace.reading.format, format, "{name}");
        assert!(references == 0 || trace.stream.len() == references, "{name}: {}", trace.stream.len());
        assert!(pages == 0 || trace.stream.pages() == pages, "{name}: {}", trace.stream.pages());
    }
}
