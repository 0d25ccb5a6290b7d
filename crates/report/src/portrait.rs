//! A stream in space and time as a section of the page: the answer, the picture, the working set, the curves.

use pagelab_analysis::figure::{Axis, Band, Heat, Layer, Mark, MarkKind, Plot, Series};
use pagelab_analysis::portrait::Portrait;

use crate::page::Section;
use crate::page::digit;
use crate::table::TextTable;
use crate::text::{self, DASH};

/// Misses that one curve has: at sizes in pages, the misses of LRU there.
#[derive(Clone, Debug, Default)]
pub struct Misses {
    /// The sizes in pages, ascending, and LRU's misses.
    pub lru: Vec<(u32, u64)>,
}

/// How much memory it needs, and when.
pub fn answer(portrait: &Portrait, misses: &Misses, page_size: u64) -> String {
    let bytes = |pages: f64| text::bytes(pages * page_size as f64);
    let (column, peak) = portrait.peak();
    let at = portrait.edges[column] as f64 / portrait.references as f64 * 100.0;
    let columns = portrait.working_set.len();
    let mut answer = format!(
        "The working set (over 1/{columns} of the references) is {} on average, {} at its peak, at {at:.0}% of the \
         run, of {} referenced in all.",
        bytes(portrait.mean_working_set()),
        bytes(f64::from(peak)),
        bytes(f64::from(portrait.pages)),
    );
    let cold = u64::from(portrait.pages);
    let least = |factor: f64| {
        let enough = |point: &&(u32, u64)| point.1 as f64 <= cold as f64 * factor;
        misses.lru.iter().find(enough).map(|point| f64::from(point.0))
    };
    if let (Some(twice), Some(once)) = (least(2.0), least(1.0)) {
        answer += &format!(
            " With {}, LRU fetches a page at most twice on average; with {}, once.",
            bytes(twice),
            bytes(once)
        );
    }
    if (2..=MAX_PHASES).contains(&portrait.phases.len()) {
        answer += &format!(" The run has {} phases.", portrait.phases.len());
    }
    answer
}

/// The plots, the picture first; the curves of policies are the caller's.
pub fn plots(portrait: &Portrait, misses: &Misses, page_size: u64) -> Vec<Plot> {
    let mut list = vec![picture(portrait), working_set(portrait, page_size)];
    list.extend(distances(portrait, misses, page_size));
    list
}

fn picture(portrait: &Portrait) -> Plot {
    let mut plot = Plot::new(
        "References in space and time",
        "Each column is an equal part of the references, each row an equal part of the pages, in the order of their addresses without the \
         gaps; the darker, the more of the row's pages were referenced. Lines mark phases, where there are no more than 24.",
        Axis::linear("references", ""),
        Axis::linear("pages", ""),
    );
    let layer = |name, style, counts: &[Vec<u32>]| Layer {
        name,
        style,
        columns: counts
            .iter()
            .map(|column| {
                let share = |(&touched, &of): (&u32, &u32)| digit(f64::from(touched) / f64::from(of.max(1)));
                column.iter().zip(&portrait.rows).map(share).collect()
            })
            .collect(),
        shares: counts
            .iter()
            .map(|column| f64::from(column.iter().sum::<u32>()) / f64::from(portrait.pages))
            .collect(),
    };
    let mut layers = vec![layer("referenced", "present", &portrait.referenced)];
    if portrait.written.iter().flatten().any(|&pages| pages > 0) {
        layers.push(layer("written", "swapped", &portrait.written));
    }
    let mut bands = Vec::new();
    let mut from = 0;
    for area in &portrait.areas {
        bands.push(Band { from, to: from + area.pages, name: area.name.clone() });
        from += area.pages;
    }
    plot.heat = Some(Heat {
        x: portrait.edges.iter().map(|&edge| edge as f64).collect(),
        rows: portrait.rows.len(),
        pages: portrait.pages,
        layers,
        bands,
    });
    plot.marks = phase_marks(portrait);
    plot.wide = true;
    plot
}

/// More phases than these would hide what they mark.
const MAX_PHASES: usize = 24;

/// Where one phase ends and the next begins.
fn phase_marks(portrait: &Portrait) -> Vec<Mark> {
    let begins = portrait.phases.iter().skip(1);
    let mark = |phase: &pagelab_analysis::portrait::Phase| Mark {
        kind: MarkKind::Place,
        ..Mark::at(phase.from as f64)
    };
    if portrait.phases.len() <= MAX_PHASES { begins.map(mark).collect() } else { Vec::new() }
}

fn working_set(portrait: &Portrait, page_size: u64) -> Plot {
    let mut plot = Plot::new(
        "Working set over time",
        "The memory referenced in each part of the references, and all that was referenced up to its end.",
        Axis::linear("references", ""),
        Axis::linear("memory", "bytes"),
    );
    let ends = || portrait.edges.iter().skip(1).map(|&edge| edge as f64);
    let line = |name: &str, color, pages: &[u32]| {
        let bytes = pages.iter().map(|&pages| f64::from(pages) * page_size as f64);
        Series { color, step: true, ..Series::line(name, ends().zip(bytes)) }
    };
    plot.series = vec![
        line("working set", 0, &portrait.working_set),
        Series { dash: 2, ..line("referenced so far", 1, &portrait.footprint) },
    ];
    plot.marks = phase_marks(portrait);
    plot.wide = true;
    plot
}

/// How much other memory was referenced between two references to a page, in powers of two.
fn distances(portrait: &Portrait, misses: &Misses, page_size: u64) -> Option<Plot> {
    let mut plot = Plot::new(
        "Reuse distances",
        "References by how much memory was referenced since the last reference to their page, that page itself included: up to each \
         size, from half of it on. LRU with so much memory has them as hits.",
        Axis::log("reuse distance", "bytes"),
        Axis::log("references", ""),
    );
    let at = |frames: u32| misses.lru.iter().rev().find(|point| point.0 <= frames).map(|point| point.1);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    let mut before = portrait.references;
    let mut size = 1u32;
    loop {
        let now = at(size)?;
        x.push(Some(f64::from(size) * page_size as f64));
        y.push(Some((before - now) as f64).filter(|&count| count > 0.0));
        before = now;
        if size >= portrait.pages {
            break;
        }
        size = size.saturating_mul(2);
    }
    plot.series = vec![Series { dots: true, x, y, ..Series::default() }];
    plot.wide = true;
    Some(plot)
}

/// The section: the answer, what was recorded, the pictures, the tables.
pub fn section(
    name: &str,
    portrait: &Portrait,
    misses: &Misses,
    page_size: u64,
    paragraphs: Vec<String>,
    curves: Vec<Plot>,
    curve_table: Option<TextTable>,
) -> Section {
    let mut plots = plots(portrait, misses, page_size);
    plots.extend(curves);
    let seen = plots.len();
    Section {
        heading: name.to_owned(),
        answer: answer(portrait, misses, page_size),
        paragraphs,
        plots,
        seen: Some(seen),
        tables: [areas(portrait, page_size), phases(portrait, page_size)]
            .into_iter()
            .chain(curve_table)
            .collect(),
        ..Section::default()
    }
}

/// What is referenced: each mapping with its pages and references.
pub fn areas(portrait: &Portrait, page_size: u64) -> TextTable {
    let row = |area: &pagelab_analysis::portrait::Area| {
        vec![
            if area.name.is_empty() { DASH.to_owned() } else { area.name.clone() },
            text::count(f64::from(area.pages)),
            text::bytes(f64::from(area.pages) * page_size as f64),
            text::count(area.references as f64),
            format!("{:.1}%", area.references as f64 / portrait.references as f64 * 100.0),
        ]
    };
    TextTable::new(
        "Mappings, in the order of their addresses",
        ["mapping", "pages", "memory", "references", "share"],
        portrait.areas.iter().map(row),
    )
}

fn phases(portrait: &Portrait, page_size: u64) -> TextTable {
    let share = |at: u64| format!("{:.1}%", at as f64 / portrait.references as f64 * 100.0);
    let row = |phase: &pagelab_analysis::portrait::Phase| {
        vec![share(phase.from), share(phase.to), text::bytes(phase.working_set * page_size as f64)]
    };
    TextTable::new("Phases", ["from", "to", "mean working set"], portrait.phases.iter().map(row))
}
