//! The bytes of a trace: opened, decompressed, cut into lines or records, with the position kept.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes read at a time, and what the format is recognised from.
const BLOCK: usize = 1 << 16;
/// The longest line accepted: memory stays bounded whatever the file is.
const LONGEST_LINE: usize = 4096;

/// A file that counts the bytes taken from it.
struct Counted {
    file: File,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.taken.fetch_add(n as u64, Relaxed);
        Ok(n)
    }
}

/// The decompressed bytes of a file and how far they have been read.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    block: Vec<u8>,
    at: usize,
    ended: bool,
    /// Bytes consumed, decompressed.
    pub byte: u64,
    /// Lines consumed.
    pub line: u64,
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
    /// Opens a file; gzip and zstd are recognised by their first bytes.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let taken = Arc::new(AtomicU64::new(0));
        let counted = Counted { file, taken: Arc::clone(&taken) };
        let mut raw = BufReader::with_capacity(BLOCK, counted);
        let head = raw.fill_buf()?;
        let source: Box<dyn Read + Send> = if head.starts_with(&[0x1f, 0x8b]) {
            Box::new(flate2::bufread::MultiGzDecoder::new(raw))
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Box::new(zstd::stream::read::Decoder::with_buffer(raw)?)
        } else {
            Box::new(raw)
        };
        Ok(Self { source, block: Vec::new(), at: 0, ended: false, byte: 0, line: 0, taken, length })
    }

    /// How much of the file has been taken, 0 to 1 (an empty or unsized file counts as done).
    pub fn fraction(&self) -> f64 {
        if self.length == 0 { 1.0 } else { (self.taken.load(Relaxed) as f64 / self.length as f64).min(1.0) }
    }

    /// The first bytes, up to 64 KiB, and whether they are all; nothing is consumed.
    pub fn head(&mut self) -> io::Result<(&[u8], bool)> {
        while !self.ended && self.block.len() < BLOCK {
            self.fill()?;
        }
        Ok((&self.block[self.at..], self.ended))
    }

    /// Reads more behind what is left of the block.
    fn fill(&mut self) -> io::Result<()> {
        self.block.drain(..self.at);
        self.at = 0;
        let old = self.block.len();
        self.block.resize(old + BLOCK, 0);
        let result = loop {
            match self.source.read(&mut self.block[old..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.block.truncate(old + result.as_ref().copied().unwrap_or(0));
        self.ended = result? == 0;
        Ok(())
    }

    /// The next line without its end; `None` at the end of the file.
    #[inline]
    pub fn line(&mut self) -> Result<Option<&[u8]>, Trouble> {
        let mut searched = 0;
        let length = loop {
            let rest = &self.block[self.at..];
            if let Some(end) = rest[searched..].iter().position(|&b| b == b'\n') {
                break searched + end;
            }
            searched = rest.len();
            if searched > LONGEST_LINE || self.ended {
                break searched;
            }
            self.fill().map_err(Trouble::Read)?;
        };
        if length > LONGEST_LINE {
            return Err(Trouble::Content(format!("the line is longer than {LONGEST_LINE} bytes")));
        }
        if length == 0 && self.at == self.block.len() {
            return Ok(None);
        }
        let start = self.at;
        self.at = (start + length + 1).min(self.block.len());
        self.byte += (self.at - start) as u64;
        self.line += 1;
        let line = &self.block[start..start + length];
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// The next record of `N` bytes; `None` at the end of the file.
    #[inline]
    pub fn record<const N: usize>(&mut self) -> Result<Option<&[u8; N]>, Trouble> {
        while self.block.len() - self.at < N && !self.ended {
            self.fill().map_err(Trouble::Read)?;
        }
        match self.block[self.at..].first_chunk() {
            Some(record) => {
                self.at += N;
                self.byte += N as u64;
                Ok(Some(record))
            }
            None if self.at == self.block.len() => Ok(None),
            None => {
                let left = self.block.len() - self.at;
                Err(Trouble::Content(format!("torn: {left} bytes are left where a record has {N}")))
            }
        }
    }
}
