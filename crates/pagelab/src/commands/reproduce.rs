//! `pagelab reproduce [PAPER]`: the published figures beside the models'.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::reproduce::claim::{self, Claim, Distance, Standing, Study, Table, Value, Verdict};
use pagelab_analysis::reproduce::{Options, STUDIES, named};
use pagelab_report::plot::{self, Numbers};
use pagelab_report::text::{self, DASH};
use pagelab_report::{Section, TextTable};

use super::Context;
use crate::failure::usage;
use crate::output::{print_json, say};
use crate::page;
use crate::progress::Work;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab reproduce                       every claim of every paper\n  pagelab reproduce gorman-2002           one paper in full\n  pagelab reproduce --html studies.html   the same with plots\n"
)]
pub struct Arguments {
    /// The paper; none: all of them, as one table of claims
    #[arg(value_name = "PAPER")]
    paper: Option<String>,
    /// Write a page with plots like the originals'
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The rows to fit parameters with, where a study fits any; the others are predicted
    #[arg(long, value_name = "ROWS", value_delimiter = ',')]
    fit: Option<Vec<usize>>,
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Makes the studies and prints them.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let options = Options { seed: arguments.seed, fit: arguments.fit.clone() };
    let kinds = match &arguments.paper {
        None => STUDIES.iter().collect(),
        Some(name) => vec![named(name).ok_or_else(|| {
            let names: Vec<&str> = STUDIES.iter().map(|s| s.name).collect();
            usage(format!("there is no study '{name}': it is one of {}", names.join(", ")))
        })?],
    };
    let work = Work::new("reproducing", context.quiet);
    let mut studies = Vec::new();
    for (n, kind) in kinds.iter().enumerate() {
        work.at(n as f64 / kinds.len() as f64);
        studies.push((kind.make)(&options)?);
    }
    drop(work);
    if arguments.json {
        print_json("studies", serde_json::to_value(&studies)?)?;
    } else if arguments.paper.is_some() {
        studies.iter().for_each(|study| in_full(study, context));
    } else {
        let claims: Vec<&Claim> = studies.iter().flat_map(|s| &s.claims).collect();
        say!("{}", claims_table(&claims, true, context));
        summary(&claims);
    }
    if let Some(file) = &arguments.html {
        let sections: Vec<Section> = studies.iter().map(section).collect();
        page::write_document("Published figures and models", &sections, file)?;
        say!("Plots: {}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// A value in its unit.
pub fn value(value: &Value, unit: &str) -> String {
    match value {
        Value::Words(words) => words.clone(),
        Value::Number(number) => format!("{} {unit}", text::count(*number)).trim_end().to_owned(),
    }
}

/// How far model and published are apart.
pub fn distance(claim: &Claim) -> String {
    match claim.distance {
        None => DASH.to_owned(),
        Some(Distance::Ratio(ratio)) => format!("× {ratio:.2}"),
        Some(Distance::Difference(difference)) => format!("{difference:+.3}"),
    }
}

/// The cells of a claim.
pub fn row(claim: &Claim) -> Vec<String> {
    let published = claim.published.as_ref().map_or_else(|| DASH.to_owned(), |v| value(v, claim.unit));
    vec![
        claim.what.clone(),
        published,
        value(&claim.model, claim.unit),
        distance(claim),
        claim.verdict.name().to_owned(),
    ]
}

/// The columns of a table of claims.
pub const HEADINGS: [&str; 5] = ["claim", "published", "model", "distance", "verdict"];

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

fn summary(claims: &[&Claim]) {
    let count = |verdict| claims.iter().filter(|c| c.verdict == verdict).count();
    say!(
        "{} claims: {} reproduced, {} partly, {} not.",
        claims.len(),
        count(Verdict::Reproduced),
        count(Verdict::Partly),
        count(Verdict::Not)
    );
}

fn in_full(study: &Study, context: &Context) {
    say!("{}: {}", study.name, study.title);
    say!("{}\n", study.source);
    let claims: Vec<&Claim> = study.claims.iter().collect();
    say!("{}", claims_table(&claims, false, context));
    summary(&claims);
    for table in &study.tables {
        say!("\n{}", table.title);
        let headings: Vec<String> = headings(table);
        say!("{}", text::table(&headings, &rows(table), &context.style));
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
    for note in &study.notes {
        let options = textwrap::Options::new(context.style.width).subsequent_indent("  ");
        say!("\n{}", textwrap::fill(&format!("Note: {note}"), options));
    }
}

/// A table's headings, with units.
pub fn headings(table: &Table) -> Vec<String> {
    let named = table
        .columns
        .iter()
        .map(|c| if c.unit.is_empty() { c.name.clone() } else { format!("{} [{}]", c.name, c.unit) });
    std::iter::once(table.rows_are.to_owned()).chain(named).collect()
}

/// A table's cells.
pub fn rows(table: &Table) -> Vec<Vec<String>> {
    let cell = |(figure, column): (&Option<f64>, &pagelab_analysis::reproduce::claim::Column)| {
        figure.map_or_else(|| DASH.to_owned(), |v| format!("{v:.*}", usize::from(column.decimals)))
    };
    table
        .rows
        .iter()
        .map(|(label, figures)| {
            std::iter::once(label.clone()).chain(figures.iter().zip(&table.columns).map(cell)).collect()
        })
        .collect()
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

/// A study as a part of a page.
fn section(study: &Study) -> Section {
    let texts = |title: &str, headings: Vec<String>, rows| TextTable {
        title: title.to_owned(),
        headings,
        rows,
        remarks: Vec::new(),
        warnings: Vec::new(),
    };
    let mut tables =
        vec![texts("Claims", HEADINGS.map(str::to_owned).to_vec(), study.claims.iter().map(row).collect())];
    tables.extend(study.tables.iter().map(|table| texts(&table.title, headings(table), rows(table))));
    let parameters = study.parameters.iter().map(|p| {
        vec![p.name.to_owned(), format!("{} {}", text::count(p.value), p.unit), standing(&p.standing)]
    });
    tables.push(texts(
        "Parameters",
        ["parameter", "value", "from"].map(str::to_owned).to_vec(),
        parameters.collect(),
    ));
    let mut paragraphs = vec![format!("{}. {}", study.title, study.source)];
    paragraphs.extend(study.notes.iter().cloned());
    Section {
        heading: study.name.to_owned(),
        paragraphs,
        tables,
        plots: study.plots.iter().map(drawn).collect(),
    }
}

/// A study's plot as the page draws it: published figures as dots, the model as a line.
fn drawn(plot: &claim::Plot) -> plot::Plot {
    let axis = |axis: &claim::Axis| {
        if axis.log { plot::Axis::log(axis.label, "") } else { plot::Axis::linear(axis.label, "") }
    };
    let mut out = plot::Plot::new(
        plot.title.clone(),
        "dots: published; lines: the model.",
        axis(&plot.x),
        axis(&plot.y).switchable(),
    );
    out.series = plot
        .series
        .iter()
        .enumerate()
        .map(|(n, s)| plot::Series {
            name: s.name.clone(),
            color: n,
            dash: if s.published { 1 } else { 0 },
            step: false,
            dots: s.published,
            x: Numbers(s.points.iter().map(|p| Some(p.0)).collect()),
            y: Numbers(s.points.iter().map(|p| Some(p.1)).collect()),
        })
        .collect();
    out
}
