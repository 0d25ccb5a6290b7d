//! The log of evictions, for runs on kernels and on models.

use std::collections::BTreeMap;

use super::{Sheet, metric};
use crate::environment;
use crate::experiments::paging::MAX_EVICTIONS;
use crate::failure::Failure;
use crate::metrics::EVICTIONS;
use crate::observation::Observation;
use crate::recorder::Recorder;
use crate::tables::{arrivals, evictions};

/// The task that freed a page, as the kernel shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Evictor {
    /// Not known.
    #[default]
    Unknown,
    /// kswapd.
    Kswapd,
    /// A task in an allocation, because the machine was short of memory (direct reclaim).
    Direct,
    /// A task at a cgroup's limit.
    Cgroup,
    /// A task other than kswapd; the reason is not known.
    Task,
    /// The page left the page table and came back from the swap cache before a task freed it.
    SwapCache,
}

impl Evictor {
    /// Every evictor with its name in the table.
    pub const NAMES: [(Self, &str); 6] = [
        (Self::Unknown, ""),
        (Self::Kswapd, "kswapd"),
        (Self::Direct, "direct"),
        (Self::Cgroup, "cgroup"),
        (Self::Task, "task"),
        (Self::SwapCache, "swap-cache"),
    ];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|one| one.0 == self).map_or("", |one| one.1)
    }

    /// The evictor of this name; unknown for other names.
    pub fn named(name: &str) -> Self {
        Self::NAMES.into_iter().find(|one| one.1 == name).map_or(Self::Unknown, |one| one.0)
    }
}

/// A row of the log: pages in a row that left or came at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    references: u32,
    page: u32,
    pages: u32,
    by: Evictor,
    workingset: Option<bool>,
}

impl Row {
    /// Adds the pages of `next` if they follow. Returns `false` otherwise.
    fn extend(&mut self, next: &Self) -> bool {
        let follows = Self { page: self.page, pages: self.pages, ..*next } == *self;
        let is_next = follows && self.page.checked_add(self.pages) == Some(next.page);
        self.pages += if is_next { next.pages } else { 0 };
        is_next
    }
}

/// Adds a row, to the last one if it continues it. Returns whether there was room.
fn push(rows: &mut Vec<Row>, row: Row) -> bool {
    if rows.last_mut().is_some_and(|last| last.extend(&row)) {
        return true;
    }
    let room = rows.len() < EvictionLog::MAX_ROWS;
    if room {
        rows.push(row);
    }
    room
}

/// Evictions in the order in which they were seen, and the pages that entered the page cache. It
/// keeps the first [`Self::MAX_ROWS`] of each, and counts all evictions.
#[derive(Debug)]
pub struct EvictionLog {
    rows: Vec<Row>,
    count: u64,
    arrivals: Option<Vec<Row>>,
    lost: u64,
}

impl EvictionLog {
    /// Maximum number of evictions in a log.
    pub const MAX_ROWS: usize = MAX_EVICTIONS;

    /// Creates an empty log with room for all rows, so that it does not allocate later.
    pub fn new() -> Self {
        Self { rows: Vec::with_capacity(Self::MAX_ROWS), count: 0, arrivals: None, lost: 0 }
    }

    /// The same for pages that enter memory without a fault of their own.
    pub fn with_arrivals() -> Self {
        Self { arrivals: Some(Vec::with_capacity(Self::MAX_ROWS)), ..Self::new() }
    }

    /// Adds an eviction: `page` was absent after `references` references. Returns its number, if it
    /// was kept.
    pub fn add(&mut self, references: u32, page: u32) -> Option<u32> {
        self.count += 1;
        let number = self.rows.len();
        if number < Self::MAX_ROWS {
            self.rows.push(Row { references, page, pages: 1, ..Row::default() });
        }
        (number < Self::MAX_ROWS).then_some(number as u32)
    }

    /// Sets who made the eviction of this number, and the kernel's workingset flag of the page.
    pub fn attribute(&mut self, number: u32, by: Evictor, workingset: Option<bool>) {
        if let Some(row) = self.rows.get_mut(number as usize) {
            (row.by, row.workingset) = (by, workingset);
        }
    }

    /// Adds the eviction of `pages` pages from `page` on by a known task.
    pub fn add_pages(
        &mut self,
        references: u32,
        (page, pages): (u32, u32),
        by: Evictor,
        workingset: Option<bool>,
    ) {
        self.count += u64::from(pages);
        push(&mut self.rows, Row { references, page, pages, by, workingset });
    }

    /// Adds `pages` pages from `page` on that entered the page cache during the reference of this
    /// number, from 1.
    pub fn arrive(&mut self, references: u32, (page, pages): (u32, u32)) {
        let Some(arrivals) = &mut self.arrivals else { return };
        if !push(arrivals, Row { references, page, pages, ..Row::default() }) {
            self.lost += u64::from(pages);
        }
    }

    /// Number of evictions, including those that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Records the tables, the count, and `interval`, the number of references between two reads of
    /// the source.
    ///
    /// # Errors
    /// If the recorder fails.
    pub fn record(self, interval: u32, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let entry = (environment::EVICTIONS_INTERVAL.to_owned(), interval.to_string());
        recorder.observe(Observation::Environment(BTreeMap::from([entry])))?;
        metric(recorder, EVICTIONS, Some(self.count as f64))?;
        let known = self.rows.iter().any(|row| row.by != Evictor::Unknown);
        if known {
            let mut sheet = Sheet::new(evictions::TABLE);
            for row in &self.rows {
                let workingset = row.workingset.map(|flag| f64::from(u8::from(flag)));
                let [reference, page, pages] =
                    [row.references, row.page, row.pages].map(|value| Some(f64::from(value)));
                sheet.named([row.by.name()], [reference, page, pages, workingset]);
            }
            sheet.record(recorder)?;
        } else {
            let absent = [evictions::BY, evictions::PAGES, evictions::WORKINGSET];
            let mut sheet = Sheet::without(evictions::TABLE, &absent);
            for row in &self.rows {
                sheet.row([row.references, row.page].map(|value| Some(f64::from(value))));
            }
            sheet.record(recorder)?;
        }
        let Some(rows) = self.arrivals else { return Ok(()) };
        // The judgement ends where the first of the two lists does.
        let entry = (environment::ARRIVALS_LOST.to_owned(), self.lost.to_string());
        recorder.observe(Observation::Environment(BTreeMap::from([entry])))?;
        let mut sheet = Sheet::new(arrivals::TABLE);
        for row in rows {
            sheet.row([row.references, row.page, row.pages].map(|value| Some(f64::from(value))));
        }
        sheet.record(recorder)
    }
}

impl Default for EvictionLog {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Observations;

    #[test]
    fn a_full_log_counts_on() {
        let mut log = EvictionLog::with_arrivals();
        let all = EvictionLog::MAX_ROWS as u32 + 5;
        (0..all).for_each(|n| {
            log.add(n, 7);
            log.arrive(n, (8, 1));
        });
        let mut seen = Observations::default();
        log.record(9, &mut seen).unwrap();
        assert_eq!(seen.metric(EVICTIONS), Some(f64::from(all)));
        let table = seen.table(evictions::TABLE).unwrap();
        assert_eq!(table.numbers(evictions::PAGE).unwrap().len(), EvictionLog::MAX_ROWS);
        let table = seen.table(arrivals::TABLE).unwrap();
        assert_eq!(table.numbers(arrivals::PAGE).unwrap().len(), EvictionLog::MAX_ROWS);
        assert_eq!(seen.environment[environment::EVICTIONS_INTERVAL], "9");
        assert_eq!(seen.environment[environment::ARRIVALS_LOST], "5");
    }

    #[test]
    fn an_eviction_has_the_task_that_was_attributed_to_it() {
        let mut log = EvictionLog::new();
        let first = log.add(1, 4).unwrap();
        log.add(2, 5);
        log.attribute(first, Evictor::Kswapd, Some(true));
        let mut seen = Observations::default();
        log.record(1, &mut seen).unwrap();
        let table = seen.table(evictions::TABLE).unwrap();
        assert_eq!(table.texts(evictions::BY).unwrap(), ["kswapd", ""]);
        assert_eq!(table.numbers(evictions::WORKINGSET).unwrap(), [Some(1.0), None]);
        for (evictor, name) in Evictor::NAMES {
            assert_eq!((evictor.name(), Evictor::named(name)), (name, evictor));
        }
    }

    #[test]
    fn pages_in_a_row_share_a_row_if_they_left_or_came_at_the_same_time() {
        let mut log = EvictionLog::with_arrivals();
        for (references, page, by) in [
            (1, 4, Evictor::Cgroup),
            (1, 5, Evictor::Cgroup),
            (1, 6, Evictor::Kswapd),
            (1, 8, Evictor::Kswapd),
            (2, 9, Evictor::Kswapd),
        ] {
            log.add_pages(references, (page, 1), by, None);
        }
        log.arrive(3, (16, 16));
        log.arrive(3, (32, 1));
        log.arrive(4, (33, 1));
        let mut seen = Observations::default();
        log.record(1, &mut seen).unwrap();
        assert_eq!(seen.metric(EVICTIONS), Some(5.0));
        let of = |table, column| seen.table(table).unwrap().numbers(column).unwrap().to_vec();
        assert_eq!(of(evictions::TABLE, evictions::PAGE), [4.0, 6.0, 8.0, 9.0].map(Some));
        assert_eq!(of(evictions::TABLE, evictions::PAGES), [2.0, 1.0, 1.0, 1.0].map(Some));
        assert_eq!(of(arrivals::TABLE, arrivals::PAGES), [17.0, 1.0].map(Some));
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let mut log = EvictionLog::new();
        log.add(1, 4);
        let mut seen = Observations::default();
        log.record(1, &mut seen).unwrap();
        let table = seen.table(evictions::TABLE).unwrap();
        assert!(table.texts(evictions::BY).is_none() && table.numbers(evictions::WORKINGSET).is_none());
        assert!(seen.table(arrivals::TABLE).is_none());
    }
}
