//! Verdicts, scores and distances of claims.

use super::*;

fn judged(tolerance: Tolerance, published: f64, model: f64) -> Verdict {
    Verdict::of(tolerance.used(published, model))
}

fn claim(id: &str, role: Role, published: f64, model: f64) -> Claim {
    let mut claim = Claim {
        paper: "p".into(),
        id: id.into(),
        what: id.into(),
        unit: String::new(),
        published: Some(published),
        words: None,
        printed: String::new(),
        model,
        detail: None,
        distance: None,
        tolerance: Tolerance::Share(0.1),
        why: String::new(),
        verdict: Verdict::Not,
        role,
        suspected: None,
        ablation: None,
        marginal: false,
        follows: Vec::new(),
        repeats: None,
        freedom: 1.0,
    };
    claim.judge();
    claim
}

#[test]
fn claims_with_little_to_spare_are_marginal() {
    let marginal = |model: f64| claim("c", Role::HeldOut, 100.0, model).marginal;
    assert!(!marginal(100.0) && !marginal(108.9) && marginal(109.5) && marginal(90.5));
    // A miss is a miss.
    assert!(!marginal(111.0));
    for (tolerance, model) in [
        (Tolerance::AtLeast(10.0), 10.5),
        (Tolerance::AtMost(10.0), 9.5),
        (Tolerance::Range(20.0, 30.0), 20.4),
    ] {
        let mut claim = Claim { tolerance, model, ..claim("c", Role::HeldOut, 1.0, 1.0) };
        claim.judge();
        assert!(claim.marginal && claim.verdict == Verdict::Reproduced, "{tolerance:?}");
    }
}

#[test]
fn a_model_figure_counts_once_and_never_if_a_constant_has_seen_it() {
    let mut claims = vec![
        claim("first", Role::HeldOut, 100.0, 101.0),
        claim("again", Role::HeldOut, 99.0, 101.05),
        claim("other", Role::HeldOut, 99.0, 102.0),
        claim("as fitted", Role::HeldOut, 51.0, 50.0),
        claim("fitted", Role::Fitted, 50.0, 50.0),
        Claim { follows: vec!["first".into()], ..claim("sum", Role::HeldOut, 3.0, 3.0) },
    ];
    find_repeats(&mut claims);
    let repeats: Vec<Option<&str>> = claims.iter().map(|claim| claim.repeats.as_deref()).collect();
    assert_eq!(repeats, [None, Some("first"), None, Some("fitted"), None, None]);
    let [held_out, fitted] = &scores(&claims)[..] else { panic!("two roles") };
    assert_eq!((held_out.claims, held_out.reproduced, held_out.dependent), (2, 2, 3));
    // 1% and 3%.
    assert!((held_out.distance.unwrap() - 0.0202).abs() < 1e-4, "{held_out:?}");
    assert_eq!((fitted.claims, fitted.distance), (1, Some(0.0)));
}

#[test]
fn a_claim_is_reproduced_within_partly_within_twice_and_else_not() {
    for (tolerance, good, partly, bad) in [
        (Tolerance::Factor(1.35), 134.0, 1.35 * 134.0, 183.0),
        (Tolerance::Share(0.1), 91.0, 119.0, 121.0),
        (Tolerance::Difference(5.0), 95.0, 109.0, 111.0),
        (Tolerance::Range(90.0, 110.0), 110.0, 120.0, 121.0),
        (Tolerance::AtMost(10.0), 10.0, 20.0, 21.0),
        (Tolerance::AtLeast(10.0), 10.0, 5.0, 4.0),
    ] {
        assert_eq!(judged(tolerance, 100.0, good), Verdict::Reproduced);
        assert_eq!(judged(tolerance, 100.0, partly), Verdict::Partly);
        assert_eq!(judged(tolerance, 100.0, bad), Verdict::Not);
    }
    assert_eq!(judged(Tolerance::Exact, 3.0, 3.0), Verdict::Reproduced);
    assert_eq!(judged(Tolerance::Exact, 3.0, 3.1), Verdict::Not);
    assert_eq!(judged(Tolerance::Factor(1.1), 0.0, 0.0), Verdict::Reproduced);
    assert_eq!(judged(Tolerance::AtMost(0.0), 0.0, 1.0), Verdict::Not);
    assert_eq!(judged(Tolerance::AtLeast(1.0), 0.0, -1.0), Verdict::Not);
    assert_eq!(judged(Tolerance::Range(3_000.0, 28_000.0), f64::NAN, 28.0), Verdict::Not);
}

#[test]
fn a_figure_that_is_no_number_never_passes() {
    for tolerance in [
        Tolerance::Factor(1.35),
        Tolerance::Share(0.1),
        Tolerance::Difference(1.0),
        Tolerance::Range(0.0, 2.0),
        Tolerance::AtMost(1.0),
        Tolerance::AtLeast(1.0),
        Tolerance::Exact,
    ] {
        assert_eq!(judged(tolerance, 1.0, f64::NAN), Verdict::Not);
        assert_eq!(judged(tolerance, 1.0, f64::INFINITY), Verdict::Not);
    }
}
