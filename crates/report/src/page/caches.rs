//! What a load costs against the working set, with the sizes of the caches and the reach of the TLBs: the picture
//! of `latency`.

use pagelab_analysis::figure::{Axis, Mark, MarkKind, Plot, Series};
use pagelab_experiment::ColumnId;
use pagelab_experiment::environment;
use pagelab_experiment::experiments::Latency;
use pagelab_experiment::tables::latency;

use super::plot::unit_name;
use super::shown::Shown;
use crate::text;

/// The chains: their columns, and what they are called.
const CHAINS: [(ColumnId, &str); 2] = [
    (latency::LINE_LOAD, "every cache line, huge pages"),
    (latency::PAGE_LOAD, "one line of each base page"),
];

/// The picture, if any of the runs has loads.
pub fn plot(shown: &[Shown]) -> Option<Plot> {
    let swept: Vec<&Shown> =
        shown.iter().filter(|s| s.run.header.experiment.parameters::<Latency>().is_some()).collect();
    let several = swept.len() > 1;
    let mut plot = Plot::new(
        "What a load costs against the working set",
        "Each load waits for the one before it, in random order. Upright lines: the processor's caches, and what its last \
         level of TLBs reaches with base pages.",
        Axis::log("working set", "bytes"),
        Axis::log("time of a load", "ns").switchable(),
    );
    plot.wide = true;
    for s in &swept {
        let Some(table) = s.seen().table(latency::TABLE) else { continue };
        let Some(x) = table.numbers(latency::SIZE) else { continue };
        for (n, (column, name)) in CHAINS.into_iter().enumerate() {
            let Some(y) = table.column(column) else { continue };
            plot.y.unit = unit_name(y.unit);
            let Some(y) = y.numbers() else { continue };
            plot.series.push(Series {
                name: if several { format!("{} {name}", s.name()) } else { name.to_owned() },
                color: if several { s.color } else { n },
                dash: if several { 2 * n } else { 0 },
                dots: true,
                x: x.to_vec(),
                y: y.to_vec(),
                ..Series::default()
            });
        }
    }
    plot.marks = swept.first().map_or_else(Vec::new, |s| places(s));
    (!plot.series.is_empty()).then_some(plot)
}

/// The caches' sizes and the TLBs' reach.
fn places(shown: &Shown) -> Vec<Mark> {
    let reach = shown
        .number(environment::TLB_L2)
        .zip(shown.number(environment::PAGE_SIZE))
        .map(|(entries, page)| entries * page);
    sizes(shown).into_iter().chain(reach.map(|bytes| place("TLB reach", bytes))).collect()
}

/// The caches' sizes.
pub(super) fn sizes(shown: &Shown) -> Vec<Mark> {
    let caches =
        [("L1", environment::CACHE_L1D), ("L2", environment::CACHE_L2), ("L3", environment::CACHE_L3)];
    caches.into_iter().filter_map(|(name, key)| Some(place(name, shown.number(key)?))).collect()
}

fn place(name: &str, bytes: f64) -> Mark {
    Mark { label: format!("{name} {}", text::bytes(bytes)), kind: MarkKind::Place, ..Mark::at(bytes) }
}
