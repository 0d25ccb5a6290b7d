//! libCacheSim's lcs, versions 1 to 3: a header of 8,192 bytes between two magic numbers, with the version and the number of
//! requests, and little-endian records: u32 time, u64 object, u32 size (i64 in version 3), from version 2 on u8
//! operation and u24 tenant, in version 3 u32 time to live, and i64 index of the next request for the object.
//!
//! An object is taken as one page, unless sizes are asked for. Of the operations, those that store something are writes.

use super::Record;

/// Bytes in the header.
pub(super) const HEADER: usize = 8192;

/// What the header begins and ends with.
const MAGIC: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();

/// Operations that store (set, add, compare-and-swap, replace, append, prepend, increment, decrement, write, update), by
/// libCacheSim's numbers.
const WRITES: [u8; 10] = [3, 4, 5, 6, 7, 8, 10, 11, 13, 14];

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

/// Whether the content begins as lcs does.
pub(super) fn is_lcs(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// Bytes in a record.
///
/// # Errors
/// What is wrong with the header.
pub(super) fn header(head: &[u8]) -> Result<usize, String> {
    if !is_lcs(head) || head.get(HEADER - 8..HEADER) != Some(&MAGIC) {
        return Err("no header of lcs: 8,192 bytes that begin and end with 0x123456789abcdef0".into());
    }
    match word(head, 8) {
        1 => Ok(24),
        2 => Ok(28),
        3 => Ok(36),
        other => Err(format!("lcs of version {other}; versions 1 to 3 can be read")),
    }
}

/// The requests that the header counts; `None` where it counts none.
pub(super) fn requests(head: &[u8]) -> Option<u64> {
    Some(word(head, 16)).filter(|&count| count > 0)
}

/// The index of the next request for the object.
pub(super) fn next(record: &[u8]) -> i64 {
    word(record, record.len() - 8) as i64
}

/// The object, of a record of 24, 28 or 36 bytes.
pub(super) fn record(record: &[u8], shift: u32) -> Record {
    let wide = record.len() == 36;
    let bytes = if wide { word(record, 12) } else { word(record, 12) & u64::from(u32::MAX) };
    let operation = match record.len() {
        28 => record[16],
        36 => record[20],
        _ => 0,
    };
    Record { write: WRITES.contains(&operation), ..Record::object(word(record, 4), bytes, shift) }
}
