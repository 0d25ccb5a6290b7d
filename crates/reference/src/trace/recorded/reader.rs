//! Reads recordings block by block.

use std::io;

use pagelab_ring::WORDS;

use super::executions::{Executions, Listener};
use super::numbers::{get, unzigzag};
use super::{BEFORE, END, EXECUTED, Ending, HEADER, Heading, MAGIC, MAX_PLAIN, RUNS, Run, TEXT};
use crate::trace::Options;
use crate::trace::input::{Input, Trouble};

/// A block's header.
#[derive(Clone, Copy, Debug)]
pub(in crate::trace) struct BlockHeader {
    /// Runs, or items.
    pub count: usize,
    /// Whether they are items.
    pub executed: bool,
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
        let (count, executed) = ((word(0) & !EXECUTED) as usize, word(0) & EXECUTED != 0);
        let new = Self { count, executed, length: word(4) as usize, process: word(8), crc: word(16) };
        let (most, what) = if executed { (WORDS, "items") } else { (RUNS, "runs") };
        if count > most || (executed && count == 0) || new.length > MAX_PLAIN {
            return Err(format!("it is damaged: a block of {count} {what} in {} bytes", new.length));
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
    /// Of a block of items: what was executed, its bytes, and how many of them were followed.
    executions: Executions,
    plain: Vec<u8>,
    at: usize,
    /// What sets its pages apart from those of other processes, and whether its runs are given.
    apart: u64,
    wanted: bool,
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
            executions: Executions::default(),
            plain: Vec::new(),
            at: 0,
            apart: 0,
            wanted: false,
            seen: Ending::default(),
        })
    }

    /// Appends the runs of a block to `runs`, of one process those of its blocks alone; else its pages are numbered apart
    /// from those of other processes. What items say is given by [`Decoder::more`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn block(&mut self, header: &BlockHeader, packed: &[u8], runs: &mut Vec<Run>) -> Result<(), String> {
        if crc32fast::hash(packed) != header.crc {
            return Err("it is damaged: the checksum of a block differs".into());
        }
        let plain = self.decompressor.decompress(packed, MAX_PLAIN);
        let plain = plain.map_err(|error| format!("the block cannot be decompressed ({error})"))?;
        let number = self.processes.iter().position(|&process| process == header.process);
        if number.is_none() {
            self.processes.push(header.process);
        }
        let number = number.unwrap_or(self.processes.len() - 1);
        if number >= PROCESSES {
            return Err(format!(
                "it has more than {PROCESSES} processes, the most that a reader can distinguish"
            ));
        }
        let apart = if self.only.is_some() { 0 } else { (number as u64) << PROCESS };
        let wanted = self.only.is_none_or(|only| only == number);
        self.seen.blocks += 1;
        self.crc.update(&header.crc.to_le_bytes());
        if header.executed {
            (self.plain, self.at, self.apart, self.wanted) = (plain, 0, apart, wanted);
            self.executions.begin();
            return Ok(());
        }
        let (mut rest, mut last) = (&plain[..], [0u64; 4]);
        for _ in 0..header.count {
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
        self.seen.runs += header.count as u64;
        Ok(())
    }

    /// Appends what is next of a block of items to `runs`, some [`RUNS`] of them; `false` where there was nothing left of it.
    ///
    /// # Errors
    /// When items mean nothing.
    pub fn more(&mut self, runs: &mut Vec<Run>) -> Result<bool, String> {
        if self.plain.is_empty() {
            return Ok(false);
        }
        let begun = runs.len();
        let mut rest = &self.plain[self.at..];
        let mut giving = Giving { seen: &mut self.seen, runs, begun, apart: self.apart, wanted: self.wanted };
        let mut over = false;
        while !over && giving.runs.len() < begun + RUNS {
            over = self.executions.take(&mut rest, &mut giving).map_err(|_| damaged())?.is_none();
        }
        self.at = self.plain.len() - rest.len();
        if over {
            self.executions.end(&mut giving);
            self.plain.clear();
        }
        Ok(true)
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
            return Err(format!(
                "it has {processes}, but not process {} (pagelab show lists them)",
                only + 1
            ));
        }
        Ok(ending)
    }
}

fn damaged() -> String {
    "it is damaged: a block does not contain references".to_owned()
}

/// Gives what items say as runs.
struct Giving<'a> {
    seen: &'a mut Ending,
    runs: &'a mut Vec<Run>,
    /// How many there were before.
    begun: usize,
    apart: u64,
    wanted: bool,
}

impl Listener for Giving<'_> {
    const REFERENCES: bool = true;

    #[inline]
    fn references(&mut self, new: &[Run]) {
        let [first, rest @ ..] = new else { return };
        if !self.wanted {
            return;
        }
        let apart = |&(unit, kind, count): &Run| (unit ^ self.apart, kind, count);
        let (goes_on, first) = (self.runs.len() > self.begun, apart(first));
        match self.runs.last_mut() {
            Some(last) if goes_on && (last.0, last.1) == (first.0, first.1) => last.2 += first.2,
            _ => self.runs.push(first),
        }
        self.runs.extend(rest.iter().map(apart));
    }

    fn sums(&mut self, runs: u64, [loads, stores, fetches]: [u64; 3], times: u64) {
        let seen = &mut *self.seen;
        seen.runs = seen.runs.saturating_add(runs * times);
        (seen.loads, seen.stores) = (seen.loads + loads * times, seen.stores + stores * times);
        seen.fetches = seen.fetches.saturating_add(fetches.saturating_mul(times));
    }

    fn unit(&mut self, _: u64) {}
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
        let Options { page_size, reduced, window, process, .. } = *options;
        let mut text = Vec::new();
        input.bytes(MAGIC.len(), &mut text)?;
        if text != MAGIC && text != BEFORE {
            return Err(Trouble::Content("it does not begin like a trace of pagelab".into()));
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
        if let Some(pages) = heading.window
            && (!window || heading.unit != page_size)
        {
            return Err(Trouble::Content(format!(
                "it was recorded through a window of {pages} pages of {} bytes: only replay, mrc, report and run command \
                accept it, for memory of {} pages and more",
                heading.unit,
                heading.least()
            )));
        }
        if !heading.unit.is_power_of_two() || heading.unit > page_size {
            return Err(Trouble::Content(format!(
                "it was recorded in units of {} bytes, but pages have {page_size} bytes\nhint: use \
                --page-size with that or a larger power of two",
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
        loop {
            self.runs.clear();
            self.at = 0;
            if !self.decoder.more(&mut self.runs).map_err(Trouble::Content)? && !self.block(input)? {
                return Ok(false);
            }
            if !self.runs.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Reads a block; `false` at the end.
    fn block(&mut self, input: &mut Input) -> Result<bool, Trouble> {
        const TORN: &str = "the trace has no end: it is cut, or still being written";
        if self.ended {
            return Ok(false);
        }
        let torn = |trouble| match trouble {
            Trouble::Content(_) => Trouble::Content(TORN.into()),
            other => other,
        };
        input.bytes(HEADER, &mut self.packed).map_err(torn)?;
        let header = self.packed.first_chunk().expect("as many as were asked for");
        let header = BlockHeader::read(header).map_err(Trouble::Content)?;
        if header.count == 0 {
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
