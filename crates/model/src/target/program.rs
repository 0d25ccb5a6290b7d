//! `command` on a model: the references that a program was recorded with, in so many frames.
//!
//! Nothing is in memory when a program begins, so the first reference to each page is a minor fault on any model (a
//! kernel gives it a page of zeroes, or maps a file's), and every later miss is a major one: the page had been there and
//! was evicted. A reference takes 1 ns of virtual time unless told otherwise: a program makes most of them to what lies
//! in the processor's caches.

use pagelab_experiment::environment;
use std::path::Path;

use pagelab_experiment::build::{metrics, note};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Observation, Recorder};
use pagelab_reference::trace::recorded::{self, Ending, Heading};
use pagelab_reference::trace::{Densifier, Format, Options, Reader};

use crate::paging::{Costs, Machine, OutOfMemory};
use crate::policy::opt::NextUse;
use crate::policy::{Policy, PolicyKind};
use crate::replay::{A_PAGE, FUTURE};
use crate::systems::SystemKind;

/// References played at a time, and between two looks whether to go on.
const PIECE: usize = 1 << 14;
/// Bytes a run of the future takes while it is made: the page, then when it is next.
const RUN: u64 = 4 + FUTURE;

/// Who plays.
#[derive(Clone, Copy)]
pub enum Pager<'a> {
    /// A policy.
    Policy(&'a PolicyKind),
    /// A system, with its costs.
    System(&'static SystemKind, Costs),
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

/// A recording that was read once.
pub struct Recording<'a> {
    path: &'a Path,
    options: Options,
    /// Different pages.
    pub pages: u32,
    references: u64,
    /// When the page of each run is next referenced; runs are of one page, whatever the kind.
    future: Option<NextUse>,
    /// What it is known to lack.
    lacks: Vec<String>,
}

/// Bytes that playing the recording at `path` takes beside it; 0 where there is none yet.
pub fn memory(path: &Path, pager: Pager) -> u64 {
    let Ok(Some((_, ending))) = recorded::ends(path) else { return 0 };
    let future = matches!(pager, Pager::Policy(kind) if kind.needs_future());
    // Pages are no more than runs.
    let tables = ending.runs.min(1 << 24) * A_PAGE;
    tables + if future { ending.runs * RUN } else { 0 }
}

impl<'a> Recording<'a> {
    /// Reads the recording at `path` for `pager`, in pages of `page_size` bytes.
    ///
    /// # Errors
    /// When it cannot be read or holds no program's references, or the user interrupts.
    pub fn open(
        path: &'a Path,
        pager: Pager,
        page_size: u64,
        recorder: &mut dyn Recorder,
    ) -> Result<Self, Failure> {
        let options = Options { format: Some(Format::Recorded), page_size, ..Options::default() };
        let needs_future = matches!(pager, Pager::Policy(kind) if kind.needs_future());
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
        let lacks = recorded::ends(path).ok().flatten().map_or_else(Vec::new, |ends| lacks(&ends.0, &ends.1));
        Ok(Self { path, options, pages: count, references: runs.seen, future, lacks })
    }

    /// Plays it to `pager` with `frames` frames and observes.
    ///
    /// # Errors
    /// As [`Self::open`], and when memory runs out in the model.
    pub fn play(&self, pager: Pager, frames: u32, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let mut runs = Runs { of: self.references, ..Runs::open(self.path, &self.options, 1)? };
        let faults = match pager {
            Pager::Policy(kind) => {
                let mut policy = kind.build(self.pages, frames, self.future.as_ref());
                play_policy(policy.as_mut(), self.future.is_some(), self.pages, &mut runs, recorder)?
            }
            Pager::System(kind, costs) => {
                let mut machine = Machine::new(self.pages, frames, costs, kind.read_ahead);
                let mut system = kind.build(self.pages, frames);
                let bytes = |frames: u32| u64::from(frames) * self.options.page_size;
                let fail = |e: OutOfMemory| Failure::out_of_memory(bytes(e.frames)).because(&e);
                while let Some((page, write, count)) = runs.next(u64::MAX, recorder)? {
                    machine.reference(system.as_mut(), page, write).map_err(fail)?;
                    if count > 1 {
                        machine.again(system.as_mut(), count - 1);
                    }
                }
                let tally = machine.tally();
                Faults {
                    minor: tally.minor,
                    major: tally.major,
                    swapped_in: tally.swapped_in,
                    swapped_out: Some(tally.swapped_out),
                }
            }
        };
        let known = [
            ("trace", self.path.display().to_string()),
            (environment::TRACE_REFERENCES, self.references.to_string()),
            (environment::TRACE_PAGES, self.pages.to_string()),
        ];
        recorder
            .observe(Observation::Environment(known.map(|(key, value)| (key.to_owned(), value)).into()))?;
        self.lacks.iter().try_for_each(|text| note(recorder, Level::Warning, text))?;
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
fn lacks(heading: &Heading, ending: &Ending) -> Vec<String> {
    let mut list = Vec::new();
    if heading.kinds.len() < 3 {
        list.push(format!("the recording has of all references alone: {}", heading.kinds.join(", ")));
    }
    for (number, what) in [
        (ending.unrecorded_programs, "programs that it executed"),
        (ending.unrecorded_threads, "threads beyond the first 256 at a time"),
    ] {
        if number > 0 {
            list.push(format!("the recording lacks {number} {what}: models play less than the kernel had"));
        }
    }
    list
}

/// A policy on the recording. OPT, which foresees runs of one page, sees each as one reference: those that follow are hits
/// and change nothing of what is next. Other policies may count references and see all.
fn play_policy(
    policy: &mut (dyn Policy + '_),
    by_runs: bool,
    pages: u32,
    runs: &mut Runs,
    recorder: &mut dyn Recorder,
) -> Result<Faults, Failure> {
    let (mut misses, mut last) = (0, u32::MAX);
    let mut piece: Vec<u32> = Vec::with_capacity(PIECE);
    while let Some((page, _, count)) = runs.next((PIECE - piece.len()) as u64, recorder)? {
        let count = match (by_runs, page == last) {
            (false, _) => count as usize,
            (true, same) => usize::from(!same),
        };
        piece.resize(piece.len() + count, page);
        last = page;
        if piece.len() == PIECE {
            misses += policy.misses(&piece);
            piece.clear();
        }
    }
    misses += policy.misses(&piece);
    let major = misses - u64::from(pages);
    Ok(Faults { minor: u64::from(pages), major, swapped_in: major, swapped_out: None })
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
