//! `vmtest`: flat inside memory, a knee at the limit.

use pagelab_experiment::experiments::{Mapping, PagesOf, Vmtest};
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Experiment, Request, Setting, Target};
use pagelab_live::Host;
use pagelab_testing::{LIMITS, Test, tests};

use crate::{Memory, column, figure, has_column, limit, perform};

pub fn tests() -> Vec<Test> {
    tests! {
        vmtest_shared_is_the_published_program;
        vmtest_past_the_limit_swaps: LIMITS;
        vmtest_parts_of_a_file;
        vmtest_huge_pages;
        vmtest_ends_when_asked;
    }
}

fn sweep(sizes: &str) -> Vmtest {
    Vmtest { sizes: Some(sizes.parse().unwrap()), passes: 200, seconds: 0.5, ..Vmtest::default() }
}

fn vmtest_shared_is_the_published_program() {
    let vmtest = Vmtest { mapping: Mapping::Shared, ..sweep("256K,2M,4M,16M") };
    let seen = perform(Experiment::Vmtest(vmtest), &Setting::default()).unwrap();
    assert_eq!(column(&seen, "vmtest", "size"), [262144.0, 2097152.0, 4194304.0, 16777216.0]);
    assert_eq!(column(&seen, "vmtest", "processes"), [1.0, 1.0, 2.0, 8.0]);
    // 200 passes over 512 pages, of however small a segment.
    assert_eq!(column(&seen, "vmtest", "reads"), [102400.0, 102400.0, 204800.0, 819200.0]);
    has_column(&seen, "vmtest", "relative.speed", Unit::Ratio);
    let (elapsed, cpu) = (column(&seen, "vmtest", "time.elapsed"), column(&seen, "vmtest", "access.cpu"));
    assert!(elapsed.iter().all(|&ns| ns > 1e3) && cpu.iter().all(|&ns| ns > 0.1));
    has_column(&seen, "vmtest", "time.user", Unit::Nanoseconds);
    assert_eq!(column(&seen, "vmtest", "relative.speed")[0], 1.0);
    assert_eq!(column(&seen, "vmtest", "faults.major"), [0.0; 4], "everything is in memory");
    assert!(figure(&seen, "speed.first") > 1e5);
    assert!(seen.counters.iter().any(|c| c.name == "pgfault"));
}

fn vmtest_past_the_limit_swaps() {
    let seen = perform(Experiment::Vmtest(sweep("4M,8M,56M")), &limit(24 << 20)).unwrap();
    let major = column(&seen, "vmtest", "faults.major");
    assert_eq!(major[..2], [0.0, 0.0], "{major:?}");
    assert!(major[2] > 100.0, "{major:?}");
    assert!(column(&seen, "vmtest", "swap.in")[2] > 100.0);
}

fn vmtest_parts_of_a_file() {
    let vmtest = Vmtest { mapping: Mapping::File, ..sweep("1M,8M") };
    let seen = perform(Experiment::Vmtest(vmtest), &Setting::default()).unwrap();
    assert_eq!(column(&seen, "vmtest", "processes"), [1.0, 4.0]);
    assert!(figure(&seen, "speed.last") > 1e5, "cached pages are read at the speed of memory");
}

fn vmtest_huge_pages() {
    let vmtest = Vmtest { pages_of: PagesOf::Thp, ..sweep("4M") };
    perform(Experiment::Vmtest(vmtest.clone()), &Setting::default()).unwrap();
    // Without pages set aside hugetlb is an error that says so, never a crash.
    let vmtest = Vmtest { pages_of: PagesOf::Hugetlb, ..vmtest };
    if let Err(error) = perform(Experiment::Vmtest(vmtest), &Setting::default()) {
        assert!(error.to_string().contains("huge"), "{error}");
    }
}

fn vmtest_ends_when_asked() {
    let mut memory = Memory { interrupt_in: Some("sizes"), ..Memory::default() };
    let vmtest = Vmtest {
        seconds: 60.0,
        passes: u64::MAX / 4096,
        sizes: Some("2M".parse().unwrap()),
        ..Vmtest::default()
    };
    let request = Request::new(Experiment::Vmtest(vmtest), Setting::default());
    let result = Host::new().plan(&request).unwrap().perform(&mut memory);
    assert!(matches!(&result, Err(failure) if failure.is_interrupted()), "{result:?}");
}
