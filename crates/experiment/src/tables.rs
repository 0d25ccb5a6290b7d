//! Every table, declared once: name, what a row is, and the columns with unit and one line of help.
//!
//! Tables of one experiment are declared in its folder, the others here. A table is a module with a
//! constant `TABLE` of the type [`TableId`] and one of the type [`ColumnId`] for each column. Names
//! are text only on disk and on display.

use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

pub use crate::experiments::addressing::tables::*;
pub use crate::experiments::bandwidth::tables::*;
pub use crate::experiments::clock::tables::*;
pub use crate::experiments::command::tables::*;
pub use crate::experiments::curve::tables::*;
pub use crate::experiments::faultscale::tables::*;
pub use crate::experiments::fileread::tables::*;
pub use crate::experiments::fragment::tables::*;
pub use crate::experiments::ksm::tables::*;
pub use crate::experiments::latency::tables::*;
pub use crate::experiments::need::tables::*;
pub use crate::experiments::neighbour::tables::*;
pub use crate::experiments::oom::tables::*;
pub use crate::experiments::paging::tables::*;
pub use crate::experiments::reclaim::tables::*;
pub use crate::experiments::restore::tables::*;
pub use crate::experiments::tier::tables::*;
pub use crate::experiments::tracing::tables::*;
pub use crate::experiments::vmtest::tables::*;
pub use harness::tables::*;

use crate::metrics::MetricId;
use crate::unit::Unit;

/// A column of a declared table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnId {
    /// The name, in the notebook and on display.
    pub name: &'static str,
    /// The unit; `None` for texts.
    pub unit: Option<Unit>,
    /// One line.
    pub help: &'static str,
}

impl MetricId {
    /// A table's column that has the metric row by row.
    pub const fn column(self) -> ColumnId {
        ColumnId { name: self.0.name, unit: Some(self.0.unit), help: self.0.help }
    }
}

/// A table's definition.
#[derive(Debug)]
pub struct Definition {
    /// The name, in the notebook and on display.
    pub name: &'static str,
    /// What each row is of.
    pub rows: &'static str,
    /// The columns, texts before numbers.
    pub columns: &'static [ColumnId],
    /// The columns by which two runs are compared row by row.
    pub compared: &'static [ColumnId],
    /// The columns that the page draws, a bar per row.
    pub charted: &'static [ColumnId],
}

/// A declared table.
#[derive(Clone, Copy)]
pub struct TableId(&'static Definition);

impl TableId {
    /// What [`tables!`] makes of a definition.
    pub(crate) const fn declared(definition: &'static Definition) -> Self {
        Self(definition)
    }
}

impl Deref for TableId {
    type Target = Definition;

    fn deref(&self) -> &Definition {
        self.0
    }
}

impl PartialEq for TableId {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TableId {}

impl PartialEq<str> for TableId {
    fn eq(&self, name: &str) -> bool {
        self.name == name
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

impl Serialize for TableId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// Declares tables, each a module: name, what a row is, columns (constant, name, unit, help; of a
/// metric its constant alone), the columns by which rows are compared, and those that are drawn.
macro_rules! tables {
    ($($module:ident = $name:literal, $rows:literal $(, compare($($compared:ident),+))? $(, chart($($charted:ident),+))? {
        $($column:ident $(= $text:literal, $unit:ident, $help:literal)?;)*
    })*) => {
        /// The tables declared here.
        pub mod tables {
            $(
                #[doc = concat!("`", $name, "`: a row for each ", $rows, ".")]
                pub mod $module {
                    $(
                        #[doc = concat!("A column of `", $name, "`.")]
                        pub const $column: $crate::tables::ColumnId =
                            $crate::tables::tables!(@column $column $($text, $unit, $help)?);
                    )*
                    /// The table.
                    pub const TABLE: $crate::tables::TableId =
                        $crate::tables::TableId::declared(&$crate::tables::Definition {
                            name: $name,
                            rows: $rows,
                            columns: &[$($column),*],
                            compared: &[$($($compared),+)?],
                            charted: &[$($($charted),+)?],
                        });
                }
            )*
            /// All of them.
            pub(crate) const ALL: &[$crate::tables::TableId] = &[$($module::TABLE),*];
        }
    };
    (@column $metric:ident) => { $crate::metrics::$metric.column() };
    (@column $column:ident $name:literal, Text, $help:literal) => {
        $crate::tables::ColumnId { name: $name, unit: None, help: $help }
    };
    (@column $column:ident $name:literal, $unit:ident, $help:literal) => {
        $crate::tables::ColumnId {
            name: $name,
            unit: Some($crate::unit::Unit::$unit),
            help: $help,
        }
    };
}
pub(crate) use tables;

/// The tables of any experiment.
pub(crate) mod harness {
    super::tables! {
        counters = "counters", "sample of the kernel's counters; growing ones as rates" {
            TIME = "time", Nanoseconds, "time since the start";
        }
        scans = "scans", "phase of the load: a situation, way or step", compare(SCAN_DIRECT, STEAL_DIRECT) {
            PHASE = "phase", Text, "the phase";
            SCAN_KSWAPD;
            STEAL_KSWAPD;
            SCAN_DIRECT;
            STEAL_DIRECT;
            REFAULTS;
        }
        operations = "operations", "event of the kernel's that was counted", compare(COUNT) {
            OPERATION = "operation", Text, "the event";
            FUNCTION = "function", Text, "the kernel function that was probed";
            COUNT = "count", Count, "number of events";
            EACH_FAULT = "each.fault", Count, "events per page fault";
            EACH_FORK = "each.fork", Count, "events per fork";
        }
        instructions = "instructions", "function, of guests with trace=functions", compare(INSTRUCTIONS) {
            FUNCTION = "function", Text, "the function, or the program's file";
            MODE = "mode", Text, "user or kernel";
            INSTRUCTIONS = "instructions", Instructions, "instructions executed";
            SHARE = "share", Share, "share of all instructions";
        }
        system_calls = "system-calls", "system call of a program, of guests with trace=functions", compare(CALLS) {
            CALL = "call", Text, "the system call";
            CALLS = "calls", Count, "number of calls";
        }
        cache_misses = "cache-misses", "function, of guests with trace=cache", compare(L2, L1D, L1I, WALKS) {
            FUNCTION = "function", Text, "the function, or the program's file";
            MODE = "mode", Text, "user or kernel";
            REFERENCES = "references", Count, "loads and stores";
            L1I = "l1i", Count, "misses of the first-level instruction cache";
            L1D = "l1d", Count, "misses of the first-level data cache";
            L2 = "l2", Count, "misses of the second-level cache";
            TLB = "tlb", Count, "misses of the first-level TLBs";
            WALKS = "walks", Count, "misses of both levels of TLBs";
        }
        profile = "profile", "kernel function in the sampled stacks", compare(TIME) {
            FUNCTION = "function", Text, "the function";
            SAMPLES = "samples", Count, "samples in the function itself";
            SHARE = "share", Share, "share of all samples in the kernel";
            TIME = "time", Nanoseconds, "samples times the sampling period";
            WITH_CALLEES = "samples.with-callees", Count, "samples in the function and its callees";
        }
    }
}
