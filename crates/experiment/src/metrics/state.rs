//! The states of all threads: shares of their wall time.

use super::metrics;

metrics! {
    STATE_USER = "state.user", Share, Share, Neither,
        "share of all threads' wall time on a CPU in user mode",
        "See microstate. The shares cover all threads together.";
    STATE_SYSTEM = "state.system", Share, Share, Lower,
        "share of all threads' wall time on a CPU in the kernel",
        "Includes the threads' own faults and reclaim.";
    STATE_RUN_QUEUE = "state.run-queue", Share, Share, Lower,
        "share of all threads' wall time waiting for a CPU",
        "The threads were ready to run but no CPU was free: the machine was busy.";
    STATE_FAULT = "state.fault", Share, Share, Lower,
        "share of all threads' wall time waiting for input: major faults, swap-in, reads",
        "From delay accounting; missing if it is off.";
    STATE_SWAP_IN = "state.swap-in", Share, Share, Lower,
        "share of all threads' wall time waiting for swap-in; part of state.fault",
        "From delay accounting; missing if it is off.";
    STATE_THRASHING = "state.thrashing", Share, Share, Lower,
        "share of all threads' wall time waiting for recently reclaimed pages; part of state.fault",
        "See thrashing and refault. From delay accounting; missing if it is off or the kernel \
         lacks this counter.";
    STATE_RECLAIM = "state.reclaim", Share, Share, Lower,
        "share of all threads' wall time in direct reclaim",
        "See direct reclaim. From delay accounting; missing if it is off.";
    STATE_COMPACTION = "state.compaction", Share, Share, Lower,
        "share of all threads' wall time in direct compaction",
        "Compaction moves pages together to free a huge page. From delay accounting; missing if \
         it is off.";
    STATE_SLEEP = "state.sleep", Share, Share, Neither,
        "share of all threads' wall time in voluntary sleep, including user-space locks",
        "The remainder after all other states. It includes waits that the kernel does not account \
         for.";
    STATE_LOCK = "state.lock", Share, Share, Lower,
        "share of all threads' wall time waiting for kernel locks",
        "From the lock contention tracepoints. Missing if the kernel has none or the user may not \
         trace.";
}
