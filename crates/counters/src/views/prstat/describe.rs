//! The user, sizes, state and cgroup of a process, read only for the rows that are shown.

use super::Row;
use crate::providers::process::memory_cgroup;
use crate::root::Root;
use pagelab_procfs::pair;

/// Fills in the user, the sizes and the state of rows without a user, and the cgroup if `cgroups`.
/// The row of a process that has ended does not change.
pub fn describe(root: &Root, rows: &mut [Row], cgroups: bool) {
    for row in rows.iter_mut().filter(|row| row.uid.is_none()) {
        let folder = format!("proc/{}", row.pid);
        of_status(&root.read_piece(&format!("{folder}/status")).unwrap_or_default(), row);
        if cgroups {
            let text = root.read_piece(&format!("{folder}/cgroup")).unwrap_or_default();
            row.cgroup = memory_cgroup(&text).map(str::to_owned);
        }
    }
}

fn of_status(status: &str, row: &mut Row) {
    for line in status.lines() {
        let Some((name, rest)) = line.split_once(':') else { continue };
        let value = || pair(line).map(|(_, value)| value);
        match name {
            "State" => row.state = rest.split_ascii_whitespace().next().unwrap_or_default().to_owned(),
            "Uid" => row.uid = value(),
            "VmSize" => row.virtual_size = value().map(|bytes| bytes as f64),
            "VmRSS" => row.rss = value().map(|bytes| bytes as f64),
            "VmSwap" => row.swap = value().map(|bytes| bytes as f64),
            // Behind everything that a row shows.
            "Threads" => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described_and_one_that_ended_is_not() {
        let mut rows = [u64::from(std::process::id()), u64::MAX].map(|pid| Row { pid, ..Row::default() });
        describe(&Root::live(), &mut rows, true);
        assert!(rows[0].uid.is_some() && rows[0].cgroup.is_some(), "{:?}", rows[0]);
        assert!(rows[0].rss > Some(0.0) && rows[0].rss < rows[0].virtual_size, "{:?}", rows[0]);
        assert!(["R", "S"].contains(&rows[0].state.as_str()), "{:?}", rows[0]);
        assert_eq!((rows[1].uid, &rows[1].cgroup), (None, &None));
    }
}
