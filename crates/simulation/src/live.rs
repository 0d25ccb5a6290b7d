//! Simulates a live stream of page-cache requests: one memory per policy and size, in bounded
//! memory.
//!
//! A page is a file and an index. With a sample rate, the simulations have a share of the pages,
//! selected by hash, and the same share of the frames (SHARDS and miniature simulations, see
//! [`pagelab_model::mrc::miniature`]).
//!
//! The page cache is warm at the start, and the simulated memories are empty. A page whose first
//! request causes no read was cached before the start. That request counts as a hit, for the kernel
//! and for every simulated memory.

use std::collections::HashMap;
use std::ops::Range;

use pagelab_model::mrc::shards::{Sampling, TRUSTED, WrongRate, sampled};
use pagelab_model::policy::{Policy, PolicyKind};
use pagelab_model::replay::A_PAGE;
use pagelab_model::systems::linux_file_lru::LinuxFileLru;
use pagelab_model::systems::linux_file_mglru::LinuxFileMglru;

/// Low bits of a page's name, which contain its index. The high bits contain the file's number.
const INDEX: u32 = 32;
/// Maximum number of files.
const MAX_FILES: usize = 1 << 20;
/// Bytes per page for the hash table, while it grows, and the state.
const NUMBERED: u64 = 64;

/// A policy to simulate.
#[derive(Clone, Debug, PartialEq)]
pub enum Simulated {
    /// A replacement policy that does not need the future.
    Policy(PolicyKind),
    /// The kernel's classic lists, as [`LinuxFileLru`].
    LinuxLru,
    /// The kernel's generations, as [`LinuxFileMglru`].
    LinuxMglru,
}

impl Simulated {
    fn build(&self, frames: u32) -> Box<dyn Policy> {
        match self {
            Self::Policy(kind) => kind.build(0, frames, None),
            Self::LinuxLru => Box::new(LinuxFileLru::new(0, frames)),
            Self::LinuxMglru => Box::new(LinuxFileMglru::new(0, frames)),
        }
    }
}

/// The state of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Read from its device, and not requested yet.
    #[default]
    Read,
    /// Found in the page cache by its first request, as far as is known.
    Found,
    /// Requested or written before.
    Known,
}

/// A simulated memory.
struct Memory {
    policy: Box<dyn Policy>,
    misses: u64,
}

/// The simulations of a stream of events.
pub struct Live {
    memories: Vec<Memory>,
    rate: f64,
    max_pages: u32,
    files: HashMap<(u32, u64), u32>,
    numbers: HashMap<u64, u32>,
    states: Vec<State>,
    counted: Counted,
}

/// Counts of the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Requested pages.
    pub requests: u64,
    /// Of these, pages that are simulated.
    pub simulated: u64,
    /// Simulated pages requested for the first time.
    pub first: u64,
    /// Of these, pages that the kernel had cached before the start.
    pub cached_before: u64,
    /// Requested and loaded pages beyond the planned memory.
    pub left_out: u64,
}

/// The misses of one simulated memory, scaled to all pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Misses {
    /// Misses, including first requests of pages that the kernel had to read.
    pub all: f64,
    /// As a share of the requests, from 0 to 1; `None` without a request.
    pub ratio: Option<f64>,
}

/// Why a memory cannot be simulated.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Impossible {
    /// The sample has too few frames.
    #[error(
        "{frames} pages at a sample of {rate} leave fewer than {TRUSTED} simulated pages\n\
        hint: sample more pages, or simulate a larger memory"
    )]
    TooFewFrames {
        /// The frames asked for.
        frames: u32,
        /// The share of the pages.
        rate: f64,
    },
    /// The share of the pages cannot be sampled.
    #[error(transparent)]
    Rate(#[from] WrongRate),
}

/// The frames of a miniature memory.
fn scaled(frames: u32, rate: f64) -> Result<u32, Impossible> {
    let scaled = (f64::from(frames) * rate).round() as u32;
    if rate < 1.0 && scaled < TRUSTED { Err(Impossible::TooFewFrames { frames, rate }) } else { Ok(scaled) }
}

/// Number of pages that fit in `bytes` bytes, for simulations of `memories` memories.
pub fn pages_within(bytes: u64, memories: usize) -> u32 {
    u32::try_from(bytes / (NUMBERED + A_PAGE * memories as u64)).unwrap_or(u32::MAX - 1)
}

impl Live {
    /// Creates empty memories with these policies and frames. `rate` is the share of the pages to
    /// simulate, above 0 and up to 1; `max_pages` limits their number.
    ///
    /// # Errors
    /// If the share is too small for the frames.
    pub fn new(runs: &[(Simulated, u32)], rate: f64, max_pages: u32) -> Result<Self, Impossible> {
        Sampling::of_rate(rate)?;
        let memory = |(simulated, frames): &(Simulated, u32)| {
            Ok(Memory { policy: simulated.build(scaled(*frames, rate)?), misses: 0 })
        };
        Ok(Self {
            memories: runs.iter().map(memory).collect::<Result<_, Impossible>>()?,
            rate,
            max_pages,
            files: HashMap::new(),
            numbers: HashMap::new(),
            states: Vec::new(),
            counted: Counted::default(),
        })
    }

    /// The names of pages of a file: the file's number above the page's index. `None` if there are
    /// too many files, or an index exceeds 2^32.
    pub fn names(&mut self, file: (u32, u64), pages: &Range<u64>) -> Option<Range<u64>> {
        let next = self.files.len();
        let number = match self.files.get(&file) {
            Some(&number) => number,
            None if next < MAX_FILES => *self.files.entry(file).or_insert(next as u32),
            None => return None,
        };
        let name = |index: u64| u64::from(number) << INDEX | index;
        (pages.end <= 1 << INDEX).then(|| name(pages.start)..name(pages.start) + (pages.end - pages.start))
    }

    /// Adds a request for pages of a file.
    pub fn request(&mut self, file: (u32, u64), pages: Range<u64>) {
        self.counted.requests += pages.end - pages.start;
        self.each(file, pages, |live, number, is_new| {
            live.counted.simulated += 1;
            let state = &mut live.states[number as usize];
            let was = std::mem::replace(state, State::Known);
            if is_new || was == State::Read {
                live.counted.first += 1;
            }
            if is_new {
                *state = State::Found;
                live.counted.cached_before += 1;
            }
            for Memory { policy, misses } in &mut live.memories {
                policy.grow(number + 1);
                *misses += u64::from(!policy.reference(number));
            }
        });
    }

    /// Adds a read of pages from the device, before or just after their request.
    pub fn read(&mut self, file: (u32, u64), pages: Range<u64>) {
        self.each(file, pages, |live, number, _| {
            let state = &mut live.states[number as usize];
            if *state == State::Found {
                *state = State::Known;
                live.counted.cached_before -= 1;
            }
        });
    }

    /// Adds pages that entered the cache by a write.
    pub fn write(&mut self, file: (u32, u64), pages: Range<u64>) {
        self.each(file, pages, |live, number, _| {
            live.states[number as usize] = State::Known;
            for Memory { policy, .. } in &mut live.memories {
                policy.grow(number + 1);
                policy.reference(number);
            }
        });
    }

    /// Passes the dense number of each sampled page, and whether it is new, to `take`.
    fn each(&mut self, file: (u32, u64), pages: Range<u64>, take: impl Fn(&mut Self, u32, bool)) {
        let length = pages.end - pages.start;
        let Some(names) = self.names(file, &pages) else {
            self.counted.left_out += length;
            return;
        };
        for name in names {
            if self.rate < 1.0 && !sampled(name, self.rate) {
                continue;
            }
            let next = self.states.len() as u32;
            match self.numbers.get(&name) {
                Some(&number) => take(self, number, false),
                None if next < self.max_pages => {
                    self.numbers.insert(name, next);
                    self.states.push(State::default());
                    take(self, next, true);
                }
                None => self.counted.left_out += 1,
            }
        }
    }

    /// The counts so far.
    pub fn counted(&self) -> Counted {
        self.counted
    }

    /// Number of simulated pages, and of files.
    pub fn size(&self) -> (usize, usize) {
        (self.states.len(), self.files.len())
    }

    /// Number of pages that the kernel had cached before the start, scaled to all pages.
    pub fn cached_before(&self) -> f64 {
        self.counted.cached_before as f64 / self.rate
    }

    /// Compulsory misses, scaled to all pages: first requests of pages that the kernel had to read.
    pub fn compulsory(&self) -> f64 {
        (self.counted.first - self.counted.cached_before) as f64 / self.rate
    }

    /// The misses of each memory, in the order of the runs.
    pub fn misses(&self) -> Vec<Misses> {
        let requests = self.counted.requests as f64;
        let scale = |memory: &Memory| {
            let counted = memory.misses.saturating_sub(self.counted.cached_before) as f64;
            let all = (counted / self.rate).min(requests);
            Misses { all, ratio: (requests > 0.0).then(|| all / requests) }
        };
        self.memories.iter().map(scale).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_model::replay::replay;
    use pagelab_reference::Pattern;

    const FILE: (u32, u64) = (1, 2);

    fn lru(frames: u32) -> (Simulated, u32) {
        (Simulated::Policy(PolicyKind::Lru), frames)
    }

    /// Requests pages that the kernel has to read.
    fn cold(live: &mut Live, pages: Range<u64>) {
        live.read(FILE, pages.clone());
        live.request(FILE, pages);
    }

    #[test]
    fn a_live_stream_gives_the_misses_of_a_replay() {
        let stream = Pattern::Zipf(0.8).stream(2000, 30_000, 3).unwrap();
        let kinds = ["lru", "s3-fifo", "arc"].map(|name| name.parse::<PolicyKind>().unwrap());
        let runs: Vec<_> = kinds.iter().map(|kind| (Simulated::Policy(kind.clone()), 500)).collect();
        let mut live = Live::new(&runs, 1.0, 2000).unwrap();
        for &page in stream.references() {
            cold(&mut live, page.into()..u64::from(page) + 1);
        }
        for (kind, misses) in kinds.iter().zip(live.misses()) {
            assert_eq!(misses.all, replay(&stream, kind, 500).misses as f64, "{kind}");
        }
    }

    #[test]
    fn a_range_is_as_many_requests_as_pages() {
        let mut live = Live::new(&[lru(10)], 1.0, 1000).unwrap();
        cold(&mut live, 5..25);
        live.request((1, 3), 5..6);
        let counted = live.counted();
        assert_eq!((counted.requests, counted.first, counted.cached_before), (21, 21, 1));
        assert_eq!((live.compulsory(), live.misses()[0].all), (20.0, 20.0));
        assert_eq!(live.size(), (21, 2));
    }

    #[test]
    fn pages_cached_before_the_start_are_hits_at_first() {
        let mut live = Live::new(&[lru(4)], 1.0, 1000).unwrap();
        live.request(FILE, 0..4);
        assert_eq!(live.misses()[0].all, 0.0);
        // The kernel may also read a page just after the request.
        live.request(FILE, 4..8);
        live.read(FILE, 4..8);
        assert_eq!(live.misses()[0].all, 4.0);
        live.request(FILE, 0..4);
        live.read(FILE, 0..4);
        assert_eq!((live.misses()[0].all, live.counted().cached_before), (8.0, 4));
        // The request of a written page is no first request.
        live.write(FILE, 8..9);
        live.request(FILE, 8..9);
        assert_eq!((live.misses()[0].all, live.counted().first), (8.0, 8));
    }

    #[test]
    fn more_pages_than_planned_are_left_out_and_counted() {
        let mut live = Live::new(&[lru(4)], 1.0, 10).unwrap();
        cold(&mut live, 0..12);
        live.request((1, 2), (1 << 32) - 1..(1 << 32) + 1);
        assert_eq!((live.size().0, live.counted().left_out), (10, 2 + 2 + 2));
        assert_eq!(live.counted().simulated, 10);
        assert_eq!(pages_within(64 * 3000, 2), 1000);
    }

    #[test]
    fn a_sample_of_the_pages_has_the_same_share_of_the_frames() {
        assert!(matches!(Live::new(&[lru(900)], 0.1, 1), Err(Impossible::TooFewFrames { .. })));
        let stream = Pattern::Zipf(0.8).stream(50_000, 300_000, 3).unwrap();
        let mut live = Live::new(&[lru(20_000)], 0.1, 50_000).unwrap();
        for &page in stream.references() {
            cold(&mut live, page.into()..u64::from(page) + 1);
        }
        let exact = replay(&stream, &PolicyKind::Lru, 20_000).misses as f64;
        let misses = live.misses()[0].all;
        assert!((misses / exact - 1.0).abs() < 0.1, "{misses} and {exact}");
        assert!((4000..6000).contains(&live.size().0), "{:?}", live.size());
    }
}
