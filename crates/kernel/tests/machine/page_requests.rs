//! Hits and misses of the page cache, compared with known reads.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pagelab_counters::views::cachestat::{By, Counts};
use pagelab_kernel::bpf::page_requests::PageRequests;
use pagelab_kernel::bpf::page_requests::stream::{Kind, PageStream, file_number};
use pagelab_kernel::content::Filler;
use pagelab_kernel::page_cache;
use pagelab_kernel::region::{Region, forget, page_size, write_file};
use pagelab_testing::{Need, ROOT, Test, tests};
use rustix::fs::{Advice, fadvise};
use tempfile::TempDir;

use crate::DISK;

pub fn tests() -> Vec<Test> {
    tests! {
        a_cold_read_is_no_hit_and_a_warm_one_is_all_hits: REQUESTS, DISK;
        a_mapping_asks_for_what_it_maps: REQUESTS, DISK;
        sendfile_asks_as_a_read_does: REQUESTS, DISK;
        a_large_read_is_counted_in_pieces: REQUESTS, DISK;
        each_page_of_a_large_folio_counts: REQUESTS, DISK;
        direct_reads_ask_for_nothing: REQUESTS, DISK;
        pages_read_ahead_for_nothing_are_waste: REQUESTS, DISK;
        written_pages_are_hits_when_they_are_read: REQUESTS, DISK;
        every_owner_has_its_own: REQUESTS, DISK;
        misses_are_what_the_process_read_from_the_disk: REQUESTS, DISK;
        the_stream_has_each_requested_page_in_order: REQUESTS, DISK;
        the_stream_of_a_cgroup_has_no_requests_of_others: REQUESTS, DISK;
    }
}

const REQUESTS: Need = Need {
    name: "bpf",
    on: &[&ROOT],
    met: || {
        static MET: std::sync::OnceLock<Result<(), String>> = std::sync::OnceLock::new();
        MET.get_or_init(|| PageRequests::start(By::Machine).map(drop).map_err(|e| e.to_string())).clone()
    },
};

const PAGES: usize = 1024;

/// A file of [`PAGES`] pages, none of them cached, and its path.
fn cold() -> (TempDir, PathBuf, File) {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("cold");
    let file = write_file(&path, PAGES, &Filler::default(), |_, _| {}).unwrap();
    (folder, path, file)
}

/// The requests for the file since the last sample.
fn of(requests: &mut PageRequests, path: &Path) -> Counts {
    let inode = std::fs::metadata(path).unwrap().ino();
    let sample = requests.sample();
    assert_eq!(sample.lost, 0);
    let found = sample.owners.into_iter().find(|(owner, _)| owner.number == Some(inode));
    let Some((owner, counts)) = found else { return Counts::default() };
    if counts.requests() > 0 {
        assert_eq!(Path::new(&owner.name), path, "the name that the programs recorded");
    }
    counts
}

/// The pages of the file that the kernel says are in the cache. A machine that is short of memory
/// may evict pages of a file that was just read.
fn cached(path: &Path) -> u64 {
    let file = File::open(path).unwrap();
    page_cache::of(&file, file.metadata().unwrap().len()).unwrap().pages
}

fn read_all(path: &Path, size: usize) {
    // A newly opened file has its own read-ahead state.
    let (file, mut buffer) = (File::open(path).unwrap(), vec![0; size]);
    for at in (0..PAGES * page_size()).step_by(size) {
        file.read_exact_at(&mut buffer, at as u64).unwrap();
    }
}

fn a_cold_read_is_no_hit_and_a_warm_one_is_all_hits() {
    let (_folder, path, file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    for size in [4 << 10, 16 << 10, 64 << 10, 1 << 20] {
        forget(&file).unwrap();
        of(&mut requests, &path);
        read_all(&path, size);
        let cold = of(&mut requests, &path);
        assert_eq!((cold.hits, cold.requests()), (0, PAGES as u64), "{size}: {cold:?}");
        assert!(cold.misses > 0, "a task waited: {cold:?}");
        let kept = cached(&path);
        read_all(&path, size);
        let warm = of(&mut requests, &path);
        assert_eq!((warm.hits, warm.requests()), (kept, PAGES as u64), "{size}: {warm:?}");
    }
}

fn a_mapping_asks_for_what_it_maps() {
    let (_folder, path, file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    let touch = |pages| {
        let region = Region::part(&file, 0, pages).unwrap();
        // SAFETY: within the mapping of a file that nobody changes.
        (0..pages).for_each(|page| unsafe {
            region.base().add(page * page_size()).read_volatile();
        });
    };
    // Whether a page arrives before the kernel maps the pages around it differs from time to time.
    for _ in 0..8 {
        forget(&file).unwrap();
        of(&mut requests, &path);
        touch(PAGES);
        let cold = of(&mut requests, &path);
        assert_eq!((cold.hits, cold.requests()), (0, PAGES as u64), "{cold:?}");
        assert!(cold.misses > 0, "{cold:?}");
    }
    let kept = cached(&path);
    touch(PAGES);
    let warm = of(&mut requests, &path);
    assert_eq!((warm.hits, warm.requests()), (kept, PAGES as u64), "{warm:?}");
    // The same pages, which the kernel maps at once.
    for _ in 0..3 {
        touch(10);
        let again = of(&mut requests, &path);
        assert_eq!(again.requests(), 10, "{again:?}");
    }
}

fn sendfile_asks_as_a_read_does() {
    let (_folder, path, _file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    let send = || {
        let (from, to) = (File::open(&path).unwrap(), File::create("/dev/null").unwrap());
        let mut sent = 0;
        while sent < PAGES * page_size() {
            sent += rustix::fs::sendfile(&to, &from, None, 256 << 10).unwrap();
        }
    };
    send();
    let cold = of(&mut requests, &path);
    assert_eq!((cold.hits, cold.requests()), (0, PAGES as u64), "{cold:?}");
    let kept = cached(&path);
    send();
    let warm = of(&mut requests, &path);
    assert_eq!((warm.hits, warm.requests()), (kept, PAGES as u64), "{warm:?}");
}

/// One call for more pages than a program visits at a time.
fn a_large_read_is_counted_in_pieces() {
    const PAGES: usize = 30_000;
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("large");
    let file = write_file(&path, PAGES, &Filler::default(), |_, _| {}).unwrap();
    let mut requests = PageRequests::start(By::File).unwrap();
    if requests.source() == "functions" {
        // There one program sees the whole request.
        return;
    }
    let mut buffer = vec![0; PAGES * page_size()];
    file.read_exact_at(&mut buffer, 0).unwrap();
    let cold = of(&mut requests, &path);
    assert_eq!((cold.hits, cold.requests()), (0, PAGES as u64), "{cold:?}");
    let kept = cached(&path);
    file.read_exact_at(&mut buffer, 0).unwrap();
    let warm = of(&mut requests, &path);
    assert_eq!((warm.hits, warm.requests()), (kept, PAGES as u64), "{warm:?}");
}

/// The pages of the file whose folios have several pages, from the flags of their frames.
fn pages_of_large_folios(file: &File) -> usize {
    /// `KPF_COMPOUND_HEAD` and `KPF_COMPOUND_TAIL`.
    const COMPOUND: u64 = 3 << 15;
    let region = Region::part(file, 0, PAGES).unwrap();
    let word = |path: &str, at: u64| {
        let mut bytes = [0; 8];
        File::open(path).unwrap().read_exact_at(&mut bytes, 8 * at).unwrap();
        u64::from_ne_bytes(bytes)
    };
    let flags = |page: usize| {
        // SAFETY: within the mapping of a file that nobody changes.
        unsafe { region.base().add(page * page_size()).read_volatile() };
        let entry = word("/proc/self/pagemap", region.base() as u64 / page_size() as u64 + page as u64);
        word("/proc/kpageflags", entry & ((1 << 55) - 1))
    };
    (0..PAGES).filter(|&page| flags(page) & COMPOUND != 0).count()
}

/// Read-ahead uses large folios where the file system supports them.
fn each_page_of_a_large_folio_counts() {
    let (_folder, path, file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    let read = |pages: usize| {
        let (file, mut buffer) = (File::open(&path).unwrap(), vec![0; 16 * page_size()]);
        for at in (0..pages * page_size()).step_by(buffer.len()) {
            file.read_exact_at(&mut buffer, at as u64).unwrap();
        }
    };
    read(PAGES);
    let cold = of(&mut requests, &path);
    assert_eq!((cold.hits, cold.requests()), (0, PAGES as u64), "{cold:?}");
    let kept = cached(&path);
    for n in 0..PAGES {
        file.read_exact_at(&mut [0], (n * 37 % PAGES * page_size()) as u64).unwrap();
    }
    let warm = of(&mut requests, &path);
    assert_eq!((warm.hits, warm.requests()), (kept, PAGES as u64), "{warm:?}");
    println!("{} of {PAGES} pages belong to large folios", pages_of_large_folios(&file));
    // Pages that read-ahead brought in beyond the requests, some of them in the folio of a request.
    forget(&file).unwrap();
    of(&mut requests, &path);
    read(PAGES / 4);
    let asked = of(&mut requests, &path);
    assert_eq!((asked.hits, asked.requests()), (0, PAGES as u64 / 4), "{asked:?}");
    let beyond = cached(&path).checked_sub(PAGES as u64 / 4);
    forget(&file).unwrap();
    let evicted = of(&mut requests, &path);
    assert_eq!((evicted.requests(), evicted.wasted), (0, beyond), "{evicted:?}");
}

fn direct_reads_ask_for_nothing() {
    let (_folder, path, _file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    let direct = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
        .open(&path)
        .unwrap();
    let region = Region::base_pages(16).unwrap();
    for at in (0..PAGES * page_size()).step_by(16 * page_size()) {
        // SAFETY: memory of this test alone, of this length.
        let buffer = unsafe { std::slice::from_raw_parts_mut(region.base(), 16 * page_size()) };
        assert_eq!(rustix::io::pread(&direct, &mut *buffer, at as u64).unwrap(), buffer.len());
    }
    assert_eq!(of(&mut requests, &path), Counts::default());
}

fn pages_read_ahead_for_nothing_are_waste() {
    let (_folder, path, file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    fadvise(&file, 0, std::num::NonZeroU64::new(64 * page_size() as u64), Advice::WillNeed).unwrap();
    // fadvise(2) read the page ahead: no task waited when the read started.
    file.read_exact_at(&mut [0; 10], 0).unwrap();
    let asked = of(&mut requests, &path);
    assert_eq!((asked.hits, asked.misses, asked.ahead, asked.wasted), (0, 0, 1, Some(0)), "{asked:?}");
    forget(&file).unwrap();
    let evicted = of(&mut requests, &path);
    assert_eq!((evicted.requests(), evicted.wasted), (0, Some(63)), "{evicted:?}");
}

fn written_pages_are_hits_when_they_are_read() {
    let (_folder, path, file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    file.write_all_at(&vec![5; 8 * page_size()], 0).unwrap();
    let written = of(&mut requests, &path);
    assert_eq!((written.dirtied, written.requests()), (8, 0), "{written:?}");
    file.sync_all().unwrap();
    // Unknown if the programs are attached to tracepoints.
    assert_eq!(of(&mut requests, &path).written.unwrap_or(8), 8);
    file.read_exact_at(&mut vec![0; 8 * page_size()], 0).unwrap();
    let read = of(&mut requests, &path);
    assert_eq!((read.hits, read.requests()), (8, 8), "{read:?}");
}

fn every_owner_has_its_own() {
    let (_folder, path, _file) = cold();
    read_all(&path, 1 << 20);
    let mut machine = PageRequests::start(By::Machine).unwrap();
    let mut processes = PageRequests::start(By::Process).unwrap();
    let mut cgroups = PageRequests::start(By::Cgroup).unwrap();
    let kept = cached(&path);
    read_all(&path, 64 << 10);
    let own = u64::from(std::process::id());
    let found = processes.sample().owners.into_iter().find(|(owner, _)| owner.number == Some(own));
    let (owner, counts) = found.unwrap();
    // This process reads nothing else meanwhile, because the tests take turns.
    assert_eq!((counts.hits, counts.wasted), (kept, None), "{counts:?}");
    assert!(!owner.name.is_empty() && owner.name != "?", "{owner:?}");
    let own_cgroup = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let memory = own_cgroup.lines().find_map(|line| match line.split_once(':')?.1.split_once(':')? {
        ("" | "memory", path) => Some(path.to_owned()),
        _ => None,
    });
    let found = cgroups.sample().owners.into_iter().find(|(owner, _)| Some(&owner.name) == memory.as_ref());
    assert!(found.unwrap().1.hits >= kept, "{own_cgroup}");
    let all = machine.sample().owners;
    assert!(all.len() == 1 && all[0].1.hits >= kept, "{all:?}");
}

/// Compares with the kernel's own count of the bytes that a process read from the disk.
fn misses_are_what_the_process_read_from_the_disk() {
    let bytes_read = || {
        let text = std::fs::read_to_string("/proc/self/io").unwrap();
        pagelab_procfs::value(&text, "read_bytes").unwrap()
    };
    let (_folder, path, _file) = cold();
    let mut requests = PageRequests::start(By::File).unwrap();
    let before = bytes_read();
    read_all(&path, 128 << 10);
    let (cold, bytes) = (of(&mut requests, &path), bytes_read() - before);
    assert_eq!((cold.misses + cold.ahead) * page_size() as u64, bytes, "{cold:?}");
}

/// The pages of the file with events of a kind, in order.
fn events(stream: &mut PageStream, file: &File, kind: Kind) -> Vec<u64> {
    let number = file_number(&file.metadata().unwrap());
    let mut found = Vec::new();
    stream.drain(|event| {
        if (event.device, event.inode) == number && event.kind == kind {
            found.extend(event.pages);
        }
    });
    found
}

fn the_stream_has_each_requested_page_in_order() {
    let (_folder, _, file) = cold();
    let mut stream = PageStream::start(None).unwrap();
    let mut page = vec![0; page_size()];
    let requested: Vec<u64> = (0..50).map(|n| n * 37 % PAGES as u64).collect();
    for &index in &requested {
        file.read_exact_at(&mut page, index * page_size() as u64).unwrap();
    }
    assert_eq!(events(&mut stream, &file, Kind::Requested), requested);
    let mut whole = vec![0; PAGES * page_size()];
    forget(&file).unwrap();
    file.read_exact_at(&mut whole, 0).unwrap();
    let read = events(&mut stream, &file, Kind::Read);
    let mut sorted = read.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!((read.len(), sorted), (PAGES, (0..PAGES as u64).collect()));
    let kept = page_cache::of(&file, whole.len() as u64).unwrap().pages;
    file.read_exact_at(&mut whole, 0).unwrap();
    assert_eq!(events(&mut stream, &file, Kind::Requested), (0..PAGES as u64).collect::<Vec<_>>());
    assert_eq!(stream.dropped(), 0);
    let (counts, _) = stream.counts();
    assert!(counts.misses + counts.ahead >= PAGES as u64 && counts.hits >= kept, "{counts:?}");
}

fn the_stream_of_a_cgroup_has_no_requests_of_others() {
    let (_folder, _, file) = cold();
    let empty =
        pagelab_kernel::hierarchy::mount().unwrap().join(format!("pagelab-test-{}", std::process::id()));
    std::fs::create_dir(&empty).unwrap();
    let mut stream = PageStream::start(Some(&empty)).unwrap();
    std::fs::remove_dir(&empty).unwrap();
    file.read_exact_at(&mut vec![0; PAGES * page_size()], 0).unwrap();
    assert_eq!(events(&mut stream, &file, Kind::Requested), []);
    assert_eq!(stream.counts().0.requests(), 0);
}
