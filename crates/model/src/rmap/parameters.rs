//! The parameters of reverse maps: the costs of their parts, and of the kernel besides.

use super::kernel::KernelCosts;
use super::mechanism::Costs;
use crate::parameter::Parameter;
use crate::parameter_table;

const PROFILE: &str =
    "Morton's run and profile without reverse map: the function's share of 76.19 s over its calls";

/// What the parts of a reverse map cost.
pub const COSTS: &[Parameter<Costs>] = parameter_table! {
    number "miss" "ns" [0.0, 100000.0] "a cache miss",
        assumed("a line over the bus that four Pentium III share"), (miss);
    number "shared" "ns" [0.0, 100000.0] "a line that others must drop",
        assumed("ten cycles of a bus of 100 MHz, without data"), (shared);
    number "atomic" "ns" [0.0, 100000.0] "an atomic operation", assumed("some 40 cycles at 700 MHz"), (atomic);
    number "slab" "ns" [0.0, 100000.0] "an allocation or a free", assumed("some 60 cycles at 700 MHz"), (slab);
    number "call" "ns" [0.0, 100000.0] "a call of the reverse map",
        assumed("some 20 cycles at 700 MHz"), (call);
};

/// What the kernel costs besides.
pub const KERNEL: &[Parameter<KernelCosts>] = parameter_table! {
    number "copied" "ns" [0.0, 1000000.0] "an entry copied by fork", derived(PROFILE), (copied);
    number "dropped" "ns" [0.0, 1000000.0] "an entry dropped by exec or exit", derived(PROFILE), (dropped);
    number "touched" "ns" [0.0, 1000000.0] "a first touch of a page", derived(PROFILE), (touched);
    number "fresh" "ns" [0.0, 1000000.0] "additional cost of a fresh page", derived(PROFILE), (fresh);
    number "protected" "ns" [0.0, 1000000.0] "a write to a protected page", derived(PROFILE), (protected);
    number "fork" "ns" [0.0, 100000000.0] "a fork with its exit, or an exec, besides",
        derived("the same profile: the share of no listed function, over forks and execs"), (call);
};
