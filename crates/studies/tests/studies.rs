//! Every study is made, and says what it said before: the whole table of claims as a golden file. And no
//! claim is counted that would hold of a model without the mechanism it is about.
//!
//! The models are seeded and in virtual time, so a claim changes only when a model does. Then look at the
//! difference, and accept it (`cargo insta accept`) if it is meant.

use std::fmt::Write;

use pagelab_analysis::figure::Series;
use pagelab_model::parameter::{Declared, Value};
use pagelab_model::target::Model;
use pagelab_studies::claim::{Claim, Distance, Role, Verdict, scores};
use pagelab_studies::study::Standing;
use pagelab_studies::what_if::sweep;
use pagelab_studies::{Change, Options, STUDIES, StudyKind, named};

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
    let marginal = if claim.marginal { ", marginal" } else { "" };
    let dependent = if claim.counted() || claim.role == Role::Identity { "" } else { ", not counted" };
    format!(
        "{} | {} | {} | {}{detail} | {} | {distance} | {}{marginal} | {}{dependent} | {}",
        claim.paper,
        claim.what,
        published.join(": "),
        number(claim.model),
        claim.unit,
        claim.verdict.name(),
        claim.role.name(),
        number(claim.freedom),
    )
}

#[test]
fn claims_are_what_they_were() {
    let mut text = String::new();
    let mut all = Vec::new();
    for kind in STUDIES {
        let study = kind.study(&Options::default()).unwrap();
        all.extend(study.claims.clone());
        for claim in &study.claims {
            assert_eq!(claim.paper, study.name);
            writeln!(text, "{}", line(claim)).unwrap();
        }
        for score in scores(&study.claims) {
            let (role, all) = (score.role.name(), score.claims);
            let distance = score.distance.map_or_else(|| "—".to_owned(), number);
            writeln!(
                text,
                "{} | {role}: {} reproduced, {} marginally, {} partly of {all}, {} not counted; freedom {}, median \
                 distance {distance}",
                study.name,
                score.reproduced,
                score.marginal,
                score.partly,
                score.dependent,
                number(score.freedom)
            )
            .unwrap();
        }
        for found in &study.sensitivity {
            let (constant, survive, all) = (found.constant, found.survive, found.claims);
            writeln!(text, "{} | {constant} ± 10%: {survive} of {all} survive", study.name).unwrap();
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
    // The book gives the score of all studies.
    let score = scores(&all).into_iter().find(|score| score.role == Role::HeldOut).unwrap();
    let said = format!(
        "{} of {} distinct predictions are reproduced, with a median distance of {:.1}%",
        score.reproduced,
        score.claims,
        100.0 * score.distance.unwrap()
    );
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/explanation/models/index.md");
    assert!(std::fs::read_to_string(page).unwrap().contains(&said), "{page} must say: {said}");
}

/// The verdict on every claim with the whole model, and under every ablation.
struct Matrix {
    /// Whole, and then by ablation in the order of their names.
    columns: Vec<Vec<Claim>>,
    ablations: Vec<String>,
}

impl Matrix {
    fn of(study: &str) -> Self {
        let kind = named(study).unwrap();
        let ablations: Vec<String> = kind.book().unwrap().ablations.keys().cloned().collect();
        let changes = ablations.iter().map(|name| Change::Without(name.clone()));
        let columns = std::iter::once(Change::None)
            .chain(changes)
            .map(|change| kind.claims(&Options { change, ..Options::default() }).unwrap())
            .collect();
        Self { columns, ablations }
    }

    fn text(&self) -> String {
        let mut text = String::from(
            "# The verdict on each claim with the whole model, and under each ablation. Written by PAGELAB_UPDATE=1 \
             cargo test -p pagelab-studies --test studies -- fails_without\n",
        );
        let named = self.ablations.join(",");
        writeln!(text, "claim,role,ablation,whole,{named}").unwrap();
        for (n, claim) in self.columns[0].iter().enumerate() {
            let own = claim.ablation.as_deref().unwrap_or("none");
            let verdicts: Vec<&str> = self.columns.iter().map(|column| column[n].verdict.name()).collect();
            writeln!(text, "{},{},{own},{}", claim.id, claim.role.name(), verdicts.join(",")).unwrap();
        }
        text
    }

    /// Reproduced claims that are counted, each with its verdicts under the ablations.
    fn reproduced(&self) -> impl Iterator<Item = (&Claim, Vec<Verdict>)> {
        let whole = self.columns[0].iter().enumerate();
        whole
            .filter(|(_, claim)| claim.role != Role::Identity && claim.verdict == Verdict::Reproduced)
            .map(|(n, claim)| (claim, self.columns[1..].iter().map(|column| column[n].verdict).collect()))
    }
}

/// Every claim that is counted as reproduced names an ablation, and is not reproduced under it; and
/// an ablation is of one mechanism: claims on others hold without it. The matrix of both is a file.
fn ablations(study: &str) {
    let matrix = Matrix::of(study);
    for (n, ablation) in matrix.ablations.iter().enumerate() {
        let names = |claim: &Claim| claim.ablation.as_ref() == Some(ablation);
        assert!(matrix.columns[0].iter().any(names), "{study}: no claim names {ablation}");
        let survivors: Vec<&str> = matrix
            .reproduced()
            .filter(|(claim, verdicts)| names(claim) && verdicts[n] == Verdict::Reproduced)
            .map(|(claim, _)| claim.id.as_str())
            .collect();
        assert!(survivors.is_empty(), "{study}: claims survive {ablation}: {survivors:?}");
        let (all, failed) = matrix.reproduced().fold((0, 0), |(all, failed), (_, verdicts)| {
            (all + 1, failed + usize::from(verdicts[n] != Verdict::Reproduced))
        });
        assert!(
            failed < all,
            "{study}: nothing holds without {ablation}, so it says nothing of its mechanism"
        );
    }
    let path = format!("{}/published/ablations/{study}.csv", env!("CARGO_MANIFEST_DIR"));
    let text = matrix.text();
    if std::fs::read_to_string(&path).is_ok_and(|found| found == text) {
        return;
    }
    if std::env::var_os("PAGELAB_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    panic!("{path} is stale, PAGELAB_UPDATE=1 writes it");
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

/// A model figure is one prediction, however many published figures it is near.
#[test]
fn no_held_out_claim_shares_its_model_figure_with_another() {
    for kind in STUDIES {
        let claims = kind.claims(&Options::default()).unwrap();
        let repeats: Vec<String> =
            claims.iter().filter_map(|c| Some(format!("{} as {}", c.id, c.repeats.as_ref()?))).collect();
        assert!(repeats.is_empty(), "{}: {repeats:?}", kind.name);
    }
}

/// What was fitted says with how many constants, and as many constants as figures make identities.
#[test]
fn fitted_and_derived_claims_have_freedom() {
    for kind in STUDIES {
        let claims = kind.claims(&Options::default()).unwrap();
        for claim in claims.iter().filter(|claim| claim.counted()) {
            let place = format!("{}: {}: {}", kind.name, claim.id, claim.freedom);
            assert!(0.0 < claim.freedom && claim.freedom <= 1.0, "{place}");
            assert!(claim.role != Role::Fitted || claim.freedom < 1.0, "{place}");
        }
        let uncounted = claims.iter().filter(|claim| !claim.counted());
        uncounted.for_each(|claim| assert_eq!(claim.freedom, 0.0, "{}: {}", kind.name, claim.id));
    }
}

/// Every fitted constant can be changed, and the model knows it by its name.
#[test]
fn every_fitted_constant_moves_a_figure() {
    for kind in STUDIES {
        let study = kind.study(&Options::default()).unwrap();
        let figures = |change| -> Vec<f64> {
            let claims = kind.claims(&Options { change, ..Options::default() }).unwrap();
            claims.iter().map(|claim| claim.model).collect()
        };
        let usual = figures(Change::Scaled("nothing", 1.0));
        for parameter in &study.parameters {
            let fitted = matches!(parameter.standing, Standing::Fitted { .. });
            assert_eq!(fitted, parameter.constant.is_some(), "{}: {}", kind.name, parameter.name);
            let Some(constant) = parameter.constant else { continue };
            // What stands between two ticks moves nothing until it passes one.
            let moves = [1.5, 0.5].into_iter().any(|scale| figures(Change::Scaled(constant, scale)) != usual);
            assert!(moves, "{}: {constant} moves nothing", kind.name);
            let found = study.sensitivity.iter().find(|found| found.constant == constant).unwrap();
            assert!(found.survive <= found.claims);
        }
    }
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
    // Of eleven configurations four are fitted and one is given.
    assert_eq!(study.claims.iter().filter(held).count(), 6);
    let other = dillon.study(&Options::default()).unwrap();
    assert_ne!(study.parameters[0].value, other.parameters[0].value);
    let none = Options { fit: Some(vec![99]), ..Options::default() };
    assert!(dillon.study(&none).unwrap_err().to_string().contains("row 99"));
}

/// The model's figures under some values, with as few runs as for a change of the model.
fn few_runs(kind: &StudyKind, set: Vec<(String, f64)>) -> Vec<f64> {
    // Each claim of this study runs its own tests of millions of references.
    let quick = |id: &str| kind.name != "gorman-2002" || id == "large-end";
    let change = Change::Scaled("nothing", 1.0);
    let options = Options { change, set, ..Options::default() };
    kind.claims_that(&options, |id, _| quick(id)).unwrap().into_iter().map(|claim| claim.model).collect()
}

/// Bits, so that NaN equals itself.
fn bits(figures: Vec<f64>) -> Vec<u64> {
    figures.into_iter().map(f64::to_bits).collect()
}

/// Values other than the default, within the range.
fn others(declared: &Declared) -> Vec<f64> {
    let value = declared.value.number().unwrap();
    let near = [1.5 * value, (value / 2.0).floor(), value / 8.0, 2.0, 0.5];
    near.into_iter().filter(|&v| v != value && declared.allows(Value::Number(v))).collect()
}

#[test]
fn every_parameter_of_a_study_moves_a_figure() {
    let mut idle = Vec::new();
    for kind in STUDIES {
        let usual = bits(few_runs(kind, Vec::new()));
        // The quick claim of this study uses a pattern without randomness; the others take minutes.
        let is_quick = |declared: &Declared| kind.name != "gorman-2002" || declared.name != "seed";
        for declared in kind.parameters(&Options::default()).unwrap().into_iter().filter(is_quick) {
            let figures = |value| bits(few_runs(kind, vec![(declared.name.to_owned(), value)]));
            if !others(&declared).into_iter().any(|value| figures(value) != usual) {
                idle.push(format!("{}: {}", kind.name, declared.name));
            }
        }
    }
    assert!(idle.is_empty(), "no claim depends on {idle:?}");
}

#[test]
fn parameters_at_their_defaults_change_no_figure() {
    for kind in STUDIES {
        let list = kind.parameters(&Options::default()).unwrap();
        let names: Vec<&str> = list.iter().map(|declared| declared.name).collect();
        let unique: std::collections::BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), unique.len(), "{}: {names:?}", kind.name);
        assert!(list.iter().all(|declared| declared.allows(declared.value)), "{}: {list:?}", kind.name);
        let set = list.iter().map(|one| (one.name.to_owned(), one.value.number().unwrap())).collect();
        assert_eq!(bits(few_runs(kind, set)), bits(few_runs(kind, Vec::new())), "{}", kind.name);
    }
}

/// A study and the target that runs its experiment model the same machine. Fitted values are
/// rounded in the target.
#[test]
fn studies_and_targets_have_the_same_defaults() {
    for (study, target, shared) in [
        ("irlam-1990", "sun4c-sunos403", 7),
        ("morton-2002", "linux-2.5.27-rmap", 11),
        ("gorman-2002", "linux-2.4.19", 7),
        ("gorman-2002", "linux-2.4.19-rmap14a", 7),
        ("mcdougall-2005", "solaris8-segmap", 6),
        ("mcdougall-2007", "guest-clock", 5),
        ("dillon-2011", "dragonfly-2011-token", 5),
    ] {
        let list = named(study).unwrap().parameters(&Options::default()).unwrap();
        let of_target = Model::new(target, &[]).unwrap().parameters();
        let mut found = 0;
        for one in &list {
            // The windows are a count in the read test, and a share in the target.
            let same = of_target.iter().find(|other| (other.name, other.unit) == (one.name, one.unit));
            let Some(other) = same else { continue };
            found += 1;
            let (here, there) = (one.value.number().unwrap(), other.value.number().unwrap());
            let fitted = matches!(one.standing, Standing::Fitted { .. });
            let near = if fitted { (here / there - 1.0).abs() < 0.02 } else { here == there };
            assert!(near, "{study} and model:{target}: {}: {here} and {there}", one.name);
        }
        assert!(found >= shared, "{study} and model:{target} share {found} parameters");
    }
    for kind in STUDIES {
        let list = kind.parameters(&Options::default()).unwrap();
        for assumption in kind.book().unwrap().assumptions {
            let one = list.iter().find(|one| one.name == assumption.id);
            let one = one.unwrap_or_else(|| panic!("{}: {} is no parameter", kind.name, assumption.id));
            let value = one.value.number().unwrap();
            assert!((value / assumption.value - 1.0).abs() < 0.01, "{}: {}", kind.name, assumption.id);
            assert_eq!(one.unit, assumption.unit, "{}: {}", kind.name, assumption.id);
        }
    }
}

#[test]
fn an_unknown_parameter_is_refused_with_those_that_claims_depend_on() {
    let refusal = |name: &str, value: f64| {
        let options = Options { set: vec![(name.to_owned(), value)], ..Options::default() };
        named("irlam-1990").unwrap().claims(&options).unwrap_err().to_string()
    };
    let unknown = refusal("pmeg", 64.0);
    assert!(
        unknown.starts_with("no claim of irlam-1990 depends on a parameter 'pmeg'; must be one of pmegs")
    );
    assert!(unknown.ends_with("(did you mean pmegs?)"), "{unknown}");
    assert!(refusal("pmegs", 3.0).contains("must be a whole number from 32 to 8192"));
    assert!(refusal("locked", 120.0).contains("at least 12 pmegs"));
}

/// Fewer CPUs change verdicts, and at the published value a sweep gives the published figures.
#[test]
fn a_sweep_has_the_published_figures_at_the_published_value() {
    let kind = named("dillon-2011").unwrap();
    let list = kind.parameters(&Options::default()).unwrap();
    let processors = *kind.parameter(&list, "processors").unwrap();
    let found = sweep(kind, &Options::default(), processors, &[12.0, 48.0], &|_| ()).unwrap();
    let figures = |claims: &[Claim]| claims.iter().map(|claim| claim.model.to_bits()).collect::<Vec<_>>();
    assert_eq!(figures(&found.points[1].1), figures(&found.usual));
    assert_ne!(figures(&found.points[0].1), figures(&found.usual));
    assert!(!found.turned().is_empty() && found.turned().iter().all(|n| found.moved().contains(n)));
    let plots = found.plots();
    assert!(plots.len() > 2 && plots[0].series.len() == Verdict::ALL.len() && plots[0].marks[0].x == 48.0);
}
