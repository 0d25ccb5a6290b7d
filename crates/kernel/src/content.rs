//! What pages are filled with: neither alike nor same-filled unless that is asked for, and
//! compressible as asked.

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::path::Path;

use rustix::param::page_size;

/// As much of a file is read as content, and then begun anew.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// Fills pages.
#[derive(Clone, Debug)]
pub enum Filler {
    /// So many pseudo-random words, then one word again and again.
    Words(usize),
    /// Zeros.
    Zero,
    /// These words, again and again; not empty.
    Repeated(Vec<u64>),
}

impl Default for Filler {
    fn default() -> Self {
        Self::Words(words() / 2)
    }
}

impl Filler {
    /// Pages of which this share compresses away.
    pub fn compressible(share: f64) -> Self {
        Self::Words(((1.0 - share) * words() as f64).round() as usize)
    }

    /// Pages with the content of a file, at most [`MAX_FILE_BYTES`] of it, again and again.
    ///
    /// # Errors
    /// When it cannot be read, or is empty.
    pub fn file(path: &Path) -> io::Result<Self> {
        Ok(Self::Repeated(read(path)?))
    }

    /// Writes the content of page number `page`.
    pub fn fill(&self, page: u64, content: &mut [u64]) {
        match self {
            Self::Words(random) => pseudo_random(page, content, *random),
            Self::Zero => content.fill(0),
            Self::Repeated(words) => {
                let mut at = (page as usize).wrapping_mul(content.len()) % words.len();
                for word in content {
                    *word = words[at];
                    at = if at + 1 == words.len() { 0 } else { at + 1 };
                }
            }
        }
    }
}

/// Words of a page.
fn words() -> usize {
    page_size() / mem::size_of::<u64>()
}

/// The file's words; what is left of the last one is zeros.
fn read(path: &Path) -> io::Result<Vec<u64>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    if bytes.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the file is empty"));
    }
    bytes.resize(bytes.len().next_multiple_of(mem::size_of::<u64>()), 0);
    let (words, _) = bytes.as_chunks();
    Ok(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
}

/// The first words are pseudo-random, `random` of them, and differ from page to page; the others
/// are one word, another one in each page.
fn pseudo_random(page: u64, content: &mut [u64], random: usize) {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    let mut state = (page + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let random = random.min(content.len());
    for word in &mut content[..random] {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        *word = z ^ (z >> 31);
    }
    content[random..].fill(page | 1 << 63);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn pages_are_neither_alike_nor_same_filled() {
        let mut seen = HashSet::new();
        for page in 0..1000 {
            let mut content = [0; 512];
            Filler::default().fill(page, &mut content);
            assert!(content.iter().any(|&w| w != content[0]));
            assert!(seen.insert(content.to_vec()));
        }
    }

    #[test]
    fn contents_are_what_they_are_called() {
        let page = |filler: Filler, page| {
            let mut words = vec![1; words()];
            filler.fill(page, &mut words);
            words
        };
        let different = |words: &[u64]| words.iter().collect::<HashSet<_>>().len();
        let all = words();
        assert_eq!(different(&page(Filler::compressible(0.0), 7)), all);
        assert_eq!(different(&page(Filler::compressible(0.75), 7)), all / 4 + 1);
        assert_eq!(different(&page(Filler::compressible(1.0), 7)), 1);
        assert_eq!(page(Filler::Zero, 7), vec![0; all]);
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Filler::file(file.path()).is_err(), "an empty file");
        std::fs::write(file.path(), b"abcdefgh12345678x").unwrap();
        let words = page(Filler::file(file.path()).unwrap(), 1);
        let wanted = [*b"abcdefgh", *b"12345678", *b"x\0\0\0\0\0\0\0"].map(u64::from_ne_bytes);
        assert_eq!(
            &words[..4],
            [wanted[all % 3], wanted[(all + 1) % 3], wanted[(all + 2) % 3], wanted[all % 3]]
        );
    }
}
