//! `unmap`, `mremap` and `populate`: what the kernel's operations on a mapping cost for each page, alone and while other
//! threads run in the same address space, whose translations it then has to take back.
//!
//! The three have the same parameters and differ in their operations. The source of each operation's meaning is its page
//! of the Linux manual: munmap(2), mprotect(2), madvise(2), mremap(2), mmap(2).

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::declared;
use crate::observation::Unit;

/// The columns of the table `operations.cost`, after the operation's name: a row for each operation and number of
/// sharers. Times are processor time of the calling thread; `shootdowns` are the interrupts by which the whole machine's
/// processors were told to drop translations, for each operation.
pub const COLUMNS: [(&str, Unit); 5] = [
    ("sharers", Unit::Count),
    ("page.median", Unit::Nanoseconds),
    ("page.least", Unit::Nanoseconds),
    ("faults", Unit::Count),
    ("shootdowns", Unit::Count),
];

/// The parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Addressing {
    /// Base pages of the mapping that each operation is done to
    #[arg(long, value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    pub pages: u64,
    /// Rounds of each operation, each on a fresh mapping; figures are the median
    #[arg(long, value_name = "N", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Other threads that run in the same address space, each on a processor of its own; every operation is measured without
    /// and with them
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub sharers: u32,
}
declared!(Addressing);

impl Addressing {
    /// The mapping, of which there is one at a time.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        Footprint { anonymous: self.pages.saturating_mul(page_size), file: 0 }
    }
}
