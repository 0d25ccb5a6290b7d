//! Files of the kernel that hold another value for the time of a run.
//!
//! One pagelab at a time ([`Turn`](super::Turn)): two that each save and restore the same file
//! would leave it with a value that neither found. A file is written only when the kernel takes its
//! present value back (what cannot be written back cannot be undone), what it holds then is read,
//! and so it is after it was put back. Where writing one file changes another, both are put back.

use std::path::{Path, PathBuf};

use pagelab_kernel::settings::{THP, counterpart, write};
use pagelab_kernel::{hugetlb, settings, thp};

use super::journal::Journal;
use super::problem::{Problem, not_noted};
use super::undo::Undo;
use super::warnings;

fn unavailable(what: String, remedy: impl Into<String>) -> Problem {
    Problem::Unavailable(what, remedy.into())
}

/// What `path` holds.
fn read(path: &Path) -> Result<String, Problem> {
    settings::read(path).map_err(|e| {
        unavailable(
            format!("{} cannot be read: {e}", path.display()),
            "leave this setting out on this kernel",
        )
    })
}

/// Files that the kernel lets go one way only: from this value on, or from any change on.
const ONE_WAY: [(&str, Option<&str>); 7] = [
    ("/proc/sys/kernel/tainted", None),
    ("/proc/sys/kernel/modules_disabled", None),
    ("/proc/sys/kernel/kexec_load_disabled", None),
    ("/proc/sys/kernel/unprivileged_bpf_disabled", Some("1")),
    ("/proc/sys/kernel/yama/ptrace_scope", Some("3")),
    ("/proc/sys/vm/memfd_noexec", None),
    ("/sys/kernel/security/lockdown", None),
];

/// Files that do something when they are written or read, and hold no setting; folders stand for
/// all in them.
const ACTIONS: [&str; 8] = [
    "/proc/sys/vm/drop_caches",
    "/proc/sys/vm/compact_memory",
    "/proc/sys/vm/stat_refresh",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/fs/binfmt_misc",
    "/sys/class/zram-control",
    "/sys/power",
    "/sys/fs/cgroup",
];

/// Why the file `path` cannot be given `value` for a while and then be put back, and what to do
/// instead.
pub fn refusal(path: &Path, value: &str) -> Option<(String, String)> {
    let leave_out = "leave it out".to_owned();
    if ACTIONS.iter().any(|action| path.starts_with(action)) {
        return Some((format!("cannot restore {}: it is not a setting", path.display()), leave_out));
    }
    let one_way = |(file, from): &(&str, Option<&str>)| {
        path == Path::new(file) && from.is_none_or(|from| same(from, value))
    };
    let why = || format!("cannot restore {}: this kernel does not accept its old value", path.display());
    ONE_WAY.iter().any(one_way).then(|| (why(), leave_out))
}

/// The settings in force for a run.
#[derive(Debug, Default)]
pub struct Applied {
    /// A sentence for each file that holds another text than was written to it.
    pub notes: Vec<String>,
    /// Each file, and the value it holds.
    held: Vec<(PathBuf, String)>,
}

impl Applied {
    /// A sentence for each setting that another program has changed since.
    pub fn changed(&self) -> Vec<String> {
        let changed = self.held.iter().filter_map(|(path, held)| {
            let now = read(path).ok().filter(|now| now != held)?;
            let path = path.display();
            Some(format!(
                "{} {path} from {held} to {now} during this run: do not use its figures",
                warnings::CHANGED.0
            ))
        });
        changed.collect()
    }
}

/// Writes the values of `settings`, after saving those that were there.
///
/// # Errors
/// When a file cannot be written, or cannot be put back, or does not hold the number that it was given.
pub fn apply(settings: &[(PathBuf, String)], journal: &mut Journal) -> Result<Applied, Problem> {
    let mut applied = Applied::default();
    for (path, value) in settings.iter().cloned() {
        if let Some((why, remedy)) = refusal(&path, &value) {
            return Err(unavailable(why, remedy));
        }
        let before = read(&path)?;
        if before == value {
            applied.held.push((path, value));
            continue;
        }
        set(&path, &before, &value, journal)?;
        let now = read(&path)?;
        match WriteResult::of(&value, &now) {
            WriteResult::Yes => {}
            WriteResult::Otherwise => {
                let remedy = match path == Path::new(hugetlb::PAGES) {
                    true => "use fewer pages: the kernel has free memory in one piece for no more".to_owned(),
                    false => format!(
                        "use a value that this kernel accepts, such as --set {}={now}",
                        path.display()
                    ),
                };
                return Err(unavailable(
                    format!("{} was set to {value} and holds {now}", path.display()),
                    remedy,
                ));
            }
            WriteResult::Unknown => {
                let as_before = if now == before { ", as before" } else { "" };
                let holds = warnings::HOLDS_OTHER.0;
                applied.notes.push(format!("{} was set to {value} {holds} {now}{as_before}", path.display()));
            }
        }
        applied.held.push((path, now));
    }
    for (path, held) in &applied.held {
        let now = read(path)?;
        if now != *held {
            return Err(unavailable(
                format!(
                    "{} holds {now} and not {held}: another of the settings has changed it",
                    path.display()
                ),
                "give one of the two",
            ));
        }
    }
    Ok(applied)
}

/// Saves what `files` hold that an experiment itself will write, so that they are put back with
/// everything else.
///
/// # Errors
/// When one cannot be put back.
pub fn save(files: &[PathBuf], journal: &mut Journal) -> Result<(), Problem> {
    for path in files {
        let held = read(path)?;
        back(path, &held)?;
        journal.enter(Undo::Restore { path: path.clone(), value: held }).map_err(not_noted)?;
    }
    Ok(())
}

/// The `remedy` for a user, or the `other` one for root, who cannot run as root to get further.
pub fn as_root(remedy: &'static str, other: &'static str) -> &'static str {
    if rustix::process::geteuid().is_root() { other } else { remedy }
}

/// Writes to `path` what it holds, to see that the kernel takes that back.
fn back(path: &Path, held: &str) -> Result<(), Problem> {
    write(path, held).map_err(|e| {
        unavailable(
            format!(
                "cannot restore {}: the kernel does not accept its present value '{held}' ({e})",
                path.display()
            ),
            as_root("run as root, or leave it out", "leave it out, or mount it writable"),
        )
    })
}

/// Writes `value` to `path`, which holds `before`; what brings all back that this changes is noted
/// before.
fn set(path: &Path, before: &str, value: &str, journal: &mut Journal) -> Result<(), Problem> {
    let mut saved = vec![(path.to_owned(), before.to_owned())];
    if let Some(other) = counterpart(path)
        && let Ok(held) = read(&other)
        && before == "0"
        && held != "0"
    {
        // The other one is in force: writing that makes this one 0.
        saved = vec![(other, held)];
    }
    let beside = beside(path).into_iter().filter_map(|other| read(&other).ok().map(|held| (other, held)));
    let beside: Vec<_> = beside.collect();
    for (path, held) in &saved {
        back(path, held)?;
    }
    // Undone in the reverse order: what is only moved along comes last, and only where it is not
    // back by itself.
    let (noted, count) = (beside.into_iter().chain(saved), journal.len());
    for (path, value) in noted {
        journal.enter(Undo::Restore { path, value }).map_err(not_noted)?;
    }
    let written = write(path, value);
    if journal.since(count).all(|step| !step.is_due()) {
        // Nothing was changed, so there is nothing to undo.
        journal.retract(count).map_err(not_noted)?;
    }
    written.map_err(|e| {
        unavailable(
            format!("{} cannot be set to '{value}': {e}", path.display()),
            as_root(
                "run as root, with a value that this kernel knows",
                "give a value that this kernel knows",
            ),
        )
    })
}

/// What the kernel may change when `path` is written, and does not always change back.
fn beside(path: &Path) -> Vec<PathBuf> {
    if path == Path::new(THP) || thp::is_size(path) {
        // Huge pages want more memory free (mm/khugepaged.c, set_recommended_min_free_kbytes).
        return vec!["/proc/sys/vm/min_free_kbytes".into()];
    }
    if path.ends_with("queue/scheduler") {
        // Each scheduler brings its own (block/elevator.c, block/bfq-iosched.c).
        return ["nr_requests", "wbt_lat_usec"].map(|name| path.with_file_name(name)).into();
    }
    Vec::new()
}

/// Whether a file took what it was given.
#[derive(Debug, PartialEq, Eq)]
enum WriteResult {
    Yes,
    /// It holds another number.
    Otherwise,
    /// What it holds is written otherwise (0x0007 for y), so that cannot be told.
    Unknown,
}

impl WriteResult {
    fn of(given: &str, holds: &str) -> Self {
        match (number(given), number(holds)) {
            _ if same(given, holds) => Self::Yes,
            (Some(a), Some(b)) if a != b => Self::Otherwise,
            _ => Self::Unknown,
        }
    }
}

/// Whether two texts are one value as the kernel reads them.
fn same(a: &str, b: &str) -> bool {
    let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    let switch = |text: &str| match text.trim() {
        "1" | "y" | "Y" => Some(true),
        "0" | "n" | "N" => Some(false),
        _ => None,
    };
    words(a) == words(b)
        || number(a).is_some() && number(a) == number(b)
        || switch(a).is_some() && switch(a) == switch(b)
}

fn number(text: &str) -> Option<i128> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_in_force_is_recognised_by_its_value() {
        for (given, holds, taken) in [
            ("7", "7", WriteResult::Yes),
            ("0x7", "7", WriteResult::Yes),
            (" 256 32 ", "256\t32", WriteResult::Yes),
            ("y", "Y", WriteResult::Yes),
            ("y", "1", WriteResult::Yes),
            ("5000", "4096", WriteResult::Otherwise),
            ("y", "0x0007", WriteResult::Unknown),
            ("always", "never", WriteResult::Unknown),
        ] {
            assert_eq!(WriteResult::of(given, holds), taken, "{given} and {holds}");
        }
    }

    #[test]
    fn what_goes_one_way_or_is_no_setting_is_refused() {
        for (path, value, refused) in [
            ("/proc/sys/kernel/tainted", "1", true),
            ("/proc/sys//kernel/./tainted", "1", true),
            ("/proc/sys/kernel/yama/ptrace_scope", "3", true),
            ("/proc/sys/kernel/yama/ptrace_scope", "1", false),
            ("/proc/sys/vm/drop_caches", "3", true),
            ("/sys/class/zram-control/hot_add", "1", true),
            ("/sys/power/state", "mem", true),
            ("/proc/sys/vm/swappiness", "1", false),
        ] {
            assert_eq!(refusal(Path::new(path), value).is_some(), refused, "{path}={value}");
        }
    }
}
