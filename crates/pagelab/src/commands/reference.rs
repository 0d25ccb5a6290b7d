//! `pagelab reference PART [NAME]`: the generated parts of the book's reference, as Markdown.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Command, ValueEnum};
use pagelab_analysis::{headline_metrics, primary_metric};
use pagelab_experiment::catalogue::tables;
use pagelab_experiment::declaration::{Declared as DeclaredExperiment, Parameter};
use pagelab_experiment::environment;
use pagelab_experiment::glossary::{Entry, metrics};
use pagelab_experiment::{ColumnId, Experiment, Setting, TableId};
use pagelab_model::parameter::Declared;
use pagelab_model::policy::PolicyKind;
use pagelab_model::target::Model;
use pagelab_reference::Pattern;
use pagelab_reference::trace::Format;
use pagelab_report::text::DASH;
use pagelab_studies::{Options, STUDIES};

use super::{catalogue, explain, manual, policies};
use crate::failure::usage;
use crate::output::say;
use crate::targets;

/// The arguments.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The part
    part: Part,
    /// The experiment of the part 'experiment'
    name: Option<String>,
}

/// What can be printed.
#[derive(ValueEnum, Clone, Copy, Debug)]
enum Part {
    /// Every command.
    Commands,
    /// One experiment: parameters and metrics.
    Experiment,
    /// Every experiment, and the conditions of all.
    Experiments,
    /// The formats of traces and of exports.
    Formats,
    /// Terms, metrics, statistics, verdicts and columns.
    Glossary,
    /// The tables that a notebook keeps of runs, and the facts about the machine.
    Notebook,
    /// The parameters of the published systems, and of the studies.
    Parameters,
    /// The patterns.
    Patterns,
    /// The policies.
    Policies,
    /// The targets, and the conditions that each supports.
    Targets,
    /// The environment variables.
    Variables,
}

/// Prints the part, of commands those of this grammar.
pub fn run(arguments: &Arguments, grammar: &Command) -> Result<ExitCode> {
    let pairs =
        |list: &[(&str, &str)]| list.iter().map(|(name, help)| [code(name), (*help).to_owned()]).collect();
    match arguments.part {
        Part::Commands => table(["command", "purpose"], commands(grammar)),
        Part::Experiment => experiment(arguments.name.as_deref().unwrap_or_default())?,
        Part::Experiments => experiments(),
        Part::Formats => formats(grammar),
        Part::Glossary => glossary(),
        Part::Notebook => {
            say!("## Series\n");
            table(["series", "one row per", "columns"], tables().map(series).collect());
            say!("\n## Environment\n");
            table(["name", "value"], pairs(environment::ALL));
        }
        Part::Parameters => model_parameters()?,
        Part::Patterns => table(["pattern", "meaning"], pairs(Pattern::catalogue())),
        Part::Policies => {
            let all = PolicyKind::catalogue().iter().map(|one| [one.form, &one.help, one.source]);
            let row = |[form, help, source]: [&str; 3]| [code(form), help.to_owned(), source.to_owned()];
            table(["policy", "rule", "source"], all.chain(policies::by_size()).map(row).collect());
        }
        Part::Targets => supported(),
        Part::Variables => table(["variable", "meaning"], pairs(manual::ENVIRONMENT)),
    }
    Ok(ExitCode::SUCCESS)
}

/// A name as code.
fn code(name: &str) -> String {
    format!("`{name}`")
}

/// Prints a table.
fn table<const N: usize>(headings: [&str; N], rows: Vec<[String; N]>) {
    say!("| {} |\n|{}", headings.join(" | "), "---|".repeat(N));
    for row in rows {
        say!("| {} |", row.map(|cell| cell.replace('|', "\\|").replace('\n', " ")).join(" | "));
    }
}

/// A table of the notebook's: its name, its rows, its columns.
fn series(table: TableId) -> [String; 3] {
    let column = |column: &ColumnId| format!("{}: {}", code(column.name), column.help);
    let columns: Vec<String> = table.columns.iter().map(column).collect();
    [code(table.name), table.rows.to_owned(), columns.join("; ")]
}

/// Every command that is not hidden, with its purpose.
fn commands(grammar: &Command) -> Vec<[String; 2]> {
    let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
    grammar.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| [code(c.get_name()), about(c)]).collect()
}

fn parameters(list: Vec<Parameter>) {
    let row = |p: Parameter| {
        let words = if p.words.is_empty() { String::new() } else { format!(": {}", p.words.join(", ")) };
        let default = p.default.map_or_else(|| DASH.to_owned(), |default| code(&default));
        [code(&format!("--{}", p.name)), default, format!("{}{words}", p.help)]
    };
    table(["parameter", "default", "meaning"], list.into_iter().map(row).collect());
}

/// The parameters of every published system, and of every study.
fn model_parameters() -> Result<()> {
    let parameters = |list: &[Declared]| {
        let row = |one: &Declared| {
            let unit = match one.unit {
                "" | "%" => one.unit.to_owned(),
                unit => format!(" {unit}"),
            };
            [
                code(one.name),
                one.shown(one.value),
                format!("{}{unit}", one.range_text()),
                one.help.to_owned(),
                one.standing.to_string(),
            ]
        };
        table(["parameter", "default", "range", "meaning", "source"], list.iter().map(row).collect());
    };
    for (name, help) in targets::systems() {
        say!("## {}\n\n{help}\n", code(&format!("model:{name}")));
        parameters(&Model::new(name, &[]).map_err(|error| usage(error.to_string()))?.parameters());
        say!();
    }
    for study in STUDIES {
        say!("## {}\n\n{}\n", code(&format!("reproduce {} --set", study.name)), study.title);
        parameters(&study.parameters(&Options::default())?);
        say!();
    }
    Ok(())
}

/// The experiments, and the conditions under which all of them run.
fn experiments() {
    let row = |d: DeclaredExperiment| [format!("[{0}](experiments/{0}.md)", d.name), d.help];
    table(["experiment", "measures"], Experiment::catalogue().into_iter().map(row).collect());
    say!("\n## Conditions\n");
    parameters(Setting::keys());
}

/// One experiment: its parameters, and the metrics that are its own.
fn experiment(name: &str) -> Result<()> {
    let declared = Experiment::catalogue().into_iter().find(|declared| declared.name == name);
    let Some(declared) = declared else { return Err(usage(format!("no experiment '{name}'"))) };
    say!("## Parameters\n");
    parameters(declared.parameters);
    let experiment = targets::experiments().into_iter().find(|one| one.name() == name);
    let experiment = experiment.expect("the catalogue has it");
    let primary = primary_metric(&experiment).map(|metric| metric.to_string());
    let headline: Vec<String> =
        headline_metrics(&experiment).iter().map(|metric| metric.to_string()).collect();
    let names: Vec<String> = Experiment::catalogue().into_iter().map(|declared| declared.name).collect();
    let own = |entry: &Entry| {
        if headline.iter().chain(&primary).any(|listed| listed == entry.name) {
            return true;
        }
        // A line that begins with the name of an experiment is about that one.
        let about = entry.text.split_once(": ").map(|(of, _)| of.to_lowercase());
        match about.filter(|of| names.contains(of)) {
            Some(of) => of == name,
            None => entry.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')),
        }
    };
    let mut rows: Vec<[String; 2]> =
        metrics().into_iter().filter(own).map(|entry| [code(entry.name), entry.text]).collect();
    rows.sort_by_key(|[metric, _]| {
        (primary.as_deref().is_none_or(|p| code(p) != *metric), !headline.iter().any(|h| code(h) == *metric))
    });
    say!("\n## Metrics\n");
    if let Some(primary) = primary {
        let also = experiment.declaration().also_decide().iter();
        let also: String = also.map(|metric| format!(" and {}", code(metric.name))).collect();
        let (is, it) = if also.is_empty() { ("metric is", "it") } else { ("metrics are", "both") };
        say!("The primary {is} {}{also}: `compare --fail-on` judges {it}.\n", code(&primary));
    }
    table(["metric", "meaning"], rows);
    Ok(())
}

/// The formats of traces, and of exports.
fn formats(grammar: &Command) {
    say!("## Traces\n");
    let yes = |yes: bool| if yes { "yes" } else { DASH }.to_owned();
    let row = |(format, name, help): (Format, &str, &str)| {
        [
            code(name),
            help.to_owned(),
            yes(format.has_addresses()),
            yes(format.knows_writes()),
            yes(format.knows_sizes()),
        ]
    };
    table(
        ["format", "contents", "byte addresses", "writes", "sizes"],
        Format::ALL.into_iter().map(row).collect(),
    );
    say!("\n## Exports\n");
    let format =
        grammar.find_subcommand("export").and_then(|c| c.get_arguments().find(|a| a.get_id() == "format"));
    let values = format.map(clap::Arg::get_possible_values).unwrap_or_default();
    let row = |v: &clap::builder::PossibleValue| {
        [code(v.get_name()), v.get_help().map(ToString::to_string).unwrap_or_default()]
    };
    table(["format", "contents"], values.iter().map(row).collect());
}

/// What `explain` explains, without the environment, which has a page of its own.
fn glossary() {
    for (heading, entries) in explain::sections().into_iter().filter(|(heading, _)| *heading != "Environment")
    {
        say!("## {heading}");
        let is_word = matches!(heading, "Terms" | "Verdicts" | "Warnings");
        for Entry { name, text } in entries {
            let name = if is_word { name.to_owned() } else { code(name) };
            say!("\n**{name}**: {text}");
        }
        say!();
    }
}

/// The forms of targets, and which conditions each kind supports for which experiments.
fn supported() {
    let forms = catalogue::forms();
    let meaning = |help: &str| match help.split_once("Options: ") {
        Some((what, options)) => format!("{what}Options: {}", code(options)),
        None => help.to_owned(),
    };
    table(
        ["target", "meaning"],
        forms.into_iter().map(|(form, help)| [code(&form), meaning(help)]).collect(),
    );
    say!("\n## Supported experiments and conditions\n");
    let mut rows: Vec<[String; 3]> = Vec::new();
    for kind in targets::kinds() {
        let asked = if kind == "host" { targets::ANY_HOST } else { &kind };
        let plain = |e: &Experiment| targets::refusal(asked, e, &Setting::default()).is_none();
        let all: Vec<Experiment> = targets::experiments().into_iter().filter(plain).collect();
        let names: Vec<&str> = all.iter().map(Experiment::name).collect();
        let takes = |setting: &Setting| all.iter().any(|e| targets::refusal(asked, e, setting).is_none());
        let conditions = targets::single_conditions().into_iter();
        let conditions: Vec<&str> = conditions.filter(|(_, s)| takes(s)).map(|(name, _)| name).collect();
        let conditions = if conditions.is_empty() { DASH.to_owned() } else { conditions.join(", ") };
        // Targets that are alike share a row.
        match rows.last_mut() {
            Some([targets, experiments, with]) if *experiments == names.join(", ") && *with == conditions => {
                *targets = format!("{targets}, {}", code(&kind));
            }
            _ => rows.push([code(&kind), names.join(", "), conditions]),
        }
    }
    table(["target", "experiments", "conditions that at least one of them takes"], rows);
}
