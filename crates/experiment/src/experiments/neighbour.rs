//! `neighbour`: what a load pays for another one beside it under the same memory limit, and what protecting it gives back.
//!
//! Two cgroups of version 2 share a limit. The victim makes references to its mapping; the neighbour writes its own, page
//! after page, again and again. The victim's references are made alone, beside the neighbour, and beside it with what it
//! had alone, and an eighth more, as its `memory.low` and as its `memory.min` (Documentation/admin-guide/cgroup-v2.rst).

use pagelab_reference::Pattern;
use serde::{Deserialize, Serialize};

use super::Footprint;
use super::paging::text;
use crate::declaration::declared;
use crate::observation::Unit;

/// The situations in which the victim's references are made, in their order.
pub const SITUATIONS: [&str; 4] = ["alone", "beside", "low", "min"];

/// The columns of the table `situations`, after the situation's name: the major faults of the victim's thread, its cgroup's own
/// count of them, minor faults, refaults, what is charged to the victim and to the other at the end, how often the neighbour wrote
/// a page meanwhile, and how often the victim was reclaimed from below its `memory.low`.
pub const COLUMNS: [(&str, Unit); 8] = [
    ("major", Unit::Count),
    ("pgmajfault", Unit::Count),
    ("minor", Unit::Count),
    ("refaults", Unit::Pages),
    ("victim", Unit::Bytes),
    ("other", Unit::Bytes),
    ("written", Unit::Count),
    ("low", Unit::Count),
];

/// The parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(default)]
pub struct Neighbour {
    /// Pages of the victim's mapping, anonymous memory
    #[arg(long, value_name = "PAGES", default_value = "8192", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub pages: u64,
    /// The victim's references in each situation; each writes a word
    #[arg(long, value_name = "N", default_value = "50000", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub references: u64,
    /// The order of the victim's references (see: pagelab patterns)
    #[arg(long, value_name = "PATTERN", default_value = "zipf:0.9")]
    #[serde(with = "text")]
    pub pattern: Pattern,
    /// Pages of the neighbour's mapping, which it writes in order, again and again
    #[arg(long, value_name = "PAGES", default_value = "16384", value_parser = clap::value_parser!(u64).range(1..=1 << 31))]
    pub neighbour: u64,
    /// The seed of the pattern
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
}
declared!(Neighbour);

impl Neighbour {
    /// Both mappings.
    pub fn footprint(&self, page_size: u64) -> Footprint {
        Footprint { anonymous: self.pages.saturating_add(self.neighbour).saturating_mul(page_size), file: 0 }
    }
}
