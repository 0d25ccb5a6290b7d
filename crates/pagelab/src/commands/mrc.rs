//! `pagelab mrc STREAM`: the miss ratio against memory.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_experiment::Size;
use pagelab_model::mrc::lru::LruCurve;
use pagelab_model::mrc::shards::{Sampling, Shards};
use pagelab_model::mrc::sizes;
use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::replay_all;
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
  pagelab mrc trace.zst                            exact LRU, every size in one pass
  pagelab mrc trace.zst --policy arc --policy opt --memory 64M,128M,256M
  pagelab mrc huge.zst --sample 0.01               by spatial sampling, with its error
  pagelab mrc zipf:0.9 --pages 100000 --json
")]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// The policies (see: pagelab targets)
    #[arg(long, value_name = "POLICY", default_value = "lru")]
    policy: Vec<PolicyKind>,
    /// The memory sizes [default: 24 from one page to all]
    #[arg(long, value_name = "SIZE", num_args = 1.., value_delimiter = ',')]
    memory: Vec<Size>,
    /// LRU from a sample of this share of the pages (SHARDS)
    #[arg(long, value_name = "SHARE", conflicts_with = "policy")]
    sample: Option<f64>,
    /// Draw the curves as a page
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object a line for each policy and size
    #[arg(long)]
    json: bool,
}

/// A point of a curve.
struct Point {
    policy: String,
    frames: u32,
    misses: Option<u64>,
    ratio: Option<f64>,
    /// The standard error of a sampled ratio.
    error: Option<f64>,
}

/// Computes the curves and prints them.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if let Some(share) = arguments.sample
        && !(share > 0.0 && share <= 1.0)
    {
        return Err(usage(format!("--sample {share}: a share above 0 and up to 1")));
    }
    let given = frames(&arguments.memory, arguments.stream.page_size())?;
    let stream = arguments.stream.load(context)?;
    let frames = if given.is_empty() { sizes(stream.pages(), 24) } else { given };
    let references = stream.len() as u64;
    let mut points = Vec::new();
    if let Some(share) = arguments.sample {
        let mut shards = Shards::new(Sampling::Rate(share), 1);
        let work = Work::new("sampling", context.quiet);
        for (n, chunk) in stream.references().chunks(1 << 20).enumerate() {
            work.at((n << 20) as f64 / references as f64);
            chunk.iter().for_each(|&page| shards.reference(u64::from(page)));
        }
        let curve = shards.curve();
        for &frames in &frames {
            let (ratio, error) = curve.miss_ratio(frames).unzip();
            points.push(Point { policy: "lru".into(), frames, misses: None, ratio, error });
        }
    } else {
        let lru = arguments.policy.contains(&PolicyKind::Lru).then(|| {
            let work = Work::new("measuring distances", context.quiet);
            LruCurve::with(&stream, |fraction| work.at(fraction))
        });
        let others: Vec<(PolicyKind, u32)> = arguments
            .policy
            .iter()
            .filter(|policy| **policy != PolicyKind::Lru)
            .flat_map(|policy| frames.iter().map(move |&frames| (policy.clone(), frames)))
            .collect();
        let interrupt = Interrupt::listen().context("the signal handlers cannot be installed")?;
        let work = Work::new("replaying", context.quiet);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut replayed = replay_all(&stream, &others, threads, &|done, total| {
            work.at(done as f64 / total as f64);
            if interrupt.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(|_| CommandError::Interrupted)?
        .into_iter();
        for policy in &arguments.policy {
            for &frames in &frames {
                let misses = match (&lru, policy) {
                    (Some(curve), PolicyKind::Lru) => curve.misses(frames),
                    _ => replayed.next().expect("one result for each policy and size").misses,
                };
                let ratio = Some(misses as f64 / references as f64);
                points.push(Point {
                    policy: policy.to_string(),
                    frames,
                    misses: Some(misses),
                    ratio,
                    error: None,
                });
            }
        }
    }
    if let Some(file) = &arguments.html {
        draw(&arguments.stream.stream, &points, references, file)?;
    }
    if arguments.json {
        let mut out = std::io::stdout().lock();
        for point in &points {
            let object = json!({
                "schema_version": SCHEMA_VERSION,
                "policy": point.policy,
                "frames": point.frames,
                "references": references,
                "misses": point.misses,
                "miss_ratio": point.ratio,
                "standard_error": point.error,
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
    let table: Vec<Vec<String>> = points.iter().map(row).collect();
    say!("{}", text::table(&["policy", "frames", "misses", "miss ratio", ""], &table, &context.style));
    Ok(ExitCode::SUCCESS)
}

fn draw(stream: &str, points: &[Point], references: u64, file: &Path) -> Result<()> {
    let curve: Vec<_> = points.iter().map(|p| (p.policy.clone(), p.frames, p.ratio)).collect();
    let caption = "misses divided by references; the first reference to a page is a miss.";
    let section = Section {
        heading: stream.to_owned(),
        paragraphs: vec![format!("{} references.", text::count(references as f64))],
        tables: Vec::new(),
        plots: vec![page::misses("Miss ratio against memory", caption, &curve)],
    };
    page::write_document("Miss ratio curves", &[section], file)
}

/// A row of the table, with the ratio as a bar: the curve can be seen without a page.
fn row(point: &Point) -> Vec<String> {
    const WIDTH: f64 = 30.0;
    let ratio = point.ratio.map_or_else(
        || text::DASH.to_owned(),
        |ratio| match point.error {
            Some(error) => format!("{ratio:.4} ± {error:.4}"),
            None => format!("{ratio:.4}"),
        },
    );
    let misses = point.misses.map_or_else(|| text::DASH.to_owned(), |misses| text::count(misses as f64));
    let bar = "█".repeat((point.ratio.unwrap_or(0.0) * WIDTH).round() as usize);
    vec![point.policy.clone(), text::count(f64::from(point.frames)), misses, ratio, bar]
}
