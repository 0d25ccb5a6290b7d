//! What a guest can do, as far as that is known before it is booted: from its image, its options
//! and its kernel's configuration.

use std::path::Path;

use pagelab_experiment::What;
use pagelab_experiment::experiments::Dishonoured;
use pagelab_experiment::experiments::Feature;
use pagelab_experiment::setting::{Limit, Swap, Thp, Value};
use pagelab_live::plan::{Capabilities, Lacking, Room, script};

use crate::image::Image;
use crate::options::{Accel, Options};
use crate::target::Guest;

/// Bytes of memory for which Linux lets there be one thread (kernel/fork.c, `set_max_threads`, with
/// stacks of 16 KiB).
const A_THREAD: u64 = 8 * (16 << 10);

/// What a kernel has only from a release on and when it was built with an option: the beginning of a path, the release,
/// and the option.
const BUILT: [(&str, (u32, u32), &str); 9] = [
    ("/sys/kernel/mm/ksm", (2, 6), "CONFIG_KSM"),
    ("/sys/kernel/mm/damon", (5, 18), "CONFIG_DAMON_SYSFS"),
    ("/sys/kernel/mm/lru_gen", (6, 1), "CONFIG_LRU_GEN"),
    ("/sys/kernel/mm/transparent_hugepage", (2, 6), "CONFIG_TRANSPARENT_HUGEPAGE"),
    ("/sys/kernel/mm/hugepages", (2, 6), "CONFIG_HUGETLBFS"),
    ("/sys/kernel/mm/numa", (5, 15), "CONFIG_NUMA"),
    ("/sys/module/zswap", (3, 11), "CONFIG_ZSWAP"),
    ("/proc/sys/kernel/numa_balancing", (3, 13), "CONFIG_NUMA_BALANCING"),
    ("/proc/sys/vm/compaction_proactiveness", (5, 9), "CONFIG_COMPACTION"),
];

/// The folders of /proc/sys and of /sys: of any other no kernel has a file.
const FOLDERS: [(&str, &[&str]); 2] = [
    ("/proc/sys", &["abi", "crypto", "debug", "dev", "fs", "kernel", "net", "sunrpc", "user", "vm", "xen"]),
    (
        "/sys",
        &[
            "block",
            "bus",
            "class",
            "dev",
            "devices",
            "firmware",
            "fs",
            "hypervisor",
            "kernel",
            "module",
            "power",
        ],
    ),
];

/// The options that a kernel was built with, `CONFIG_…`, one a line; `None`: unknown.
pub struct Config(Option<String>);

impl Config {
    /// From the file `config-RELEASE` beside the image.
    fn of(image: &Image) -> Self {
        let beside = |release: &String| {
            let folder = image.path.canonicalize().ok()?;
            std::fs::read_to_string(folder.with_file_name(format!("config-{release}"))).ok()
        };
        Self(image.release.as_ref().and_then(beside))
    }

    /// Refuses what needs `option` where the kernel is known to be without it.
    fn has(&self, option: &str) -> Result<(), Dishonoured> {
        let set = |line: &str| line.strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
        match &self.0 {
            Some(text) if !text.lines().any(set) => Err((
                format!("has a kernel built without {option}"),
                format!("use a kernel built with {option}"),
            )),
            _ => Ok(()),
        }
    }
}

/// What any guest can do, whatever its image and its options.
pub fn of_any(target: &str, page_size: u64) -> Capabilities<'static> {
    Capabilities { feature: Box::new(of_any_guest), ..Capabilities::unknown(target, page_size) }
}

/// Whether any guest has it: it has no network, and no files of the user's but those that come with
/// programs.
fn of_any_guest(feature: &Feature) -> Result<(), Lacking> {
    let no = |name: &str, why: &str| {
        Err((What::Parameter(name.to_owned()), why.to_owned(), "run it on host".to_owned()))
    };
    match feature {
        Feature::File(name, _) => no(name, "has only its own files"),
        Feature::Network(name) => no(name, "has no network"),
        _ => Ok(()),
    }
}

impl Guest {
    /// What this guest can do, called `target`.
    pub fn capabilities(&self, target: &str) -> Capabilities<'_> {
        let (image, options) = (&self.image, &self.options);
        let config = Config::of(image);
        let condition = move |asked: &Value| condition(asked, image, &config);
        let config = Config::of(image);
        let feature = move |required: &Feature| feature(required, options, &config);
        Capabilities {
            memory: Some(options.ram),
            // Waiting for a disk is no instruction.
            usual_swap: Some(if options.accel == Accel::Icount { Swap::Zram } else { Swap::File }),
            threads: vec![Room { threads: options.ram / A_THREAD, bound: format!("ram={}", options.ram) }],
            condition: Box::new(condition),
            feature: Box::new(feature),
            ..Capabilities::unknown(target, image.page_size)
        }
    }
}

fn condition(asked: &Value, image: &Image, config: &Config) -> Result<(), Dishonoured> {
    match asked {
        Value::Memory(Limit::Of(_)) => config.has("CONFIG_MEMCG"),
        Value::Swap(Swap::File) => config.has("CONFIG_SWAP"),
        Value::Swap(Swap::Zram) => config.has("CONFIG_ZRAM"),
        Value::Thp(Thp::Sizes(sizes)) if older(image, (6, 8)) => Err((
            format!("has no huge pages of {} KiB", sizes.first().map_or(0, |(size, _)| *size)),
            "it needs Linux 6.8; use always, madvise or never".to_owned(),
        )),
        Value::Thp(_) => config.has("CONFIG_TRANSPARENT_HUGEPAGE"),
        Value::Functions | Value::Profile(1..) => config.has("CONFIG_PERF_EVENTS"),
        Value::Set(file) => has_file(Path::new(&file.path), image, config),
        Value::Memory(Limit::None)
        | Value::Swap(Swap::None)
        | Value::SwapSize(_)
        | Value::Swappiness(_)
        | Value::Profile(0) => Ok(()),
    }
}

/// Whether the kernel may have the file of a setting.
fn has_file(path: &Path, image: &Image, config: &Config) -> Result<(), Dishonoured> {
    let no = |why: String| Err((why, "leave it out, or take another kernel".to_owned()));
    let inside = FOLDERS.iter().find_map(|(root, folders)| Some((path.strip_prefix(root).ok()?, folders)));
    if let Some((inside, folders)) = inside
        && !folders.iter().any(|folder| inside.starts_with(folder))
    {
        return no(format!("has no {}: no kernel has such a folder", path.display()));
    }
    match BUILT.iter().find(|(begin, ..)| path.starts_with(begin)) {
        Some((begin, (major, minor), _)) if older(image, (*major, *minor)) => {
            no(format!("has no {begin}, which came with Linux {major}.{minor}"))
        }
        Some((.., option)) => config.has(option),
        None => Ok(()),
    }
}

/// Whether the image says that it is of an older release.
fn older(image: &Image, than: (u32, u32)) -> bool {
    let release = image.release.as_deref().unwrap_or_default();
    let mut numbers = release.split(['.', '-', '+']).map_while(|word| word.parse::<u32>().ok());
    numbers.next().zip(numbers.next()).is_some_and(|release| release < than)
}

fn feature(required: &Feature, options: &Options, config: &Config) -> Result<(), Lacking> {
    let no = |what: &str, why: &str, remedy: &str| {
        Err((What::Condition(what.to_owned()), why.to_owned(), remedy.to_owned()))
    };
    let built = |option| config.has(option).map_err(|(why, remedy)| (What::Machine, why, remedy));
    match required {
        Feature::Parallel if options.accel == Accel::Icount && options.cpus > 1 => no(
            "cpus",
            "counts the instructions of all processors on one clock, on which work done at once takes as long as one after the \
             other",
            "use cpus=1, where throughput is work for each instruction, or accel=tcg",
        ),
        Feature::MemoryTime if options.accel == Accel::Icount => no(
            "accel",
            "counts instructions, and no time of memory: bytes per second there would be bytes per instruction",
            "run it on host, or with accel=kvm",
        ),
        Feature::TwoNodes if options.numa.is_none() => no(
            "numa",
            "has all its memory in one node, and the experiment compares two",
            "give nodes, one of them in a slow tier: numa=256M+512M@slow",
        ),
        Feature::TwoNodes => built("CONFIG_NUMA"),
        Feature::CgroupTwo => built("CONFIG_MEMCG"),
        Feature::Ksm => built("CONFIG_KSM"),
        Feature::Userfault => built("CONFIG_USERFAULTFD"),
        Feature::Hugetlb => built("CONFIG_HUGETLBFS"),
        Feature::Damon => built("CONFIG_DAMON_SYSFS").and_then(|()| built("CONFIG_DAMON_VADDR")),
        Feature::Programs(programs) => {
            programs.script.iter().try_for_each(|path| script(programs.parameter, path))
        }
        _ => of_any_guest(required),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_missing_features_are_refused() {
        let known = Config(Some("CONFIG_KSM=y\n# CONFIG_DAMON is not set\nCONFIG_ZRAM=m\n".to_owned()));
        for (option, has) in [("CONFIG_KSM", true), ("CONFIG_ZRAM", true), ("CONFIG_DAMON", false)] {
            assert_eq!(known.has(option).is_ok(), has, "{option}");
        }
        assert!(Config(None).has("CONFIG_DAMON").is_ok());
    }
}
