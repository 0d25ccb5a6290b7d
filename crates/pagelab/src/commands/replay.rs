//! `pagelab replay STREAM --on model:… --memory SIZE…`: what models make of a recorded stream.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Size, TargetSpec};
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::replay_all;
use pagelab_model::systems::SystemKind;
use pagelab_reference::Stream;
use pagelab_report::{Section, text};
use serde_json::json;

use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::output::SCHEMA_VERSION;
use crate::output::say;
use crate::page;
use crate::progress::Work;
use crate::stream::{StreamArguments, frames};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:
  pagelab replay trace.zst --on model:lru --on model:s3-fifo --memory 64M 256M 1G
  valgrind --tool=lackey --trace-mem=yes --log-file=trace.txt sort words
  pagelab replay trace.txt --on model:opt --on model:clock --memory 100p,200p,400p --json
")]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// The models
    #[arg(long, value_name = "MODEL", default_values = ["model:lru", "model:opt"])]
    on: Vec<TargetSpec>,
    /// The memory sizes: bytes with K, M, G, or pages with p
    #[arg(long, value_name = "SIZE", num_args = 1.., value_delimiter = ',', required = true)]
    memory: Vec<Size>,
    /// Draw the misses as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object a line for each model and size
    #[arg(long)]
    json: bool,
}

/// A model that can be replayed to.
enum Replayable {
    Policy(PolicyKind),
    System(&'static SystemKind),
}

/// What a model made of the stream at one size.
struct Row {
    model: String,
    frames: u32,
    misses: u64,
}

/// Replays and prints.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let models = arguments.on.iter().map(model).collect::<Result<Vec<_>>>()?;
    let frames = frames(&arguments.memory, arguments.stream.page_size())?;
    let stream = arguments.stream.load(context)?;
    let rows = replay(&stream, &models, &frames, context)?;
    let references = stream.len() as u64;
    let ratio = |row: &Row| row.misses as f64 / references as f64;
    if let Some(file) = &arguments.html {
        let points: Vec<_> =
            rows.iter().map(|row| (row.model.clone(), row.frames, Some(ratio(row)))).collect();
        let section = Section {
            heading: arguments.stream.stream.clone(),
            paragraphs: vec![format!("{} references.", text::count(references as f64))],
            tables: Vec::new(),
            plots: vec![page::misses("Misses of each model", "misses divided by references.", &points)],
        };
        page::write_document("Replay", &[section], file)?;
    }
    if arguments.json {
        let mut out = std::io::stdout().lock();
        for row in &rows {
            let object = json!({
                "schema_version": SCHEMA_VERSION,
                "model": row.model,
                "frames": row.frames,
                "references": references,
                "misses": row.misses,
                "miss_ratio": ratio(row),
            });
            writeln!(out, "{object}")?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{}: {} references to {} pages",
        arguments.stream.stream,
        text::count(references as f64),
        text::count(f64::from(stream.pages()))
    );
    let table: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.model.clone(),
                text::count(f64::from(row.frames)),
                text::count(row.misses as f64),
                format!("{:.4}", ratio(row)),
            ]
        })
        .collect();
    say!("{}", text::table(&["model", "frames", "misses", "miss ratio"], &table, &context.style));
    Ok(ExitCode::SUCCESS)
}

fn model(target: &TargetSpec) -> Result<(String, Replayable)> {
    let TargetKind::Model(name) = &target.kind else {
        return Err(usage(format!(
            "--on {target}: a recorded stream can be replayed on models only (see: pagelab targets)"
        )));
    };
    if let (Some(system), true) = (SystemKind::named(name), target.options.is_empty()) {
        return Ok((system.name.to_owned(), Replayable::System(system)));
    }
    let mut text = name.clone();
    for (n, (key, value)) in target.options.iter().enumerate() {
        text += if n == 0 && !name.contains(':') { ":" } else { "," };
        text += &format!("{key}={value}");
    }
    let kind: PolicyKind =
        text.parse().map_err(|e| usage(format!("--on {target}: {e} (see: pagelab targets)")))?;
    Ok((kind.to_string(), Replayable::Policy(kind)))
}

/// Every model at every size, in the order given; policies on every core.
fn replay(
    stream: &Stream,
    models: &[(String, Replayable)],
    frames: &[u32],
    context: &Context,
) -> Result<Vec<Row>> {
    let interrupt = Interrupt::listen().context("the signal handlers cannot be installed")?;
    let work = Work::new("replaying", context.quiet);
    let policies: Vec<(PolicyKind, u32)> = models
        .iter()
        .filter_map(|(_, model)| match model {
            Replayable::Policy(kind) => Some(kind),
            Replayable::System(_) => None,
        })
        .flat_map(|kind| frames.iter().map(move |&frames| (kind.clone(), frames)))
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut replayed = replay_all(stream, &policies, threads, &|done, total| {
        work.at(done as f64 / total as f64);
        if interrupt.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .map_err(|_| CommandError::Interrupted)?
    .into_iter();
    let mut rows = Vec::new();
    for (name, model) in models {
        for &frames in frames {
            let misses = match model {
                Replayable::Policy(_) => replayed.next().expect("one result for each policy and size").misses,
                Replayable::System(system) => system.misses(stream, frames)?,
            };
            rows.push(Row { model: name.clone(), frames, misses });
        }
    }
    Ok(rows)
}
