//! Whether a memory limit hides a process's working set: it cannot reference more than the limit
//! lets it keep.

use crate::select::{Selection, SelectorError};
use crate::tree::{Snapshot, of_group, text_of_group};

/// A limit that hides a working set.
#[derive(Clone, Debug, PartialEq)]
pub struct Capped {
    /// The cgroup with the limit.
    pub cgroup: String,
    /// Its limit, bytes.
    pub limit: f64,
    /// Major faults per second of the process.
    pub faults: f64,
}

/// The share of a limit from which on it is met.
const MET: f64 = 0.9;
/// Major faults per second from which on pages that were evicted are wanted again.
const FAULTS: f64 = 10.0;

/// What to read, twice, for this process.
///
/// # Errors
/// None with a number.
pub fn selection(pid: u64) -> Result<Selection, SelectorError> {
    let process = format!("process:{pid}::/^(cgroup|major_faults)$/");
    Selection::parse([process.as_str(), "cgroup:::/^(current|max)$/"])
}

/// The lowest limit that the process meets while it faults, if there is one.
pub fn capped(before: &Snapshot, now: &Snapshot, pid: u64) -> Option<Capped> {
    let process = now.instance("process", pid);
    let grown =
        of_group(process, "major_faults")? - of_group(before.instance("process", pid), "major_faults")?;
    let faults = grown / now.seconds_since(before)?;
    let own = text_of_group(process, "cgroup")?;
    let above = |path: &str| path == "/" || own == path || own.starts_with(&format!("{path}/"));
    let met = now.groups("cgroup").filter(|(_, path, _)| above(path)).filter_map(|(_, path, group)| {
        let limit = of_group(group, "max")?;
        (of_group(group, "current")? >= MET * limit).then(|| (path.to_string(), limit))
    });
    let (cgroup, limit) = met.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| faults >= FAULTS)?;
    Some(Capped { cgroup, limit, faults })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Kind, Sample, Value};

    fn snapshot(second: u64, faults: f64, current: f64) -> Snapshot {
        let sample = |module, instance, name: &str, statistic, value: Value| {
            Sample::new(module, instance, name, statistic, value, Kind::Gauge)
        };
        let number = Value::F64;
        let samples = vec![
            sample("process", 7, "db", "cgroup", Value::Text("/a/b".into())),
            sample("process", 7, "db", "major_faults", number(faults)),
            sample("cgroup", 2, "/a", "current", number(current)),
            sample("cgroup", 2, "/a", "max", number(64e6)),
            sample("cgroup", 2, "/ab", "current", number(5.0)),
            sample("cgroup", 2, "/ab", "max", number(5.0)),
        ];
        Snapshot::new(second * 1_000_000_000, samples)
    }

    #[test]
    fn a_thrashing_process_at_its_limit_is_capped_by_it() {
        let of = |faults, current| capped(&snapshot(0, 0.0, current), &snapshot(2, faults, current), 7);
        assert_eq!(of(1000.0, 63e6), Some(Capped { cgroup: "/a".into(), limit: 64e6, faults: 500.0 }));
        assert_eq!(of(1000.0, 30e6), None, "far from the limit");
        assert_eq!(of(4.0, 63e6), None, "it has what it references");
    }
}
