//! One planner for the running kernel and for guests: what cannot be performed is refused before a
//! guest is booted.

use std::path::PathBuf;

use pagelab_experiment::experiments::{Command, Load};
use pagelab_experiment::{Experiment, Request, Setting, Unsupported, What};
use pagelab_guest::{Guest, of_any};
use pagelab_live::Host;
use pagelab_live::plan::{Capabilities, MAX_THREADS, Room, settle};
use serde_json::Value;

fn experiment(name: &str, parameters: &str) -> Experiment {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(parameters).unwrap();
    fields.insert("experiment".into(), name.into());
    let experiment: Experiment = serde_json::from_value(fields.into()).unwrap();
    let is_program = matches!(experiment.declaration().load(), Load::Program(_));
    if is_program { Experiment::Command(Command::new(vec!["true".into()])) } else { experiment }
}

fn request(experiment: Experiment, asked: &str) -> Request {
    let mut setting = Setting::default();
    for pair in asked.split_whitespace() {
        let (key, value) = pair.split_once('=').unwrap();
        assert_eq!(setting.apply(key, value), Ok(true), "{pair}");
    }
    let usual = experiment.declaration().usual();
    Request { experiment, asked: setting, usual }
}

/// This machine and a guest, both of which can do what they are not known to lack.
fn both() -> [Capabilities<'static>; 2] {
    [Capabilities::unknown("host", 4096), of_any("kernel:PATH", 4096)]
}

/// What the header of a bzImage says, which is all that a plan reads of it.
fn image(folder: &tempfile::TempDir) -> PathBuf {
    let mut head = vec![0_u8; 0x400];
    head[0x202..0x206].copy_from_slice(b"HdrS");
    head[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
    head[0x300..0x307].copy_from_slice(b"6.1.0-x");
    let path = folder.path().join("vmlinuz");
    std::fs::write(&path, head).unwrap();
    std::fs::write(folder.path().join("config-6.1.0-x"), "CONFIG_MEMCG=y\nCONFIG_SWAP=y\nCONFIG_NUMA=y\n")
        .unwrap();
    path
}

fn guest(folder: &tempfile::TempDir, options: &[(&str, &str)]) -> Guest {
    let options: Vec<_> = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Guest::new(&image(folder), &options).unwrap()
}

fn refused(request: &Request, capabilities: &Capabilities) -> Unsupported {
    let settled = settle(request, capabilities);
    let Err(refused) = settled else { panic!("{request:?} is planned on {}", capabilities.target) };
    assert_eq!(refused.target, capabilities.target, "{refused}");
    refused
}

#[test]
fn every_experiment_is_planned_and_every_conflict_is_refused_on_both() {
    for declared in Experiment::catalogue() {
        let plain = |asked: &str| request(experiment(&declared.name, "{}"), asked);
        for capabilities in both() {
            let name = format!("{} on {}", declared.name, capabilities.target);
            settle(&plain(""), &capabilities).unwrap_or_else(|refused| panic!("{name}: {refused}"));
            for (asked, word) in [
                ("memory=none swap=none", ""),
                ("memory=none swap-size=1M", ""),
                ("memory=64", ""),
                ("set=/proc/sys/vm/drop_caches=3", "not a setting"),
                ("set=/proc/sys/kernel/tainted=1", "does not accept its old value"),
            ] {
                let refused = refused(&plain(asked), &capabilities);
                assert!(matches!(refused.what, What::Condition(_)), "{name}: {refused}");
                assert!(refused.to_string().contains(word), "{name}: {refused}");
            }
            let profiled = settle(&plain("profile=99"), &capabilities).is_ok();
            assert_eq!(profiled, plain("").experiment.declaration().profiles_kernel(), "{name}");
            let limited = settle(&plain("memory=none"), &capabilities).is_err();
            let own_machine = declared.name == "fragment";
            assert_eq!(
                limited,
                plain("").experiment.declaration().needs_limit().is_some() || own_machine,
                "{name}"
            );
        }
    }
}

#[test]
fn every_conflict_of_parameters_is_refused_on_both() {
    for (name, parameters, asked, word) in [
        ("mapanon", r#"{"pages": 9999999999}"#, "", "pages"),
        ("mapfile", r#"{"references": 9999999999}"#, "", "references"),
        ("mapanon", r#"{"syncs": 2}"#, "", "syncs"),
        ("mapfile", r#"{"syncs": 2}"#, "", "syncs"),
        ("mapanon", r#"{"touch": "write", "writes": "5%"}"#, "", "writes"),
        ("mapfile", r#"{"backing": "shmem"}"#, "", "backing"),
        ("mapanon", r#"{"backing": "hugetlb"}"#, "memory=64M", "memory=64M"),
        ("mapanon", r#"{"backing": "hugetlb"}"#, "swap=zram", "swap=zram"),
        ("mapanon", r#"{"backing": "shmem"}"#, "thp=always", "thp=always"),
        ("vmtest", r#"{"mapping": "shared", "pages_of": "hugetlb"}"#, "", "pages-of"),
        ("vmtest", r#"{"process_size": "4K", "sizes": "4G"}"#, "", "1048577 threads"),
        ("faultscale", r#"{"beside": "map", "as_": "processes"}"#, "", "beside"),
        ("faultscale", r#"{"beside": "map", "work": "fork"}"#, "", "beside"),
        ("faultscale", r#"{"work": "build", "copies": 1024, "workers": [64]}"#, "", "threads"),
        ("ksm", r#"{"pages": 16, "contents": 16}"#, "", "contents"),
        ("tier", r#"{"pages": 100, "hot": 100}"#, "", "hot"),
        ("reclaim", r#"{"action": "stat"}"#, "", "action"),
        ("reclaim", r#"{"by": "damon", "aggregation": 1}"#, "", "aggregation"),
        ("oom", "{}", "memory=none", "memory=none"),
        ("neighbour", "{}", "memory=none", "memory=none"),
        ("reclaim", "{}", "memory=none", "memory=none"),
        ("fragment", "{}", "thp=always", "thp"),
    ] {
        for capabilities in both() {
            let refused = refused(&request(experiment(name, parameters), asked), &capabilities);
            assert_ne!(refused.what, What::Machine, "status 2: {refused}");
            assert!(refused.to_string().contains(word), "{name}: {refused}");
        }
    }
}

#[test]
fn what_only_one_of_the_two_has_is_refused_by_the_other() {
    let [host, guest] = both();
    for (name, parameters) in [
        ("clock", r#"{"reference": "here:1"}"#),
        ("mapanon", r#"{"pattern": "trace:/etc/hostname"}"#),
        ("mapanon", r#"{"content": "file:/etc/hostname"}"#),
    ] {
        let request = request(experiment(name, parameters), "");
        settle(&request, &host).unwrap();
        refused(&request, &guest);
    }
    let this = Host::new();
    let this = Capabilities::of(&this).privileged();
    refused(&request(experiment("fragment", "{}"), ""), &this);
    let missing = request(experiment("mapanon", r#"{"pattern": "trace:/no/such/file"}"#), "");
    assert!(refused(&missing, &this).to_string().contains("/no/such/file"));
}

#[test]
fn guest_limits_are_checked_before_boot() {
    let folder = tempfile::tempdir().unwrap();
    for (options, name, parameters, asked, word) in [
        ([("ram", "1G")], "ksm", "{}", "", "CONFIG_KSM"),
        ([("ram", "1G")], "mapanon", r#"{"backing": "hugetlb"}"#, "", "CONFIG_HUGETLBFS"),
        ([("ram", "1G")], "reclaim", r#"{"by": "damon"}"#, "", "CONFIG_DAMON"),
        ([("ram", "1G")], "mapanon", "{}", "swap=zram", "CONFIG_ZRAM"),
        ([("ram", "1G")], "mapanon", "{}", "set=/sys/kernel/mm/lru_gen/enabled=y", "CONFIG_LRU_GEN"),
        ([("ram", "1G")], "mapanon", "{}", "thp=64k:always", "64 KiB"),
        ([("ram", "1G")], "tier", "{}", "", "numa"),
        ([("ram", "256M")], "mapanon", r#"{"pages": 200000}"#, "memory=none", "more than half"),
        ([("ram", "128M")], "forkstorm", r#"{"copies": 4096, "pages": 1}"#, "", "room for 1024"),
        ([("accel", "icount")], "bandwidth", "{}", "", "accel"),
    ] {
        let guest = guest(&folder, &options);
        let capabilities = guest.capabilities("kernel:x");
        let refused = refused(&request(experiment(name, parameters), asked), &capabilities);
        assert!(refused.to_string().contains(word), "{name} {asked}: {refused}");
    }
    let guest = guest(&folder, &[("accel", "icount"), ("cpus", "2")]);
    let capabilities = guest.capabilities("kernel:x");
    refused(&request(experiment("faultscale", "{}"), ""), &capabilities);
    settle(&request(experiment("latency", "{}"), ""), &capabilities).unwrap();
}

#[test]
fn a_file_that_no_such_kernel_has_is_refused_without_a_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let guest = guest(&folder, &[]);
    let head = std::fs::read(folder.path().join("vmlinuz")).unwrap();
    std::fs::remove_file(folder.path().join("config-6.1.0-x")).unwrap();
    let planned = |guest: &Guest, file: &str| {
        let request = request(experiment("mapanon", "{}"), &format!("set={file}=1"));
        settle(&request, &guest.capabilities("kernel:x")).map(drop)
    };
    for (file, word) in [("/proc/sys/vmm/swappiness", "no kernel"), ("/sys/mm/ksm/run", "no kernel")] {
        assert!(planned(&guest, file).unwrap_err().to_string().contains(word), "{file}");
    }
    for file in ["/sys/kernel/mm/lru_gen/enabled", "/proc/sys/vm/swappiness", "/proc/sys/vm/unheard-of"] {
        planned(&guest, file).unwrap();
    }
    let path = folder.path().join("older");
    std::fs::write(&path, [&head[..0x300], b"5.15.0-x", &head[0x308..]].concat()).unwrap();
    let older = Guest::new(&path, &[]).unwrap();
    let refused = planned(&older, "/sys/kernel/mm/lru_gen/enabled").unwrap_err();
    assert!(refused.to_string().contains("Linux 6.1"), "{refused}");
}

#[test]
fn threads_are_bounded_by_what_is_left() {
    let storm = |copies: u32| request(experiment("forkstorm", &format!(r#"{{"copies": {copies}}}"#)), "");
    let room = |threads| Capabilities {
        threads: vec![Room { threads, bound: "pids.max".into() }],
        ..Capabilities::unknown("host", 4096)
    };
    settle(&storm(10), &room(100)).unwrap();
    assert!(refused(&storm(100), &room(100)).to_string().contains("pids.max"));
    assert!(u64::from(u16::MAX) > MAX_THREADS);
}
