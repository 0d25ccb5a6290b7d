//! pagelab's own format, written by `pagelab trace`: the references of a program, by thread, in blocks that can be read
//! by themselves.
//!
//! ```text
//! file   = magic, length u32, heading JSON, block*, block header with 0 runs, length u32, ending JSON,
//!          u64 offset of that last block header, end magic
//! block  = runs u32, compressed length u32, process u32, thread u32, CRC-32 of the compressed bytes u32, zstd frame
//! frame  = runs: varint (zigzag(page − last page of this kind) << 3 | kind << 1 | more), and if more is set
//!          varint (count − 2)
//! ```
//!
//! All numbers are little-endian; a varint has seven bits a byte, the lowest first. A run is `count` references in a row
//! to the same unit (a page, or a line) of the same kind: load, store, fetch. The last pages are 0 at the beginning of
//! each block. The ending has the sums; a file without it was torn.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Options;
use super::input::{Input, Trouble};

/// What a file begins with.
pub const MAGIC: &[u8; 16] = b"pagelab trace 1\n";
/// What it ends with.
pub const END: &[u8; 16] = b"pagelab trace .\n";
/// Bytes of a block's header.
pub(super) const HEADER: usize = 20;
/// The most runs in a block.
pub const RUNS: usize = (1 << 15) + 1;
/// The most bytes of a block: a run has no more than 10 + 4, and zstd adds little.
pub(super) const LONGEST: usize = 16 * RUNS;
/// The most bytes of the heading or the ending.
pub(super) const TEXT: usize = 1 << 24;
/// zstd's level: more make files little smaller and take longer than a second processor has.
const LEVEL: i32 = 1;

/// What is known when the recording begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// The program and its arguments.
    pub program: Vec<String>,
    /// What it was run by.
    pub recorder: String,
    /// Bytes of what a reference names: a page, or a line of the cache.
    pub unit: u64,
    /// The kinds that are recorded: `load`, `store`, `fetch`.
    pub kinds: Vec<String>,
    /// How it was made shorter, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduced: Option<Reduced>,
}

/// A stream that faults as a longer one does, for some policies and from some size on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduced {
    /// `sad` or `olr`.
    pub method: String,
    /// The least memory that it faults alike with, in units.
    pub frames: u32,
    /// The references of the longer one.
    pub references: u64,
}

/// What is known when it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// How the program ended.
    pub status: String,
    /// References, of each kind.
    pub loads: u64,
    /// See above.
    pub stores: u64,
    /// See above.
    pub fetches: u64,
    /// Runs.
    pub runs: u64,
    /// Blocks.
    pub blocks: u64,
    /// Processes; a program that one of them executed counts as another.
    pub processes: u64,
    /// Threads, counted once for each process and number.
    pub threads: u64,
    /// Threads that were not recorded.
    pub unrecorded_threads: u32,
    /// Programs executed by the program, which were not recorded.
    pub unrecorded_programs: u32,
    /// What the program had mapped, where that was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// Whose references there are, in the order of first blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Origin>,
    /// CRC-32 of the blocks' CRCs: the same for the same references in the same order.
    pub fingerprint: u32,
}

/// The references of one process: of a program, of what it forked, of what either executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its number in the machine; a program has that of the process that executed it.
    pub process: u32,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// References, of each kind.
    pub loads: u64,
    /// See above.
    pub stores: u64,
    /// See above.
    pub fetches: u64,
}

impl Origin {
    /// All references.
    pub fn references(&self) -> u64 {
        self.loads + self.stores + self.fetches
    }
}

/// A mapping of a recorded program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mapping {
    /// The process: which in the order of their first blocks, from 0. While it is recorded: its number in blocks.
    pub process: u32,
    /// The first byte.
    pub start: u64,
    /// The first byte behind it.
    pub end: u64,
    /// `heap`, `stack`, `anonymous` or a file's name.
    pub name: String,
}

impl Ending {
    /// All references.
    pub fn references(&self) -> u64 {
        self.loads + self.stores + self.fetches
    }
}

/// The heading and the ending of the file at `path`, without what is between them; `None` where it is no whole trace of
/// pagelab's.
///
/// # Errors
/// When it cannot be read.
pub fn ends(path: &Path) -> io::Result<Option<(Heading, Ending)>> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let tail = (8 + END.len()) as u64;
    if length < MAGIC.len() as u64 + tail {
        return Ok(None);
    }
    let mut magic = [0; MAGIC.len()];
    file.read_exact(&mut magic)?;
    let heading = if magic == *MAGIC { text_at(&mut file, MAGIC.len() as u64, length)? } else { None };
    file.seek(SeekFrom::Start(length - tail))?;
    let mut last = [0; 8 + END.len()];
    file.read_exact(&mut last)?;
    let offset = u64::from_le_bytes(*last.first_chunk().expect("8 bytes are there"));
    let ending = match last.ends_with(END) {
        true => text_at(&mut file, offset.saturating_add(HEADER as u64), length)?,
        false => None,
    };
    let (Some(heading), Some(ending)) = (heading, ending) else { return Ok(None) };
    Ok(serde_json::from_slice(&heading).ok().zip(serde_json::from_slice(&ending).ok()))
}

/// The text behind its length at `at` of a file of `length` bytes; `None` where there is none.
fn text_at(file: &mut File, at: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    if at.saturating_add(4) > length {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(at))?;
    let mut size = [0; 4];
    file.read_exact(&mut size)?;
    let size = u32::from_le_bytes(size);
    if size as usize > TEXT || at + 4 + u64::from(size) > length {
        return Ok(None);
    }
    let mut text = vec![0; size as usize];
    file.read_exact(&mut text)?;
    Ok(Some(text))
}

/// The kind of a reference that reads.
pub const LOAD: u64 = 0;
/// Of one that writes.
pub const STORE: u64 = 1;
/// Of the fetch of an instruction.
pub const FETCH: u64 = 2;

/// A run: page, kind ([`LOAD`], [`STORE`], [`FETCH`]), count.
pub type Run = (u64, u64, u64);

fn zigzag(delta: i64) -> u64 {
    (delta << 1 ^ delta >> 63).cast_unsigned()
}

fn unzigzag(coded: u64) -> i64 {
    (coded >> 1).cast_signed() ^ -(coded & 1).cast_signed()
}

/// Writes a varint to the beginning of `out`; how many bytes it has.
#[inline]
fn put(mut number: u64, out: &mut [u8]) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        out[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    out[at] = number as u8;
    at + 1
}

#[inline]
fn get(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Writes a trace block by block.
pub struct Writer<W: Write> {
    out: W,
    offset: u64,
    compressor: zstd::bulk::Compressor<'static>,
    /// The frame, before it is compressed; longer than any.
    plain: Box<[u8]>,
    packed: Vec<u8>,
    crc: crc32fast::Hasher,
    ending: Ending,
    sources: HashSet<(u32, u32)>,
    /// The processes in the order of their first blocks, and where each is.
    processes: Vec<(u32, Origin)>,
    places: HashMap<u32, usize>,
}

impl<W: Write> Writer<W> {
    /// Begins.
    ///
    /// # Errors
    /// When the heading cannot be written.
    pub fn new(mut out: W, heading: &Heading) -> io::Result<Self> {
        let text = serde_json::to_vec(heading)?;
        out.write_all(MAGIC)?;
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(&text)?;
        out.flush()?;
        Ok(Self {
            out,
            offset: (MAGIC.len() + 4 + text.len()) as u64,
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            plain: vec![0; LONGEST].into(),
            packed: Vec::with_capacity(LONGEST + 1024),
            crc: crc32fast::Hasher::new(),
            ending: Ending::default(),
            sources: HashSet::new(),
            processes: Vec::new(),
            places: HashMap::new(),
        })
    }

    /// Writes runs of one thread, 1 to [`RUNS`]; pages below 2^60, counts above 0.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn block(
        &mut self,
        process: u32,
        thread: u32,
        runs: impl ExactSizeIterator<Item = Run>,
    ) -> io::Result<()> {
        let count = runs.len() as u32;
        let (mut last, mut sums) = ([0u64; 4], [0u64; 4]);
        let mut at = 0;
        for (page, kind, count) in runs {
            let kind = kind & 3;
            let delta = page.wrapping_sub(last[kind as usize]).cast_signed();
            last[kind as usize] = page;
            sums[kind as usize] += count;
            at += put(zigzag(delta) << 3 | kind << 1 | u64::from(count > 1), &mut self.plain[at..]);
            if count > 1 {
                at += put(count - 2, &mut self.plain[at..]);
            }
        }
        let plain = &self.plain[..at];
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
        self.compressor.compress_to_buffer(plain, &mut self.packed)?;
        self.add(process, sums);
        let crc = crc32fast::hash(&self.packed);
        for number in [count, self.packed.len() as u32, process, thread, crc] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.out.write_all(&self.packed)?;
        // Whatever becomes of this process, the block is there.
        self.out.flush()?;
        self.offset += (HEADER + self.packed.len()) as u64;
        self.crc.update(&crc.to_le_bytes());
        self.ending.runs += u64::from(count);
        self.ending.blocks += 1;
        self.sources.insert((process, thread));
        Ok(())
    }

    /// Counts references of a process.
    fn add(&mut self, process: u32, [loads, stores, fetches, _]: [u64; 4]) {
        let place = *self.places.entry(process).or_insert_with(|| {
            self.processes.push((process, Origin::default()));
            self.processes.len() - 1
        });
        let origin = &mut self.processes[place].1;
        (origin.loads, origin.stores, origin.fetches) =
            (origin.loads + loads, origin.stores + stores, origin.fetches + fetches);
        let all = &mut self.ending;
        (all.loads, all.stores, all.fetches) =
            (all.loads + loads, all.stores + stores, all.fetches + fetches);
    }

    /// References so far, and bytes.
    pub fn written(&self) -> (u64, u64) {
        (self.ending.references(), self.offset)
    }

    /// Ends the file; `ending` has how the program ended and what was not recorded, and in `streams` what is known of the
    /// process of each number in blocks, from 0. The sums, and the bytes written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, ending: Ending) -> io::Result<(Ending, u64)> {
        let place = |process: u32| Some(*self.places.get(&process)? as u32);
        let known = |(process, sums): &(u32, Origin)| {
            let about = ending.streams.get(*process as usize)?;
            Some(Origin { process: about.process, program: about.program.clone(), ..sums.clone() })
        };
        let streams = self.processes.iter().filter_map(known).collect();
        let mappings = ending.mappings.into_iter();
        let mappings =
            mappings.filter_map(|mapping| Some(Mapping { process: place(mapping.process)?, ..mapping }));
        let ending = Ending {
            status: ending.status,
            unrecorded_threads: ending.unrecorded_threads,
            unrecorded_programs: ending.unrecorded_programs,
            mappings: mappings.collect(),
            streams,
            processes: self.processes.len() as u64,
            threads: self.sources.len() as u64,
            fingerprint: self.crc.finalize(),
            ..self.ending
        };
        let text = serde_json::to_vec(&ending)?;
        self.out.write_all(&[0; HEADER])?;
        self.out.write_all(&(text.len() as u32).to_le_bytes())?;
        self.out.write_all(&text)?;
        self.out.write_all(&self.offset.to_le_bytes())?;
        self.out.write_all(END)?;
        self.out.flush()?;
        Ok((ending, self.offset + (HEADER + 4 + text.len() + 8 + END.len()) as u64))
    }
}

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHeader {
    pub runs: usize,
    pub length: usize,
    pub process: u32,
    crc: u32,
}

impl BlockHeader {
    /// Reads one.
    ///
    /// # Errors
    /// When it promises what no block has.
    pub fn read(bytes: &[u8; HEADER]) -> Result<Self, String> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let new = Self { runs: word(0) as usize, length: word(4) as usize, process: word(8), crc: word(16) };
        if new.runs > RUNS || new.length > LONGEST {
            return Err(format!("a block of {} runs in {} bytes: it is damaged", new.runs, new.length));
        }
        Ok(new)
    }
}

/// Processes that a reader tells apart.
const PROCESSES: usize = 1 << 12;
/// Bits of a unit's number below those that name its process.
pub const PROCESS: u32 = 52;

/// Decodes blocks.
pub(super) struct Decoder {
    decompressor: zstd::bulk::Decompressor<'static>,
    /// The one process whose runs are given, in the order of their first blocks, from 0.
    only: Option<usize>,
    /// The processes that were met: pages of another one are others.
    processes: Vec<u32>,
    crc: crc32fast::Hasher,
    /// What was met of what the ending has.
    pub seen: Ending,
}

impl Decoder {
    pub fn new(only: Option<usize>) -> io::Result<Self> {
        Ok(Self {
            decompressor: zstd::bulk::Decompressor::new()?,
            only,
            processes: Vec::new(),
            crc: crc32fast::Hasher::new(),
            seen: Ending::default(),
        })
    }

    /// Appends the runs of a block to `runs`, of one process those of its blocks alone; else its pages are numbered apart
    /// from those of other processes.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn block(&mut self, header: &BlockHeader, packed: &[u8], runs: &mut Vec<Run>) -> Result<(), String> {
        if crc32fast::hash(packed) != header.crc {
            return Err("the block's checksum is another: it is damaged".into());
        }
        let plain = self.decompressor.decompress(packed, LONGEST);
        let plain = plain.map_err(|error| format!("the block cannot be decompressed ({error})"))?;
        let number = self.processes.iter().position(|&process| process == header.process);
        if number.is_none() {
            self.processes.push(header.process);
        }
        let number = number.unwrap_or(self.processes.len() - 1);
        if number >= PROCESSES {
            return Err(format!("it has more than {PROCESSES} processes: they cannot be told apart"));
        }
        let apart = if self.only.is_some() { 0 } else { (number as u64) << PROCESS };
        let wanted = self.only.is_none_or(|only| only == number);
        let (mut rest, mut last) = (&plain[..], [0u64; 4]);
        let damaged = || "the block's content is no runs: it is damaged".to_owned();
        for _ in 0..header.runs {
            let word = get(&mut rest).ok_or_else(damaged)?;
            let (kind, more) = (word >> 1 & 3, word & 1 != 0);
            let count = if more { get(&mut rest).ok_or_else(damaged)?.saturating_add(2) } else { 1 };
            let last = &mut last[kind as usize];
            *last = last.wrapping_add_signed(unzigzag(word >> 3));
            if kind > 2 || count > 1 << 32 || *last >= 1 << PROCESS {
                return Err(damaged());
            }
            match kind {
                0 => self.seen.loads += count,
                1 => self.seen.stores += count,
                _ => self.seen.fetches += count,
            }
            if wanted {
                runs.push((*last ^ apart, kind, count));
            }
        }
        if !rest.is_empty() {
            return Err(damaged());
        }
        self.seen.runs += header.runs as u64;
        self.seen.blocks += 1;
        self.crc.update(&header.crc.to_le_bytes());
        Ok(())
    }

    /// Whether what was read is what the ending says.
    ///
    /// # Errors
    /// When it is not.
    pub fn check(&self, text: &[u8]) -> Result<Ending, String> {
        let ending: Ending =
            serde_json::from_slice(text).map_err(|error| format!("the ending cannot be read ({error})"))?;
        let same = |e: &Ending| (e.loads, e.stores, e.fetches, e.runs, e.blocks);
        if same(&ending) != same(&self.seen) || ending.fingerprint != self.crc.clone().finalize() {
            return Err(format!(
                "its ending counts {} references in {} blocks, and there are {} in {}",
                ending.references(),
                ending.blocks,
                self.seen.references(),
                self.seen.blocks
            ));
        }
        if let Some(only) = self.only.filter(|&only| only >= self.processes.len()) {
            let processes = match self.processes.len() {
                1 => "one process".to_owned(),
                many => format!("{many} processes"),
            };
            return Err(format!("it has {processes}, and no process {} (pagelab show lists them)", only + 1));
        }
        Ok(ending)
    }
}

/// The references of a file, in its order.
pub(super) struct References {
    pub heading: Heading,
    decoder: Decoder,
    /// Bits of a page number below those of the pages that are asked for.
    shift: u32,
    packed: Vec<u8>,
    runs: Vec<Run>,
    /// The first of them that was not given whole, and how much of it is left.
    at: usize,
    left: u64,
    ended: bool,
}

impl References {
    /// Reads the heading; pages are to have the bytes, and references to be of the process, that `options` say.
    ///
    /// # Errors
    /// When there is none, its unit is larger than a page, or it is not accepted as it was made shorter.
    pub fn open(input: &mut Input, options: &Options) -> Result<Self, Trouble> {
        let Options { page_size, reduced, process, .. } = *options;
        let mut text = Vec::new();
        input.bytes(MAGIC.len(), &mut text)?;
        if text != MAGIC {
            return Err(Trouble::Content("it does not begin as a trace of pagelab's".into()));
        }
        sized(input, &mut text)?;
        let heading: Heading = serde_json::from_slice(&text)
            .map_err(|error| Trouble::Content(format!("the heading cannot be read ({error})")))?;
        if let Some(made) = &heading.reduced {
            if !reduced {
                return Err(Trouble::Content(format!(
                    "it was reduced ({}): its references are not a program's, and only replay and mrc take it, for lru{}",
                    made.method,
                    if made.method == "sad" { " and opt" } else { "" }
                )));
            }
            if heading.unit != page_size {
                return Err(Trouble::Content(format!(
                    "it was reduced for pages of {} bytes and holds for no others",
                    heading.unit
                )));
            }
        }
        if !heading.unit.is_power_of_two() || heading.unit > page_size {
            return Err(Trouble::Content(format!(
                "it was recorded in units of {} bytes, and pages of {page_size} bytes are asked for; ask for pages of \
                 that or a larger power of two (--page-size)",
                heading.unit
            )));
        }
        let shift = page_size.trailing_zeros() - heading.unit.trailing_zeros();
        let only = process.map(|number| number.get() as usize - 1);
        let decoder = Decoder::new(only).map_err(Trouble::Read)?;
        Ok(Self {
            heading,
            decoder,
            shift,
            packed: Vec::new(),
            runs: Vec::new(),
            at: 0,
            left: 0,
            ended: false,
        })
    }

    /// The next references that are the same: the page, the kind, how many, at most `limit`.
    #[inline]
    pub fn next(&mut self, input: &mut Input, limit: u64) -> Result<Option<Run>, Trouble> {
        if self.left == 0 {
            if self.at == self.runs.len() && !self.fill(input)? {
                return Ok(None);
            }
            self.left = self.runs[self.at].2;
            self.at += 1;
        }
        let (page, kind, _) = self.runs[self.at - 1];
        let count = self.left.min(limit);
        self.left -= count;
        Ok(Some((page >> self.shift, kind, count)))
    }

    /// Reads blocks until there are runs; `false` at the end.
    fn fill(&mut self, input: &mut Input) -> Result<bool, Trouble> {
        while self.block(input)? {
            if !self.runs.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a block; `false` at the end.
    fn block(&mut self, input: &mut Input) -> Result<bool, Trouble> {
        const TORN: &str = "the trace has no ending: it was torn, or is being written still";
        if self.ended {
            return Ok(false);
        }
        self.runs.clear();
        self.at = 0;
        let torn = |trouble| match trouble {
            Trouble::Content(_) => Trouble::Content(TORN.into()),
            other => other,
        };
        input.bytes(HEADER, &mut self.packed).map_err(torn)?;
        let header = self.packed.first_chunk().expect("as many as were asked for");
        let header = BlockHeader::read(header).map_err(Trouble::Content)?;
        if header.runs == 0 {
            self.ended = true;
            sized(input, &mut self.packed).map_err(torn)?;
            self.decoder.check(&self.packed).map_err(Trouble::Content)?;
            input.bytes(8 + END.len(), &mut self.packed).map_err(torn)?;
            return match self.packed.ends_with(END) {
                true => Ok(false),
                false => Err(Trouble::Content(TORN.into())),
            };
        }
        input.bytes(header.length, &mut self.packed).map_err(torn)?;
        self.decoder.block(&header, &self.packed, &mut self.runs).map_err(Trouble::Content)?;
        Ok(true)
    }
}

/// Reads a text behind its length.
fn sized(input: &mut Input, text: &mut Vec<u8>) -> Result<(), Trouble> {
    input.bytes(4, text)?;
    let length = u32::from_le_bytes([text[0], text[1], text[2], text[3]]) as usize;
    if length > TEXT {
        return Err(Trouble::Content(format!("a text of {length} bytes: it is damaged")));
    }
    input.bytes(length, text)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use proptest::prelude::*;

    fn heading() -> Heading {
        Heading {
            program: vec!["sort".into()],
            recorder: "test".into(),
            unit: 4096,
            kinds: vec!["load".into()],
            reduced: None,
        }
    }

    #[test]
    fn one_process_is_read_by_itself() {
        use crate::trace::{Options, Reader};
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, &heading()).unwrap();
        for (process, page) in [(7, 1), (9, 2), (7, 3), (9, 4)] {
            writer.block(process, 0, [(page, LOAD, 1), (page, STORE, 2)].into_iter()).unwrap();
        }
        writer.finish(Ending::default()).unwrap();
        let of = |number: u32| {
            let options = Options { process: NonZeroU32::new(number), ..Options::default() };
            let file: Box<dyn crate::trace::Seekable> = Box::new(io::Cursor::new(file.clone()));
            let mut reader = Reader::of(Path::new("two"), file, 0, &options).unwrap();
            let mut found = Vec::new();
            while let Some(run) = reader.run(u64::MAX).map_err(|error| error.to_string())? {
                found.push(run);
            }
            Ok::<_, String>(found)
        };
        assert_eq!(of(1).unwrap(), [(1, LOAD, 1), (1, STORE, 2), (3, LOAD, 1), (3, STORE, 2)]);
        assert_eq!(of(2).unwrap(), [(2, LOAD, 1), (2, STORE, 2), (4, LOAD, 1), (4, STORE, 2)]);
        assert!(of(3).unwrap_err().contains("2 processes, and no process 3"), "{:?}", of(3));
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers: Vec<u64>) {
            let mut bytes = vec![0; 10 * numbers.len()];
            let length = numbers.iter().fold(0, |at, &n| at + put(n, &mut bytes[at..]));
            let mut rest = &bytes[..length];
            for n in numbers {
                prop_assert_eq!(get(&mut rest), Some(n));
                prop_assert_eq!(zigzag(unzigzag(n)), n);
            }
            prop_assert_eq!(get(&mut rest), None);
        }

        #[test]
        fn runs_come_back(runs in prop::collection::vec((0u64..1 << 42, 0u64..3, 1u64..1 << 20), 1..200)) {
            let mut file = Vec::new();
            let mut writer = Writer::new(&mut file, &heading()).unwrap();
            writer.block(7, 1, runs.iter().copied()).unwrap();
            writer.block(9, 0, runs.iter().copied()).unwrap();
            let (ending, bytes) = writer.finish(Ending::default()).unwrap();
            prop_assert_eq!(bytes, file.len() as u64);
            prop_assert_eq!(ending.references(), 2 * runs.iter().map(|r| r.2).sum::<u64>());
            prop_assert_eq!((ending.processes, ending.threads, ending.blocks), (2, 2, 2));
            let at = 20 + u32::from_le_bytes(file[16..20].try_into().unwrap()) as usize;
            let (mut decoder, mut found, mut rest) = (Decoder::new(None).unwrap(), Vec::new(), &file[at..]);
            for _ in 0..2 {
                let header = BlockHeader::read(rest.first_chunk().unwrap()).unwrap();
                decoder.block(&header, &rest[HEADER..HEADER + header.length], &mut found).unwrap();
                rest = &rest[HEADER + header.length..];
            }
            let apart: Vec<Run> = runs.iter().map(|&(page, kind, n)| (page ^ 1 << 52, kind, n)).collect();
            prop_assert_eq!(found, [runs, apart].concat());
        }

        #[test]
        fn no_block_makes_the_decoder_panic(runs in 0usize..RUNS, bytes: Vec<u8>) {
            let packed = zstd::bulk::compress(&bytes, 1).unwrap();
            for packed in [&packed, &bytes] {
                let header = BlockHeader { runs, length: packed.len(), process: 1, crc: crc32fast::hash(packed) };
                let _ = Decoder::new(None).unwrap().block(&header, packed, &mut Vec::new());
            }
        }
    }
}
