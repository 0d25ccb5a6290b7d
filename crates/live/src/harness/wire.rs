//! Frames: how observations travel from the process that performs an experiment to the one that
//! records it, over a pipe or a guest's serial line.
//!
//! A frame is the four bytes `PLF1`, the payload's length and its CRC-32 (IEEE), both u32 little
//! endian, then the payload: one JSON value. A torn or corrupt frame is an error and nothing is
//! skipped: a lost observation must never pass unseen.

use std::io::{ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What every frame begins with.
pub const MAGIC: [u8; 4] = *b"PLF1";

/// No payload is longer than this many bytes. The largest one is a page map: 8 bytes a page before
/// compression.
pub const MAX_FRAME: u32 = 1 << 28;

/// Magic, length and checksum.
const HEADER: usize = 12;

/// Why no frame could be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The medium failed.
    #[error("the connection between worker and recorder failed: {0}")]
    Io(#[from] std::io::Error),
    /// The other side ended in the middle of a frame.
    #[error("a frame is torn: {got} of {wanted} bytes arrived")]
    Torn {
        /// Bytes that arrived.
        got: usize,
        /// Bytes of the whole part.
        wanted: usize,
    },
    /// Something else was written to the line.
    #[error("no frame begins here: {0:02x?} instead of {MAGIC:02x?}; something else writes to this line")]
    Magic([u8; 4]),
    /// The length is beyond [`MAX_FRAME`].
    #[error("a frame of {0} bytes is longer than the longest ({MAX_FRAME})")]
    Length(u64),
    /// The payload was changed on the way.
    #[error("a frame of {0} bytes has the wrong checksum")]
    Checksum(usize),
    /// The payload is not what was expected; both sides must be the same version.
    #[error("a frame cannot be understood: {0}")]
    Payload(#[from] serde_json::Error),
}

/// Writes `value` as one frame, with a single write, and flushes.
///
/// # Errors
/// When the value is too long or the medium fails.
pub fn write<T: Serialize>(output: &mut impl Write, value: &T) -> Result<(), WireError> {
    let mut frame = vec![0; HEADER];
    serde_json::to_writer(&mut frame, value)?;
    let payload = frame.len() - HEADER;
    let length = u32::try_from(payload).ok().filter(|&n| n <= MAX_FRAME);
    let length = length.ok_or(WireError::Length(payload as u64))?;
    let checksum = crc32fast::hash(&frame[HEADER..]);
    frame[..4].copy_from_slice(&MAGIC);
    frame[4..8].copy_from_slice(&length.to_le_bytes());
    frame[8..12].copy_from_slice(&checksum.to_le_bytes());
    output.write_all(&frame)?;
    Ok(output.flush()?)
}

/// Reads one frame; `None` when the input ends before it begins.
///
/// # Errors
/// See [`WireError`]. After an error the input is not at a frame's start; read no further.
pub fn read<T: DeserializeOwned>(input: &mut impl Read) -> Result<Option<T>, WireError> {
    let mut header = [0; HEADER];
    match fill(input, &mut header)? {
        0 => return Ok(None),
        HEADER => {}
        got => return Err(WireError::Torn { got, wanted: HEADER }),
    }
    let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
    if word(0) != MAGIC {
        return Err(WireError::Magic(word(0)));
    }
    let length = u32::from_le_bytes(word(4));
    if length > MAX_FRAME {
        return Err(WireError::Length(length.into()));
    }
    // Grows with what arrives: a wrong length costs no memory.
    let mut payload = Vec::new();
    input.take(length.into()).read_to_end(&mut payload)?;
    if payload.len() != length as usize {
        return Err(WireError::Torn { got: payload.len(), wanted: length as usize });
    }
    if crc32fast::hash(&payload) != u32::from_le_bytes(word(8)) {
        return Err(WireError::Checksum(payload.len()));
    }
    Ok(Some(serde_json::from_slice(&payload)?))
}

/// Reads until `buffer` is full or the input ends; the number of bytes read.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<usize, WireError> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(value: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, &value).unwrap();
        bytes
    }

    proptest! {
        #[test]
        fn written_data_reads_back(values: Vec<String>) {
            let bytes: Vec<u8> = values.iter().flat_map(|v| frame(v)).collect();
            let mut input = bytes.as_slice();
            let mut read_back = Vec::new();
            while let Some(value) = read::<String>(&mut input).unwrap() {
                read_back.push(value);
            }
            prop_assert_eq!(read_back, values);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes: Vec<u8>) {
            let _ = read::<String>(&mut bytes.as_slice());
        }

        #[test]
        fn a_torn_frame_is_an_error(value: String, cut in 1usize..1000) {
            let mut bytes = frame(&value);
            let length = bytes.len() - 1;
            bytes.truncate(1 + cut % length);
            let torn = matches!(read::<String>(&mut bytes.as_slice()), Err(WireError::Torn { .. }));
            prop_assert!(torn);
        }

        #[test]
        fn one_changed_bit_is_an_error(value: String, at: usize, bit in 0u8..8) {
            let mut bytes = frame(&value);
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            prop_assert!(read::<String>(&mut bytes.as_slice()).is_err());
        }
    }

    #[test]
    fn a_huge_length_is_refused_without_memory() {
        let mut bytes = frame("x");
        bytes[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(read::<String>(&mut bytes.as_slice()), Err(WireError::Length(_))));
    }
}
