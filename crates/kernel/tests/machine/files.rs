//! Cached pages of files, compared with the pages read and mapped, and with fincore(1).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

use pagelab_kernel::cached_files::{Order, look};
use pagelab_kernel::content::Filler;
use pagelab_kernel::page_frames::{FrameReader, Frames};
use pagelab_kernel::region::{Region, page_size, write_file};
use pagelab_testing::{Need, ROOT, Test, tests};
use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

use crate::DISK;

pub fn tests() -> Vec<Test> {
    tests! {
        cached_pages_are_those_that_were_read: DISK;
        the_tool_of_util_linux_agrees: DISK, FINCORE;
        mapped_pages_are_counted_and_looking_changes_nothing: DISK, FRAMES;
        files_in_one_batch_get_their_own_frames: DISK, FRAMES;
    }
}

/// The tool that shows a file's cached pages by another interface.
const FINCORE: Need = Need {
    name: "readers",
    on: &[],
    met: || {
        let output = Command::new("fincore").arg("--version").output();
        output.map(drop).map_err(|error| format!("no fincore (apt-get install util-linux-extra): {error}"))
    },
};

/// The kernel shows page frames.
const FRAMES: Need = Need {
    name: "kpageflags",
    on: &[&ROOT],
    met: || FrameReader::open().map(drop).map_err(|error| error.to_string()),
};

const PAGES: usize = 200;

/// A file of [`PAGES`] pages, of which only these are cached.
fn file_with(cached: &[usize]) -> (TempDir, File) {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = write_file(&folder.path().join("file"), PAGES, &Filler::default(), |_, _| {}).unwrap();
    fadvise(&file, 0, None, Advice::Random).unwrap();
    for &page in cached {
        file.read_exact_at(&mut [0], (page * page_size()) as u64).unwrap();
    }
    (folder, file)
}

fn every_third() -> Vec<usize> {
    (0..PAGES).step_by(3).collect()
}

fn cached_pages_are_those_that_were_read() {
    for pages in [vec![], vec![0], vec![PAGES - 1], every_third()] {
        let (folder, _file) = file_with(&pages);
        let order = Order { directories: vec![folder.path().to_owned()], keep: 5, ..Order::default() };
        let looked = look(&order).unwrap();
        assert_eq!(looked.looked_at, 1);
        assert_eq!(looked.total.cached, (pages.len() * page_size()) as u64);
        assert!(looked.total.dirty.is_none_or(|dirty| dirty == 0), "the file was written back");
    }
}

fn the_tool_of_util_linux_agrees() {
    let (folder, _file) = file_with(&every_third());
    let output = Command::new("fincore")
        .args(["--bytes", "--noheadings", "--output", "RES"])
        .arg(folder.path().join("file"))
        .output()
        .unwrap();
    let of_tool: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    let order = Order { directories: vec![folder.path().to_owned()], keep: 5, ..Order::default() };
    assert_eq!(look(&order).unwrap().total.cached, of_tool);
}

/// Pages marked as accessed twice become active. The kernel marks the pages of a used mapping when
/// it removes the mapping.
fn mapped_pages_are_counted_and_looking_changes_nothing() {
    let (_folder, file) = file_with(&every_third());
    let length = (PAGES * page_size()) as u64;
    let mut reader = FrameReader::open().unwrap();
    let first = reader.look(&file, length).unwrap();
    assert_eq!(first, Frames { pages: 67, mapped: 0, active: first.active.map(|_| 0) });
    for _ in 0..3 {
        assert_eq!(reader.look(&file, length).unwrap(), first);
    }
    let region = Region::part(&file, 0, 30).unwrap();
    // SAFETY: within the mapping of a file that nobody changes.
    (0..30).step_by(3).for_each(|page| unsafe {
        region.base().add(page * page_size()).read_volatile();
    });
    let mapped = reader.look(&file, length).unwrap();
    assert_eq!((mapped.pages, mapped.mapped), (67, 10));
}

fn files_in_one_batch_get_their_own_frames() {
    let files = [vec![], vec![0], every_third(), (0..PAGES).collect(), vec![PAGES - 1]]
        .map(|pages| file_with(&pages));
    let length = (PAGES * page_size()) as u64;
    let region = Region::part(&files[3].1, 0, 1).unwrap();
    // SAFETY: within the mapping of a file that nobody changes.
    unsafe { region.base().read_volatile() };
    let mut reader = FrameReader::open().unwrap();
    let alone: Vec<Frames> = files.iter().map(|(_, file)| reader.look(file, length).unwrap()).collect();
    assert_eq!(alone.iter().map(|found| found.pages).collect::<Vec<_>>(), [0, 1, 67, PAGES as u64, 1]);
    // One page faults in with its neighbours, as far as they are cached.
    assert!((1..=16).contains(&alone[3].mapped), "{alone:?}");
    for (at, (_, file)) in files.iter().enumerate() {
        reader.add(file, length, None).unwrap();
        if at == 2 {
            let unreadable = File::options().write(true).open(files[3].0.path().join("file")).unwrap();
            assert!(reader.add(&unreadable, length, None).is_err());
        }
    }
    assert_eq!(reader.take().unwrap(), alone);
    assert_eq!(reader.take().unwrap(), []);
}
