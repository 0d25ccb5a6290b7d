//! A recorded trace as it is read: decoded on a thread of its own, numbered on the caller's, and given to policies and
//! curves on every core. A few pieces of it are in memory at once, however long it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use anyhow::{Context as _, Result};
use pagelab_model::mrc::footprint::ReuseTimes;
use pagelab_model::mrc::lru::LruCounting;
use pagelab_model::replay::Feed;
use pagelab_reference::Stream;
use pagelab_reference::trace::{self, Densifier, Options, Reader, Reading, Refused, Trace};

use crate::cost::{Cost, NUMBERING};
use crate::{Stopped, Watch};

/// Decoded batches, and numbered pieces, that may wait.
const AHEAD: usize = 4;

/// References in a piece: several policies that share a core each find their tables in its cache for most of it.
const PIECE: usize = 1 << 17;

/// Who is given the references piece by piece.
pub trait Consumer: Send {
    /// Takes the next references, to pages below `pages`; `Break` when `watch` asked to stop.
    fn take(&mut self, pages: u32, references: &[u32], watch: &dyn Watch) -> ControlFlow<()>;
}

impl Consumer for Feed<'_> {
    fn take(&mut self, pages: u32, references: &[u32], watch: &dyn Watch) -> ControlFlow<()> {
        let go_on = || if watch.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        Feed::take(self, pages, references, &mut |_| go_on())
            .map_or(ControlFlow::Break(()), ControlFlow::Continue)
    }
}

impl Consumer for LruCounting {
    fn take(&mut self, pages: u32, references: &[u32], _: &dyn Watch) -> ControlFlow<()> {
        LruCounting::take(self, pages, references);
        ControlFlow::Continue(())
    }
}

impl Consumer for ReuseTimes {
    fn take(&mut self, pages: u32, references: &[u32], _: &dyn Watch) -> ControlFlow<()> {
        ReuseTimes::take(self, pages, references);
        ControlFlow::Continue(())
    }
}

/// What was read.
pub struct Read {
    /// References in it.
    pub references: u64,
    /// Different pages.
    pub pages: u32,
    /// How it was read.
    pub reading: Reading,
}

/// Decodes a trace and gives its pages to `take`, all on this thread: for work that takes less time than handing the
/// pages over, or where there is one core.
///
/// # Errors
/// As [`decoded`].
pub fn decoded_here(
    path: &Path,
    options: &Options,
    watch: &dyn Watch,
    take: impl FnMut(&[u64]) -> Result<()>,
) -> Result<Reading> {
    decoded_from(Reader::open(path, options)?, watch, take)
}

/// As [`decoded_here`] of what is open already.
fn decoded_from(
    reader: Reader,
    watch: &dyn Watch,
    mut take: impl FnMut(&[u64]) -> Result<()>,
) -> Result<Reading> {
    let mut failed = None;
    let reading = trace::read_from(reader, |batch, fraction| {
        watch.at(fraction);
        let stopped = || if watch.stopped() { Err(Stopped.into()) } else { Ok(()) };
        take(batch).and_then(|()| stopped()).map_err(|error| {
            failed = Some(error);
            Refused("it is not wanted".into())
        })
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(reading?),
    }
}

/// Decodes a trace on a thread of its own, where there is a core for it, and gives its pages to `take` here.
///
/// # Errors
/// When the trace cannot be read, or `take` fails, or `watch` stops it.
pub fn decoded(
    path: &Path,
    options: &Options,
    watch: &dyn Watch,
    mut take: impl FnMut(&[u64]) -> Result<()>,
) -> Result<Reading> {
    if crate::spread::cores() == 1 {
        return decoded_here(path, options, watch, take);
    }
    let (full, batches) = sync_channel::<Vec<u64>>(AHEAD);
    let (used, empty) = channel::<Vec<u64>>();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            trace::read(path, options, |batch, fraction| {
                watch.at(fraction);
                let next = empty.try_recv().unwrap_or_default();
                full.send(std::mem::replace(batch, next)).map_err(|_| Refused("it is not wanted".into()))
            })
        });
        let mut each = |batch: Vec<u64>| -> Result<()> {
            take(&batch)?;
            // The reader may have ended already.
            let _ = used.send(batch);
            if watch.stopped() { Err(Stopped.into()) } else { Ok(()) }
        };
        // The channel is gone when the loop ends, so a reader whose batches nobody takes ends, too.
        let taken = batches.into_iter().try_for_each(&mut each);
        let reading = reader.join().expect("the reader does not panic");
        taken?;
        Ok(reading?)
    })
}

/// References to pages below a number.
struct Piece {
    pages: u32,
    references: Vec<u32>,
}

/// What waits to be taken, and who is free to take it.
struct State<'a> {
    /// The pieces that somebody has not taken yet; the first has the number `first`.
    pieces: VecDeque<Arc<Piece>>,
    first: usize,
    /// The number of the next piece of each consumer.
    next: Vec<usize>,
    /// Consumers that nobody works on, those furthest behind first: (next piece, number).
    idle: BinaryHeap<Reverse<(usize, usize)>>,
    consumers: Vec<Option<&'a mut dyn Consumer>>,
    ended: bool,
    stopped: bool,
}

struct Shared<'a> {
    state: Mutex<State<'a>>,
    changed: Condvar,
    watch: &'a dyn Watch,
}

/// Ends the work of all where one panics.
struct EndAll<'a, 'b>(&'a Shared<'b>);

impl Drop for EndAll<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().stopped = true;
            self.0.changed.notify_all();
        }
    }
}

impl<'a> Shared<'a> {
    fn new(consumers: Vec<&'a mut dyn Consumer>, watch: &'a dyn Watch) -> Self {
        let state = State {
            pieces: VecDeque::new(),
            first: 0,
            next: vec![0; consumers.len()],
            idle: (0..consumers.len()).map(|consumer| Reverse((0, consumer))).collect(),
            consumers: consumers.into_iter().map(Some).collect(),
            ended: false,
            stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), watch }
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().expect("no thread panics while it holds the lock")
    }

    fn wait<'g>(&self, state: MutexGuard<'g, State<'a>>) -> MutexGuard<'g, State<'a>> {
        self.changed.wait(state).expect("no thread panics while it holds the lock")
    }

    /// Adds a piece as soon as there is room; a list for the next, and whether somebody still takes them.
    fn publish(&self, piece: Piece) -> Option<Vec<u32>> {
        let mut state = self.lock();
        while state.pieces.len() >= AHEAD && !state.stopped {
            state = self.wait(state);
        }
        state.pieces.push_back(Arc::new(piece));
        self.changed.notify_all();
        (!state.stopped).then(|| Vec::with_capacity(PIECE + PIECE / 4))
    }

    fn end(&self, stopped: bool) {
        let mut state = self.lock();
        state.ended = true;
        state.stopped |= stopped;
        self.changed.notify_all();
    }

    /// Gives pieces to consumers until all are taken.
    fn work(&self) {
        let _end_all = EndAll(self);
        let mut state = self.lock();
        while !state.stopped {
            let published = state.first + state.pieces.len();
            let Some(&Reverse((number, consumer))) = state.idle.peek().filter(|idle| idle.0.0 < published)
            else {
                if state.ended {
                    return;
                }
                state = self.wait(state);
                continue;
            };
            state.idle.pop();
            let piece = Arc::clone(&state.pieces[number - state.first]);
            let taker = state.consumers[consumer].take().expect("nobody works on an idle consumer");
            drop(state);
            let stop = taker.take(piece.pages, &piece.references, self.watch).is_break();
            drop(piece);
            state = self.lock();
            state.consumers[consumer] = Some(taker);
            state.next[consumer] = number + 1;
            state.idle.push(Reverse((number + 1, consumer)));
            state.stopped |= stop;
            let slowest = state.next.iter().copied().min().unwrap_or(0);
            while state.first < slowest {
                state.pieces.pop_front();
                state.first += 1;
            }
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }
}

/// Reads a trace and gives it to all consumers, on every core; together they take `cost`.
///
/// # Errors
/// When the trace cannot be read or has too many pages, the consumers would take too much memory, or `watch`
/// stops it.
pub fn feed<'a>(
    path: &Path,
    options: &Options,
    cost: &Cost,
    mut consumers: Vec<&'a mut dyn Consumer>,
    watch: &'a dyn Watch,
) -> Result<Read> {
    if crate::spread::cores() == 1 {
        return feed_here(path, options, cost, &mut consumers, watch);
    }
    let workers = crate::spread::cores().min(consumers.len());
    let shared = Shared::new(consumers, watch);
    let mut densifier = Densifier::default();
    let mut references = 0;
    let mut room = Room::new(path, cost);
    let reading = std::thread::scope(|scope| {
        let _end_all = EndAll(&shared);
        for _ in 0..workers {
            scope.spawn(|| shared.work());
        }
        let mut list = Vec::with_capacity(PIECE + PIECE / 4);
        let mut publish = |list: &mut Vec<u32>, pages| {
            references += list.len() as u64;
            let next = shared.publish(Piece { pages, references: std::mem::take(list) });
            *list = next.ok_or(Stopped)?;
            anyhow::Ok(())
        };
        let reading = decoded(path, options, watch, |batch| {
            densifier.number_all(batch, &mut list).map_err(|_| too_many_pages(path))?;
            room.look(densifier.pages(), 0)?;
            if list.len() >= PIECE { publish(&mut list, densifier.pages()) } else { Ok(()) }
        });
        let last = reading.and_then(|reading| publish(&mut list, densifier.pages()).map(|()| reading));
        shared.end(last.is_err());
        last
    })?;
    // The workers may have been stopped after the last piece was published.
    if shared.lock().stopped {
        return Err(Stopped.into());
    }
    Ok(Read { references, pages: densifier.pages(), reading })
}

/// As [`feed`] on this thread alone: on one core the threads would only take turns.
fn feed_here(
    path: &Path,
    options: &Options,
    cost: &Cost,
    consumers: &mut [&mut dyn Consumer],
    watch: &dyn Watch,
) -> Result<Read> {
    let mut densifier = Densifier::default();
    let mut room = Room::new(path, cost);
    let mut references = 0;
    let mut list = Vec::with_capacity(PIECE + PIECE / 4);
    let mut pass_on = |list: &mut Vec<u32>, pages| {
        references += list.len() as u64;
        let mut each = consumers.iter_mut();
        let stopped = each.any(|consumer| consumer.take(pages, list, watch).is_break());
        list.clear();
        if stopped { Err(anyhow::Error::from(Stopped)) } else { Ok(()) }
    };
    let reading = decoded_here(path, options, watch, |batch| {
        densifier.number_all(batch, &mut list).map_err(|_| too_many_pages(path))?;
        room.look(densifier.pages(), 0)?;
        if list.len() >= PIECE { pass_on(&mut list, densifier.pages()) } else { Ok(()) }
    })?;
    pass_on(&mut list, densifier.pages())?;
    Ok(Read { references, pages: densifier.pages(), reading })
}

/// Reads a whole trace into memory, numbered here while it is decoded on a thread of its own; what it is read for takes
/// `cost`.
///
/// # Errors
/// As [`feed`].
pub fn load(path: &Path, options: &Options, cost: &Cost, watch: &dyn Watch) -> Result<Trace> {
    numbered(path, cost, |take| decoded(path, options, watch, take))
}

/// As [`load`] of what is open already, on this thread alone; `path` names it in errors.
///
/// # Errors
/// As [`feed`].
pub fn load_from(reader: Reader, path: &Path, cost: &Cost, watch: &dyn Watch) -> Result<Trace> {
    numbered(path, cost, |take| decoded_from(reader, watch, take))
}

/// The stream of the pages that `decode` gives.
fn numbered(
    path: &Path,
    cost: &Cost,
    decode: impl FnOnce(&mut dyn FnMut(&[u64]) -> Result<()>) -> Result<Reading>,
) -> Result<Trace> {
    let mut densifier = Densifier::default();
    let mut list: Vec<u32> = Vec::new();
    let mut room = Room::new(path, cost);
    let reading = decode(&mut |batch| {
        room.look(densifier.pages(), list.len())?;
        densifier.number_all(batch, &mut list).map_err(|_| too_many_pages(path))
    })?;
    list.shrink_to_fit();
    Ok(Trace { stream: Stream::new(densifier.pages(), list), reading })
}

/// What a trace takes as it becomes longer: how long it is shows only in the end.
struct Room<'a> {
    path: &'a Path,
    cost: Cost,
    /// Pages and references that are allowed.
    allowed: (u32, usize),
}

impl<'a> Room<'a> {
    /// Pages and references between two looks at the memory that is left.
    const STEP: (u32, usize) = (1 << 20, 1 << 22);

    fn new(path: &'a Path, cost: &Cost) -> Self {
        Self { path, cost: cost.and(&NUMBERING), allowed: (0, 0) }
    }

    /// Refuses so many pages and references where they would take too much.
    fn look(&mut self, pages: u32, references: usize) -> Result<()> {
        if pages < self.allowed.0 && references < self.allowed.1 {
            return Ok(());
        }
        self.allowed = (pages.saturating_add(Self::STEP.0), references + Self::STEP.1);
        let allowed = self.cost.allow(self.allowed.0.into(), self.allowed.1 as u64, 0);
        allowed.with_context(|| format!("the trace {} is too long", self.path.display()))
    }
}

/// Why a trace is given up.
pub fn too_many_pages(path: &Path) -> anyhow::Error {
    anyhow::anyhow!("the trace {} has 2^32 - 2 different pages or more", path.display())
}
