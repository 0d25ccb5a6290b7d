//! What the block device under a file did: the fields of /proc/diskstats, from /sys/dev/block
//! (Documentation/admin-guide/iostats.rst).

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// A device that is looked at.
#[derive(Clone, Debug)]
pub struct Device(PathBuf);

/// Its counters since boot, or their growth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Milliseconds of all reads together, from queue to completion.
    pub waiting: u64,
    /// Milliseconds with anything under way.
    pub busy: u64,
}

impl Device {
    /// That of `file`; `None` where its file system has no device of its own (overlay, network).
    pub fn of(file: &File) -> Option<Self> {
        let device = file.metadata().ok()?.dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let new = Self(PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat")));
        new.read().is_some().then_some(new)
    }

    /// The counters now.
    pub fn read(&self) -> Option<Counted> {
        parse(&fs::read_to_string(&self.0).ok()?)
    }
}

impl Counted {
    /// The growth since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            bytes: self.bytes.saturating_sub(before.bytes),
            waiting: self.waiting.saturating_sub(before.waiting),
            busy: self.busy.saturating_sub(before.busy),
        }
    }
}

fn parse(text: &str) -> Option<Counted> {
    let fields: Vec<u64> = text.split_ascii_whitespace().map_while(|t| t.parse().ok()).collect();
    Some(Counted {
        reads: *fields.first()?,
        bytes: fields.get(2)?.checked_mul(512)?,
        waiting: *fields.get(3)?,
        busy: *fields.get(9)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_are_those_of_the_kernels_document() {
        let found = parse("  10 2 80 40 5 6 7 8 0 33 44 0 0 0 0 0 0\n").unwrap();
        assert_eq!(found, Counted { reads: 10, bytes: 40960, waiting: 40, busy: 33 });
        assert_eq!(found.since(&found), Counted::default());
        assert_eq!(parse("1 2 3"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = parse(&text);
        }
    }
}
