//! Whether memory can be had, asked before it is taken: an allocation that fails ends the program,
//! and one that the kernel cannot serve gets it killed.

use std::fs;
use std::path::Path;

use pagelab_procfs::value;

/// Whether so many bytes can be had at once now. Nothing is kept.
pub fn can_be_had(bytes: u64) -> bool {
    let mut room: Vec<u8> = Vec::new();
    let had = usize::try_from(bytes).is_ok_and(|bytes| room.try_reserve_exact(bytes).is_ok());
    // Else the compiler may leave both the taking and the giving back out.
    std::hint::black_box(&room);
    had
}

/// Bytes that this process can take without swapping: what the kernel estimates for the machine, or
/// less where a memory cgroup that the process is in has less left. `None` when the kernel does not
/// say.
pub fn available() -> Option<u64> {
    available_below(Path::new("/"))
}

/// The same with `proc` and `sys` in another folder.
fn available_below(root: &Path) -> Option<u64> {
    let machine = value(&fs::read_to_string(root.join("proc/meminfo")).ok()?, "MemAvailable")?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let left = groups.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        match controllers {
            "" => ["sys/fs/cgroup", "sys/fs/cgroup/unified"]
                .iter()
                .filter_map(|mount| left_in(&root.join(mount), path, ["memory.max", "memory.current"]))
                .min(),
            list if list.split(',').any(|name| name == "memory") => {
                let files = ["memory.limit_in_bytes", "memory.usage_in_bytes"];
                left_in(&root.join("sys/fs/cgroup/memory"), path, files)
            }
            _ => None,
        }
    });
    Some(left.min().map_or(machine, |left| left.min(machine)))
}

/// The least that a cgroup and those above it have left. The file cache that is not in use counts
/// as free.
fn left_in(mount: &Path, path: &str, [limit, usage]: [&str; 2]) -> Option<u64> {
    let own = mount.join(path.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|group| group.starts_with(mount));
    let left = groups.filter_map(|group| {
        let text = |file: &str| fs::read_to_string(group.join(file)).ok();
        let number = |file: &str| text(file)?.trim().parse::<u64>().ok();
        let cache = text("memory.stat")
            .and_then(|stat| value(&stat, "total_inactive_file").or_else(|| value(&stat, "inactive_file")));
        let in_use = number(usage)?.saturating_sub(cache.unwrap_or(0));
        Some(number(limit)?.saturating_sub(in_use))
    });
    left.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_machine_has_cannot_be_had() {
        assert!(can_be_had(0) && can_be_had(1 << 20));
        assert!(!can_be_had(u64::MAX) && !can_be_had(1 << 60));
    }

    #[test]
    fn the_tightest_cgroup_bounds_what_is_available() {
        let folder = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || available_below(folder.path());
        assert_eq!(found(), None);
        put("proc/meminfo", "MemTotal:  9000 kB\nMemAvailable:  1000 kB\n");
        assert_eq!(found(), Some(1_024_000));
        // Version 1: unlimited here, and 600,000 bytes above it, of which 100,000 are cache.
        put("proc/self/cgroup", "4:cpu,memory:/a/b\n0::/c\n");
        put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
        put("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "300000\n");
        put("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "600000\n");
        put("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "300000\n");
        put("sys/fs/cgroup/memory/a/memory.stat", "inactive_file 1\ntotal_inactive_file 100000\n");
        assert_eq!(found(), Some(400_000));
        // Version 2, wherever it is mounted; the folder of the cgroup may be another namespace's.
        put("sys/fs/cgroup/unified/memory.max", "200000\n");
        put("sys/fs/cgroup/unified/memory.current", "150000\n");
        assert_eq!(found(), Some(50_000));
        put("sys/fs/cgroup/c/memory.max", "max\n");
        put("sys/fs/cgroup/c/memory.current", "1\n");
        put("sys/fs/cgroup/unified/memory.max", "100000\n");
        assert_eq!(found(), Some(0), "more in use than allowed");
    }
}
