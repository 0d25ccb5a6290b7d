//! A recording of a program's references (`pagelab trace`): no load of its own, only what was
//! recorded.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::declaration::{Declaration, Footprint, Load};
use crate::metrics::MetricId;
use crate::tables::{TableId, tables};

tables! {
    recording = "recording", "recording of a program's references" {
        REFERENCES = "references", Count, "references";
        LOADS = "loads", Count, "loads";
        STORES = "stores", Count, "stores";
        FETCHES = "fetches", Count, "instruction fetches";
        UNITS = "units", Count, "pages or cache lines referenced";
        PROCESSES = "processes", Count, "processes recorded";
        THREADS = "threads", Count, "threads recorded";
        SIZE = "size", Bytes, "size of the file";
    }
}

/// What was recorded, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tracing {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The trace's file.
    pub file: PathBuf,
    /// Bytes of what a reference names: a page, or a line of the cache.
    pub unit: u64,
    /// The kinds that are recorded: `load`, `store`, `fetch`.
    pub kinds: Vec<String>,
    /// The window of the recording, in pages; none if every reference was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

impl fmt::Display for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "-o {}", self.file.display())?;
        if self.unit == 64 {
            f.write_str(" --granularity line")?;
        }
        match self.kinds.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["fetch"] => f.write_str(" --only code")?,
            ["load"] | ["load", "store"] => f.write_str(" --only data")?,
            _ => {}
        }
        if let Some(window) = self.window {
            write!(f, " --window {window}")?;
        }
        write!(f, " -- {}", self.program.join(" "))
    }
}

impl Declaration for Tracing {
    fn footprint(&self, _: u64) -> Footprint {
        Footprint::default()
    }

    fn primary(&self) -> Option<MetricId> {
        None
    }

    fn headline(&self) -> &'static [MetricId] {
        &[]
    }

    fn tables(&self) -> &'static [TableId] {
        tables::ALL
    }

    fn load(&self) -> Load<'_> {
        Load::None
    }
}
