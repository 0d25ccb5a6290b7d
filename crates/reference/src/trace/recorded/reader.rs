//! Reads recordings block by block.

use std::io;

use super::numbers::{get, unzigzag};
use super::{END, Ending, HEADER, Heading, LONGEST, MAGIC, RUNS, Run, TEXT};
use crate::trace::Options;
use crate::trace::input::{Input, Trouble};

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(in crate::trace) struct BlockHeader {
    pub runs: usize,
    pub length: usize,
    pub process: u32,
    pub(super) crc: u32,
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
pub(in crate::trace) struct Decoder {
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
pub(in crate::trace) struct References {
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
