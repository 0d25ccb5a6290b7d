//! The physical pages that some process maps executable from a file: from each process's list of
//! mappings (/proc/PID/maps) and, for the executable ones, its page table (/proc/PID/pagemap).

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use pagelab_procfs::addresses;

use crate::root::Root;

/// A set of physical pages, one bit each.
#[derive(Clone, Debug, Default)]
pub struct PageBits(Vec<u64>);

impl PageBits {
    pub fn contains(&self, page: u64) -> bool {
        self.0.get((page / 64) as usize).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    fn insert(&mut self, page: u64) {
        // No machine has more than 2^40 pages of 4 KiB; a larger number is no page frame.
        if page >> 40 != 0 {
            return;
        }
        let word = (page / 64) as usize;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (page % 64);
    }
}

/// Entries of pagemap (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const FILE_OR_SHARED: u64 = 1 << 61;
const FRAME: u64 = (1 << 55) - 1;
/// The largest part of a mapping looked up at a time, in pages.
const PART: u64 = 32 << 10;

/// The pages of every process's executable file mappings. A process that ends meanwhile, or that may
/// not be looked at, adds nothing.
pub fn find(root: &Root) -> PageBits {
    let mut found = PageBits::default();
    let page_size = root.page_size();
    for pid in root.list_numbers("proc") {
        let Some(maps) = root.read(&format!("proc/{pid}/maps")).filter(|maps| !maps.is_empty()) else {
            continue;
        };
        let Ok(pagemap) = File::open(root.path().join(format!("proc/{pid}/pagemap"))) else { continue };
        for (start, end) in maps.lines().filter_map(executable_range) {
            let (mut page, end) = (start / page_size, end / page_size);
            while page < end {
                let pages = (end - page).min(PART);
                let mut bytes = vec![0; pages as usize * 8];
                let Ok(read) = pagemap.read_at(&mut bytes, page * 8) else { break };
                for chunk in bytes[..read].as_chunks::<8>().0 {
                    let entry = u64::from_ne_bytes(*chunk);
                    if entry & (PRESENT | FILE_OR_SHARED) == PRESENT | FILE_OR_SHARED && entry & FRAME != 0 {
                        found.insert(entry & FRAME);
                    }
                }
                page += pages;
            }
        }
    }
    found
}

/// A file by the kernel's number of its device and its inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileNumber {
    /// Major number · 2²⁰ + minor number.
    pub device: u32,
    /// The inode.
    pub inode: u64,
}

/// The files that some process maps executable.
pub fn executable_files(root: &Root) -> HashSet<FileNumber> {
    let processes = root.list_numbers("proc").into_iter();
    let maps = processes.filter_map(|pid| root.read(&format!("proc/{pid}/maps")));
    maps.flat_map(|maps| maps.lines().filter_map(executable_file).collect::<Vec<_>>()).collect()
}

fn executable_file(line: &str) -> Option<FileNumber> {
    executable_range(line)?;
    let mut words = line.split_ascii_whitespace().skip(3);
    let (major, minor) = words.next()?.split_once(':')?;
    let (major, minor) = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    (major < 1 << 12 && minor < 1 << 20)
        .then_some(FileNumber { device: major << 20 | minor, inode: words.next()?.parse().ok()? })
}

/// `START-END r-xp OFFSET DEV INODE PATH` of a file (its inode is not 0), in bytes.
fn executable_range(line: &str) -> Option<(u64, u64)> {
    let range = addresses(line)?;
    let mut words = line.split_ascii_whitespace().skip(1);
    let permissions = words.next()?;
    let inode = words.nth(2)?;
    if permissions.as_bytes().get(2) != Some(&b'x') || inode == "0" {
        return None;
    }
    // A mapping of more than 64 GiB of code is damage, not a program.
    (!range.is_empty() && range.end - range.start < 64 << 30).then_some((range.start, range.end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn executable_file_mappings_are_found() {
        let code = "55d0-55d8 r-xp 00000000 fe:00 1234   /bin/x";
        assert_eq!(executable_range(code), Some((0x55d0, 0x55d8)));
        assert_eq!(executable_range("55d0-55d8 r--p 00000000 fe:00 1234   /bin/x"), None);
        assert_eq!(executable_range("7ff0-7ff8 r-xp 00000000 00:00 0   [vdso]"), None);
        assert_eq!(executable_file(code), Some(FileNumber { device: 0xfe << 20, inode: 1234 }));
    }

    #[test]
    fn bits_are_a_set() {
        let mut bits = PageBits::default();
        bits.insert(130);
        bits.insert(u64::MAX);
        assert!(bits.contains(130) && !bits.contains(129) && !bits.contains(1 << 50));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in ".{0,80}") {
            let _ = executable_file(&line);
            let _ = executable_file(&format!("1-2 r-xp {line}"));
        }
    }
}
