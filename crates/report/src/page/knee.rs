//! The picture of a sweep over memory: the time of a read, the broken stick through it, and the knees
//! with their intervals. One curve for each run, all in one plot.

use pagelab_analysis::figure::{Axis, Plot, Series};
use pagelab_analysis::vmtest::Curve;

use super::shown::Shown;

/// The picture, if any of the runs has a curve.
pub fn plot(shown: &[Shown]) -> Option<Plot> {
    let curves: Vec<(&Shown, &Curve)> =
        shown.iter().filter_map(|s| Some((s, s.curve.as_ref().filter(|c| !c.points.is_empty())?))).collect();
    let several = curves.len() > 1;
    let mut plot = Plot::new(
        "Time of a read by size, and its knees",
        "One point per size: the fastest repetition. Dashed line: piecewise linear fit. Vertical line: a knee, \
         with the 95% confidence interval of its place as a band if pagelab knows its cause and the interval is \
         narrower than two doublings. Dashed vertical line: the memory limit.",
        Axis::log("active virtual memory", "bytes"),
        Axis { toggle: true, ..Axis::log("time of a read", "ns") },
    );
    plot.wide = true;
    for (s, curve) in &curves {
        let named = |what: &str| if several { format!("{}: {what}", s.name()) } else { what.to_owned() };
        let line = |name: &str, dash, dots, points: &[(f64, f64)]| Series {
            name: named(name),
            color: s.color,
            dash,
            dots,
            x: points.iter().map(|p| Some(p.0)).collect(),
            y: points.iter().map(|p| Some(p.1)).collect(),
            ..Series::default()
        };
        plot.series.push(line("measured", 0, true, &curve.points));
        if !curve.fit.is_empty() {
            plot.series.push(line("fitted", 2, false, &curve.fit));
        }
        plot.marks.extend(s.marks(several));
    }
    (!curves.is_empty()).then_some(plot)
}
