//! The parameters of a read: the CPU time of each part.

use super::path::Costs;
use crate::parameter::Parameter;
use crate::parameter_table;

/// Costs of the parts of a read.
pub const COSTS: &[Parameter<Costs>] = parameter_table! {
    number "call" "µs" [0.0, 10000.0] "call and copy of 8 KiB", fitted("small-in-memory, Solaris 8"), (call);
    number "reclaim" "µs" [0.0, 10000.0] "reclaim of a page from the cache list",
        fitted("large-in-memory, Solaris 10, minus small-in-memory, Solaris 8"), (reclaim);
    number "map" "µs" [0.0, 10000.0] "unmapping and mapping of a window",
        fitted("large-in-memory, Solaris 8 minus Solaris 10"), (map);
    number "input" "µs" [0.0, 10000.0] "start of input and its interrupt",
        fitted("large-non-cached minus large-in-memory, Solaris 8"), (input);
    number "cross-call" "µs" [0.0, 1000.0] "wait per other CPU in an unmap",
        assumed("round trip of an interrupt"), (cross_call);
};
