//! Maps: what programs and pagelab share (bpf(2), "eBPF maps").

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{TraceError, bpf, pair};

const CREATE: libc::c_long = 0;
const LOOKUP: libc::c_long = 1;
const UPDATE: libc::c_long = 2;
const DELETE: libc::c_long = 3;
const NEXT_KEY: libc::c_long = 4;
const TAKE: libc::c_long = 21;

/// `BPF_ANY` and `BPF_NOEXIST`.
const ALWAYS: u64 = 0;
const IF_ABSENT: u64 = 1;

/// What happens when a map is full.
#[derive(Clone, Copy, Debug)]
pub(super) enum Full {
    /// Nothing new is taken.
    Refuses = 1,
    /// What was used longest ago goes.
    Evicts = 9,
}

/// A per-CPU map from `K` words of four bytes to `V` words of eight.
#[derive(Debug)]
pub(super) struct MapOfProcessors<const K: usize, const V: usize> {
    map: Map<K, V>,
    processors: usize,
}

/// `BPF_MAP_TYPE_ARRAY`.
const ARRAY: u32 = 2;
/// `BPF_MAP_TYPE_PERCPU_HASH`.
const OF_PROCESSORS: u32 = 5;
/// `BPF_MAP_TYPE_PERCPU_ARRAY`.
const ARRAY_OF_PROCESSORS: u32 = 6;

impl<const K: usize, const V: usize> MapOfProcessors<K, V> {
    /// Creates a hash map of at most `entries` keys. It refuses new keys when full.
    pub(super) fn new(entries: u32) -> Result<Self, TraceError> {
        Self::of_kind(OF_PROCESSORS, entries)
    }

    /// Creates an array of `entries` values of zeros, whose keys are their numbers.
    pub(super) fn array(entries: u32) -> Result<Self, TraceError> {
        Self::of_kind(ARRAY_OF_PROCESSORS, entries)
    }

    fn of_kind(kind: u32, entries: u32) -> Result<Self, TraceError> {
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        // The kernel writes one value per possible CPU, so the number must not be too small.
        let processors = pagelab_procfs::list(&possible).last().map(|last| last + 1).ok_or_else(|| {
            TraceError::refused("a BPF map", io::Error::other("the number of CPUs is unknown"))
        })?;
        Ok(Self { map: Map::of_kind(kind, entries)?, processors })
    }

    /// Its file descriptor, for a program.
    pub(super) fn number(&self) -> i32 {
        self.map.number()
    }

    /// The words of a key's value, each summed over all CPUs.
    pub(super) fn sum(&self, key: [u32; K]) -> Option<[u64; V]> {
        let mut values = vec![[0_u64; V]; self.processors];
        self.map.call(LOOKUP, Some(&key), values.as_mut_ptr(), 0).ok()?;
        let add = |sum: [u64; V], value: &[u64; V]| std::array::from_fn(|n| sum[n].wrapping_add(value[n]));
        Some(values.iter().fold([0; V], add))
    }

    /// All keys; keys added meanwhile may be missing.
    pub(super) fn keys(&self) -> Vec<[u32; K]> {
        self.map.keys()
    }

    /// Removes a key, if present.
    pub(super) fn remove(&self, key: [u32; K]) {
        self.map.remove(key);
    }
}

/// Creates a map of a kind with keys and values of these sizes in bytes.
pub(super) fn create(kind: u32, [key, value]: [u32; 2], entries: u32) -> Result<OwnedFd, TraceError> {
    let mut attributes = [0; 16];
    attributes[0] = pair(kind, key);
    attributes[1] = pair(value, entries);
    let raw = bpf(CREATE, &mut attributes).map_err(|e| TraceError::refused("a BPF map", e))?;
    // SAFETY: a new descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// A map from `K` words of four bytes to `V` words of eight.
#[derive(Debug)]
pub(super) struct Map<const K: usize, const V: usize>(OwnedFd);

impl<const K: usize, const V: usize> Map<K, V> {
    /// A map of `entries` at most.
    pub(super) fn new(full: Full, entries: u32) -> Result<Self, TraceError> {
        Self::of_kind(full as u32, entries)
    }

    /// An array of `entries` values of zeros, whose keys are their numbers.
    pub(super) fn array(entries: u32) -> Result<Self, TraceError> {
        Self::of_kind(ARRAY, entries)
    }

    fn of_kind(kind: u32, entries: u32) -> Result<Self, TraceError> {
        create(kind, [K as u32 * 4, V as u32 * 8], entries).map(Self)
    }

    /// Its number, for a program.
    pub(super) fn number(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// The value of a key.
    pub(super) fn get(&self, key: [u32; K]) -> Option<[u64; V]> {
        let mut value = [0; V];
        self.call(LOOKUP, Some(&key), &raw mut value, 0).ok()?;
        Some(value)
    }

    /// The same, and removes it. Since 5.14.
    pub(super) fn take(&self, key: [u32; K]) -> Option<[u64; V]> {
        let mut value = [0; V];
        self.call(TAKE, Some(&key), &raw mut value, 0).ok()?;
        Some(value)
    }

    /// Gives a key a value; nothing where the map is full.
    pub(super) fn put(&self, key: [u32; K], mut value: [u64; V]) {
        let _ = self.call(UPDATE, Some(&key), &raw mut value, ALWAYS);
    }

    /// As [`Map::put`], where the key has none.
    pub(super) fn put_if_absent(&self, key: [u32; K], mut value: [u64; V]) {
        let _ = self.call(UPDATE, Some(&key), &raw mut value, IF_ABSENT);
    }

    /// Removes a key, if it is there.
    pub(super) fn remove(&self, key: [u32; K]) {
        let _ = self.call(DELETE, Some(&key), std::ptr::null_mut::<u64>(), 0);
    }

    /// Every key; one that comes meanwhile may be left out.
    pub(super) fn keys(&self) -> Vec<[u32; K]> {
        let (mut keys, mut key) = (Vec::new(), None);
        loop {
            let mut next = [0_u32; K];
            let found = self.call(NEXT_KEY, key.as_ref(), &raw mut next, 0);
            // A key that is removed under our feet begins the walk anew: do not go round for ever.
            if found.is_err() || keys.len() > 1 << 20 {
                return keys;
            }
            keys.push(next);
            key = Some(next);
        }
    }

    /// `union bpf_attr` of the commands on elements: map_fd, key, value or next_key, flags.
    fn call<T>(
        &self,
        command: libc::c_long,
        key: Option<&[u32; K]>,
        other: *mut T,
        flags: u64,
    ) -> io::Result<i32> {
        let mut attributes = [0; 16];
        attributes[0] = pair(self.number() as u32, 0);
        attributes[1] = key.map_or(0, |key| key.as_ptr().expose_provenance() as u64);
        attributes[2] = other.expose_provenance() as u64;
        attributes[3] = flags;
        bpf(command, &mut attributes)
    }
}
