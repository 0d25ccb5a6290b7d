//! Tracepoints and kernel functions counted for the calling process and everything that it forks.
//!
//! A function is counted by a probe that belongs to the event (perf's `kprobe` events, since Linux
//! 4.17): no name of it appears anywhere, and it goes when the event is closed, however that happens.

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::Range;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::region::{Region, page_size};

use super::{
    Attributes, Event, FLAG_DISABLED, FLAG_INHERIT, IOCTL_DISABLE, IOCTL_ENABLE, PAGE_FAULTS, SOFTWARE,
    TRACEPOINT, tracefs,
};

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Page faults, by the kernel's own software event.
    PageFaults,
    /// `subsystem:name`.
    Tracepoint(&'static str),
    /// Calls of the function of this name.
    Function(String),
}

/// Counters that are on.
#[derive(Debug)]
pub struct Counting {
    counters: Vec<io::Result<File>>,
    names: Names,
}

/// The names of the functions. At each fork the kernel makes the child's counters from the
/// attributes of the parent's, and reads the names from the forking process's memory again: without
/// them the fork fails. So they have pages of their own, which a process that unmaps all else keeps
/// ([`names`]).
#[derive(Debug)]
struct Names {
    pages: io::Result<Region>,
    used: usize,
}

/// Where the names of the counters lie that are on, and how many bytes they have.
static NAMES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The memory that must stay mapped for this process to fork while functions are counted; empty
/// where none are.
pub fn names() -> Range<usize> {
    let [start, bytes] = NAMES.each_ref().map(|cell| cell.load(Relaxed));
    start..start + bytes
}

impl Names {
    /// Room for the names of these.
    fn new(events: &[Counted]) -> Self {
        let length = |event: &Counted| if let Counted::Function(name) = event { name.len() + 1 } else { 0 };
        let bytes: usize = events.iter().map(length).sum();
        let pages = Region::anonymous(bytes.div_ceil(page_size()).max(1));
        if let (Ok(pages), 1..) = (&pages, bytes) {
            let range = pages.range();
            NAMES[0].store(range.start, Relaxed);
            NAMES[1].store(range.len(), Relaxed);
        }
        Self { pages, used: 0 }
    }

    /// Where `name`, one of those that there is room for, stands from now on, with a zero behind it.
    fn put(&mut self, name: &str) -> io::Result<u64> {
        let pages = self.pages.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
        if name.contains('\0') || self.used + name.len() + 1 > pages.bytes() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: there is room for it in pages that are this one's own, and were zero.
        let place = unsafe {
            let place = pages.base().add(self.used);
            ptr::copy_nonoverlapping(name.as_ptr(), place, name.len());
            place
        };
        self.used += name.len() + 1;
        Ok(place.expose_provenance() as u64)
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        NAMES.iter().for_each(|cell| cell.store(0, Relaxed));
    }
}

impl Counting {
    /// Begins to count these. Descendants are counted when they end.
    pub fn start(events: &[Counted]) -> Self {
        let mut names = Names::new(events);
        let opened: Vec<io::Result<Event>> = events.iter().map(|event| open(event, &mut names)).collect();
        // All are there before the first counts: opening them is not in the counts.
        opened.iter().flatten().for_each(|event| event.control(IOCTL_ENABLE));
        let counters = opened.into_iter().map(|event| event.map(|event| File::from(event.0))).collect();
        Self { counters, names }
    }

    /// Whether anything is counted.
    pub fn works(&self) -> bool {
        self.counters.iter().any(Result::is_ok)
    }

    /// Ends, and gives the counts in the order asked for: an error is the kernel's refusal.
    pub fn finish(self) -> Vec<io::Result<u64>> {
        let Self { counters, names } = self;
        let events: Vec<io::Result<Event>> =
            counters.into_iter().map(|event| event.map(|file| Event(file.into()))).collect();
        events.iter().flatten().for_each(|event| event.control(IOCTL_DISABLE));
        let read = |event: io::Result<Event>| {
            let mut bytes = [0; 8];
            File::from(event?.0).read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        let counts = events.into_iter().map(read).collect();
        // Until here a fork needs them.
        drop(names);
        counts
    }
}

fn open(counted: &Counted, names: &mut Names) -> io::Result<Event> {
    let counting = Attributes { flags: FLAG_DISABLED | FLAG_INHERIT, ..Attributes::default() };
    match counted {
        Counted::PageFaults => {
            Event::open(Attributes { kind: SOFTWARE, config: PAGE_FAULTS, ..counting }, 0, -1)
        }
        Counted::Tracepoint(name) => {
            let number = tracefs::number(name).ok_or(io::ErrorKind::NotFound)?;
            Event::open(Attributes { kind: TRACEPOINT, config: number, ..counting }, 0, -1)
        }
        Counted::Function(name) => {
            let kind = fs::read_to_string("/sys/bus/event_source/devices/kprobe/type")?;
            let kind = kind.trim().parse().map_err(io::Error::other)?;
            Event::open(Attributes { kind, address: names.put(name)?, ..counting }, 0, -1)
        }
    }
}
