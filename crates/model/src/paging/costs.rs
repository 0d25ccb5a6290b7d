//! What things cost, in nanoseconds of virtual time.

use crate::parameter::Parameter;
use crate::parameter_table;

/// The named costs of a modelled machine. All are parameters; the two presets say where theirs come
/// from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A reference to a page that is mapped.
    pub hit: u64,
    /// The processor's part of a fault that needs no input: trap, page tables, zeroing or remapping.
    pub minor: u64,
    /// The processor's part of a fault that waits for input.
    pub major: u64,
    /// Looking at one page in reclaim.
    pub scan: u64,
    /// Positioning the swap device when a request does not follow the one before it.
    pub seek: u64,
    /// Moving one page to or from the swap device.
    pub transfer: u64,
}

/// One parameter for each cost.
pub const PARAMETERS: &[Parameter<Costs>] = parameter_table! {
    whole "hit" "ns" [1.0, 1e9] "reference to a mapped page",
        assumed("copying a page at 1 GB/s (2002); a read from cache and memory (today)"), (hit);
    whole "minor" "ns" [0.0, 1e9] "CPU time of a minor fault",
        assumed("a few microseconds (2002); 0.7 µs (today)"), (minor);
    whole "major" "ns" [0.0, 1e9] "CPU time of a major fault",
        assumed("as a minor fault, plus the block layer"), (major);
    whole "scan" "ns" [0.0, 1e9] "scan of a page during reclaim", assumed("a few cache misses"), (scan);
    whole "seek" "ns" [0.0, 1e11] "positioning time of the swap device",
        assumed("8.5 ms seek and half a rotation at 7,200 rpm (2002); a random page of a solid-state disk (today)"), (seek);
    whole "transfer" "ns" [0.0, 1e9] "transfer of a page to or from the swap device",
        assumed("25 MB/s (2002); 2 GB/s (today)"), (transfer);
};

impl Costs {
    /// A personal computer of 2002. Assumed, not measured: copying a page at 1 GB/s, faults at a few
    /// microseconds, a disk of 7,200 rpm with 8.5 ms seek and 4.2 ms half a turn, 25 MB/s.
    pub const PC_2002: Self =
        Self { hit: 4_000, minor: 5_000, major: 10_000, scan: 500, seek: 12_700_000, transfer: 164_000 };

    /// A server of today with a solid-state disk. Assumed: a page read from cache and memory in
    /// 100 ns, a minor fault of 0.7 µs, 80 µs for a random page from the device, 2 GB/s after it. Take
    /// a measured run's instead where there is one.
    pub const TODAY: Self =
        Self { hit: 100, minor: 700, major: 2_500, scan: 60, seek: 75_000, transfer: 2_000 };

    /// These costs with the figures of a measured run in nanoseconds (medians of a hit, a minor and
    /// a major fault) in place of the assumed ones; a figure that was not measured keeps the
    /// assumption. The wait of a major fault becomes the device's positioning time.
    pub fn measured(self, hit: Option<f64>, minor: Option<f64>, major: Option<f64>) -> Self {
        let whole = |value: Option<f64>| value.filter(|v| *v >= 0.0).map(|v| v.round() as u64);
        let mut costs = self;
        costs.hit = whole(hit).unwrap_or(costs.hit);
        // The measured times include the reference itself.
        costs.minor = whole(minor).map_or(costs.minor, |m| m.saturating_sub(costs.hit));
        if let Some(major) = whole(major) {
            costs.seek = major.saturating_sub(costs.hit + costs.major + costs.transfer);
        }
        costs
    }

    /// Name, value in nanoseconds, for printing.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("hit", self.hit),
            ("minor", self.minor),
            ("major", self.major),
            ("scan", self.scan),
            ("seek", self.seek),
            ("transfer", self.transfer),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::Costs;

    #[test]
    fn measured_figures_replace_the_assumed_ones() {
        let costs = Costs::TODAY.measured(Some(90.0), None, Some(50_090.0));
        assert_eq!((costs.hit, costs.minor), (90, Costs::TODAY.minor));
        assert_eq!(costs.hit + costs.major + costs.seek + costs.transfer, 50_090);
    }
}
