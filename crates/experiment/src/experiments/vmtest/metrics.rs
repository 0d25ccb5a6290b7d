//! Metrics of `vmtest`.

use crate::metrics::metrics;

metrics! {
    SPEED_FIRST = "speed.first", PerSecond, Rate, Higher,
        "vmtest: page reads per second at the smallest size",
        "At this size everything fits into the first-level cache.";
    SPEED_LAST = "speed.last", PerSecond, Rate, Higher,
        "vmtest: page reads per second at the largest size",
        "Beyond the memory limit, if the sweep extends that far.";
}
