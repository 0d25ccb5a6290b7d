//! Where evicted pages are: in memory, compressed, a page of zeroes as nothing at all.

use std::io;

use zstd::bulk::{Compressor, Decompressor};

/// The fastest that zstd documents as ordinary: a page of 4 KiB takes a few microseconds.
const LEVEL: i32 = -5;

/// A page that is stored.
#[derive(Debug)]
enum Stored {
    Zeroes,
    /// What compresses to no less than itself.
    Plain(Box<[u8]>),
    Packed(Box<[u8]>),
}

/// The pages.
pub struct Store {
    pages: Vec<Option<Stored>>,
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    packed: Vec<u8>,
    /// Bytes that stored pages take now.
    bytes: u64,
    peak: u64,
    count: u64,
}

impl Store {
    /// An empty store for the pages `0..pages` of `page_size` bytes.
    ///
    /// # Errors
    /// When zstd has no memory.
    pub fn new(pages: u32, page_size: usize) -> io::Result<Self> {
        Ok(Self {
            pages: (0..pages).map(|_| None).collect(),
            compressor: Compressor::new(LEVEL)?,
            decompressor: Decompressor::new()?,
            packed: Vec::with_capacity(zstd::zstd_safe::compress_bound(page_size)),
            bytes: 0,
            peak: 0,
            count: 0,
        })
    }

    /// There are `pages` pages from now on.
    pub fn grow(&mut self, pages: u32) {
        self.pages.resize_with(pages as usize, || None);
    }

    /// Most bytes that stored pages took at once.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Bytes that they take now.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Pages that are stored now.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Stores a page that is not stored.
    ///
    /// # Errors
    /// When it cannot be compressed.
    pub fn put(&mut self, page: u32, content: &[u8]) -> io::Result<()> {
        let stored = if content.iter().all(|&byte| byte == 0) {
            Stored::Zeroes
        } else {
            self.packed.clear();
            self.compressor.compress_to_buffer(content, &mut self.packed)?;
            match self.packed.len() < content.len() {
                true => Stored::Packed(self.packed.as_slice().into()),
                false => Stored::Plain(content.into()),
            }
        };
        self.bytes += stored.bytes();
        self.peak = self.peak.max(self.bytes);
        self.count += 1;
        self.pages[page as usize] = Some(stored);
        Ok(())
    }

    /// Takes a page out into `content`; whether it was stored. One of zeroes is `Some(false)`, and nothing is written.
    ///
    /// # Errors
    /// When it cannot be decompressed.
    pub fn take(&mut self, page: u32, content: &mut [u8]) -> io::Result<Option<bool>> {
        let Some(stored) = self.pages[page as usize].take() else { return Ok(None) };
        self.bytes -= stored.bytes();
        self.count -= 1;
        match stored {
            Stored::Zeroes => return Ok(Some(false)),
            Stored::Plain(plain) => content.copy_from_slice(&plain),
            Stored::Packed(packed) => {
                let length = self.decompressor.decompress_to_buffer(&packed, content)?;
                if length != content.len() {
                    return Err(io::Error::other("a stored page is shorter than it was"));
                }
            }
        }
        Ok(Some(true))
    }

    /// Forgets a page, which holds nothing any more.
    pub fn forget(&mut self, page: u32) {
        if let Some(stored) = self.pages[page as usize].take() {
            self.bytes -= stored.bytes();
            self.count -= 1;
        }
    }
}

impl Stored {
    fn bytes(&self) -> u64 {
        match self {
            Self::Zeroes => 0,
            Self::Plain(bytes) | Self::Packed(bytes) => bytes.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stored_pages_read_back(pages in proptest::collection::vec((0usize..4096, any::<u8>()), 1..20)) {
            let mut store = Store::new(20, 4096).unwrap();
            let content = |n: usize| -> Vec<u8> {
                let (length, seed) = pages[n];
                (0..4096).map(|at| if at < length { ((at * at) >> 3) as u8 ^ seed } else { 0 }).collect()
            };
            for n in 0..pages.len() {
                store.put(n as u32, &content(n)).unwrap();
            }
            prop_assert!(store.bytes() <= 4096 * pages.len() as u64);
            for n in 0..pages.len() {
                let mut got = vec![0; 4096];
                let there = store.take(n as u32, &mut got).unwrap();
                prop_assert!(there.is_some() && got == content(n));
                prop_assert_eq!(store.take(n as u32, &mut got).unwrap(), None);
            }
            prop_assert_eq!((store.bytes(), store.count()), (0, 0));
        }
    }
}
