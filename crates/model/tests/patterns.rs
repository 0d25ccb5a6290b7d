//! The policies on generated patterns, against the misses that an independent simulator counted on
//! the same streams. It needs nothing but the repository.

use pagelab_model::conformance::conformance;
use pagelab_model::mrc::lru::LruCurve;
use pagelab_model::policy::{PolicyKind, lru_misses};
use pagelab_reference::Pattern;

#[test]
fn misses_are_those_of_an_independent_simulator() {
    let found = conformance();
    for one in &found {
        println!(
            "{}: {} of {} points equal",
            one.policy,
            one.points as usize - one.different.len(),
            one.points
        );
    }
    for one in &found {
        assert!(one.points >= 50, "{}: only {} points", one.policy, one.points);
        assert_eq!(one.different, Vec::new(), "{}", one.policy);
        assert_eq!(one.left_out > 0, matches!(one.policy, PolicyKind::Slru { .. }), "{}", one.policy);
    }
    assert_eq!(found.len(), 12);
}

#[test]
fn the_curve_of_lru_has_the_misses_of_every_size() {
    for pattern in [Pattern::Zipf(0.8), Pattern::SmoothSinRandom, Pattern::Drift(0.25)] {
        let stream = pattern.stream(1000, 10_000, 1).unwrap();
        let curve = LruCurve::of(&stream);
        for frames in [20, 33, 77, 400, 960] {
            assert_eq!(curve.misses(frames), lru_misses(&stream, frames), "{pattern} with {frames} frames");
        }
    }
}
