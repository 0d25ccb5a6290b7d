//! The formats of recorded traces: their names, and recognising them by their first bytes.

use std::fmt;
use std::str::FromStr;

use super::{csv, lackey, load_store, oracle, plain};

/// How a trace is written. Each may be compressed with gzip or zstd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// See [`oracle`].
    OracleGeneral,
    /// See [`lackey`].
    Lackey,
    /// See [`csv`].
    Csv,
    /// See [`load_store`].
    LoadStore,
    /// Page numbers as text, see [`plain`].
    Text,
    /// Page numbers as binary u64, see [`plain`].
    U64,
}

impl Format {
    /// All formats, with one line each.
    pub const ALL: [(Self, &'static str, &'static str); 6] = [
        (
            Self::OracleGeneral,
            "oracle-general",
            "libCacheSim's binary records of 24 bytes; an object is a page",
        ),
        (Self::Lackey, "lackey", "valgrind --tool=lackey --trace-mem=yes"),
        (Self::Csv, "csv", "time,pid,address,r|w; a header line may name other columns"),
        (Self::LoadStore, "load-store", "l|s hexadecimal-address instructions-since"),
        (Self::Text, "text", "page numbers, decimal, one a line"),
        (Self::U64, "u64", "page numbers, binary little-endian 64 bits"),
    ];

    /// Whether the trace holds byte addresses, which the page size divides into pages.
    pub fn has_addresses(self) -> bool {
        matches!(self, Self::Lackey | Self::Csv | Self::LoadStore)
    }

    /// Whether the trace holds page numbers, which can be taken as they are.
    pub fn has_page_numbers(self) -> bool {
        matches!(self, Self::Text | Self::U64)
    }

    /// Recognises the format from the first bytes of the (decompressed) content; `whole` when that is
    /// all of it. Text is judged by its first line that is not a comment. Binary is oracleGeneral
    /// when its records point at each other as they should, else u64 when every number is below
    /// 2^45, the pages of 4 KiB in 57 bits of address.
    pub(super) fn recognise(head: &[u8], whole: bool) -> Option<Self> {
        if head.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace()) {
            let mut lines = head.split(|&b| b == b'\n');
            return lines.find_map(|line| {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                if plain::number(line).is_some() {
                    Some(Self::Text)
                } else if lackey::is_reference(line) {
                    Some(Self::Lackey)
                } else if load_store::reference(line).is_some() {
                    Some(Self::LoadStore)
                } else if csv::is_csv(line) {
                    Some(Self::Csv)
                } else {
                    None
                }
            });
        }
        if oracle::plausible(head, whole) {
            return Some(Self::OracleGeneral);
        }
        let (numbers, _) = head.as_chunks::<8>();
        let small = numbers.iter().all(|n| u64::from_le_bytes(*n) < 1 << 45);
        (small && !numbers.is_empty()).then_some(Self::U64)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, name, _) = Self::ALL.iter().find(|(format, ..)| format == self).expect("all are listed");
        f.write_str(name)
    }
}

/// The name is not one of [`Format::ALL`].
#[derive(Debug, thiserror::Error)]
#[error("there is no trace format '{0}'; try one of: {names}", names = Format::ALL.map(|(_, n, _)| n).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|(_, name, _)| *name == text);
        found.map(|(format, ..)| *format).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
