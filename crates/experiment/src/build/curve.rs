//! What `replay` and `mrc` observe: misses against memory, of one policy or system on a stream.

use super::Sheet;
use crate::Observation;
use crate::environment;
use crate::metrics;
use crate::tables::curve;

/// One point of a curve.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// The memory in frames.
    pub frames: u32,
    /// The misses; `None` where only a share of the pages was looked at.
    pub misses: Option<u64>,
    /// Misses divided by references.
    pub ratio: Option<f64>,
    /// The standard error of a sampled ratio.
    pub error: Option<f64>,
    /// Pages resident in the mean, of a policy without a fixed number of frames.
    pub mean_resident: Option<f64>,
    /// Times that a dirty page had to be written.
    pub write_backs: Option<u64>,
    /// Bytes missed divided by bytes asked for, of objects of different sizes.
    pub byte_ratio: Option<f64>,
    /// With read-ahead: references that waited for a read, and pages read.
    pub read_ahead: Option<(u64, u64)>,
}

/// The curve through these points as a run keeps it: the table, its main figures, and the page size.
pub fn curve(page_size: u64, points: &[Point]) -> Vec<Observation> {
    let count = |count: Option<u64>| count.map(|count| count as f64);
    let mut sheet = Sheet::new(curve::TABLE);
    for point in points {
        let frames = f64::from(point.frames);
        let (waits, pages) = point.read_ahead.unzip();
        sheet.row([
            Some(frames * page_size as f64),
            Some(frames),
            count(point.misses),
            point.ratio,
            point.error,
            point.mean_resident,
            point.byte_ratio,
            count(point.write_backs),
            count(waits),
            count(pages),
        ]);
    }
    let mut table = sheet.table();
    // The others are there where some point has a figure.
    let always = [curve::SIZE, curve::FRAMES, curve::MISSES, curve::RATIO, curve::RATIO_ERROR];
    table.columns.retain(|column| {
        let known = column.numbers().is_some_and(|numbers| numbers.iter().any(Option::is_some));
        known || always.iter().any(|always| always.name == column.name)
    });
    let largest = points.iter().max_by_key(|point| point.frames);
    let ratios: Vec<f64> = points.iter().filter_map(|point| point.ratio).collect();
    let whole = ratios.len() == points.len();
    let (_, mean) = metrics::MISS_RATIO_MEAN.over(ratios.into_iter().filter(|_| whole));
    vec![
        page_size_of(page_size),
        Observation::Table(table),
        Observation::Metric(
            metrics::MISSES.figure(largest.and_then(|p| p.misses).map(|misses| misses as f64)),
        ),
        Observation::Metric(metrics::MISS_RATIO_MEAN.figure(mean)),
    ]
}

/// The only fact about the machine behind a stream.
pub fn page_size_of(bytes: u64) -> Observation {
    Observation::Environment([(environment::PAGE_SIZE.to_owned(), bytes.to_string())].into())
}
