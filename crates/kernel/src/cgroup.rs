//! A memory cgroup that is there, of version 1 or 2: joining it, what is charged to it, what the
//! kernel did in it. The confinement makes them.

use std::fs;
use std::io;
use std::path::Path;

use pagelab_procfs::value;

use crate::files::{number, stalled};
use crate::settings::write;

/// A memory cgroup.
#[derive(Clone, Copy, Debug)]
pub struct Group<'a>(&'a Path);

impl<'a> Group<'a> {
    /// The one whose folder is `path`.
    pub fn new(path: &'a Path) -> Self {
        Self(path)
    }

    /// Its folder.
    pub fn path(self) -> &'a Path {
        self.0
    }

    /// Moves the calling process into it: what it allocates from now on is charged there.
    pub fn join(self) -> io::Result<()> {
        fs::write(self.0.join("cgroup.procs"), "0")
    }

    /// Bytes charged to it, page cache included.
    pub fn charged(self) -> Option<u64> {
        self.number("memory.current").or_else(|| self.number("memory.usage_in_bytes"))
    }

    /// The most that was ever charged to it, bytes. What a processor tries to charge is charged for
    /// a moment also where that is refused, so that [`Group::charged`] may be above the limit; this
    /// counts what was granted.
    pub fn charged_peak(self) -> Option<u64> {
        self.number("memory.peak").or_else(|| self.number("memory.max_usage_in_bytes"))
    }

    /// The lowest limit of it and of those above it, bytes; `None` without one.
    pub fn limit(self) -> Option<u64> {
        // Version 1 writes none as the largest number of pages.
        let of = |folder| {
            let group = Group::new(folder);
            group
                .number("memory.max")
                .or_else(|| group.number("memory.limit_in_bytes"))
                .filter(|&limit| limit < 1 << 62)
        };
        self.0.ancestors().filter_map(of).min()
    }

    /// Bytes of anonymous memory, and of shared memory without a file, in memory or swapped
    /// (version 2).
    pub fn anonymous(self) -> Option<u64> {
        let text = self.text("memory.stat")?;
        let held = value(&text, "anon")? + value(&text, "shmem").unwrap_or(0);
        Some(held + self.number("memory.swap.current").unwrap_or(0))
    }

    /// Processes that the kernel has killed in it because memory ran out.
    pub fn kills(self) -> u64 {
        let found = self.text("memory.events").or_else(|| self.text("memory.oom_control"));
        found.and_then(|text| value(&text, "oom_kill")).unwrap_or(0)
    }

    /// Whether there was always swap left, so that running out of memory was the kernel's failure
    /// to reclaim and not the load's size; `None` when the kernel does not say.
    pub fn had_swap_left(self) -> Option<bool> {
        if let Some(events) = self.text("memory.swap.events") {
            let none = |name| value(&events, name) == Some(0);
            return Some(none("max") && none("fail"));
        }
        let most = self.number("memory.memsw.max_usage_in_bytes")?;
        let limit = self.number("memory.memsw.limit_in_bytes")?;
        Some(most < limit - limit / 16)
    }

    /// The file that reclaims on request (version 2, Linux 5.19).
    pub const RECLAIM: &'static str = "memory.reclaim";

    /// The file above whose value the kernel reclaims (version 2): for kernels without the other.
    pub const HIGH: &'static str = "memory.high";

    /// Whether the kernel reclaims on request.
    pub fn can_reclaim(self) -> bool {
        self.0.join(Self::RECLAIM).exists()
    }

    /// Has the kernel reclaim `bytes` of it; the bytes by which it is smaller then. The kernel may
    /// find less to reclaim. Where it does not reclaim on request, `memory.high` is lower for as
    /// long as it reclaims.
    ///
    /// # Errors
    /// When the file is missing, or this user may not write it.
    pub fn reclaim(self, bytes: u64) -> io::Result<u64> {
        let before = self.charged().unwrap_or(0);
        let written = if self.can_reclaim() {
            write(&self.0.join(Self::RECLAIM), &bytes.to_string())
        } else {
            let high = self.0.join(Self::HIGH);
            let usual = fs::read_to_string(&high)?;
            // The write returns when the kernel has reclaimed; tasks that grow meanwhile are
            // slowed.
            let lowered = write(&high, &before.saturating_sub(bytes).to_string());
            write(&high, usual.trim()).and(lowered)
        };
        match written {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(before.saturating_sub(self.charged().unwrap_or(before))),
        }
    }

    /// Pages that were reclaimed and fetched again, of anonymous memory and of files.
    pub fn refaults(self) -> Option<u64> {
        let text = self.text("memory.stat")?;
        let parts = [value(&text, "workingset_refault_anon"), value(&text, "workingset_refault_file")];
        // Before Linux 5.9 there is one figure for both.
        parts.into_iter().flatten().reduce(|a, b| a + b).or_else(|| value(&text, "workingset_refault"))
    }

    /// ns in which some of its tasks stalled for memory; `None` without PSI.
    pub fn stalled(self) -> Option<u64> {
        stalled(&self.text("memory.pressure")?)
    }

    /// One of its files.
    pub fn text(self, file: &str) -> Option<String> {
        fs::read_to_string(self.0.join(file)).ok()
    }

    /// A figure of its `memory.stat`.
    pub fn stat(self, name: &str) -> Option<u64> {
        self.counted("memory.stat", name)
    }

    /// A figure of one of its files with several.
    pub fn counted(self, file: &str, name: &str) -> Option<u64> {
        value(&self.text(file)?, name)
    }

    /// The number in one of its files; `None` also for `max`.
    pub fn number(self, file: &str) -> Option<u64> {
        number(self.0.join(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_high_reclaims_where_nothing_else_does_and_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group::new(folder.path());
        fs::write(folder.path().join("memory.current"), "1000000\n").unwrap();
        assert!(!group.can_reclaim());
        assert_eq!(group.reclaim(4096).unwrap_err().kind(), io::ErrorKind::NotFound);
        for usual in ["max\n", "2000000\n"] {
            let high = folder.path().join(Group::HIGH);
            fs::write(&high, usual).unwrap();
            assert_eq!(group.reclaim(4096).unwrap(), 0, "a file does not reclaim");
            assert_eq!(fs::read_to_string(&high).unwrap(), usual.trim());
        }
        fs::write(folder.path().join(Group::RECLAIM), "").unwrap();
        group.reclaim(8192).unwrap();
        assert_eq!(group.text(Group::RECLAIM).unwrap(), "8192");
    }

    #[test]
    fn both_versions_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        let group = Group::new(folder.path());
        assert_eq!((group.charged(), group.kills(), group.had_swap_left()), (None, 0, None));
        put("memory.usage_in_bytes", "4096\n");
        put("memory.max_usage_in_bytes", "5000\n");
        assert_eq!(group.charged_peak(), Some(5000));
        put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
        put("memory.memsw.max_usage_in_bytes", "100\n");
        put("memory.memsw.limit_in_bytes", "101\n");
        assert_eq!((group.charged(), group.kills(), group.had_swap_left()), (Some(4096), 2, Some(false)));
        put("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!((group.limit(), group.anonymous()), (None, None));
        put("memory.max", "70000\n");
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        assert_eq!(Group::new(&inner).limit(), Some(70_000), "that of the one above");
        put("memory.current", "8192\n");
        assert_eq!((group.refaults(), group.stalled()), (None, None));
        put("memory.stat", "anon 1\nworkingset_refault_anon 3\nworkingset_refault_file 4\n");
        put("memory.pressure", "some avg10=0.00 total=5\nfull avg10=0.00 total=1\n");
        put("memory.swap.current", "9\n");
        assert_eq!((group.refaults(), group.stalled(), group.anonymous()), (Some(7), Some(5000), Some(10)));
        put("memory.events", "low 0\noom 3\noom_kill 1\noom_group_kill 0\n");
        put("memory.swap.events", "high 0\nmax 0\nfail 0\n");
        assert_eq!((group.charged(), group.kills(), group.had_swap_left()), (Some(8192), 1, Some(true)));
    }
}
