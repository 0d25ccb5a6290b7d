//! The parameters of a read: the processor time of its parts.

use super::path::Costs;
use crate::parameter::Parameter;
use crate::parameter_table;

/// What the parts of a read cost.
pub const COSTS: &[Parameter<Costs>] = parameter_table! {
    number "call" "µs" [0.0, 10000.0] "call and copy", fitted("small-in-memory, Solaris 8"), (call);
    number "reclaim" "µs" [0.0, 10000.0] "taking a page from the cache list",
        fitted("large-in-memory, Solaris 10, less small-in-memory, Solaris 8"), (reclaim);
    number "map" "µs" [0.0, 10000.0] "unmapping and mapping a window",
        fitted("large-in-memory, Solaris 8 less Solaris 10"), (map);
    number "input" "µs" [0.0, 10000.0] "starting input and its interrupt",
        fitted("large-non-cached less large-in-memory, Solaris 8"), (input);
    number "cross-call" "µs" [0.0, 1000.0] "wait for each other processor",
        assumed("an interrupt's way there and back"), (cross_call);
};
