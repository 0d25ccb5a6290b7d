//! The policies on generated patterns, against the misses that an independent simulator (libCacheSim) counted on
//! the same streams: `patterns.csv`, which says how it was made. It needs nothing but the repository.

use std::collections::BTreeMap;

use pagelab_model::mrc::lru::LruCurve;
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::replay;
use pagelab_reference::{Pattern, Stream};

/// (points that were compared, those that differ as text) for each policy.
fn compare() -> BTreeMap<String, (usize, Vec<String>)> {
    let mut found: BTreeMap<String, (usize, Vec<String>)> = BTreeMap::new();
    let mut made: BTreeMap<String, Stream> = BTreeMap::new();
    for line in include_str!("patterns.csv").lines().filter(|line| !line.starts_with('#')) {
        let [pattern, pages, references, seed, policy, frames, misses] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            panic!("seven fields: {line}")
        };
        let number = |text: &str| text.parse::<u64>().unwrap();
        let stream = made.entry(format!("{pattern},{pages},{references},{seed}")).or_insert_with(|| {
            let pattern: Pattern = pattern.parse().unwrap();
            pattern.stream(number(pages), number(references), number(seed)).unwrap()
        });
        let kind: PolicyKind = policy.parse().unwrap();
        let frames = number(frames) as u32;
        // Where the segments are not of one size, libCacheSim drops pages from the remainder on a hit.
        if matches!(kind, PolicyKind::Slru { segments } if !frames.is_multiple_of(u32::from(segments))) {
            continue;
        }
        let ours = replay(stream, &kind, frames).misses;
        if kind == PolicyKind::Lru {
            assert_eq!(LruCurve::of(stream).misses(frames), ours, "{line}");
        }
        let (points, different) = found.entry(policy.to_owned()).or_default();
        *points += 1;
        if ours != number(misses) {
            different.push(format!("{pattern} with {frames} frames: {ours}, not {misses}"));
        }
    }
    found
}

#[test]
fn misses_are_those_of_an_independent_simulator() {
    let found = compare();
    for (policy, (points, different)) in &found {
        println!("{policy}: {} of {points} points equal", points - different.len());
    }
    for (policy, (points, different)) in &found {
        assert!(*points >= 50, "{policy}: only {points} points");
        assert_eq!(different, &Vec::<String>::new(), "{policy}");
    }
    assert_eq!(found.len(), 10);
}
