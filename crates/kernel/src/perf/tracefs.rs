//! Where the kernel lists its tracepoints.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The directory `events`. If tracefs is not mounted, opens it as a detached mount (Linux 5.2): it
/// needs no cleanup, and all threads see it. `None` if the kernel refuses.
fn events() -> Option<&'static Path> {
    static EVENTS: OnceLock<Option<(PathBuf, Option<OwnedFd>)>> = OnceLock::new();
    let found = EVENTS.get_or_init(|| {
        let mut mounted = PLACES.iter().map(|place| Path::new(place).join("events"));
        if let Some(folder) = mounted.find(|folder| folder.is_dir()) {
            return Some((folder, None));
        }
        let tracefs = open().ok()?;
        Some((format!("/proc/self/fd/{}/events", tracefs.as_raw_fd()).into(), Some(tracefs)))
    });
    found.as_ref().map(|(folder, _)| &**folder)
}

/// A detached mount of tracefs.
fn open() -> rustix::io::Result<OwnedFd> {
    let tracefs = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(tracefs.as_fd())?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(tracefs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
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
