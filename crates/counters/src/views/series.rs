//! Counters over time, a column each: growing ones as growth per second, the others as they are.

use std::collections::HashMap;

use crate::tree::Snapshot;
use crate::value::{Kind, Unit};

/// One counter over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// `module:instance:name:statistic`, with `/s` behind it where it is a rate.
    pub name: String,
    /// The unit of the counter, before it became a rate.
    pub unit: Unit,
    /// Whether the figures are per second.
    pub rate: bool,
    /// A figure for each look; None where the counter was not there.
    pub values: Vec<Option<f64>>,
}

/// Looks and what each saw.
#[derive(Clone, Debug, Default)]
pub struct Series {
    start_ns: u64,
    before: Option<Snapshot>,
    times: Vec<u64>,
    columns: Vec<Column>,
    places: HashMap<String, usize>,
}

impl Series {
    /// Takes a look in. The first only begins the intervals of the rates.
    pub fn add(&mut self, now: Snapshot) {
        let Some(before) = self.before.replace(now.clone()) else {
            self.start_ns = now.at_ns;
            return;
        };
        let row = self.times.len();
        self.times.push(now.at_ns.saturating_sub(self.start_ns));
        for sample in now.rates_since(&before).samples() {
            let Some(value) = sample.value.number() else { continue };
            let counted = now.find(sample.module, sample.instance, &sample.name, &sample.statistic);
            let rate = counted.is_some_and(|s| s.kind == Kind::Counter);
            let name = format!("{}{}", sample.full_name(), if rate { "/s" } else { "" });
            let columns = &mut self.columns;
            let place = *self.places.entry(name).or_insert_with_key(|name| {
                columns.push(Column { name: name.clone(), unit: sample.unit, rate, values: Vec::new() });
                columns.len() - 1
            });
            let values = &mut self.columns[place].values;
            values.resize(row, None);
            values.push(Some(value));
        }
    }

    /// How many looks there are figures of.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// When each look was, in nanoseconds since the first, and the columns, all of that length; the
    /// series goes on without them.
    pub fn take(&mut self) -> (Vec<u64>, Vec<Column>) {
        for column in &mut self.columns {
            column.values.resize(self.times.len(), None);
        }
        self.places.clear();
        (std::mem::take(&mut self.times), std::mem::take(&mut self.columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Sample;

    #[test]
    fn columns_are_as_long_as_the_time_whatever_comes_and_goes() {
        let sample = |statistic, value: u64, kind| Sample::new("m", 0, "n", statistic, value, kind);
        let mut series = Series::default();
        series.add(Snapshot::new(5_000_000_000, vec![sample("faults", 10, Kind::Counter)]));
        series.add(Snapshot::new(
            6_000_000_000,
            vec![sample("faults", 30, Kind::Counter), sample("free", 7, Kind::Gauge)],
        ));
        series.add(Snapshot::new(8_000_000_000, vec![sample("faults", 90, Kind::Counter)]));
        assert_eq!(series.len(), 2);
        let (times, columns) = series.take();
        assert_eq!(times, [1_000_000_000, 3_000_000_000]);
        let faults = columns.iter().find(|c| c.name == "m:0:n:faults/s").unwrap();
        assert_eq!((faults.rate, &faults.values), (true, &vec![Some(20.0), Some(30.0)]));
        let free = columns.iter().find(|c| c.name == "m:0:n:free").unwrap();
        assert_eq!((free.rate, &free.values), (false, &vec![Some(7.0), None]));
        assert!(series.is_empty());
        series.add(Snapshot::new(9_000_000_000, vec![sample("faults", 91, Kind::Counter)]));
        let (times, columns) = series.take();
        assert_eq!((times, &columns[0].values), (vec![4_000_000_000], &vec![Some(1.0)]), "it goes on");
    }
}
