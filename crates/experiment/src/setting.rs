//! The conditions that an experiment is performed under: the memory limit, the swap, the kernel's
//! settings.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::size::Size;

/// Where the experiment's anonymous pages go when memory runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Swap {
    /// A swap file made for the run and removed after it.
    File,
    /// A compressed RAM device made for the run and removed after it.
    Zram,
    /// No swap: a load beyond the limit is killed inside the limit.
    None,
}

/// The transparent huge page mode for anonymous memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thp {
    /// Huge pages wherever they fit.
    Always,
    /// Huge pages where the program asks for them.
    Madvise,
    /// No huge pages.
    Never,
}

/// The most samples a second of a profile.
pub const MOST_SAMPLES: u32 = 50_000;

/// The conditions of a run. Whatever is `None` or absent stays as the target has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Setting {
    /// The memory limit.
    pub memory: Option<Size>,
    /// The kind of swap.
    pub swap: Option<Swap>,
    /// The size of the swap; unset: what the experiment needs at most.
    pub swap_size: Option<Size>,
    /// The transparent huge page mode.
    pub thp: Option<Thp>,
    /// The kernel's inclination to swap, 0 to 200.
    pub swappiness: Option<u8>,
    /// Whether the calls of chosen kernel functions are counted, in a load performed once more for it.
    pub functions: bool,
    /// Samples of a kernel profile a second on each processor, in a load performed once more for it; 0:
    /// none; unset: what the experiment has by itself.
    pub profile: Option<u32>,
    /// Files under /sys or /proc/sys and the values to write there for the time of the run.
    pub set: BTreeMap<String, String>,
}

macro_rules! words {
    ($type:ident: $($variant:ident = $word:literal),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }
        impl std::str::FromStr for $type {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(format!("'{text}' is none of {}", [$($word),+].join(", "))),
                }
            }
        }
    };
}
words!(Swap: File = "file", Zram = "zram", None = "none");
words!(Thp: Always = "always", Madvise = "madvise", Never = "never");
pub(crate) use words;

impl Setting {
    /// Takes one `key=value` of a target's options; `Ok(false)` when the key is no setting.
    ///
    /// # Errors
    /// A sentence that says what the value should be.
    pub fn apply(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let size = |v: &str| v.parse::<Size>().map_err(|e| e.to_string());
        match key {
            "memory" if value == "none" => self.memory = None,
            "memory" => self.memory = Some(size(value)?),
            "swap" => self.swap = Some(value.parse()?),
            "swap-size" => self.swap_size = Some(size(value)?),
            "thp" => self.thp = Some(value.parse()?),
            "swappiness" => {
                let number = value.parse().ok().filter(|&n: &u8| n <= 200);
                self.swappiness =
                    Some(number.ok_or(format!("swappiness is a number from 0 to 200, not '{value}'"))?);
            }
            "functions" => {
                self.functions = match value {
                    "on" => true,
                    "off" => false,
                    _ => return Err(format!("functions is on or off, not '{value}'")),
                }
            }
            "profile" => {
                let number = value.parse().ok().filter(|&n: &u32| n <= MOST_SAMPLES);
                self.profile = Some(number.ok_or(format!(
                    "profile is a number of samples a second from 0 to {MOST_SAMPLES}, not '{value}'"
                ))?);
            }
            "set" => {
                let pair = value.split_once('=').filter(|(path, _)| {
                    (path.starts_with("/sys/") || path.starts_with("/proc/sys/")) && !path.contains("..")
                });
                let (path, value) = pair.ok_or(format!(
                    "write set=/sys/FILE=VALUE or set=/proc/sys/FILE=VALUE, not 'set={value}'"
                ))?;
                self.set.insert(path.to_owned(), value.to_owned());
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl fmt::Display for Setting {
    /// As the options of a target: `memory=64M,swap=file`; empty when nothing is set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let mut part = |key: &str, value: Option<String>| parts.extend(value.map(|v| format!("{key}={v}")));
        part("memory", self.memory.map(|v| v.to_string()));
        part("swap", self.swap.map(|v| v.to_string()));
        part("swap-size", self.swap_size.map(|v| v.to_string()));
        part("thp", self.thp.map(|v| v.to_string()));
        part("swappiness", self.swappiness.map(|v| v.to_string()));
        part("functions", self.functions.then(|| "on".to_owned()));
        part("profile", self.profile.map(|v| v.to_string()));
        for (path, value) in &self.set {
            part("set", Some(format!("{path}={value}")));
        }
        f.write_str(&parts.join(","))
    }
}
