//! `pagelab mechanisms`: what each mechanism of a kernel costs or saves, under ten loads.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use pagelab_analysis::mechanisms::{Baseline, Figure, LOADS, Load, Matrix, Reason, Switch, switches};
use pagelab_experiment::declaration::listed;
use pagelab_experiment::setting::names;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Setting, TargetSpec};
use pagelab_report::mechanisms::{changes, key, largest, left_out, loads, summary};
use pagelab_report::text;
use serde_json::{Value, json};

use crate::cells::Cells;
use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::output::{self, print_json, say, sentences};
use crate::{page, targets};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:
  pagelab mechanisms --on kernel:vmlinuz-6.12
  pagelab mechanisms --on kernel:vmlinuz --loads loop,zipf --switches thp=64k
  pagelab mechanisms --list
",
    after_help = "A cell of the matrix is a load under a switch, compared with the load without a switch. Two figures \
are compared: instructions per reference, fork or page, and major faults as multiples of OPT's (offline optimum) with \
as many frames as the limit has. The second is known only for loads whose references are known. A load without a \
switch is repeated four times as often as a cell. The interval is that of the rank test (95%), over repetitions that \
start at different points between two timer ticks.

The guest has accel=icount and swap=zram. Two guests run at once if there are two processors and enough memory. A \
switch that the kernel does not have is left out. The runs are not kept in the notebook: '--list' shows the command \
line of each load. Ctrl-C shows what was measured so far.

Exit status: 0 success; 2 wrong usage; 3 no load could be measured."
)]
pub struct Arguments {
    /// The kernel image
    #[arg(long, value_name = "TARGET", required_unless_present = "list")]
    on: Option<TargetSpec>,
    /// Measure these loads only
    #[arg(long, value_name = "LOAD,…", value_delimiter = ',')]
    loads: Vec<String>,
    /// Measure these switches only
    #[arg(long, value_name = "SWITCH,…", value_delimiter = ',')]
    switches: Vec<String>,
    /// Repetitions of each cell; a load without a switch has four times as many
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// List the loads and the switches, and measure nothing
    #[arg(long)]
    list: bool,
    /// The file for the page with the heat map; none: no page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    html: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Measures the matrix, and prints and draws it.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let loads = chosen("--loads", &arguments.loads, LOADS.to_vec(), |load| load.name)?;
    let switches = chosen("--switches", &arguments.switches, switches(), |switch| switch.name)?;
    let target = match &arguments.on {
        Some(target) if !arguments.list => guest(target)?,
        _ => return list(&loads, &switches, arguments.json, context),
    };
    let cells = Cells::new(target.clone(), loads, switches, arguments.repeat)?;
    let matrix = cells.measure(context)?;
    let is_empty = matrix.baselines.iter().all(|of| *of == Baseline::default());
    if is_empty {
        return Err(match cells.interrupted() {
            true => CommandError::Stopped.into(),
            false => anyhow!("no load could be measured"),
        });
    }
    let html = Some(arguments.html.as_path()).filter(|html| html.as_os_str() != "none");
    if let Some(html) = html {
        page::write_matrix(&matrix, &described(&target, arguments.repeat), html)?;
    }
    if arguments.json {
        print_json("mechanisms", as_json(&matrix, &target, arguments.repeat))?;
    } else {
        print(&matrix, html, context);
    }
    if cells.interrupted() { Err(CommandError::Stopped.into()) } else { Ok(ExitCode::SUCCESS) }
}

/// The members of `all` that are wanted, in their order; all of them if none is named.
fn chosen<T>(
    option: &str,
    wanted: &[String],
    all: Vec<T>,
    name: impl Fn(&T) -> &'static str,
) -> Result<Vec<T>> {
    let names: Vec<&str> = all.iter().map(&name).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| !names.contains(&wanted.as_str())) {
        return Err(usage(format!(
            "{option}: unknown name '{unknown}'; must be one of {}\nhint: 'pagelab mechanisms --list' explains them",
            listed(unknown, &names)
        )));
    }
    Ok(all
        .into_iter()
        .filter(|one| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name(one)))
        .collect())
}

/// The guest to measure.
///
/// # Errors
/// When it is no guest, does not count instructions, or has conditions of its own.
fn guest(target: &TargetSpec) -> Result<TargetSpec> {
    if !matches!(target.kind, TargetKind::Kernel(_)) {
        return Err(usage(format!(
            "--on {target}: mechanisms changes settings of the kernel, so it runs in guests only\nhint: give a kernel \
             image: --on kernel:PATH"
        )));
    }
    let target = targets::counting(target.clone());
    if let Some((key, value)) = target.options.iter().find(|(key, value)| key == "accel" && value != "icount")
    {
        return Err(usage(format!(
            "--on {target}: {key}={value} does not count instructions\nhint: leave out {key}"
        )));
    }
    let (own, _) = target.setting(&Setting::default()).map_err(|e| usage(format!("--on {target}: {e}")))?;
    match own.values().iter().find(|value| value.key() != names::SWAP) {
        Some(value) => Err(usage(format!(
            "--on {target}: {} is part of the loads and switches\nhint: leave it out",
            value.key()
        ))),
        None => Ok(target),
    }
}

/// The target and the repetitions in a line.
fn described(target: &TargetSpec, repeat: u32) -> String {
    let repetitions = if repeat == 1 { "1 repetition".to_owned() } else { format!("{repeat} repetitions") };
    format!("{} · {repetitions} of each cell · pagelab {}", target.brief(), env!("CARGO_PKG_VERSION"))
}

/// Lists the loads and switches.
fn list(loads: &[Load], switches: &[Switch], json: bool, context: &Context) -> Result<ExitCode> {
    let conditions = |switch: &Switch| switch.values.iter().map(ToString::to_string).collect::<Vec<_>>();
    if json {
        let load = |load: &Load| json!({ "name": load.name, "help": load.help, "line": load.line });
        let switch = |switch: &Switch| json!({ "name": switch.name, "help": switch.help, "conditions": conditions(switch) });
        let loads: Vec<Value> = loads.iter().map(load).collect();
        let switches: Vec<Value> = switches.iter().map(switch).collect();
        return print_json("mechanisms", json!({ "loads": loads, "switches": switches }));
    }
    let rows: Vec<_> = loads.iter().map(|load| vec![load.name.to_owned(), load.help.to_owned()]).collect();
    say!("{}\n", text::table(&["load", "what it does"], &rows, &context.style));
    for load in loads {
        sentences(&format!("{}: pagelab run {}", load.name, load.line), "", "    ", &context.style);
    }
    let row =
        |switch: &Switch| vec![switch.name.to_owned(), switch.help.to_owned(), conditions(switch).join(", ")];
    let rows: Vec<_> = switches.iter().map(row).collect();
    say!("\n{}", text::table(&["switch", "what it does", "conditions"], &rows, &context.style));
    Ok(ExitCode::SUCCESS)
}

/// Prints the largest effects, and a table for each figure.
fn print(matrix: &Matrix, html: Option<&Path>, context: &Context) {
    let style = &context.style;
    let effects = largest(matrix);
    match effects.len() {
        0 => say!("No switch has a significant effect."),
        _ => say!("The largest effects, at most one of each switch"),
    }
    for (n, effect) in effects.iter().enumerate() {
        sentences(&format!("{}. {effect}", n + 1), "  ", "     ", style);
    }
    say!();
    output::text(&loads(matrix).terminal(style));
    for figure in Figure::ALL {
        // Of loads without known references there is nothing to show.
        if matrix.effects(figure).next().is_some() {
            say!();
            output::text(&changes(matrix, figure, style).terminal(style));
        }
    }
    say!();
    sentences(&key(), "", "", style);
    sentences(&summary(matrix), "", "", style);
    for line in left_out(matrix) {
        sentences(&line, "", "  ", style);
    }
    if let Some(html) = html {
        say!("Plots: {}", html.display());
    }
}

/// The matrix as JSON.
fn as_json(matrix: &Matrix, target: &TargetSpec, repeat: u32) -> Value {
    let load = |(load, of): (&Load, &Baseline)| {
        json!({
            "name": load.name,
            "line": load.line,
            "per": load.unit,
            "instructions": of.instructions,
            "regret": of.regret,
            "opt": of.opt,
        })
    };
    let cells: Vec<Value> = matrix
        .cells()
        .map(|(switch, load, cell)| {
            let missing = cell.missing.as_ref().map(|reason| match reason {
                Reason::Unsupported(why) => json!({ "unsupported": why }),
                Reason::Failed(why) => json!({ "failed": why }),
            });
            json!({
                "switch": switch.name,
                "load": load.name,
                "instructions": cell.instructions,
                "regret": cell.regret,
                "missing": missing,
            })
        })
        .collect();
    json!({
        "target": target,
        "repeat": repeat,
        "loads": matrix.loads.iter().zip(&matrix.baselines).map(load).collect::<Vec<_>>(),
        "cells": cells,
        "largest": largest(matrix),
    })
}
