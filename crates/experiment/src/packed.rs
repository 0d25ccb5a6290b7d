//! Arrays of whole numbers in few bytes: little-endian u32, compressed with zlib.
//!
//! The notebook keeps these bytes as they are (Python: `numpy.frombuffer(zlib.decompress(b), '<u4')`);
//! in JSON they are base64.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use serde::{Deserialize, Deserializer, Serializer, de};

/// No array is longer than this when unpacked: a torn or hostile blob cannot exhaust memory.
pub const MAX_NUMBERS: usize = 1 << 28;

/// Bytes that are no packed array.
#[derive(Debug, thiserror::Error)]
#[error("not a packed array: {0}")]
pub struct PackedError(String);

/// Packs `numbers`.
pub fn pack(numbers: &[u32]) -> Vec<u8> {
    let plain: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let mut packed = Vec::new();
    ZlibEncoder::new(plain.as_slice(), Compression::fast())
        .read_to_end(&mut packed)
        .expect("reading from memory cannot fail");
    packed
}

/// Unpacks what [`pack`] made.
///
/// # Errors
/// When `bytes` are torn, not zlib, not a whole number of u32, or beyond [`MAX_NUMBERS`].
pub fn unpack(bytes: &[u8]) -> Result<Vec<u32>, PackedError> {
    unpack_at_most(bytes, MAX_NUMBERS)
}

/// The same for `most` numbers at most: no more is held, whatever the bytes would become.
///
/// # Errors
/// As for [`unpack`].
pub fn unpack_at_most(bytes: &[u8], most: usize) -> Result<Vec<u32>, PackedError> {
    let mut decoder = ZlibDecoder::new(bytes);
    let mut numbers = Vec::new();
    let mut block = [0; 32 << 10];
    let mut rest = 0;
    loop {
        let read = decoder.read(&mut block[rest..]).map_err(|e| PackedError(e.to_string()))?;
        if read == 0 {
            break;
        }
        let filled = rest + read;
        let words = block[..filled].chunks_exact(4);
        rest = words.remainder().len();
        if numbers.len() + filled / 4 > most {
            return Err(PackedError(format!("more than {most} numbers")));
        }
        numbers.extend(words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])));
        block.copy_within(filled - rest..filled, 0);
    }
    if rest != 0 {
        return Err(PackedError(format!("{rest} bytes are left behind whole numbers of 4")));
    }
    Ok(numbers)
}

/// For `#[serde(with = "packed")]`.
///
/// # Errors
/// Only those of the serializer.
pub fn serialize<S: Serializer>(numbers: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(pack(numbers)))
}

/// For `#[serde(with = "packed")]`.
///
/// # Errors
/// When the text is no base64 of a packed array.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(de::Error::custom)?;
    unpack(&bytes).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_numbers_unpack_the_same(numbers: Vec<u32>) {
            prop_assert_eq!(unpack(&pack(&numbers)).unwrap(), numbers);
        }

        #[test]
        fn no_bytes_make_unpacking_panic(bytes: Vec<u8>) {
            let _ = unpack(&bytes);
        }
    }

    #[test]
    fn no_more_is_held_than_was_allowed() {
        let packed = pack(&vec![0; 100_000]);
        assert_eq!(unpack_at_most(&packed, 100_000).unwrap().len(), 100_000);
        assert!(unpack_at_most(&packed, 99_999).unwrap_err().to_string().contains("99999"));
    }

    #[test]
    fn torn_bytes_are_refused() {
        let packed = pack(&[1, 2, 3, 4, 5]);
        assert!(unpack(&packed[..packed.len() / 2]).is_err());
    }
}
