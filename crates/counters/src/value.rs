//! A counter's value with what it takes to read it: its type, its unit and whether it only grows.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// A value as the kernel gave it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A count that is never negative.
    U64(u64),
    /// A number that may be negative, such as a swap device's priority.
    I64(i64),
    /// A fraction, such as a pressure average.
    F64(f64),
    /// A word, such as a process's state.
    Text(String),
}

impl Value {
    /// The value as a number; None for a text.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::U64(v) => Some(*v as f64),
            Self::I64(v) => Some(*v as f64),
            Self::F64(v) => Some(*v),
            Self::Text(_) => None,
        }
    }

    /// The value as text; None for a number.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::U64(v) => v.fmt(f),
            Self::I64(v) => v.fmt(f),
            Self::F64(v) => v.fmt(f),
            Self::Text(v) => v.fmt(f),
        }
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        Self::U64(v)
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::I64(v)
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Self {
        Self::F64(v)
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::Text(v.to_owned())
    }
}

/// What one of the value is. Sizes are always in bytes or pages and times in nanoseconds, whatever
/// unit the kernel's file uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Events or things.
    Count,
    /// Base pages.
    Pages,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Hundredths.
    Percent,
    /// No unit: texts, priorities, settings.
    None,
}

impl Unit {
    /// The word that follows the figure, empty for [`Unit::Count`] and [`Unit::None`].
    pub fn word(self) -> &'static str {
        match self {
            Self::Count | Self::None => "",
            Self::Pages => "pages",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
            Self::Percent => "%",
        }
    }
}

/// Whether a value may fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A state: it rises and falls.
    Gauge,
    /// It only grows until the thing it counts for ends; rates are taken of it.
    Counter,
}

/// One counter and its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The provider.
    pub module: &'static str,
    /// Which of several alike: a CPU, a node, a process; 0 where there is one.
    pub instance: u64,
    /// What is counted for: a zone, a device, a command, a cgroup.
    pub name: Arc<str>,
    /// What is counted.
    pub statistic: Cow<'static, str>,
    /// The family of the module, a filter of its own: `vm`, `disk`, `cpu`, `process`, `cgroup`, `misc`.
    pub class: &'static str,
    /// The value.
    pub value: Value,
    /// Its unit.
    pub unit: Unit,
    /// Whether it only grows.
    pub kind: Kind,
}

impl Sample {
    /// A count of the class `misc`.
    pub fn new(
        module: &'static str,
        instance: u64,
        name: &str,
        statistic: &str,
        value: impl Into<Value>,
        kind: Kind,
    ) -> Self {
        let (name, statistic) = (name.into(), statistic.to_owned().into());
        Self {
            module,
            instance,
            name,
            statistic,
            class: "misc",
            value: value.into(),
            unit: Unit::Count,
            kind,
        }
    }

    /// kstat's order: module, instance as a number, name, statistic.
    pub fn order(&self, other: &Self) -> Ordering {
        self.module
            .cmp(other.module)
            .then(self.instance.cmp(&other.instance))
            .then_with(|| self.name.cmp(&other.name))
            .then_with(|| self.statistic.cmp(&other.statistic))
    }

    /// The four-part name.
    pub fn full_name(&self) -> String {
        format!("{}:{}:{}:{}", self.module, self.instance, self.name, self.statistic)
    }
}
