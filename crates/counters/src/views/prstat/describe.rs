//! What a row shows beside its figures, read only of those that are shown: whose it is, what is swapped out, its cgroup.

use super::Row;
use crate::providers::process::memory_cgroup;
use crate::root::Root;
use pagelab_procfs::pairs;

/// Fills in the user, swap and cgroup of rows that do not have them. A process that has ended meanwhile stays without.
pub fn describe(root: &Root, rows: &mut [Row]) {
    for row in rows.iter_mut().filter(|row| row.uid.is_none()) {
        let status = root.read(&format!("proc/{}/status", row.pid)).unwrap_or_default();
        for (name, value) in pairs(&status) {
            match name {
                "Uid" => row.uid = Some(value),
                "VmSwap" => row.swap = Some(value as f64),
                _ => {}
            }
        }
        let text = root.read(&format!("proc/{}/cgroup", row.pid)).unwrap_or_default();
        row.cgroup = memory_cgroup(&text).map(str::to_owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_described_and_one_that_ended_is_not() {
        let mut rows = [u64::from(std::process::id()), u64::MAX].map(|pid| Row { pid, ..Row::default() });
        describe(&Root::live(), &mut rows);
        assert!(rows[0].uid.is_some() && rows[0].cgroup.is_some(), "{:?}", rows[0]);
        assert_eq!((rows[1].uid, &rows[1].cgroup), (None, &None));
    }
}
