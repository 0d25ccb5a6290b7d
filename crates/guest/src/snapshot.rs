//! Machines that have booted and come to rest, each in memory: what comes after the first repetition
//! begins there and boots nothing.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::disks::Disks;
use crate::image::Image;
use crate::options::{Accel, Options};
use crate::root::Root;

/// How many are kept: those of the sides of a comparison, and a few sizes of disks.
const MAX_SNAPSHOTS: usize = 4;

/// What makes a machine the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    image: PathBuf,
    written: Option<SystemTime>,
    options: Options,
    accel: Accel,
    disks: Vec<u64>,
    /// Which of them has the file system, whose modules are loaded.
    files: Option<&'static str>,
    root: Option<Arc<Root>>,
}

impl Key {
    /// The key of a machine that boots `image` with these disks and with `root`.
    pub fn new(
        image: &Image,
        options: &Options,
        accel: Accel,
        disks: &Disks,
        root: Option<&Arc<Root>>,
    ) -> Self {
        let written = image.path.metadata().and_then(|found| found.modified()).ok();
        // These options have no effect on the guest before it is at rest.
        let Options { trace, restore, to, timeout, .. } = Options::default();
        Self {
            image: image.path.clone(),
            written,
            options: Options { trace, restore, to, timeout, ..options.clone() },
            accel,
            disks: disks.list.iter().map(|disk| disk.metadata().map_or(0, |found| found.len())).collect(),
            files: disks.files,
            root: root.cloned(),
        }
    }
}

/// A machine at rest.
#[derive(Debug)]
pub struct Snapshot {
    /// What it is of.
    pub key: Key,
    /// The machine, as QEMU writes it.
    pub state: File,
    /// What it booted from, which QEMU wants to see again: the same file, which its process inherits.
    pub initramfs: Arc<File>,
}

static SNAPSHOTS: Mutex<Vec<Arc<Snapshot>>> = Mutex::new(Vec::new());

/// The one that is kept of this machine.
pub fn find(key: &Key) -> Option<Arc<Snapshot>> {
    let list = SNAPSHOTS.lock().unwrap_or_else(PoisonError::into_inner);
    list.iter().find(|one| one.key == *key).cloned()
}

/// Keeps one, in place of the oldest where there are many.
pub fn keep(snapshot: Snapshot) {
    let mut list = SNAPSHOTS.lock().unwrap_or_else(PoisonError::into_inner);
    list.retain(|one| one.key != snapshot.key);
    let many = (list.len() + 1).saturating_sub(MAX_SNAPSHOTS);
    list.drain(..many);
    list.push(Arc::new(snapshot));
}

/// Keeps this one no longer.
pub fn forget(key: &Key) {
    SNAPSHOTS.lock().unwrap_or_else(PoisonError::into_inner).retain(|one| one.key != *key);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Machine;

    #[test]
    fn the_newest_are_kept_by_what_they_are_of() {
        let image = Image {
            path: "/nowhere/a-snapshot-test".into(),
            machine: Machine::X86_64,
            page_size: 4096,
            release: None,
        };
        let on = |cpus, disks: &Disks| {
            let options = Options { cpus, ..Options::default() };
            Key::new(&image, &options, Accel::Icount, disks, None)
        };
        let key = |cpus| on(cpus, &Disks::default());
        for cpus in 1..=5 {
            let file = || File::open("/dev/null").unwrap();
            keep(Snapshot { key: key(cpus), state: file(), initramfs: Arc::new(file()) });
        }
        assert!(find(&key(1)).is_none() && find(&key(2)).is_some() && find(&key(5)).is_some());
        // Of one length, but one of them has modules for its file system.
        let disk = || vec![tempfile::tempfile().unwrap()];
        let swap = Disks { list: disk(), swap: Some("/dev/vda"), ..Disks::default() };
        let files = Disks { list: disk(), files: Some("/dev/vda"), ..Disks::default() };
        assert_ne!(on(1, &swap), key(1));
        assert_ne!(on(1, &swap), on(1, &files));
        // Traced and untraced loads start from the same machine.
        let traced = Options { cpus: 5, trace: Some(crate::options::Trace::Cache), ..Options::default() };
        assert_eq!(Key::new(&image, &traced, Accel::Icount, &Disks::default(), None), key(5));
        forget(&key(5));
        assert!(find(&key(5)).is_none());
    }
}
