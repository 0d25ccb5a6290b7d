//! `pagelab mrc STREAM`: the miss ratio against memory.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::curves::{Program, knees};
use pagelab_analysis::figure::{Plot, Series};
use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Curve;
use pagelab_model::mrc::footprint::WorkingSetCurve;
use pagelab_model::mrc::lru::LruCurve;
use pagelab_model::mrc::shards::{self, Sampling};
use pagelab_model::policy::PolicyKind;
use pagelab_report::{Section, curves, text};
use pagelab_simulation::{Wanted, sampled};
use serde_json::json;

use crate::computed::{self, Computed, Keeping};
use crate::context::Context;
use crate::failure::usage;
use crate::output::{SCHEMA_VERSION, aside, say, sentences};
use crate::page::Drawing;
use crate::stream::{Memory, StreamArguments, described, frames, sizes};
use crate::ticker::Interval;
use crate::watching::Watching;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Examples:
  pagelab mrc trace.zst                     # exact LRU at every size
  pagelab mrc trace.zst --on arc --on opt --memory 64M,128M,256M
  pagelab mrc huge.zst --sample 0.01        # sampled, with its error
  pagelab mrc zipf:0.9 --pages 100000 --json
  pagelab mrc morning.zst evening.zst --plot
")]
pub struct Arguments {
    #[command(flatten)]
    stream: StreamArguments,
    /// More traces or patterns, for one table of all
    #[arg(value_name = "STREAM")]
    more: Vec<String>,
    /// The policies, with or without 'model:' (see: pagelab policies)
    #[arg(long = "on", value_name = "POLICY", default_value = "lru", alias = "policy")]
    policy: Vec<PolicyKind>,
    /// The memory sizes: bytes with K, M, G, pages with p, or a percentage of the stream's pages [default: 24
    /// from one page to all]
    #[arg(long, value_name = "SIZE", num_args = 1.., value_delimiter = ',')]
    memory: Vec<Memory>,
    /// From a sample of this share of the pages (LRU: SHARDS; others: miniature simulation)
    #[arg(long, value_name = "SHARE")]
    sample: Option<f64>,
    /// LRU from a sample of at most this many pages: bounded memory however long the trace (SHARDS)
    #[arg(long, value_name = "N", conflicts_with_all = ["policy", "sample"], value_parser = clap::value_parser!(u32).range(1..))]
    sample_pages: Option<u32>,
    /// The cost of a miss, for the memory that suffices: a measured major fault [default: 79500]
    #[arg(long, value_name = "NANOSECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    miss_cost: Option<u64>,
    /// How long the program runs without misses [default: 1 ns per reference]
    #[arg(long, value_name = "SECONDS")]
    program_time: Option<Interval>,
    #[command(flatten)]
    drawing: Drawing,
    /// Print one JSON object per line for each policy and size
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    keeping: Keeping,
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

/// Sizes where none are asked for.
const POINTS: usize = 24;

/// The curves, and what there is to say of their stream.
struct Curves {
    points: Vec<Point>,
    references: u64,
    pages: String,
    /// The same as a number.
    page_count: u64,
    described: Option<String>,
    /// Whether the recording lacks the references within a window.
    through_window: bool,
    /// The share of the pages that was sampled; none: all.
    sampled: Option<f64>,
    /// LRU's curve as the times between references give it, where a page is drawn.
    working_set: Option<WorkingSetCurve>,
    /// The greatest difference between that and LRU's exact curve, and the pages that it is at.
    apart: Option<(f64, f64)>,
}

/// The curves of a stream.
struct Done {
    stream: StreamArguments,
    found: Curves,
    about: Curve,
    results: Vec<Computed>,
}

/// Computes the curves and prints them.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    // Wrong sizes are refused before a long trace is read.
    frames(&arguments.memory, arguments.stream.page_size(), 1)?;
    let rate = arguments.sample.map(Sampling::of_rate).transpose();
    let sampling = rate
        .map_err(|wrong| usage(format!("--sample {wrong}")))?
        .or(arguments.sample_pages.map(|pages| Sampling::Pages(pages as usize)));
    let mut list = Vec::new();
    for stream in arguments.stream.and(&arguments.more) {
        let found = match sampling {
            Some(sampling) => sampled(arguments, &stream, sampling, context)?,
            None => exact(arguments, &stream, context)?,
        };
        let about = Curve {
            stream: stream.words(),
            page_size: stream.page_size(),
            references: found.references,
            pages: found.page_count,
            sample: found.sampled,
            miss_cost: arguments.miss_cost.map(|cost| cost as f64),
            program_time: arguments.program_time.map(|time| time.0.as_nanos() as f64),
            through_window: found.through_window,
        };
        let results = computed(&about, &found.points)?;
        if !arguments.json {
            let references = text::count(found.references as f64);
            say!("{}: {references} references to {} pages", stream.stream, found.pages);
        }
        if let Some(described) = &found.described {
            aside(described, arguments.json);
        }
        list.push(Done { stream, found, about, results });
    }
    if arguments.json {
        let mut out = crate::output::stdout();
        for done in &list {
            let Done { stream, found, about, results } = done;
            let program = Program::of(about);
            let timed = program.is_timed();
            let drawn = Computed::drawn(results);
            for point in &found.points {
                let table = drawn.iter().find(|curve| curve.name == point.policy).map(|curve| curve.table);
                let enough = table.and_then(|table| program.enough(table));
                let size = f64::from(point.frames) * about.page_size as f64;
                let object = json!({
                    "schema_version": SCHEMA_VERSION,
                    "stream": stream.stream,
                    "policy": point.policy,
                    "frames": point.frames,
                    "references": found.references,
                    "misses": point.misses,
                    "miss_ratio": point.ratio,
                    "standard_error": point.error,
                    "misses_per_second": point.ratio.filter(|_| timed).map(|ratio| program.misses_per_second(ratio)),
                    "sufficient": timed.then(|| enough.is_some_and(|enough| size >= enough)),
                    "knees": table.filter(|_| timed).map(|table| knees(table, &program)),
                    "miss_cost_ns": program.miss,
                    "miss_cost_assumed": about.miss_cost.is_none(),
                    "program_time_ns": timed.then_some(program.time),
                    "program_time_assumed": about.program_time.is_none(),
                });
                writeln!(out, "{object}")?;
            }
        }
    } else {
        print(&list, context);
    }
    if arguments.drawing.wanted() {
        let sections: Vec<Section> = list.iter().map(section).collect();
        arguments.drawing.draw("Miss ratio curves", &sections, arguments.json)?;
    }
    let results = list.into_iter().flat_map(|done| done.results).collect();
    arguments.keeping.keep(results, arguments.json, context)?;
    Ok(ExitCode::SUCCESS)
}

/// One table for all streams, and what there is to say of it.
fn print(list: &[Done], context: &Context) {
    let table = match list {
        [only] => curves::beside(&Computed::drawn(&only.results)),
        _ => {
            let labels: Vec<String> = list.iter().map(|done| done.stream.label()).collect();
            let rows = |done: &Done| curves::rows(&Computed::drawn(&done.results));
            curves::joined(&labels, list.iter().map(rows).collect())
        }
    };
    say!("{}", text::table(&table.headings, &table.rows, &context.style));
    for done in list {
        let answer = answer(done);
        if !answer.is_empty() {
            let answer = if list.len() > 1 { format!("{}: {answer}", done.stream.label()) } else { answer };
            sentences(&answer, "", "  ", &context.style);
        }
    }
    if list.iter().flat_map(|done| &done.found.points).any(|point| point.ratio.is_none()) {
        say!("{}: fewer than {} sampled pages; use a larger --sample", text::DASH, shards::TRUSTED);
    }
}

/// Which policy does best, and the memory that suffices.
fn answer(done: &Done) -> String {
    let drawn = Computed::drawn(&done.results);
    let sizing = match Program::of(&done.about).is_timed() {
        true => curves::sizing(&drawn, &done.about),
        false => "The recording lacks references within its window, so ratios refer to the recorded references. To \
                  size memory, give the program's run time (--program-time)."
            .to_owned(),
    };
    format!("{} {sizing}", curves::answer(&drawn)).trim().to_owned()
}

/// The curve of each policy.
fn computed(about: &Curve, points: &[Point]) -> Result<Vec<Computed>> {
    let page_size = about.page_size;
    let mut policies: Vec<&str> = points.iter().map(|point| point.policy.as_str()).collect();
    policies.dedup();
    let computed = |policy: &str| -> Result<Computed> {
        let of_it: Vec<computed::Point> = points
            .iter()
            .filter(|point| point.policy == policy)
            .map(|p| computed::Point {
                frames: p.frames,
                misses: p.misses,
                ratio: p.ratio,
                error: p.error,
                mean_resident: None,
                write_backs: None,
                byte_ratio: None,
                read_ahead: None,
            })
            .collect();
        let target = computed::model(policy)?;
        Ok(Computed::curve(Experiment::Mrc(about.clone()), target, page_size, &of_it))
    };
    policies.into_iter().map(computed).collect()
}

/// From a sample of the pages.
fn sampled(
    arguments: &Arguments,
    stream: &StreamArguments,
    sampling: Sampling,
    context: &Context,
) -> Result<Curves> {
    let sizes = sizes(&arguments.memory, stream.page_size(), POINTS)?;
    let watching = Watching::new("sampling", context.quiet)?;
    let found = sampled::sampled(&stream.source()?, &arguments.policy, &sizes, sampling, &watching)?;
    let cells = cells(&arguments.policy, &found.frames).zip(&found.ratios);
    let point = |((policy, frames), figure): (_, &Option<(f64, f64)>)| {
        let (ratio, error) = figure.unzip();
        Point { policy, frames, misses: None, ratio, error }
    };
    Ok(Curves {
        points: cells.map(point).collect(),
        references: found.references,
        pages: format!("about {}", text::count(found.pages as f64)),
        page_count: found.pages,
        described: found.reading.as_ref().map(described),
        through_window: false,
        sampled: Some(found.rate),
        working_set: None,
        apart: None,
    })
}

/// The policies one after another, each at every size.
fn cells(policies: &[PolicyKind], frames: &[u32]) -> impl Iterator<Item = (String, u32)> {
    policies.iter().flat_map(|policy| frames.iter().map(|&frames| (policy.to_string(), frames)))
}

/// Every policy at every size, exactly.
fn exact(arguments: &Arguments, stream: &StreamArguments, context: &Context) -> Result<Curves> {
    let is_lru = |policy: &PolicyKind| *policy == PolicyKind::Lru;
    let others: Vec<PolicyKind> = arguments.policy.iter().filter(|policy| !is_lru(policy)).cloned().collect();
    let lru = arguments.policy.iter().any(is_lru);
    let wanted = Wanted {
        policies: &others,
        lru,
        working_set: arguments.drawing.wanted() && lru,
        ..Wanted::at(sizes(&arguments.memory, stream.page_size(), POINTS)?)
    };
    pagelab_kernel::allocator::ask_for_huge_pages();
    let watching = Watching::new("reading the trace", context.quiet)?;
    let simulated = pagelab_simulation::replay(&stream.source()?, &wanted, &watching)?;
    let references = simulated.references;
    let mut replayed = simulated.policies.into_iter();
    let mut points = Vec::new();
    for policy in &arguments.policy {
        for &frames in &simulated.frames {
            let misses = match &simulated.lru {
                Some(curve) if is_lru(policy) => curve.misses(frames),
                _ => replayed.next().expect("one result for each policy and size").misses,
            };
            let (policy, ratio) = (policy.to_string(), Some(misses as f64 / references as f64));
            points.push(Point { policy, frames, misses: Some(misses), ratio, error: None });
        }
    }
    let both = simulated.lru.as_ref().zip(simulated.working_set.as_ref());
    Ok(Curves {
        points,
        references,
        apart: both.and_then(|(lru, working_set)| apart(lru, working_set)),
        pages: text::count(f64::from(simulated.pages)),
        page_count: u64::from(simulated.pages),
        described: simulated.reading.as_ref().map(described),
        through_window: simulated.through_window,
        sampled: None,
        working_set: simulated.working_set,
    })
}

/// The greatest difference between both curves at any size of the working set, and the pages that it is at.
fn apart(lru: &LruCurve, working_set: &WorkingSetCurve) -> Option<(f64, f64)> {
    let points = working_set.points.iter().filter(|point| point.1 >= 1.0);
    let differences = points.filter_map(|&(_, pages, ratio)| {
        let (below, above) = (lru.miss_ratio(pages.floor() as u32)?, lru.miss_ratio(pages.ceil() as u32)?);
        Some(((below + (above - below) * pages.fract() - ratio).abs(), pages))
    });
    differences.max_by(|one, other| one.0.total_cmp(&other.0))
}

/// A stream on the page.
fn section(done: &Done) -> Section {
    let Done { stream, found, results, .. } = done;
    let drawn = Computed::drawn(results);
    let mut plots = Computed::plots(results);
    let mut paragraphs = vec![format!("{} references.", text::count(found.references as f64))];
    if let (Some(curve), Some(misses)) = (&found.working_set, plots.first()) {
        let lru = PolicyKind::Lru.to_string();
        let page_size = stream.page_size() as f64;
        let mut check = Plot::new(
            "LRU and the working set",
            "Misses against the mean size of Denning's working set, from the times between references alone. Where its \
             size hardly changes, LRU has as many misses with so many frames.",
            misses.x.clone(),
            misses.y.clone(),
        );
        check.wide = true;
        check.series.extend(misses.series.iter().filter(|series| series.name == lru).cloned());
        let points = curve.points.iter().filter(|point| point.1 >= 1.0);
        check.series.push(Series {
            color: results.len(),
            dash: 2,
            ..Series::line("working set", points.map(|&(_, pages, ratio)| (pages * page_size, ratio)))
        });
        if let Some((difference, pages)) = found.apart {
            paragraphs.push(format!(
                "Check of LRU's curve: that of the working set's mean size differs from it by at most {difference:.4}, at \
                 {} pages.",
                text::count(pages)
            ));
        }
        plots.push(check);
    }
    Section {
        heading: stream.words(),
        answer: answer(done),
        paragraphs,
        plots,
        tables: vec![curves::beside(&drawn)],
        ..Section::default()
    }
}
