//! `pagelab report FILE.trace`: a stream in space and time, read twice, with its curves.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use pagelab_analysis::portrait::{Portrait, Sitting};
use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Curve;
use pagelab_model::mrc::lru::{LruCounting, LruCurve};
use pagelab_model::mrc::sizes;
use pagelab_model::policy::PolicyKind;
use pagelab_reference::trace::recorded::{self, Ending, Heading, Mapping, PROCESS};
use pagelab_reference::trace::{Densifier, Options, Reader};
use pagelab_report::portrait::{Misses, section};
use pagelab_report::{curves, text};
use pagelab_simulation::{Cost, Sizes, Source, Wanted, Watch as _};

use crate::computed::{self, Computed};
use crate::context::Context;
use crate::failure::CommandError;
use crate::output::sentences;
use crate::page;
use crate::tracing::by_program;
use crate::watching::Watching;

/// References that are kept for the policies, those in a row to one page as one; of a longer stream LRU alone is drawn.
const MAX_CHANGES: usize = 1 << 25;
/// The policies beside LRU.
const POLICIES: [&str; 6] = ["opt", "clock", "2q", "arc", "lirs", "s3-fifo"];
/// Sizes of LRU's curve, and of the others'.
const LRU_SIZES: usize = 64;
const SIZES: usize = 12;
/// References between two samples whether to go on.
const POLL_SHIFT: u32 = 22;
/// What a page takes: numbers, places, distances, and the tables of policies side by side.
const WORK: Cost = Cost { page: 200, reference: 0 };
/// Pages without names are parted where so many between them are not referenced.
const GAP: u64 = 1 << 14;
/// A trace that was read once.
struct TraceSummary {
    references: u64,
    names: Vec<u64>,
    /// On the whole: references that repeat the one before are hits at any size.
    lru: LruCurve,
    /// References without those that repeat the one before; none of a long stream.
    kept: Option<Vec<u32>>,
    addresses: bool,
}

/// Draws the trace at `path` into `output`; of a recording `process` alone, where it is given.
///
/// # Errors
/// When it cannot be read, takes too much memory, or the user interrupts.
pub fn draw(path: &Path, process: Option<NonZeroU32>, output: &Path, context: &Context) -> Result<()> {
    let options = Options { process, window: true, ..Options::default() };
    let known = read(path, &options, context)?;
    let ends = recorded::ends(path).ok().flatten();
    let least = ends.as_ref().map_or(0, |(heading, _)| heading.least());
    let mappings = ends.as_ref().map_or(&[][..], |(_, ending)| &ending.mappings[..]);
    let finer = ends.as_ref().map_or(1, |(heading, _)| options.page_size / heading.unit.max(1));
    let bits = PROCESS - finer.max(1).trailing_zeros().min(PROCESS);
    // The pages of one process alone have no number of it.
    let only = process.map_or(0, |number| u64::from(number.get() - 1) << bits);
    let name = |page: u64| named(page ^ only, bits, mappings, options.page_size);
    let (place, areas) = placed(&known, name);
    let pages = known.names.len() as u32;
    let mut sitting = Sitting::new(known.references, place, areas);
    runs(path, &options, "drawing", context, |page, kind, count| {
        if page >= pages {
            bail!("{} was changed while it was read", path.display());
        }
        sitting.take(page, count, kind == recorded::STORE);
        Ok(())
    })?;
    let portrait = sitting.finish();
    let words = process.map_or(path.display().to_string(), |n| format!("{} --process {n}", path.display()));
    let results = curves_of(&words, &known, pages, least, options.page_size, context)?;
    let drawn = Computed::drawn(&results);
    let frames = sizes(pages, 4 * LRU_SIZES).into_iter().chain((0..32).map(|n| 1 << n));
    let mut lru: Vec<(u32, u64)> =
        frames.filter(|&frames| frames >= least).map(|frames| (frames, known.lru.misses(frames))).collect();
    lru.sort_unstable();
    lru.dedup();
    let misses = Misses { lru };
    let mut told = paragraphs(&portrait, ends.as_ref(), process, &known);
    let answer = curves::answer(&drawn);
    if !answer.is_empty() {
        told.push(answer);
    }
    let name = Path::new(&words).file_name().unwrap_or_default().to_string_lossy();
    let table = drawn.first().map(|_| curves::rows(&drawn));
    let part = section(&name, &portrait, &misses, options.page_size, told, Computed::plots(&results), table);
    if !context.quiet && !crate::file::is_stdout(output) {
        sentences(&part.answer, "", "  ", &context.style);
    }
    page::write_document(&name, None, &[part], output)
}

/// Gives the runs of a trace to `take`, their pages numbered; the number of each.
fn runs(
    path: &Path,
    options: &Options,
    doing: &'static str,
    context: &Context,
    mut take: impl FnMut(u32, u64, u64) -> Result<()>,
) -> Result<(u64, Vec<u64>, bool)> {
    let mut reader = Reader::open(path, options)?;
    let watching = Watching::new(doing, context.quiet)?;
    let (mut dense, mut names, mut references) = (Densifier::default(), Vec::new(), 0u64);
    while let Some((page, kind, count)) = reader.run(u64::MAX)? {
        let number = dense.number(page).map_err(|_| anyhow!("there are too many different pages"))?;
        if number as usize == names.len() {
            names.push(page);
            if names.len().is_power_of_two() {
                WORK.allow(names.len() as u64 * 2, 0, 4 * MAX_CHANGES as u64)?;
            }
        }
        take(number, kind, count)?;
        if (references ^ (references + count)) >> POLL_SHIFT != 0 {
            watching.at(reader.fraction());
            if watching.stopped() {
                return Err(CommandError::Stopped.into());
            }
        }
        references += count;
    }
    let addresses = !reader.names_objects();
    if references == 0 {
        bail!("{} holds no reference", path.display());
    }
    Ok((references, names, addresses))
}

/// Reads the trace once: how long it is, its pages, LRU's curve.
fn read(path: &Path, options: &Options, context: &Context) -> Result<TraceSummary> {
    const PIECE: usize = 1 << 16;
    let mut counting = LruCounting::default();
    let mut kept = Some(Vec::new());
    let (mut piece, mut pages, mut last) = (Vec::with_capacity(PIECE), 0, u32::MAX);
    let (references, names, addresses) = runs(path, options, "reading", context, |page, _, _| {
        if page == last {
            return Ok(());
        }
        last = page;
        pages = pages.max(page + 1);
        piece.push(page);
        if piece.len() == PIECE {
            counting.take(pages, &piece);
            if let Some(list) = kept.as_mut().filter(|list: &&mut Vec<u32>| list.len() < MAX_CHANGES) {
                list.extend_from_slice(&piece);
            } else {
                kept = None;
            }
            piece.clear();
        }
        Ok(())
    })?;
    counting.take(pages, &piece);
    if let Some(list) = &mut kept {
        list.extend_from_slice(&piece);
    }
    Ok(TraceSummary { references, names, lru: counting.finish(), kept, addresses })
}

/// The place of each page in the order of addresses, and the areas in that order: mappings where they are known, else what lies
/// together.
fn placed(known: &TraceSummary, named: impl Fn(u64) -> String) -> (Vec<u32>, Vec<(String, u32)>) {
    let mut order: Vec<u32> = (0..known.names.len() as u32).collect();
    if known.addresses {
        order.sort_unstable_by_key(|&page| known.names[page as usize]);
    }
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(n, &page)| place[page as usize] = n as u32);
    let mut areas: Vec<(String, u32)> = Vec::new();
    let mut before = None;
    for &page in &order {
        let page = known.names[page as usize];
        let name = named(page);
        let apart = |last: u64| name.is_empty() && known.addresses && page - last > GAP;
        match areas.last_mut() {
            Some(area) if area.0 == name && !before.is_some_and(apart) => area.1 += 1,
            _ => areas.push((name, 1)),
        }
        before = Some(page);
    }
    (place, areas)
}

/// The mapping that a page lies in, whose process stands above so many `bits`; of the first process its name, of others
/// with their number.
fn named(page: u64, bits: u32, mappings: &[Mapping], page_size: u64) -> String {
    let process = page >> bits;
    let address = (page & ((1 << bits) - 1)).saturating_mul(page_size);
    let of = |mapping: &&Mapping| {
        u64::from(mapping.process) == process && (mapping.start..mapping.end).contains(&address)
    };
    match (mappings.iter().find(of), process) {
        (None, _) => String::new(),
        (Some(mapping), 0) => mapping.name.clone(),
        (Some(mapping), process) => format!("{} (process {})", mapping.name, process + 1),
    }
}

/// The curves: LRU's at many sizes, the others' at some.
fn curves_of(
    words: &str,
    known: &TraceSummary,
    pages: u32,
    least: u32,
    page_size: u64,
    context: &Context,
) -> Result<Vec<Computed>> {
    let experiment = || {
        let stream = words.to_owned();
        let (references, pages) = (known.references, pages.into());
        Experiment::Mrc(Curve { stream, page_size, references, pages, ..Curve::default() })
    };
    let point = |frames: u32, misses: u64| computed::Point {
        frames,
        misses: Some(misses),
        ratio: Some(misses as f64 / known.references as f64),
        error: None,
        mean_resident: None,
        write_backs: None,
        byte_ratio: None,
        read_ahead: None,
    };
    let holds = |frames: &u32| *frames >= least;
    let sizes = sizes(pages, LRU_SIZES).into_iter().filter(holds);
    let sizes = sizes.chain((pages < least).then_some(least));
    let lru: Vec<_> = sizes.map(|frames| point(frames, known.lru.misses(frames))).collect();
    let mut list = vec![Computed::curve(experiment(), computed::model("lru")?, page_size, &lru)];
    let Some(kept) = &known.kept else { return Ok(list) };
    let kinds: Vec<PolicyKind> =
        POLICIES.iter().map(|name| name.parse().expect("they are policies")).collect();
    let wanted = Wanted { policies: &kinds, ..Wanted::at(Sizes::Usual(SIZES)) };
    let source = Source::Memory { pages, references: kept, future: None };
    let simulated =
        pagelab_simulation::replay(&source, &wanted, &Watching::new("replaying", context.quiet)?)?;
    let replayed = &simulated.policies;
    for (name, results) in POLICIES.iter().zip(replayed.chunks(simulated.frames.len())) {
        let points: Vec<_> = results
            .iter()
            .filter(|one| holds(&one.frames))
            .map(|one| point(one.frames, one.misses))
            .collect();
        if !points.is_empty() {
            list.push(Computed::curve(experiment(), computed::model(name)?, page_size, &points));
        }
    }
    Ok(list)
}

/// What the stream is.
fn paragraphs(
    portrait: &Portrait,
    ends: Option<&(Heading, Ending)>,
    process: Option<NonZeroU32>,
    known: &TraceSummary,
) -> Vec<String> {
    let count = |n: u64| text::count(n as f64);
    let mut list = Vec::new();
    if let Some((heading, ending)) = ends {
        list.push(format!(
            "Recorded: {} ({}; {}): {} loads, {} stores, {} fetches (processes: {}, threads: {}).",
            heading.program.join(" "),
            heading.recorder,
            ending.status,
            count(ending.loads),
            count(ending.stores),
            count(ending.fetches),
            ending.processes,
            ending.threads
        ));
        let one = process.and_then(|number| ending.streams.get(number.get() as usize - 1));
        if let (Some(number), Some(one)) = (process, one) {
            list.push(format!(
                "Of it the process {number} alone: {} (process {} of the machine): {} loads, {} stores, {} fetches.",
                one.program.join(" "),
                one.process,
                count(one.loads),
                count(one.stores),
                count(one.fetches)
            ));
        }
        let programs = by_program(&ending.streams);
        if programs.len() > 1 && process.is_none() {
            let named = programs.iter().take(12).map(|one| {
                let processes = if one.processes == 1 { "process" } else { "processes" };
                format!("{} ({} {processes}) {}", one.name, one.processes, count(one.references))
            });
            list.push(format!("References by program: {}.", named.collect::<Vec<_>>().join(", ")));
        }
        if ending.unrecorded_programs > 0 {
            list.push(format!(
                "Programs that it executed, and that are not here: {}.",
                ending.unrecorded_programs
            ));
        }
    }
    list.push(format!(
        "{} references to {} pages.",
        count(portrait.references),
        count(portrait.pages.into())
    ));
    list.push(match (&known.kept, known.addresses) {
        (Some(_), _) => {
            "Of the policies' curves, references in a row to one page count as one reference and as many hits.".into()
        }
        (None, _) => format!(
            "More than {} changes of page: the curves of other policies than LRU take a while (pagelab replay).",
            count(MAX_CHANGES as u64)
        ),
    });
    list
}
