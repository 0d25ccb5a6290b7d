//! Writes the page of plots.

use std::path::Path;

use anyhow::{Context as _, Result};
use pagelab_analysis::findings::Assessment;
use pagelab_report::Section;
use pagelab_report::plot::{Axis, Numbers, Plot, Series};

/// Draws runs and what they say into `file`.
///
/// # Errors
/// When the file cannot be written.
pub fn write(assessment: &Assessment, file: &Path) -> Result<()> {
    put(&pagelab_report::page(assessment), file)
}

/// Draws finished sections into `file`.
///
/// # Errors
/// When the file cannot be written.
pub fn write_document(title: &str, sections: &[Section], file: &Path) -> Result<()> {
    put(&pagelab_report::document(title, sections), file)
}

/// A plot of misses against memory, one line with dots for each name: (name, frames, miss ratio).
pub fn misses(title: &str, caption: &str, points: &[(String, u32, Option<f64>)]) -> Plot {
    let x = Axis::log("frames of memory", "");
    let mut plot = Plot::new(title, caption, x, Axis::linear("miss ratio", "share").switchable());
    for (name, frames, ratio) in points {
        let at = plot.series.iter().position(|s| s.name == *name).unwrap_or_else(|| {
            let color = plot.series.len();
            plot.series.push(Series {
                name: name.clone(),
                color,
                dash: color / 6 * 2,
                step: false,
                dots: true,
                x: Numbers::default(),
                y: Numbers::default(),
            });
            color
        });
        plot.series[at].x.0.push(Some(f64::from(*frames)));
        plot.series[at].y.0.push(*ratio);
    }
    plot
}

fn put(html: &str, file: &Path) -> Result<()> {
    crate::file::write(file, |out| Ok(out.write_all(html.as_bytes())?)).context("the page of plots")
}
