//! A running process in space and time as a section of the page: its mappings by the share of their resident pages that each
//! interval referenced, and its working set between its bounds.

use pagelab_analysis::figure::{Axis, Band, Heat, Layer, Plot, Series};

use crate::page::Section;
use crate::page::digit;
use crate::table::TextTable;
use crate::text::{self, DASH};

/// Rows of the picture, at most.
const ROWS: u32 = 240;

/// A mapping over the intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// What it is.
    pub name: String,
    /// Bytes referenced in each interval.
    pub referenced: Vec<u64>,
    /// Bytes resident at the end of each.
    pub resident: Vec<u64>,
}

impl Mapping {
    /// The most that was resident, in pages.
    fn pages(&self, page_size: u64) -> u32 {
        let most = self.resident.iter().max().copied().unwrap_or(0);
        u32::try_from(most.div_ceil(page_size)).unwrap_or(u32::MAX)
    }
}

/// The working set of an interval, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounded {
    /// Referenced private memory.
    pub size: u64,
    /// Its lower bound.
    pub lower: u64,
    /// Its upper bound.
    pub upper: u64,
    /// Referenced memory that other processes map too.
    pub shared: u64,
}

/// A process that was watched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Who it is.
    pub name: String,
    /// Bytes of a page.
    pub page_size: u64,
    /// The length of an interval, ns.
    pub interval: f64,
    /// The working set of each interval.
    pub sizes: Vec<Bounded>,
    /// The mappings in the order of their addresses; each has as many figures as there are intervals.
    pub mappings: Vec<Mapping>,
}

impl Watched {
    fn mean(&self) -> f64 {
        self.sizes.iter().map(|interval| interval.size as f64).sum::<f64>() / self.sizes.len().max(1) as f64
    }

    fn referenced(&self, interval: usize) -> u64 {
        self.mappings.iter().filter_map(|mapping| mapping.referenced.get(interval)).sum()
    }

    fn resident(&self, interval: usize) -> u64 {
        self.mappings.iter().filter_map(|mapping| mapping.resident.get(interval)).sum()
    }

    /// How much it references, and where most.
    pub fn answer(&self) -> String {
        let peak = self.sizes.iter().enumerate().max_by_key(|(_, interval)| interval.size);
        let Some((at, peak)) = peak else { return String::new() };
        let resident = (0..self.sizes.len()).map(|n| self.resident(n)).max().unwrap_or(0);
        let mut answer = format!(
            "Working set of private pages (over {}): {} on average, {} at its peak, after {}, of {} resident at most.",
            text::duration(self.interval),
            text::bytes(self.mean()),
            text::bytes(peak.size as f64),
            text::duration((at + 1) as f64 * self.interval),
            text::bytes(resident as f64),
        );
        let sum = |mapping: &Mapping| mapping.referenced.iter().sum::<u64>();
        let all = self.mappings.iter().map(sum).sum::<u64>();
        if let Some(most) =
            self.mappings.iter().max_by_key(|mapping| sum(mapping)).filter(|most| sum(most) > 0)
        {
            let share = sum(most) as f64 / all as f64 * 100.0;
            answer += &format!(" {} has {share:.0}% of what is referenced.", most.name);
        }
        answer
    }

    /// The section.
    pub fn section(&self) -> Section {
        Section {
            heading: self.name.clone(),
            answer: self.answer(),
            paragraphs: vec![
                "The kernel clears the accessed bits of the page table (clear_refs) and sums them by mapping (smaps): which pages \
                 of a mapping, in what order, how often, and loads from stores it does not tell. A recording does (pagelab trace)."
                    .to_owned(),
            ],
            plots: vec![self.picture(), self.working_set()],
            seen: Some(2),
            tables: vec![self.table()],
            ..Section::default()
        }
    }

    /// Ends of the intervals, and the beginning of the first.
    fn edges(&self) -> Vec<f64> {
        (0..=self.sizes.len()).map(|n| n as f64 * self.interval).collect()
    }

    fn picture(&self) -> Plot {
        let mut plot = Plot::new(
            "Mappings in space and time",
            "Each column is an interval; each mapping is as high as the most of it that was resident, in the order of addresses \
             without the gaps. The darker, the more of the mapping's resident pages were referenced in the interval: one shade for \
             all of a mapping, for the kernel gives sums.",
            Axis::linear("time", "ns"),
            Axis::linear("pages", ""),
        );
        let mut bands = Vec::new();
        let mut from = 0u32;
        for mapping in &self.mappings {
            let to = from.saturating_add(mapping.pages(self.page_size));
            bands.push(Band { from, to, name: mapping.name.clone() });
            from = to;
        }
        let pages = from.max(1);
        let rows = pages.min(ROWS);
        // The mapping in the middle of each row.
        let of_row = |row: u32| {
            let page = ((u64::from(row) * 2 + 1) * u64::from(pages) / (2 * u64::from(rows))) as u32;
            bands.iter().position(|band| (band.from..band.to).contains(&page))
        };
        let of_rows: Vec<Option<usize>> = (0..rows).map(of_row).collect();
        let share = |mapping: usize, interval: usize| {
            let Mapping { referenced, resident, .. } = &self.mappings[mapping];
            referenced[interval] as f64 / resident[interval].max(1) as f64
        };
        let column = |interval: usize| -> String {
            of_rows
                .iter()
                .map(|mapping| digit(mapping.map_or(0.0, |mapping| share(mapping, interval))))
                .collect()
        };
        let whole =
            |interval: usize| self.referenced(interval) as f64 / self.resident(interval).max(1) as f64;
        plot.heat = Some(Heat {
            x: self.edges(),
            rows: rows as usize,
            pages,
            layers: vec![Layer {
                name: "referenced",
                style: "present",
                columns: (0..self.sizes.len()).map(column).collect(),
                shares: (0..self.sizes.len()).map(whole).collect(),
            }],
            bands,
        });
        plot.wide = true;
        plot
    }

    fn working_set(&self) -> Plot {
        let mut plot = Plot::new(
            "Working set over time",
            "The private pages that each interval referenced: anonymous pages, and pages of files that no other process maps. Any \
             process that maps a shared page may have referenced it, so these are a line of their own. The bounds allow for \
             mappings with both kinds; the upper bound also has as many pages more as the TLB may hide.",
            Axis::linear("time", "ns"),
            Axis::linear("memory", "bytes"),
        );
        let edges = self.edges();
        let line = |name: &str, color, dash, of: &dyn Fn(usize) -> u64| {
            // A step goes from a point to the next one.
            let last = self.sizes.len().checked_sub(1).map(|n| (edges[n + 1], of(n) as f64));
            let points = (0..self.sizes.len()).map(|n| (edges[n], of(n) as f64)).chain(last);
            Series { color, dash, step: true, ..Series::line(name, points) }
        };
        plot.series = vec![
            line("working set", 0, 0, &|n| self.sizes[n].size),
            line("lower bound", 0, 1, &|n| self.sizes[n].lower),
            line("upper bound", 0, 2, &|n| self.sizes[n].upper),
            line("shared", 2, 0, &|n| self.sizes[n].shared),
            line("resident", 1, 0, &|n| self.resident(n)),
        ];
        plot.wide = true;
        plot
    }

    fn table(&self) -> TextTable {
        let row = |mapping: &Mapping| {
            let there: Vec<usize> = (0..self.sizes.len()).filter(|&n| mapping.resident[n] > 0).collect();
            let mean = |of: &[u64]| match there.len() {
                0 => DASH.to_owned(),
                many => text::bytes(there.iter().map(|&n| of[n]).sum::<u64>() as f64 / many as f64),
            };
            let intervals = text::count(there.len() as f64);
            vec![mapping.name.clone(), mean(&mapping.referenced), mean(&mapping.resident), intervals]
        };
        TextTable::new(
            "Mappings, in the order of their addresses: means over the intervals in which they were resident",
            ["mapping", "referenced", "resident", "intervals"],
            self.mappings.iter().map(row),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_as_high_as_what_is_resident_and_as_dark_as_what_is_referenced() {
        let mapping = |name: &str, referenced: [u64; 2], resident: [u64; 2]| Mapping {
            name: name.into(),
            referenced: referenced.map(|pages| pages * 4096).into(),
            resident: resident.map(|pages| pages * 4096).into(),
        };
        let watched = Watched {
            name: "process 7".into(),
            page_size: 4096,
            interval: 1e9,
            sizes: [[4, 0, 5], [20, 1, 30]]
                .map(|[size, lower, upper]| Bounded {
                    size: size * 4096,
                    lower: lower * 4096,
                    upper: upper * 4096,
                    shared: 0,
                })
                .into(),
            mappings: vec![
                mapping("program", [0, 0], [10, 10]),
                mapping("heap", [4, 20], [8, 20]),
                mapping("late", [0, 0], [0, 10]),
            ],
        };
        let section = watched.section();
        let heat = section.plots[0].heat.as_ref().unwrap();
        assert_eq!((heat.pages, heat.rows, &heat.x[..]), (40, 40, &[0.0, 1e9, 2e9][..]));
        assert_eq!(heat.bands.iter().map(|band| band.to).collect::<Vec<_>>(), [10, 30, 40]);
        let rows = |program: &str, heap: &str| [program.repeat(10), heap.repeat(20), "0".repeat(10)].concat();
        assert_eq!(heat.layers[0].columns, [rows("0", "5"), rows("0", "9")]);
        assert_eq!(heat.layers[0].shares, [4.0 / 18.0, 0.5]);
        assert!(section.answer.contains("80 KiB at its peak, after 2.00 s"), "{}", section.answer);
        assert!(section.answer.contains("heap has 100%"), "{}", section.answer);
        assert_eq!(section.tables[0].rows[2], ["late", "0 B", "40 KiB", "1"]);
    }

    #[test]
    fn nothing_is_a_page_too() {
        let section = Watched { interval: 1e9, page_size: 4096, ..Watched::default() }.section();
        assert!(section.answer.is_empty());
    }
}
