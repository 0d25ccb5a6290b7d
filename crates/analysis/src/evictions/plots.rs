//! Gorman's page-age graph: the ages of evicted pages and of pages in memory over the run, and the
//! distribution of age ranks.

use super::{CLASSES, Judgement, Sample};
use crate::figure::{Axis, Plot, Series};

/// The plots of a judgement. `of` is the run's name if there are several runs.
pub fn plots(judgement: &Judgement, of: &str) -> [Plot; 2] {
    [ages(judgement, of), ranks(judgement, of)]
}

/// Ages over the run: median and the first and ninth decile.
fn ages(judgement: &Judgement, of: &str) -> Plot {
    let time = match judgement.interval {
        1 => "is exact".to_owned(),
        interval => format!("has a resolution of {interval} references"),
    };
    let mut plot = Plot::new(
        format!("Age of evicted pages and of pages in memory{of}"),
        format!(
            "A page's age is the number of references since the last one to it. Solid: the median; dotted: \
            the first and the ninth decile. The time of an eviction {time}."
        ),
        Axis::linear("references", ""),
        Axis::log("age [references]", "").switchable(),
    );
    type Deciles = fn(&Sample) -> &Vec<u32>;
    let (evicted, resident): (Deciles, Deciles) = (|sample| &sample.evicted, |sample| &sample.resident);
    for (color, (name, deciles)) in [("evicted", evicted), ("in memory", resident)].into_iter().enumerate() {
        for (decile, dash, word) in [(5, 0, "median"), (1, 1, "1st decile"), (9, 1, "9th decile")] {
            let value = |sample: &Sample| deciles(sample).get(decile).map(|&age| f64::from(age.max(1)));
            plot.series.push(Series {
                name: format!("{name}, {word}"),
                color,
                dash,
                x: judgement.samples.iter().map(|sample| Some(f64::from(sample.reference))).collect(),
                y: judgement.samples.iter().map(value).collect(),
                ..Series::default()
            });
        }
    }
    plot
}

/// The distribution of age ranks, compared with a random choice.
fn ranks(judgement: &Judgement, of: &str) -> Plot {
    let mut plot = Plot::new(
        format!("Age rank of evicted pages{of}"),
        "0% is the page in memory that was referenced last, 100% the one that was not referenced for \
         the longest time. LRU evicts at 100%; a random choice evicts equally often at each rank.",
        Axis::linear("age rank among the pages in memory [%]", ""),
        Axis::linear("share of the evictions", "share"),
    );
    let width = 100.0 / CLASSES as f64;
    let all = judgement.evictions.max(1) as f64;
    let point = |(n, &count): (usize, &u64)| ((n as f64 + 0.5) * width, count as f64 / all);
    let shares =
        Series { dots: true, ..Series::line("evictions", judgement.ranks.iter().enumerate().map(point)) };
    let level = 1.0 / CLASSES as f64;
    let chance =
        Series { color: 1, dash: 1, ..Series::line("random choice", [(0.0, level), (100.0, level)]) };
    plot.series = vec![shares, chance];
    plot
}
