//! Every study is made, and says what it said before: the whole table of claims as a golden file.
//!
//! The models are seeded and in virtual time, so a claim changes only when a model does. Then look at the
//! difference, and accept it (`cargo insta accept`) if it is meant.

use std::fmt::Write;

use pagelab_studies::claim::{Claim, Distance, Split, Value, Verdict};
use pagelab_studies::{Options, STUDIES, Study};

fn studies() -> Vec<Study> {
    STUDIES.iter().map(|kind| (kind.make)(&Options::default()).unwrap()).collect()
}

/// Three digits: the last ones of a logarithm may differ between mathematical libraries.
fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = 2 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits);
    format!("{}", (value * scale).round() / scale)
}

fn value(value: &Value) -> String {
    match value {
        Value::Number(figure) => number(*figure),
        Value::Words(words) => words.clone(),
    }
}

fn line(claim: &Claim) -> String {
    let published = claim.published.as_ref().map_or_else(|| "—".to_owned(), value);
    let distance = match claim.distance {
        None => "—".to_owned(),
        Some(Distance::Ratio(ratio)) => format!("× {}", number(ratio)),
        Some(Distance::Difference(difference)) => format!("{difference:+.2}"),
    };
    let split = if claim.split == Split::Fitted { "fitted" } else { "held out" };
    format!(
        "{} | {} | {published} | {} | {} | {distance} | {} | {split}",
        claim.paper,
        claim.what,
        value(&claim.model),
        claim.unit,
        claim.verdict.name(),
    )
}

#[test]
fn claims_are_what_they_were() {
    let studies = studies();
    let mut text = String::new();
    for study in &studies {
        for claim in &study.claims {
            assert_eq!(claim.paper, study.name);
            writeln!(text, "{}", line(claim)).unwrap();
        }
    }
    insta::assert_snapshot!("claims", text);
    for study in &studies {
        assert!(!study.parameters.is_empty() && !study.tables.is_empty() && !study.plots.is_empty());
        for table in &study.tables {
            assert!(table.rows.iter().all(|(_, figures)| figures.len() == table.columns.len()));
        }
        for plot in &study.plots {
            let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
            assert!(plot.series.iter().all(|series| series.points.iter().all(finite)), "{}", plot.title);
        }
    }
    accuracy(&studies);
}

/// What was asked of the models, whatever the golden file says.
fn accuracy(studies: &[Study]) {
    let claims = |name: &str| -> Vec<&Claim> {
        studies.iter().filter(|study| study.name == name).flat_map(|study| &study.claims).collect()
    };
    let reproduced = |claim: &&Claim| claim.verdict == Verdict::Reproduced;
    let all = |name: &str, keep: &dyn Fn(&str) -> bool| {
        let kept: Vec<&Claim> = claims(name).into_iter().filter(|claim| keep(&claim.what)).collect();
        assert!(!kept.is_empty(), "{name}");
        let missed: Vec<&str> = kept.iter().filter(|c| !reproduced(c)).map(|c| c.what.as_str()).collect();
        assert!(missed.is_empty(), "{name}: {missed:?}");
    };
    all("irlam-1990", &|what| !what.contains("swap-ins"));
    all("morton-2002", &|what| !what.contains("share of the kernel") && !what.contains("found taken"));
    all("mcdougall-2005", &|_| true);
    all("dillon-2011", &|what| !what.contains("system times"));
    all("mcdougall-2007", &|what| !what.contains("part"));
}

#[test]
fn rows_to_fit_change_the_split_and_the_parameters() {
    let dillon = pagelab_studies::named("dillon-2011").unwrap();
    let options = Options { fit: Some(vec![1, 3, 15, 16]), ..Options::default() };
    let study = (dillon.make)(&options).unwrap();
    let held = study.claims.iter().filter(|c| c.what.ends_with("real") && c.split == Split::HeldOut).count();
    assert_eq!(held, 13);
    let other = (dillon.make)(&Options::default()).unwrap();
    assert_ne!(study.parameters[0].value, other.parameters[0].value);
    let none = Options { fit: Some(vec![99]), ..Options::default() };
    assert!((dillon.make)(&none).unwrap_err().to_string().contains("row 99"));
}
