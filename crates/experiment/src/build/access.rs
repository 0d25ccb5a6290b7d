//! The figures of the access time, from its distributions by what a reference met.

use super::Figure;
use super::distribution::merged;
use crate::catalogue::name;
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
    let quantile = |histogram: &Histogram, q| histogram.quantile(q).map(|v| v as f64);
    vec![
        (name::ACCESS_MEAN, all.mean()),
        (name::ACCESS_P50, quantile(&all, 0.5)),
        (name::ACCESS_P99, quantile(&all, 0.99)),
        (name::ACCESS_P999, quantile(&all, 0.999)),
        (name::ACCESS_MAX, (all.count() > 0).then_some(all.max as f64)),
        (name::ACCESS_HIT_MEAN, hit.mean()),
        (name::ACCESS_HIT_P50, quantile(hit, 0.5)),
        (name::ACCESS_MINOR_MEAN, minor.mean()),
        (name::ACCESS_MINOR_P50, quantile(minor, 0.5)),
        (name::ACCESS_MAJOR_MEAN, major.mean()),
        (name::ACCESS_MAJOR_P50, quantile(major, 0.5)),
        (name::ACCESS_MAJOR_P99, quantile(major, 0.99)),
    ]
}
