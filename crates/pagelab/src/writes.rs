//! Reads a whole trace with which of its references are writes: what counting write-backs takes.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_reference::Stream;
use pagelab_reference::trace::{Densifier, Format, Options, Reader, Reading, Trace};

use crate::failure::{CommandError, usage};
use crate::feed::{listen, too_many_pages};
use crate::progress::Work;
use crate::stream::{Cost, NUMBERING};

/// References between two looks at the memory that is left, and at Ctrl-C.
const STEP: usize = 1 << 16;

/// First pages that are kept to be shown.
const SHOWN: usize = 3;

/// The references, numbered by pages, and whether each is a write; what they are read for takes `cost`.
///
/// # Errors
/// When the trace cannot be read or knows no writes, there is too little memory, or the user interrupts.
pub fn load(path: &Path, options: &Options, cost: &Cost, quiet: bool) -> Result<(Trace, Vec<bool>)> {
    let work = Work::new("reading the trace", quiet);
    let interrupt = listen()?;
    let cost = cost.and(&NUMBERING);
    let mut reader = Reader::open(path, options)?;
    let format = reader.format();
    if !format.knows_writes() {
        let those: Vec<String> =
            Format::ALL.iter().filter(|one| one.0.knows_writes()).map(|one| one.1.to_owned()).collect();
        let (path, those) = (path.display(), those.join(", "));
        return Err(usage(format!(
            "--write-backs: the trace {path} is {format}, which says of no reference whether it writes (those that do: {those})"
        )));
    }
    let why = reader.why().to_owned();
    let (mut densifier, mut pages, mut writes, mut first) =
        (Densifier::default(), Vec::new(), Vec::new(), Vec::new());
    while let Some(record) = reader.next() {
        let record = record?;
        if pages.len() % STEP == 0 {
            let ahead = (u64::from(densifier.pages()) + STEP as u64, pages.len() as u64 + STEP as u64);
            let allowed = cost.allow(ahead.0, ahead.1, 0);
            allowed.with_context(|| format!("the trace {} is too long", path.display()))?;
            work.at(reader.fraction());
            if interrupt.requested() {
                return Err(CommandError::Stopped.into());
            }
        }
        if first.len() < SHOWN {
            first.push(record.page);
        }
        pages.push(densifier.number(record.page).map_err(|_| too_many_pages(path))?);
        writes.push(record.write);
    }
    if pages.is_empty() {
        return Err(anyhow::anyhow!("the trace {} holds no reference", path.display()));
    }
    let page_size = format.has_addresses().then_some(options.page_size);
    let written = writes.iter().filter(|&&write| write).count() as u64;
    let reading = Reading { format, why, page_size, writes: written, first };
    Ok((Trace { stream: Stream::new(densifier.pages(), pages), reading }, writes))
}
