//! Samples of the calling process and its descendants: where the kernel is (the software clock), or
//! where a tracepoint is met and with what.
//!
//! Every processor is sampled; the records of forks tell which samples are the descendants'. (To
//! have the events inherited instead would add their copying to every fork that is measured.)

use std::collections::{HashMap, HashSet};
use std::io;

use super::ring::Ring;
use super::{
    Attributes, CPU_CLOCK, Event, FLAG_DISABLED, FLAG_EXCLUDE_CALLCHAIN_USER, FLAG_FREQUENCY, FLAG_TASK,
    IOCTL_DISABLE, IOCTL_ENABLE, SAMPLE_CALLCHAIN, SAMPLE_IP, SAMPLE_RAW, SAMPLE_TID, SAMPLE_TIME, SOFTWARE,
    TRACEPOINT, cpus, tracefs,
};

/// Bytes of each processor's ring.
const RING: usize = 4 << 20;
/// Record types.
const LOST: u32 = 2;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
/// Call-chain entries from here up mark whose the next are; this one: the kernel's.
const CONTEXT: u64 = u64::MAX - 4095;

/// One sample of a descendant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The thread.
    pub thread: u32,
    /// When, ns of the kernel's own clock.
    pub time: u64,
    /// Kernel addresses, the innermost first; empty when it was in user mode.
    pub chain: Vec<u64>,
    /// What the tracepoint recorded; empty of the clock.
    pub raw: Vec<u8>,
}

/// Everything sampled.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The samples of the descendants, ascending by time.
    pub samples: Vec<Sample>,
    /// Records that the kernel had no room for.
    pub lost: u64,
}

/// Sampling that is on.
#[derive(Debug)]
pub struct Sampling {
    rings: Vec<Ring>,
    family: HashMap<u32, u32>,
    samples: Vec<(u32, Sample)>,
    lost: u64,
}

impl Sampling {
    /// Begins to sample `frequency` times a second on each processor.
    ///
    /// # Errors
    /// When the kernel refuses (see [`super::REMEDY`]).
    pub fn clock(frequency: u32) -> io::Result<Self> {
        Self::start(
            Attributes {
                kind: SOFTWARE,
                config: CPU_CLOCK,
                period_or_frequency: u64::from(frequency),
                flags: FLAG_FREQUENCY,
                ..Attributes::default()
            },
            &[],
        )
    }

    /// Begins to take every occurrence of the first of `tracepoints`, and of the others without their
    /// call chains mattering; which one a sample is of, `common_type` in its first two bytes says.
    ///
    /// # Errors
    /// When the kernel refuses or has no such tracepoint.
    pub fn tracepoints(tracepoints: &[&str]) -> io::Result<Self> {
        let numbers: Option<Vec<u64>> = tracepoints.iter().map(|name| tracefs::number(name)).collect();
        let numbers =
            numbers.ok_or_else(|| io::Error::other("the kernel does not show these tracepoints"))?;
        let (&first, others) = numbers.split_first().ok_or_else(|| io::Error::other("no tracepoints"))?;
        Self::start(
            Attributes {
                kind: TRACEPOINT,
                config: first,
                period_or_frequency: 1,
                sample: SAMPLE_RAW,
                ..Attributes::default()
            },
            others,
        )
    }

    fn start(attributes: Attributes, others: &[u64]) -> io::Result<Self> {
        let mut rings = Vec::new();
        for cpu in cpus() {
            for (n, config) in std::iter::once(attributes.config).chain(others.iter().copied()).enumerate() {
                let attributes = Attributes {
                    config,
                    sample: attributes.sample | SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CALLCHAIN,
                    // Forks are told once for each processor.
                    flags: attributes.flags
                        | FLAG_DISABLED
                        | FLAG_EXCLUDE_CALLCHAIN_USER
                        | if n == 0 { FLAG_TASK } else { 0 },
                    ..attributes
                };
                rings.push(Ring::new(Event::open(attributes, -1, cpu)?, RING)?);
            }
        }
        rings.iter().for_each(|ring| ring.event().control(IOCTL_ENABLE));
        Ok(Self { rings, family: HashMap::new(), samples: Vec::new(), lost: 0 })
    }

    /// Takes what there is; to be called many times a second.
    pub fn poll(&mut self) {
        let Self { rings, family, samples, lost } = self;
        for ring in rings {
            ring.drain(|kind, record| match kind {
                SAMPLE => samples.extend(sample(record)),
                // pid, ppid, tid, ptid, time
                FORK => {
                    // A new thread's record names its process as its own parent.
                    if let (Some(pid), Some(parent)) = (word32(record, 0), word32(record, 4))
                        && pid != parent
                    {
                        family.insert(pid, parent);
                    }
                }
                LOST => *lost += word64(record, 8).unwrap_or(0),
                _ => {}
            });
        }
    }

    /// Ends; `others` are processes that descend from this one and were there before.
    pub fn finish(mut self, others: &[u32]) -> Profile {
        self.rings.iter().for_each(|ring| ring.event().control(IOCTL_DISABLE));
        self.poll();
        let mut ours: HashSet<u32> = others.iter().copied().chain([std::process::id()]).collect();
        let is_ours = |pid: u32, ours: &mut HashSet<u32>| {
            let (mut line, mut at) = (vec![pid], pid);
            for _ in 0..64 {
                if ours.contains(&at) {
                    ours.extend(line);
                    return true;
                }
                match self.family.get(&at) {
                    Some(&parent) => at = parent,
                    None => return false,
                }
                line.push(at);
            }
            false
        };
        let mut samples: Vec<Sample> = std::mem::take(&mut self.samples)
            .into_iter()
            .filter(|(process, _)| is_ours(*process, &mut ours))
            .map(|(_, sample)| sample)
            .collect();
        samples.sort_by_key(|sample| sample.time);
        Profile { samples, lost: self.lost }
    }
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// IP, process and thread, time, call chain, and (of a tracepoint) what it recorded.
fn sample(record: &[u8]) -> Option<(u32, Sample)> {
    let (process, thread, time) = (word32(record, 8)?, word32(record, 12)?, word64(record, 16)?);
    let length = usize::try_from(word64(record, 24)?).ok()?;
    let end = length.checked_mul(8)?.checked_add(32)?;
    let entries = record.get(32..end)?.chunks_exact(8);
    let entries = entries.map(|entry| u64::from_ne_bytes(entry.try_into().expect("eight bytes")));
    let chain = entries.filter(|&address| address < CONTEXT).collect();
    let raw = word32(record, end).and_then(|size| record.get(end + 4..end + 4 + size as usize));
    Some((process, Sample { thread, time, chain, raw: raw.unwrap_or_default().to_vec() }))
}

/// A field's place in what a tracepoint records.
pub fn place(tracepoint: &str, name: &str) -> Option<(usize, usize)> {
    tracefs::field(tracepoint, name)
}

/// The unsigned number of `size` bytes at `offset`.
pub fn number_at(raw: &[u8], offset: usize, size: usize) -> Option<u64> {
    let bytes = raw.get(offset..offset.checked_add(size)?)?;
    match size {
        4 => word32(bytes, 0).map(u64::from),
        8 => word64(bytes, 0),
        _ => None,
    }
}

/// The number by which the kernel marks records of this tracepoint.
pub fn type_of(tracepoint: &str) -> Option<u64> {
    tracefs::number(tracepoint)
}

/// The tracepoint's number of a record.
pub fn common_type(raw: &[u8]) -> Option<u64> {
    raw.first_chunk().copied().map(u16::from_ne_bytes).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sample_is_read_and_its_context_marks_left_out() {
        let mut record = Vec::new();
        record.extend(7_u64.to_ne_bytes());
        record.extend(11_u32.to_ne_bytes());
        record.extend(12_u32.to_ne_bytes());
        record.extend(99_u64.to_ne_bytes());
        record.extend(3_u64.to_ne_bytes());
        for entry in [u64::MAX - 127, 0xffff_0000, 0xffff_0001] {
            record.extend(entry.to_ne_bytes());
        }
        let (process, found) = sample(&record).unwrap();
        assert_eq!((process, found.thread, found.time), (11, 12, 99));
        assert_eq!(found.chain, [0xffff_0000, 0xffff_0001]);
        record.extend(4_u32.to_ne_bytes());
        record.extend([5, 0, 0, 0]);
        assert_eq!(common_type(&sample(&record).unwrap().1.raw), Some(5));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), offset: usize) {
            let _ = (sample(&bytes), number_at(&bytes, offset, 8), common_type(&bytes));
        }
    }
}
