//! Comma-separated references, as tools on DynamoRIO write them: time, process, address, `r` or `w`.
//!
//! A first line that holds no number names the columns: `address` (or `addr`) must be among them;
//! `pid` (or `process`) and `rw` (or `type`, `op`, `access`) may be, and others are passed over. The
//! address is hexadecimal with `0x`, else decimal; an access that begins with `w` or `s` is a write,
//! one that begins with `r`, `l` or `i` is not. Empty lines and lines that begin with `#` say nothing.

use super::{Record, hexadecimal, plain};

/// Where the fields are in a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    pid: Option<usize>,
    address: usize,
    access: Option<usize>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { pid: Some(1), address: 2, access: Some(3) }
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

fn number(field: &[u8]) -> Option<u64> {
    if field.starts_with(b"0x") || field.starts_with(b"0X") {
        hexadecimal(field)
    } else {
        plain::number(field)
    }
}

impl Columns {
    /// The columns a header names; `None` when the line is no header.
    pub fn of_header(line: &[u8]) -> Option<Self> {
        let find = |names: &[&str]| {
            fields(line).position(|f| names.iter().any(|n| n.as_bytes().eq_ignore_ascii_case(f)))
        };
        Some(Self {
            pid: find(&["pid", "process"]),
            address: find(&["address", "addr"])?,
            access: find(&["rw", "r/w", "type", "op", "access"]),
        })
    }

    /// The page comes back as a byte address; an error says what is wrong.
    pub fn reference(self, line: &[u8]) -> Result<Record, String> {
        let field = |at: usize| fields(line).nth(at).ok_or_else(|| format!("field {} is missing", at + 1));
        let show = |f: &[u8]| String::from_utf8_lossy(f).chars().take(40).collect::<String>();
        let page = field(self.address)?;
        let page = number(page).ok_or_else(|| format!("'{}' is not an address", show(page)))?;
        let pid = match self.pid {
            None => None,
            Some(at) => {
                let text = field(at)?;
                let pid = number(text).and_then(|n| u32::try_from(n).ok());
                Some(pid.ok_or_else(|| format!("'{}' is not a process number", show(text)))?)
            }
        };
        let write = match self.access {
            None => false,
            Some(at) => {
                let access = field(at)?;
                match access.first().map(u8::to_ascii_lowercase) {
                    Some(b'w' | b's') => true,
                    Some(b'r' | b'l' | b'i') => false,
                    _ => return Err(format!("'{}' is neither r nor w", show(access))),
                }
            }
        };
        Ok(Record { page, write, pid })
    }
}

/// Whether a line is a header, or a reference in the default columns and no other.
pub(super) fn is_csv(line: &[u8]) -> bool {
    (line.contains(&b',') && Columns::of_header(line).is_some())
        || (fields(line).count() == 4 && Columns::default().reference(line).is_ok())
}
