//! Who writes a repetition, and whether they still live: so that a repetition without an end is
//! told apart from one that is being written just now.
//!
//! A writer is `host/boot/pid namespace/pid/start time`. The start time (field 22 of
//! `/proc/PID/stat`, in ticks since boot) tells a process from a later one with the same pid.

use std::fs;
use std::sync::OnceLock;

/// This process as a writer.
pub(crate) fn this_process() -> &'static str {
    static THIS: OnceLock<String> = OnceLock::new();
    THIS.get_or_init(|| {
        let pid = std::process::id();
        format!("{}/{pid}/{}", place(), start_time(pid).unwrap_or(0))
    })
}

/// Whether `writer` may still be writing. On another host that cannot be seen: then it may.
pub(crate) fn lives(writer: &str) -> bool {
    let parts: Vec<&str> = writer.rsplitn(3, '/').collect();
    let &[start, pid, there] = parts.as_slice() else { return false };
    if there != place() {
        return there.split('/').next() != place().split('/').next();
    }
    let started = pid.parse().ok().and_then(start_time);
    started.is_some_and(|found| start.parse() == Ok(found))
}

/// Host name, boot and pid namespace of this process.
fn place() -> &'static str {
    static PLACE: OnceLock<String> = OnceLock::new();
    PLACE.get_or_init(|| {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().replace('/', "_");
        let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let namespace = namespace.to_string_lossy().replace('/', "_");
        format!(
            "{}/{}/{namespace}",
            read("/proc/sys/kernel/hostname"),
            read("/proc/sys/kernel/random/boot_id")
        )
    })
}

/// When the process began, in ticks since boot; `None` when there is none or it is a zombie.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The command name stands in parentheses and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_its_variations_do_not() {
        let this = this_process();
        assert!(lives(this));
        let (process, _) = this.rsplit_once('/').unwrap();
        assert!(!lives(&format!("{process}/1")), "same pid, other start");
        let mut parts: Vec<&str> = this.split('/').collect();
        parts[1] = "another-boot";
        assert!(!lives(&parts.join("/")), "before the machine started again");
        parts[0] = "another-host";
        assert!(lives(&parts.join("/")), "another host cannot be seen");
        assert!(!lives("") && !lives("a/b"));
    }

    #[test]
    fn an_ended_process_does_not_live() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let writer = format!("{}/{}/{}", place(), child.id(), start_time(child.id()).unwrap_or(1));
        child.wait().unwrap();
        assert!(!lives(&writer));
    }
}
