//! In folios of which size the pages of a mapping are: `/proc/self/pagemap` says in which frame a
//! page is, and `/proc/kpageflags` which frames make a compound page
//! (Documentation/admin-guide/mm/pagemap.rst). Both say it to root alone.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use pagelab_experiment::build::{Sheet, metrics};
use pagelab_experiment::{Recorder, Result, metrics, tables};
use pagelab_kernel::region::Region;

const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
const HEAD: u64 = 1 << 15;
const TAIL: u64 = 1 << 16;
/// Frames whose flags are read at once. Folios lie aligned to their size, so that none of up to so
/// many crosses two blocks.
const BLOCK: usize = 1 << 11;
/// Pages of the mapping that are looked up at once.
const PAGES: usize = 1 << 12;

/// Base pages of a mapping that are in memory, by the size of their folio in base pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folios {
    pages: BTreeMap<usize, u64>,
    page_size: u64,
}

impl Folios {
    /// Looks; `None` where this user is not told.
    pub fn of(region: &Region) -> Option<Self> {
        let pagemap = File::open("/proc/self/pagemap").ok()?;
        let flags = File::open("/proc/kpageflags").ok()?;
        let mut new = Self { pages: BTreeMap::new(), page_size: region.page_size() as u64 };
        let first = region.base() as usize / region.page_size();
        let mut entries = vec![0; PAGES * 8];
        let (mut block, mut sizes) = (None, vec![0; BLOCK]);
        let mut page = 0;
        while page < region.pages() {
            let count = PAGES.min(region.pages() - page);
            pagemap.read_exact_at(&mut entries[..count * 8], (first + page) as u64 * 8).ok()?;
            for entry in words(&entries[..count * 8]).filter(|entry| entry & PRESENT != 0) {
                let frame = entry & FRAME;
                if frame == 0 {
                    return None;
                }
                let of = frame / BLOCK as u64;
                if block != Some(of) {
                    folios(&read(&flags, of)?, &mut sizes);
                    block = Some(of);
                }
                *new.pages.entry(sizes[frame as usize % BLOCK]).or_default() += 1;
            }
            page += count;
        }
        Some(new)
    }

    /// Pages in folios of more than one.
    fn large(&self) -> u64 {
        self.pages.range(2..).map(|(_, pages)| pages).sum()
    }

    /// Records both looks at a mapping of `bytes` bytes, before the first reference and after the last.
    ///
    /// # Errors
    /// When they cannot be kept.
    pub fn report(
        first: &Option<Self>,
        last: &Option<Self>,
        bytes: u64,
        recorder: &mut dyn Recorder,
    ) -> Result<()> {
        let share = |folios: &Option<Self>| {
            folios.as_ref().map(|folios| folios.large() as f64 * folios.page_size as f64 / bytes as f64)
        };
        metrics(
            recorder,
            [(metrics::FOLIO_COVERAGE_BEFORE, share(first)), (metrics::FOLIO_COVERAGE_AFTER, share(last))],
        )?;
        let (Some(first), Some(last)) = (first, last) else { return Ok(()) };
        let mut sheet = Sheet::new(tables::folios::TABLE);
        let sizes: BTreeMap<usize, ()> =
            first.pages.keys().chain(last.pages.keys()).map(|&size| (size, ())).collect();
        for &size in sizes.keys() {
            let of = |folios: &Self| Some(folios.pages.get(&size).copied().unwrap_or(0) as f64);
            let bytes = size as u64 * first.page_size;
            sheet.named([&format!("{}k", bytes >> 10)], [Some(bytes as f64), of(first), of(last)]);
        }
        sheet.record(recorder)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_ne_bytes(*word))
}

/// The flags of a block of frames; at the end of memory there are fewer.
fn read(flags: &File, block: u64) -> Option<Vec<u64>> {
    let mut bytes = vec![0; BLOCK * 8];
    let mut length = 0;
    while length < bytes.len() {
        match flags.read_at(&mut bytes[length..], block * BLOCK as u64 * 8 + length as u64) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(words(&bytes).collect())
}

/// For each frame of a block the size of its folio in base pages.
fn folios(flags: &[u64], sizes: &mut [usize]) {
    let mut at = 0;
    while at < flags.len() {
        let tails = match flags[at] & HEAD {
            0 => 0,
            _ => flags[at + 1..].iter().take_while(|flags| **flags & TAIL != 0).count(),
        };
        sizes[at..=at + tails].fill(tails + 1);
        at += tails + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folios_begin_with_a_head() {
        let mut sizes = [0; 8];
        folios(&[0, HEAD, TAIL, 0, HEAD, TAIL, TAIL, TAIL], &mut sizes);
        assert_eq!(sizes, [1, 2, 2, 1, 4, 4, 4, 4]);
    }
}
