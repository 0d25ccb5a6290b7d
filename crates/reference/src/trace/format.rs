//! The formats of recorded traces: their names, and what they hold.

use std::fmt;
use std::str::FromStr;

use super::{champ_sim, oracle, vscsi};

/// How a trace is written. Each may be compressed with gzip, zstd, bzip2 or xz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// See [`super::recorded`].
    Recorded,
    /// See [`super::oracle`].
    OracleGeneral,
    /// See [`super::lcs`].
    Lcs,
    /// See [`super::lackey`].
    Lackey,
    /// See [`super::perf_script`].
    PerfScript,
    /// See [`super::champ_sim`].
    ChampSim,
    /// See [`super::csv`].
    Csv,
    /// See [`super::load_store`].
    LoadStore,
    /// See [`super::block_csv`].
    Spc,
    /// See [`super::block_csv`].
    Msr,
    /// See [`super::vscsi`].
    Vscsi1,
    /// See [`super::vscsi`].
    Vscsi2,
    /// Page numbers as text, see [`super::plain`].
    Text,
    /// Page numbers as binary u64, see [`super::plain`].
    U64,
    /// The same, the highest byte first.
    U64Be,
    /// Page numbers as binary u32, see [`super::plain`].
    U32,
    /// The same, the highest byte first.
    U32Be,
}

impl Format {
    /// All formats, with one line each.
    pub const ALL: [(Self, &'static str, &'static str); 17] = [
        (Self::Recorded, "pagelab", "a recording of pagelab trace: loads, stores and fetches by thread"),
        (Self::OracleGeneral, "oracle-general", "libCacheSim's binary records of 24 bytes; objects as pages"),
        (Self::Lcs, "lcs", "libCacheSim's lcs, versions 1 to 3; objects as pages"),
        (Self::PerfScript, "perf-script", "memory samples: perf script -F pid,event,addr"),
        (Self::ChampSim, "champsim", "ChampSim's instruction traces, records of 64 bytes"),
        (Self::Lackey, "lackey", "valgrind --tool=lackey --trace-mem=yes"),
        (Self::Csv, "csv", "time,pid,address,r|w; a header line may name other columns"),
        (Self::LoadStore, "load-store", "l|s hexadecimal-address instructions-since"),
        (Self::Spc, "spc", "block trace: unit,block,bytes,r|w,seconds (Storage Performance Council)"),
        (
            Self::Msr,
            "msr",
            "block trace: filetime,host,disk,Read|Write,offset,bytes,response (MSR Cambridge)",
        ),
        (Self::Vscsi1, "vscsi1", "VMware's vscsiStats, records of 32 bytes"),
        (Self::Vscsi2, "vscsi2", "VMware's vscsiStats, records of 40 bytes"),
        (Self::Text, "text", "page numbers, decimal, one per line"),
        (Self::U64, "u64", "page numbers, binary little-endian 64 bits"),
        (Self::U64Be, "u64-be", "page numbers, binary big-endian 64 bits"),
        (Self::U32, "u32", "page numbers, binary little-endian 32 bits"),
        (Self::U32Be, "u32-be", "page numbers, binary big-endian 32 bits"),
    ];

    /// Whether the trace holds byte addresses, which the page size divides into pages.
    pub fn has_addresses(self) -> bool {
        !self.has_page_numbers() && !matches!(self, Self::OracleGeneral | Self::Lcs)
    }

    /// Whether the trace says which references write; a csv may lack the column.
    pub fn knows_writes(self) -> bool {
        self.has_addresses() || self == Self::Lcs
    }

    /// Whether the trace says how many bytes are asked for.
    pub fn knows_sizes(self) -> bool {
        matches!(
            self,
            Self::OracleGeneral | Self::Lcs | Self::Csv | Self::Spc | Self::Msr | Self::Vscsi1 | Self::Vscsi2
        )
    }

    /// Whether the trace holds page numbers, which can be taken as they are.
    pub fn has_page_numbers(self) -> bool {
        matches!(self, Self::Text | Self::U64 | Self::U64Be | Self::U32 | Self::U32Be)
    }

    /// Bytes in a record of a binary format; `None` for text, and where a header says it.
    pub(super) fn record_size(self) -> Option<usize> {
        match self {
            Self::OracleGeneral => Some(oracle::SIZE),
            Self::ChampSim => Some(champ_sim::SIZE),
            Self::Vscsi1 => Some(vscsi::SIZE_1),
            Self::Vscsi2 => Some(vscsi::SIZE_2),
            Self::U64 | Self::U64Be => Some(8),
            Self::U32 | Self::U32Be => Some(4),
            _ => None,
        }
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
#[error("unknown trace format '{0}'; must be one of \
    {names}", names = Format::ALL.map(|(_, n, _)| n).join(", "))]
pub struct UnknownFormat(String);

impl FromStr for Format {
    type Err = UnknownFormat;

    /// Whatever the case, and with or without hyphens: libCacheSim writes `oracleGeneral`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        let found = Self::ALL.iter().find(|(_, name, _)| plain(name) == plain(text));
        found.map(|(format, ..)| *format).ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}
