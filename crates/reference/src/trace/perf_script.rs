//! Samples of memory accesses as `perf mem record` takes them and `perf script -F pid,event,addr` prints them: the event, a
//! colon, and the hexadecimal address that was accessed, as in `  4711 cpu/mem-loads,ldlat=30/P:  7f8a1c2d3e40`.
//!
//! Of what stands before the event the first number is the process. An event with `store` in its name is a write. More words
//! behind the address (`-F` with more fields) are passed over. A sample is one of many accesses: what a replay makes of
//! samples is no count of misses of the program.

use super::{Record, hexadecimal};

/// The page comes back as a byte address; an error says what is wrong.
pub(super) fn reference(line: &[u8]) -> Result<Option<Record>, String> {
    let shown = || String::from_utf8_lossy(line).trim().chars().take(60).collect::<String>();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut pid = None;
    let event = loop {
        let word = words.next().ok_or_else(|| format!("'{}' names no event", shown()))?;
        if let Some(event) = word.strip_suffix(b":").filter(|event| is_event(event)) {
            break event;
        }
        let number = std::str::from_utf8(word).ok().and_then(|word| word.split('/').next()?.parse().ok());
        pid = pid.or(number);
    };
    let address = words.next().and_then(hexadecimal);
    let page = address.ok_or_else(|| format!("'{}' has no address behind the event", shown()))?;
    let write = event.windows(5).any(|part| part == b"store");
    Ok(Some(Record { write, pid, ..Record::of(page) }))
}

/// Events of memory accesses have a kind of access in their names; a time (`12.5:`) has not.
fn is_event(word: &[u8]) -> bool {
    [&b"mem"[..], b"load", b"store", b"ibs", b"arm_spe", b"l1d"]
        .iter()
        .any(|kind| word.windows(kind.len()).any(|part| part == *kind))
}

/// Whether the line is a sample.
pub(super) fn is_sample(line: &[u8]) -> bool {
    reference(line).is_ok()
}
