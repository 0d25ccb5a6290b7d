//! Plays the references of `mapanon` and `mapfile` to whoever answers each, and observes: the one way for models and for
//! memory that a model's policy pages.

use pagelab_experiment::build::{
    Distribution, EvictionLog, Figure, KINDS, Window, Windows, access_metrics, metrics,
};
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Histogram, PageSet, PageSnapshot};
use pagelab_experiment::{Failure, Observation, Recorder};
use pagelab_reference::{Blocks, PatternError};

use crate::paging::machine::Tally;
use crate::policy::opt::NextUse;

/// Rows of the table of windows.
const WINDOW_COUNT: usize = 240;
/// Page maps between start and end, both included.
pub(super) const SNAPSHOTS: usize = 16;

/// One reference: how long it took, and what it met.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// How long it took, ns.
    pub time: u64,
    /// What it met.
    pub met: Met,
}

/// What a reference met, in the order of [`KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    /// The page was there.
    Hit,
    /// A fault that waited for no input.
    Minor,
    /// A fault that waited for input.
    Major,
}

/// Something that references can be played to: a model, or memory that a policy pages.
pub trait Player {
    /// Writes a page for the first time, or, later, touches it to warm up.
    ///
    /// # Errors
    /// When memory runs out, or the system refuses.
    fn populate(&mut self, page: u32) -> Result<(), Box<Failure>>;

    /// What happened so far does not count; everything from here on does.
    ///
    /// # Errors
    /// When the system refuses.
    fn begin(&mut self) -> Result<(), Box<Failure>>;

    /// Makes a reference.
    ///
    /// # Errors
    /// When memory runs out, or the system refuses.
    fn reference(&mut self, page: u32, write: bool) -> Result<Access, Box<Failure>>;

    /// Since [`Player::begin`].
    fn tally(&self) -> Tally;

    /// Pages written to swap since then; `None` where dirty pages are not told from clean ones.
    fn swapped_out(&self) -> Option<u64>;

    /// Time of the references since then, ns.
    fn time(&self) -> u64;

    /// Pages that are present.
    fn present(&self) -> u64;

    /// Which pages are present and which are in swap, where that is known.
    fn map(&self) -> Option<(PageSet, PageSet)>;

    /// Begins to collect evicted pages.
    fn note_evictions(&mut self) {}

    /// Passes the pages evicted by the last reference to `gone`, in any order.
    fn evicted(&mut self, _gone: &mut dyn FnMut(u32)) {}

    /// Where the time went.
    fn times(&self) -> Vec<Figure> {
        let (tally, elapsed) = (self.tally(), self.time());
        let number = |value: u64| Some(value as f64);
        vec![
            (metrics::TIME_ELAPSED, number(elapsed)),
            (metrics::TIME_SYSTEM, number(tally.system)),
            (metrics::TIME_USER, number(elapsed.saturating_sub(tally.system + tally.waited))),
            (metrics::TIME_STALLED, number(tally.waited)),
        ]
    }
}

/// References made at a time, and between two samples whether to go on.
pub(super) const BLOCK: usize = 1 << 16;

/// What a stream that cannot be made is to who performs.
pub fn unmade(error: PatternError) -> Failure {
    match error {
        PatternError::Memory(_) => Failure::refused(error.to_string(), "make room, or use another pattern"),
        error => Failure::parameters("the reference stream", &error),
    }
}

/// What OPT foresees: the opening, which is part of it, and the whole stream.
///
/// # Errors
/// When the stream cannot be made, or the user interrupts.
pub fn future(
    opening: impl Iterator<Item = u32>,
    mut blocks: Blocks,
    recorder: &mut dyn Recorder,
) -> Result<NextUse, Failure> {
    let mut all: Vec<u32> = opening.collect();
    all.reserve_exact(blocks.left() as usize);
    while blocks.left() > 0 {
        all.extend_from_slice(blocks.next(BLOCK).map_err(unmade)?);
        if recorder.interrupted() {
            return Err(Failure::interrupted());
        }
    }
    Ok(NextUse::of(blocks.pages(), &all))
}

/// Populates, plays the stream, and observes.
///
/// # Errors
/// When the stream cannot be made, `player` fails, or the user interrupts.
pub fn play(
    player: &mut dyn Player,
    mut blocks: Blocks,
    paging: &Paging,
    populated: bool,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    for (n, page) in paging.opening(blocks.pages(), populated).enumerate() {
        player.populate(page).map_err(|failure| *failure)?;
        if n % BLOCK == 0 && recorder.interrupted() {
            return Err(Failure::interrupted());
        }
    }
    player.begin().map_err(|failure| *failure)?;
    let mut writes = paging.drawn_writes();
    let mut kinds = KINDS.map(|_| Distribution::new());
    let mut windows = Windows::new();
    let mut count = vec![0u32; blocks.pages() as usize];
    let mut last = vec![0u32; blocks.pages() as usize];
    let mut most_present = player.present();
    let total = blocks.left() as usize;
    snapshot(player, 0, &count, &last, recorder)?;
    let mut evictions = paging.evictions.then(EvictionLog::new);
    if evictions.is_some() {
        player.note_evictions();
    }
    let mut snapshots = 1;
    let mut done = 0;
    for window in 1..=WINDOW_COUNT.min(total) {
        let end = total * window / WINDOW_COUNT.min(total);
        let before = (player.tally(), player.time());
        let mut worst = 0;
        while done < end {
            for &page in blocks.next(BLOCK.min(end - done)).map_err(unmade)? {
                let access = player.reference(page, writes.draw()).map_err(|failure| *failure)?;
                worst = worst.max(access.time);
                kinds[access.met as usize].record(access.time);
                done += 1;
                count[page as usize] += 1;
                last[page as usize] = done as u32;
                if let Some(log) = &mut evictions {
                    player.evicted(&mut |gone| {
                        log.add(done as u32, gone);
                    });
                }
            }
            recorder.progress("references", done as u64, total as u64);
            if recorder.interrupted() {
                return Err(Failure::interrupted());
            }
        }
        let present = player.present();
        most_present = most_present.max(present);
        let tally = player.tally().since(&before.0);
        windows.add(&Window {
            reference: done as u64,
            references: (end - total * (window - 1) / WINDOW_COUNT.min(total)) as u64,
            time: player.time() - before.1,
            longest: worst,
            minor: tally.minor,
            major: tally.major,
            swap_in: Some(tally.swapped_in),
            swap_out: player.swapped_out().map(|_| tally.swapped_out),
            present: Some(present),
        });
        if window == WINDOW_COUNT.min(total) || snapshots < SNAPSHOTS * window / WINDOW_COUNT {
            snapshot(player, done as u64, &count, &last, recorder)?;
            snapshots += 1;
        }
    }
    recorder.observe(Observation::Table(windows.table()))?;
    // The interval of a model is one reference.
    evictions.map_or(Ok(()), |log| log.record(1, recorder))?;
    let kinds = std::array::from_fn(|kind| kinds[kind].histogram(KINDS[kind]));
    for kind in &kinds {
        recorder.observe(Observation::Histogram(kind.clone()))?;
    }
    figures(player, &kinds, most_present, recorder)
}

fn snapshot(
    player: &dyn Player,
    reference: u64,
    count: &[u32],
    last: &[u32],
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    if let Some((present, swapped)) = player.map() {
        let pages = count.len() as u32;
        let (count, last) = (count.to_vec(), last.to_vec());
        recorder.observe(Observation::Pages(PageSnapshot {
            reference,
            pages,
            present,
            swapped,
            count,
            last,
        }))?;
    }
    Ok(())
}

fn figures(
    player: &dyn Player,
    kinds: &[Histogram; 3],
    most_present: u64,
    recorder: &mut dyn Recorder,
) -> Result<(), Failure> {
    let tally = player.tally();
    let number = |value: u64| Some(value as f64);
    metrics(recorder, player.times())?;
    metrics(recorder, access_metrics(kinds))?;
    metrics(
        recorder,
        [
            (metrics::FAULTS_MINOR, number(tally.minor)),
            (metrics::FAULTS_MAJOR, number(tally.major)),
            (metrics::SWAP_IN, number(tally.swapped_in)),
            (metrics::SWAP_OUT, player.swapped_out().map(|pages| pages as f64)),
            (metrics::PAGES_PRESENT, number(most_present)),
        ],
    )
}
