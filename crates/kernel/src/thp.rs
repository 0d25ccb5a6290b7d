//! Transparent huge pages by size: the folders `hugepages-*kB` that Linux has from 6.8 on.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use crate::settings;

/// Where they are.
const FOLDER: &str = "/sys/kernel/mm/transparent_hugepage";

/// The file of the modes of one size.
const ENABLED: &str = "enabled";

/// The folders of all sizes: KiB and path, from the smallest on.
fn folders() -> Vec<(u64, PathBuf)> {
    let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries.filter_map(|entry| Some((kib(&entry.path())?, entry.path()))).collect();
    all.sort();
    all
}

/// The size in the name of a folder, KiB.
fn kib(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()
}

/// Whether `path` is the file of the modes of one size.
pub fn is_size(path: &Path) -> bool {
    path.ends_with(ENABLED) && path.parent().and_then(kib).is_some()
}

/// The files that give anonymous memory folios of the sizes `asked` for, in KiB, and no others,
/// with what is to be written.
///
/// # Errors
/// Why not and what to do instead, of a size that this kernel does not have.
pub fn files(asked: &[(u64, impl Display)]) -> Result<Vec<(PathBuf, String)>, (String, String)> {
    let there = folders().into_iter().map(|(size, folder)| (size, folder.join(ENABLED)));
    let there: Vec<_> = there.filter(|(_, file)| file.exists()).collect();
    if let Some((size, _)) = asked.iter().find(|(size, _)| there.iter().all(|(known, _)| known != size)) {
        let known: Vec<String> = there.iter().map(|(size, _)| format!("{size}k")).collect();
        let remedy = match known.is_empty() {
            true => "it needs Linux 6.8; use always, madvise or never".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        return Err((format!("has no huge pages of {size} KiB"), remedy));
    }
    let mode = |size| asked.iter().find(|(known, _)| *known == size).map(|(_, mode)| mode.to_string());
    let never = || "never".to_owned();
    Ok(there.into_iter().map(|(size, file)| (file, mode(size).unwrap_or_else(never))).collect())
}

/// The sizes that anonymous memory may get, each with its mode: `64k:always 2048k:inherit`; `None`
/// without such sizes.
pub fn in_force() -> Option<String> {
    let modes = folders().into_iter().filter_map(|(size, folder)| {
        let mode = settings::read(&folder.join(ENABLED)).ok()?;
        Some((mode != "never").then(|| format!("{size}k:{mode}")))
    });
    let modes: Vec<Option<String>> = modes.collect();
    let some = || modes.iter().flatten().cloned().collect::<Vec<_>>().join(" ");
    (!modes.is_empty()).then(some).map(|text| if text.is_empty() { "none".to_owned() } else { text })
}

/// Every counter of every size since boot, named `64k/swpin`; what is a number of now (`nr_anon`)
/// is none.
pub fn stats() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for (size, folder) in folders() {
        let mut of_size: Vec<(String, u64)> = Vec::new();
        for entry in fs::read_dir(folder.join("stats")).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("nr_") {
                continue;
            }
            if let Some(value) =
                fs::read_to_string(entry.path()).ok().and_then(|text| text.trim().parse().ok())
            {
                of_size.push((format!("{size}k/{name}"), value));
            }
        }
        of_size.sort();
        all.extend(of_size);
    }
    all
}

/// The size of a transparent huge page, bytes: of a page-table level's, 2 MiB on x86-64.
pub fn huge_page_size() -> usize {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(2 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_from_names() {
        let file = Path::new("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled");
        assert!(is_size(file));
        assert_eq!(file.parent().and_then(kib), Some(64));
        assert!(!is_size(Path::new("/sys/kernel/mm/transparent_hugepage/enabled")));
        assert!(!is_size(Path::new("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")));
        let refused = files(&[(12, "always")]).unwrap_err();
        assert_eq!(refused.0, "has no huge pages of 12 KiB");
    }
}
