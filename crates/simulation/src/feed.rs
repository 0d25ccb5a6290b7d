//! A recorded trace as it is read: decoded on a thread of its own, numbered on the caller's, and given to policies and
//! curves on every core. A few pieces of it are in memory at once, however long it is.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::Builder;

use anyhow::Result;
use pagelab_model::mrc::footprint::ReuseTimes;
use pagelab_model::mrc::lru::LruCounting;
use pagelab_model::replay::Feed;
use pagelab_reference::Stream;
use pagelab_reference::trace::{self, Densifier, Options, Reader, Reading, Refused, Trace};

use crate::cost::Cost;
use crate::piece::{PIECE, Piece, Read, Room, too_many_pages};
use crate::{Stopped, Watch, records};

/// Decoded batches, and numbered pieces, that may wait.
const AHEAD: usize = 4;

/// Who is given the references piece by piece.
pub trait Consumer: Send {
    /// Takes the next references; `Break` when `watch` asked to stop.
    fn take(&mut self, piece: &Piece, watch: &dyn Watch) -> ControlFlow<()>;
}

impl Consumer for Feed<'_> {
    fn take(&mut self, piece: &Piece, watch: &dyn Watch) -> ControlFlow<()> {
        let go_on = &mut |_| if watch.stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let taken = if piece.writes.is_empty() {
            Feed::take(self, piece.pages, &piece.references, go_on)
        } else {
            self.take_writing(piece.pages, &piece.references, &piece.writes, go_on)
        };
        taken.map_or(ControlFlow::Break(()), ControlFlow::Continue)
    }
}

impl Consumer for LruCounting {
    fn take(&mut self, piece: &Piece, _: &dyn Watch) -> ControlFlow<()> {
        LruCounting::take(self, piece.pages, &piece.references);
        ControlFlow::Continue(())
    }
}

impl Consumer for ReuseTimes {
    fn take(&mut self, piece: &Piece, _: &dyn Watch) -> ControlFlow<()> {
        ReuseTimes::take(self, piece.pages, &piece.references);
        ControlFlow::Continue(())
    }
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
    let reading = trace::read(reader, |batch, fraction| {
        watch.at(fraction);
        take(batch).and_then(|()| Ok(watch.go_on()?)).map_err(|error| {
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
        let read = move || {
            trace::read(Reader::open(path, options)?, |batch, fraction| {
                watch.at(fraction);
                let next = empty.try_recv().unwrap_or_default();
                full.send(std::mem::replace(batch, next)).map_err(|_| Refused("it is not wanted".into()))
            })
        };
        let Ok(reader) = Builder::new().spawn_scoped(scope, read) else {
            return decoded_here(path, options, watch, take);
        };
        let mut each = |batch: Vec<u64>| -> Result<()> {
            take(&batch)?;
            // The reader may have ended already.
            let _ = used.send(batch);
            Ok(watch.go_on()?)
        };
        // The channel is gone when the loop ends, so a reader whose batches nobody takes ends, too.
        let taken = batches.into_iter().try_for_each(&mut each);
        let reading = reader.join().expect("the reader does not panic");
        taken?;
        Ok(reading?)
    })
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

    /// Gives a piece to every consumer on this thread.
    fn take_here(&self, piece: &mut Piece) -> Result<(), Stopped> {
        let mut state = self.lock();
        let mut consumers = state.consumers.iter_mut().flatten();
        let stopped = consumers.any(|consumer| consumer.take(piece, self.watch).is_break());
        piece.references.clear();
        piece.writes.clear();
        piece.bytes.clear();
        state.stopped |= stopped;
        if stopped { Err(Stopped) } else { Ok(()) }
    }

    /// Adds a piece, and leaves an empty one, as soon as there is room.
    fn publish(&self, piece: &mut Piece) -> Result<(), Stopped> {
        let mut state = self.lock();
        while state.pieces.len() >= AHEAD && !state.stopped {
            state = self.wait(state);
        }
        state.pieces.push_back(Arc::new(std::mem::replace(piece, Piece::with_room())));
        self.changed.notify_all();
        if state.stopped { Err(Stopped) } else { Ok(()) }
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
            let stop = taker.take(&piece, self.watch).is_break();
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

/// Reads a trace and gives it to all consumers, on every core; together they take `cost`. `records`
/// says what the trace must tell beside its pages.
///
/// # Errors
/// When the trace cannot be read, has too many pages or does not tell what it must, the consumers would take too much
/// memory, or `watch` stops it.
pub fn feed<'a>(
    path: &Path,
    options: &Options,
    records: Option<records::Wanted>,
    cost: &Cost,
    consumers: Vec<&'a mut dyn Consumer>,
    watch: &'a dyn Watch,
) -> Result<Read> {
    if let Some(wanted) = records {
        return hand_out(consumers, watch, |publish| {
            records::each_piece(path, options, wanted, cost, watch, publish)
        });
    }
    let mut densifier = Densifier::default();
    let mut references = 0;
    let mut room = Room::new(path, cost);
    hand_out(consumers, watch, |publish| {
        let mut piece = Piece::with_room();
        let mut pass_on = |piece: &mut Piece, pages| {
            references += piece.references.len() as u64;
            piece.pages = pages;
            publish(piece)
        };
        let reading = decoded(path, options, watch, |batch| {
            densifier.number_all(batch, &mut piece.references).map_err(|_| too_many_pages(path))?;
            room.check(densifier.pages(), 0)?;
            if piece.references.len() >= PIECE { pass_on(&mut piece, densifier.pages()) } else { Ok(()) }
        })?;
        pass_on(&mut piece, densifier.pages())?;
        Ok(Read { references, pages: densifier.pages(), reading })
    })
}

/// Gives the pieces that `produce` makes here to all consumers, on every core; what is published is
/// taken out of the piece. On one core, where threads would only take turns, and where none can be
/// had, all of it is done here.
///
/// # Errors
/// Those of `produce`, and when `watch` stops it.
fn hand_out<'a, T>(
    consumers: Vec<&'a mut dyn Consumer>,
    watch: &'a dyn Watch,
    produce: impl FnOnce(&mut dyn FnMut(&mut Piece) -> Result<()>) -> Result<T>,
) -> Result<T> {
    let cores = crate::spread::cores();
    let wanted = if cores == 1 { 0 } else { cores.min(consumers.len()) };
    let shared = Shared::new(consumers, watch);
    let produced = std::thread::scope(|scope| {
        let _end_all = EndAll(&shared);
        let spawn = |_: &usize| Builder::new().spawn_scoped(scope, || shared.work()).is_ok();
        let workers = (0..wanted).filter(spawn).count();
        let produced = produce(&mut |piece| {
            let taken = if workers == 0 { shared.take_here(piece) } else { shared.publish(piece) };
            Ok(taken?)
        });
        shared.end(produced.is_err());
        produced
    })?;
    // The workers may have been stopped after the last piece was published.
    if shared.lock().stopped { Err(Stopped.into()) } else { Ok(produced) }
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
        room.check(densifier.pages(), list.len())?;
        densifier.number_all(batch, &mut list).map_err(|_| too_many_pages(path))
    })?;
    list.shrink_to_fit();
    Ok(Trace { stream: Stream::new(densifier.pages(), list), reading })
}
