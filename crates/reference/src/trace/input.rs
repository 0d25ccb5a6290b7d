//! The bytes of a trace: opened, decompressed, cut into lines or records, with the position kept.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What the format is recognised from.
const HEAD: usize = 1 << 16;
/// Bytes read at a time: few system calls, and the block stays in the processor's second cache.
const BLOCK: usize = 1 << 18;
/// Bytes that a short file is read by: more than the longest line.
const SHORT: usize = 1 << 14;
/// The longest line accepted: memory stays bounded whatever the file is.
const MAX_LINE: usize = 4096;

/// A file that can be read from any byte on.
pub trait Seekable: Read + Seek + Send {}

impl<F: Read + Seek + Send> Seekable for F {}

/// What a trace is read from.
enum Source {
    /// From its beginning on: a pipe.
    Once(Box<dyn Read + Send>),
    /// A file.
    Anywhere(Box<dyn Seekable>),
}

/// A file, or standard input, that counts the bytes taken from it.
struct Counted {
    source: Source,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = match &mut self.source {
            Source::Once(pipe) => pipe.read(buffer)?,
            Source::Anywhere(file) => file.read(buffer)?,
        };
        self.taken.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let byte = match &mut self.source {
            Source::Once(_) => return Err(io::ErrorKind::NotSeekable.into()),
            Source::Anywhere(file) => file.seek(to)?,
        };
        self.taken.store(byte, Relaxed);
        Ok(byte)
    }
}

/// The content, block by block.
enum Content {
    Plain(BufReader<Counted>),
    Decompressed(Box<dyn Read + Send>),
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buffer),
            Self::Decompressed(decoder) => decoder.read(buffer),
        }
    }
}

/// The decompressed bytes of a file and how far they have been read.
pub(super) struct Input {
    content: Content,
    block: Box<[u8]>,
    /// What is left of the block: from here…
    at: usize,
    /// … up to here.
    end: usize,
    ended: bool,
    /// Bytes consumed, decompressed.
    pub byte: u64,
    /// Lines consumed.
    pub line: u64,
    /// Whether the last of them had an end.
    pub line_ended: bool,
    taken: Arc<AtomicU64>,
    length: u64,
}

/// What [`Input::line`] and [`Input::record`] may meet besides content.
pub(super) enum Trouble {
    /// The operating system or the decompressor refused.
    Read(io::Error),
    /// The content is wrong.
    Content(String),
}

impl Input {
    /// Opens a file, `-` for standard input; gzip, zstd, bzip2 and xz are recognised by their first bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::of(Source::Once(Box::new(io::stdin())), 0);
        }
        let file = File::open(path)?;
        // Of a pipe by name: 0.
        let length = file.metadata()?.len();
        Self::of(Source::Anywhere(Box::new(file)), length)
    }

    /// The same of what somebody else opened, of `length` bytes.
    pub fn of_file(file: Box<dyn Seekable>, length: u64) -> io::Result<Self> {
        Self::of(Source::Anywhere(file), length)
    }

    fn of(source: Source, length: u64) -> io::Result<Self> {
        let taken = Arc::new(AtomicU64::new(0));
        let counted = Counted { source, taken: Arc::clone(&taken) };
        let room = |most: usize| if length > 0 && length < SHORT as u64 { SHORT } else { most };
        let mut raw = BufReader::with_capacity(room(HEAD), counted);
        let head = raw.fill_buf()?;
        let gzip = head.starts_with(&[0x1f, 0x8b]);
        let zstd = head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let bzip2 = head.starts_with(b"BZh");
        let xz = head.starts_with(b"\xfd7zXZ\0");
        let content = if gzip {
            Content::Decompressed(Box::new(flate2::bufread::MultiGzDecoder::new(raw)))
        } else if zstd {
            Content::Decompressed(Box::new(zstd::stream::read::Decoder::with_buffer(raw)?))
        } else if bzip2 {
            Content::Decompressed(Box::new(bzip2::bufread::MultiBzDecoder::new(raw)))
        } else if xz {
            Content::Decompressed(Box::new(lzma_rust2::XzReader::new(raw, true)))
        } else {
            Content::Plain(raw)
        };
        let block = if matches!(content, Content::Plain(_)) { room(BLOCK) } else { BLOCK };
        Ok(Self {
            content,
            block: vec![0; block].into(),
            at: 0,
            end: 0,
            ended: false,
            byte: 0,
            line: 0,
            line_ended: true,
            taken,
            length,
        })
    }

    /// How much of the file has been taken, 0 to 1 (an empty or unsized file counts as done).
    pub fn fraction(&self) -> f64 {
        if self.length == 0 { 1.0 } else { (self.taken.load(Relaxed) as f64 / self.length as f64).min(1.0) }
    }

    /// The bytes of the content, where that can be known before it is read.
    pub fn length(&self) -> Option<u64> {
        (self.length > 0 && matches!(self.content, Content::Plain(_))).then_some(self.length)
    }

    /// Goes on at this byte of the content.
    ///
    /// # Errors
    /// Where that cannot be: of what is compressed, or comes through a pipe.
    pub fn go_to(&mut self, byte: u64) -> io::Result<()> {
        let Content::Plain(file) = &mut self.content else { return Err(io::ErrorKind::NotSeekable.into()) };
        file.seek(SeekFrom::Start(byte))?;
        (self.at, self.end, self.ended, self.byte) = (0, 0, false, byte);
        Ok(())
    }

    /// The first bytes, 64 KiB or more, and whether they are all; nothing is consumed.
    pub fn head(&mut self) -> io::Result<(&[u8], bool)> {
        while !self.ended && self.end < HEAD.min(self.block.len()) {
            self.fill()?;
        }
        Ok((&self.block[self.at..self.end], self.ended))
    }

    /// Passes over bytes that were seen in the head.
    pub fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.byte += bytes as u64;
    }

    /// Reads more behind what is left of the block, which must be less than all of it.
    fn fill(&mut self) -> io::Result<()> {
        self.block.copy_within(self.at..self.end, 0);
        self.end -= self.at;
        self.at = 0;
        let read = loop {
            match self.content.read(&mut self.block[self.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read;
        self.ended = read == 0;
        Ok(())
    }

    /// The next line without its end; `None` at the end of the file.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Trouble> {
        let mut searched = 0;
        let length = loop {
            let rest = &self.block[self.at..self.end];
            if let Some(end) = rest[searched..].iter().position(|&b| b == b'\n') {
                break searched + end;
            }
            searched = rest.len();
            if searched > MAX_LINE || self.ended {
                break searched;
            }
            self.fill().map_err(Trouble::Read)?;
        };
        if length > MAX_LINE {
            return Err(Trouble::Content(format!("the line is longer than {MAX_LINE} bytes")));
        }
        if length == 0 && self.at == self.end {
            return Ok(None);
        }
        let start = self.at;
        self.line_ended = start + length < self.end;
        self.at = start + length + usize::from(self.line_ended);
        self.byte += (self.at - start) as u64;
        self.line += 1;
        let line = &self.block[start..start + length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// The next records of `size` bytes, at most `limit` of them and as many as are at hand; none at the end
    /// of the file.
    #[inline]
    pub fn records(&mut self, size: usize, limit: usize) -> Result<&[u8], Trouble> {
        while self.end - self.at < size && !self.ended {
            self.fill().map_err(Trouble::Read)?;
        }
        let left = self.end - self.at;
        let count = (left / size).min(limit);
        if count == 0 && left > 0 {
            return Err(Trouble::Content(format!("torn: {left} bytes are left where a record has {size}")));
        }
        let start = self.at;
        self.at += count * size;
        self.byte += (count * size) as u64;
        Ok(&self.block[start..self.at])
    }

    /// Makes `bytes` the next `length` bytes of the content, which must be there.
    pub fn bytes(&mut self, length: usize, bytes: &mut Vec<u8>) -> Result<(), Trouble> {
        bytes.clear();
        while bytes.len() < length {
            let part = self.records(1, length - bytes.len())?;
            if part.is_empty() {
                return Err(Trouble::Content(format!("torn: {} bytes are there of {length}", bytes.len())));
            }
            bytes.extend_from_slice(part);
        }
        Ok(())
    }

    /// The last `length` bytes that were consumed, which are still at hand.
    pub fn taken(&self, length: usize) -> &[u8] {
        &self.block[self.at - length..self.at]
    }
}
