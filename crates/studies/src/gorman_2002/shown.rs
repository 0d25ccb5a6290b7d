//! Gorman's pictures: single accesses by reference, scaled and unscaled, the pages' counts and
//! presence, and means.

use pagelab_analysis::figure::{Axis, Mark, MarkKind, Plot, Series, Strip};

use super::{Pair, REFERENCES, SystemResult, WINDOWS};
use crate::study::study_plot;

/// Single accesses as a scatter shows them: of those in one of [`COLUMNS`] parts of the test whose
/// times differ by less than a twentieth, one.
pub(super) struct Singles {
    kept: Vec<(f64, f64)>,
    /// Of the present part, by class of time, whether one is kept.
    taken: Vec<bool>,
    column: u64,
}

/// Parts of a test along a scatter's abscissa, and classes of times for each factor of ten.
const COLUMNS: u64 = 300;
const CLASSES: f64 = 48.0;

impl Singles {
    pub(super) fn new() -> Self {
        // Up to 10^12 ns.
        Self { kept: Vec::new(), taken: vec![false; 12 * CLASSES as usize], column: 0 }
    }

    pub(super) fn add(&mut self, reference: u64, ns: u64) {
        let class = ((ns.max(1) as f64).log10() * CLASSES) as usize;
        let class = class.min(self.taken.len() - 1);
        let column = reference * COLUMNS / REFERENCES;
        if column != self.column {
            self.column = column;
            self.taken.fill(false);
        }
        if !std::mem::replace(&mut self.taken[class], true) {
            self.kept.push((reference as f64, ns as f64 / 1e3));
        }
    }
}

/// The single accesses by reference, all of them and the short ones: VM Regress's unscaled and
/// scaled pictures.
pub(super) fn scatters(name: &str, pair: &Pair, exhausted: bool) -> [Plot; 2] {
    let both = [("2.4.19", &pair.stock), ("2.4.19-rmap14a", &pair.rmap)];
    let longest = pair.stock.longest().max(pair.rmap.longest()) * 1e6;
    let scatter = |title: String, caption: &str, most: f64| {
        let cloud =
            |(label, seen): (&str, &SystemResult)| Series::cloud(label, thinned(&seen.singles.kept, most));
        let axes = [Axis::linear("reference", ""), Axis::linear("time of an access", "ns")];
        let [x, y] = axes;
        let mut plot = study_plot(title, x, y, both.map(cloud).into());
        plot.y.toggle = false;
        plot.caption = caption.to_owned();
        if exhausted {
            plot.caption += " The dashed line is where the author saw memory exhausted.";
            plot.marks = vec![Mark { kind: MarkKind::Place, ..Mark::at(EXHAUSTED) }];
        }
        plot
    };
    let unscaled = "The model's accesses, a dot each; of dots that would hide one another one. The published plots \
                    were described in words.";
    [
        scatter(format!("Every access, {name} (unscaled)"), unscaled, longest),
        scatter(
            format!("Up to 20 ms, {name} (scaled)"),
            "The same from near: waiting for one positioning of the disk takes 13 ms.",
            USUAL,
        ),
    ]
}

/// The longest time of the scaled picture, in µs.
const USUAL: f64 = 20e3;
/// Where the author saw memory exhausted, in references.
const EXHAUSTED: f64 = 1e6;

/// Those of the points that are seen on a linear scale up to `most` µs, in ns.
fn thinned(points: &[(f64, f64)], most: f64) -> Vec<(f64, f64)> {
    const ROWS: f64 = 70.0;
    let mut taken = std::collections::BTreeSet::new();
    let place = |(reference, us): (f64, f64)| {
        ((reference * COLUMNS as f64 / REFERENCES as f64) as u64, (us / most * ROWS) as u64)
    };
    let seen = points.iter().filter(|point| point.1 <= most && taken.insert(place(**point)));
    seen.map(|&(reference, us)| (reference, us * 1e3)).collect()
}

/// How often each page was referenced, and which were in memory at the end.
pub(super) fn counts(name: &str, pair: &Pair) -> Plot {
    let count = |n: usize| f64::from(pair.stock.counts[n]);
    by_page(
        &format!("References to pages and presence at the end, {name}"),
        "references to a page",
        pair,
        count,
    )
}

/// How long ago each page was referenced last, and which were in memory at the end: announced for
/// VM Regress 0.7.
pub(super) fn ages(name: &str, pair: &Pair) -> Plot {
    let age = |n: usize| (REFERENCES - pair.stock.last[n]) as f64;
    by_page(
        &format!("Age of pages and presence at the end, {name}"),
        "references since a page's last",
        pair,
        age,
    )
}

/// A figure of each page, over strips of which pages were in memory at the end.
fn by_page(title: &str, axis: &str, pair: &Pair, of: impl Fn(usize) -> f64) -> Plot {
    let pages = pair.stock.counts.len();
    let bin = (pages / 250).max(1);
    let means = (0..pages).step_by(bin).map(|first| {
        let part = first..(first + bin).min(pages);
        (first as f64, part.clone().map(&of).sum::<f64>() / part.len() as f64)
    });
    let strip = |name, style, seen: &SystemResult| {
        let share =
            |part: &[bool]| part.iter().filter(|&&present| present).count() as f64 / part.len() as f64;
        // What is not nothing is at least one ninth.
        let digit = |share: f64| if share > 0.0 { ((share * 9.0).round() as u32).max(1) } else { 0 };
        let cells = seen.present.chunks(bin).filter_map(|part| char::from_digit(digit(share(part)), 10));
        Strip { name, style, x: [0.0, pages as f64], cells: cells.collect() }
    };
    let mut plot = Plot::new(
        title,
        format!(
            "Means of {bin} neighbouring pages. Below: which pages are in memory at the end under each kernel."
        ),
        Axis::linear("page", ""),
        Axis::linear(axis, ""),
    );
    plot.series = vec![Series::line("", means)];
    plot.strips = vec![strip("2.4.19", "present", &pair.stock), strip("rmap14a", "swapped", &pair.rmap)];
    plot.wide = true;
    plot
}

/// Means, as the published report has them, and the slowest single accesses.
pub(super) fn plot(name: &str, pair: &Pair) -> Plot {
    let at = |figures: &[f64]| -> Vec<(f64, f64)> {
        let place = |n: usize| (n + 1) as f64 * REFERENCES as f64 / WINDOWS as f64;
        figures.iter().enumerate().map(|(n, &s)| (place(n), s * 1e6)).collect()
    };
    let both = [("2.4.19", &pair.stock), ("2.4.19-rmap14a", &pair.rmap)];
    let lines = both.map(|(label, seen)| Series::line(label, at(&seen.mean)));
    let slowest = |(label, seen): (&str, &SystemResult)| Series {
        dash: 1,
        ..Series::line(format!("slowest access, {label}"), at(&seen.worst))
    };
    let dots = both.map(slowest);
    let series = lines.into_iter().chain(dots).zip([0, 1, 0, 1]);
    let plot = study_plot(
        format!("Access time, {name}"),
        Axis::linear("reference", ""),
        Axis::log("time of an access, µs", ""),
        Vec::new(),
    );
    let each = REFERENCES / WINDOWS as u64;
    Plot {
        caption: format!(
            "Lines: means of {each} references. Dotted: the slowest single access among them. All of the model: the \
             published plots were described in words."
        ),
        series: series.map(|(series, color)| Series { color, ..series }).collect(),
        ..plot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scatter_keeps_what_can_be_told_apart() {
        let mut singles = Singles::new();
        for reference in 0..1000 {
            singles.add(reference, if reference == 500 { 5_000_000 } else { 4_000 });
        }
        assert_eq!(singles.kept, [(0.0, 4.0), (500.0, 5000.0)]);
        assert_eq!(thinned(&singles.kept, 10.0), [(0.0, 4000.0)]);
        assert_eq!(thinned(&[(0.0, 4.0), (1.0, 4.01), (9000.0, 4.0)], 1000.0).len(), 2);
    }
}
