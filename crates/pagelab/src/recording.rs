//! Counters over time as observations: of `pagelab record`, and beside every repetition on the host.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pagelab_counters::views::series::{Column, Series};
use pagelab_counters::{Kind, Selection, Snapshot, Tree, Unit};
use pagelab_experiment::observation::{self, Counter, Table, Values};
use pagelab_experiment::tables::counters;

/// What is recorded without a selector: the signs of a shortage and where memory is.
pub const DEFAULT: [&str; 5] = [
    "pressure:0:/^(memory|io)$/:/^(some|full)_total$/",
    "vmstat:0:vm:/^(pgfault|pgmajfault|pswpin|pswpout|oom_kill)$/",
    "vmstat:0:vm:/^(pgscan|pgsteal|workingset_refault)_(anon|file)$/",
    "meminfo:0:mem:/^(MemFree|MemAvailable|AnonPages|Cached|Shmem|Slab|Dirty|SwapFree)$/",
    "zoneinfo::Normal:/^(free|low|min)$/",
];

/// The first of the selectors that no counter of the machine matches.
pub fn unmatched<'a>(tree: &Tree, selectors: &'a [String]) -> Option<&'a str> {
    let matches = |selector: &str| {
        Selection::parse([selector]).is_ok_and(|selection| !tree.read(&selection).samples().is_empty())
    };
    selectors.iter().map(String::as_str).find(|selector| !matches(selector))
}

/// Between two samples beside a repetition.
const INTERVAL: Duration = Duration::from_millis(250);
/// A repetition with fewer looks has no table: the sums beside it say as much.
const MIN_SAMPLES: usize = 4;

/// The default counters recorded in a thread of its own: four looks a second.
pub struct Background {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Series>,
}

impl Background {
    /// Begins; `None` where there can be no thread for it.
    pub fn start() -> Option<Self> {
        let selection = Selection::parse(DEFAULT).ok()?;
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        let thread = std::thread::Builder::new().spawn(move || {
            let tree = Tree::live();
            let mut series = Series::default();
            series.add(tree.read(&selection));
            loop {
                std::thread::park_timeout(INTERVAL);
                if asked.load(Ordering::Relaxed) {
                    return series;
                }
                series.add(tree.read(&selection));
            }
        });
        let thread = thread.ok()?;
        Some(Self { stop, thread })
    }

    /// Ends; the table, if it was long enough for one.
    pub fn finish(self) -> Option<Table> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        let mut series = self.thread.join().ok()?;
        if series.len() < MIN_SAMPLES {
            return None;
        }
        let (times, columns) = series.take();
        Some(table(&times, columns))
    }
}

/// A row for each look; the time in nanoseconds is the abscissa.
pub fn table(times: &[u64], columns: Vec<Column>) -> Table {
    let number = |name: String, unit, values| observation::Column {
        name,
        unit: Some(unit),
        values: Values::Number(values),
    };
    let time = times.iter().map(|ns| Some(*ns as f64)).collect();
    let mut all = vec![counters::TIME.of(time)];
    for column in columns {
        let (unit, by) = unit(column.unit, column.rate);
        let values = column.values.into_iter().map(|v| v.map(|v| v / by)).collect();
        all.push(number(column.name, unit, values));
    }
    Table { name: counters::TABLE.name.to_owned(), columns: all }
}

/// The notebook's unit for a figure and what to divide it by: time per time and hundredths are shares.
fn unit(unit: Unit, rate: bool) -> (observation::Unit, f64) {
    match (unit, rate) {
        (Unit::Nanoseconds, true) => (observation::Unit::Share, 1e9),
        (Unit::Percent, _) => (observation::Unit::Share, 100.0),
        (_, true) => (observation::Unit::PerSecond, 1.0),
        (Unit::Nanoseconds, false) => (observation::Unit::Nanoseconds, 1.0),
        (Unit::Bytes, false) => (observation::Unit::Bytes, 1.0),
        (Unit::Pages, false) => (observation::Unit::Pages, 1.0),
        (Unit::Count | Unit::None, false) => (observation::Unit::Count, 1.0),
    }
}

/// The growing counters at the start and the end.
pub fn counters(first: &Snapshot, last: &Snapshot) -> Vec<Counter> {
    let whole = |v: f64| v as i64;
    let growing = last.samples().iter().filter(|s| s.kind == Kind::Counter);
    growing
        .filter_map(|s| {
            let before = first.number(s.module, s.instance, &s.name, &s.statistic)?;
            Some(Counter {
                source: format!("{}:{}:{}", s.module, s.instance, s.name),
                name: s.statistic.to_string(),
                before: whole(before),
                after: whole(s.value.number()?),
            })
        })
        .collect()
}
