//! Mixes of reads and writes after the personalities of FileBench that McDougall used: the figures
//! are those of its workload files `fileserver.f`, `webserver.f`, `varmail.f` and `oltp.f` (1.5).

use serde::{Deserialize, Serialize};

use super::Share;
use crate::declaration::words;
use crate::size::Size;

/// A personality of FileBench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Whole files of 128 KiB, as many written as read.
    Fileserver,
    /// Whole files of 16 KiB, and a write to a log for every ten reads.
    Webserver,
    /// Messages of 16 KiB, as many written as read.
    Varmail,
    /// Records of 2 KiB in ten data files, as many written as read.
    Oltp,
}
words!(Preset);

impl Preset {
    /// Bytes per read: the mean file size, or the size of a record.
    pub(super) fn read(self) -> Size {
        Size::Bytes(match self {
            Self::Fileserver => 128 << 10,
            Self::Webserver | Self::Varmail => 16 << 10,
            Self::Oltp => 2 << 10,
        })
    }

    /// The share of writes among the reads and writes of a loop.
    pub(super) fn writes(self) -> Share {
        match self {
            Self::Webserver => Share::one_of(11),
            // `oltp.f`: ten writers, each with 100 writes after 1,000 reads.
            Self::Fileserver | Self::Varmail | Self::Oltp => Share::one_of(2),
        }
    }

    /// The number of files. `fileserver.f` has 10,000.
    pub(super) fn files(self) -> u32 {
        match self {
            Self::Fileserver => 100,
            Self::Webserver | Self::Varmail => 1000,
            Self::Oltp => 10,
        }
    }
}
