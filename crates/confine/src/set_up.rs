//! What is set up around a load, as one value: the plan lists its changes, the confinement makes
//! them, the journal undoes them, and the record names them.

use std::path::{Path, PathBuf};

use pagelab_kernel::settings::{ZSWAP, counterpart, read};

use super::cgroup;
use super::folder::scratch_path;

/// Where the swap of a run's own is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SwapSource {
    /// A file in the folder for scratch files.
    File,
    /// A block device, which is overwritten.
    Device(PathBuf),
    /// A compressed RAM device.
    Zram,
}

/// Swap of a run's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnSwap {
    /// Where it is.
    pub source: SwapSource,
    /// Its size.
    pub bytes: u64,
}

/// What is set up around a load. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetUp {
    /// The most memory that the load takes, bytes.
    pub load: u64,
    /// The memory limit, bytes.
    pub limit: Option<u64>,
    /// Whether the load may use no swap, not even the machine's; only inside a limit.
    pub no_swap: bool,
    /// Swap of the run's own.
    pub swap: Option<OwnSwap>,
    /// The swappiness of the cgroup with the limit (version 1).
    pub cgroup_swappiness: Option<u8>,
    /// Kernel settings, each with the value that it is given.
    pub settings: Vec<(PathBuf, String)>,
    /// Kernel settings that the load itself changes.
    pub saved: Vec<PathBuf>,
    /// The size of the file that the load writes, 0 for none.
    pub scratch: u64,
}

impl SetUp {
    /// The most memory that is in use at once, bytes; `zswap`: whether the kernel has it on by
    /// itself.
    pub fn memory(&self, zswap: bool) -> u64 {
        let set = self.settings.iter().find(|(path, _)| path == Path::new(ZSWAP));
        let zswap = set.map_or(zswap, |(_, value)| is_on(value));
        // What is swapped to memory stays there.
        let swap = self.swap.as_ref().filter(|swap| zswap || swap.source == SwapSource::Zram);
        let inside = self.limit.map_or(self.load, |limit| limit.min(self.load));
        inside.saturating_add(swap.map_or(0, |swap| swap.bytes))
    }

    /// The room that its files take on the disk, bytes.
    pub fn disk(&self) -> u64 {
        let swap = self.swap.as_ref().filter(|swap| swap.source == SwapSource::File);
        self.scratch.saturating_add(swap.map_or(0, |swap| swap.bytes))
    }

    /// Whether kernel settings are changed.
    pub fn changes_settings(&self) -> bool {
        !(self.settings.is_empty() && self.saved.is_empty())
    }

    /// The privileges that it needs.
    pub fn privileges(&self) -> Vec<String> {
        let needs = [
            (
                self.limit.is_some(),
                "a memory cgroup of this user's (root, or a delegated one): the memory limit",
            ),
            (self.swap.is_some(), "CAP_SYS_ADMIN (root): a swap of its own"),
            (self.changes_settings(), "root: the kernel's settings"),
        ];
        needs.into_iter().filter(|(needed, _)| *needed).map(|(_, text)| text.to_owned()).collect()
    }

    /// What it changes on the machine, a line each.
    pub fn changes(&self) -> Vec<String> {
        let (mut list, folder) = (Vec::new(), scratch_path());
        if let Some(limit) = self.limit {
            let parent = cgroup::available().unwrap_or_default();
            let swappiness = self.cgroup_swappiness.map(|value| format!(" and a swappiness of {value}"));
            list.push(format!(
                "a cgroup below {} with a memory limit of {}{}",
                parent.display(),
                size(limit),
                swappiness.unwrap_or_default()
            ));
            if let Some(mount) = cgroup::observers().filter(|mount| !parent.starts_with(mount)) {
                list.push(format!("a cgroup below {}, for the pressure of the load", mount.display()));
            }
            list.extend(cgroup::above_memory(limit));
        }
        if let Some(OwnSwap { source, bytes }) = &self.swap {
            list.push(match source {
                SwapSource::Device(device) => format!("swap on {}", device.display()),
                SwapSource::File => {
                    format!("a swap file of {} in {}, switched on", size(*bytes), folder.display())
                }
                SwapSource::Zram => format!("a zram device of {}, swap switched on", size(*bytes)),
            });
            list.push("meanwhile other cgroups that reclaim may use this swap too".to_owned());
        }
        if self.scratch > 0 {
            list.push(format!("a scratch file of {} in {}", size(self.scratch), folder.display()));
        }
        let held = |path: &Path| read(path).unwrap_or_default();
        list.extend(self.settings.iter().map(|(path, value)| {
            let other = counterpart(path).map_or_else(String::new, |other| {
                format!("; {}, now {}, becomes 0", other.display(), held(&other))
            });
            format!("{} = {value} (now {}{other})", path.display(), held(path))
        }));
        list.extend(self.saved.iter().map(|path| format!("{} (now {})", path.display(), held(path))));
        list
    }
}

/// Whether the kernel reads this as on.
fn is_on(text: &str) -> bool {
    ["Y", "y", "1"].contains(&text.trim())
}

/// Whether zswap is on.
pub fn zswap_is_on() -> bool {
    read(Path::new(ZSWAP)).is_ok_and(|text| is_on(&text))
}

/// A number of bytes in the largest unit that makes it whole.
fn size(bytes: u64) -> String {
    let unit = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")].into_iter();
    let unit = unit.filter(|_| bytes > 0).find(|(unit, _)| bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_changes_match_the_setting() {
        assert_eq!((SetUp::default().changes().len(), SetUp::default().privileges().len()), (0, 0));
        let mut set_up = SetUp { load: 96 << 20, limit: Some(64 << 20), scratch: 4097, ..SetUp::default() };
        set_up.settings = vec![(ZSWAP.into(), "N".into())];
        set_up.swap = Some(OwnSwap { source: SwapSource::File, bytes: 80 << 20 });
        assert_eq!((set_up.memory(true), set_up.disk()), (64 << 20, (80 << 20) + 4097));
        let changes = set_up.changes().join("\n");
        for text in ["limit of 64 MiB", "swap file of 80 MiB", "scratch file of 4097 bytes", ZSWAP] {
            assert!(changes.contains(text), "{text}: {changes}");
        }
        assert_eq!(set_up.privileges().len(), 3);
        // What is swapped stays in memory, and takes no disk.
        set_up.swap = Some(OwnSwap { source: SwapSource::Zram, bytes: 80 << 20 });
        assert_eq!((set_up.memory(false), set_up.disk()), (144 << 20, 4097));
    }
}
