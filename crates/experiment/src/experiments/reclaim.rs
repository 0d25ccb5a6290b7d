//! `reclaim`: what asking the kernel to give memory back in advance frees, how much of it was cold, and what it costs.
//!
//! A load has a hot part, which it references again and again, and a cold one, which it does not. A file of its cgroup,
//! `memory.reclaim` (Documentation/admin-guide/cgroup-v2.rst, Linux 5.19 and later), is asked for memory step by step: proactive
//! reclaim as in Weiner et al., "TMO: Transparent Memory Offloading in Datacenters" (ASPLOS 2022).

use serde::{Deserialize, Serialize};

use super::Footprint;
use crate::declaration::declared;
use crate::observation::Unit;

/// The columns of the table `steps`, after its number: what was asked for, what the cgroup counts as reclaimed, which pages
/// of the mapping were paged out (cold and hot), the major faults on the hot part afterwards, and the processor time of asking.
pub const COLUMNS: [(&str, Unit); 6] = [
    ("asked", Unit::Bytes),
    ("reclaimed", Unit::Bytes),
    ("out.cold", Unit::Pages),
    ("out.hot", Unit::Pages),
    ("faults.hot", Unit::Count),
    ("time", Unit::Nanoseconds),
];

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Reclaim {
    /// Pages of the hot part, which is referenced between two steps
    #[arg(long, value_name = "PAGES", default_value = "2048", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub hot: u64,
    /// Pages of the cold part, which is not referenced until all steps are done
    #[arg(long, value_name = "PAGES", default_value = "6144", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub cold: u64,
    /// Pages that are asked for, all steps together
    #[arg(long, value_name = "PAGES", default_value = "4096", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub ask: u64,
    /// Steps in which it is asked for
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub steps: u32,
    /// How often the hot part is referenced before each step
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub turns: u32,
}
declared!(Reclaim);

impl Reclaim {
    /// Both parts.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        Footprint { anonymous: self.hot.saturating_add(self.cold).saturating_mul(page_size), file: 0 }
    }
}
