//! `pagelab reproduce [STUDY]`: the published figures beside the models', and beside this machine's
//! where the same experiment was run on it (`--on host`, or by hand: any run in the notebook
//! counts).

pub mod tables;
mod what_if;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Request, Run, Setting, TargetSpec};
use pagelab_notebook::{Notebook, Problem};
use pagelab_report::{Section, TextTable, text};
use pagelab_studies::claim::Claim;
use pagelab_studies::ranges::ranges;
use pagelab_studies::study::Study;
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
    before_help = "Examples:\n  pagelab reproduce                            # every claim of every study\n  pagelab reproduce mcdougall-2005 --on host   # one study, and this machine\n  pagelab reproduce irlam-1990 --without more-pmegs\n  pagelab reproduce irlam-1990 --set pmegs=64\n  pagelab reproduce morton-2002 --sweep slab=0..400 --html slab.html\n"
)]
pub struct Arguments {
    /// The study; without one, all of them as one table of claims
    #[arg(value_name = "STUDY", value_parser = paper())]
    paper: Option<&'static StudyKind>,
    /// Run the study's experiments on this target too, some seconds each, and keep the runs in the notebook;
    /// without it the notebook's newest runs of them are shown
    #[arg(long, value_name = "TARGET")]
    on: Option<TargetSpec>,
    /// Repetitions of each experiment on the target, shown as median with minimum and maximum
    #[arg(long, value_name = "N", default_value_t = 3, requires = "on", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Write a page with plots like the originals'
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The rows to fit parameters with, where a study fits any; the others are predicted
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    fit: Option<Vec<usize>>,
    /// Make the model without one of its mechanisms: an ablation from the study's page
    #[arg(long, value_name = "ABLATION", requires = "paper")]
    without: Option<String>,
    /// Find the range of each assumed value over which every verdict stays: the model runs some twenty
    /// times for each of them
    #[arg(long, requires = "paper")]
    ranges: bool,
    /// Judge the claims with another value of a parameter, and show the model figures and verdicts
    /// that differ; the study's table of parameters lists the names. May be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "paper", conflicts_with_all = ["on", "ranges"])]
    set: Vec<what_if::Given>,
    /// Judge the claims at N values of a parameter from A to B (8 by default); --html plots the
    /// verdicts and the model figures against the parameter
    #[arg(long, value_name = "NAME=A..B[/N]", requires = "paper", conflicts_with_all = ["on", "ranges"])]
    sweep: Option<what_if::Range>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A study by its name.
fn paper() -> impl TypedValueParser<Value = &'static StudyKind> {
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
        Some(target) => live(&kinds, target, arguments.repeat, context)?,
        None => None,
    };
    if let Some(error) = failure.take_if(|error| is_interrupted(error)) {
        return Err(error);
    }
    let change = arguments.without.clone().map_or(Change::None, Change::Without);
    // The overview of all studies prints claims only.
    let all = arguments.paper.is_some() || arguments.json || arguments.html.is_some();
    let (seed, fit) = (arguments.seed, arguments.fit.clone());
    let options = Options { seed, fit, in_full: all, change, ..Options::default() };
    if let (Some(kind), true) = (arguments.paper, !arguments.set.is_empty() || arguments.sweep.is_some()) {
        return what_if::run(kind, arguments, options, context);
    }
    let here = newest(&kinds, context)?;
    let options = Options { here, ..options };
    let work = Work::new("reproducing", context.quiet);
    let mut studies = Vec::new();
    for (n, kind) in kinds.iter().enumerate() {
        let at = |part: f64| work.at((n as f64 + part) / kinds.len() as f64);
        at(0.0);
        let mut study = kind.study(&options).map_err(refused)?;
        if arguments.ranges {
            study.ranges = ranges(kind, &options, &at)?;
        }
        studies.push(study);
    }
    drop(work);
    if arguments.json {
        print_json("studies", serde_json::to_value(&studies)?)?;
    } else if arguments.paper.is_some() {
        studies.iter().for_each(|study| in_full(study, context));
    } else {
        let claims: Vec<&Claim> = studies.iter().flat_map(|s| &s.claims).collect();
        sentences(&tables::score(&claims), "", "  ", &context.style);
        print(&tables::by_role(&studies), context);
        print(&tables::claims("Claims", &claims, true), context);
        // What has not been measured here is said of one paper, not six times of all.
        for (study, kind) in studies.iter().zip(&kinds) {
            if here::measured(&(kind.live)(), &options.here) {
                let mut table = TextTable::from(&study.here);
                table.title = format!("{}. {}", study.name, table.title);
                print(&table, context);
            }
        }
    }
    if let Some(file) = &arguments.html {
        let sections: Vec<Section> = studies.iter().map(tables::section).collect();
        let scored = tables::by_role(&studies);
        let overview = arguments.paper.is_none().then_some(&scored);
        page::write_document("Published figures and models", overview, &sections, file)?;
        say!("Plots: {}", file.display());
    }
    match failure {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(error),
    }
}

/// A usage error if the request was wrong, else a failure.
fn refused(error: StudyError) -> anyhow::Error {
    match error {
        StudyError::Ablation { .. } | StudyError::Fit(_) | StudyError::Parameter(_) => {
            usage(error.to_string())
        }
        other => other.into(),
    }
}

/// Runs the studies' experiments on a target; why one could not be, if so. The others are.
fn live(
    kinds: &[&StudyKind],
    target: &TargetSpec,
    repeat: u32,
    context: &Context,
) -> Result<Option<anyhow::Error>> {
    if matches!(target.kind, TargetKind::Model(_)) {
        return Err(usage(format!(
            "--on {target}: the study's own model is shown anyway\nhint: name host or kernel:PATH"
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
    Ok(performance::perform(&mut plans, repeat, context)?.failure)
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

/// One study: its score and what was not reproduced, then everything.
fn in_full(study: &Study, context: &Context) {
    let claims: Vec<&Claim> = study.claims.iter().collect();
    sentences(&tables::score(&claims), "", "  ", &context.style);
    sentences(&format!("{}: {}", study.name, study.title), "", "  ", &context.style);
    sentences(&study.source, "", "  ", &context.style);
    let shown = tables::missed(study)
        .into_iter()
        .chain([tables::claims("Claims", &claims, false)])
        .chain(std::iter::once(&study.here).chain(&study.tables).map(TextTable::from))
        .chain([tables::parameters(study)])
        .chain(tables::assumptions(study))
        .chain(tables::ranges(study))
        .chain([tables::ablations(study)]);
    shown.for_each(|table| print(&table, context));
    for note in &study.notes {
        say!();
        sentences(&format!("Note: {note}"), "", "  ", &context.style);
    }
}

/// A table below its title.
fn print(table: &TextTable, context: &Context) {
    say!();
    sentences(&table.title, "", "  ", &context.style);
    say!("{}", text::toned(&table.headings, &table.rows, &table.tones, &context.style));
    table.remarks.iter().for_each(|remark| sentences(remark, "", "  ", &context.style));
}
