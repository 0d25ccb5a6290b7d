//! A chunk of a trace that several machines read, each its own: the trace is cut at the same references for whoever
//! reads it. Of records of one length the chunk's alone are read; of lines, what is compressed, and pagelab's own format the
//! file is cut where its bytes are, and decoded up to the chunk.

use anyhow::Result;
use pagelab_model::mrc::chunks::{Chunk, Part};
use pagelab_model::mrc::shards::class_of;
use pagelab_reference::trace::Reader;

use crate::Watch;
use crate::cost::{Cost, NUMBERING};

/// References decoded at a time.
const BATCH: usize = 1 << 14;

/// What distances take beside the numbers of the pages, and what is given back.
const DISTANCES: Cost = Cost { page: 32 + 12, reference: 0 };

/// What a chunk tells, and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// References before the chunk.
    pub begin: u64,
    /// Its distances and its pages.
    pub part: Part,
}

/// Gives the batches of chunk `number` (from 0) of `count` to `take`; the references before it.
///
/// # Errors
/// When the trace cannot be read, and those of `take`.
///
/// # Panics
/// When there is no such chunk.
fn each(
    reader: &mut Reader,
    (number, count): (u32, u32),
    watch: &dyn Watch,
    mut take: impl FnMut(&[u64]) -> Result<()>,
) -> Result<u64> {
    assert!(number < count, "chunk {number} of {count}");
    if let Some(places) = reader.places() {
        let place = |number: u32| (u128::from(places) * u128::from(number) / u128::from(count)) as u64;
        let (begin, end) = (place(number), place(number + 1));
        if begin > 0 {
            reader.go_to(begin)?;
        }
        // The last one reads on to the end, where a torn or cut trace shows.
        let mut left = if number + 1 == count { u64::MAX } else { end - begin };
        let mut batch = Vec::with_capacity(BATCH);
        while left > 0 {
            batch.clear();
            reader.pages(left.min(BATCH as u64) as usize, &mut batch)?;
            if batch.is_empty() {
                break;
            }
            left -= batch.len() as u64;
            watch.go_on()?;
            watch.at((reader.fraction() * f64::from(count) - f64::from(number)).clamp(0.0, 1.0));
            take(&batch)?;
        }
        return Ok(begin);
    }
    each_decoded(reader, (number, count), watch, take)
}

/// As [`each`] of a trace that is decoded from its beginning.
fn each_decoded(
    reader: &mut Reader,
    (number, count): (u32, u32),
    watch: &dyn Watch,
    mut take: impl FnMut(&[u64]) -> Result<()>,
) -> Result<u64> {
    let (mut begin, mut batch) = (0, Vec::with_capacity(BATCH));
    loop {
        // Looked at before it is read: the same for whoever reads the same file.
        let at = ((reader.fraction() * f64::from(count)) as u32).min(count - 1);
        batch.clear();
        reader.pages(BATCH, &mut batch)?;
        if batch.is_empty() || at > number {
            return Ok(begin);
        }
        watch.go_on()?;
        watch.at(reader.fraction() * f64::from(count) / f64::from(number + 1));
        if at < number {
            begin += batch.len() as u64;
        } else {
            take(&batch)?;
        }
    }
}

/// The distances within chunk `number` (from 0) of `count`.
///
/// # Errors
/// When the trace cannot be read, has too many pages or takes too much memory, or `watch` stops it.
///
/// # Panics
/// When there is no such chunk.
pub fn distances(reader: &mut Reader, number: u32, count: u32, watch: &dyn Watch) -> Result<Piece> {
    let cost = DISTANCES.and(&NUMBERING);
    let (mut chunk, mut allowed) = (Chunk::default(), 0);
    let begin = each(reader, (number, count), watch, |batch| {
        let pages = u64::from(chunk.pages());
        if pages >= allowed {
            allowed = pages + (1 << 20);
            cost.allow(allowed, 0, 0)?;
        }
        chunk.take(batch).map_err(|_| anyhow::anyhow!("the trace has 2^32 - 2 different pages or more"))
    })?;
    Ok(Piece { begin, part: chunk.finish() })
}

/// The sampled pages of a trace by their classes, in the order of reference, and all its references.
///
/// # Errors
/// As [`distances`].
pub fn sample(
    reader: &mut Reader,
    rate: f64,
    seed: u64,
    classes: u32,
    watch: &dyn Watch,
) -> Result<(u64, Vec<Vec<u64>>)> {
    let mut list = vec![Vec::new(); classes as usize];
    let (mut references, mut kept, mut allowed) = (0, 0u64, 0);
    each(reader, (0, 1), watch, |batch| {
        references += batch.len() as u64;
        for &page in batch {
            if let Some(class) = class_of(page, rate, seed, classes) {
                list[class as usize].push(page);
                kept += 1;
            }
        }
        if kept >= allowed {
            allowed = kept + (1 << 22);
            Cost { page: 0, reference: 16 }.allow(0, allowed, 0)?;
        }
        Ok(())
    })?;
    Ok((references, list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unwatched;
    use pagelab_model::mrc::chunks::Merge;
    use pagelab_model::mrc::lru::LruCurve;
    use pagelab_reference::Pattern;
    use pagelab_reference::trace::Options;

    #[test]
    fn the_chunks_of_a_file_follow_each_other_and_give_its_curve() {
        let stream = Pattern::Zipf(0.8).stream(3_000, 200_000, 2).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let text: String = stream.references().iter().map(|page| format!("{page}\n")).collect();
        let binary: Vec<u8> =
            stream.references().iter().flat_map(|&page| u64::from(page).to_le_bytes()).collect();
        let packed = zstd::encode_all(&binary[..], 3).unwrap();
        for (name, content) in [("text", text.as_bytes()), ("plain.u64", &binary), ("packed.zst", &packed)] {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let format = if name == "text" { "text" } else { "u64" }.parse().unwrap();
            let options = Options { format: Some(format), ..Options::default() };
            for count in [1, 2, 7, 50] {
                let (mut merge, mut references) = (Merge::default(), 0);
                for number in 0..count {
                    let mut reader = Reader::open(&path, &options).unwrap();
                    let piece = distances(&mut reader, number, count, &Unwatched).unwrap();
                    assert_eq!(piece.begin, references, "{name}, chunk {number} of {count}");
                    references += piece.part.references;
                    merge.take(&piece.part).unwrap();
                }
                assert_eq!(merge.finish(), LruCurve::of(&stream), "{name} in {count} chunks");
            }
        }
    }

    /// A file that counts what is read of it.
    struct Counting(std::io::Cursor<Vec<u8>>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

    impl std::io::Read for Counting {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1.fetch_add(count, std::sync::atomic::Ordering::Relaxed);
            Ok(count)
        }
    }

    impl std::io::Seek for Counting {
        fn seek(&mut self, to: std::io::SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn of_records_of_one_length_a_chunk_reads_its_own() {
        let bytes: Vec<u8> = (0..2_000_000u64).flat_map(|n| (n * n % 4099).to_le_bytes()).collect();
        let options = Options { format: Some("u64".parse().unwrap()), ..Options::default() };
        for number in [0, 5, 15] {
            let read = std::sync::Arc::default();
            let file = Counting(std::io::Cursor::new(bytes.clone()), std::sync::Arc::clone(&read));
            let path = std::path::Path::new("counting");
            let mut reader = Reader::of(path, Box::new(file), bytes.len() as u64, &options).unwrap();
            let piece = distances(&mut reader, number, 16, &Unwatched).unwrap();
            assert_eq!((piece.begin, piece.part.references), (u64::from(number) * 125_000, 125_000));
            let read = read.load(std::sync::atomic::Ordering::Relaxed);
            // The head, by which a format is recognised, and blocks that end behind the chunk.
            assert!((1_000_000..1_700_000).contains(&read), "chunk {number}: {read} bytes");
        }
    }
}
