//! vmtest at the published sizes, on a kernel that runs.

use pagelab_analysis::figure::{Series, Table};
use pagelab_experiment::experiments::{Mapping, Vmtest};
use pagelab_experiment::tables::vmtest;
use pagelab_experiment::{ColumnId, Experiment, Run, Size, Sizes};

use super::{Mean, NAME, Row};

use crate::here::{Live, at, table};
use crate::study::columns;

/// Reads that a child makes in all: 512 pages, 5,000 times.
const READS: f64 = 2_560_000.0;

/// The published sweep, a fifth of a second for each size.
pub(crate) fn live() -> Vec<Live> {
    let sizes = (1..=16).map(|children| Size::Bytes(children * (2 << 20))).collect();
    let vmtest = Vmtest {
        sizes: Some(Sizes::List(sizes)),
        mapping: Mapping::Shared,
        seconds: 0.2,
        ..Vmtest::default()
    };
    vec![Live::free("vmtest", Experiment::Vmtest(vmtest))]
}

/// The published rows, the model's and this machine's.
pub(super) fn beside(runs: &[Run], published: &[Row], model: &[Mean], speeds: &[(u32, f64)]) -> Table {
    let live = live();
    let seen = live[0].seen(runs).and_then(|seen| seen.table(vmtest::TABLE));
    let figure = |megabytes: u32, column: ColumnId| {
        at(seen?, vmtest::SIZE, f64::from(megabytes) * 1_048_576.0, column)
    };
    let columns = columns! {
        "" 2 "relative speed published" "model" "here";
        "µs" 3 "page read, published" "model" "here";
        "/s" 0 "faults per second published" "model" "here";
    };
    let mut table = table(NAME, &live, runs, "active memory", columns);
    for ((row, mean), &(_, speed)) in published.iter().zip(model).zip(speeds) {
        let reads = f64::from(row.megabytes / 2) * READS;
        let rate = figure(row.megabytes, vmtest::FAULTS_MINOR)
            .zip(figure(row.megabytes, vmtest::TIME_ELAPSED))
            .map(|(faults, elapsed)| faults / elapsed * 1e9);
        let here = figure(row.megabytes, vmtest::RELATIVE_SPEED);
        table.row(
            format!("{} MB", row.megabytes),
            [
                Some(row.speed),
                Some(speed),
                here,
                Some(row.elapsed / reads * 1e6),
                Some(mean.elapsed / reads * 1e6),
                figure(row.megabytes, vmtest::ACCESS_MEAN).map(|ns| ns / 1e3),
                Some(row.faults / row.elapsed),
                Some(mean.faults / mean.elapsed),
                rate,
            ],
        );
    }
    table
}

/// This machine's line in the plot of throughput, from [`beside`]'s table: medians of several repetitions. One alone is
/// not drawn.
pub(super) fn line(runs: &[Run], table: &Table, published: &[Row]) -> Option<Series> {
    if live()[0].repetitions(runs) < 2 {
        return None;
    }
    let here = table.columns.iter().position(|column| column.name == "here")?;
    let points: Vec<(f64, f64)> = published
        .iter()
        .zip(&table.rows)
        .filter_map(|(row, (_, figures))| Some((f64::from(row.megabytes), figures[here]?)))
        .collect();
    (!points.is_empty()).then(|| Series::line("this machine", points))
}
