//! Tracepoints and kernel functions counted for the calling process and everything that it forks.
//!
//! A function is counted by a probe that belongs to the event (perf's `kprobe` events, since Linux
//! 4.17): no name of it appears anywhere, and it goes when the event is closed, however that happens.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read};

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
    /// The names of the functions. At each fork the kernel makes the child's counters from the attributes of the
    /// parent's, and reads the names from this process's memory again: without them the fork fails (ENOENT).
    _names: Vec<CString>,
}

impl Counting {
    /// Begins to count these. Descendants are counted when they end.
    pub fn start(events: &[Counted]) -> Self {
        let mut names = Vec::new();
        let opened: Vec<io::Result<Event>> = events.iter().map(|event| open(event, &mut names)).collect();
        // All are there before the first counts: opening them is not in the counts.
        opened.iter().flatten().for_each(|event| event.control(IOCTL_ENABLE));
        let counters = opened.into_iter().map(|event| event.map(|event| File::from(event.0))).collect();
        Self { counters, _names: names }
    }

    /// Whether anything is counted.
    pub fn works(&self) -> bool {
        self.counters.iter().any(Result::is_ok)
    }

    /// Ends, and gives the counts in the order asked for: an error is the kernel's refusal.
    pub fn finish(self) -> Vec<io::Result<u64>> {
        let events: Vec<io::Result<Event>> =
            self.counters.into_iter().map(|event| event.map(|file| Event(file.into()))).collect();
        events.iter().flatten().for_each(|event| event.control(IOCTL_DISABLE));
        let read = |event: io::Result<Event>| {
            let mut bytes = [0; 8];
            File::from(event?.0).read_exact(&mut bytes)?;
            Ok(u64::from_ne_bytes(bytes))
        };
        events.into_iter().map(read).collect()
    }
}

fn open(counted: &Counted, names: &mut Vec<CString>) -> io::Result<Event> {
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
            let name = CString::new(name.as_str())?;
            // A CString's bytes stay where they are when it is moved.
            let event = Event::open(Attributes { kind, address: name.as_ptr() as u64, ..counting }, 0, -1)?;
            names.push(name);
            Ok(event)
        }
    }
}
