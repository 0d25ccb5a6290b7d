//! Block traces as comma-separated lines.
//!
//! SPC (Storage Performance Council): unit, block of 512 bytes, bytes, `r` or `w`, seconds, as in
//! `0,20941264,8192,W,0.551706`. MSR Cambridge: file time, host, disk, `Read` or `Write`, byte offset, bytes,
//! response time, as in `128166372003061629,hm,1,Read,383496192,32768,113736`; a first line that names the
//! columns is passed over.
//!
//! A request counts for the page of its first byte. Units and disks have address spaces of their own.

use super::{Record, plain};

/// Where a unit's addresses begin: above those of any disk.
const UNIT_SHIFT: u32 = 52;

fn fields<const N: usize>(line: &[u8]) -> Result<[&[u8]; N], String> {
    let mut fields = line.split(|&b| b == b',').map(<[u8]>::trim_ascii);
    let mut list = [&b""[..]; N];
    for (n, place) in list.iter_mut().enumerate() {
        *place = fields.next().ok_or_else(|| format!("field {} is missing", n + 1))?;
    }
    Ok(list)
}

fn number(field: &[u8], what: &str) -> Result<u64, String> {
    let shown = || String::from_utf8_lossy(field).chars().take(40).collect::<String>();
    plain::number(field).ok_or_else(|| format!("'{}' is not {what}", shown()))
}

fn access(field: &[u8], read: &str, write: &str) -> Result<bool, String> {
    if field.eq_ignore_ascii_case(read.as_bytes()) {
        Ok(false)
    } else if field.eq_ignore_ascii_case(write.as_bytes()) {
        Ok(true)
    } else {
        let shown: String = String::from_utf8_lossy(field).chars().take(40).collect();
        Err(format!("'{shown}' is neither {read} nor {write}"))
    }
}

fn record(unit: u64, address: u64, bytes: u64, write: bool) -> Result<Record, String> {
    if address >> UNIT_SHIFT != 0 || unit >> (63 - UNIT_SHIFT) != 0 {
        return Err(format!("byte {address} of unit {unit} is beyond any disk"));
    }
    Ok(Record { write, bytes: Some(bytes), ..Record::of(unit << UNIT_SHIFT | address) })
}

/// The page comes back as a byte address; an error says what is wrong.
pub(super) fn spc(line: &[u8]) -> Result<Record, String> {
    let [unit, block, bytes, op, seconds] = fields(line)?;
    let bytes = number(bytes, "a size in bytes")?;
    let time = std::str::from_utf8(seconds).ok().and_then(|t| t.parse::<f64>().ok());
    if time.is_none() || !seconds.contains(&b'.') {
        return Err(format!("'{}' is not a time in seconds", String::from_utf8_lossy(seconds)));
    }
    let address = number(block, "a block")?.saturating_mul(512);
    record(number(unit, "a unit")?, address, bytes, access(op, "r", "w")?)
}

/// The page comes back as a byte address; an error says what is wrong.
pub(super) fn msr(line: &[u8]) -> Result<Record, String> {
    let [time, _host, disk, op, offset, bytes, response] = fields(line)?;
    for (field, what) in [(time, "a file time"), (response, "a response time")] {
        number(field, what)?;
    }
    let bytes = number(bytes, "a size in bytes")?;
    record(number(disk, "a disk")?, number(offset, "an offset")?, bytes, access(op, "Read", "Write")?)
}

/// Whether a line names the columns of an MSR trace.
pub(super) fn is_msr_header(line: &[u8]) -> bool {
    line.to_ascii_lowercase().starts_with(b"timestamp,hostname,disknumber,type,offset")
}
