//! The parameters of reverse maps: the costs of their operations, and of the rest of the kernel.

use super::kernel::KernelCosts;
use super::mechanism::Costs;
use crate::parameter::Parameter;
use crate::parameter_table;

const PROFILE: &str =
    "Morton's run and profile without a reverse map: the function's share of 76.19 s divided by its calls";

/// Costs of the operations of a reverse map.
pub const COSTS: &[Parameter<Costs>] = parameter_table! {
    number "miss" "ns" [0.0, 100000.0] "cache miss",
        assumed("a line over the bus that four Pentium IIIs share"), (miss);
    number "shared" "ns" [0.0, 100000.0] "invalidation of a cache line on the other CPUs",
        assumed("ten cycles of a 100 MHz bus, without data"), (shared);
    number "atomic" "ns" [0.0, 100000.0] "atomic operation", assumed("about 40 cycles at 700 MHz"), (atomic);
    number "slab" "ns" [0.0, 100000.0] "slab allocation or free", assumed("about 60 cycles at 700 MHz"), (slab);
    number "call" "ns" [0.0, 100000.0] "call to the reverse map",
        assumed("about 20 cycles at 700 MHz"), (call);
};

/// Costs of the rest of the kernel.
pub const KERNEL: &[Parameter<KernelCosts>] = parameter_table! {
    number "copied" "ns" [0.0, 1000000.0] "page-table entry copied by fork", derived(PROFILE), (copied);
    number "dropped" "ns" [0.0, 1000000.0] "page-table entry dropped by exec or exit", derived(PROFILE), (dropped);
    number "touched" "ns" [0.0, 1000000.0] "first touch of a page", derived(PROFILE), (touched);
    number "fresh" "ns" [0.0, 1000000.0] "additional cost of a new anonymous page", derived(PROFILE), (fresh);
    number "protected" "ns" [0.0, 1000000.0] "write to a write-protected page", derived(PROFILE), (protected);
    number "fork" "ns" [0.0, 100000000.0] "rest of a fork with its exit, or of an exec",
        derived("the same profile: time in unlisted functions, divided by forks and execs"), (call);
};
