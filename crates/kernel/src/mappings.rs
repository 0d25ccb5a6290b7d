//! What the addresses of a recorded program are: its mappings, with names, from /proc/PID/maps.
//!
//! QEMU's user mode maps what the program maps at the same addresses, but names nothing of it: the
//! heap is what follows the program's own data, a stack lies above an inaccessible guard page, and
//! what little follows a library's data is its zeroed data. Its own mappings are among those of the
//! process; the program references none of them.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::ptr;

use pagelab_procfs::addresses;
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};

use crate::working_set::anonymous;

/// A mapping.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// `heap`, `stack`, `anonymous`, or the file's name.
    pub name: String,
}

/// Zeroed data of a library are no more than this; what is larger was mapped by itself.
const ZEROED: u64 = 256 << 10;
/// A stack is no less.
const STACK: u64 = 64 << 10;

/// How many mappings the calling process has; `None` where the kernel does not show them.
pub fn own() -> Option<u64> {
    fs::read("/proc/self/maps").ok().map(|text| text.iter().filter(|&&byte| byte == b'\n').count() as u64)
}

/// Keeps khugepaged from collapsing what the calling process has mapped so far. A huge page would be
/// charged to the cgroup that the process is in by then, although the memory was not.
///
/// # Errors
/// When the kernel does not show the mappings, or refuses. One without huge pages refuses nothing.
pub fn forbid_huge_pages() -> io::Result<()> {
    for range in anonymous(&fs::read_to_string("/proc/self/maps")?) {
        let (start, bytes) =
            (ptr::with_exposed_provenance_mut(range.start as usize), range.end - range.start);
        // SAFETY: the advice changes no content and no access.
        match unsafe { madvise(start, bytes as usize, Advice::LinuxNoHugepage) } {
            // Of memory that was unmapped meanwhile, and of kernels without huge pages.
            Ok(()) | Err(Errno::NOMEM | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The mappings of a process that runs the file `program` under QEMU; none where it is gone.
pub fn of(process: u32, program: &Path) -> Vec<Mapping> {
    let text = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let program = fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
    named(&text, &program)
}

fn named(text: &str, program: &Path) -> Vec<Mapping> {
    let mut list: Vec<Mapping> = Vec::new();
    // The end of what was before, its file, and whether it is a guard.
    let (mut end_before, mut file_before, mut guard) = (0, String::new(), false);
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(access)) = (addresses(line), words.nth(1)) else { continue };
        let file = words.nth(3).map(|first| {
            let rest = words.fold(String::new(), |rest, word| rest + " " + word);
            first.to_owned() + &rest
        });
        let file = file.unwrap_or_default();
        // Memory that a recording through a window has moved.
        let moved = file.strip_prefix("/memfd:pagelab ").and_then(|rest| rest.strip_suffix(" (deleted)"));
        let file =
            moved.map_or(file.clone(), |moved| if moved == "heap" { "[heap]".into() } else { String::new() });
        let Range { start, end } = range;
        let follows = start == end_before;
        let path = Path::new(&file);
        let base = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = match file.as_str() {
            "" if follows && guard && end - start >= STACK => Some("stack".to_owned()),
            "" if follows && Path::new(&file_before) == program => Some("heap".to_owned()),
            "" if follows && !file_before.is_empty() && end - start <= ZEROED => {
                base(Path::new(&file_before))
            }
            "" => Some("anonymous".to_owned()),
            file if file.starts_with('[') => None,
            _ => base(path),
        };
        guard = file.is_empty() && access.starts_with("---");
        (end_before, file_before) = (end, file);
        if let (Some(name), false) = (name, guard) {
            match list.last_mut() {
                Some(last) if last.end == start && last.name == name => last.end = end,
                _ => list.push(Mapping { start, end, name }),
            }
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programs_mappings_have_names() {
        let text = "\
4000000000-4000003000 r--p 00000000 fe:00 12108728                       /home/a b/m
4000003000-4000004000 r--p 00002000 fe:00 12108728                       /home/a b/m
4000005000-4000006000 rw-p 00003000 fe:00 12108728                       /home/a b/m
4000006000-4000026000 rw-p 00000000 00:00 0
4002005000-4002006000 ---p 00000000 00:00 0
4002006000-4002806000 rw-p 00000000 00:00 0
4002849000-4002a18000 r--p 00000000 fe:00 326269                         /usr/lib/libc.so.6
4002a18000-4002a1a000 rw-p 00000000 00:00 0
4003000000-4004000000 rw-p 00000000 00:00 0
55ab7f5ea000-55ab7f759000 rw-p 00000000 00:00 0                          [heap]
";
        let found = named(text, Path::new("/home/a b/m"));
        let shown: Vec<_> = found.iter().map(|m| (m.name.as_str(), (m.end - m.start) >> 12)).collect();
        assert_eq!(
            shown,
            [("m", 4), ("m", 1), ("heap", 32), ("stack", 2048), ("libc.so.6", 465), ("anonymous", 4096)]
        );
        assert_eq!(named("no line of maps\n", Path::new("m")), []);
    }
}
