//! Writes recordings.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use super::executions::{Damaged, Executions, ITEM, Listener};
use super::numbers::{put, zigzag};
use super::{END, EXECUTED, Ending, HEADER, Heading, LEVEL, MAGIC, MAX_PLAIN, Mapping, Origin, Run};

/// Writes a trace block by block.
pub struct Writer<W: Write> {
    out: W,
    offset: u64,
    compressor: zstd::bulk::Compressor<'static>,
    /// The frame, before it is compressed; longer than any.
    plain: Box<[u8]>,
    packed: Vec<u8>,
    crc: crc32fast::Hasher,
    executions: Executions,
    ending: Ending,
    sources: HashSet<(u32, u32)>,
    /// The processes in the order of their first blocks, and where each is.
    processes: Vec<(u32, Origin)>,
    places: HashMap<u32, usize>,
}

impl<W: Write> Writer<W> {
    /// Begins.
    ///
    /// # Errors
    /// When the heading cannot be written.
    pub fn new(mut out: W, heading: &Heading) -> io::Result<Self> {
        let text = serde_json::to_vec(heading)?;
        out.write_all(MAGIC)?;
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(&text)?;
        out.flush()?;
        Ok(Self {
            out,
            offset: (MAGIC.len() + 4 + text.len()) as u64,
            compressor: zstd::bulk::Compressor::new(LEVEL)?,
            plain: vec![0; MAX_PLAIN].into(),
            packed: Vec::with_capacity(MAX_PLAIN + 1024),
            crc: crc32fast::Hasher::new(),
            executions: Executions::default(),
            ending: Ending::default(),
            sources: HashSet::new(),
            processes: Vec::new(),
            places: HashMap::new(),
        })
    }

    /// Writes runs of one thread, 1 to [`super::RUNS`]; pages below 2^60, counts above 0.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn block(
        &mut self,
        process: u32,
        thread: u32,
        runs: impl ExactSizeIterator<Item = Run>,
    ) -> io::Result<()> {
        let count = runs.len() as u32;
        let (mut last, mut sums) = ([0u64; 4], [0u64; 4]);
        let mut at = 0;
        for (page, kind, count) in runs {
            let kind = kind & 3;
            let delta = page.wrapping_sub(last[kind as usize]).cast_signed();
            last[kind as usize] = page;
            sums[kind as usize] += count;
            at += put(zigzag(delta) << 3 | kind << 1 | u64::from(count > 1), &mut self.plain[at..]);
            if count > 1 {
                at += put(count - 2, &mut self.plain[at..]);
            }
        }
        self.ending.runs += u64::from(count);
        self.write(process, thread, count, at, sums)
    }

    /// Writes what one thread executed, 1 to [`pagelab_ring::WORDS`] words of a buffer of the tracer's, and says of each unit that it
    /// names, before it is referenced and perhaps more than once.
    ///
    /// # Errors
    /// When they cannot be written, or mean nothing.
    pub fn executed(
        &mut self,
        process: u32,
        thread: u32,
        words: &[u32],
        unit: impl FnMut(u64),
    ) -> io::Result<()> {
        let mut summing = Summing { runs: 0, sums: [0; 3], unit };
        let packed = self.pack(words, &mut summing);
        let (items, length) = packed.map_err(|_| io::Error::other("what the tracer wrote means nothing"))?;
        let Summing { runs, sums: [loads, stores, fetches], .. } = summing;
        self.ending.runs += runs;
        self.write(process, thread, items | EXECUTED, length, [loads, stores, fetches, 0])
    }

    /// Makes the frame of these words; how many items it has, and bytes.
    fn pack(
        &mut self,
        mut words: &[u32],
        listener: &mut Summing<impl FnMut(u64)>,
    ) -> Result<(u32, usize), Damaged> {
        let (mut items, mut at) = (0, 0);
        self.executions.begin();
        while let Some(item) = self.executions.take(&mut words, listener)? {
            at += item.put(self.executions.was(), &mut self.plain[at..at + ITEM]);
            items += 1;
        }
        self.executions.end(listener);
        Ok((items, at))
    }

    /// Writes a block whose frame is so many bytes of the plain ones.
    fn write(
        &mut self,
        process: u32,
        thread: u32,
        count: u32,
        length: usize,
        sums: [u64; 4],
    ) -> io::Result<()> {
        let plain = &self.plain[..length];
        self.packed.clear();
        self.packed.reserve(zstd::zstd_safe::compress_bound(plain.len()));
        self.compressor.compress_to_buffer(plain, &mut self.packed)?;
        self.add(process, sums);
        let crc = crc32fast::hash(&self.packed);
        for number in [count, self.packed.len() as u32, process, thread, crc] {
            self.out.write_all(&number.to_le_bytes())?;
        }
        self.out.write_all(&self.packed)?;
        // Whatever becomes of this process, the block is there.
        self.out.flush()?;
        self.offset += (HEADER + self.packed.len()) as u64;
        self.crc.update(&crc.to_le_bytes());
        self.ending.blocks += 1;
        self.sources.insert((process, thread));
        Ok(())
    }

    /// Counts references of a process.
    fn add(&mut self, process: u32, [loads, stores, fetches, _]: [u64; 4]) {
        let place = *self.places.entry(process).or_insert_with(|| {
            self.processes.push((process, Origin::default()));
            self.processes.len() - 1
        });
        let origin = &mut self.processes[place].1;
        (origin.loads, origin.stores, origin.fetches) =
            (origin.loads + loads, origin.stores + stores, origin.fetches + fetches);
        let all = &mut self.ending;
        (all.loads, all.stores, all.fetches) =
            (all.loads + loads, all.stores + stores, all.fetches + fetches);
    }

    /// References so far, and bytes.
    pub fn written(&self) -> (u64, u64) {
        (self.ending.references(), self.offset)
    }

    /// Ends the file. `ending` has the program's exit status, the numbers of unrecorded threads and
    /// programs, and the number of threads if it is larger than blocks show. Its `streams` describe
    /// the process of each number in blocks, from 0. Returns the sums, and the number of bytes
    /// written.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn finish(mut self, ending: Ending) -> io::Result<(Ending, u64)> {
        let place = |process: u32| Some(*self.places.get(&process)? as u32);
        let known = |(process, sums): &(u32, Origin)| {
            let about = ending.streams.get(*process as usize)?;
            Some(Origin { process: about.process, program: about.program.clone(), ..sums.clone() })
        };
        let streams = self.processes.iter().filter_map(known).collect();
        let mappings = ending.mappings.into_iter();
        let mappings =
            mappings.filter_map(|mapping| Some(Mapping { process: place(mapping.process)?, ..mapping }));
        let ending = Ending {
            status: ending.status,
            unrecorded_threads: ending.unrecorded_threads,
            unrecorded_programs: ending.unrecorded_programs,
            outside: ending.outside,
            mappings: mappings.collect(),
            streams,
            processes: self.processes.len() as u64,
            threads: ending.threads.max(self.sources.len() as u64),
            fingerprint: self.crc.finalize(),
            ..self.ending
        };
        let text = serde_json::to_vec(&ending)?;
        self.out.write_all(&[0; HEADER])?;
        self.out.write_all(&(text.len() as u32).to_le_bytes())?;
        self.out.write_all(&text)?;
        self.out.write_all(&self.offset.to_le_bytes())?;
        self.out.write_all(END)?;
        self.out.flush()?;
        Ok((ending, self.offset + (HEADER + 4 + text.len() + 8 + END.len()) as u64))
    }
}

/// Sums what words say.
struct Summing<F> {
    runs: u64,
    sums: [u64; 3],
    unit: F,
}

impl<F: FnMut(u64)> Listener for Summing<F> {
    const REFERENCES: bool = false;

    fn references(&mut self, _: &[Run]) {}

    fn sums(&mut self, runs: u64, sums: [u64; 3], times: u64) {
        self.runs += runs * times;
        self.sums.iter_mut().zip(sums).for_each(|(sum, more)| *sum += more * times);
    }

    fn unit(&mut self, unit: u64) {
        (self.unit)(unit);
    }
}
