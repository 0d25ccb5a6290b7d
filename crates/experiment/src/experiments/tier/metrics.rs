//! Metrics of `tier`.

use crate::metrics::metrics;

metrics! {
    TIER_COST_FAST = "tier.cost.fast", Nanoseconds, Mean, Lower,
        "tier: mean CPU time of a reference to the hot set; bound to the fast node",
        "Includes hint faults and promotions, but not kswapd. Where instructions are counted, \
         slow memory does not need more of them.";
    TIER_HOT_FAST = "tier.hot.fast", Share, Mean, Higher,
        "tier: mean share of the hot set on the fast node; bound to the fast node",
        "Polled twenty times at each position with move_pages(2).";
    TIER_LATENCY_FAST = "tier.latency.fast", Nanoseconds, Mean, Lower,
        "tier: modelled mean wait of a reference to the hot set; bound to the fast node",
        "Modelled from tier.hot and the latencies of both nodes in the machine's tables (HMAT). \
         The model has no caches. Missing if the tables lack the latencies.";
    TIER_COST_SLOW = "tier.cost.slow", Nanoseconds, Mean, Lower,
        "tier: mean CPU time of a reference to the hot set; bound to the slow node",
        "Includes hint faults and promotions, but not kswapd. Where instructions are counted, \
         slow memory does not need more of them.";
    TIER_HOT_SLOW = "tier.hot.slow", Share, Mean, Higher,
        "tier: mean share of the hot set on the fast node; bound to the slow node",
        "Polled twenty times at each position with move_pages(2).";
    TIER_LATENCY_SLOW = "tier.latency.slow", Nanoseconds, Mean, Lower,
        "tier: modelled mean wait of a reference to the hot set; bound to the slow node",
        "Modelled from tier.hot and the latencies of both nodes in the machine's tables (HMAT). \
         The model has no caches. Missing if the tables lack the latencies.";
    TIER_COST_INTERLEAVED = "tier.cost.interleaved", Nanoseconds, Mean, Lower,
        "tier: mean CPU time of a reference to the hot set; interleaved over both nodes",
        "Includes hint faults and promotions, but not kswapd. Where instructions are counted, \
         slow memory does not need more of them.";
    TIER_HOT_INTERLEAVED = "tier.hot.interleaved", Share, Mean, Higher,
        "tier: mean share of the hot set on the fast node; interleaved over both nodes",
        "Polled twenty times at each position with move_pages(2).";
    TIER_LATENCY_INTERLEAVED = "tier.latency.interleaved", Nanoseconds, Mean, Lower,
        "tier: modelled mean wait of a reference to the hot set; interleaved over both nodes",
        "Modelled from tier.hot and the latencies of both nodes in the machine's tables (HMAT). \
         The model has no caches. Missing if the tables lack the latencies.";
    TIER_COST_OFF = "tier.cost.off", Nanoseconds, Mean, Lower,
        "tier: mean CPU time of a reference to the hot set; default placement, without demotion \
         and balancing",
        "Includes hint faults and promotions, but not kswapd. Where instructions are counted, \
         slow memory does not need more of them.";
    TIER_HOT_OFF = "tier.hot.off", Share, Mean, Higher,
        "tier: mean share of the hot set on the fast node; default placement, without demotion \
         and balancing",
        "Polled twenty times at each position with move_pages(2).";
    TIER_LATENCY_OFF = "tier.latency.off", Nanoseconds, Mean, Lower,
        "tier: modelled mean wait of a reference to the hot set; default placement, without \
         demotion and balancing",
        "Modelled from tier.hot and the latencies of both nodes in the machine's tables (HMAT). \
         The model has no caches. Missing if the tables lack the latencies.";
    TIER_COST_ON = "tier.cost.on", Nanoseconds, Mean, Lower,
        "tier: mean CPU time of a reference to the hot set; default placement, with demotion and \
         balancing",
        "Includes hint faults and promotions, but not kswapd. Where instructions are counted, \
         slow memory does not need more of them.";
    TIER_HOT_ON = "tier.hot.on", Share, Mean, Higher,
        "tier: mean share of the hot set on the fast node; default placement, with demotion and \
         balancing",
        "Polled twenty times at each position with move_pages(2).";
    TIER_LATENCY_ON = "tier.latency.on", Nanoseconds, Mean, Lower,
        "tier: modelled mean wait of a reference to the hot set; default placement, with demotion \
         and balancing",
        "Modelled from tier.hot and the latencies of both nodes in the machine's tables (HMAT). \
         The model has no caches. Missing if the tables lack the latencies.";
    TIER_PROMOTED = "tier.promoted", Pages, Count, Neither,
        "tier: pages promoted to the fast tier, with demotion and balancing",
        "The growth of pgpromote_success, of the whole machine.";
    TIER_DEMOTED = "tier.demoted", Pages, Count, Neither,
        "tier: pages demoted to the slow tier, with demotion and balancing",
        "The growth of pgdemote_kswapd, _direct, _khugepaged and _proactive, of the whole \
         machine, including the time in which the mapping is filled.";
    TIER_HINT_FAULTS = "tier.hint-faults", Count, Count, Lower,
        "tier: NUMA hint faults, with demotion and balancing",
        "The growth of numa_hint_faults. The kernel unmaps pages to detect their use; a hint \
         fault is the next access to such a page.";
}
