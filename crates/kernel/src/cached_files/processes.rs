//! The files that a process has open or mapped, found through the kernel's links in `/proc`. The
//! links also lead to files without a name and to files of other mount namespaces.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pagelab_counters::Root;
use pagelab_counters::views::files::Reason;
use pagelab_procfs::addresses;
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;

use super::asker::{Asker, FileSystem};
use super::walk::open_with;

/// All processes.
pub fn all() -> Vec<u64> {
    Root::live().list_numbers("proc")
}

/// Adds every file that the process has open or mapped. A process that exits meanwhile, or that the
/// user may not inspect, has none.
pub fn ask(process: u64, asker: &mut Asker) {
    let folder = format!("/proc/{process}");
    for entry in fs::read_dir(format!("{folder}/fd")).into_iter().flatten().flatten() {
        ask_link(&entry.path(), asker);
    }
    let maps = crate::files::text(format!("{folder}/maps")).unwrap_or_default();
    let mut mapped = HashSet::new();
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace().skip(3);
        let (Some(range), Some(device), Some(inode)) = (addresses(line), words.next(), words.next()) else {
            continue;
        };
        // Most files are mapped in several adjacent parts.
        if inode != "0" && mapped.insert((device, inode)) {
            let link = format!("{folder}/map_files/{:x}-{:x}", range.start, range.end);
            ask_link(Path::new(&link), asker);
        }
    }
}

fn ask_link(link: &Path, asker: &mut Asker) {
    // Check the file without opening it: opening a device may have side effects.
    let Ok(found) = fs::metadata(link) else { return };
    if !found.is_file() || !asker.is_new(found.dev(), found.ino()) {
        return;
    }
    let Ok(name) = fs::read_link(link) else { return };
    let whole = || name.to_string_lossy().into_owned();
    let directory = name.parent().filter(|_| name.is_absolute()).unwrap_or(&name).to_string_lossy();
    match open_with(CWD, link, OFlags::empty()) {
        Ok(file) => match FileSystem::of(&file) {
            FileSystem::Pseudo => {}
            of => asker.ask_new(file, found.len(), of, &directory, whole),
        },
        Err(error) if error == Errno::NOENT => {}
        Err(_) => asker.looked.leave_out(Reason::UnreadableFile, whole),
    }
}
