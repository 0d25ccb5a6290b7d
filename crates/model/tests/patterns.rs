//! The policies on generated patterns, against the misses that an independent simulator counted on
//! the same streams. It needs nothing but the repository.

use pagelab_model::conformance::conformance;
use pagelab_model::policy::PolicyKind;

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
    assert_eq!(found.len(), 13);
}
