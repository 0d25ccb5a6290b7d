//! The file that QEMU saves a machine to, and where the parts are in it.
//!
//! The file is a migration's stream: all memory, then the devices. Formats and numbers are those of
//! QEMU's `migration/savevm.c` and `migration/ram.c`, which keep them from version to version.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

/// The first bytes of a stream, and its version.
pub const MAGIC: u32 = 0x5145_564d;
pub const VERSION: u32 = 3;

/// Kinds of sections.
pub const END_OF_FILE: u8 = 0;
pub const SECTION_START: u8 = 1;
pub const SECTION_PART: u8 = 2;
pub const SECTION_END: u8 = 3;
pub const SECTION_FULL: u8 = 4;
pub const DESCRIPTION: u8 = 6;
pub const CONFIGURATION: u8 = 7;
pub const FOOTER: u8 = 0x7e;

/// Marks of a record of memory, in the low bits of its address.
pub const ZERO: u64 = 0x02;
pub const SIZES: u64 = 0x04;
pub const PAGE: u64 = 0x08;
pub const END_OF_SECTION: u64 = 0x10;
pub const SAME_BLOCK: u64 = 0x20;

/// Bytes of a page.
pub const PAGE_SIZE: u64 = 4096;
/// The place of a page that holds only zeros.
pub const ZEROS: u64 = u64::MAX;
/// The fewest bytes that a page takes in the file: its address and a zero.
const SHORTEST: u64 = 9;

/// The parts of a machine's file.
#[derive(Debug, PartialEq, Eq)]
pub struct Saved {
    /// The bytes before the first section.
    pub header: Vec<u8>,
    /// The beginning of the memory's section: its blocks and their sizes.
    pub sizes: Vec<u8>,
    /// The memory's section.
    pub section: u32,
    /// Its blocks.
    pub blocks: Vec<Block>,
    /// The sections of all devices.
    pub devices: Vec<u8>,
}

/// A part of the machine's memory, such as `pc.ram`.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// QEMU's name of it.
    pub name: Vec<u8>,
    /// The number of its first page, where those of all blocks are numbered consecutively.
    pub first: u32,
    /// Where the content of each page is in the file, or [`ZEROS`].
    pub places: Vec<u64>,
}

/// Reads a stream and knows where it is.
struct Source<R> {
    reader: R,
    at: u64,
}

impl<R: Read + Seek> Source<R> {
    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn byte(&mut self) -> io::Result<u8> {
        self.take().map(u8::from_be_bytes)
    }

    fn word(&mut self) -> io::Result<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn long(&mut self) -> io::Result<u64> {
        self.take().map(u64::from_be_bytes)
    }

    /// A text whose length is the byte before it.
    fn name(&mut self) -> io::Result<Vec<u8>> {
        let mut name = vec![0; usize::from(self.byte()?)];
        self.reader.read_exact(&mut name)?;
        self.at += name.len() as u64;
        Ok(name)
    }
}

impl Source<BufReader<&File>> {
    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        self.at += bytes;
        self.reader.seek_relative(bytes as i64)
    }
}

/// The error for a file with `what`.
pub fn foreign(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("QEMU's file of the machine has {what}"))
}

impl Saved {
    /// Finds the parts in `file`.
    ///
    /// # Errors
    /// When it cannot be read, or is not such a file.
    pub fn parse(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(1 << 16, file);
        reader.seek(SeekFrom::Start(0))?;
        let mut source = Source { reader, at: 0 };
        if source.word()? != MAGIC || source.word()? != VERSION {
            return Err(foreign("another format"));
        }
        if source.byte()? != CONFIGURATION {
            return Err(foreign("no configuration"));
        }
        let name = source.word()?;
        source.skip(u64::from(name.min(1 << 16)))?;
        let header = source.at;
        if source.byte()? != SECTION_START {
            return Err(foreign("an unknown configuration"));
        }
        let section = source.word()?;
        if source.name()? != b"ram" {
            return Err(foreign("another first section than its memory"));
        }
        // The instance and the version.
        source.skip(8)?;
        let mut blocks = blocks(&mut source, length)?;
        if source.long()? != END_OF_SECTION || !ends(&mut source, section)? {
            return Err(foreign("unknown data after the sizes of its memory"));
        }
        let sizes = header..source.at;
        memory(&mut source, section, &mut blocks)?;
        let devices = source.at..length;
        let part = |range: std::ops::Range<u64>| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            file.read_exact_at(&mut bytes, range.start).map(|()| bytes)
        };
        let mut devices = part(devices)?;
        devices.truncate(devices_end(&devices)?);
        Ok(Self { header: part(0..header)?, sizes: part(sizes)?, section, blocks, devices })
    }

    /// Pages of all blocks.
    pub fn pages(&self) -> u32 {
        self.blocks.iter().map(|block| block.places.len() as u32).sum()
    }
}

/// Reads the names and sizes of the blocks.
fn blocks(source: &mut Source<BufReader<&File>>, length: u64) -> io::Result<Vec<Block>> {
    let total = source.long()?;
    if total & SIZES == 0 {
        return Err(foreign("no sizes of its memory"));
    }
    let mut left = total & !(PAGE_SIZE - 1);
    if left / PAGE_SIZE > length / SHORTEST {
        return Err(foreign("fewer pages than its memory"));
    }
    let (mut blocks, mut first) = (Vec::new(), 0u32);
    while left > 0 {
        let name = source.name()?;
        let bytes = source.long()?;
        if bytes == 0 || bytes > left || bytes % PAGE_SIZE != 0 {
            return Err(foreign("an impossible block of memory"));
        }
        left -= bytes;
        let pages = bytes / PAGE_SIZE;
        let next = u32::try_from(pages).ok().and_then(|pages| first.checked_add(pages));
        let places = vec![ZEROS; pages as usize];
        blocks.push(Block { name, first, places });
        first = next.ok_or_else(|| foreign("too many pages"))?;
    }
    Ok(blocks)
}

/// Whether the section `section` ends here.
fn ends(source: &mut Source<BufReader<&File>>, section: u32) -> io::Result<bool> {
    Ok(source.byte()? == FOOTER && source.word()? == section)
}

/// Finds the pages, up to the end of the memory's section.
fn memory(source: &mut Source<BufReader<&File>>, section: u32, blocks: &mut [Block]) -> io::Result<()> {
    let mut block = None;
    loop {
        let kind = source.byte()?;
        if !matches!(kind, SECTION_PART | SECTION_END) || source.word()? != section {
            return Err(foreign("an unknown section within its memory"));
        }
        loop {
            let record = source.long()?;
            let (address, marks) = (record & !(PAGE_SIZE - 1), record & (PAGE_SIZE - 1));
            if marks & END_OF_SECTION != 0 {
                break;
            }
            if marks & SAME_BLOCK == 0 {
                let name = source.name()?;
                block = blocks.iter().position(|block| block.name == name);
            }
            let block = block.ok_or_else(|| foreign("a page of an unknown block"))?;
            let place = blocks[block].places.get_mut((address / PAGE_SIZE) as usize);
            let place = place.ok_or_else(|| foreign("a page outside its block"))?;
            match marks & !SAME_BLOCK {
                ZERO if source.byte()? == 0 => *place = ZEROS,
                PAGE => {
                    *place = source.at;
                    source.skip(PAGE_SIZE)?;
                }
                _ => return Err(foreign("a page in an unknown form")),
            }
        }
        if !ends(source, section)? {
            return Err(foreign("a section without end"));
        }
        if kind == SECTION_END {
            return Ok(());
        }
    }
}

/// Where the sections of devices end: at the mark of the end, which a description in JSON follows.
fn devices_end(bytes: &[u8]) -> io::Result<usize> {
    if bytes.first() != Some(&SECTION_FULL) {
        return Err(foreign("no devices"));
    }
    let wrong = || foreign("no end");
    // The description is the last part: its kind, its length, and a JSON object.
    (1..bytes.len())
        .rev()
        .find(|&at| {
            let length = bytes.get(at + 1..at + 5).and_then(|length| length.try_into().ok());
            bytes[at] == DESCRIPTION
                && bytes.get(at + 5) == Some(&b'{')
                && length.is_some_and(|length| u32::from_be_bytes(length) as usize == bytes.len() - at - 5)
        })
        .filter(|&at| bytes[at - 1] == END_OF_FILE)
        .map(|at| at - 1)
        .ok_or_else(wrong)
}
