//! A trace record by record, for what its pages alone do not tell: which references write, and the
//! bytes that each asks for.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Result, anyhow};
use pagelab_reference::trace::{Densifier, Format, Options, Reader, Reading, Record};

use crate::cost::Cost;
use crate::piece::{PIECE, Piece, Read, Room, too_many_pages};
use crate::{Unanswerable, Watch};

/// References between two words of progress.
const STEP: u64 = 1 << 16;

/// First pages that are kept to be shown.
const SHOWN: usize = 3;

/// What a trace must tell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Which references write.
    pub writes: bool,
    /// A request as as many references as the pages that it lies in.
    pub split: bool,
    /// The bytes of each request.
    pub bytes: bool,
}

impl Wanted {
    /// The option of the command line that asks for it.
    pub fn option(self) -> &'static str {
        if self.bytes || self.split { "--sizes" } else { "--write-backs" }
    }
}

/// A trace that is read record by record.
pub struct Records<'a> {
    reader: Reader,
    reading: Reading,
    path: &'a Path,
    watch: &'a dyn Watch,
    count: u64,
}

impl<'a> Records<'a> {
    /// Opens the trace.
    ///
    /// # Errors
    /// When it cannot be read, or its format does not tell what is wanted.
    pub fn open(path: &'a Path, options: &Options, wanted: Wanted, watch: &'a dyn Watch) -> Result<Self> {
        let reader = Reader::open(path, options)?;
        let format = reader.format();
        let lacks = |option: &str, what: &str, knows: fn(Format) -> bool| {
            let those: Vec<&str> = Format::ALL.iter().filter(|one| knows(one.0)).map(|one| one.1).collect();
            let (path, those) = (path.display(), those.join(", "));
            Unanswerable(format!(
                "{option}: the trace {path} is {format}, which does not say {what} (those that do: {those})"
            ))
        };
        if wanted.writes && !format.knows_writes() {
            return Err(lacks("--write-backs", "which references write", Format::knows_writes).into());
        }
        if (wanted.split || wanted.bytes) && !format.knows_sizes() {
            return Err(lacks("--sizes", "how many bytes a request asks for", Format::knows_sizes).into());
        }
        let page_size = format.has_addresses().then_some(options.page_size);
        let reading =
            Reading { format, why: reader.why().to_owned(), page_size, writes: 0, first: Vec::new() };
        Ok(Self { reader, reading, path, watch, count: 0 })
    }

    /// Reads the next record; `None` at the end.
    ///
    /// # Errors
    /// When the trace is unusable or holds none, or the watch ends the work.
    pub fn read(&mut self) -> Result<Option<Record>> {
        let Some(record) = self.reader.next().transpose()? else {
            return match self.count {
                0 => Err(anyhow!("the trace {} holds no reference", self.path.display())),
                _ => Ok(None),
            };
        };
        if self.count.is_multiple_of(STEP) {
            self.watch.at(self.reader.fraction());
            self.watch.go_on()?;
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

/// Reads a trace and appends its references, and what is wanted of them, to a piece, which is given
/// to `take` now and then; what they are read for takes `cost`.
fn each(
    path: &Path,
    options: &Options,
    wanted: Wanted,
    cost: &Cost,
    watch: &dyn Watch,
    mut take: impl FnMut(&mut Piece) -> Result<()>,
) -> Result<(Piece, Reading)> {
    let mut records = Records::open(path, options, wanted, watch)?;
    let mut room = Room::new(path, cost);
    let mut densifier = Densifier::default();
    let mut piece = Piece::with_room();
    // Of objects: the number under which the densifier knows a page of theirs, other than the first.
    let mut parts: HashMap<(u64, u64), u64> = HashMap::new();
    while let Some(record) = records.read()? {
        for part in 0..if wanted.split { record.span } else { 1 } {
            let named = if part == 0 {
                record.page
            } else if !records.reader.names_objects() {
                record.page + part
            } else {
                // Objects are names without order: the parts have names from above, which no object has.
                let next = u64::MAX - parts.len() as u64;
                *parts.entry((record.page, part)).or_insert(next)
            };
            piece.references.push(densifier.number(named).map_err(|_| too_many_pages(path))?);
            if wanted.writes {
                piece.writes.push(record.write);
            }
            if wanted.bytes {
                let no_column = || Unanswerable("--sizes: the csv has no column named size".into());
                piece.bytes.push(record.bytes.ok_or_else(no_column)?);
            }
            piece.pages = densifier.pages();
            room.check(piece.pages, piece.references.len())?;
            if piece.references.len().is_multiple_of(PIECE) {
                take(&mut piece)?;
            }
        }
    }
    Ok((piece, records.reading()))
}

/// Gives all of a trace to `publish`, piece by piece; a piece is in memory at once.
///
/// # Errors
/// When the trace cannot be read or does not tell what is wanted, there is too little memory, or `watch` stops it.
pub(crate) fn each_piece(
    path: &Path,
    options: &Options,
    wanted: Wanted,
    cost: &Cost,
    watch: &dyn Watch,
    publish: &mut dyn FnMut(&mut Piece) -> Result<()>,
) -> Result<Read> {
    let mut references = 0;
    let (mut rest, reading) = each(path, options, wanted, cost, watch, |piece| {
        references += piece.references.len() as u64;
        publish(piece)
    })?;
    references += rest.references.len() as u64;
    let pages = rest.pages;
    publish(&mut rest)?;
    Ok(Read { references, pages, reading })
}

/// All of a trace, and what is wanted of it; what it is read for takes `cost`.
///
/// # Errors
/// As [`each_piece`].
pub(crate) fn load(
    path: &Path,
    options: &Options,
    wanted: Wanted,
    cost: &Cost,
    watch: &dyn Watch,
) -> Result<(Piece, Reading)> {
    watch.begin("reading the trace");
    each(path, options, wanted, cost, watch, |_| Ok(()))
}
