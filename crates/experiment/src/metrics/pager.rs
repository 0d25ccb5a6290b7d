//! Metrics of the target `pager:POLICY`.

use super::metrics;

metrics! {
    PAGER_VISIBLE = "pager.visible", Share, Share, Neither,
        "pager: share of the references visible to the policy",
        "At 1 every reference is visible, and the misses equal the model's. Below 1 some of the \
         policy's pages are in the page table. A reference to such a page causes no fault.";
    PAGER_SERVICE = "pager.service", Nanoseconds, Mean, Lower,
        "pager: mean time of a major fault in the pager itself",
        "From the pager's first step on the fault until the page is present: policy, eviction, \
         decompression and system calls. The rest of access.major.mean is the way to the pager's \
         thread and back.";
    PAGER_POLICY = "pager.policy", Nanoseconds, Mean, Lower,
        "pager: mean time of a fault in the policy, including the search for its victim",
        "The model's own code, and the lookup of the evicted page.";
    PAGER_STORE_PEAK = "pager.store.peak", Bytes, Max, Lower,
        "pager: peak size of the evicted pages, compressed",
        "pagelab compresses evicted pages with zstd and keeps them in memory. Zero pages take no \
         space.";
}
