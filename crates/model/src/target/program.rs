//! `command` on a model: the references that a program was recorded with, in so many frames.
//!
//! Nothing is in memory when a program begins, so the first reference to each page is a minor fault on any model (a
//! kernel gives it a page of zeroes, or maps a file's), and every later miss is a major one: the page had been there and
//! was evicted. A reference takes 1 ns of virtual time unless told otherwise: a program makes most of them to what lies
//! in the processor's caches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use pagelab_experiment::build::{metrics, warn};
use pagelab_experiment::environment;
use pagelab_experiment::metrics;
use pagelab_experiment::warnings::{FEW_KINDS, INCOMPLETE, Warning};
use pagelab_experiment::{Failure, Observation, Recorder};
use pagelab_reference::room::can_be_had;
use pagelab_reference::trace::recorded::{self, Ending, Heading};
use pagelab_reference::trace::{Densifier, Format, Options, Reader};

use crate::paging::{Machine, OutOfMemory, System};
use crate::policy::lru_sizes::{self, LruSizes};
use crate::policy::opt::NextUse;
use crate::policy::{Policy, PolicyKind};
use crate::replay::{A_PAGE, FUTURE};
use crate::systems::Configuration;

/// Runs, and references, that each player is given at a time: its tables stay in the processor's cache for them.
const PIECE: usize = 1 << 16;
/// Bytes a run of the future takes while it is made: the page, then when it is next.
const RUN: u64 = 4 + FUTURE;

/// Who plays.
#[derive(Clone, Copy)]
pub enum Pager<'a> {
    /// A policy.
    Policy(&'a PolicyKind),
    /// A system.
    System(Configuration),
}

impl Pager<'_> {
    /// Whether the player must know all references in advance.
    pub fn needs_future(&self) -> bool {
        matches!(self, Self::Policy(kind) if kind.needs_future())
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Faults {
    minor: u64,
    major: u64,
    swapped_in: u64,
    /// `None` of a policy, which tells no dirty pages from clean ones.
    swapped_out: Option<u64>,
}

/// What a player made of a recording, with the facts about the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    faults: Faults,
    facts: Rc<Facts>,
}

/// Facts about a recording.
#[derive(Debug, PartialEq, Eq)]
struct Facts {
    path: PathBuf,
    references: u64,
    pages: u32,
    /// What the recording is known to lack.
    lacks: Vec<(Warning, String)>,
}

/// A recording that was read once.
pub struct Recording<'a> {
    path: &'a Path,
    options: Options,
    /// Different pages.
    pub pages: u32,
    references: u64,
    /// When the page of each run is next referenced; runs are of one page, whatever the kind.
    future: Option<NextUse>,
}

/// Bytes that playing the recording at `path` takes beside it; 0 where there is none yet.
pub fn memory(path: &Path, pager: Pager) -> u64 {
    let Ok(Some((_, ending))) = recorded::ends(path) else { return 0 };
    // Pages are no more than runs.
    let tables = ending.runs.min(1 << 24) * A_PAGE;
    tables + if pager.needs_future() { ending.runs * RUN } else { 0 }
}

impl<'a> Recording<'a> {
    /// Reads the recording at `path`, in pages of `page_size` bytes, for players of which one `needs_future` or none.
    ///
    /// # Errors
    /// When it cannot be read or holds no program's references, or the user interrupts.
    pub fn open(
        path: &'a Path,
        needs_future: bool,
        page_size: u64,
        recorder: &mut dyn Recorder,
    ) -> Result<Self, Failure> {
        let options =
            Options { format: Some(Format::Recorded), page_size, window: true, ..Options::default() };
        let mut runs = Runs::open(path, &options, 0)?;
        let mut pages: Vec<u32> = Vec::new();
        while let Some((page, _, _)) = runs.next(u64::MAX, recorder)? {
            if needs_future && pages.last() != Some(&page) {
                pages.push(page);
            }
        }
        let count = runs.dense.pages();
        if count == 0 {
            return Err(Failure::refused("the recording holds no reference", "record the program again"));
        }
        let future = needs_future.then(|| NextUse::of(count, &pages));
        Ok(Self { path, options, pages: count, references: runs.seen, future })
    }

    /// Plays it once to all `players`, each with its frames; what each made of it, in their order. A player may fail by itself.
    ///
    /// # Errors
    /// As [`Self::open`], and when there is no memory for all of them.
    pub fn play(
        &self,
        players: &[(Pager, u32)],
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<Result<Outcome, Failure>>, Failure> {
        let ends = recorded::ends(self.path).ok().flatten();
        let least = ends.as_ref().map_or(0, |(heading, _)| heading.least());
        if let Some((_, small)) = players.iter().find(|(_, frames)| *frames < least) {
            let what = format!(
                "a memory of {small} pages: {} was recorded through a window, for at least {least} pages",
                self.path.display()
            );
            return Err(Failure::refused(what, "record the program without --window"));
        }
        let bytes = u64::from(self.pages) * A_PAGE * players.len() as u64;
        if !can_be_had(bytes) {
            let what = format!("there is no memory for the {bytes} bytes of {} models", players.len());
            return Err(Failure::refused(what, "replay fewer of them at once"));
        }
        let mut runs = Runs { of: self.references, ..Runs::open(self.path, &self.options, 1)? };
        let mut all = Players::new(self, players);
        let mut batch = Vec::with_capacity(PIECE);
        loop {
            batch.clear();
            while batch.len() < PIECE {
                let Some(run) = runs.next(u64::MAX, recorder)? else { break };
                batch.push(run);
            }
            if batch.is_empty() {
                break;
            }
            all.take(&batch);
        }
        let lacks = ends.map_or_else(Vec::new, |ends| lacks(&ends.0, &ends.1));
        let facts = Rc::new(Facts {
            path: self.path.to_owned(),
            references: self.references,
            pages: self.pages,
            lacks,
        });
        let of = |faults: Result<Faults, OutOfMemory>| {
            let fail = |e: OutOfMemory| {
                Failure::out_of_memory(u64::from(e.frames) * self.options.page_size).because(&e)
            };
            faults.map(|faults| Outcome { faults, facts: Rc::clone(&facts) }).map_err(fail)
        };
        Ok(all.finish().into_iter().map(of).collect())
    }
}

impl Outcome {
    /// Gives everything to `recorder`.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn observe(&self, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let Self { faults, facts } = self;
        let known = [
            ("trace", facts.path.display().to_string()),
            (environment::TRACE_REFERENCES, facts.references.to_string()),
            (environment::TRACE_PAGES, facts.pages.to_string()),
        ];
        recorder
            .observe(Observation::Environment(known.map(|(key, value)| (key.to_owned(), value)).into()))?;
        facts.lacks.iter().try_for_each(|(warning, text)| warn(recorder, *warning, text.clone()))?;
        metrics(
            recorder,
            [
                (metrics::FAULTS_MINOR, Some(faults.minor as f64)),
                (metrics::FAULTS_MAJOR, Some(faults.major as f64)),
                (metrics::SWAP_IN, Some(faults.swapped_in as f64)),
                (metrics::SWAP_OUT, faults.swapped_out.map(|pages| pages as f64)),
            ],
        )
    }
}

/// What the program did that a recording does not have.
fn lacks(heading: &Heading, ending: &Ending) -> Vec<(Warning, String)> {
    let mut list = Vec::new();
    if heading.kinds.len() < 3 {
        let text = format!("{}: {}", FEW_KINDS.0, heading.kinds.join(", "));
        list.push((FEW_KINDS, text));
    }
    for (number, what) in [
        (ending.unrecorded_programs, "programs that it executed"),
        (ending.unrecorded_threads, "threads beyond 256 at once"),
    ] {
        if number > 0 {
            let text = format!("the recording lacks {number} {what}, so {}", INCOMPLETE.0);
            list.push((INCOMPLETE, text));
        }
    }
    list
}

/// Who plays in one pass over a recording.
struct Players<'a> {
    pages: u32,
    seats: Vec<Seat<'a>>,
    /// LRU of every size that plays: one list for all.
    lru: LruSizes,
    /// The references of a batch, and of each run the first: as much as policies are given at once.
    references: Vec<u32>,
    firsts: Vec<u32>,
    last: u32,
}

/// One player.
enum Seat<'a> {
    /// LRU with so many frames.
    Lru(u32),
    /// OPT, which foresees runs of one page and sees each as one reference: those that follow are hits
    /// and change nothing of what is next.
    ByRuns(Box<dyn Policy + 'a>, u64),
    /// Another policy, which may count references and sees all, and its misses.
    Policy(Box<dyn Policy + 'a>, u64),
    System(Box<Machine>, Box<dyn System>, Option<OutOfMemory>),
}

impl<'a> Players<'a> {
    fn new(recording: &'a Recording, players: &[(Pager, u32)]) -> Self {
        let pages = recording.pages;
        let mut sizes = BTreeSet::new();
        let seat = |&(pager, frames): &(Pager, u32)| match pager {
            Pager::Policy(PolicyKind::Lru)
                if sizes.contains(&frames) || sizes.len() < lru_sizes::MAX_SIZES =>
            {
                sizes.insert(frames);
                Seat::Lru(frames)
            }
            Pager::Policy(kind) if kind.needs_future() => {
                Seat::ByRuns(kind.build(pages, frames, recording.future.as_ref()), 0)
            }
            Pager::Policy(kind) => Seat::Policy(kind.build(pages, frames, None), 0),
            Pager::System(system) => {
                Seat::System(Box::new(system.machine(pages, frames)), system.build(pages, frames), None)
            }
        };
        let seats: Vec<Seat> = players.iter().map(seat).collect();
        let mut lru = LruSizes::new(sizes.into_iter());
        lru.grow(pages);
        Self { pages, lru, seats, references: Vec::new(), firsts: Vec::new(), last: u32::MAX }
    }

    fn take(&mut self, batch: &[(u32, bool, u64)]) {
        self.firsts.clear();
        for &(page, _, _) in batch {
            if std::mem::replace(&mut self.last, page) != page {
                self.firsts.push(page);
            }
        }
        let mut counting = false;
        for seat in &mut self.seats {
            match seat {
                Seat::Lru(_) => {}
                Seat::ByRuns(policy, misses) => *misses += policy.misses(&self.firsts),
                Seat::Policy(..) => counting = true,
                Seat::System(machine, system, failed) if failed.is_none() => {
                    *failed = play_system(machine, system.as_mut(), batch).err();
                }
                Seat::System(..) => {}
            }
        }
        // Another reference to the page of the last one leaves LRU as it is.
        if !self.lru.is_empty() {
            self.lru.take(&self.firsts);
        }
        if counting {
            for &(page, _, mut count) in batch {
                while count > 0 {
                    let some = count.min((PIECE - self.references.len()) as u64);
                    self.references.resize(self.references.len() + some as usize, page);
                    count -= some;
                    if self.references.len() == PIECE {
                        self.count();
                    }
                }
            }
        }
    }

    /// Gives the references to the policies that see all.
    fn count(&mut self) {
        for seat in &mut self.seats {
            if let Seat::Policy(policy, misses) = seat {
                *misses += policy.misses(&self.references);
            }
        }
        self.references.clear();
    }

    fn finish(mut self) -> Vec<Result<Faults, OutOfMemory>> {
        self.count();
        let Self { pages, lru, seats, .. } = self;
        let of_policy = |misses: u64| {
            let major = misses - u64::from(pages);
            Ok(Faults { minor: u64::from(pages), major, swapped_in: major, swapped_out: None })
        };
        let of = |seat| match seat {
            Seat::Lru(frames) => of_policy(lru.misses(frames)),
            Seat::ByRuns(_, misses) | Seat::Policy(_, misses) => of_policy(misses),
            Seat::System(_, _, Some(failed)) => Err(failed),
            Seat::System(machine, _, None) => {
                let tally = machine.tally();
                Ok(Faults {
                    minor: tally.minor,
                    major: tally.major,
                    swapped_in: tally.swapped_in,
                    swapped_out: Some(tally.swapped_out),
                })
            }
        };
        seats.into_iter().map(of).collect()
    }
}

fn play_system(
    machine: &mut Machine,
    system: &mut dyn System,
    batch: &[(u32, bool, u64)],
) -> Result<(), OutOfMemory> {
    for &(page, write, count) in batch {
        machine.reference(system, page, write)?;
        if count > 1 {
            machine.again(system, count - 1);
        }
    }
    Ok(())
}

/// The runs of a recording, its pages numbered.
struct Runs {
    reader: Reader,
    dense: Densifier,
    seen: u64,
    /// References in all, where that is known.
    of: u64,
    /// Which half of the work this is.
    half: u64,
}

impl Runs {
    fn open(path: &Path, options: &Options, half: u64) -> Result<Self, Failure> {
        let reader =
            Reader::open(path, options).map_err(|error| Failure::parameters("the recording", &error))?;
        Ok(Self { reader, dense: Densifier::default(), seen: 0, of: 0, half })
    }

    /// The next references to one page in a row, at most `limit`.
    #[inline]
    fn next(&mut self, limit: u64, recorder: &mut dyn Recorder) -> Result<Option<(u32, bool, u64)>, Failure> {
        let run = self.reader.run(limit).map_err(|error| Failure::parameters("the recording", &error))?;
        let Some((page, kind, count)) = run else { return Ok(None) };
        if (self.seen ^ (self.seen + count)) >> 22 != 0 {
            if recorder.interrupted() {
                return Err(Failure::interrupted());
            }
            let done = if self.of > 0 { self.seen as f64 / self.of as f64 } else { self.reader.fraction() };
            recorder.progress("playing", self.half * 1000 + (done * 1000.0) as u64, 2000);
        }
        self.seen += count;
        let page = self.dense.number(page).map_err(|_| {
            Failure::refused("the recording has too many pages to number", "record less of the program")
        })?;
        Ok(Some((page, kind == recorded::STORE, count)))
    }
}
