//! The confinement on the real kernel: set up, undone, and undone by a panic.

use std::path::{Path, PathBuf};

use pagelab_confine::{Confinement, OwnSwap, SetUp, SwapSource};
use pagelab_testing::{LIMITS, Need, Test, tests};

pub fn tests() -> Vec<Test> {
    tests! {
        a_panic_undoes_everything: LIMITS;
        nested_cgroups_are_removed: LIMITS;
        a_limit_with_a_swap_file_is_undone: LIMITS;
        a_limit_with_zram_is_undone: LIMITS, ZRAM;
        a_limit_without_swap_is_undone: LIMITS;
    }
}

/// Swap devices in memory can be made.
const ZRAM: Need = Need {
    name: "zram",
    on: &[],
    met: || {
        let there = Path::new("/sys/class/zram-control/hot_add").exists();
        if there {
            Ok(())
        } else {
            Err("this kernel has no zram control (modprobe zram num_devices=0)".into())
        }
    },
};

/// A limit of 32 MiB for a load of 16 MiB, with this kind of swap.
fn confined(swap: &str) -> Confinement {
    let own = |source| OwnSwap { source, bytes: 32 << 20 };
    let swap = match swap {
        "file" => Some(own(SwapSource::File)),
        "zram" => Some(own(SwapSource::Zram)),
        _ => None,
    };
    let no_swap = swap.is_none();
    let limit = Some(32 << 20);
    let set_up = SetUp { load: 16 << 20, limit, no_swap, swap, ..SetUp::default() };
    Confinement::set_up(&set_up, Some(256 << 20)).unwrap()
}

/// The swap areas in use.
fn swaps() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/proc/swaps").unwrap();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()).map(PathBuf::from).collect()
}

/// The swap files that this process has switched on.
fn own_swap_files() -> Vec<PathBuf> {
    let own = format!("pagelab-{}-", std::process::id());
    let ours = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&own));
    swaps().into_iter().filter(ours).collect()
}

fn a_panic_undoes_everything() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let ended = std::thread::spawn(move || {
        let confinement = confined("file");
        sender.send((confinement.cgroup().unwrap().path().to_owned(), own_swap_files())).unwrap();
        // As a recorder might, without a word.
        std::panic::resume_unwind(Box::new(()));
    });
    assert!(ended.join().is_err());
    let (cgroup, files) = receiver.recv().unwrap();
    assert!(!cgroup.exists());
    assert_eq!(files.len(), 1, "{files:?}");
    assert!(!files[0].exists());
    assert_eq!(own_swap_files(), [] as [PathBuf; 0]);
}

fn is_undone(swap: &str, files: usize) {
    let before = swaps();
    let confinement = confined(swap);
    assert_eq!(confinement.notes(), [] as [String; 0]);
    assert_eq!(confinement.zram().is_some(), swap == "zram");
    let cgroup = confinement.cgroup().unwrap().path().to_owned();
    assert!(cgroup.exists());
    assert_eq!(own_swap_files().len(), files);
    let zram = |path: &PathBuf| path.to_string_lossy().contains("zram");
    let device = swaps().into_iter().find(|path| zram(path) && !before.contains(path));
    assert_eq!(confinement.undo(), [] as [String; 0]);
    assert!(!cgroup.exists());
    assert_eq!(own_swap_files(), [] as [PathBuf; 0]);
    if swap == "zram" {
        assert!(!swaps().contains(&device.expect("a device in use")));
    }
}

fn a_limit_with_a_swap_file_is_undone() {
    is_undone("file", 1);
}

fn a_limit_with_zram_is_undone() {
    is_undone("zram", 0);
}

fn a_limit_without_swap_is_undone() {
    is_undone("none", 0);
}

/// A program may make cgroups inside its own, and move into them.
fn nested_cgroups_are_removed() {
    let confinement = confined("none");
    let own = confinement.cgroup().unwrap().path().to_owned();
    let inner = own.join("a/b/c");
    std::fs::create_dir_all(&inner).unwrap();
    let mut inside = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    std::fs::write(inner.join("cgroup.procs"), inside.id().to_string()).unwrap();
    let problems = confinement.undo();
    assert!(problems.is_empty() && !own.exists(), "{problems:?}");
    assert!(!inside.wait().unwrap().success(), "it was killed");
}
