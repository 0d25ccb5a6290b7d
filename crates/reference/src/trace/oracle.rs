//! libCacheSim's oracleGeneral: little-endian records of 24 bytes: u32 time, u64 object, u32 size,
//! i64 index of the next request for the object (−1 for none).
//!
//! An object is taken as one page, whatever its size. Some writers count the requests from 0 and some
//! from 1, and some put the greatest i64 for none; all are accepted.

use super::Record;

/// Bytes in a record.
pub(super) const SIZE: usize = 24;

fn field<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record[at..at + N].try_into().expect("the record has 24 bytes")
}

fn object(record: &[u8; SIZE]) -> u64 {
    u64::from_le_bytes(field(record, 4))
}

pub(super) fn reference(record: &[u8; SIZE]) -> Record {
    Record { page: object(record), write: false, pid: None }
}

/// Whether the records point forward, and at records for the same object where these are in the head.
pub(super) fn plausible(head: &[u8], whole: bool) -> bool {
    let (records, _) = head.as_chunks::<SIZE>();
    let fits = |(index, record): (usize, &[u8; SIZE])| {
        let next = i64::from_le_bytes(field(record, 16));
        if next == -1 || next == i64::MAX {
            return true;
        }
        let Ok(next) = usize::try_from(next) else { return false };
        if next <= index {
            return false;
        }
        let same = |at: usize| match records.get(at) {
            Some(other) => at > index && object(other) == object(record),
            None => !whole && at >= records.len(),
        };
        same(next) || same(next - 1)
    };
    !records.is_empty() && records.iter().enumerate().all(fits)
}
