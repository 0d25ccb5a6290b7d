//! valgrind's lackey: `valgrind --tool=lackey --trace-mem=yes PROGRAM` writes, among its messages,
//! `I  ADDRESS,SIZE` for an instruction, ` L ADDRESS,SIZE` for a load, ` S` for a store and ` M` for
//! both; the address is hexadecimal.
//!
//! A reference counts for each page that it lies in; a modification is a write. Lines of messages
//! (they begin with `==` or `--`) and empty lines are passed over. The program's own output must go
//! elsewhere (`--log-file=FILE`).

use super::{Record, hexadecimal, plain};

/// The most bytes of a reference; the processor's state (XSAVE) takes up to 11 KiB.
const LARGEST: u64 = 1 << 14;

/// The page comes back as a byte address, with its bytes. `Ok(None)` for a line that is no reference.
pub(super) fn reference(line: &[u8]) -> Result<Option<Record>, ()> {
    if line.iter().all(u8::is_ascii_whitespace) || line.starts_with(b"==") || line.starts_with(b"--") {
        return Ok(None);
    }
    let write = match line.get(..3).ok_or(())? {
        b"I  " | b" L " => false,
        b" S " | b" M " => true,
        _ => return Err(()),
    };
    let mut parts = line[3..].splitn(2, |&b| b == b',');
    let address = parts.next().and_then(hexadecimal).ok_or(())?;
    let size = plain::number(parts.next().unwrap_or_default()).filter(|&size| size <= LARGEST).ok_or(())?;
    Ok(Some(Record { write, bytes: Some(size), ..Record::of(address) }))
}

pub(super) fn is_reference(line: &[u8]) -> bool {
    matches!(reference(line), Ok(Some(_)))
}
