//! Reads a trace record by record, for what its pages alone do not tell: which references write, and the bytes that each
//! asks for.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_model::replay::Feed;
use pagelab_reference::Stream;
use pagelab_reference::trace::{Densifier, Format, Options, Reader, Reading, Record, Trace, TraceError};
use pagelab_simulation::cost::{Cost, NUMBERING};
use pagelab_simulation::feed::{Read, too_many_pages};
use pagelab_simulation::spread::cores;

use crate::failure::{CommandError, usage};
use crate::interrupt::Interrupt;
use crate::progress::Work;
use crate::watching::listen;

/// References between two looks at the memory that is left, and at Ctrl-C.
const STEP: u64 = 1 << 16;

/// References that are given to the policies at once.
const PIECE: usize = 1 << 18;

/// First pages that are kept to be shown.
const SHOWN: usize = 3;

/// What a trace must tell.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Which references write.
    pub writes: bool,
    /// A request as as many references as the pages that it lies in.
    pub split: bool,
}

impl Wanted {
    /// The option that asks for it.
    pub fn option(self) -> &'static str {
        if self.split { "--sizes" } else { "--write-backs" }
    }
}

/// A trace that is read record by record, with progress and interruption.
pub struct Records<'a> {
    reader: Reader,
    reading: Reading,
    path: &'a Path,
    work: Work,
    interrupt: Interrupt,
    count: u64,
}

impl<'a> Records<'a> {
    /// Opens the trace.
    ///
    /// # Errors
    /// When it cannot be read, or its format does not know writes or sizes where these are wanted.
    pub fn open(path: &'a Path, options: &Options, writes: bool, sizes: bool, quiet: bool) -> Result<Self> {
        let (work, interrupt) = (Work::new("reading the trace", quiet), listen()?);
        let reader = Reader::open(path, options)?;
        let format = reader.format();
        let lacks = |option: &str, what: &str, knows: fn(Format) -> bool| {
            let those: Vec<&str> = Format::ALL.iter().filter(|one| knows(one.0)).map(|one| one.1).collect();
            let (path, those) = (path.display(), those.join(", "));
            usage(format!(
                "{option}: the trace {path} is {format}, which does not say {what} (those that do: {those})"
            ))
        };
        if writes && !format.knows_writes() {
            return Err(lacks("--write-backs", "which references write", Format::knows_writes));
        }
        if sizes && !format.knows_sizes() {
            return Err(lacks("--sizes", "how many bytes a request asks for", Format::knows_sizes));
        }
        let page_size = format.has_addresses().then_some(options.page_size);
        let reading =
            Reading { format, why: reader.why().to_owned(), page_size, writes: 0, first: Vec::new() };
        Ok(Self { reader, reading, path, work, interrupt, count: 0 })
    }

    /// The next record; `look` is asked now and then whether there is room for more.
    ///
    /// # Errors
    /// When the trace is unusable, there is too little room, or the user interrupts.
    pub fn next(&mut self, look: impl FnOnce(u64) -> Result<()>) -> Result<Option<Record>> {
        let Some(record) =
            self.reader.next().transpose().map_err(|error: TraceError| anyhow::anyhow!(error))?
        else {
            return if self.count == 0 {
                Err(anyhow::anyhow!("the trace {} holds no reference", self.path.display()))
            } else {
                Ok(None)
            };
        };
        if self.count.is_multiple_of(STEP) {
            look(STEP).with_context(|| format!("the trace {} is too long", self.path.display()))?;
            self.work.at(self.reader.fraction());
            if self.interrupt.requested() {
                return Err(CommandError::Stopped.into());
            }
        }
        self.count += 1;
        self.reading.writes += u64::from(record.write);
        if self.reading.first.len() < SHOWN {
            self.reading.first.push(record.page);
        }
        Ok(Some(record))
    }

    /// Whether it says which references write; a csv may lack the column.
    pub fn knows_writes(&self) -> bool {
        self.reading.format.knows_writes()
    }

    /// How the trace was read.
    pub fn reading(self) -> Reading {
        self.reading
    }
}

/// Reads a trace record by record and tells `take` of each reference: whether it writes, with the list to which its page was
/// appended and the number of different pages so far. `kept` references are in memory at once; what they are read for takes `cost`.
fn each(
    path: &Path,
    records: &mut Records,
    wanted: Wanted,
    cost: &Cost,
    kept: fn(&[u32]) -> u64,
    mut take: impl FnMut(bool, &mut Vec<u32>, u32) -> Result<()>,
) -> Result<(u32, Vec<u32>)> {
    let cost = cost.and(&NUMBERING);
    let mut densifier = Densifier::default();
    let mut pages = Vec::new();
    // Of objects: the number under which the densifier knows a page of theirs, other than the first.
    let mut parts: HashMap<(u64, u64), u64> = HashMap::new();
    loop {
        let (distinct, references) = (u64::from(densifier.pages()), kept(&pages));
        let Some(record) = records.next(|more| cost.allow(distinct + more, references + more, 0))? else {
            return Ok((densifier.pages(), pages));
        };
        let span = if wanted.split { record.span } else { 1 };
        for part in 0..span {
            let named = if part == 0 {
                record.page
            } else if !records.reader.names_objects() {
                record.page + part
            } else {
                // Objects are names without order: the parts have names from above, which no object has.
                let next = u64::MAX - parts.len() as u64;
                *parts.entry((record.page, part)).or_insert(next)
            };
            pages.push(densifier.number(named).map_err(|_| too_many_pages(path))?);
            take(record.write, &mut pages, densifier.pages())?;
            if part % STEP == STEP - 1 {
                cost.allow(densifier.pages().into(), kept(&pages) + STEP, 0)?;
            }
        }
    }
}

/// The references, numbered by pages, and whether each is a write where that is wanted; what they are read for takes
/// `cost`.
///
/// # Errors
/// When the trace cannot be read or does not know what is wanted, there is too little memory, or the user interrupts.
pub fn load(
    path: &Path,
    options: &Options,
    wanted: Wanted,
    cost: &Cost,
    quiet: bool,
) -> Result<(Trace, Option<Vec<bool>>)> {
    let mut records = Records::open(path, options, wanted.writes, wanted.split, quiet)?;
    let mut writes = Vec::new();
    let (pages, list) = each(
        path,
        &mut records,
        wanted,
        cost,
        |list| list.len() as u64,
        |write, _, _| {
            if wanted.writes {
                writes.push(write);
            }
            Ok(())
        },
    )?;
    let trace = Trace { stream: Stream::new(pages, list), reading: records.reading() };
    Ok((trace, wanted.writes.then_some(writes)))
}

/// Gives the references to policies as they are read, on every core: a piece of the trace is in memory at once.
///
/// # Errors
/// As [`load`].
pub fn feed(
    path: &Path,
    options: &Options,
    wanted: Wanted,
    cost: &Cost,
    feeds: &mut [Feed],
    quiet: bool,
) -> Result<Read> {
    let mut records = Records::open(path, options, wanted.writes, wanted.split, quiet)?;
    let each_core = feeds.len().div_ceil(cores()).max(1);
    let mut pass_on = |pages, list: &mut Vec<u32>, writes: &mut Vec<bool>| {
        let take = |feed: &mut Feed| {
            let go_on = &mut |_| ControlFlow::Continue(());
            let taken = if wanted.writes {
                feed.take_writing(pages, list, writes, go_on)
            } else {
                feed.take(pages, list, go_on)
            };
            taken.expect("the callback never interrupts");
        };
        std::thread::scope(|scope| {
            for feeds in feeds.chunks_mut(each_core) {
                scope.spawn(move || feeds.iter_mut().for_each(take));
            }
        });
        list.clear();
        writes.clear();
    };
    let (mut references, mut writes) = (0, Vec::new());
    let (pages, mut rest) = each(
        path,
        &mut records,
        wanted,
        cost,
        |_| 0,
        |write, list, pages| {
            if wanted.writes {
                writes.push(write);
            }
            references += 1;
            if list.len() == PIECE {
                pass_on(pages, list, &mut writes);
            }
            Ok(())
        },
    )?;
    pass_on(pages, &mut rest, &mut writes);
    Ok(Read { references, pages, reading: records.reading() })
}
