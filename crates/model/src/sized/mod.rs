//! Replacement of objects of different sizes: the memory is so many bytes, an object takes its own, and one that is larger
//! than the memory is not admitted.
//!
//! What is counted: misses, the bytes of the requests that missed, and requests for objects that were not admitted (misses, too).
//! An object keeps the size with which it came in while it is resident.

mod gdsf;
mod lhd;
mod queued;

#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use strum::{EnumIter, IntoEnumIterator};

/// A policy for objects of different sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumIter)]
pub enum SizedKind {
    /// First in, first out.
    Fifo,
    /// Least recently used.
    Lru,
    /// One reference bit and a hand.
    Clock,
    /// See [`crate::policy::sieve`].
    Sieve,
    /// Greedy dual, frequency and size: see `gdsf.rs`.
    Gdsf,
    /// Least hit density: see `lhd.rs`.
    Lhd,
}

impl SizedKind {
    /// The name, one line, and the source.
    pub fn described(self) -> [&'static str; 3] {
        match self {
            Self::Fifo => ["fifo", "first in, first out", "Belady 1966"],
            Self::Lru => ["lru", "least recently used", "Mattson, Gecsei, Slutz and Traiger 1970"],
            Self::Clock => ["clock", "one reference bit and a hand", "Corbató 1968"],
            Self::Sieve => ["sieve", "SIEVE", "Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024"],
            Self::Gdsf => {
                ["gdsf", "greedy dual by frequency and size (replay --sizes bytes)", "Cherkasova 1998"]
            }
            Self::Lhd => [
                "lhd",
                "least hit density, of a seeded sample (replay --sizes bytes)",
                "Beckmann, Chen and Cidon, NSDI 2018",
            ],
        }
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::iter()
    }

    fn build(self, objects: u32, memory: u64) -> Box<dyn Sized> {
        match self {
            Self::Gdsf => Box::new(gdsf::Gdsf::new(objects)),
            Self::Lhd => Box::new(lhd::Lhd::new(objects, memory)),
            Self::Fifo | Self::Lru | Self::Clock | Self::Sieve => {
                Box::new(queued::Queued::new(self, objects))
            }
        }
    }
}

impl fmt::Display for SizedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.described()[0])
    }
}

/// The name is no policy's that counts sizes.
#[derive(Debug, thiserror::Error)]
#[error("policy '{0}' does not count the sizes of objects; must be one of {names}", names = names())]
pub struct NotSized(String);

fn names() -> String {
    SizedKind::all().map(|kind| kind.to_string()).collect::<Vec<_>>().join(", ")
}

impl FromStr for SizedKind {
    type Err = NotSized;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.strip_prefix("model:").unwrap_or(text);
        Self::all().find(|kind| kind.described()[0] == name).ok_or_else(|| NotSized(text.to_owned()))
    }
}

/// Who goes.
trait Sized: Send {
    /// There are `objects` objects from now on, of which the new ones are not resident.
    fn grow(&mut self, objects: u32);
    /// A resident object is requested.
    fn hit(&mut self, object: u32, bytes: u64);
    /// An object comes in.
    fn enter(&mut self, object: u32, bytes: u64);
    /// Chooses a resident object, which goes.
    fn evict(&mut self) -> Option<u32>;
    /// Whether a new object is in before room is made for it, so that it may be the one that goes.
    fn enters_first(&self) -> bool {
        false
    }
}

/// What came of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests for an object that was not resident.
    pub misses: u64,
    /// Their bytes.
    pub byte_misses: u64,
    /// Of the misses those for an object larger than the memory.
    pub not_admitted: u64,
}

/// A policy in `memory` bytes.
pub struct SizedReplay {
    policy: Box<dyn Sized>,
    memory: u64,
    used: u64,
    /// Bytes of the resident objects, 0 of the others.
    resident: Vec<u64>,
    counts: Counts,
}

impl fmt::Debug for SizedReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SizedReplay")
            .field("memory", &self.memory)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl SizedReplay {
    /// An empty memory for the objects `0..objects`.
    pub fn new(kind: SizedKind, objects: u32, memory: u64) -> Self {
        Self {
            policy: kind.build(objects, memory),
            memory,
            used: 0,
            resident: vec![0; objects as usize],
            counts: Counts::default(),
        }
    }

    /// There are `objects` objects from now on. Fewer change nothing.
    pub fn grow(&mut self, objects: u32) {
        if objects as usize > self.resident.len() {
            self.resident.resize(objects as usize, 0);
            self.policy.grow(objects);
        }
    }

    /// Requests an object of `bytes` bytes (one without any takes one); whether it was resident.
    ///
    /// # Panics
    /// When the object is not below the number of objects.
    pub fn request(&mut self, object: u32, bytes: u64) -> bool {
        let taken = bytes.max(1);
        self.counts.requests += 1;
        self.counts.bytes += bytes;
        let before = self.resident[object as usize];
        if before > 0 {
            self.policy.hit(object, before);
            return true;
        }
        self.counts.misses += 1;
        self.counts.byte_misses += bytes;
        if taken > self.memory {
            self.counts.not_admitted += 1;
            return false;
        }
        if self.policy.enters_first() {
            self.enter(object, taken);
            self.make_room(0);
        } else {
            self.make_room(taken);
            self.enter(object, taken);
        }
        false
    }

    fn enter(&mut self, object: u32, bytes: u64) {
        self.resident[object as usize] = bytes;
        self.used += bytes;
        self.policy.enter(object, bytes);
    }

    fn make_room(&mut self, bytes: u64) {
        while self.used + bytes > self.memory {
            let Some(victim) = self.policy.evict() else { return };
            self.used -= std::mem::take(&mut self.resident[victim as usize]);
        }
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}
