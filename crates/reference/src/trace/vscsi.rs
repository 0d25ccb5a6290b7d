//! VMware's vscsiStats, little-endian, of both versions: records of 32 bytes (u32 serial number, u32 length,
//! u32 segments, u16 command, u16 version, u64 block, u64 time) or 40 (u16 command, u16 version, u32 serial
//! number, u32 length, u32 segments, u64 block, u64 time, u64 response time). The version's upper byte
//! is 1 or 2.
//!
//! Blocks have 512 bytes; a request counts for the page of its first byte. SCSI's write commands are writes.

use super::Record;

/// Bytes in a record of version 1.
pub(super) const SIZE_1: usize = 32;
/// Bytes in a record of version 2.
pub(super) const SIZE_2: usize = 40;

/// Bytes in a block.
const BLOCK: u64 = 512;

fn u16_at(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn u32_at(record: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(record[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(record: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(record[at..at + 8].try_into().expect("eight bytes"))
}

fn record(command: u16, block: u64, bytes: u32) -> Record {
    // WRITE(6), (10), (12), (16), and the two WRITE AND VERIFY.
    let write = matches!(command & 0xff, 0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e);
    Record { write, bytes: Some(bytes.into()), ..Record::of(block.wrapping_mul(BLOCK)) }
}

/// The page comes back as a byte address.
pub(super) fn reference_1(bytes: &[u8; SIZE_1]) -> Record {
    record(u16_at(bytes, 12), u64_at(bytes, 16), u32_at(bytes, 4))
}

/// The page comes back as a byte address.
pub(super) fn reference_2(bytes: &[u8; SIZE_2]) -> Record {
    record(u16_at(bytes, 0), u64_at(bytes, 16), u32_at(bytes, 8))
}

/// Whether all records carry the version's number, and blocks that a disk can have.
fn plausible(head: &[u8], size: usize, version_at: usize, version: u16) -> bool {
    let mut records = head.chunks_exact(size).peekable();
    records.peek().is_some()
        && records.all(|r| u16_at(r, version_at) >> 8 == version && u64_at(r, 16) < 1 << 48)
}

pub(super) fn is_1(head: &[u8]) -> bool {
    plausible(head, SIZE_1, 14, 1)
}

pub(super) fn is_2(head: &[u8]) -> bool {
    plausible(head, SIZE_2, 2, 2)
}
