//! `pagelab experiments`, `targets`, `patterns`: what there is.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::declaration::Declared;
use pagelab_experiment::{Experiment, Setting};
use pagelab_model::parameter;
use pagelab_model::policy::PolicyKind;
use pagelab_model::target::Model;
use pagelab_reference::Pattern;
use pagelab_report::text;
use serde_json::json;

use crate::context::Context;
use crate::failure::usage;
use crate::output::{print_json, say, sentences};
use crate::targets;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:\n  pagelab patterns\n  pagelab patterns --json\n")]
pub struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What can be named behind `--on`: (form, one line).
const TARGETS: &[(&str, &str)] = &[
    ("host", "the running kernel"),
    (
        "host,KEY=VALUE…",
        "the running kernel under its own settings. Options: memory=64M, swap=file|zram|none, \
        swap-size=SIZE, thp=always|madvise|never|\"SIZE:MODE,…\", swappiness=0-200, functions=on|off, profile=HZ, set=/sys/FILE=VALUE",
    ),
    (
        "kernel:PATH,KEY=VALUE…",
        "a kernel image booted in a virtual machine. Options: those of the host, cpus=N, ram=SIZE, \
        append=\"WORDS\", accel=kvm|tcg|icount, machine=NAME, cpu=MODEL, qemu=\"WORDS\", numa=2x512M|256M+512M@slow, distance=N, modules=DIR, init=PATH, root=DIR, file=PATH, timeout=SECONDS, trace=functions|cache|on, to=FILE",
    ),
    (
        "model:NAME,KEY=VALUE…",
        "a simulator in virtual time. 'pagelab targets NAME' lists its parameters. If it pages, frames=N replaces the memory limit",
    ),
    (
        "pager:POLICY,KEY=VALUE…",
        "real memory of mapanon or of a program, paged in user space by a policy. It has frames=N instead \
        of the memory limit, the policy's own parameters, and hidden=SHARE: the policy sees references to \
        that share of the frames (1: every reference)",
    ),
];

/// Prints the experiments with their parameters.
pub fn experiments(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if arguments.json {
        let list: Vec<_> = Experiment::catalogue()
            .into_iter()
            .map(|Declared { name, help, parameters }| {
                let parameters: Vec<_> = parameters
                    .into_iter()
                    .map(|p| json!({"name": p.name, "default": p.default, "help": p.help, "words": p.words}))
                    .collect();
                json!({"name": name, "help": help, "parameters": parameters})
            })
            .collect();
        return print_json("experiments", list.into());
    }
    for Declared { name, help, parameters } in Experiment::catalogue() {
        sentences(&format!("{name}: {help}"), "", "  ", &context.style);
        let rows: Vec<Vec<String>> = parameters
            .into_iter()
            .map(|p| {
                let words =
                    if p.words.is_empty() { String::new() } else { format!(" ({})", p.words.join(", ")) };
                vec![
                    format!("  --{}", p.name),
                    p.default.unwrap_or_else(|| text::DASH.to_owned()),
                    format!("{}{words}", p.help),
                ]
            })
            .collect();
        say!("{}\n", text::table(&["  parameter", "default", "meaning"], &rows, &context.style));
    }
    Ok(ExitCode::SUCCESS)
}

/// The arguments of `targets`.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab targets\n  pagelab targets sun4c-sunos403\n  pagelab targets --honours\n"
)]
pub struct TargetArguments {
    /// List the parameters of this model, with defaults, ranges and sources
    #[arg(value_name = "MODEL", conflicts_with = "honours")]
    model: Option<String>,
    /// Which target honours which experiment and which condition
    #[arg(long)]
    honours: bool,
    #[command(flatten)]
    common: Arguments,
}

/// Prints which kind of target honours what: for each experiment and condition, yes or why not.
fn honours(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let mut rows = Vec::new();
    let mut list = Vec::new();
    for kind in targets::kinds() {
        for experiment in targets::experiments() {
            let refusal = |asked| targets::refusal(&kind, &experiment, &asked);
            if !arguments.json && refusal(Setting::default()).is_some() {
                continue;
            }
            let mut row = vec![kind.clone(), experiment.name().to_owned()];
            for (condition, setting) in targets::single_conditions() {
                let refused = refusal(setting);
                row.push(if refused.is_none() { "yes" } else { text::DASH }.to_owned());
                list.push(json!({
                    "target": kind,
                    "experiment": experiment.name(),
                    "condition": condition,
                    "honoured": refused.is_none(),
                    "why": refused.map(|refused| refused.to_string()),
                }));
            }
            rows.push(row);
        }
    }
    if arguments.json {
        return print_json("honours", list.into());
    }
    let conditions = targets::single_conditions().into_iter().map(|(name, _)| name);
    let headings: Vec<&str> = ["target", "experiment"].into_iter().chain(conditions).collect();
    say!("{}", text::table(&headings, &rows, &context.style));
    let dash = text::DASH;
    let meaning = format!(
        "A target does not run experiments without a row. {dash} means refused, before any change; --json \
        has the reasons."
    );
    sentences(&meaning, "", "  ", &context.style);
    Ok(ExitCode::SUCCESS)
}

/// The forms of targets, with one line each.
pub fn forms() -> Vec<(String, &'static str)> {
    let models =
        targets::systems().chain(PolicyKind::catalogue().iter().map(|one| (one.form, one.help.as_str())));
    let mut list: Vec<(String, &str)> =
        TARGETS.iter().map(|(form, help)| ((*form).to_owned(), *help)).collect();
    list.extend(models.map(|(name, help)| (format!("model:{name}"), help)));
    list
}

/// Prints the forms of targets.
pub fn targets(arguments: &TargetArguments, context: &Context) -> Result<ExitCode> {
    if arguments.honours {
        return honours(&arguments.common, context);
    }
    if let Some(name) = &arguments.model {
        return model(name, &arguments.common, context);
    }
    let arguments = &arguments.common;
    let list = forms();
    let list: Vec<(&str, &str)> = list.iter().map(|(form, help)| (form.as_str(), *help)).collect();
    pairs("targets", "target", &list, arguments, context)
}

/// A parameter as JSON.
fn parameter_json(one: &parameter::Declared) -> serde_json::Value {
    json!({
        "name": one.name,
        "default": one.written(one.value),
        "unit": one.unit,
        "range": one.range,
        "help": one.help,
        "source": one.standing,
    })
}

/// Prints the parameters of a model.
fn model(name: &str, arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let name = name.strip_prefix("model:").unwrap_or(name);
    let hint = "\nhint: 'pagelab targets' lists the models";
    let list = Model::new(name, &[]).map_err(|error| usage(format!("{error}{hint}")))?.parameters();
    let help = targets::systems().find(|(system, _)| *system == name).map(|(_, help)| help);
    if arguments.json {
        let parameters: Vec<_> = list.iter().map(parameter_json).collect();
        return print_json(
            "target",
            json!({ "name": format!("model:{name}"), "help": help, "parameters": parameters }),
        );
    }
    let title = help.map_or_else(|| format!("model:{name}"), |help| format!("model:{name}: {help}"));
    sentences(&title, "", "  ", &context.style);
    let row = |one: &parameter::Declared| {
        let cells = [one.name, &one.shown(one.value), &one.range_text(), one.help];
        cells.map(str::to_owned).into_iter().chain([one.standing.to_string()]).collect()
    };
    let rows: Vec<Vec<String>> = list.iter().map(row).collect();
    say!("{}", text::table(&["parameter", "default", "range", "meaning", "source"], &rows, &context.style));
    if let Some(first) = list.first() {
        let example = format!("--on model:{name},{}={}", first.name, first.written(first.value));
        sentences(
            &format!("Set a parameter as an option of the target: {example}."),
            "",
            "  ",
            &context.style,
        );
    }
    if let Ok(policy) = name.parse::<PolicyKind>() {
        let own =
            format!("With its own parameters the policy is {policy}; 'pagelab policies' lists all policies.");
        sentences(&own, "", "  ", &context.style);
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the patterns.
pub fn patterns(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    pairs("patterns", "pattern", Pattern::catalogue(), arguments, context)
}

fn pairs(
    what: &str,
    heading: &str,
    list: &[(&str, &str)],
    arguments: &Arguments,
    context: &Context,
) -> Result<ExitCode> {
    if arguments.json {
        let list: Vec<_> = list.iter().map(|(name, help)| json!({"name": name, "help": help})).collect();
        return print_json(what, list.into());
    }
    let rows: Vec<Vec<String>> = list.iter().map(|(n, h)| vec![(*n).to_owned(), (*h).to_owned()]).collect();
    say!("{}", text::table(&[heading, "what it is"], &rows, &context.style));
    Ok(ExitCode::SUCCESS)
}
