//! What `replay` and `mrc` observe: misses against memory, of one policy or system on a stream.

use crate::Observation;
use crate::catalogue::CURVE;
use crate::metrics;
use crate::observation::{Column, Table, Unit, Values};

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
    let column = |name: &str, unit, value: &dyn Fn(&Point) -> Option<f64>| Column {
        name: name.to_owned(),
        unit: Some(unit),
        values: Values::Number(points.iter().map(value).collect()),
    };
    let mut columns = vec![
        column("size", Unit::Bytes, &|p| Some(f64::from(p.frames) * page_size as f64)),
        column("frames", Unit::Pages, &|p| Some(f64::from(p.frames))),
        column("misses", Unit::Count, &|p| p.misses.map(|misses| misses as f64)),
        column("miss.ratio", Unit::Share, &|p| p.ratio),
        column("miss.ratio.error", Unit::Share, &|p| p.error),
    ];
    if points.iter().any(|point| point.mean_resident.is_some()) {
        columns.push(column("frames.mean", Unit::Pages, &|p| p.mean_resident));
    }
    if points.iter().any(|point| point.byte_ratio.is_some()) {
        columns.push(column("byte.miss.ratio", Unit::Share, &|p| p.byte_ratio));
    }
    if points.iter().any(|point| point.write_backs.is_some()) {
        columns.push(column("write-backs", Unit::Count, &|p| p.write_backs.map(|count| count as f64)));
    }
    if points.iter().any(|point| point.read_ahead.is_some()) {
        columns
            .push(column("read-ahead.waits", Unit::Count, &|p| p.read_ahead.map(|(waits, _)| waits as f64)));
        columns
            .push(column("read-ahead.pages", Unit::Pages, &|p| p.read_ahead.map(|(_, pages)| pages as f64)));
    }
    let table = Table { name: CURVE.to_owned(), columns };
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
    Observation::Environment([("page.size".to_owned(), bytes.to_string())].into())
}
