//! Which pages are where: VM Regress's graphs of presence against reference count, page index and age.

use pagelab_experiment::observation::{PageSet, PageSnapshot};

use super::Shown;
use super::plot::{Axis, Heat, Layer, Numbers, Plot, Series, Strip, digit};

/// Bins of pages along an axis.
const COLUMNS: usize = 256;
/// Rows of a picture.
const ROWS: usize = 128;
/// Classes of pages by age or count.
const CLASSES: usize = 40;

/// The plots of each run; none without page maps.
pub fn plots(shown: &[Shown]) -> Vec<Plot> {
    let mut plots = Vec::new();
    for s in shown {
        let maps = &s.repetition.observations.pages;
        let Some(last) = maps.last().filter(|map| map.pages > 0 && map.count.len() == map.pages as usize)
        else {
            continue;
        };
        let of = if shown.len() > 1 { format!(": {}", s.name()) } else { String::new() };
        plots.push(references_and_presence(last, &of, s.color));
        plots.push(age_and_presence(last, &of, s.color));
        if maps.len() > 1 {
            plots.push(over_time(maps, &of));
        }
    }
    if let Some(plot) = kept(shown) {
        plots.push(plot);
    }
    plots
}

/// How many pages a bin of the map's axis stands for.
fn bins(pages: u32) -> usize {
    COLUMNS.min(pages as usize)
}

/// The bounds of bin `n` of `bins` over `pages`.
fn bounds(n: usize, bins: usize, pages: u32) -> (usize, usize) {
    (n * pages as usize / bins, (n + 1) * pages as usize / bins)
}

/// The mean of `values` in each bin, at the bin's middle.
fn means(values: impl Fn(usize) -> f64, pages: u32) -> (Numbers, Numbers) {
    let bins = bins(pages);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for n in 0..bins {
        let (from, to) = bounds(n, bins, pages);
        x.push(Some((from + to - 1) as f64 / 2.0));
        y.push(Some((from..to).map(&values).sum::<f64>() / (to - from) as f64));
    }
    (Numbers(x), Numbers(y))
}

fn flags(set: &PageSet, pages: u32) -> Vec<bool> {
    let mut flags = vec![false; pages as usize];
    let mut at = 0usize;
    for (n, &run) in set.runs().iter().enumerate() {
        let end = (at + run as usize).min(flags.len());
        if n % 2 == 1 {
            flags[at..end].fill(true);
        }
        at = end;
    }
    flags
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
        cells: digits(&flags(set, map.pages), bins(map.pages)),
    };
    let mut strips = vec![strip("present", "present", &map.present)];
    if !map.swapped.is_empty() {
        strips.push(strip("swapped", "swapped", &map.swapped));
    }
    strips
}

fn line(color: usize, (x, y): (Numbers, Numbers)) -> Series {
    Series { name: String::new(), color, dash: 0, step: false, dots: false, x, y }
}

fn stands_for(map: &PageSnapshot) -> String {
    let each = (map.pages as usize).div_ceil(bins(map.pages));
    if each > 1 { format!("a point stands for {each} neighbouring pages; ") } else { String::new() }
}

fn references_and_presence(map: &PageSnapshot, of: &str, color: usize) -> Plot {
    let mut plot = Plot::new(
        format!("Pages present and swapped against references{of}"),
        format!("{}below, which of them were in memory and which in swap at the end.", stands_for(map)),
        Axis::linear("page of the mapping", ""),
        Axis::linear("references to a page", ""),
    );
    plot.series.push(line(color, means(|page| f64::from(map.count[page]), map.pages)));
    plot.strips = strips(map);
    plot
}

fn age_and_presence(map: &PageSnapshot, of: &str, color: usize) -> Plot {
    let mut plot = Plot::new(
        format!("Page age and presence{of}"),
        format!("{}age is the number of references since the page's last, at the end.", stands_for(map)),
        Axis::linear("page of the mapping", ""),
        Axis::linear("age in references", ""),
    );
    plot.series.push(line(
        color,
        means(|page| map.reference.saturating_sub(u64::from(map.last[page])) as f64, map.pages),
    ));
    plot.strips = strips(map);
    plot
}

/// Which pages were referenced in the time before each map, and which were present at it.
fn over_time(maps: &[PageSnapshot], of: &str) -> Plot {
    let pages = maps[0].pages;
    let rows = ROWS.min(pages as usize);
    let mut plot = Plot::new(
        format!("Pages over time{of}"),
        format!(
            "green: pages referenced since the map before; blue: pages present at it. {} maps, {rows} rows.",
            maps.len()
        ),
        Axis::linear("references made", ""),
        Axis::linear("page of the mapping", ""),
    );
    let mut seen = Vec::new();
    let mut present = Vec::new();
    let mut edges = vec![maps[0].reference as f64];
    for pair in maps.windows(2) {
        let [before, after] = pair else { continue };
        if after.count.len() != before.count.len() || after.reference <= before.reference {
            continue;
        }
        let referenced: Vec<bool> = after.count.iter().zip(&before.count).map(|(a, b)| a > b).collect();
        seen.push(digits(&referenced, rows));
        present.push(digits(&flags(&after.present, pages), rows));
        edges.push(after.reference as f64);
    }
    plot.heat = Some(Heat {
        x: edges,
        rows,
        pages,
        layers: vec![
            Layer { name: "present", style: "present", columns: present },
            Layer { name: "referenced", style: "seen", columns: seen },
        ],
    });
    plot
}

/// What was kept: the share of pages present, by how recently they were referenced.
fn kept(shown: &[Shown]) -> Option<Plot> {
    let mut plot = Plot::new(
        "What was kept: presence by age",
        "pages sorted by their last reference, the most recent left, in 40 classes of equal size; least recently used replacement would keep the left ones and no others.",
        Axis::linear("pages more recently referenced", "share"),
        Axis::linear("share of the class in memory", "share"),
    );
    for s in shown {
        let Some(map) = s
            .repetition
            .observations
            .pages
            .last()
            .filter(|m| m.pages > 0 && m.last.len() == m.pages as usize)
        else {
            continue;
        };
        let present = flags(&map.present, map.pages);
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
        let name = if shown.len() > 1 { s.name().to_owned() } else { String::new() };
        plot.series.push(Series { name, dots: true, ..line(s.color, (Numbers(x), Numbers(y))) });
    }
    (!plot.series.is_empty()).then_some(plot)
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

        #[test]
        fn flags_are_the_set(list in proptest::collection::vec(any::<bool>(), 1..300)) {
            let set = PageSet::from_flags(list.iter().copied());
            prop_assert_eq!(flags(&set, list.len() as u32), list);
        }
    }
}
