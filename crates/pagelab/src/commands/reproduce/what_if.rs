//! `reproduce STUDY --set NAME=VALUE` and `--sweep NAME=A..B`: judges a study under conditions
//! other than the published ones.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Result;
use pagelab_model::parameter::{Declared, Value};
use pagelab_report::{Score, Section, TextTable, text};
use pagelab_studies::claim::{Claim, Role, Verdict};
use pagelab_studies::what_if::{Changed, MAX_POINTS, POINTS, Sweep, changed, counted, points, sweep};
use pagelab_studies::{Options, StudyKind};
use serde_json::json;

use super::{Arguments, print, refused, tables};
use crate::context::Context;
use crate::failure::usage;
use crate::output::{print_json, say, sentences};
use crate::page;
use crate::progress::Work;

/// `NAME=VALUE`.
#[derive(Clone, Debug)]
pub struct Given {
    name: String,
    value: String,
}

impl FromStr for Given {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => {
                Ok(Self { name: name.to_owned(), value: value.to_owned() })
            }
            _ => Err("must be NAME=VALUE, such as pmegs=64".to_owned()),
        }
    }
}

/// `NAME=A..B`, or `NAME=A..B/N`.
#[derive(Clone, Debug)]
pub struct Range {
    name: String,
    from: String,
    to: String,
    points: usize,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || "must be NAME=A..B or NAME=A..B/POINTS, such as pmegs=64..512".to_owned();
        let (name, range) = text.split_once('=').ok_or_else(form)?;
        let (range, points) = match range.split_once('/') {
            None => (range, POINTS),
            Some((range, points)) => (range, points.parse().map_err(|_| form())?),
        };
        let (from, to) = range.split_once("..").ok_or_else(form)?;
        if name.is_empty() || from.is_empty() || to.is_empty() {
            return Err(form());
        }
        if !(2..=MAX_POINTS).contains(&points) {
            return Err(format!("must have between 2 and {MAX_POINTS} points"));
        }
        Ok(Self { name: name.to_owned(), from: from.to_owned(), to: to.to_owned(), points })
    }
}

/// A parameter and the value that it was set to.
type Set = (Declared, Value);

/// Parses the number for a parameter of the study.
fn read(kind: &StudyKind, list: &[Declared], name: &str, text: &str) -> Result<(Declared, f64)> {
    let declared = kind.parameter(list, name).map_err(refused)?;
    let value = declared.read(text).map_err(|error| usage(error.to_string()))?;
    let number = value.number().ok_or_else(|| usage(format!("{name}={text}: must be a number")))?;
    Ok((*declared, number))
}

/// Judges the study as requested, and prints the differences.
pub fn run(
    kind: &'static StudyKind,
    arguments: &Arguments,
    options: Options,
    context: &Context,
) -> Result<ExitCode> {
    let list = kind.parameters(&options).map_err(refused)?;
    let mut options = options;
    let mut set: Vec<Set> = Vec::new();
    for given in &arguments.set {
        let (declared, value) = read(kind, &list, &given.name, &given.value)?;
        options.set.push((declared.name.to_owned(), value));
        set.push((declared, Value::Number(value)));
    }
    match &arguments.sweep {
        None => judge(kind, arguments, &options, &set, context),
        Some(range) => {
            let (declared, from) = read(kind, &list, &range.name, &range.from)?;
            let (_, to) = read(kind, &list, &range.name, &range.to)?;
            let values = points(&declared, from, to, range.points);
            let work = Work::new("reproducing", context.quiet);
            let found = sweep(kind, &options, declared, &values, &|part| work.at(part)).map_err(refused)?;
            drop(work);
            show(kind, arguments, &found, &set, context)
        }
    }
}

/// The conditions that differ from the published ones, as text.
fn conditions(set: &[Set]) -> String {
    let of = |(declared, value): &Set| {
        format!(
            "{} is {} instead of {}",
            declared.name,
            declared.shown(*value),
            declared.shown(declared.value)
        )
    };
    set.iter().map(of).collect::<Vec<_>>().join(", ")
}

fn set_json(set: &[Set]) -> Vec<serde_json::Value> {
    let one = |(declared, value): &Set| {
        json!({
            "name": declared.name,
            "value": value.number(),
            "published": declared.value.number(),
            "unit": declared.unit,
        })
    };
    set.iter().map(one).collect()
}

/// The counted claims by verdict, for a chart.
fn scored(name: &str, usual: &[Claim], claims: &[Claim]) -> Score {
    let counts = Verdict::ALL.into_iter().zip(counted(usual, claims));
    Score {
        name: name.to_owned(),
        counts: counts.map(|(verdict, count)| (verdict.name(), verdict.tone(), count)).collect(),
    }
}

fn verdicts(changed: &Changed) -> String {
    let (before, after) = (changed.usual.verdict, changed.changed.verdict);
    match (changed.usual.role, before == after) {
        (Role::Identity, _) => "identity".to_owned(),
        (_, true) => after.name().to_owned(),
        (_, false) => format!("{} → {}", before.name(), after.name()),
    }
}

/// Claims whose model figure differs; those with a different verdict come first.
fn differences(claims: &[Changed]) -> TextTable {
    let mut differ: Vec<&Changed> = claims.iter().filter(|changed| changed.differs()).collect();
    let turned = |one: &Changed| one.usual.role != Role::Identity && one.usual.verdict != one.changed.verdict;
    differ.sort_by_key(|one| !turned(one));
    let row = |one: &&Changed| {
        let claim = &one.usual;
        vec![
            claim.what.clone(),
            tables::published(claim),
            tables::figure(claim.model, &claim.unit),
            tables::figure(one.changed.model, &claim.unit),
            verdicts(one),
        ]
    };
    let headings = ["claim", "published", "model", "model as set", "verdict"];
    let mut table = TextTable::new("Claims whose model figure differs", headings, differ.iter().map(row));
    table.tones = differ.iter().map(|one| one.changed.verdict.tone()).collect();
    let same = claims.len() - differ.len();
    let count = differ.iter().filter(|one| turned(one)).count();
    table
        .remarks
        .push(format!("{count} of {} verdicts differ; {same} model figures are the same.", claims.len()));
    table
}

fn judge(
    kind: &StudyKind,
    arguments: &Arguments,
    options: &Options,
    set: &[Set],
    context: &Context,
) -> Result<ExitCode> {
    let work = Work::new("reproducing", context.quiet);
    work.at(0.0);
    let claims = changed(kind, options).map_err(refused)?;
    drop(work);
    let (usual, after): (Vec<Claim>, Vec<Claim>) =
        claims.iter().map(|one| (one.usual.clone(), one.changed.clone())).unzip();
    let heading = format!("Not the published conditions: {}.", conditions(set));
    let table = differences(&claims);
    if arguments.json {
        let one = |one: &Changed| {
            json!({
                "id": one.usual.id,
                "what": one.usual.what,
                "unit": one.usual.unit,
                "published": one.usual.published,
                "role": one.usual.role,
                "model": { "published_conditions": one.usual.model, "as_set": one.changed.model },
                "verdict": { "published_conditions": one.usual.verdict, "as_set": one.changed.verdict },
            })
        };
        let claims: Vec<_> = claims.iter().map(one).collect();
        print_json("what_if", json!({ "study": kind.name, "set": set_json(set), "claims": claims }))?;
    } else {
        sentences(&heading, "", "  ", &context.style);
        let say_score = |name: &str, claims: &[Claim]| {
            let claims: Vec<&Claim> = claims.iter().collect();
            sentences(&format!("{name}: {}", tables::score(&claims)), "", "  ", &context.style);
        };
        say_score("As set", &after);
        say_score("Published conditions", &usual);
        print(&table, context);
    }
    if let Some(file) = &arguments.html {
        let section = Section {
            heading: kind.name.to_owned(),
            answer: heading,
            score: vec![scored("as set", &usual, &after), scored("published conditions", &usual, &usual)],
            paragraphs: vec![kind.title.to_owned()],
            tables: vec![table],
            ..Section::default()
        };
        write(arguments, kind, section, file)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(arguments: &Arguments, kind: &StudyKind, section: Section, file: &std::path::Path) -> Result<()> {
    page::write_document(&format!("{}: what if", kind.name), None, &[section], file)?;
    crate::output::aside(&format!("Plots: {}", file.display()), arguments.json);
    Ok(())
}

/// The mark of a verdict after a figure.
fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "✓",
        Verdict::Partly => "~",
        Verdict::Not => "✗",
    }
}

/// One row per value.
fn values_table(found: &Sweep) -> TextTable {
    let number = |value: f64| found.parameter.written(Value::Number(value));
    let may_turn = found.turned();
    let row = |(value, claims): &(f64, Vec<Claim>)| {
        let [reproduced, partly, not] = counted(&found.usual, claims);
        let all = reproduced + partly + not;
        let turned = may_turn.iter().filter(|&&n| claims[n].verdict != found.usual[n].verdict).count();
        vec![
            number(*value),
            format!("{reproduced} of {all}"),
            partly.to_string(),
            not.to_string(),
            turned.to_string(),
        ]
    };
    let named = found.named();
    let headings = [named.as_str(), "reproduced", "partly", "not", "verdicts that differ"];
    let title = format!("Claims by verdict against {}", found.parameter.name);
    let mut table = TextTable::new(&title, headings, found.points.iter().map(row));
    let [reproduced, partly, not] = counted(&found.usual, &found.usual);
    table.remarks.push(format!(
        "Without the sweep {} is {}: {reproduced} of {} are reproduced.",
        found.parameter.name,
        found.parameter.shown(found.parameter.value),
        reproduced + partly + not
    ));
    table
}

/// The claims at these indices, one per row, with their figures at each value.
fn claims_table(found: &Sweep, title: &str, places: &[usize]) -> TextTable {
    let row = |&n: &usize| {
        let claim = &found.usual[n];
        let at = |(_, claims): &(f64, Vec<Claim>)| {
            let mark = if claim.role == Role::Identity { "" } else { mark(claims[n].verdict) };
            format!("{} {mark}", text::count(claims[n].model)).trim_end().to_owned()
        };
        let unit = if claim.unit.is_empty() { String::new() } else { format!(" [{}]", claim.unit) };
        let first = [format!("{}{unit}", claim.what), tables::published(claim)];
        first.into_iter().chain(found.points.iter().map(at)).collect()
    };
    let values = found.points.iter().map(|(value, _)| {
        format!("{}={}", found.parameter.name, found.parameter.written(Value::Number(*value)))
    });
    let headings: Vec<String> = ["claim", "published"].map(str::to_owned).into_iter().chain(values).collect();
    let mut table = TextTable::new(title, headings, places.iter().map(row));
    table.remarks.push("✓ reproduced, ~ partly, ✗ not reproduced.".to_owned());
    table
}

fn show(
    kind: &StudyKind,
    arguments: &Arguments,
    found: &Sweep,
    set: &[Set],
    context: &Context,
) -> Result<ExitCode> {
    let name = found.parameter.name;
    let ends = found.points.first().zip(found.points.last()).map(|((from, _), (to, _))| (*from, *to));
    let (from, to) = ends.unwrap_or((f64::NAN, f64::NAN));
    let written = |value: f64| found.parameter.written(Value::Number(value));
    let also = if set.is_empty() { String::new() } else { format!(", and {}", conditions(set)) };
    let heading = format!(
        "Not the published conditions: {name} from {} to {} instead of {}{also}.",
        written(from),
        found.parameter.shown(Value::Number(to)),
        found.parameter.shown(found.parameter.value)
    );
    let values = values_table(found);
    let turned = claims_table(found, "Claims whose verdict differs at some value", &found.turned());
    if arguments.json {
        let point = |(value, claims): &(f64, Vec<Claim>)| {
            let [reproduced, partly, not] = counted(&found.usual, claims);
            let claim =
                |claim: &Claim| json!({ "id": claim.id, "model": claim.model, "verdict": claim.verdict });
            let claims: Vec<_> = claims.iter().map(claim).collect();
            let score = json!({ "reproduced": reproduced, "partly": partly, "not": not });
            json!({ "value": value, "score": score, "claims": claims })
        };
        let points: Vec<_> = found.points.iter().map(point).collect();
        let parameter = json!({ "name": name, "unit": found.parameter.unit, "published": found.parameter.value.number() });
        let sweep =
            json!({ "study": kind.name, "parameter": parameter, "set": set_json(set), "points": points });
        print_json("sweep", sweep)?;
    } else {
        sentences(&heading, "", "  ", &context.style);
        print(&values, context);
        if turned.rows.is_empty() {
            say!();
            say!("No verdict differs.");
        } else {
            print(&turned, context);
        }
    }
    if let Some(file) = &arguments.html {
        let section = Section {
            heading: kind.name.to_owned(),
            answer: heading,
            paragraphs: vec![kind.title.to_owned()],
            plots: found.plots(),
            seen: Some(1),
            tables: vec![
                values,
                turned,
                claims_table(found, "Claims whose model figure differs at some value", &found.moved()),
            ],
            ..Section::default()
        };
        write(arguments, kind, section, file)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_with_their_points() {
        let range =
            |text: &str| text.parse::<Range>().map(|range| (range.name, range.from, range.to, range.points));
        assert_eq!(range("pmegs=64..512").unwrap(), ("pmegs".into(), "64".into(), "512".into(), POINTS));
        assert_eq!(range("slab=0..1.5/3").unwrap(), ("slab".into(), "0".into(), "1.5".into(), 3));
        for wrong in
            ["pmegs", "pmegs=64", "pmegs=64..", "=1..2", "pmegs=1..2/x", "pmegs=1..2/1", "pmegs=1..2/1000"]
        {
            assert!(range(wrong).is_err(), "{wrong}");
        }
        assert!("pmegs=".parse::<Given>().is_err() && "pmegs=64".parse::<Given>().is_ok());
    }
}
