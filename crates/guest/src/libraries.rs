//! The libraries that a program of the user's is linked with, by what its ELF headers say: nothing is executed.
//!
//! They are looked for as the loader does (ld.so(8)): in the file's own run path, in the folders of `/etc/ld.so.conf`, in
//! the usual ones. What a program opens by itself while it runs (plugins, NSS) no header names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::elf::{interpreter, is_for, wanted};
use crate::image::Machine;

/// The loader's configuration.
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// What the loader has made of it: names and paths.
const CACHE: &str = "/etc/ld.so.cache";
/// Where every loader looks, after the folders of this processor's own.
const USUAL: [&str; 4] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib"];
/// Files that a configuration may include in turn.
const DEPTH: u32 = 4;

/// Everything that the ELF file `path` needs beside itself, at the paths under which its loader finds it.
///
/// # Errors
/// The name of a library that is not there, and a file that cannot be read.
pub fn of(path: &Path, machine: Machine) -> Result<BTreeSet<PathBuf>, String> {
    let usual = usual(machine);
    let mut found = BTreeSet::new();
    let mut open = vec![path.to_owned()];
    while let Some(file) = open.pop() {
        let elf = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        let asked = wanted(&elf);
        let origin =
            file.canonicalize().ok().and_then(|real| Some(real.parent()?.to_owned())).unwrap_or_default();
        let own = asked.folders.iter().map(|folder| {
            let origin = origin.to_string_lossy();
            PathBuf::from(folder.replace("$ORIGIN", &origin).replace("${ORIGIN}", &origin))
        });
        let folders: Vec<PathBuf> = own.chain(usual.iter().cloned()).collect();
        let mut next: Vec<PathBuf> = interpreter(&elf).into_iter().collect();
        for name in &asked.libraries {
            let library = find(name, &folders, machine);
            next.push(library.ok_or_else(|| format!("{} needs {name}, which is not there", file.display()))?);
        }
        for library in next {
            if !library.is_file() {
                return Err(format!("{} needs {}, which is not there", file.display(), library.display()));
            }
            if found.insert(library.clone()) {
                open.push(library);
            }
        }
    }
    let cache = PathBuf::from(CACHE);
    if !found.is_empty() && cache.is_file() {
        found.insert(cache);
    }
    Ok(found)
}

/// The library `name` in the first of `folders` that has one for `machine`.
fn find(name: &str, folders: &[PathBuf], machine: Machine) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name));
    }
    let suits = |path: &PathBuf| fs::read(path).is_ok_and(|elf| is_for(&elf, machine));
    folders.iter().map(|folder| folder.join(name)).find(suits)
}

/// The folders in which every program's libraries are looked for.
fn usual(machine: Machine) -> Vec<PathBuf> {
    let (name, _) = machine.name();
    let mut folders = Vec::new();
    configured(Path::new(CONFIGURATION), DEPTH, &mut folders);
    for folder in ["lib", "usr/lib"] {
        folders.push(Path::new("/").join(folder).join(format!("{name}-linux-gnu")));
    }
    folders.extend(USUAL.iter().map(PathBuf::from));
    folders
}

/// The folders that `file` names, those of the files that it includes in their order.
fn configured(file: &Path, depth: u32, folders: &mut Vec<PathBuf>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include ").map(str::trim) {
            Some(pattern) if depth > 0 => {
                included(Path::new(pattern)).iter().for_each(|file| configured(file, depth - 1, folders));
            }
            None if line.starts_with('/') => folders.push(PathBuf::from(line)),
            _ => {}
        }
    }
}

/// The files of a folder whose names end as `pattern` says: `/etc/ld.so.conf.d/*.conf`.
fn included(pattern: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (pattern.parent(), pattern.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let Some((begin, end)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let suits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(suits).collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Machine = if cfg!(target_arch = "x86_64") { Machine::X86_64 } else { Machine::Aarch64 };

    /// What the kernel has mapped for this very program is what its headers ask for.
    #[test]
    fn this_programs_libraries_are_found() {
        let own = std::env::current_exe().unwrap();
        let found = of(&own, HERE).unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
        let real: BTreeSet<PathBuf> = found.iter().filter_map(|path| path.canonicalize().ok()).collect();
        for library in mapped.filter(|path| path.to_string_lossy().contains(".so")) {
            assert!(real.contains(&library), "{} in {found:?}", library.display());
        }
    }

    #[test]
    fn folders_are_configured_in_files_that_include_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("b.conf"), "/second\n").unwrap();
        fs::write(at("a.conf"), "# none\n/first # here\n").unwrap();
        fs::write(at("c.other"), "/never\n").unwrap();
        fs::write(at("main"), format!("include {}/*.conf\n/third\n", folder.path().display())).unwrap();
        let mut folders = Vec::new();
        configured(&at("main"), DEPTH, &mut folders);
        assert_eq!(folders, ["/first", "/second", "/third"].map(PathBuf::from));
    }

    #[test]
    fn scripts_need_no_libraries_and_missing_ones_are_named() {
        assert_eq!(of(Path::new("/etc/hostname"), HERE), Ok(BTreeSet::new()));
        assert!(of(Path::new("/does/not/exist"), HERE).unwrap_err().contains("/does/not/exist"));
    }
}
