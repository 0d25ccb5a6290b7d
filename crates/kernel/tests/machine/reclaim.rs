//! Pages that enter and leave the page cache, compared with mincore(2).

use std::fs::File;
use std::os::unix::fs::FileExt;

use pagelab_kernel::bpf::page_requests::stream::file_number;
use pagelab_kernel::bpf::reclaim::{Actor, Event, ReclaimLog, Watched};
use pagelab_kernel::content::Filler;
use pagelab_kernel::page_cache;
use pagelab_kernel::region::{forget, page_size, write_file};
use pagelab_testing::{Need, ROOT, Test, tests};

use crate::DISK;

pub fn tests() -> Vec<Test> {
    tests! {
        every_page_of_a_file_enters_and_leaves_once: EVENTS, DISK;
    }
}

const EVENTS: Need = Need {
    name: "bpf",
    on: &[&ROOT],
    met: || {
        static MET: std::sync::OnceLock<Result<(), String>> = std::sync::OnceLock::new();
        let started = || ReclaimLog::start(&Watched::File { device: 0, inode: 0 }).map(drop);
        MET.get_or_init(|| started().map_err(|e| e.to_string())).clone()
    },
};

const PAGES: usize = 512;

fn cached(file: &File) -> u64 {
    page_cache::of(file, file.metadata().unwrap().len()).unwrap().pages
}

fn every_page_of_a_file_enters_and_leaves_once() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let file = write_file(&folder.path().join("file"), PAGES, &Filler::default(), |_, _| {}).unwrap();
    forget(&file).unwrap();
    let (device, inode) = file_number(&file.metadata().unwrap());
    let mut log = ReclaimLog::start(&Watched::File { device, inode }).unwrap();
    let mut buffer = vec![0; PAGES * page_size()];
    file.read_exact_at(&mut buffer, 0).unwrap();
    let mut entered = vec![0; PAGES];
    log.drain(|event| match event {
        Event::Entered { page, pages } => {
            (page..page + u64::from(pages)).for_each(|page| entered[page as usize] += 1)
        }
        Event::Left { .. } => panic!("{event:?}"),
    });
    assert_eq!((entered, cached(&file)), (vec![1; PAGES], PAGES as u64));
    forget(&file).unwrap();
    let mut left = vec![0; PAGES];
    log.drain(|event| match event {
        Event::Left { page, pages, by, .. } => {
            assert_eq!(by, Actor::Task, "this process dropped the pages");
            (page..page + u64::from(pages)).for_each(|page| left[page as usize] += 1);
        }
        Event::Entered { .. } => panic!("{event:?}"),
    });
    assert_eq!((left, cached(&file), log.dropped()), (vec![1; PAGES], 0, 0));
}
