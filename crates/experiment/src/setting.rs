//! The conditions that an experiment is performed under: the memory limit, the swap, the kernel's
//! settings.

mod thp;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::as_text::as_text;
use crate::declaration::{self, Refusal, words};
use crate::size::{Size, SizeError};
pub use thp::{Mode, Thp};

/// Where the experiment's anonymous pages go when memory runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Swap {
    /// A swap file made for the run and removed after it.
    File,
    /// A compressed RAM device made for the run and removed after it.
    Zram,
    /// No swap: a load beyond the limit is killed inside the limit.
    None,
}
words!(Swap);

/// A memory limit, or the wish for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Limit {
    /// Unlimited.
    None,
    /// At most this.
    Of(Size),
}

impl FromStr for Limit {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" { Ok(Self::None) } else { text.parse().map(Self::Of) }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Of(size) => size.fmt(f),
        }
    }
}

as_text!(Limit);

/// The most samples a second of a profile.
pub const MAX_SAMPLES: u32 = 50_000;

/// The conditions of a run. Whatever is `None` or absent stays as the target has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Setting {
    /// The memory limit: a SIZE, or none [default: 64M]
    #[arg(long, value_name = "SIZE", global = true)]
    pub memory: Option<Limit>,
    /// The swap of the run: a file, a zram device, or none [default: file]
    #[arg(long, value_enum, global = true)]
    pub swap: Option<Swap>,
    /// The size of that swap [default: what the experiment needs]
    #[arg(long, value_name = "SIZE", global = true)]
    pub swap_size: Option<Size>,
    /// Transparent huge pages: always, madvise, never, or per size: 64k:always,2m:madvise (all
    /// other sizes: never)
    #[arg(long, value_name = "MODE|SIZE:MODE,…", global = true)]
    pub thp: Option<Thp>,
    /// The kernel's tendency to swap during the run (vm.swappiness)
    #[arg(long, value_name = "0-200", value_parser = clap::value_parser!(u8).range(0..=200), global = true)]
    pub swappiness: Option<u8>,
    /// Count calls of chosen kernel functions, in an extra execution of the load (root)
    #[arg(long, global = true)]
    pub functions: bool,
    /// Sample the kernel's stack this many times per second, in an extra execution of the load
    /// (root) [default: forkstorm 997, others 0]
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_SAMPLES)), global = true)]
    pub profile: Option<u32>,
    /// A file under /sys or /proc/sys and its value during the run
    #[arg(long, value_name = "FILE=VALUE", value_parser = assignment, global = true)]
    #[serde(with = "by_path")]
    pub set: Vec<FileValue>,
}

/// The names of conditions, on the command line and in records.
pub mod names {
    /// The memory limit.
    pub const MEMORY: &str = "memory";
    /// The swap of the run.
    pub const SWAP: &str = "swap";
    /// Its size.
    pub const SWAP_SIZE: &str = "swap-size";
    /// Transparent huge pages.
    pub const THP: &str = "thp";
    /// The kernel's tendency to swap.
    pub const SWAPPINESS: &str = "swappiness";
    /// Counted kernel functions.
    pub const FUNCTIONS: &str = "functions";
    /// The sampling frequency of the profile.
    pub const PROFILE: &str = "profile";
    /// A file of the kernel; in a record its path follows.
    pub const SET: &str = "set";
    /// The frames that a simulator or a pager has.
    pub const FRAMES: &str = "frames";
    /// The share of the frames that a pager hides.
    pub const HIDDEN: &str = "hidden";
    /// The folder that programs in a guest see as /.
    pub const ROOT: &str = "root";
}

/// One condition of a [`Setting`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `memory`.
    Memory(Limit),
    /// `swap`.
    Swap(Swap),
    /// `swap-size`.
    SwapSize(Size),
    /// `thp`.
    Thp(Thp),
    /// `swappiness`.
    Swappiness(u8),
    /// `functions`.
    Functions,
    /// `profile`.
    Profile(u32),
    /// `set`, of one file.
    Set(FileValue),
}

impl Value {
    /// The key on the command line.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Memory(_) => names::MEMORY,
            Self::Swap(_) => names::SWAP,
            Self::SwapSize(_) => names::SWAP_SIZE,
            Self::Thp(_) => names::THP,
            Self::Swappiness(_) => names::SWAPPINESS,
            Self::Functions => names::FUNCTIONS,
            Self::Profile(_) => names::PROFILE,
            Self::Set(_) => names::SET,
        }
    }

    /// Its name and its value in a record: of a file, `set PATH` and what it is set to.
    pub fn recorded(&self) -> (String, String) {
        match self {
            Self::Set(file) => (format!("{} {}", names::SET, file.path), file.value.clone()),
            _ => (self.key().to_owned(), self.text()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Memory(limit) => limit.to_string(),
            Self::Swap(swap) => swap.to_string(),
            Self::SwapSize(size) => size.to_string(),
            Self::Thp(thp) => thp.to_string(),
            Self::Swappiness(value) => value.to_string(),
            Self::Functions => "on".to_owned(),
            Self::Profile(hertz) => hertz.to_string(),
            Self::Set(file) => file.to_string(),
        }
    }
}

impl fmt::Display for Value {
    /// `key=value`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key(), self.text())
    }
}

/// A file of the kernel's and the value it is to have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileValue {
    /// Under /sys or /proc/sys.
    pub path: String,
    /// The value.
    pub value: String,
}

impl fmt::Display for FileValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

fn assignment(text: &str) -> Result<FileValue, Refusal> {
    let pair = text.split_once('=').filter(|(path, value)| {
        (path.starts_with("/sys/") || path.starts_with("/proc/sys/"))
            && !path.contains("..")
            && !value.trim().is_empty()
    });
    let (path, value) = pair.ok_or_else(|| {
        Refusal::new(format!("write /sys/FILE=VALUE or /proc/sys/FILE=VALUE, not '{text}'"))
    })?;
    Ok(FileValue { path: path.to_owned(), value: value.to_owned() })
}

/// The files to set as the notebook keeps them: a map from path to value.
mod by_path {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::FileValue;

    pub fn serialize<S: Serializer>(set: &[FileValue], serializer: S) -> Result<S::Ok, S::Error> {
        let map: BTreeMap<&str, &str> = set.iter().map(|f| (f.path.as_str(), f.value.as_str())).collect();
        map.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<FileValue>, D::Error> {
        let map = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(map.into_iter().map(|(path, value)| FileValue { path, value }).collect())
    }
}

impl Setting {
    /// Every condition that a setting can name: (key, help).
    pub fn keys() -> Vec<declaration::Parameter> {
        declaration::parameters::<Self>()
    }

    /// The limit, where there is one.
    pub fn limit(&self) -> Option<Size> {
        match self.memory {
            Some(Limit::Of(size)) => Some(size),
            Some(Limit::None) | None => None,
        }
    }

    /// Takes one `key=value` of a target's options; `Ok(false)` when the key is no setting.
    ///
    /// # Errors
    /// A sentence that says what the value should be.
    pub fn apply(&mut self, key: &str, value: &str) -> Result<bool, Refusal> {
        if key == names::SET {
            self.set_file(assignment(value)?);
            return Ok(true);
        }
        let set = std::mem::take(&mut self.set);
        let assigned = declaration::assign(self, key, value);
        self.set = set;
        assigned
    }

    /// Sets a file of the kernel's; a later value of one file replaces an earlier one.
    pub fn set_file(&mut self, file: FileValue) {
        self.set.retain(|known| known.path != file.path);
        self.set.push(file);
        self.set.sort();
    }

    /// The conditions, in the order of their declaration; of files one each.
    pub fn values(&self) -> Vec<Value> {
        let one = [
            self.memory.map(Value::Memory),
            self.swap.map(Value::Swap),
            self.swap_size.map(Value::SwapSize),
            self.thp.clone().map(Value::Thp),
            self.swappiness.map(Value::Swappiness),
            self.functions.then_some(Value::Functions),
            self.profile.map(Value::Profile),
        ];
        one.into_iter().flatten().chain(self.set.iter().cloned().map(Value::Set)).collect()
    }

    /// Sets a condition, in place of another value that it has.
    pub fn put(&mut self, value: Value) {
        match value {
            Value::Memory(limit) => self.memory = Some(limit),
            Value::Swap(swap) => self.swap = Some(swap),
            Value::SwapSize(size) => self.swap_size = Some(size),
            Value::Thp(thp) => self.thp = Some(thp),
            Value::Swappiness(value) => self.swappiness = Some(value),
            Value::Functions => self.functions = true,
            Value::Profile(hertz) => self.profile = Some(hertz),
            Value::Set(file) => self.set_file(file),
        }
    }

    /// No memory limit, and nothing else said.
    pub fn unlimited() -> Self {
        Self { memory: Some(Limit::None), ..Self::default() }
    }
}

impl fmt::Display for Setting {
    /// As the options of a target: `memory=64M,swap=file`; empty when nothing is set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quoted = |text: String| if text.contains(',') { format!("\"{text}\"") } else { text };
        let part = |value: &Value| format!("{}={}", value.key(), quoted(value.text()));
        let parts: Vec<String> = self.values().iter().map(part).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_what_its_text_says() {
        let mut setting = Setting::default();
        let given = [
            ("memory", "64M"),
            ("swap", "zram"),
            ("swap-size", "1G"),
            ("thp", "never"),
            ("swappiness", "7"),
            ("functions", "on"),
            ("profile", "99"),
            ("set", "/sys/kernel/mm/lru_gen/enabled=y"),
        ];
        for (key, value) in given {
            assert_eq!(setting.apply(key, value), Ok(true), "{key}");
        }
        let text = given.map(|(key, value)| format!("{key}={value}")).join(",");
        assert_eq!(setting.to_string(), text);
        let mut again = Setting::default();
        setting.values().into_iter().for_each(|value| again.put(value));
        assert_eq!(again, setting);
        let keys: Vec<String> = Setting::keys().into_iter().map(|key| key.name).collect();
        assert_eq!(keys, given.map(|(key, _)| key));
        let json = serde_json::to_string(&setting).unwrap();
        assert_eq!(serde_json::from_str::<Setting>(&json).unwrap(), setting);
        assert_eq!(setting.apply("colour", "red"), Ok(false));
        setting.apply("thp", "2m:madvise,64k:always").unwrap();
        assert!(setting.to_string().contains(r#",thp="64k:always,2m:madvise","#), "{setting}");
        for (key, value) in
            [("thp", "sometimes"), ("swappiness", "300"), ("functions", "1"), ("memory", "64X")]
        {
            assert!(setting.apply(key, value).is_err(), "{key}={value}");
        }
        setting.apply("memory", "none").unwrap();
        assert_eq!((setting.memory, setting.limit()), (Some(Limit::None), None));
    }

    #[test]
    fn an_older_notebooks_setting_is_read() {
        let old = r#"{"memory":"64M","swap":null,"swap_size":null,"thp":null,"swappiness":null,"functions":false,"profile":null,"set":{"/proc/sys/vm/x":"1"}}"#;
        let setting: Setting = serde_json::from_str(old).unwrap();
        assert_eq!(setting.to_string(), "memory=64M,set=/proc/sys/vm/x=1");
    }
}
