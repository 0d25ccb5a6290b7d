//! Recorded traces: one file a format, recognised or named, read as a stream in bounded memory.
//!
//! [`Reader`] gives the references one by one or in batches; [`load`] gives them as a [`Stream`] of dense page
//! numbers.

pub mod block_csv;
pub mod champ_sim;
pub mod csv;
pub mod dense;
mod error;
mod format;
mod input;
pub mod lackey;
pub mod lcs;
pub mod load_store;
mod options;
pub mod oracle;
pub mod perf_script;
pub mod plain;
mod reader;
mod recognise;
mod record;
pub mod recorded;
pub mod vscsi;

use std::path::Path;

use crate::Stream;
pub use dense::{Densifier, TooManyPages};
pub use error::TraceError;
pub use format::{Format, UnknownFormat};
pub use input::Seekable;
pub use options::{DEFAULT_PAGE_SIZE, Options};
pub use reader::Reader;
pub use record::Record;
use record::hexadecimal;

/// References decoded at a time.
const BATCH: usize = 1 << 14;

/// A trace in memory.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The references; pages are numbered in the order of first reference, and all are referenced.
    pub stream: Stream,
    /// How it was read.
    pub reading: Reading,
}

/// How a trace was read, for whoever is to judge whether that was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The format.
    pub format: Format,
    /// What spoke for the format.
    pub why: String,
    /// The page size where the trace holds byte addresses.
    pub page_size: Option<u64>,
    /// How many of the references are writes; 0 where the format does not say.
    pub writes: u64,
    /// The first pages, as the trace names them.
    pub first: Vec<u64>,
}

/// First pages that are kept to be shown.
const SHOWN: usize = 3;

/// Gives the pages of a whole trace to `take`, some thousand at a time, as the trace names them, and with them the part of
/// the file that is read, from 0 to 1. `take` may keep the list and leave another, the contents of which are
/// overwritten.
///
/// # Errors
/// When the trace cannot be read, is torn, cut, foreign or without references, or `take` refuses.
pub fn read(
    mut reader: Reader,
    mut take: impl FnMut(&mut Vec<u64>, f64) -> Result<(), Refused>,
) -> Result<Reading, TraceError> {
    let mut batch = Vec::new();
    let (mut writes, mut first) = (0, Vec::new());
    for n in 0_u64.. {
        batch.clear();
        batch.reserve(BATCH);
        writes += reader.pages(BATCH, &mut batch)?;
        if batch.is_empty() {
            break;
        }
        if n == 0 {
            first.extend(batch.iter().take(SHOWN));
        }
        take(&mut batch, reader.fraction()).map_err(|Refused(why)| reader.error(why))?;
    }
    if first.is_empty() {
        return Err(reader.error("it holds no reference".into()));
    }
    let format = reader.format();
    let page_size = format.has_addresses().then_some(reader.page_size());
    Ok(Reading { format, why: reader.why().to_owned(), page_size, writes, first })
}

/// Why nothing more of a trace is taken.
#[derive(Debug)]
pub struct Refused(pub String);

impl From<TooManyPages> for Refused {
    fn from(_: TooManyPages) -> Self {
        Self("there are too many different pages before it".to_owned())
    }
}

/// Reads a whole trace: 4 bytes a reference, and up to 72 bytes a page while it runs.
///
/// # Errors
/// As [`read`]; also when the trace has 2^32 − 2 pages or more.
pub fn load(path: &Path, options: &Options) -> Result<Trace, TraceError> {
    let mut densifier = Densifier::default();
    let mut list: Vec<u32> = Vec::new();
    let numbered = |batch: &mut Vec<u64>, _| Ok(densifier.number_all(batch, &mut list)?);
    let reading = read(Reader::open(path, options)?, numbered)?;
    list.shrink_to_fit();
    Ok(Trace { stream: Stream::new(densifier.pages(), list), reading })
}
