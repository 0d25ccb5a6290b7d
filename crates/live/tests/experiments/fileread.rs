//! `fileread` and `seqread`: hits where the file fits, misses where it does not.

use pagelab_experiment::experiments::{Access, Fileread, Seqread};
use pagelab_experiment::observation::{Unit, Values};
use pagelab_experiment::{Experiment, Observations, Setting};
use pagelab_testing::{LIMITS, Test, tests};

use crate::{column, figure, has_column, limit, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        fileread_tells_hits_from_misses: LIMITS;
        fileread_keeps_to_its_rate;
        fileread_writes_and_reads_past_the_cache;
        fileread_spreads_its_reads_over_files;
        fileread_reads_by_io_uring;
        seqread_reads_it_all;
    }
}

/// The value of a column in the row of this case.
fn of(seen: &Observations, case: &str, name: &str) -> Option<f64> {
    let table = seen.table_named("fileread").unwrap();
    let Values::Text(cases) = &table.columns[0].values else { panic!("cases first") };
    let row = cases.iter().position(|c| c == case).unwrap_or_else(|| panic!("no {case} in {cases:?}"));
    table.numbers_named(name).unwrap()[row]
}

fn fileread_tells_hits_from_misses() {
    let fileread = Fileread {
        reads: 2000,
        seconds: 2.0,
        sizes: Some("2M,8M,48M".parse().unwrap()),
        ..Fileread::default()
    };
    let seen = perform(Experiment::Fileread(fileread), &limit(24 << 20)).unwrap();
    assert_eq!(of(&seen, "small nowait", "hits"), Some(1.0), "all of it is cached");
    assert_eq!(of(&seen, "small nowait", "calls"), Some(2000.0));
    assert_eq!(of(&seen, "small mmap", "calls"), Some(0.0));
    assert_eq!(of(&seen, "small pread", "cached.before"), Some(f64::from(2 << 20)));
    let beyond = of(&seen, "beyond nowait", "hits").unwrap();
    assert!(beyond < 0.9, "half does not fit: {beyond}");
    assert!(of(&seen, "beyond pread", "cached.after").unwrap() <= f64::from(24 << 20));
    assert!(of(&seen, "beyond mmap", "faults.major").unwrap() > 10.0);
    assert!(of(&seen, "beyond pread", "refaults").unwrap() > 0.0);
    assert!(["read.cpu.small", "read.cpu.beyond"].iter().all(|name| figure(&seen, name) > 0.0));
}

fn fileread_keeps_to_its_rate() {
    let fileread = Fileread {
        access: vec![Access::Pread],
        reads: 200,
        rate: Some(1000.0),
        sizes: Some("1M".parse().unwrap()),
        ..Fileread::default()
    };
    let seen = perform(Experiment::Fileread(fileread), &Setting::default()).unwrap();
    let mean = of(&seen, "small pread", "access.mean").unwrap();
    assert!(mean >= 0.9e6, "no more than a read per millisecond: {mean}");
}

fn fileread_writes_and_reads_past_the_cache() {
    let fileread = Fileread {
        access: vec![Access::Pread, Access::Mmap, Access::Nowait, Access::Direct],
        reads: 1000,
        writes: Some("30%".parse().unwrap()),
        sequential: "50%".parse().unwrap(),
        sizes: Some("2M".parse().unwrap()),
        ..Fileread::default()
    };
    let read = fileread.read_size().bytes(4096) as f64;
    let seen = perform(Experiment::Fileread(fileread), &Setting::default()).unwrap();
    let writes = of(&seen, "small pread", "writes").unwrap();
    // Five standard deviations of a binomial distribution.
    assert!((writes - 300.0).abs() < 5.0 * 14.5, "{writes}");
    assert_eq!(of(&seen, "small mmap", "writes"), Some(writes), "the same reads write");
    assert_eq!(of(&seen, "small nowait", "hits"), Some(1.0), "of the reads alone");
    assert_eq!(of(&seen, "small nowait", "io.read"), Some(0.0));
    let Values::Text(cases) = &seen.table_named("fileread").unwrap().columns[0].values else { panic!() };
    // A file system without O_DIRECT has no such row.
    if cases.iter().any(|case| case == "small direct") {
        assert_eq!(of(&seen, "small direct", "io.read"), Some((1000.0 - writes) * read));
    }
}

fn fileread_spreads_its_reads_over_files() {
    let fileread = Fileread {
        access: vec![Access::Pread, Access::Mmap, Access::Nowait, Access::Direct],
        files: Some(7),
        reads: 500,
        sizes: Some("2M,4M".parse().unwrap()),
        sequential: "50%".parse().unwrap(),
        ..Fileread::default()
    };
    let seen = perform(Experiment::Fileread(fileread), &Setting::default()).unwrap();
    // 36 reads of 8 KiB in each of 7 files.
    let size = f64::from(7 * 36 * 8192);
    assert_eq!(of(&seen, "small pread", "size"), Some(size));
    assert_eq!(of(&seen, "small pread", "cached.before"), Some(size));
    assert_eq!(of(&seen, "small nowait", "hits"), Some(1.0));
    assert_eq!(of(&seen, "small mmap", "io.read"), Some(0.0));
}

/// Whether this machine lets a process have an io_uring.
fn has_io_uring() -> bool {
    // SAFETY: without parameters the call only fails: with EFAULT, or as it is refused.
    let result = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, std::ptr::null_mut::<u8>()) };
    result == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

fn fileread_reads_by_io_uring() {
    let fileread = Fileread {
        access: vec![Access::Pread, Access::IoUring, Access::IoUringDirect],
        depth: Some(8),
        reads: 1000,
        writes: Some("30%".parse().unwrap()),
        sizes: Some("2M".parse().unwrap()),
        ..Fileread::default()
    };
    let read = fileread.read_size().bytes(4096) as f64;
    let seen = perform(Experiment::Fileread(fileread), &Setting::default()).unwrap();
    let Values::Text(cases) = &seen.table_named("fileread").unwrap().columns[0].values else { panic!() };
    assert_eq!(cases.iter().any(|case| case == "small io-uring"), has_io_uring(), "{cases:?}");
    if !has_io_uring() {
        return;
    }
    let writes = of(&seen, "small pread", "writes").unwrap();
    assert_eq!(of(&seen, "small io-uring", "reads"), Some(1000.0));
    assert_eq!(of(&seen, "small io-uring", "writes"), Some(writes), "the same reads write");
    assert_eq!(of(&seen, "small io-uring", "io.read"), Some(0.0), "all of it is cached");
    assert!(of(&seen, "small io-uring", "calls").unwrap() >= 1000.0);
    // A file system without O_DIRECT has no such row.
    if cases.iter().any(|case| case == "small io-uring-direct") {
        assert_eq!(of(&seen, "small io-uring-direct", "io.read"), Some((1000.0 - writes) * read));
    }
}

fn seqread_reads_it_all() {
    let seqread = Seqread {
        size: "4M".parse().unwrap(),
        transfers: "4K,64K,1M".parse().unwrap(),
        access: vec![Access::Pread, Access::Direct, Access::Mmap, Access::IoUring, Access::IoUringDirect],
        ..Seqread::default()
    };
    let seen = perform(Experiment::Seqread(seqread), &Setting::default()).unwrap();
    let bytes = column(&seen, "seqread", "bytes");
    assert!(bytes.iter().all(|&b| b == f64::from(4 << 20)), "{bytes:?}");
    has_column(&seen, "seqread", "bandwidth", Unit::BytesPerSecond);
    assert!(figure(&seen, "bandwidth.buffered") > 1e6 && figure(&seen, "bandwidth.mapped") > 1e6);
    if has_io_uring() {
        assert!(figure(&seen, "bandwidth.io-uring") > 1e6);
    }
    if seen.metric_named("bandwidth.direct").is_some() {
        assert_eq!(bytes.len(), if has_io_uring() { 15 } else { 9 });
        // What goes around the cache reaches the device in transfers no larger than asked for.
        let device = seen.table_named("seqread").unwrap().numbers_named("device.transfer").unwrap();
        if let Some(first) = device[3] {
            assert!(first <= 64.0 * 1024.0, "{device:?}");
        }
    }
}
