//! Words of a command line, which are any bytes, as text that can be kept and sent.
//!
//! UTF-8 stays as it is. Any other byte is a character of its own in a private area of Unicode, and
//! so are the bytes of a character that is already from there: every word comes back byte by byte.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The character of the byte 0; those of 0x80 and more are used.
const BASE: u32 = 0xEF00;

/// The word as text.
pub fn escaped(word: &OsStr) -> String {
    let of_byte = |&byte: &u8| char::from_u32(BASE + u32::from(byte)).unwrap_or(char::REPLACEMENT_CHARACTER);
    let mut text = String::new();
    for chunk in word.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match byte(c) {
                None => text.push(c),
                Some(_) => text.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().map(of_byte)),
            }
        }
        text.extend(chunk.invalid().iter().map(of_byte));
    }
    text
}

/// The byte that a character of escaped text stands for, where it is not itself.
pub fn byte(c: char) -> Option<u8> {
    u32::from(c).checked_sub(BASE).and_then(|byte| u8::try_from(byte).ok()).filter(|byte| *byte >= 0x80)
}

/// The word that was [`escaped`].
pub fn unescaped(text: &str) -> OsString {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match byte(c) {
            None => bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Some(byte) => bytes.push(byte),
        }
    }
    OsString::from_vec(bytes)
}

/// Words that were [`escaped`].
pub fn unescaped_all(words: &[String]) -> Vec<OsString> {
    words.iter().map(|word| unescaped(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back_byte_by_byte() {
        for bytes in [
            b"plain".as_slice(),
            "größe 猫".as_bytes(),
            b"a\xffb\xfe",
            b"\xc3",
            b"\xed\xa0\x80",
            "\u{efff}x".as_bytes(),
        ] {
            let word = OsStr::from_bytes(bytes);
            assert_eq!(unescaped(&escaped(word)), word);
            // What was kept before words had other bytes reads as it was.
            if let Some(text) = word.to_str().filter(|text| !text.contains('\u{efff}')) {
                assert_eq!(escaped(word), text);
            }
        }
    }
}
