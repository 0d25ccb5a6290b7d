//! Replays objects of different sizes: a trace with sizes through the policies that count them, as it is read where sizes are in bytes.

use std::io::Write;

use anyhow::Result;

use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Curve;
use pagelab_model::sized::{Counts, SizedKind, SizedReplay};
use pagelab_reference::trace::Densifier;
use pagelab_report::{TextTable, text};
use pagelab_simulation::cost::{Cost, NUMBERING};
use pagelab_simulation::feed::too_many_pages;
use pagelab_simulation::spread::cores;
use serde_json::json;

use crate::computed::{self, Computed};
use crate::context::Context;
use crate::failure::{CommandError, usage};
use crate::output::SCHEMA_VERSION;
use crate::progress::Work;
use crate::records::Records;
use crate::stream::{Memory, StreamArguments, described};
use crate::watching::listen;

/// What a request takes in memory: its object and its bytes.
const REQUEST: u64 = 12;

/// What a replay takes an object.
const REPLAY: u64 = 64;

/// Requests that are replayed at a time, between two looks at Ctrl-C.
const STEP: usize = 1 << 18;

/// Replays beside each other at most, as the trace is read: each has its own tables.
const SIDE_BY_SIDE: usize = 16;

/// What the policies made of the trace.
pub struct Found {
    /// How the trace was read.
    pub described: String,
    objects: u32,
    /// Bytes of all objects, each of the size of its first request.
    bytes: u64,
    rows: Vec<(SizedKind, u64, Counts)>,
}

/// Replays every policy at every size.
///
/// # Errors
/// When the trace cannot be read or knows no sizes, a size is in pages, there is too little memory, or the user interrupts.
pub fn replay(
    arguments: &StreamArguments,
    policies: &[SizedKind],
    memory: &[Memory],
    context: &Context,
) -> Result<Found> {
    let path = arguments.recorded("--sizes bytes")?;
    let mut records = Records::open(path, &arguments.options(), false, true, context.quiet)?;
    let runs_in = |bytes: u64| -> Vec<(SizedKind, u64)> {
        let page_size = arguments.page_size();
        let in_bytes = |memory: &Memory| match *memory {
            Memory::Size(size) => size.bytes(page_size),
            Memory::Percent(percent) => (bytes as f64 * percent / 100.0).round() as u64,
        };
        policies
            .iter()
            .flat_map(|&policy| memory.iter().map(move |memory| (policy, in_bytes(memory))))
            .collect()
    };
    // A percentage is one of all bytes, which shows in the end.
    let at_once = policies.len() * memory.len();
    let as_read =
        at_once <= SIDE_BY_SIDE && !memory.iter().any(|memory| matches!(memory, Memory::Percent(_)));
    let mut replays = if as_read { empty(&runs_in(0)) } else { Vec::new() };
    let at_once = if as_read { at_once } else { cores() };
    let cost = NUMBERING.and(&Cost { page: REPLAY * at_once as u64, reference: REQUEST });
    let mut densifier = Densifier::default();
    let mut piece = Piece::default();
    let mut bytes = 0;
    loop {
        let (distinct, kept) = (u64::from(densifier.pages()), piece.objects.len() as u64);
        let Some(record) = records.next(|more| cost.allow(distinct + more, kept + more, 0))? else {
            break;
        };
        let size = record.bytes.ok_or_else(|| usage("--sizes: the csv has no column named size"))?;
        let before = densifier.pages();
        piece.objects.push(densifier.number(record.page).map_err(|_| too_many_pages(path))?);
        if densifier.pages() > before {
            bytes += size;
        }
        piece.sizes.push(size);
        if as_read && piece.objects.len() == STEP {
            piece.replay(0, &mut replays, densifier.pages());
            piece = Piece::default();
        }
    }
    if as_read {
        piece.replay(0, &mut replays, densifier.pages());
    } else {
        let (work, interrupt) = (Work::new("replaying", context.quiet), listen()?);
        let runs = runs_in(bytes);
        let steps = piece.objects.len().div_ceil(STEP);
        // As many tables at once as there are cores.
        for (n, runs) in runs.chunks(at_once).enumerate() {
            let mut group = empty(runs);
            for step in 0..steps {
                piece.replay(step, &mut group, densifier.pages());
                if interrupt.requested() {
                    return Err(CommandError::Stopped.into());
                }
                work.at((n * at_once * steps + step * runs.len()) as f64
                    / (policies.len() * memory.len() * steps) as f64);
            }
            replays.append(&mut group);
        }
    }
    let rows =
        replays.into_iter().map(|(policy, memory, replay)| (policy, memory, replay.counts())).collect();
    Ok(Found { described: described(&records.reading()), objects: densifier.pages(), bytes, rows })
}

/// A policy, its memory, and what it holds.
type Run = (SizedKind, u64, SizedReplay);

/// Empty memories.
fn empty(runs: &[(SizedKind, u64)]) -> Vec<Run> {
    runs.iter().map(|&(policy, memory)| (policy, memory, SizedReplay::new(policy, 0, memory))).collect()
}

/// Requests that are in memory.
#[derive(Default)]
struct Piece {
    objects: Vec<u32>,
    sizes: Vec<u64>,
}

impl Piece {
    /// Replays the requests of a step, to objects below `objects`, on every core.
    fn replay(&self, step: usize, runs: &mut [Run], objects: u32) {
        let end = |list: usize| ((step + 1) * STEP).min(list);
        let requests = &self.objects[step * STEP..end(self.objects.len())];
        let sizes = &self.sizes[step * STEP..end(self.sizes.len())];
        let each_core = runs.len().div_ceil(cores()).max(1);
        std::thread::scope(|scope| {
            for runs in runs.chunks_mut(each_core) {
                scope.spawn(move || {
                    for (_, _, replay) in runs {
                        replay.grow(objects);
                        for (&object, &size) in requests.iter().zip(sizes) {
                            replay.request(object, size);
                        }
                    }
                });
            }
        });
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl Found {
    /// What was asked for.
    pub fn sentence(&self) -> String {
        let counts = self.rows.first().map(|row| row.2).unwrap_or_default();
        format!(
            "{} requests to {} objects; {} requested, objects of {}",
            text::count(counts.requests as f64),
            text::count(f64::from(self.objects)),
            text::bytes(counts.bytes as f64),
            text::bytes(self.bytes as f64)
        )
    }

    /// A row for each policy and size.
    pub fn table(&self) -> TextTable {
        let headings =
            ["model", "memory", "misses", "miss ratio", "bytes missed", "byte miss ratio", "not admitted"];
        let row = |(policy, memory, counts): &(SizedKind, u64, Counts)| {
            vec![
                policy.to_string(),
                text::bytes(*memory as f64),
                text::count(counts.misses as f64),
                format!("{:.4}", share(counts.misses, counts.requests)),
                text::bytes(counts.byte_misses as f64),
                format!("{:.4}", share(counts.byte_misses, counts.bytes)),
                text::count(counts.not_admitted as f64),
            ]
        };
        TextTable {
            title: "Misses at each size".to_owned(),
            headings: headings.map(str::to_owned).to_vec(),
            rows: self.rows.iter().map(row).collect(),
            tones: Vec::new(),
            remarks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// One object a line for each policy and size.
    ///
    /// # Errors
    /// When standard output cannot be written.
    pub fn print_json(&self, stream: &str) -> Result<()> {
        let mut out = crate::output::stdout();
        for (policy, memory, counts) in &self.rows {
            let object = json!({
                "schema_version": SCHEMA_VERSION,
                "stream": stream,
                "model": policy.to_string(),
                "memory_bytes": memory,
                "requests": counts.requests,
                "misses": counts.misses,
                "miss_ratio": share(counts.misses, counts.requests),
                "bytes": counts.bytes,
                "byte_misses": counts.byte_misses,
                "byte_miss_ratio": share(counts.byte_misses, counts.bytes),
                "not_admitted": counts.not_admitted,
            });
            writeln!(out, "{object}")?;
        }
        Ok(())
    }

    /// The curve of each policy, to be kept and drawn.
    ///
    /// # Errors
    /// When a policy cannot be named as a target.
    pub fn computed(&self, arguments: &StreamArguments) -> Result<Vec<Computed>> {
        let page_size = arguments.page_size();
        let mut policies: Vec<SizedKind> = self.rows.iter().map(|row| row.0).collect();
        policies.dedup();
        let curve = |policy: SizedKind| {
            let rows = self.rows.iter().filter(|row| row.0 == policy);
            let point = |(_, memory, counts): &(SizedKind, u64, Counts)| computed::Point {
                frames: u32::try_from(memory / page_size).unwrap_or(u32::MAX),
                misses: Some(counts.misses),
                ratio: Some(share(counts.misses, counts.requests)),
                error: None,
                mean_resident: None,
                write_backs: None,
                byte_ratio: Some(share(counts.byte_misses, counts.bytes)),
                read_ahead: None,
            };
            let points: Vec<computed::Point> = rows.map(point).collect();
            let curve = Curve {
                stream: format!("{} --sizes bytes", arguments.words()),
                page_size,
                references: self.rows.first().map_or(0, |row| row.2.requests),
                pages: u64::from(self.objects),
                sample: None,
            };
            Ok(Computed::curve(
                Experiment::Replay(curve),
                computed::model(&policy.to_string())?,
                page_size,
                &points,
            ))
        };
        policies.into_iter().map(curve).collect()
    }
}
