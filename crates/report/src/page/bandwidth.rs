//! How many bytes a second memory gives against the working set, and against the threads: the pictures of `bandwidth`.

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_experiment::ColumnId;
use pagelab_experiment::observation::{Table, Unit};
use pagelab_experiment::tables::bandwidth;

use super::caches;
use super::plot::unit_name;
use super::shown::Shown;

/// STREAM's loops.
const LOOPS: [ColumnId; 4] = [bandwidth::COPY, bandwidth::SCALE, bandwidth::ADD, bandwidth::TRIAD];
/// Of several runs this one alone is drawn: a line for each loop, number of threads and run could not be told apart.
const OF_SEVERAL: usize = 3;
/// The strokes of one number of threads after the other.
const DASHES: [usize; 4] = [0, 2, 3, 1];

/// What lies on the abscissa.
#[derive(Clone, Copy, PartialEq)]
enum Against {
    /// The working set, a line for each number of threads.
    Size,
    /// The threads, of the greatest working set.
    Threads,
}

/// A row of the table.
struct Row {
    size: f64,
    threads: f64,
    rates: [Option<f64>; 4],
}

/// The pictures, if any of the runs has rates at more than one working set, or of more than one number of threads.
pub fn plots(shown: &[Shown]) -> Vec<Plot> {
    let runs: Vec<(&Shown, Vec<Row>)> =
        shown.iter().filter_map(|s| Some((s, rows(s.seen().table(bandwidth::TABLE)?)?))).collect();
    let Some((first, _)) = runs.first() else { return Vec::new() };
    let [mut by_size, mut by_threads] =
        [Against::Size, Against::Threads].map(|against| picture(&runs, against));
    by_size.wide = true;
    // A smaller cache than any working set would only widen the picture.
    let smallest = runs.iter().flat_map(|(_, rows)| rows).map(|row| row.size).fold(f64::INFINITY, f64::min);
    by_size.marks = caches::sizes(first).into_iter().filter(|mark| mark.x >= smallest).collect();
    by_threads.wide = by_size.series.is_empty();
    [by_size, by_threads].into_iter().filter(|plot| !plot.series.is_empty()).collect()
}

impl Row {
    /// Its place on the abscissa, and what a line's points have in common.
    fn place(&self, against: Against) -> (f64, f64) {
        match against {
            Against::Size => (self.size, self.threads),
            Against::Threads => (self.threads, self.size),
        }
    }
}

fn rows(table: &Table) -> Option<Vec<Row>> {
    let (sizes, threads) = (table.numbers(bandwidth::SIZE)?, table.numbers(bandwidth::THREADS)?);
    let rates = LOOPS.map(|name| table.numbers(name));
    let rate = |row: usize, which: usize| rates[which].and_then(|rates| rates.get(row).copied().flatten());
    let row = |(n, (size, threads)): (usize, (&Option<f64>, &Option<f64>))| {
        Some(Row { size: (*size)?, threads: (*threads)?, rates: std::array::from_fn(|which| rate(n, which)) })
    };
    Some(sizes.iter().zip(threads).enumerate().filter_map(row).collect())
}

/// The picture without marks: no line has a single point.
fn picture(runs: &[(&Shown, Vec<Row>)], against: Against) -> Plot {
    let several = runs.len() > 1;
    let loops = if several { OF_SEVERAL..LOOPS.len() } else { 0..LOOPS.len() };
    let named = match several {
        true => "Triad (a = b + s c)",
        false => "Copy (c = a), scale (b = s c), add (c = a + b) and triad (a = b + s c)",
    };
    let (title, x, more) = match against {
        Against::Size => (
            "Memory bandwidth against the working set",
            Axis::log("working set", unit_name(Some(Unit::Bytes))),
            "Upright lines: the processor's caches.",
        ),
        Against::Threads => (
            "Memory bandwidth against the threads",
            Axis::linear("threads", unit_name(Some(Unit::Count))),
            "At the largest working set, which the threads share.",
        ),
    };
    let caption = format!(
        "{named}: bytes that the loop reads and writes, all threads together, of the median round. {more}"
    );
    let y = Axis::linear("bandwidth", unit_name(Some(Unit::BytesPerSecond))).switchable();
    let mut plot = Plot::new(title, caption, x, y);
    for (s, rows) in runs {
        let mut lines: Vec<f64> = rows.iter().map(|row| row.place(against).1).collect();
        lines.sort_by(f64::total_cmp);
        lines.dedup();
        let most = if against == Against::Size { DASHES.len() } else { 1 };
        // Of more than can be told apart the greatest.
        let lines = &lines[lines.len().saturating_sub(most)..];
        for (dash, line) in DASHES.into_iter().zip(lines) {
            let mut points: Vec<&Row> = rows.iter().filter(|row| row.place(against).1 == *line).collect();
            points.sort_by(|a, b| a.place(against).0.total_cmp(&b.place(against).0));
            for which in loops.clone() {
                let y: Vec<Option<f64>> = points.iter().map(|row| row.rates[which]).collect();
                if y.iter().flatten().count() < 2 {
                    continue;
                }
                let mut name = LOOPS[which].name.to_owned();
                if against == Against::Size && lines.len() > 1 {
                    name += &format!(", {line} thread{}", if *line == 1.0 { "" } else { "s" });
                }
                plot.series.push(Series {
                    name: if several { format!("{} {name}", s.name()) } else { name },
                    color: if several { s.color } else { which },
                    dash,
                    dots: true,
                    x: points.iter().map(|row| Some(row.place(against).0)).collect(),
                    y,
                    ..Series::default()
                });
            }
        }
    }
    plot
}
