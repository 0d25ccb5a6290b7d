//! Separated references, as tools on DynamoRIO write them: time, process, address, `r` or `w`, between commas, semicolons,
//! tabulators or bars.
//!
//! A first line that holds no number names the columns, as does whoever reads the trace (`--columns`): `address` (or `addr`,
//! `offset`) in bytes, or `page` (or `block`, `object`, `obj_id`, `id`, `key`) taken as it is, must be among them; `pid` (or
//! `process`), `rw` (or `r/w`, `type`, `op`, `access`) and `size` (or `bytes`, `obj_size`, `length`) may be, and others
//! are passed over. A number is hexadecimal with `0x`, else decimal; an access that begins with `w` or `s` is a write, one
//! that begins with `r`, `l`, `g` or `i` is not. Empty lines and lines that begin with `#` say nothing.

use super::{Record, hexadecimal, plain};

/// What may stand between the fields.
const SEPARATORS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Where the fields are in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    pid: Option<usize>,
    /// An address or a page.
    address: usize,
    /// Whether it is a page.
    page: bool,
    access: Option<usize>,
    bytes: Option<usize>,
}

impl Default for Columns {
    fn default() -> Self {
        Self { pid: Some(1), address: 2, page: false, access: Some(3), bytes: None }
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let separator = SEPARATORS.into_iter().find(|separator| line.contains(separator)).unwrap_or(b',');
    line.split(move |&b| b == separator).map(<[u8]>::trim_ascii)
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
        let address = find(&["address", "addr", "offset"]);
        Some(Self {
            pid: find(&["pid", "process"]),
            address: address.or_else(|| find(&["page", "block", "object", "obj_id", "id", "key"]))?,
            page: address.is_none(),
            access: find(&["rw", "r/w", "type", "op", "access"]),
            bytes: find(&["size", "bytes", "obj_size", "length"]),
        })
    }

    /// Whether the trace holds pages, which no page size divides.
    pub(super) fn have_pages(self) -> bool {
        self.page
    }

    /// Whether a line names columns, whichever: its field of the address is no number.
    pub(super) fn is_heading(self, line: &[u8]) -> bool {
        fields(line).nth(self.address).is_some_and(|field| number(field).is_none())
            && fields(line).all(|field| number(field).is_none())
    }

    /// The page comes back as a byte address; an error says what is wrong.
    pub(super) fn reference(self, line: &[u8]) -> Result<Record, String> {
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
                    Some(b'r' | b'l' | b'g' | b'i') => false,
                    _ => return Err(format!("'{}' is neither r nor w", show(access))),
                }
            }
        };
        let bytes = match self.bytes {
            None => None,
            Some(at) => {
                let text = field(at)?;
                Some(number(text).ok_or_else(|| format!("'{}' is not a size in bytes", show(text)))?)
            }
        };
        Ok(Record { write, pid, bytes, ..Record::of(page) })
    }
}

/// Whether a line is a header, or a reference in the default columns and no other.
pub(super) fn is_csv(line: &[u8]) -> bool {
    (fields(line).count() > 1 && Columns::of_header(line).is_some())
        || (fields(line).count() == 4 && Columns::default().reference(line).is_ok())
}
