//! Where the kernel lists its tracepoints.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The folder `events`, mounted where it was not: in a mount namespace of this process's own, so that
/// nothing is left of it. `None` where that is refused.
fn events() -> Option<&'static Path> {
    static EVENTS: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = EVENTS.get_or_init(|| {
        let there = || PLACES.iter().map(|place| Path::new(place).join("events")).find(|p| p.is_dir());
        there().or_else(|| mount().then(there).flatten())
    });
    found.as_deref()
}

/// Mounts tracefs at its usual place, seen by this process and its children alone.
fn mount() -> bool {
    let target = c"/sys/kernel/tracing";
    // SAFETY: the strings end with 0 and outlive the calls. The mounts are made private first, so
    // that this one does not spread.
    unsafe {
        libc::unshare(libc::CLONE_NEWNS) == 0
            && libc::mount(
                c"none".as_ptr(),
                c"/".as_ptr(),
                std::ptr::null(),
                libc::MS_REC | libc::MS_PRIVATE,
                std::ptr::null(),
            ) == 0
            && libc::mount(
                c"tracefs".as_ptr(),
                target.as_ptr(),
                c"tracefs".as_ptr(),
                libc::MS_NOSUID | libc::MS_NOEXEC,
                std::ptr::null(),
            ) == 0
    }
}

/// The number of the tracepoint `subsystem:name`; `None` where this kernel has none of the name or
/// does not show it.
pub(super) fn number(tracepoint: &str) -> Option<u64> {
    let (subsystem, name) = tracepoint.split_once(':')?;
    let text = fs::read_to_string(events()?.join(subsystem).join(name).join("id")).ok()?;
    text.trim().parse().ok()
}

/// The offset and length in bytes of the field `field` in what the tracepoint records.
pub(super) fn field(tracepoint: &str, field: &str) -> Option<(usize, usize)> {
    let (subsystem, name) = tracepoint.split_once(':')?;
    let text = fs::read_to_string(events()?.join(subsystem).join(name).join("format")).ok()?;
    place(&text, field)
}

/// `field:TYPE NAME;  offset:N;  size:N;  signed:N;`, an array's name with `[LENGTH]` behind it.
fn place(format: &str, wanted: &str) -> Option<(usize, usize)> {
    format.lines().find_map(|line| {
        let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
        let name = parts.next()?.rsplit(' ').next()?.trim_start_matches('*');
        let name = name.split('[').next()?;
        let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        let size = parts.next()?.strip_prefix("size:")?.parse().ok()?;
        (name == wanted).then_some((offset, size))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_of_a_format() {
        let text = "name: contention_begin\nformat:\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n";
        assert_eq!(place(text, "lock_addr"), Some((8, 8)));
        assert_eq!(place(text, "flags"), Some((16, 4)));
        assert_eq!(place(text, "addr"), None);
        assert_eq!(
            place("field:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;", "args"),
            Some((16, 48))
        );
    }

    proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = place(&text, "x");
        }
    }
}
