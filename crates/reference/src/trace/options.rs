//! How to read a trace.

use std::num::NonZeroU32;

use super::{Format, csv};

/// The default page size, bytes.
pub const DEFAULT_PAGE_SIZE: u64 = 4096;

/// How to read a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The format; `None` recognises it.
    pub format: Option<Format>,
    /// Bytes in a page, for formats with byte addresses; a power of two.
    pub page_size: u64,
    /// The columns of a csv, where its first line does not name them.
    pub columns: Option<csv::Columns>,
    /// Whether a trace will do that was made shorter and faults alike only at some sizes.
    pub reduced: bool,
    /// Whether to accept a trace that was recorded through a window and holds only for large
    /// memory.
    pub window: bool,
    /// Read only the references of this process of a recorded program. Processes are numbered
    /// from 1 in the order of their first references.
    pub process: Option<NonZeroU32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            page_size: DEFAULT_PAGE_SIZE,
            columns: None,
            reduced: false,
            window: false,
            process: None,
        }
    }
}
