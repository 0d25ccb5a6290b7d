//! `pagelab reproduce [PAPER]`: the published figures beside the models', and beside this machine's where the
//! same experiment was run on it (`--on host`, or by hand: any run in the notebook counts).

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Request, Run, Setting, TargetSpec};
use pagelab_notebook::{Notebook, Problem};
use pagelab_report::text::{self, DASH};
use pagelab_report::{Section, TextTable};
use pagelab_studies::claim::{
    self, Claim, Distance, ROLES, Role, Score, Standing, Study, Tolerance, Verdict, scores,
};
use pagelab_studies::{Change, Live, Options, STUDIES, StudyError, StudyKind, here, named};

use crate::context::Context;
use crate::failure::{is_interrupted, usage};
use crate::output::{print_json, say, sentences};
use crate::page;
use crate::performance::{self, Planned};
use crate::progress::Work;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab reproduce                       every claim of every paper\n  pagelab reproduce gorman-2002           one paper in full\n  pagelab reproduce mcdougall-2005 --on host   and run the same experiment on this machine, in seconds\n  pagelab reproduce --html studies.html   the same with plots\n  pagelab reproduce irlam-1990 --without more-pmegs   what fails with 20 pmegs more\n"
)]
pub struct Arguments {
    /// The paper; none: all of them, as one table of claims
    #[arg(value_name = "PAPER", value_parser = paper())]
    paper: Option<&'static StudyKind>,
    /// Run the study's experiments on this target too, a few seconds each, and keep the runs in the notebook;
    /// without it the notebook's newest runs of them are shown
    #[arg(long, value_name = "TARGET")]
    on: Option<TargetSpec>,
    /// Write a page with plots like the originals'
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The rows to fit parameters with, where a study fits any; the others are predicted
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    fit: Option<Vec<usize>>,
    /// Make the model without one of its mechanisms: an ablation that the paper's page lists
    #[arg(long, value_name = "ABLATION", requires = "paper")]
    without: Option<String>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A study by its name.
pub fn paper() -> impl TypedValueParser<Value = &'static StudyKind> {
    let names = STUDIES.iter().map(|study| PossibleValue::new(study.name).help(study.title));
    PossibleValuesParser::new(names).try_map(|name| named(&name).ok_or("it is no study"))
}

/// Makes the studies and prints them.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let kinds: Vec<&StudyKind> = match arguments.paper {
        None => STUDIES.iter().collect(),
        Some(kind) => vec![kind],
    };
    let mut failure = match &arguments.on {
        Some(target) => live(&kinds, target, context)?,
        None => None,
    };
    if let Some(error) = failure.take_if(|error| is_interrupted(error)) {
        return Err(error);
    }
    let here = newest(&kinds, context)?;
    let change = arguments.without.clone().map_or(Change::None, Change::Without);
    let options = Options { seed: arguments.seed, fit: arguments.fit.clone(), here, change };
    let work = Work::new("reproducing", context.quiet);
    let mut studies = Vec::new();
    for (n, kind) in kinds.iter().enumerate() {
        work.at(n as f64 / kinds.len() as f64);
        studies.push(kind.study(&options).map_err(|error| match error {
            StudyError::Ablation { .. } | StudyError::Fit(_) => usage(error.to_string()),
            other => other.into(),
        })?);
    }
    drop(work);
    if arguments.json {
        print_json("studies", serde_json::to_value(&studies)?)?;
    } else if arguments.paper.is_some() {
        studies.iter().for_each(|study| in_full(study, context));
    } else {
        let claims: Vec<&Claim> = studies.iter().flat_map(|s| &s.claims).collect();
        say!("{}", claims_table(&claims, true, context));
        sentences(&score(&claims), "", "  ", &context.style);
        // What has not been measured here is said of one paper, not six times of all.
        for (study, kind) in studies.iter().zip(&kinds) {
            if here::measured(&(kind.live)(), &options.here) {
                say!("\n{}. {}", study.name, study.here.title);
                let table = TextTable::from(&study.here);
                say!("{}", text::table(&table.headings, &table.rows, &context.style));
            }
        }
    }
    if let Some(file) = &arguments.html {
        let sections: Vec<Section> = studies.iter().map(section).collect();
        let scored = by_role(&studies);
        page::write_document("Published figures and models", Some(&scored), &sections, file)?;
        say!("Plots: {}", file.display());
    }
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(error),
    }
}

/// Runs the studies' experiments on a target; why one could not be, if so. The others are.
fn live(kinds: &[&StudyKind], target: &TargetSpec, context: &Context) -> Result<Option<anyhow::Error>> {
    if matches!(target.kind, TargetKind::Model(_)) {
        return Err(usage(format!(
            "--on {target}: the study's own model is shown anyway; name host or kernel:PATH"
        )));
    }
    let mut plans = Vec::new();
    for live in kinds.iter().flat_map(|kind| (kind.live)()) {
        let request =
            Request { experiment: live.experiment.clone(), asked: Setting::default(), usual: live.setting() };
        match Planned::new(None, &request, target) {
            Ok(planned) => plans.push(planned),
            Err(refused) => crate::output::remark!("left out: {refused:#}"),
        }
    }
    Ok(performance::perform(&mut plans, 1, context)?.failure)
}

/// The newest run in the notebook of each of the studies' experiments; none where there is no notebook.
fn newest(kinds: &[&StudyKind], context: &Context) -> Result<Vec<Run>> {
    if !context.notebook.exists() {
        return Ok(Vec::new());
    }
    let notebook = Notebook::open_existing(&context.notebook)?;
    let runs = notebook.list()?;
    let of = |live: Live| runs.iter().rev().find(|run| run.done > 0 && live.is(&run.header));
    let found = kinds.iter().flat_map(|kind| (kind.live)()).filter_map(of);
    let loaded = found.filter_map(|run| match notebook.load(run.id) {
        // One that cannot be read is as good as none.
        Err(error) if matches!(error.problem, Problem::Unreadable { .. }) => {
            crate::output::remark!("{error}");
            None
        }
        other => Some(other.map_err(Into::into)),
    });
    loaded.collect()
}

/// A figure in its unit.
fn figure(number: f64, unit: &str) -> String {
    format!("{} {unit}", text::count(number)).trim_end().to_owned()
}

/// How far model and published are apart.
fn distance(claim: &Claim) -> String {
    match claim.distance {
        None => DASH.to_owned(),
        Some(Distance::Ratio(ratio)) => format!("× {ratio:.2}"),
        Some(Distance::Difference(difference)) => format!("{difference:+.3}"),
    }
}

/// How close the model was asked to come.
fn asked(claim: &Claim) -> String {
    let count = text::count;
    match claim.tolerance {
        Tolerance::Factor(factor) => format!("× {factor}"),
        Tolerance::Share(share) => format!("{} %", count(100.0 * share)),
        Tolerance::Difference(most) => format!("± {most}"),
        Tolerance::Range(from, to) => format!("{} to {}", count(from), count(to)),
        Tolerance::AtMost(limit) => format!("≤ {}", count(limit)),
        Tolerance::AtLeast(limit) => format!("≥ {}", count(limit)),
        Tolerance::Exact => "exact".to_owned(),
    }
}

/// The cells of a claim.
fn row(claim: &Claim) -> Vec<String> {
    let published = match (&claim.words, claim.published) {
        (Some(words), _) => words.clone(),
        (None, Some(number)) => figure(number, &claim.unit),
        (None, None) => DASH.to_owned(),
    };
    let detail = claim.detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
    vec![
        claim.what.clone(),
        published,
        figure(claim.model, &claim.unit) + &detail,
        distance(claim),
        asked(claim),
        claim.role.name().to_owned(),
        claim.verdict.name().to_owned(),
    ]
}

/// The columns of a table of claims.
const HEADINGS: [&str; 7] = ["claim", "published", "model", "distance", "asked", "role", "verdict"];

fn claims_table(claims: &[&Claim], papers: bool, context: &Context) -> String {
    let rows: Vec<Vec<String>> = claims
        .iter()
        .map(|claim| {
            let mut cells = row(claim);
            if papers {
                cells.insert(0, claim.paper.to_owned());
            }
            cells
        })
        .collect();
    let headings: Vec<&str> = papers.then_some("paper").into_iter().chain(HEADINGS).collect();
    text::table(&headings, &rows, &context.style)
}

/// How many claims of each role were reproduced; identities are said, not counted.
fn score(claims: &[&Claim]) -> String {
    let scores = scores(claims.iter().copied());
    let (given, counted): (Vec<&Score>, Vec<&Score>) =
        scores.iter().partition(|score| score.role == Role::Identity);
    let said: Vec<String> = counted
        .iter()
        .map(|score| {
            let partly =
                if score.partly > 0 { format!(" ({} more partly)", score.partly) } else { String::new() };
            format!("{} {} of {}{partly}", score.role.name(), score.reproduced, score.claims)
        })
        .collect();
    let given =
        given.first().map_or_else(String::new, |score| format!("; {} identities not counted", score.claims));
    format!("Reproduced: {}{given}.", said.join(", "))
}

fn in_full(study: &Study, context: &Context) {
    sentences(&format!("{}: {}", study.name, study.title), "", "  ", &context.style);
    sentences(&study.source, "", "  ", &context.style);
    say!();
    let claims: Vec<&Claim> = study.claims.iter().collect();
    say!("{}", claims_table(&claims, false, context));
    sentences(&score(&claims), "", "  ", &context.style);
    for table in std::iter::once(&study.here).chain(&study.tables) {
        say!();
        sentences(&table.title, "", "  ", &context.style);
        let table = TextTable::from(table);
        say!("{}", text::table(&table.headings, &table.rows, &context.style));
    }
    say!("\nParameters");
    let rows: Vec<Vec<String>> = study
        .parameters
        .iter()
        .map(|p| {
            vec![p.name.to_owned(), format!("{} {}", text::count(p.value), p.unit), standing(&p.standing)]
        })
        .collect();
    say!("{}", text::table(&["parameter", "value", "from"], &rows, &context.style));
    for (title, headings, rows) in [assumptions(study), ablations(study)].into_iter().flatten() {
        say!("\n{title}");
        say!("{}", text::table(&headings, &rows, &context.style));
    }
    for note in &study.notes {
        say!();
        sentences(&format!("Note: {note}"), "", "  ", &context.style);
    }
}

/// A table of words: its title, headings and rows.
type Words = (&'static str, Vec<&'static str>, Vec<Vec<String>>);

/// The assumed values that decide a verdict; none where there are none.
fn assumptions(study: &Study) -> Option<Words> {
    let row = |assumption: &claim::Assumption| {
        let count = text::count;
        let (from, to) = assumption.holds;
        let decided = study.claims.iter().find(|claim| claim.id == assumption.decides);
        let others: Vec<String> = assumption.otherwise.iter().map(|&value| count(value)).collect();
        vec![
            assumption.what.clone(),
            figure(assumption.value, &assumption.unit),
            decided.map_or_else(|| DASH.to_owned(), |claim| claim.what.clone()),
            format!("{} to {}", count(from), count(to)),
            others.join(", "),
        ]
    };
    let headings = vec!["assumed", "value", "decides", "same verdict", "another at"];
    let rows: Vec<Vec<String>> = study.assumptions.iter().map(row).collect();
    (!rows.is_empty()).then_some(("Assumed values that decide a verdict", headings, rows))
}

/// The changes of the model under which claims fail.
fn ablations(study: &Study) -> Option<Words> {
    let row = |(name, what): (&String, &String)| {
        let own = |claim: &&Claim| claim.ablation.as_ref() == Some(name);
        let count = study.claims.iter().filter(own).count();
        vec![name.clone(), what.clone(), count.to_string()]
    };
    let headings = vec!["ablation", "what it takes away", "claims that must fail"];
    Some(("Ablations (--without)", headings, study.ablations.iter().map(row).collect()))
}

/// Where a parameter's value comes from, in words.
pub fn standing(standing: &Standing) -> String {
    match standing {
        Standing::Documented { source } => format!("documented: {source}"),
        Standing::Derived { from } => format!("derived: {from}"),
        Standing::Fitted { on } => format!("fitted to {on}"),
        Standing::Assumed { why } => format!("assumed: {why}"),
    }
}

/// A table of words.
fn texts(title: &str, headings: Vec<String>, rows: Vec<Vec<String>>) -> TextTable {
    TextTable { title: title.to_owned(), headings, rows, remarks: Vec::new(), warnings: Vec::new() }
}

/// The score of each study by role: reproduced claims of all.
fn by_role(studies: &[Study]) -> TextTable {
    let roles = ROLES.iter().filter(|role| **role != Role::Identity);
    let row = |study: &Study| {
        let scores = scores(&study.claims);
        let of = |role: &Role| {
            let score = scores.iter().find(|score| score.role == *role);
            score.map_or_else(|| DASH.to_owned(), |score| format!("{} of {}", score.reproduced, score.claims))
        };
        std::iter::once(study.name.to_owned()).chain(roles.clone().map(of)).collect()
    };
    let headings =
        std::iter::once("study".to_owned()).chain(roles.clone().map(|role| role.name().to_owned()));
    let mut table =
        texts("Claims reproduced, by role", headings.collect(), studies.iter().map(row).collect());
    table.remarks.push(
        "Held out: no parameter has seen the figure. Derived: a parameter was computed from it or its like. Fitted: a \
         parameter was fitted with it. Identities follow without a model and are not counted."
            .to_owned(),
    );
    table
}

/// A study as a part of a page: its score, the claims that were not reproduced, the published graph with ours in it;
/// the rest folded.
fn section(study: &Study) -> Section {
    let headings = || HEADINGS.map(str::to_owned).to_vec();
    let missed: Vec<&Claim> = study
        .claims
        .iter()
        .filter(|c| c.verdict != Verdict::Reproduced && c.role != Role::Identity)
        .collect();
    let mut tables = vec![texts("Claims", headings(), study.claims.iter().map(row).collect())];
    tables.extend(std::iter::once(&study.here).chain(&study.tables).map(TextTable::from));
    let parameters = study.parameters.iter().map(|p| {
        vec![p.name.to_owned(), format!("{} {}", text::count(p.value), p.unit), standing(&p.standing)]
    });
    tables.push(texts(
        "Parameters",
        ["parameter", "value", "from"].map(str::to_owned).to_vec(),
        parameters.collect(),
    ));
    for (title, headings, rows) in [assumptions(study), ablations(study)].into_iter().flatten() {
        tables.push(texts(title, headings.into_iter().map(str::to_owned).collect(), rows));
    }
    if !missed.is_empty() {
        tables.insert(
            0,
            texts("Claims not reproduced, or partly", headings(), missed.into_iter().map(row).collect()),
        );
    }
    let claims: Vec<&Claim> = study.claims.iter().collect();
    Section {
        heading: study.name.to_owned(),
        answer: score(&claims),
        paragraphs: vec![format!("{}. {}", study.title, study.source)],
        plots: study.plots.clone(),
        tables,
        notes: study.notes.clone(),
    }
}
