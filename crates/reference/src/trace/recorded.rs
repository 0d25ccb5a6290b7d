//! pagelab's own format, written by `pagelab trace`: the references of a program, by thread, in blocks that can be read
//! by themselves.
//!
//! ```text
//! file   = magic, length u32, heading JSON, block*, block header of 0, length u32, ending JSON,
//!          u64 offset of that last block header, end magic
//! block  = what u32, compressed length u32, process u32, thread u32, CRC-32 of the compressed bytes u32, zstd frame
//! what   = how many runs; or 2^31 | how many items
//! frame  = runs: varint (zigzag(page − last page of this kind) << 3 | kind << 1 | more), and if more is set
//!          varint (count − 2)
//!        | items, each as varints:
//!          execute   number << 2 | 0                      a block of instructions
//!          replace   position << 2 | 1, zigzag(key − was) its load or store at a position; behind the last: one more
//!          cut       length << 2 | 2                      it has no more than these
//!          define    runs << 3 | 3, runs times: zigzag(key − the one before, 0 for the first), count
//!          go        count << 3 | 7                       so many blocks, each what followed the one before; 1 at least
//!          apart     7, key                               one reference of no block
//! key    = page << 2 | kind: 0 load, 1 store, 2 fetch
//! ```
//!
//! Items say what a program executes. A block is numbered, from 0, as its frame defines it, with what is fetched for it; an
//! execution has these fetches and then the loads and stores of its last one, but for what is replaced and cut behind it, which
//! holds for those that follow (`was` is the key that was there, 0 for one more). Each execution but those gone to says what
//! follows the one before.
//!
//! All numbers are little-endian; a varint has seven bits a byte, the lowest first. A run is `count` references in a row
//! to the same unit (a page, or a line) of the same kind: load, store, fetch. The last pages are 0 at the beginning of
//! each block. Programs are recorded in items, what is made by pagelab itself is written in runs. The ending has the sums; a file
//! without it was torn. Files of before there were items begin as [`BEFORE`] and are read as well.

mod executions;
mod numbers;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use pagelab_ring::WORDS;
use serde::{Deserialize, Serialize};

pub use reader::PROCESS;
pub(super) use reader::References;
pub use writer::Writer;

/// What a file begins with.
pub const MAGIC: &[u8; 16] = b"pagelab trace 2\n";
/// What one without items may begin with.
pub const BEFORE: &[u8; 16] = b"pagelab trace 1\n";
/// What it ends with.
pub const END: &[u8; 16] = b"pagelab trace .\n";
/// Bytes of a block's header.
pub(super) const HEADER: usize = 20;
/// The most runs in a block.
pub const RUNS: usize = (1 << 15) + 1;
/// Set in what a block has, of items.
const EXECUTED: u32 = 1 << 31;
/// The most bytes of a block: a word of the tracer's becomes no more than 6, a run no more than 10 + 4, and zstd adds little.
pub(super) const MAX_PLAIN: usize = 6 * WORDS + (1 << 16);
const _: () = assert!(16 * RUNS < MAX_PLAIN);
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
    /// The window through which it was recorded, in units: references to that many most recent
    /// units are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
}

impl Heading {
    /// The smallest memory, in units, for which a recording through a window holds; 0 for other
    /// recordings.
    pub fn least(&self) -> u32 {
        self.window.map_or(0, |window| window.saturating_mul(WINDOWS))
    }
}

/// The smallest memory for which a recording through a window holds, as a multiple of the window.
pub const WINDOWS: u32 = 4;

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
    /// Runs; of items as many as there are at most: a run of one block may go on in the next one, and counts twice.
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
    /// What a recording through a window lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<Outside>,
    /// What the program had mapped, where that was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<Mapping>,
    /// Whose references there are, in the order of first blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<Origin>,
    /// CRC-32 of the blocks' CRCs: the same for the same references in the same order.
    pub fingerprint: u32,
}

/// The memory that a recording through a window lacks, and statistics of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outside {
    /// Pages of stacks.
    pub stack_pages: u64,
    /// Pages of other memory: around the thread pointer, of devices, and private memory that could
    /// not be moved.
    pub other_pages: u64,
    /// References in the recording that the kernel made for the program.
    pub kernel_references: u64,
    /// Whether the kernel's references were recorded; otherwise they are missing.
    pub kernel: bool,
    /// How often the window was emptied.
    pub emptied: u64,
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

/// Replaces the heading that a file was begun with. The text of the new one must be no longer.
///
/// # Errors
/// When it is longer, or the file cannot be written.
pub fn restate(file: &mut File, before: &Heading, heading: &Heading) -> io::Result<()> {
    let length = serde_json::to_vec(before)?.len();
    let mut text = serde_json::to_vec(heading)?;
    if text.len() > length {
        return Err(io::Error::other("the new heading is longer than the old one"));
    }
    text.resize(length, b' ');
    file.seek(SeekFrom::Start((MAGIC.len() + size_of::<u32>()) as u64))?;
    file.write_all(&text)
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
    let heading = if [MAGIC, BEFORE].contains(&&magic) {
        text_at(&mut file, MAGIC.len() as u64, length)?
    } else {
        None
    };
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

pub use pagelab_ring::words::{FETCH, LOAD, STORE};

/// A run: page, kind ([`LOAD`], [`STORE`], [`FETCH`]), count.
pub type Run = (u64, u64, u64);
