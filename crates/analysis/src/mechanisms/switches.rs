//! The switches of the matrix: conditions that differ from the kernel's own.

use pagelab_experiment::setting::{FileValue, Mode, Swap, Thp, Value};

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The name.
    pub name: &'static str,
    /// The switch in a few words.
    pub help: &'static str,
    /// The conditions.
    pub values: Vec<Value>,
}

const LRU_GEN: &str = "/sys/kernel/mm/lru_gen/enabled";

fn one(name: &'static str, help: &'static str, value: Value) -> Switch {
    Switch { name, help, values: vec![value] }
}

fn set(path: &str, value: &str) -> Value {
    Value::Set(FileValue { path: path.to_owned(), value: value.to_owned() })
}

fn sysctl(name: &str, value: &str) -> Value {
    set(&format!("/proc/sys/vm/{name}"), value)
}

/// The switches, in the order of the rows.
pub fn switches() -> Vec<Switch> {
    let huge = |kib| Value::Thp(Thp::Sizes(vec![(kib, Mode::Always)]));
    vec![
        one("lru_gen=0", "active and inactive lists instead of generations", set(LRU_GEN, "0")),
        one("lru_gen=1", "generations, without walks of page tables", set(LRU_GEN, "1")),
        one("lru_gen=3", "generations and walks of page tables", set(LRU_GEN, "3")),
        one("lru_gen=5", "generations and accessed bits of upper page tables", set(LRU_GEN, "5")),
        one("lru_gen=7", "generations with both", set(LRU_GEN, "7")),
        one(
            "min_ttl_ms=1000",
            "kswapd spares the working set of the last second",
            set("/sys/kernel/mm/lru_gen/min_ttl_ms", "1000"),
        ),
        one("swappiness=10", "reclaim takes files rather than anonymous memory", Value::Swappiness(10)),
        one("swappiness=200", "reclaim takes anonymous memory rather than files", Value::Swappiness(200)),
        one("watermark=1000", "kswapd keeps 10% of memory free", sysctl("watermark_scale_factor", "1000")),
        one("page-cluster=0", "no read-ahead of swap", sysctl("page-cluster", "0")),
        one("page-cluster=5", "read-ahead of 32 pages of swap", sysctl("page-cluster", "5")),
        one("thp=16k", "huge pages of 16 KiB", huge(16)),
        one("thp=64k", "huge pages of 64 KiB", huge(64)),
        one("thp=always", "huge pages of the size that one entry maps", Value::Thp(Thp::Mode(Mode::Always))),
        Switch {
            name: "zswap",
            help: "zswap and a swap file instead of zram",
            values: vec![Value::Swap(Swap::File), set("/sys/module/zswap/parameters/enabled", "Y")],
        },
        one("pressure=1", "inodes and directory entries stay in memory", sysctl("vfs_cache_pressure", "1")),
        one(
            "pressure=1000",
            "inodes and directory entries leave early",
            sysctl("vfs_cache_pressure", "1000"),
        ),
        one(
            "workingset",
            "a minimum of clean pages stays in memory (le9 patches)",
            sysctl("workingset_protection", "1"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use pagelab_experiment::Setting;

    use super::*;

    #[test]
    fn names_are_short_and_distinct_and_values_are_those_of_the_command_line() {
        let all = switches();
        for (n, switch) in all.iter().enumerate() {
            assert!(switch.name.len() <= 15 && all[..n].iter().all(|other| other.name != switch.name));
            for value in &switch.values {
                let (key, text) = value.to_string().split_once('=').map(own).unwrap();
                let mut setting = Setting::default();
                assert_eq!(setting.apply(&key, &text), Ok(true), "{value}");
                assert_eq!(setting.values(), std::slice::from_ref(value));
            }
        }
    }

    fn own((key, text): (&str, &str)) -> (String, String) {
        (key.to_owned(), text.to_owned())
    }
}
