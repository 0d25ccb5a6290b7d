//! The log of evictions, for runs on kernels and on models.

use std::collections::BTreeMap;

use super::{Sheet, metric};
use crate::environment;
use crate::experiments::paging::MAX_EVICTIONS;
use crate::failure::Failure;
use crate::metrics::EVICTIONS;
use crate::observation::Observation;
use crate::recorder::Recorder;
use crate::tables::evictions;

/// Evictions in the order in which they were seen. It keeps the first [`Self::MAX_ROWS`], and counts
/// all.
#[derive(Debug)]
pub struct EvictionLog {
    rows: Vec<(u32, u32)>,
    count: u64,
}

impl EvictionLog {
    /// Maximum number of evictions in a log.
    pub const MAX_ROWS: usize = MAX_EVICTIONS;

    /// Creates an empty log with room for all rows, so that it does not allocate later.
    pub fn new() -> Self {
        Self { rows: Vec::with_capacity(Self::MAX_ROWS), count: 0 }
    }

    /// Adds an eviction: `page` was absent after `references` references.
    pub fn add(&mut self, references: u32, page: u32) {
        self.count += 1;
        if self.rows.len() < Self::MAX_ROWS {
            self.rows.push((references, page));
        }
    }

    /// Number of evictions, including those that were not kept.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Records the table, the count, and `interval`, the number of references between two reads of
    /// the page table.
    ///
    /// # Errors
    /// If the recorder fails.
    pub fn record(self, interval: u32, recorder: &mut dyn Recorder) -> Result<(), Failure> {
        let entry = (environment::EVICTIONS_INTERVAL.to_owned(), interval.to_string());
        recorder.observe(Observation::Environment(BTreeMap::from([entry])))?;
        metric(recorder, EVICTIONS, Some(self.count as f64))?;
        let mut sheet = Sheet::new(evictions::TABLE);
        for (references, page) in self.rows {
            sheet.row([Some(f64::from(references)), Some(f64::from(page))]);
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
        let mut log = EvictionLog::new();
        let all = EvictionLog::MAX_ROWS as u32 + 5;
        (0..all).for_each(|n| log.add(n, 7));
        let mut seen = Observations::default();
        log.record(9, &mut seen).unwrap();
        assert_eq!(seen.metric(EVICTIONS), Some(f64::from(all)));
        let table = seen.table(evictions::TABLE).unwrap();
        assert_eq!(table.numbers(evictions::PAGE).unwrap().len(), EvictionLog::MAX_ROWS);
        assert_eq!(seen.environment[environment::EVICTIONS_INTERVAL], "9");
    }
}
