//! Objects of different sizes: a trace with sizes on the policies that count them, as it is read
//! where sizes are in bytes.

use std::ops::ControlFlow;

use anyhow::Result;
use pagelab_model::sized::{Counts, SizedKind, SizedReplay};
use pagelab_reference::trace::Reading;

use crate::cost::Cost;
use crate::feed::{self, Consumer};
use crate::piece::Piece;
use crate::replay::SIDE_BY_SIDE;
use crate::{Source, Watch, records, spread};

/// What a request takes in memory: its object and its bytes.
const REQUEST: u64 = 12;

/// What a replay takes an object.
const REPLAY: u64 = 64;

/// Requests between two checks of whoever waits.
const STEP: usize = 1 << 18;

/// How much memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Memory {
    /// So many bytes.
    Bytes(u64),
    /// A share of the bytes of all objects, in percent.
    Percent(f64),
}

/// What the policies made of a trace.
#[derive(Clone, Debug)]
pub struct SizedMisses {
    /// How it was read.
    pub reading: Reading,
    /// Different objects.
    pub objects: u32,
    /// Bytes of all objects, each of the size of its first request.
    pub bytes: u64,
    /// A policy, its bytes of memory, and what was counted: the policies one after another, each at
    /// every size.
    pub rows: Vec<(SizedKind, u64, Counts)>,
}

impl Consumer for SizedReplay {
    fn take(&mut self, piece: &Piece, watch: &dyn Watch) -> ControlFlow<()> {
        self.grow(piece.pages);
        for (objects, bytes) in piece.references.chunks(STEP).zip(piece.bytes.chunks(STEP)) {
            if watch.stopped() {
                return ControlFlow::Break(());
            }
            for (&object, &bytes) in objects.iter().zip(bytes) {
                self.request(object, bytes);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The bytes of all objects, each of the size of its first request. Objects have the numbers of
/// their first requests.
#[derive(Default)]
struct Bytes {
    objects: u32,
    bytes: u64,
}

impl Consumer for Bytes {
    fn take(&mut self, piece: &Piece, _: &dyn Watch) -> ControlFlow<()> {
        for (&object, &bytes) in piece.references.iter().zip(&piece.bytes) {
            if object == self.objects {
                self.objects += 1;
                self.bytes += bytes;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Replays every policy with every amount of memory.
///
/// # Errors
/// When the trace cannot be read or tells no sizes, there is too little memory, or `watch` stops it.
pub fn replay(
    source: &Source,
    policies: &[SizedKind],
    memory: &[Memory],
    watch: &dyn Watch,
) -> Result<SizedMisses> {
    let wanted = records::Wanted { bytes: true, ..records::Wanted::default() };
    let (path, options) = source.recorded("--sizes bytes")?;
    let runs_of = |all: u64| -> Vec<(SizedKind, u64)> {
        let bytes = |memory: &Memory| match *memory {
            Memory::Bytes(bytes) => bytes,
            Memory::Percent(percent) => (all as f64 * percent / 100.0).round() as u64,
        };
        policies.iter().flat_map(|&kind| memory.iter().map(move |one| (kind, bytes(one)))).collect()
    };
    let mut all = Bytes::default();
    // A share is one of all bytes, which shows in the end.
    let shares = memory.iter().any(|memory| matches!(memory, Memory::Percent(_)));
    let count = policies.len() * memory.len();
    if count <= SIDE_BY_SIDE && !shares {
        let runs = runs_of(0);
        let mut replays: Vec<SizedReplay> =
            runs.iter().map(|&(kind, bytes)| SizedReplay::new(kind, 0, bytes)).collect();
        let consumers = replays.iter_mut().map(|replay| replay as &mut dyn Consumer);
        let consumers = consumers.chain([&mut all as &mut dyn Consumer]).collect();
        let cost = Cost { page: REPLAY * count as u64, reference: REQUEST };
        watch.begin("reading the trace");
        let read = feed::feed(path, options, Some(wanted), &cost, consumers, watch)?;
        let counted = runs.iter().zip(&replays);
        let rows = counted.map(|(&(kind, bytes), replay)| (kind, bytes, replay.counts())).collect();
        return Ok(SizedMisses { reading: read.reading, objects: all.objects, bytes: all.bytes, rows });
    }
    let cost = Cost { page: REPLAY * spread::cores() as u64, reference: REQUEST };
    let (piece, reading) = records::load(path, options, wanted, &cost, watch)?;
    let _ = all.take(&piece, watch);
    let runs = runs_of(all.bytes);
    watch.begin("replaying");
    let rows = spread::spread(runs.len(), |number| {
        let (kind, bytes) = runs[number];
        let mut replay = SizedReplay::new(kind, piece.pages, bytes);
        let _ = replay.take(&piece, watch);
        watch.go_on()?;
        watch.at((number + 1) as f64 / runs.len() as f64);
        Ok((kind, bytes, replay.counts()))
    })?;
    Ok(SizedMisses { reading, objects: all.objects, bytes: all.bytes, rows })
}
