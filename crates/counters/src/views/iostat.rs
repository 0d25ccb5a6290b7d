//! Solaris' `iostat -xn` on Linux, from the Riemann sums of /proc/diskstats.
//!
//! The kernel keeps, for each device, the time with any request in flight (field 10) and the sum over
//! requests of their time in flight (field 11). With Δ the growth in the interval and Δt its length:
//! - requests in flight on average: `actv` = Δqueue_time ÷ Δt;
//! - time per request, by Little's law: `asvc_t` = actv ÷ (r/s + w/s), the flushes and discards of
//!   newer kernels added to the rate because their time is in the sum;
//! - share of time busy: `%b` = 100 · Δbusy_time ÷ Δt.
//!
//! Linux has one figure from the request's beginning to its completion and does not split waiting from
//! being served: `wait`, `wsvc_t` and `%w` are None, and `actv` and `asvc_t` hold both. While somebody
//! traces ([`Wait`]), a request waits from its insertion into the device's queue until it is issued:
//! - `wait` = Δwaited ÷ Δt, `wsvc_t` = wait ÷ the rate above, `%w` = 100 · Δbusy ÷ Δt;
//! - `actv` is the sum above less `wait`, and `asvc_t` follows from it.

use std::collections::HashMap;

use serde::Serialize;

use super::cell;
use crate::select::Selection;
use crate::tree::{Snapshot, of_group};

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&["diskstats", "system:0:clock:uptime"])
}

/// A device's queue of waiting requests, from the kernel's tracepoints; in nanoseconds since tracing
/// began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// The times of all requests, added.
    pub waited: u64,
    /// The time with any request waiting.
    pub busy: u64,
}

/// One moment: the counters and, where it was traced, what waits for each device.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// The counters of [`selection`].
    pub counters: Snapshot,
    /// The waits by the device's name.
    pub waits: Option<HashMap<String, Wait>>,
}

/// One device in one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The device.
    pub device: String,
    /// Reads completed per second.
    pub reads: f64,
    /// Writes completed per second.
    pub writes: f64,
    /// Bytes read per second.
    pub read_size: f64,
    /// Bytes written per second.
    pub write_size: f64,
    /// Requests waiting for the device on average; None unless traced.
    pub wait: Option<f64>,
    /// Requests being served on average; where it was not traced, the waiting among them.
    pub actv: f64,
    /// Nanoseconds a request waited; None unless traced.
    pub wsvc_t: Option<f64>,
    /// Nanoseconds a request was served, and waited where that was not traced; None without a request.
    pub asvc_t: Option<f64>,
    /// Percent of the time with requests waiting; None unless traced.
    pub percent_wait: Option<f64>,
    /// Percent of the time with requests in flight.
    pub percent_busy: f64,
    /// Bytes per read or write on average; None without one.
    pub transfer: Option<f64>,
}

/// The devices that did anything between two moments, or since boot when `before` is None.
pub fn rows(earlier: Option<&Moment>, moment: &Moment) -> Vec<Row> {
    let (before, now) = (earlier.map(|m| &m.counters), &moment.counters);
    let seconds = match before {
        Some(before) => now.seconds_since(before),
        None => now.number("system", 0, "clock", "uptime").map(|ns| ns / 1e9).filter(|s| *s > 0.0),
    };
    let Some(seconds) = seconds else { return Vec::new() };
    let device = |(_, name, group): (u64, &std::sync::Arc<str>, &[crate::Sample])| {
        let rate = |statistic: &str| {
            let end = of_group(group, statistic)?;
            // A device that was not there before starts at nothing.
            let start = before.and_then(|b| b.number("diskstats", 0, name, statistic)).unwrap_or(0.0);
            Some((end - start).max(0.0) / seconds)
        };
        let or_zero = |statistic| rate(statistic).unwrap_or(0.0);
        let (reads, writes) = (rate("reads")?, rate("writes")?);
        let (read_size, write_size) = (rate("read_size")?, rate("write_size")?);
        let requests = reads + writes + or_zero("discards") + or_zero("flushes");
        let all = rate("queue_time")? / 1e9;
        let waited = earlier.and_then(|earlier| growth(earlier, moment, name));
        let wait = waited.map(|w| w.waited as f64 / 1e9 / seconds);
        let actv = (all - wait.unwrap_or(0.0)).max(0.0);
        let percent_busy = rate("busy_time")? / 1e9 * 100.0;
        (requests > 0.0 || all > 0.0).then(|| Row {
            device: name.to_string(),
            reads,
            writes,
            read_size,
            write_size,
            wait,
            actv,
            wsvc_t: wait.filter(|_| requests > 0.0).map(|wait| wait / requests * 1e9),
            asvc_t: (requests > 0.0).then(|| actv / requests * 1e9),
            percent_wait: waited.map(|w| (w.busy as f64 / 1e9 / seconds * 100.0).min(100.0)),
            percent_busy: percent_busy.min(100.0),
            transfer: (reads + writes > 0.0).then(|| (read_size + write_size) / (reads + writes)),
        })
    };
    now.groups("diskstats").filter_map(device).collect()
}

/// What waited for a device between two moments; None where it was not traced.
fn growth(before: &Moment, now: &Moment, device: &str) -> Option<Wait> {
    let (start, end) = (before.waits.as_ref()?.get(device)?, now.waits.as_ref()?.get(device)?);
    Some(Wait { waited: end.waited.saturating_sub(start.waited), busy: end.busy.saturating_sub(start.busy) })
}

/// The line above the rows of the extended view.
pub fn heading() -> String {
    "    r/s     w/s      kr/s      kw/s  wait    actv wsvc_t   asvc_t  %w   %b   avg-kB device".to_owned()
}

impl Row {
    /// The line under [`heading`]: sizes in KiB, times in milliseconds.
    pub fn line(&self) -> String {
        let kib = |bytes: f64| Some(bytes / 1024.0);
        let ms = |ns: Option<f64>| ns.map(|ns| ns / 1e6);
        [
            cell(Some(self.reads), 7, 1),
            cell(Some(self.writes), 7, 1),
            cell(kib(self.read_size), 9, 1),
            cell(kib(self.write_size), 9, 1),
            cell(self.wait, 5, 2),
            cell(Some(self.actv), 7, 2),
            cell(ms(self.wsvc_t), 6, 2),
            cell(ms(self.asvc_t), 8, 2),
            cell(self.percent_wait, 3, 0),
            cell(Some(self.percent_busy), 4, 0),
            cell(self.transfer.and_then(kib), 8, 1),
        ]
        .concat()
            + &self.device
    }

    /// The short line: KiB per second, transfers per second, milliseconds per transfer.
    pub fn short_line(&self) -> String {
        [
            cell(Some((self.read_size + self.write_size) / 1024.0), 9, 0),
            cell(Some(self.reads + self.writes), 7, 0),
            cell(self.asvc_t.map(|ns| ns / 1e6), 8, 1),
        ]
        .concat()
            + &self.device
    }
}

/// The line above the short rows.
pub fn short_heading() -> String {
    format!("{:>9} {:>7} {:>8} device", "kps", "tps", "serv")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Kind, Sample, Unit};

    fn disk(seconds: u64, values: &[(&'static str, u64)]) -> Moment {
        let sample = |(statistic, value): &(&'static str, u64)| Sample {
            module: "diskstats",
            instance: 0,
            name: "sda".into(),
            statistic: (*statistic).into(),
            class: "disk",
            value: (*value).into(),
            unit: Unit::Count,
            kind: Kind::Counter,
        };
        let counters = Snapshot::new(seconds * 1_000_000_000, values.iter().map(sample).collect());
        Moment { counters, waits: None }
    }

    #[test]
    fn a_published_line_is_reproduced() {
        // McDougall's sample: 22.4 reads and 22910.7 KB a second with one request in flight on
        // average: 44.6 ms each, 1,023 KB each.
        let names = ["reads", "writes", "read_size", "write_size", "busy_time", "queue_time"];
        let mut before = disk(0, &names.map(|n| (n, 0)));
        let bytes = (22_910.7 * 1024.0 * 10.0) as u64;
        let ends = [224, 0, bytes, 0, 9_900_000_000, 10_000_000_000];
        let mut now = disk(10, &std::array::from_fn::<_, 6, _>(|i| (names[i], ends[i])));
        let row = &rows(Some(&before), &now)[0];
        assert!((row.reads - 22.4).abs() < 1e-9 && (row.actv - 1.0).abs() < 1e-9);
        assert!((row.asvc_t.unwrap() / 1e6 - 44.6).abs() < 0.05);
        assert!((row.transfer.unwrap() / 1024.0 - 1023.0).abs() < 0.5);
        assert!((row.percent_busy - 99.0).abs() < 1e-9);
        assert_eq!((row.wait, row.wsvc_t, row.percent_wait), (None, None, None));
        // A quarter of that time before the device took them.
        before.waits = Some([("sda".to_owned(), Wait { waited: 5, busy: 5 })].into());
        now.waits = Some([("sda".to_owned(), Wait { waited: 2_500_000_005, busy: 2_000_000_005 })].into());
        let row = &rows(Some(&before), &now)[0];
        assert_eq!((row.wait, row.actv, row.percent_wait), (Some(0.25), 0.75, Some(20.0)));
        assert!((row.wsvc_t.unwrap() + row.asvc_t.unwrap() - 44_642_857.0).abs() < 1.0);
    }

    #[test]
    fn an_idle_device_is_left_out() {
        let names = ["reads", "writes", "read_size", "write_size", "busy_time", "queue_time"];
        let [before, now] = [0, 1].map(|second| disk(second, &names.map(|n| (n, 7))));
        assert!(rows(Some(&before), &now).is_empty());
    }
}
