//! ChampSim's instruction traces: little-endian records of 64 bytes: u64 instruction pointer, u8 whether it is a branch, u8
//! whether the branch is taken, two and four u8 registers, two u64 addresses that are written, four u64 addresses that are
//! read (0 for none).
//!
//! An instruction references the pages of what it reads, then of what it writes; its own page does not count. The records
//! carry no mark; what speaks for them is that instructions that do not branch are followed by what is next to them.

use super::Record;

/// Bytes in a record.
pub(super) const SIZE: usize = 64;

/// References that a record has at most.
pub(super) const REFERENCES: usize = 6;

/// The references, as byte addresses.
pub(super) fn references(record: &[u8; SIZE]) -> impl Iterator<Item = Record> + use<> {
    let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"));
    let at = [32, 40, 48, 56, 16, 24].map(|at| (word(at), at < 32));
    at.into_iter()
        .filter(|(address, _)| *address != 0)
        .map(|(address, write)| Record { write, ..Record::of(address) })
}

/// The longest instruction of x86-64.
const MAX_INSTRUCTION_BYTES: u64 = 15;

/// Whether the records can be instructions: the bytes of branches are 0 or 1, and nine in ten of those that do not branch are
/// followed by one that begins at most 15 bytes further on.
pub(super) fn plausible(head: &[u8]) -> bool {
    let (records, _) = head.as_chunks::<SIZE>();
    let pointer = |record: &[u8; SIZE]| u64::from_le_bytes(record[..8].try_into().expect("eight bytes"));
    if records.len() < 2 || records.iter().any(|r| pointer(r) == 0 || r[8] > 1 || r[9] > r[8]) {
        return false;
    }
    let (mut all, mut near) = (0_usize, 0);
    for (one, next) in records.iter().zip(&records[1..]).filter(|(one, _)| one[8] == 0) {
        all += 1;
        near += usize::from((1..=MAX_INSTRUCTION_BYTES).contains(&pointer(next).wrapping_sub(pointer(one))));
    }
    all > 0 && 10 * near >= 9 * all
}
