//! What the screen shows, and how the keys change it.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use pagelab_counters::views::doctor::Verdict;
use pagelab_counters::views::prstat::{self, Ended, Moment, Row};
use pagelab_counters::{Snapshot, views::memstat};

/// As many looks as the widest screen shows.
const HISTORY: usize = 300;
/// The kinds of memory in the graph, from below.
pub const KINDS: usize = 6;

/// What the rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Waiting for memory, then for a CPU.
    Waiting,
    /// Using a CPU.
    Processor,
    /// Resident memory.
    Memory,
}

/// One sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Shares of memory: kernel, anonymous, shared, mapped file, unmapped file, free.
    pub kinds: [f64; KINDS],
    /// Pages a second looked at by reclaim.
    pub scanned: f64,
    /// Pages a second wanted again after their eviction.
    pub refaults: f64,
    /// Percent of the time in which some task waited for memory; None where not kept.
    pub some: Option<f64>,
    /// The same of all tasks.
    pub full: Option<f64>,
}

/// The screen's contents.
pub struct State {
    /// The looks, the newest last.
    pub history: VecDeque<Point>,
    /// The tasks in order.
    pub rows: Vec<Row>,
    /// The tasks that ended since the look before.
    pub ended: Option<Ended>,
    /// Whether memory is short, and whose.
    pub verdict: Verdict,
    /// The first row shown.
    pub first: usize,
    /// The order.
    pub sort: Sort,
    /// A row for each thread.
    pub threads: bool,
    /// Whether the screen is held.
    pub held: bool,
    /// Between two samples.
    pub interval: Duration,
    /// Why no task has delays.
    pub why_no_delays: Option<String>,
    /// Names by number.
    pub users: HashMap<u64, String>,
    before: Option<Moment>,
}

impl State {
    /// An empty screen.
    pub fn new(users: HashMap<u64, String>, interval: Duration) -> Self {
        Self {
            history: VecDeque::new(),
            rows: Vec::new(),
            ended: None,
            verdict: Verdict::default(),
            first: 0,
            sort: Sort::Waiting,
            threads: false,
            held: false,
            interval,
            why_no_delays: None,
            users,
            before: None,
        }
    }

    /// Takes a look in; a held screen goes on counting and stays as it is.
    pub fn update(&mut self, now: Moment, why_no_delays: Option<String>) {
        let counters = &now.counters;
        self.why_no_delays = why_no_delays;
        let mut point = Point { kinds: kinds(counters), ..Point::default() };
        if let Some(before) = self.before.take() {
            let rates = counters.rates_since(&before.counters);
            let verdict = Verdict::of(&before.counters, counters, &rates);
            let of = |sign: &str| verdict.evidence.iter().find(|e| e.sign == sign).and_then(|e| e.value);
            point.scanned = of("scanned").unwrap_or(0.0);
            point.refaults = of("refaults").unwrap_or(0.0);
            point.some = of("tasks waiting for memory");
            point.full = of("all tasks waiting for memory");
            if !self.held {
                self.verdict = verdict;
                self.ended = prstat::ended(&before, &now);
                self.rows = prstat::rows(&before, &now, self.threads);
                self.order();
            }
        }
        if !self.held {
            self.history.push_back(point);
            if self.history.len() > HISTORY {
                self.history.pop_front();
            }
        }
        self.before = Some(now);
    }

    /// Forgets the last look, which was of other tasks than the next one will be.
    pub fn forget(&mut self) {
        self.before = None;
        self.first = 0;
    }

    /// Moves the rows.
    pub fn scroll(&mut self, rows: usize, down: bool) {
        let last = self.rows.len().saturating_sub(1);
        self.first =
            if down { self.first.saturating_add(rows).min(last) } else { self.first.saturating_sub(rows) };
    }

    /// The rows on a screen with room for so many.
    pub fn within(&mut self, room: usize) -> &mut [Row] {
        let end = self.rows.len().min(self.first.saturating_add(room));
        &mut self.rows[self.first.min(end)..end]
    }

    /// Sorts anew.
    pub fn sort_by(&mut self, sort: Sort) {
        self.sort = sort;
        self.first = 0;
        self.order();
    }

    /// Looks less often.
    pub fn slower(&mut self) {
        self.interval = (self.interval * 2).min(Duration::from_secs(60));
    }

    /// Looks more often.
    pub fn faster(&mut self) {
        self.interval = (self.interval / 2).max(Duration::from_millis(100));
    }

    fn order(&mut self) {
        let used = |row: &Row| (row.usr + row.sys) * row.threads as f64;
        // Stable, so that equals keep their places and do not flicker.
        self.rows.sort_by_key(|row| (row.pid, row.tid));
        match self.sort {
            Sort::Waiting => self.rows.sort_by(|a, b| b.waits_longer(a)),
            Sort::Processor => self.rows.sort_by(|a, b| used(b).total_cmp(&used(a))),
            Sort::Memory => self.rows.sort_by(|a, b| b.rss.unwrap_or(0.0).total_cmp(&a.rss.unwrap_or(0.0))),
        }
        self.first = self.first.min(self.rows.len().saturating_sub(1));
    }
}

/// The shares of memory by kind, from /proc/meminfo.
fn kinds(counters: &Snapshot) -> [f64; KINDS] {
    let lines = memstat::lines(counters);
    let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
        lines.iter().filter(|l| !l.part && wanted(l.kind)).filter_map(|l| l.bytes).sum()
    };
    let total = sum(&|_| true).max(1.0);
    let parts = [
        sum(&|k| k.starts_with("kernel") || k == "huge pages"),
        sum(&|k| k == "anonymous"),
        sum(&|k| k == "shared memory"),
        sum(&|k| k == "mapped file cache"),
        sum(&|k| k == "unmapped file cache"),
        sum(&|k| k == "free"),
    ];
    parts.map(|bytes| bytes / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_the_rows_in_sight() {
        let mut state = State::new(HashMap::new(), Duration::from_secs(1));
        state.scroll(5, true);
        assert_eq!(state.first, 0, "there is nothing to scroll");
        state.rows = (0..4).map(|pid| Row { pid, rss: Some(pid as f64), ..Row::default() }).collect();
        state.scroll(usize::MAX, true);
        assert_eq!(state.first, 3);
        state.sort_by(Sort::Memory);
        assert_eq!((state.first, state.rows[0].pid), (0, 3));
        state.faster();
        state.slower();
        assert_eq!(state.interval, Duration::from_secs(1));
    }
}
