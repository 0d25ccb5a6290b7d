//! One file of the kernel's settings: what it holds, writing it, putting it back.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::damon;

/// The mode of transparent huge pages.
pub const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// The machine's tendency to swap.
pub const SWAPPINESS: &str = "/proc/sys/vm/swappiness";
/// Whether pages go to zswap before they go to a swap device.
pub const ZSWAP: &str = "/sys/module/zswap/parameters/enabled";
/// Whether delays are accounted to tasks.
pub const DELAY_ACCOUNTING: &str = "/proc/sys/kernel/task_delayacct";

/// Pairs of which one is in force: writing the one makes the other 0 (mm/page-writeback.c,
/// mm/util.c). The second of each takes a 0, the first need not.
const PAIRS: [[&str; 2]; 3] = [
    ["/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"],
    ["/proc/sys/vm/dirty_background_bytes", "/proc/sys/vm/dirty_background_ratio"],
    ["/proc/sys/vm/overcommit_kbytes", "/proc/sys/vm/overcommit_ratio"],
];

/// What to write to get the present state back: of a list with the choice in brackets, the choice.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    let text = text.trim();
    let mut chosen = text.split_ascii_whitespace().filter_map(|w| w.strip_prefix('[')?.strip_suffix(']'));
    Ok(match (chosen.next(), chosen.next()) {
        (Some(word), None) => word.to_owned(),
        _ => text.to_owned(),
    })
}

/// Writes to a file that is there.
///
/// # Errors
/// What the kernel says.
pub fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}

/// Writes `value` back to `path`, if it holds another; whether it did.
///
/// # Errors
/// When it cannot be written, or holds another value then.
pub fn restore(path: &Path, value: &str) -> io::Result<bool> {
    if path.ends_with("cgroup.subtree_control") {
        // What is written is a change, not what it holds.
        return write(path, value).map(|()| true);
    }
    if read(path)? == value {
        return Ok(false);
    }
    if path.ends_with("kdamonds/nr_kdamonds")
        && let Some(folder) = path.parent()
        && !damon::switch_off(folder)?
    {
        // Taken only while none is on, and somebody else's is left on.
        return Ok(false);
    }
    let mut written = write(path, value);
    if read(path)? != value
        && let (Some(other), "0") = (counterpart(path), value)
    {
        // Neither of the pair was in force: only a change of the second makes the first 0.
        written = write(&other, "1").and_then(|()| write(&other, "0"));
    }
    written?;
    match read(path)? {
        now if now == value => Ok(true),
        now => Err(io::Error::other(format!("it was written, and holds {now}"))),
    }
}

/// The other of a pair of which one is in force.
pub fn counterpart(path: &Path) -> Option<PathBuf> {
    let of = |[a, b]: &[&str; 2]| match () {
        () if path == Path::new(a) => Some(PathBuf::from(b)),
        () if path == Path::new(b) => Some(PathBuf::from(a)),
        () => None,
    };
    PAIRS.iter().find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_of_a_list_is_what_is_written_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for (text, wanted) in [
            ("always [madvise] never\n", "madvise"),
            ("|/bin/core [%p] [%e]\n", "|/bin/core [%p] [%e]"),
            (" 7\n", "7"),
            ("256\t32\n", "256\t32"),
        ] {
            fs::write(&path, text).unwrap();
            assert_eq!(read(&path).unwrap(), wanted);
        }
        fs::write(&path, "old").unwrap();
        assert!(restore(&path, "new").unwrap());
        assert!(!restore(&path, "new").unwrap(), "it holds it already");
        assert!(restore(&folder.path().join("absent"), "1").is_err());
        assert!(!folder.path().join("absent").exists());
    }

    #[test]
    fn each_of_a_pair_has_the_other() {
        for [a, b] in PAIRS.map(|pair| pair.map(Path::new)) {
            assert_eq!((counterpart(a).as_deref(), counterpart(b).as_deref()), (Some(b), Some(a)));
        }
    }
}
