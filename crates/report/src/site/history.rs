//! The page of the series of a notebook that have enough runs to detect change points.

use maud::{Markup, html};
use pagelab_analysis::change_points::MIN_POINTS;
use pagelab_analysis::history::{By, Series, groups};
use pagelab_experiment::Run;

use crate::Section;
use crate::history::{answer, section, title};
use crate::page::document_in;
use crate::page::shell::Place;
use crate::table::TextTable;
use crate::text;

/// The limit on the bytes of a page with every metric. A larger page shows one metric per series.
const MAX_PAGE_BYTES: usize = 5_000_000;

/// The series with at least [`MIN_POINTS`] runs, one point per run; none if `stopped`, which is
/// polled before each series, returned true.
pub(super) fn series(runs: &[Run], stopped: impl Fn() -> bool) -> Option<Vec<Series>> {
    let long = groups(runs, By::Date).into_iter().filter(|group| group.len() >= MIN_POINTS);
    long.map(|group| if stopped() { None } else { Some(group.series(By::Date, &[])) }).collect()
}

/// Whether the deciding metric stepped in this direction.
fn stepped(series: &Series, worse: bool) -> bool {
    let steps = series.tracks.first().map(|track| track.steps.as_slice()).unwrap_or_default();
    steps.iter().any(|step| step.worse == Some(worse))
}

/// The index's sentence about the series, with a link to their page at `address`.
pub(super) fn sentence(all: &[Series], address: &str) -> Markup {
    if all.is_empty() {
        return html! { p.soft { "No series has the " (MIN_POINTS) " runs that a history needs." } };
    }
    let count = |worse| all.iter().filter(|series| stepped(series, worse)).count();
    let series = if all.len() == 1 {
        "1 series has".to_owned()
    } else {
        format!("{} series have", text::count(all.len() as f64))
    };
    html! {
        p {
            a href=(address) { "History" } ": " (series) " " (MIN_POINTS) " or more runs; the deciding metric got worse in "
            (count(true)) " and better in " (count(false)) "."
        }
    }
}

/// The page of the series, with every metric, or only the deciding ones beyond [`MAX_PAGE_BYTES`].
pub(super) fn page(all: &[Series], place: &Place) -> String {
    let whole: Vec<Section> = all.iter().map(|series| section(series, |_| true)).collect();
    let page = document_in("History", overview(all).as_ref(), &whole, place);
    if page.len() <= MAX_PAGE_BYTES {
        return page;
    }
    let brief = |series: &Series| {
        let mut only = series.clone();
        only.tracks.truncate(1);
        let note = "The other metrics are left out to limit the size of this page. pagelab history --html FILE draws them.";
        Section { notes: vec![note.to_owned()], tables: Vec::new(), ..section(&only, |_| true) }
    };
    document_in("History", overview(all).as_ref(), &all.iter().map(brief).collect::<Vec<_>>(), place)
}

/// The newest change of each series, one row per series; none for a single series.
fn overview(all: &[Series]) -> Option<TextTable> {
    let row = |series: &Series| {
        let first = answer(series, |_| true).into_iter().next().unwrap_or_default();
        vec![title(series), series.points.len().to_string(), first]
    };
    let headings = ["series", "runs", "newest change of the deciding metric"];
    (all.len() > 1).then(|| TextTable::new("Series", headings, all.iter().map(row)))
}
