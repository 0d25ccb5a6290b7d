//! Every study is made, and says what it said before: the whole table of claims as a golden file. And no
//! claim is counted that would hold of a model without the mechanism it is about.
//!
//! The models are seeded and in virtual time, so a claim changes only when a model does. Then look at the
//! difference, and accept it (`cargo insta accept`) if it is meant.

use std::fmt::Write;

use pagelab_analysis::figure::Series;
use pagelab_studies::claim::{Claim, Distance, Role, Verdict, scores};
use pagelab_studies::{Change, Options, STUDIES, named};

/// Three digits: the last ones of a logarithm may differ between mathematical libraries.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits);
    format!("{}", (value * scale).round() / scale)
}

fn line(claim: &Claim) -> String {
    let published = claim.published.map(number).into_iter().chain(claim.words.clone()).collect::<Vec<_>>();
    let distance = match claim.distance {
        None => "—".to_owned(),
        Some(Distance::Ratio(ratio)) => format!("× {}", number(ratio)),
        Some(Distance::Difference(difference)) => format!("{difference:+.2}"),
    };
    let detail = claim.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
    format!(
        "{} | {} | {} | {}{detail} | {} | {distance} | {} | {}",
        claim.paper,
        claim.what,
        published.join(": "),
        number(claim.model),
        claim.unit,
        claim.verdict.name(),
        claim.role.name(),
    )
}

#[test]
fn claims_are_what_they_were() {
    let mut text = String::new();
    for kind in STUDIES {
        let study = kind.study(&Options::default()).unwrap();
        for claim in &study.claims {
            assert_eq!(claim.paper, study.name);
            writeln!(text, "{}", line(claim)).unwrap();
        }
        for score in scores(&study.claims) {
            let (role, all) = (score.role.name(), score.claims);
            writeln!(
                text,
                "{} | {role}: {} reproduced, {} partly of {all}",
                study.name, score.reproduced, score.partly
            )
            .unwrap();
        }
        assert!(!study.parameters.is_empty() && !study.tables.is_empty() && !study.plots.is_empty());
        for table in &study.tables {
            assert!(table.rows.iter().all(|(_, figures)| figures.len() == table.columns.len()));
        }
        for plot in &study.plots {
            let finite = |figure: Option<f64>| figure.is_some_and(f64::is_finite);
            let drawn = |series: &Series| series.points().all(|(x, y)| finite(x) && finite(y));
            assert!(plot.series.iter().all(drawn), "{}", plot.title);
        }
    }
    insta::assert_snapshot!("claims", text);
}

/// Every claim that is counted as reproduced names an ablation, and is not reproduced under it.
fn ablations(study: &str) {
    let kind = named(study).unwrap();
    let whole = kind.claims(&Options::default()).unwrap();
    let mut survivors = Vec::new();
    for name in kind.book().unwrap().ablations.keys() {
        let change = Change::Without(name.clone());
        let own = |_: &str, ablation: Option<&str>| ablation == Some(name.as_str());
        let without = kind.claims_that(&Options { change, ..Options::default() }, own).unwrap();
        let own: Vec<&Claim> = whole.iter().filter(|claim| claim.ablation.as_ref() == Some(name)).collect();
        assert!(!own.is_empty(), "{study}: no claim names {name}");
        for (claim, ablated) in own.iter().zip(&without) {
            assert_eq!(claim.id, ablated.id);
            let counted = claim.role != Role::Identity && claim.verdict == Verdict::Reproduced;
            if counted && ablated.verdict == Verdict::Reproduced {
                survivors.push(format!("{} under {name}: {}", claim.id, number(ablated.model)));
            }
        }
    }
    // Whatever counts as reproduced was looked at: the ablations are those that the claims name.
    let tried =
        |claim: &&Claim| kind.book().unwrap().ablations.contains_key(claim.ablation.as_ref().unwrap());
    assert!(whole.iter().filter(|claim| claim.role != Role::Identity).all(|claim| tried(&claim)));
    assert!(survivors.is_empty(), "{study}: claims survive their ablation: {survivors:#?}");
}

macro_rules! ablations {
    ($($test:ident $study:literal)*) => { $(#[test] fn $test() { ablations($study); })* };
}

ablations! {
    every_claim_of_irlam_fails_without_its_mechanism "irlam-1990"
    every_claim_of_morton_fails_without_its_mechanism "morton-2002"
    every_claim_of_gorman_fails_without_its_mechanism "gorman-2002"
    every_claim_of_mcdougall_2005_fails_without_its_mechanism "mcdougall-2005"
    every_claim_of_mcdougall_2007_fails_without_its_mechanism "mcdougall-2007"
    every_claim_of_dillon_fails_without_its_mechanism "dillon-2011"
}

/// What is not reproduced has its distance and what is suspected, and nothing is suspected of what is reproduced.
#[test]
fn every_miss_has_its_reason() {
    for kind in STUDIES {
        let claims = kind.claims(&Options::default()).unwrap();
        let missed: Vec<&Claim> = claims
            .iter()
            .filter(|claim| claim.verdict != Verdict::Reproduced && claim.role != Role::Identity)
            .collect();
        for claim in &missed {
            assert!(claim.suspected.is_some(), "{}: {} has no reason", kind.name, claim.id);
        }
        for (id, why) in kind.book().unwrap().suspected {
            let told = missed.iter().any(|claim| claim.suspected.as_ref() == Some(&why));
            assert!(told, "{}: {id}: {why}", kind.name);
        }
    }
}

/// The verdict that an assumed value decides is the same over the range given, and another outside.
#[test]
fn assumed_values_decide_where_they_are_said_to() {
    for kind in STUDIES {
        for assumption in kind.book().unwrap().assumptions {
            let Some(decides) = &assumption.decides else { continue };
            let verdict = |value: f64| {
                let change = Change::With(assumption.id.clone(), value);
                let options = Options { change, ..Options::default() };
                let decided = decides.claim.split('/').next().unwrap();
                let claims = kind.claims_that(&options, |id, _| id == decided).unwrap();
                let claim = claims.into_iter().find(|claim| claim.id == decides.claim);
                let claim = claim.unwrap_or_else(|| panic!("{} decides nothing", assumption.id));
                (claim.verdict, claim.model)
            };
            let at = verdict(assumption.value);
            let place = format!("{}, {}: {at:?}", kind.name, assumption.id);
            assert!(!decides.otherwise.is_empty(), "{place}: decides nothing");
            for end in [decides.holds.0, decides.holds.1] {
                let found = verdict(end);
                assert_eq!(found.0, at.0, "{place}, at {end}: {found:?}");
            }
            for &value in &decides.otherwise {
                let found = verdict(value);
                assert!(!(decides.holds.0..=decides.holds.1).contains(&value), "{place}");
                assert_ne!(found.0, at.0, "{place}, at {value}: {found:?}");
            }
        }
    }
}

#[test]
fn an_unknown_ablation_is_refused_with_what_there_is() {
    let change = Change::Without("nothing".into());
    let error = named("irlam-1990").unwrap().claims(&Options { change, ..Options::default() }).unwrap_err();
    assert!(error.to_string().contains("more-pmegs"), "{error}");
}

#[test]
fn rows_to_fit_change_the_roles_and_the_parameters() {
    let dillon = named("dillon-2011").unwrap();
    let options = Options { fit: Some(vec![1, 3, 15, 16]), ..Options::default() };
    let study = dillon.study(&options).unwrap();
    let held = |claim: &&Claim| claim.id.starts_with("real/") && claim.role == Role::HeldOut;
    // Seventeen rows, four fitted, two given.
    assert_eq!(study.claims.iter().filter(held).count(), 11);
    let other = dillon.study(&Options::default()).unwrap();
    assert_ne!(study.parameters[0].value, other.parameters[0].value);
    let none = Options { fit: Some(vec![99]), ..Options::default() };
    assert!(dillon.study(&none).unwrap_err().to_string().contains("row 99"));
}
