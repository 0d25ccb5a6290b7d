//! Metrics of `replay`, `mrc` and `wss`.

use crate::metrics::metrics;

metrics! {
    MISSES = "misses", Count, Count, Lower,
        "replay, mrc: misses at the largest memory size",
        "Includes the first reference to each page. Missing if only a sample of the pages was \
         simulated.";
    MISS_RATIO_MEAN = "miss.ratio.mean", Share, Mean, Lower,
        "replay, mrc: mean miss ratio over the memory sizes",
        "Every size has the same weight, whatever its distance to the next. Compare two curves by \
         this figure.";
    WORKING_SET_MEAN = "working-set.mean", Pages, Mean, Neither,
        "wss: mean size of the working set in pages",
        "Over all points taken.";
    WORKING_SET_PEAK = "working-set.peak", Pages, Max, Neither,
        "wss: peak size of the working set in pages",
        "Over all points taken.";
}
