//! Tracepoints counted for the calling process and everything that it forks.

use std::fs::File;
use std::io::Read;

use super::{
    Attributes, Event, FLAG_DISABLED, FLAG_INHERIT, IOCTL_DISABLE, IOCTL_ENABLE, TRACEPOINT, tracefs,
};

/// Counters that are on.
#[derive(Debug)]
pub struct Counting {
    events: Vec<(&'static str, Option<File>)>,
}

impl Counting {
    /// Begins to count these tracepoints (`subsystem:name`). What this kernel lacks or refuses counts
    /// as `None`. Descendants are counted when they end.
    pub fn start(tracepoints: &[&'static str]) -> Self {
        let open = |&name: &&'static str| {
            let attributes = Attributes {
                kind: TRACEPOINT,
                config: tracefs::number(name)?,
                flags: FLAG_DISABLED | FLAG_INHERIT,
                ..Attributes::default()
            };
            let event = Event::open(attributes, 0, -1).ok()?;
            event.control(IOCTL_ENABLE);
            Some(File::from(event.0))
        };
        Self { events: tracepoints.iter().map(|name| (*name, open(name))).collect() }
    }

    /// Whether anything is counted.
    pub fn works(&self) -> bool {
        self.events.iter().any(|(_, event)| event.is_some())
    }

    /// Ends, and gives the counts in the order asked for.
    pub fn finish(self) -> Vec<(&'static str, Option<u64>)> {
        let read = |event: Option<File>| {
            let event = Event(event?.into());
            event.control(IOCTL_DISABLE);
            let mut bytes = [0; 8];
            File::from(event.0).read_exact(&mut bytes).ok()?;
            Some(u64::from_ne_bytes(bytes))
        };
        self.events.into_iter().map(|(name, event)| (name, read(event))).collect()
    }
}
