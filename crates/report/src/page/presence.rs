//! Which pages are where: VM Regress's graphs of presence against reference count, page index and age.

use pagelab_analysis::figure::{Axis, Heat, Layer, Plot, Series, Strip};
use pagelab_experiment::observation::{PageSet, PageSnapshot};

use super::figures::Numbers;
use super::plot::digit;
use super::shown::{Panel, Shown};

/// Bins of pages along an axis.
const COLUMNS: usize = 256;
/// Rows of a picture.
const ROWS: usize = 128;
/// Classes of pages by age or count.
const CLASSES: usize = 40;

const REFERENCES: &str = "Pages present and swapped against references";
const AGE: &str = "Page age and presence";
const OVER_TIME: &str = "Pages over time";
const PRESENCE: &str = "What was kept: presence by age";

/// The plots of each run beside those of the others; without page maps, what is missing.
pub fn panels(shown: &[Shown]) -> Vec<Panel> {
    let mapped: Vec<(&Shown, Vec<&PageSnapshot>)> =
        shown.iter().map(|s| (s, maps(s))).filter(|(_, maps)| !maps.is_empty()).collect();
    let absent = |title| Panel::Absent(title, "the target showed no whole page maps".to_owned());
    if mapped.is_empty() {
        return [REFERENCES, AGE, OVER_TIME, PRESENCE].map(absent).into();
    }
    let of = |s: &Shown| if shown.len() > 1 { format!(": {}", s.name()) } else { String::new() };
    let last = |maps: &[&PageSnapshot]| maps.last().copied().cloned();
    let mut plots: Vec<Plot> = Vec::new();
    for (s, maps) in &mapped {
        plots.extend(last(maps).map(|map| references_and_presence(&map, &of(s), s.color)));
    }
    for (s, maps) in &mapped {
        plots.extend(last(maps).map(|map| age_and_presence(&map, &of(s), s.color)));
    }
    let mut panels: Vec<Panel> = Vec::new();
    let series = mapped.iter().filter(|(_, maps)| maps.len() > 1);
    plots.extend(series.map(|(s, maps)| over_time(maps, &of(s))));
    if mapped.iter().all(|(_, maps)| maps.len() < 2) {
        panels.push(Panel::Absent(OVER_TIME, "there is but one page map".to_owned()));
    }
    plots.push(kept(&mapped, shown.len() > 1));
    let missing = shown.len() - mapped.len();
    if missing > 0 {
        let names: Vec<&str> = shown.iter().filter(|s| maps(s).is_empty()).map(|s| s.name()).collect();
        panels.push(Panel::Absent("Presence", format!("{} showed no whole page maps", names.join(", "))));
    }
    plots.into_iter().map(|plot| Panel::Plot(Box::new(plot))).chain(panels).collect()
}

/// The maps that are whole: every page has its count and its last reference. None when the last is not.
fn maps<'a>(shown: &Shown<'a>) -> Vec<&'a PageSnapshot> {
    let maps = &shown.seen().pages;
    let Some(pages) = maps.last().map(|map| map.pages).filter(|&pages| pages > 0) else { return Vec::new() };
    let whole = |map: &&PageSnapshot| {
        map.pages == pages && map.count.len() == pages as usize && map.last.len() == pages as usize
    };
    // Without the last one nothing can be said about the end.
    if maps.last().is_none_or(|map| !whole(&map)) {
        return Vec::new();
    }
    maps.iter().filter(whole).collect()
}

/// How many pages a bin of the map's axis stands for.
fn bins(pages: u32) -> usize {
    COLUMNS.min(pages as usize)
}

/// The bounds of bin `n` of `bins` over `pages`.
fn bounds(n: usize, bins: usize, pages: u32) -> (usize, usize) {
    (n * pages as usize / bins, (n + 1) * pages as usize / bins)
}

/// The mean of `values` in each bin, at the bin's middle; pages without a value are left out.
fn means(values: impl Fn(usize) -> Option<f64>, pages: u32) -> (Numbers, Numbers) {
    let bins = bins(pages);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for n in 0..bins {
        let (from, to) = bounds(n, bins, pages);
        let known: Vec<f64> = (from..to).filter_map(&values).collect();
        x.push(Some((from + to - 1) as f64 / 2.0));
        y.push((!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64));
    }
    (x, y)
}

/// The share of the set in each of `bins` parts, as digits.
fn digits(set: &[bool], bins: usize) -> String {
    let pages = set.len() as u32;
    (0..bins)
        .map(|n| {
            let (from, to) = bounds(n, bins, pages);
            let inside = set[from..to].iter().filter(|&&f| f).count();
            digit(inside as f64 / (to - from).max(1) as f64)
        })
        .collect()
}

fn strips(map: &PageSnapshot) -> Vec<Strip> {
    let x = [0.0, f64::from(map.pages)];
    let strip = |name, style, set: &PageSet| Strip {
        name,
        style,
        x,
        cells: digits(&set.flags(map.pages), bins(map.pages)),
    };
    let mut strips = vec![strip("present", "present", &map.present)];
    if !map.swapped.is_empty() {
        strips.push(strip("swapped", "swapped", &map.swapped));
    }
    strips
}

fn line(color: usize, (x, y): (Numbers, Numbers)) -> Series {
    Series { color, x, y, ..Series::default() }
}

fn stands_for(map: &PageSnapshot) -> String {
    let each = (map.pages as usize).div_ceil(bins(map.pages));
    if each > 1 { format!("A point is the mean of about {each} neighbouring pages. ") } else { String::new() }
}

fn references_and_presence(map: &PageSnapshot, of: &str, color: usize) -> Plot {
    let mut plot = Plot::new(
        format!("{REFERENCES}{of}"),
        format!("{}Below: which were in memory and which in swap at the end.", stands_for(map)),
        Axis::linear("page of the mapping", ""),
        Axis::linear("references to a page", ""),
    );
    plot.series.push(line(color, means(|page| Some(f64::from(map.count[page])), map.pages)));
    plot.strips = strips(map);
    plot
}

fn age_and_presence(map: &PageSnapshot, of: &str, color: usize) -> Plot {
    let mut plot = Plot::new(
        format!("{AGE}{of}"),
        format!(
            "{}Age: references made since the page's last one, at the end; a page never referenced has none.",
            stands_for(map)
        ),
        Axis::linear("page of the mapping", ""),
        Axis::linear("age in references", ""),
    );
    plot.series.push(line(
        color,
        means(
            |page| {
                let last = u64::from(map.last[page]);
                (last > 0).then(|| map.reference.saturating_sub(last) as f64)
            },
            map.pages,
        ),
    ));
    plot.strips = strips(map);
    plot
}

/// Which pages were referenced in the time before each map, and which were present at it.
fn over_time(maps: &[&PageSnapshot], of: &str) -> Plot {
    let pages = maps[0].pages;
    let rows = ROWS.min(pages as usize);
    let mut plot = Plot::new(
        format!("{OVER_TIME}{of}"),
        format!(
            "{} maps. A column shows the references since the map before it and the presence at its end; one row in {rows} stands for about {} pages.",
            maps.len(),
            (pages as usize).div_ceil(rows)
        ),
        Axis::linear("references made", ""),
        Axis::linear("page of the mapping", ""),
    );
    let layer = |name, style| Layer { name, style, columns: Vec::new(), shares: Vec::new() };
    let mut layers = vec![
        layer("present", "present"),
        layer("referenced and present", "seen"),
        layer("referenced, gone again", "swapped"),
    ];
    let mut edges = vec![maps[0].reference as f64];
    for pair in maps.windows(2) {
        let [before, after] = pair else { continue };
        if after.reference <= before.reference {
            continue;
        }
        let present = after.present.flags(pages);
        let kinds =
            (0..pages as usize).map(|page| match (after.count[page] > before.count[page], present[page]) {
                (false, true) => Some(0),
                (true, true) => Some(1),
                (true, false) => Some(2),
                (false, false) => None,
            });
        let kinds: Vec<Option<usize>> = kinds.collect();
        for (n, layer) in layers.iter_mut().enumerate() {
            let set: Vec<bool> = kinds.iter().map(|kind| *kind == Some(n)).collect();
            layer.columns.push(digits(&set, rows));
            layer.shares.push(set.iter().filter(|&&inside| inside).count() as f64 / f64::from(pages));
        }
        edges.push(after.reference as f64);
    }
    plot.heat = Some(Heat { x: edges, rows, pages, layers, bands: Vec::new() });
    plot
}

/// What was kept: the share of pages present, by how recently they were referenced.
fn kept(mapped: &[(&Shown, Vec<&PageSnapshot>)], several: bool) -> Plot {
    let mut plot = Plot::new(
        PRESENCE,
        "Pages sorted by their last reference, the most recent left, in 40 classes of equal size. Least recently used replacement would keep the left ones and no others.",
        Axis::linear("pages more recently referenced", "share"),
        Axis::linear("share of the class in memory", "share"),
    );
    for (s, maps) in mapped {
        let Some(map) = maps.last() else { continue };
        let present = map.present.flags(map.pages);
        let mut order: Vec<usize> = (0..map.pages as usize).collect();
        order.sort_by_key(|&page| std::cmp::Reverse(map.last[page]));
        let classes = CLASSES.min(order.len());
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for n in 0..classes {
            let (from, to) = bounds(n, classes, map.pages);
            let inside = order[from..to].iter().filter(|&&page| present[page]).count();
            x.push(Some((n as f64 + 0.5) / classes as f64));
            y.push(Some(inside as f64 / (to - from) as f64));
        }
        let name = if several { s.name().to_owned() } else { String::new() };
        plot.series.push(Series { name, dots: true, ..line(s.color, (x, y)) });
    }
    plot
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_cover_every_page_once(pages in 1u32..5000) {
            let bins = bins(pages);
            prop_assert_eq!(bounds(0, bins, pages).0, 0);
            prop_assert_eq!(bounds(bins - 1, bins, pages).1, pages as usize);
            for n in 1..bins {
                prop_assert_eq!(bounds(n - 1, bins, pages).1, bounds(n, bins, pages).0);
            }
        }

    }
}
