//! The figures of the access time, from its distributions by what a reference met.

use super::Figure;
use super::distribution::merged;
use crate::metrics::{
    ACCESS_HIT_MEAN, ACCESS_HIT_P50, ACCESS_MAJOR_MEAN, ACCESS_MAJOR_P50, ACCESS_MAJOR_P99, ACCESS_MAX,
    ACCESS_MEAN, ACCESS_MINOR_MEAN, ACCESS_MINOR_P50, ACCESS_P50, ACCESS_P99, ACCESS_P999, MetricId,
};
use crate::observation::Histogram;

/// The name of the distribution of references whose page was present.
pub const HIT: &str = "access.hit";
/// Of references with a fault that waited for no input.
pub const MINOR: &str = "access.minor";
/// Of references with a fault that waited for input.
pub const MAJOR: &str = "access.major";
/// All three.
pub const KINDS: [&str; 3] = [HIT, MINOR, MAJOR];

/// Mean, quantiles and maximum of all references, and of each kind what is reported of it. The kinds are
/// in the order of [`KINDS`].
pub fn access_metrics(kinds: &[Histogram; 3]) -> Vec<Figure> {
    let all = merged("access", kinds);
    let [hit, minor, major] = kinds;
    let of = |histogram, metrics: &[MetricId]| metrics.iter().map(|m| m.of(histogram)).collect::<Vec<_>>();
    [
        of(&all, &[ACCESS_MEAN, ACCESS_P50, ACCESS_P99, ACCESS_P999, ACCESS_MAX]),
        of(hit, &[ACCESS_HIT_MEAN, ACCESS_HIT_P50]),
        of(minor, &[ACCESS_MINOR_MEAN, ACCESS_MINOR_P50]),
        of(major, &[ACCESS_MAJOR_MEAN, ACCESS_MAJOR_P50, ACCESS_MAJOR_P99]),
    ]
    .concat()
}
