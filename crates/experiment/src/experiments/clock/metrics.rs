//! Metrics of `clock`.

use crate::metrics::metrics;

metrics! {
    CLOCK_AGREEMENT = "clock.agreement", Count, Value, Higher,
        "clock: 1 if all clocks agree, 0 if any rule found them suspect",
        "The rules: clocks agree over a step, no clock jumps, and sleeps end neither early nor \
         far too late.";
    CLOCK_STEP_WORST = "clock.step.worst", Nanoseconds, Max, Lower,
        "clock: maximum difference between two clocks over one step",
        "A time daemon may slew a clock by up to 500 ppm; a larger difference is suspect.";
    CLOCK_DRIFT_WORST = "clock.drift.worst", Ratio, Max, Lower,
        "clock: maximum drift of a clock against CLOCK_MONOTONIC_RAW, 1e-6 = 1 ppm",
        "A time daemon can cause up to 500 ppm.";
    CLOCK_SKEW_WORST = "clock.skew.worst", Nanoseconds, Max, Lower,
        "clock: maximum proven skew of the time stamp counter between two CPUs",
        "Proven means that no order of events explains the readings otherwise. 0 means that no \
         skew is proven.";
    CLOCK_SKEW_BOUND = "clock.skew.bound", Nanoseconds, Max, Lower,
        "clock: upper bound of the skew between two CPUs",
        "Two CPUs' counters may differ by this much without any software test detecting it.";
    CLOCK_JUMPS = "clock.jumps", Count, Count, Lower,
        "clock: jumps of a clock, backward or forward, during the test",
        "The only good value is 0.";
    CLOCK_REFERENCE_DRIFT = "clock.reference.drift", Ratio, Value, Neither,
        "clock: drift of this machine against the reference, 1e-6 = 1 ppm",
        "pagelab treats neither clock as the correct one.";
    CLOCK_REFERENCE_ERROR = "clock.reference.error", Ratio, Value, Lower,
        "clock: uncertainty of that drift",
        "The uncertainty of the round trips to the reference. A smaller drift is not \
         distinguishable from none.";
    CLOCK_STEAL = "clock.steal", Share, Share, Lower,
        "clock: share of CPU time stolen during the test",
        "See steal. Stolen time lengthens all measured times by the same amount.";
}
