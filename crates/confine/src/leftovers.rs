//! What could not be undone: told once, then kept in the folder of the journals with why, and the
//! command that undoes it by hand, until it is undone.
//!
//! Every start tries once more, without waiting and while the command goes on; but it writes no
//! setting, which somebody may have chosen since.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::store::{
    EXTENSION, LEFTOVER, Line, REFUSED, boot, folder, is_own, lock_of_the_dead, steps, write,
};
use super::undo::Undo;
use pagelab_kernel::{files, hierarchy, swap_area};

/// Something that could not be undone.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Leftover {
    /// What it is.
    pub what: String,
    /// Why it is still there.
    pub why: String,
    /// The shell command that undoes it.
    pub command: String,
}

/// What is left on this machine by this user's pagelabs, and the cgroups and swap of others that
/// have ended. What was undone by hand meanwhile is not listed again.
///
/// # Errors
/// When the folder of the journals cannot be read.
pub fn list() -> io::Result<Vec<Leftover>> {
    let folder = folder()?;
    let (mut found, mut known) = (Vec::new(), Vec::new());
    for path in named(&folder, EXTENSION)?.into_iter().filter(|path| is_own(path)) {
        known.extend(
            files::text(&path).map_or_else(|_| Vec::new(), |text| steps(&text)).into_iter().map(|l| l.undo),
        );
    }
    for (path, lines) in files(&folder)? {
        let due: Vec<Line> = lines.into_iter().filter(is_due).collect();
        known.extend(due.iter().map(|line| line.undo.clone()));
        found.extend(due.iter().map(|line| Leftover {
            what: line.undo.words(),
            why: line.why.clone().unwrap_or_default(),
            command: line.undo.command(),
        }));
        write(&path, &due)?;
    }
    for path in named(&folder, REFUSED)? {
        found.push(Leftover {
            what: format!("journal {}", path.display()),
            why: "not undone: it names things that pagelab does not set up, or another user could have \
                written it"
                .into(),
            command: Undo::RemoveFile { path }.command(),
        });
    }
    found.extend(orphans(&known));
    Ok(found)
}

/// The cgroups and swap areas with pagelab's name that none of the `known` steps undoes and whose
/// process is not there any more: they are listed and never touched, for they may be of a pagelab
/// that cannot be seen from here.
fn orphans(known: &[Undo]) -> Vec<Leftover> {
    let groups =
        hierarchy::mount().and_then(|mount| fs::read_dir(mount).ok()).into_iter().flatten().flatten();
    let groups = groups.map(|entry| entry.path()).filter(|path| path.is_dir());
    let groups = groups.filter_map(|path| Some((owner(&path)?, Undo::RemoveCgroup { path })));
    let swaps = swap_area::all().into_iter().filter(|path| swap_area::is_labelled(path));
    let swaps = swaps.filter_map(|path| Some((owner(&path)?, Undo::SwapOff { path })));
    groups
        .chain(swaps)
        .filter(|(owner, undo)| !Path::new(&format!("/proc/{owner}")).exists() && !known.contains(undo))
        .map(|(owner, undo)| Leftover {
            what: undo.words(),
            why: format!(
                "no journal of this user's names it, and its process {owner} has ended or is in another container"
            ),
            command: undo.command(),
        })
        .collect()
}

/// The process that a cgroup, or a file, of pagelab's is named after.
fn owner(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix("pagelab-")?;
    name.split_once('-')?.0.parse().ok()
}

/// Tries to undo what is left, without waiting for anything.
pub(crate) fn try_again(say: &dyn Fn(String)) {
    let Ok(found) = folder().and_then(|folder| files(&folder)) else { return };
    for (path, lines) in found {
        let Some(_lock) = lock_of_the_dead(&path) else { continue };
        let before = lines.len();
        let left: Vec<Line> = lines
            .into_iter()
            .filter(|line| {
                if !is_due(line) {
                    return false;
                }
                if matches!(line.undo, Undo::Restore { .. }) || line.undo.check().is_err() {
                    return true;
                }
                line.undo.end_processes();
                match line.undo.perform(Duration::ZERO) {
                    Ok(true) => say(format!(
                        "removed leftovers that could not be removed earlier: \
                            {}",
                        line.undo.words()
                    )),
                    Ok(false) => {}
                    Err(_) => return true,
                }
                false
            })
            .collect();
        if left.len() < before {
            let _ = write(&path, &left);
        }
    }
}

/// Whether it is still to be undone.
fn is_due(line: &Line) -> bool {
    (line.boot == boot() || !line.undo.ends_with_the_kernel()) && line.undo.is_due()
}

/// The files of leftovers in `folder` and their lines.
fn files(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<Line>)>> {
    let read = |path: PathBuf| files::text(&path).ok().map(|text| (path, steps(&text)));
    Ok(named(folder, LEFTOVER)?.into_iter().filter(|path| is_own(path)).filter_map(read).collect())
}

fn named(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::store::{keep, sentence};
    use super::*;

    #[test]
    fn the_owner_is_in_the_name() {
        assert_eq!(owner(Path::new("/var/tmp/pagelab/pagelab-11044-0.swap")), Some(11_044));
        assert_eq!(owner(Path::new("/sys/fs/cgroup/memory/pagelab-7-1")), Some(7));
        assert_eq!(owner(Path::new("/sys/fs/cgroup/pagelab-x-1")), None);
        assert_eq!(owner(Path::new("/dev/zram0")), None);
    }

    #[test]
    fn leftovers_are_listed_until_undone() {
        let folder = tempfile::tempdir().unwrap();
        let setting = folder.path().join("a setting");
        fs::write(&setting, "1").unwrap();
        let undo = Undo::Restore { path: setting.clone(), value: "0".into() };
        let line = Line { why: Some("no".into()), ..Line::new(boot(), undo) };
        assert!(sentence(&line).contains(&format!("echo 0 > '{}'", setting.display())));
        let journal = folder.path().join("pagelab-1-0.journal");
        keep(&journal, &[]).unwrap();
        assert!(files(folder.path()).unwrap().is_empty());
        keep(&journal, std::slice::from_ref(&line)).unwrap();
        let [(path, lines)] = &files(folder.path()).unwrap()[..] else { panic!("one file") };
        assert!(is_due(&lines[0]) && lines[0].why.as_deref() == Some("no"));
        assert!(!is_due(&Line::new("before".into(), line.undo.clone())), "a reboot has undone it");
        fs::write(&setting, "0\n").unwrap();
        assert!(!is_due(&lines[0]));
        write(path, &[]).unwrap();
        assert!(!path.exists());
    }
}
