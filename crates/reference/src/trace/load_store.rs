//! Loads and stores of the SPEC traces: `l` or `s`, a hexadecimal byte address, and the number of
//! instructions since the last reference, as in `s 0x1fffff50 1`.

use super::{Record, hexadecimal};

/// The page comes back as a byte address.
pub(super) fn reference(line: &[u8]) -> Option<Record> {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty());
    let write = match words.next()? {
        b"l" => false,
        b"s" => true,
        _ => return None,
    };
    let page = hexadecimal(words.next()?)?;
    let instructions = words.next()?;
    let clean = instructions.iter().all(u8::is_ascii_digit) && words.next().is_none();
    clean.then_some(Record { write, ..Record::of(page) })
}
