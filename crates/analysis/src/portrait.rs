//! A stream in space and time: which pages are referenced when, the working set, and where it changes (phases).
//!
//! Time is counted in references and parted into equal columns; the pages lie in the order of their addresses, without the
//! gaps between them. The working set of a column is the set of pages referenced in it. A phase ends where two columns
//! that follow each other have too little in common: their relative working set distance, the pages that one of them
//! has alone divided by those that any has, is above [`CHANGED`] (A. S. Dhodapkar and J. E. Smith, "Managing
//! multi-configuration hardware via dynamic working set analysis", ISCA 2002).

/// Columns of a portrait, at most.
pub const COLUMNS: usize = 240;
/// Rows of it, at most.
pub const ROWS: usize = 120;
/// The relative working set distance from which on a phase ends; Dhodapkar's and Smith's.
pub const CHANGED: f64 = 0.5;

/// No column.
const NONE: u16 = u16::MAX;

/// Pages that lie together and have one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// What it is: a file, `heap`, `stack`; empty where that is not known.
    pub name: String,
    /// Its pages.
    pub pages: u32,
    /// References to them.
    pub references: u64,
}

/// A part of a program's time in which it references mostly the same pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The first reference.
    pub from: u64,
    /// The first behind it.
    pub to: u64,
    /// The mean working set of its columns, in pages.
    pub working_set: f64,
}

/// A stream in space and time.
#[derive(Clone, Debug, PartialEq)]
pub struct Portrait {
    /// References.
    pub references: u64,
    /// Different pages.
    pub pages: u32,
    /// Where the columns begin, and the end of the last.
    pub edges: Vec<u64>,
    /// Pages of each row.
    pub rows: Vec<u32>,
    /// Pages referenced, by column and row.
    pub referenced: Vec<Vec<u32>>,
    /// Pages written, by column and row.
    pub written: Vec<Vec<u32>>,
    /// The working set of each column, in pages.
    pub working_set: Vec<u32>,
    /// Pages referenced up to the end of each column.
    pub footprint: Vec<u32>,
    /// The phases, in their order.
    pub phases: Vec<Phase>,
    /// The areas in the order of their addresses.
    pub areas: Vec<Area>,
}

/// A portrait that is being made.
#[derive(Debug)]
pub struct Sitting {
    place: Vec<u32>,
    area_of: Vec<u16>,
    row_of: Vec<u16>,
    touched: Vec<u16>,
    wrote: Vec<u16>,
    column: usize,
    seen: u64,
    common: Vec<u32>,
    portrait: Portrait,
}

impl Sitting {
    /// Of `references` references to as many pages as `place` has, which says of each its place in the order of addresses;
    /// `areas` follow each other in that order.
    ///
    /// # Panics
    /// When there are no pages or references, or the areas have other pages.
    pub fn new(references: u64, place: Vec<u32>, areas: Vec<(String, u32)>) -> Self {
        let pages = place.len() as u32;
        assert!(pages > 0 && references > 0, "a stream has references");
        assert_eq!(areas.iter().map(|area| area.1).sum::<u32>(), pages, "every page lies in an area");
        let columns = COLUMNS.min(references as usize);
        let rows = ROWS.min(pages as usize);
        let edge = |n: usize| (u128::from(references) * n as u128 / columns as u128) as u64;
        let row_of: Vec<u16> =
            (0..u64::from(pages)).map(|place| (place * rows as u64 / u64::from(pages)) as u16).collect();
        let mut counts = vec![0; rows];
        row_of.iter().for_each(|&row| counts[usize::from(row)] += 1);
        let numbered = areas.iter().enumerate();
        let area_of = numbered.flat_map(|(n, area)| vec![n.min(usize::from(NONE)) as u16; area.1 as usize]);
        Self {
            area_of: area_of.collect(),
            row_of,
            touched: vec![NONE; place.len()],
            wrote: vec![NONE; place.len()],
            place,
            column: 0,
            seen: 0,
            common: vec![0; columns],
            portrait: Portrait {
                references,
                pages,
                edges: (0..=columns).map(edge).collect(),
                rows: counts,
                referenced: vec![vec![0; rows]; columns],
                written: vec![vec![0; rows]; columns],
                working_set: vec![0; columns],
                footprint: vec![0; columns],
                phases: Vec::new(),
                areas: areas.into_iter().map(|(name, pages)| Area { name, pages, references: 0 }).collect(),
            },
        }
    }

    /// The next `count` references, all to one page. What is beyond the references that were promised is in the last column.
    ///
    /// # Panics
    /// When there is no such page.
    #[inline]
    pub fn take(&mut self, page: u32, count: u64, write: bool) {
        let place = self.place[page as usize] as usize;
        self.portrait.areas[usize::from(self.area_of[place])].references += count;
        let mut left = count;
        loop {
            let end = self.portrait.edges[self.column + 1];
            let here = if self.column + 1 == self.portrait.working_set.len() {
                left
            } else {
                left.min(end.saturating_sub(self.seen))
            };
            if here > 0 {
                self.note(place, write);
                self.seen += here;
                left -= here;
            }
            if left == 0 {
                return;
            }
            self.column += 1;
        }
    }

    #[inline]
    fn note(&mut self, place: usize, write: bool) {
        let now = self.column as u16;
        let row = usize::from(self.row_of[place]);
        if self.touched[place] != now {
            let before = std::mem::replace(&mut self.touched[place], now);
            self.common[self.column] += u32::from(before != NONE && before + 1 == now);
            self.portrait.footprint[self.column] += u32::from(before == NONE);
            self.portrait.working_set[self.column] += 1;
            self.portrait.referenced[self.column][row] += 1;
        }
        if write && self.wrote[place] != now {
            self.wrote[place] = now;
            self.portrait.written[self.column][row] += 1;
        }
    }

    /// The portrait.
    pub fn finish(mut self) -> Portrait {
        let mut sum = 0;
        for new in &mut self.portrait.footprint {
            sum += *new;
            *new = sum;
        }
        self.portrait.phases = phases(&self.portrait, &self.common);
        self.portrait
    }
}

/// The phases; `common` has for each column the pages that it shares with the one before.
fn phases(portrait: &Portrait, common: &[u32]) -> Vec<Phase> {
    let sizes = &portrait.working_set;
    let mut list = Vec::new();
    let mut from = 0;
    for column in 1..=sizes.len() {
        if column < sizes.len() {
            let any = (sizes[column - 1] + sizes[column] - common[column]).max(1);
            if 1.0 - f64::from(common[column]) / f64::from(any) <= CHANGED {
                continue;
            }
        }
        let sum: f64 = sizes[from..column].iter().map(|&size| f64::from(size)).sum();
        list.push(Phase {
            from: portrait.edges[from],
            to: portrait.edges[column],
            working_set: sum / (column - from) as f64,
        });
        from = column;
    }
    list
}

impl Portrait {
    /// The column with the greatest working set, and its size.
    pub fn peak(&self) -> (usize, u32) {
        let mut peak = (0, 0);
        for (column, &size) in self.working_set.iter().enumerate() {
            if size > peak.1 {
                peak = (column, size);
            }
        }
        peak
    }

    /// The mean working set over the columns, in pages.
    pub fn mean_working_set(&self) -> f64 {
        let sum: f64 = self.working_set.iter().map(|&size| f64::from(size)).sum();
        sum / self.working_set.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages 0 to 9 in turn for half of the time, then 10 to 29, whose order in space is the other way round.
    fn portrait() -> Portrait {
        let place: Vec<u32> = (0..30).rev().collect();
        let mut sitting = Sitting::new(24_000, place, vec![("high".into(), 20), ("low".into(), 10)]);
        (0..12_000u32).for_each(|n| sitting.take(n % 10, 1, false));
        (0..4_000u32).for_each(|n| sitting.take(10 + n % 20, 3, true));
        sitting.finish()
    }

    #[test]
    fn columns_rows_and_areas_are_counted() {
        let portrait = portrait();
        assert_eq!((portrait.edges.len(), portrait.rows.len()), (241, 30));
        assert_eq!(portrait.working_set[0], 10);
        assert_eq!(portrait.working_set[239], 20);
        assert_eq!(portrait.footprint[119], 10);
        assert_eq!(portrait.footprint[239], 30);
        // Page 0 lies highest.
        assert_eq!((portrait.referenced[0][29], portrait.referenced[0][0]), (1, 0));
        assert_eq!((portrait.written[0][29], portrait.written[239][0]), (0, 1));
        let areas: Vec<_> = portrait.areas.iter().map(|a| (a.name.as_str(), a.references)).collect();
        assert_eq!(areas, [("high", 12_000), ("low", 12_000)]);
        assert_eq!(portrait.peak(), (120, 20));
    }

    #[test]
    fn a_phase_ends_where_the_pages_are_others() {
        let found = portrait().phases;
        let shown: Vec<_> = found.iter().map(|p| (p.from, p.to, p.working_set)).collect();
        assert_eq!(shown, [(0, 12_000, 10.0), (12_000, 24_000, 20.0)]);
        // The mechanism broken: what does not change has one phase.
        let mut steady = Sitting::new(1000, (0..5).collect(), vec![(String::new(), 5)]);
        (0..1000u32).for_each(|n| steady.take(n % 5, 1, false));
        assert_eq!(steady.finish().phases.len(), 1);
    }

    #[test]
    fn a_run_over_several_columns_is_in_each() {
        let mut one = Sitting::new(240_000, vec![0], vec![(String::new(), 1)]);
        one.take(0, 240_000, false);
        let one = one.finish();
        assert!(one.working_set.iter().all(|&size| size == 1), "{:?}", one.working_set);
        assert_eq!(one.phases.len(), 1);
    }
}
