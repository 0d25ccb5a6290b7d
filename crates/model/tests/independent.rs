//! The policies on a real trace, against the misses that an independent simulator (libCacheSim at its
//! default parameters) counted.

use std::path::PathBuf;
use std::process::ExitCode;

use pagelab_model::policy::opt::NextUse;
use pagelab_model::policy::{PolicyKind, lru_misses, opt_misses};
use pagelab_reference::Stream;
use pagelab_reference::trace::{Options, load};
use pagelab_testing::{Need, run, tests};

fn main() -> ExitCode {
    run(tests! {
        misses_on_a_real_trace_are_those_of_an_independent_simulator: TRACES;
        lirs_has_the_misses_of_its_authors_program: TRACES;
    })
}

/// The trace and the simulator's counts.
const TRACES: Need = Need {
    name: "traces",
    on: &[],
    met: || {
        let table = folder().join("expected.csv");
        if table.exists() { Ok(()) } else { Err(format!("no {}", table.display())) }
    },
};

fn folder() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces").into()
}

/// Where the simulator's definition differs, the least and greatest ratio of our misses to its own; the
/// doc comment of the policy says why. All others must agree to the last miss.
const DIFFERENT: [(&str, f64, f64); 2] = [("lirs", 0.99, 1.03), ("clockpro", 0.85, 1.002)];

fn misses_on_a_real_trace_are_those_of_an_independent_simulator() {
    let table = std::fs::read_to_string(folder().join("expected.csv")).unwrap();
    let stream = load(&folder().join("cloudPhysicsIO.oracleGeneral.bin"), &Options::default())
        .expect("the sample trace can be read")
        .stream;
    let future = NextUse::of(stream.pages(), stream.references());
    let mut compared = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        let (theirs, frames, wanted) =
            (fields[1], fields[2].parse().unwrap(), fields[4].parse::<u64>().unwrap());
        let ours = match theirs {
            "s3fifo" => "s3-fifo",
            "clockpro" => "clock-pro",
            // Its share of HIR frames has no lower bound but one frame.
            "lirs" => "lirs:least=1",
            "belady" => "opt",
            same => same,
        };
        let kind: PolicyKind = ours.parse().unwrap();
        let misses = kind.build(stream.pages(), frames, Some(&future)).misses(stream.references());
        match DIFFERENT.iter().find(|(name, ..)| *name == theirs) {
            None => assert_eq!(misses, wanted, "{kind} with {frames} frames"),
            Some((_, low, high)) => {
                let ratio = misses as f64 / wanted as f64;
                assert!(
                    (*low..=*high).contains(&ratio),
                    "{kind} with {frames} frames: {misses}, not {wanted}"
                );
            }
        }
        match theirs {
            "lru" => assert_eq!(lru_misses(&stream, frames), wanted),
            "belady" => assert_eq!(opt_misses(&stream, frames), wanted),
            _ => {}
        }
        compared += 1;
    }
    assert!(compared >= 100, "only {compared} rows compared");
}

fn lirs_has_the_misses_of_its_authors_program() {
    let table = std::fs::read_to_string(folder().join("lirs-jiang.csv")).unwrap();
    let mut compared = 0;
    let mut loaded: Option<(String, Stream)> = None;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(',').collect();
        if loaded.as_ref().is_none_or(|(name, _)| name != fields[0]) {
            let trace = load(&folder().join(fields[0]), &Options::default()).expect("the trace can be read");
            // That program takes a reference to the page referenced just before as no reference.
            let mut list = trace.stream.references().to_vec();
            list.dedup();
            loaded = Some((fields[0].to_owned(), Stream::new(trace.stream.pages(), list)));
        }
        let (_, stream) = loaded.as_ref().expect("just loaded");
        let (frames, wanted): (u32, u64) = (fields[1].parse().unwrap(), fields[3].parse().unwrap());
        let kind: PolicyKind = "lirs".parse().unwrap();
        let misses = kind.build(stream.pages(), frames, None).misses(stream.references());
        assert_eq!(misses, wanted, "{} with {frames} frames", fields[0]);
        compared += 1;
    }
    assert!(compared >= 50, "only {compared} rows compared");
}
