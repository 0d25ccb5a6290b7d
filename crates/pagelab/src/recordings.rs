//! `pagelab show FILE`: what a recording holds, and the references and pages of each of its processes.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use pagelab_reference::trace::recorded::{self, Ending, Heading, Origin, PROCESS};
use pagelab_reference::trace::{Format, Options, Reader};
use pagelab_report::text;
use pagelab_simulation::Watch as _;
use serde_json::json;

use crate::context::Context;
use crate::failure::CommandError;
use crate::output::{SCHEMA_VERSION, say, sentences};
use crate::watching::Watching;

/// Processes that are shown without `--all`: those with the most references.
const SHOWN: usize = 20;
/// Letters that are shown of a program and its arguments without `--all`.
const WORDS: usize = 32;
/// Runs between two samples whether to go on.
const RUNS_PER_POLL: u64 = 1 << 20;

/// Shows the recording at `path`; `all`: every process, with all of its words.
///
/// # Errors
/// When it cannot be read, is none, is torn, or the user interrupts.
pub fn show(path: &Path, all: bool, json: bool, context: &Context) -> Result<()> {
    // In its own units: those of a recording are known, of what is none the reader says what it is.
    let ends = recorded::ends(path)?;
    let page_size = ends.as_ref().map_or(Options::default().page_size, |(heading, _)| heading.unit);
    let pages = count(path, page_size, context)?;
    let (heading, ending) =
        ends.ok_or_else(|| anyhow!("{} is not a plain file with a complete recording", path.display()))?;
    if json {
        return as_json(&heading, &ending, &pages);
    }
    let count = |n: u64| text::count(n as f64);
    let units =
        if heading.unit == 4096 { "pages".to_owned() } else { format!("units of {} bytes", heading.unit) };
    let told = |text: String| sentences(&text, "", "  ", &context.style);
    told(format!(
        "{}: {} references to {} {units} ({} loads, {} stores, {} fetches)",
        path.display(),
        count(ending.references()),
        count(pages.iter().sum()),
        count(ending.loads),
        count(ending.stores),
        count(ending.fetches)
    ));
    told(heading.program.join(" "));
    told(format!(
        "{}; recorded by {}; processes: {}, threads: {}; fingerprint {:08x}",
        ending.status, heading.recorder, ending.processes, ending.threads, ending.fingerprint
    ));
    if let Some(reduced) = &heading.reduced {
        told(format!(
            "reduced ({}) from {} references: it holds from {} pages on",
            reduced.method,
            count(reduced.references),
            count(reduced.frames.into())
        ));
    }
    if let Some(window) = heading.window {
        told(format!(
            "recorded through a window of {} pages: it holds for memory of {} pages and more",
            count(window.into()),
            count(heading.least().into())
        ));
    }
    let list = if ending.streams.is_empty() { vec![Origin::default(); pages.len()] } else { ending.streams };
    table(&list, &pages, all, context);
    Ok(())
}

/// Different units of each process, in the order of their first blocks.
fn count(path: &Path, page_size: u64, context: &Context) -> Result<Vec<u64>> {
    let options = Options { page_size, reduced: true, window: true, ..Options::default() };
    let mut reader = Reader::open(path, &options)?;
    if reader.format() != Format::Recorded {
        bail!(
            "{} is not a recording of pagelab but {}\nhint: use pagelab mrc or pagelab report",
            path.display(),
            reader.format()
        );
    }
    let watching = Watching::new("reading the recording", context.quiet)?;
    let (mut pages, mut seen, mut runs, mut last) = (Vec::new(), HashSet::new(), 0u64, u64::MAX);
    while let Some((page, _, _)) = reader.run(u64::MAX)? {
        if page != last && seen.insert(page) {
            let process = (page >> PROCESS) as usize;
            pages.resize(pages.len().max(process + 1), 0);
            pages[process] += 1;
        }
        last = page;
        runs += 1;
        if runs.is_multiple_of(RUNS_PER_POLL) {
            watching.at(reader.fraction());
            if watching.stopped() {
                return Err(CommandError::Stopped.into());
            }
        }
    }
    Ok(pages)
}

/// The processes in the order of their first references; those with the most where not all are shown.
fn table(streams: &[Origin], pages: &[u64], all: bool, context: &Context) {
    let sum = streams.iter().map(Origin::references).sum::<u64>().max(1);
    let mut order: Vec<usize> = (0..streams.len()).collect();
    let mut rest = Vec::new();
    if !all && order.len() > SHOWN {
        order.sort_by_key(|&n| std::cmp::Reverse(streams[n].references()));
        rest = order.split_off(SHOWN);
        order.sort_unstable();
    }
    let count = |n: u64| text::count(n as f64);
    let row = |name: String, program: String, references: u64, pages: u64| {
        let share = format!("{:.1}%", references as f64 / sum as f64 * 100.0);
        vec![name, program, count(references), share, count(pages)]
    };
    let mut rows: Vec<Vec<String>> = order
        .iter()
        .map(|&n| {
            let one = &streams[n];
            row(
                (n + 1).to_string(),
                words(&one.program, all),
                one.references(),
                pages.get(n).copied().unwrap_or(0),
            )
        })
        .collect();
    if !rest.is_empty() {
        let sums = |of: &dyn Fn(usize) -> u64| rest.iter().map(|&n| of(n)).sum();
        rows.push(row(
            String::new(),
            format!("{} others (--all)", rest.len()),
            sums(&|n| streams[n].references()),
            sums(&|n| pages.get(n).copied().unwrap_or(0)),
        ));
    }
    say!("{}", text::table(&["process", "program", "references", "share", "pages"], &rows, &context.style));
    if streams.len() > 1 {
        say!("Select one with --process N of replay, mrc, wss, reduce, convert or report.");
    }
}

/// A program without its folder, and its arguments.
fn words(program: &[String], all: bool) -> String {
    let Some((first, rest)) = program.split_first() else { return text::DASH.to_owned() };
    let name = if all { first } else { first.rsplit('/').next().unwrap_or(first) };
    let line = std::iter::once(name).chain(rest.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
    let line: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if all || line.chars().count() <= WORDS {
        return line;
    }
    line.chars().take(WORDS - 1).chain(['…']).collect()
}

fn as_json(heading: &Heading, ending: &Ending, pages: &[u64]) -> Result<()> {
    let mut ending = serde_json::to_value(ending)?;
    if let Some(streams) = ending["streams"].as_array_mut() {
        streams.iter_mut().zip(pages).for_each(|(stream, pages)| stream["pages"] = json!(pages));
    }
    say!(
        "{}",
        json!({
            "schema_version": SCHEMA_VERSION, "heading": heading, "ending": ending,
            "pages": pages.iter().sum::<u64>(),
        })
    );
    Ok(())
}
