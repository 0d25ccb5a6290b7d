//! A running process in space and time: its mappings by the share of their resident pages that each interval referenced.

use std::collections::HashMap;

use pagelab_kernel::working_set::Area;
use pagelab_report::live::Mapping;
use pagelab_report::text::{self, Style};

/// Mappings that are shown by themselves: those with the most referenced bytes.
const SHOWN: usize = 24;
/// Cells in a row; of more intervals some share one.
const CELLS: usize = 32;
/// Letters of a name.
const NAME: usize = 20;
/// What a cell has for a share of 0, to 25%, 50%, 75%, 100%.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// The mappings over the intervals.
#[derive(Debug, Default)]
pub struct Map {
    rows: Vec<Row>,
    places: HashMap<(String, u64), usize>,
    intervals: usize,
}

#[derive(Debug)]
struct Row {
    name: String,
    start: u64,
    /// The interval, and the bytes referenced and resident then.
    looks: Vec<(usize, u64, u64)>,
}

impl Row {
    fn referenced(&self) -> u64 {
        self.looks.iter().map(|look| look.1).sum()
    }

    /// The share of the intervals `from..to`; `None` where nothing was resident.
    fn share(&self, from: usize, to: usize) -> Option<f64> {
        let within = self.looks.iter().filter(|look| (from..to).contains(&look.0));
        let (referenced, resident) = within.fold((0, 0), |sums, look| (sums.0 + look.1, sums.1 + look.2));
        (resident > 0).then(|| referenced as f64 / resident as f64)
    }
}

impl Map {
    /// Adds an interval. Anonymous memory is known by where it begins, all else by its name.
    pub fn add(&mut self, areas: Vec<Area>) {
        let mut sums: Vec<(usize, u64, u64)> = Vec::new();
        for area in areas.into_iter().filter(|area| area.resident > 0) {
            let key = (area.name.clone(), if area.name.is_empty() { area.start } else { 0 });
            let place = *self.places.entry(key).or_insert_with(|| {
                self.rows.push(Row { name: area.name, start: area.start, looks: Vec::new() });
                self.rows.len() - 1
            });
            match sums.iter_mut().find(|sum| sum.0 == place) {
                Some(sum) => (sum.1, sum.2) = (sum.1 + area.referenced, sum.2 + area.resident),
                None => sums.push((place, area.referenced, area.resident)),
            }
        }
        for (place, referenced, resident) in sums {
            self.rows[place].looks.push((self.intervals, referenced, resident));
        }
        self.intervals += 1;
    }

    /// What the page draws, of so many intervals: the mappings in the order of their addresses.
    pub fn mappings(&self) -> Vec<Mapping> {
        let mut order: Vec<&Row> = self.rows.iter().collect();
        order.sort_by_key(|row| row.start);
        let mapping = |row: &&Row| {
            let none = vec![0; self.intervals];
            let mut mapping = Mapping { name: named(row), referenced: none.clone(), resident: none };
            for &(interval, referenced, resident) in &row.looks {
                (mapping.referenced[interval], mapping.resident[interval]) = (referenced, resident);
            }
            mapping
        };
        order.iter().map(mapping).collect()
    }

    /// The map as text: the highest addresses first, each row's means over the intervals in which it was resident.
    pub fn drawn(&self, style: &Style) -> String {
        let mut order: Vec<&Row> = self.rows.iter().collect();
        order.sort_by_key(|row| std::cmp::Reverse(row.referenced()));
        let rest = order.split_off(order.len().min(SHOWN));
        order.sort_by_key(|row| std::cmp::Reverse(row.start));
        let step = self.intervals.div_ceil(CELLS).max(1);
        let cells = |row: &Row| -> String {
            (0..self.intervals).step_by(step).map(|from| shade(row.share(from, from + step))).collect()
        };
        let mut rows: Vec<Vec<String>> = order
            .iter()
            .map(|row| {
                let looks = row.looks.len().max(1) as f64;
                let resident: u64 = row.looks.iter().map(|look| look.2).sum();
                vec![
                    named(row),
                    cells(row),
                    text::bytes(row.referenced() as f64 / looks),
                    text::bytes(resident as f64 / looks),
                ]
            })
            .collect();
        if !rest.is_empty() {
            let looks = self.intervals.max(1) as f64;
            let referenced: u64 = rest.iter().map(|row| row.referenced()).sum();
            let resident: u64 = rest.iter().flat_map(|row| &row.looks).map(|look| look.2).sum();
            rows.push(vec![
                format!("{} others", rest.len()),
                String::new(),
                text::bytes(referenced as f64 / looks),
                text::bytes(resident as f64 / looks),
            ]);
        }
        text::table(&["mapping", "intervals", "referenced", "resident"], &rows, style)
    }
}

fn named(row: &Row) -> String {
    match row.name.rsplit('/').next().unwrap_or_default() {
        "" => format!("anon {:x}", row.start),
        name => name.chars().take(NAME).collect(),
    }
}

/// A cell for a share; a space where nothing was resident.
fn shade(share: Option<f64>) -> char {
    share.map_or(' ', |share| SHADES[((share * 4.0).ceil() as usize).min(4)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { color: false, width: 80 };

    fn area(start: u64, name: &str, referenced: u64, resident: u64) -> Area {
        Area { start, name: name.into(), referenced: referenced << 10, shared: 0, resident: resident << 10 }
    }

    #[test]
    fn a_row_has_a_cell_for_each_interval() {
        let mut map = Map::default();
        map.add(vec![
            area(0x1000, "/lib/c.so", 0, 8),
            area(0x9000, "/lib/c.so", 4, 8),
            area(0xa000, "", 8, 8),
        ]);
        map.add(vec![area(0x1000, "/lib/c.so", 16, 16), area(0xf000, "", 0, 4)]);
        let drawn = map.drawn(&PLAIN);
        let rows: Vec<&str> = drawn.lines().collect();
        let row = |name: &str| *rows.iter().find(|row| row.contains(name)).unwrap();
        assert!(row("c.so").contains("░█") && row("c.so").contains("10 KiB"), "{drawn}");
        assert!(row("anon a000").contains("█ ") && row("anon f000").contains(" ·"), "{drawn}");
        assert!(drawn.find("anon f000") < drawn.find("c.so"), "{drawn}");
        let mappings = map.mappings();
        let names: Vec<&str> = mappings.iter().map(|mapping| &mapping.name[..]).collect();
        assert_eq!(names, ["c.so", "anon a000", "anon f000"]);
        assert_eq!(
            (&mappings[0].referenced[..], &mappings[0].resident[..]),
            (&[4096, 16384][..], &[16384, 16384][..])
        );
        assert_eq!(mappings[2].resident, [0, 4096]);
    }

    #[test]
    fn many_intervals_share_cells_and_many_mappings_a_row() {
        let mut map = Map::default();
        (0..100).for_each(|_| map.add((0..30).map(|n| area(n << 20, "", n, 100)).collect()));
        let drawn = map.drawn(&PLAIN);
        assert!(drawn.contains("6 others"), "{drawn}");
        assert!(drawn.lines().all(|line| line.chars().count() <= 80), "{drawn}");
        assert_eq!(
            [Some(0.0), Some(0.01), Some(0.26), Some(1.0), None].map(shade),
            ['·', '░', '▒', '█', ' ']
        );
    }
}
