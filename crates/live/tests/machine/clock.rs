//! The time stamp counter against the kernel's clock.

use pagelab_testing::{Test, tests};

#[cfg(not(target_arch = "x86_64"))]
pub fn tests() -> Vec<Test> {
    tests! {}
}

#[cfg(target_arch = "x86_64")]
pub fn tests() -> Vec<Test> {
    tests! {
        the_tsc_agrees_with_the_kernel: x86::TSC;
    }
}

#[cfg(target_arch = "x86_64")]
use x86::the_tsc_agrees_with_the_kernel;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use pagelab_live::harness::clock::{Clock, Monotonic, Tsc};
    use pagelab_testing::Need;

    /// The kernel trusts the TSC.
    pub const TSC: Need = Need {
        name: "tsc",
        on: &[],
        met: || {
            Tsc::calibrated()
                .map(drop)
                .ok_or_else(|| "the kernel does not use the TSC as its clock source".into())
        },
    };

    pub fn the_tsc_agrees_with_the_kernel() {
        let tsc = Tsc::calibrated().unwrap();
        let (ticks, time) = (tsc.now(), Monotonic.now());
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (ticks, time) = (tsc.nanoseconds(tsc.now() - ticks), Monotonic.now() - time);
        // Time daemons bend CLOCK_MONOTONIC by up to 500 ppm; the test may be preempted once.
        assert!(ticks.abs_diff(time) < time / 100, "{ticks} ns against {time} ns");
    }
}
