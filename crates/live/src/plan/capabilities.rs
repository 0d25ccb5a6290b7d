//! What a machine and its kernel can do: what a plan is checked against, for the running kernel and
//! for guests alike.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pagelab_confine::settings::as_root;
use pagelab_confine::{cgroup, folder, swap, zram};
use pagelab_experiment::experiments::Dishonoured;
use pagelab_experiment::experiments::Feature;
use pagelab_experiment::setting::{Limit, Swap, Thp, Value};
use pagelab_experiment::{What, words};
use pagelab_kernel::region::page_size;
use pagelab_kernel::userfault::{self, Features};
use pagelab_kernel::{damon, geometry, hugetlb, numa, perf, settings, thp};
use pagelab_reference::room::available;
use rustix::fs::{Access, access};

use super::tasks::{self, Room};
use crate::experiments::{ksm, tier};
use crate::host::Host;

/// What is lacking, why as a clause that follows the target's name or "it", and what to do instead.
pub type Lacking = (What, String, String);

/// What a target's machine and kernel can do, as far as that is known before anything is set up.
/// What is not known is taken to be possible.
pub struct Capabilities<'a> {
    /// The target's name in messages.
    pub target: String,
    /// Bytes of a base page.
    pub page_size: u64,
    /// Memory that a load may take half of, in bytes; `None`: unknown.
    pub memory: Option<u64>,
    /// The last-level cache in bytes, where sizes that nobody asked for are to reach beyond it.
    pub last_cache: Option<u64>,
    /// Pages of a mapping that the free memory of the fast node cannot hold.
    pub beyond_fast_node: Option<u64>,
    /// The swap of a run with a memory limit that asks for none; `None`: none can be made for it.
    pub usual_swap: Option<Swap>,
    /// Whether zswap is on, so that what is swapped stays in memory.
    pub zswap: bool,
    /// Threads for which there is room, and what bounds them.
    pub threads: Vec<Room>,
    /// Whether the machine and its user can have a condition.
    #[expect(clippy::type_complexity, reason = "a name would say no more")]
    pub condition: Box<dyn Fn(&Value) -> Result<(), Dishonoured> + 'a>,
    /// Whether the machine has what an experiment requires.
    #[expect(clippy::type_complexity, reason = "a name would say no more")]
    pub feature: Box<dyn Fn(&Feature) -> Result<(), Lacking> + 'a>,
}

impl<'a> Capabilities<'a> {
    /// Those of a machine of which nothing is known.
    pub fn unknown(target: &str, page_size: u64) -> Self {
        Self {
            target: target.to_owned(),
            page_size,
            memory: None,
            last_cache: None,
            beyond_fast_node: None,
            usual_swap: Some(Swap::File),
            zswap: false,
            threads: Vec::new(),
            condition: Box::new(|_| Ok(())),
            feature: Box::new(|_| Ok(())),
        }
    }

    /// Those of the running kernel of a machine of which nothing else is known.
    pub fn of_any_host(target: &str) -> Self {
        let feature = |required: &Feature| match required {
            Feature::Disposable => in_use(),
            _ => Ok(()),
        };
        Self { feature: Box::new(feature), ..Self::unknown(target, page_size() as u64) }
    }

    /// Those of the running kernel for `host`.
    pub fn of(host: &'a Host) -> Self {
        let guest = host.repetition.is_some();
        Self {
            target: if guest { "the guest" } else { "host" }.to_owned(),
            page_size: page_size() as u64,
            // Without the figure nothing may be loaded.
            memory: available().or(Some(0)),
            last_cache: geometry::machine().caches[2],
            beyond_fast_node: tier::beyond_the_fast_node(),
            usual_swap: swap::permitted().then(|| usual_swap(host)),
            zswap: pagelab_confine::zswap_is_on(),
            threads: tasks::room(),
            condition: Box::new(condition),
            feature: Box::new(move |required| feature(required, guest)),
        }
    }

    /// The same for a user who may do everything, on a machine with room for everything.
    pub fn privileged(self) -> Self {
        Self { memory: None, threads: Vec::new(), condition: Box::new(|_| Ok(())), ..self }
    }
}

/// The swap of a run that asks for none: a file, and zram where the disk of the scratch files takes
/// no swap file.
fn usual_swap(host: &Host) -> Swap {
    let file = host.swap_device.is_some() || swap::takes_file(&folder::scratch_path());
    if file || !zram::available() { Swap::File } else { Swap::Zram }
}

/// Whether this machine and this user can have the condition.
fn condition(condition: &Value) -> Result<(), Dishonoured> {
    let no = |why: String, remedy: &str| Err((why, remedy.to_owned()));
    match condition {
        Value::Memory(Limit::Of(_)) => match cgroup::available() {
            Ok(_) => Ok(()),
            Err(why) => no(format!("cannot limit memory here: {why}"), "or use --memory none"),
        },
        Value::Swap(Swap::File | Swap::Zram) if !swap::permitted() => no(
            "cannot create swap for a run as this user".into(),
            "run as root (it needs the capability CAP_SYS_ADMIN)",
        ),
        Value::Swap(Swap::Zram) if !zram::available() => {
            no("has no zram".into(), "load it with: modprobe zram num_devices=0")
        }
        Value::Thp(Thp::Sizes(asked)) => thp::files(asked)?.iter().try_for_each(|(path, _)| writable(path)),
        Value::Thp(Thp::Mode(_)) => writable(Path::new(settings::THP)),
        Value::Swappiness(_) => writable(Path::new(settings::SWAPPINESS)),
        Value::Set(file) => writable(Path::new(&file.path)),
        Value::Profile(0) => Ok(()),
        Value::Functions | Value::Profile(_) => perf::permitted()
            .map_err(|why| (format!("cannot trace the kernel here ({why})"), perf::REMEDY.to_owned())),
        Value::Memory(Limit::None) | Value::Swap(_) | Value::SwapSize(_) => Ok(()),
    }
}

/// Whether the file can be set by this user.
pub(super) fn writable(path: &Path) -> Result<(), Dishonoured> {
    if let Err(error) = settings::read(path) {
        let why = format!("cannot set it: {} cannot be read: {error}", path.display());
        return Err((why, "leave it out on this kernel".to_owned()));
    }
    let remedy = as_root("run as root", "mount it writable, or leave it out");
    access(path, Access::WRITE_OK)
        .map_err(|error| (format!("cannot write {} ({error})", path.display()), remedy.to_owned()))
}

fn in_use() -> Result<(), Lacking> {
    let why = "does not fill the memory of a machine that is in use";
    Err((What::Experiment, why.to_owned(), "run it in a guest (--on kernel:IMAGE)".to_owned()))
}

/// Whether this machine has `feature`. What is only in a guest was brought there, and looked for
/// before it was booted.
fn feature(feature: &Feature, guest: bool) -> Result<(), Lacking> {
    let no = |what, why: String, remedy: &str| Err((what, why, remedy.to_owned()));
    let parameter = |name: &str| What::Parameter(name.to_owned());
    match feature {
        Feature::Disposable if !guest => in_use(),
        Feature::CgroupTwo if !cgroup::version_two() => no(
            What::Experiment,
            "has its memory controller in cgroup version 1: memory.low, memory.min and memory.reclaim are of cgroup version 2"
                .into(),
            "run it in a guest (--on kernel:IMAGE), or boot with systemd.unified_cgroup_hierarchy=1",
        ),
        Feature::Ksm if !Path::new(ksm::FOLDER).exists() => no(
            What::Machine,
            format!("has a kernel without KSM ({} is missing)", ksm::FOLDER),
            "use a kernel built with CONFIG_KSM",
        ),
        Feature::Userfault => userfault::available(Features::default())
            .map_err(|(why, remedy)| (What::Machine, why, remedy)),
        Feature::Damon => damon::available().map_err(|(why, remedy)| (What::Machine, why, remedy)),
        Feature::Hugetlb if !Path::new(hugetlb::PAGES).exists() => no(
            What::Machine,
            format!("has a kernel without hugetlb pages ({} is missing)", hugetlb::PAGES),
            hugetlb::REMEDY,
        ),
        Feature::Hugetlb => {
            writable(Path::new(hugetlb::PAGES)).map_err(|(why, remedy)| (What::Machine, why, remedy))
        }
        Feature::TwoNodes if numa::with_memory().len() < 2 => {
            no(What::Experiment, "has all its memory in one node".into(), tier::REMEDY)
        }
        Feature::TwoNodes if tier::beyond_the_fast_node().is_none() => {
            no(What::Machine, "does not say how much its nodes have free".into(), tier::REMEDY)
        }
        Feature::File(name, path) if !guest => readable(name, path),
        Feature::Programs(programs) if !guest => {
            programs.script.iter().try_for_each(|path| script(programs.parameter, path))?;
            match programs.words.first() {
                Some(program) if !runs(&words::unescaped(program)) => no(
                    parameter(programs.parameter),
                    format!("finds no program '{program}'"),
                    "write its path, or install it",
                ),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    }
}

/// Whether the file that the parameter `name` names can be read, and has something in it.
///
/// # Errors
/// Why not.
fn readable(name: &str, path: &Path) -> Result<(), Lacking> {
    let why = match File::open(path).and_then(|file| file.metadata()) {
        Ok(found) if found.is_dir() => "it is a folder".to_owned(),
        Ok(found) if found.is_file() && found.len() == 0 => "it is empty".to_owned(),
        Ok(_) => return Ok(()),
        Err(error) => error.to_string(),
    };
    let why = format!("cannot read {} ({why})", path.display());
    Err((What::Parameter(name.to_owned()), why, "name another file".to_owned()))
}

/// The same of a script, which several processes read: a device or a pipe may have no end.
///
/// # Errors
/// Why not.
pub fn script(name: &str, path: &Path) -> Result<(), Lacking> {
    readable(name, path)?;
    if path.is_file() {
        return Ok(());
    }
    let why = format!("cannot use {}, which is no regular file", path.display());
    Err((What::Parameter(name.to_owned()), why, "name another file".to_owned()))
}

/// Whether `program` is one that can be started: a path, or a name that PATH has.
fn runs(program: &OsStr) -> bool {
    let executable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.as_bytes().contains(&b'/') {
        return executable(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| executable(&folder.join(program)))
}
