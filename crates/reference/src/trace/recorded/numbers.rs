//! Numbers as the frames of blocks have them: varints, and differences without a sign.

pub(super) fn zigzag(delta: i64) -> u64 {
    (delta << 1 ^ delta >> 63).cast_unsigned()
}

pub(super) fn unzigzag(coded: u64) -> i64 {
    (coded >> 1).cast_signed() ^ -(coded & 1).cast_signed()
}

/// Writes a varint to the beginning of `out`; how many bytes it has.
#[inline]
pub(super) fn put(mut number: u64, out: &mut [u8]) -> usize {
    let mut at = 0;
    while number >= 0x80 {
        out[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    out[at] = number as u8;
    at + 1
}

#[inline]
pub(super) fn get(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0u64, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}
