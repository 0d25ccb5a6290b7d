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

use super::{Described, Width, cell};
use crate::select::Selection;
use crate::tree::{Snapshot, of_group};

/// What to read for this view.
pub fn selection() -> Selection {
    super::constant(&[
        "diskstats",
        "stat:0:all:/^(user|nice|system|idle|iowait|irq|softirq|steal)$/",
        "system:0:clock:uptime",
    ])
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
    let Some(seconds) = now.seconds_from(before) else { return Vec::new() };
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

/// Percent of all CPUs' time, as `iostat -c` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Processors {
    /// In user mode.
    pub us: f64,
    /// In the kernel, interrupts included.
    pub sy: f64,
    /// Idle while a request of a task that ran there was in flight.
    pub wt: f64,
    /// Idle otherwise.
    pub id: f64,
    /// Taken by the hypervisor.
    pub st: f64,
}

/// The processors between two moments, or since boot when `earlier` is None; None where no time has passed.
pub fn processors(earlier: Option<&Moment>, moment: &Moment) -> Option<Processors> {
    let time = |statistic: &str| {
        let of = |counters: &Snapshot| counters.number("stat", 0, "all", statistic).unwrap_or(0.0);
        (of(&moment.counters) - earlier.map_or(0.0, |m| of(&m.counters))).max(0.0)
    };
    let sum = |statistics: &[&str]| statistics.iter().map(|s| time(s)).sum::<f64>();
    let all = sum(&["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"]);
    let percent = |statistics: &[&str]| 100.0 * sum(statistics) / all;
    (all > 0.0).then(|| Processors {
        us: percent(&["user", "nice"]),
        sy: percent(&["system", "irq", "softirq"]),
        wt: percent(&["iowait"]),
        id: percent(&["idle"]),
        st: percent(&["steal"]),
    })
}

impl Processors {
    /// The lines of `iostat -c`, its heading first.
    pub fn lines(&self) -> String {
        let cells = [self.us, self.sy, self.wt, self.id, self.st].map(|percent| cell(Some(percent), 3, 0));
        let names = CPU.map(|(name, _)| format!("{name:>3}"));
        format!("     cpu\n{}\n{}", names.join(" "), cells.concat().trim_end())
    }
}

/// The line above the rows of the extended view; in few columns what is not traced is left out.
pub fn heading(width: Width, traced: bool) -> String {
    columns(width, traced)
        .into_iter()
        .map(|(name, width, _, _)| format!("{name:>width$} "))
        .collect::<String>()
        + "device"
}

/// Name, width, decimals and figure of a column.
type Column = (&'static str, usize, usize, fn(&Row) -> Option<f64>);

/// The columns of the extended view: sizes in KiB, times in milliseconds; the width for 80 columns, and the
/// meaning.
const EXTENDED: [(Column, usize, &str); 11] = [
    (("r/s", 7, 1, |r| Some(r.reads)), 6, "reads per second"),
    (("w/s", 7, 1, |r| Some(r.writes)), 6, "writes per second"),
    (("kr/s", 9, 1, |r| kib(Some(r.read_size))), 8, "KiB read per second"),
    (("kw/s", 9, 1, |r| kib(Some(r.write_size))), 8, "KiB written per second"),
    (("wait", 5, 2, |r| r.wait), 4, "requests that wait to be issued, on average; needs --trace"),
    (("actv", 7, 2, |r| Some(r.actv)), 5, "requests in flight, on average"),
    (("wsvc_t", 6, 2, |r| ms(r.wsvc_t)), 6, "ms that a request waited to be issued; needs --trace"),
    (("asvc_t", 8, 2, |r| ms(r.asvc_t)), 6, "ms per request: actv / (r/s + w/s + discards/s + flushes/s)"),
    (("%w", 3, 0, |r| r.percent_wait), 3, "percent of the time with a request waiting; needs --trace"),
    (("%b", 4, 0, |r| Some(r.percent_busy)), 3, "percent of the time with a request in flight"),
    (("avg-kB", 8, 1, |r| kib(r.transfer)), 6, "KiB per read or write, on average"),
];

/// The columns of the short view, their widths and meanings.
const SHORT: [(&str, usize, &str); 3] = [
    ("kps", 9, "KiB read and written per second"),
    ("tps", 7, "reads and writes per second"),
    ("serv", 8, "ms per request, waiting included"),
];

/// The columns of the CPUs' time, in percent.
const CPU: [Described; 5] = [
    ("us", "CPU time in user mode"),
    ("sy", "CPU time in the kernel, interrupts included"),
    ("wt", "CPU time idle while a request of a task of this CPU was in flight"),
    ("id", "CPU time idle otherwise"),
    ("st", "CPU time stolen by the hypervisor"),
];

/// Every column with its meaning.
pub fn described() -> Vec<Described> {
    let extended = EXTENDED.iter().map(|((name, ..), _, help)| (*name, *help));
    let short = SHORT.iter().map(|(name, _, help)| (*name, *help));
    extended.chain([("device", "the kernel's name of the block device")]).chain(short).chain(CPU).collect()
}

fn columns(width: Width, traced: bool) -> Vec<Column> {
    let narrow = width != Width::Whole;
    let shown = |name: &str| !narrow || traced || !matches!(name, "wait" | "wsvc_t" | "%w");
    let fit = |((name, whole, decimals, of), narrow_width, _): (Column, usize, &str)| {
        (name, if narrow { narrow_width } else { whole }, decimals, of)
    };
    EXTENDED.into_iter().filter(|((name, ..), ..)| shown(name)).map(fit).collect()
}

fn kib(bytes: Option<f64>) -> Option<f64> {
    bytes.map(|bytes| bytes / 1024.0)
}

fn ms(ns: Option<f64>) -> Option<f64> {
    ns.map(|ns| ns / 1e6)
}

impl Row {
    /// The line under [`heading`]: as many decimals as there is room for.
    pub fn line(&self, width: Width, traced: bool) -> String {
        let figure = |(_, room, decimals, of): Column| {
            let value = of(self);
            let fits = |decimals: usize| value.is_none_or(|v| format!("{v:.decimals$}").len() <= room);
            cell(value, room, (0..=decimals).rev().find(|&d| fits(d)).unwrap_or(0))
        };
        let line: String = columns(width, traced).into_iter().map(figure).collect();
        let taken = line.chars().count();
        line + &width.cut(&self.device, taken)
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
    SHORT.map(|(name, width, _)| format!("{name:>width$} ")).concat() + "device"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Kind, Sample};

    fn disk(seconds: u64, values: &[(&'static str, u64)]) -> Moment {
        let sample = |(statistic, value): &(&'static str, u64)| {
            Sample::new("diskstats", 0, "sda", statistic, *value, Kind::Counter)
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
    fn a_line_fits_eighty_columns_traced_or_not() {
        let names = ["reads", "writes", "read_size", "write_size", "busy_time", "queue_time"];
        let ends = [123_456, 99_999, 9_999_999_999, 12_345_678_901, 999_999_999, 123_456_789_012];
        let (before, now) = (
            disk(0, &names.map(|n| (n, 0))),
            disk(1, &std::array::from_fn::<_, 6, _>(|i| (names[i], ends[i]))),
        );
        let mut row = rows(Some(&before), &now).remove(0);
        row.device = "a-device-mapper-name".to_owned();
        let narrow = Width::of(Some(80), 100);
        for traced in [false, true] {
            let line = row.line(narrow, traced);
            assert!(line.chars().count() <= 80 && heading(narrow, traced).len() <= 80, "{line}");
            assert_eq!(heading(narrow, traced).contains("wsvc_t"), traced);
        }
    }

    #[test]
    fn processors_are_shares_of_all_their_time() {
        let at = |seconds, values: &[(&'static str, u64)]| {
            let mut moment = disk(seconds, values);
            let samples = moment.counters.samples().iter().map(|s| Sample {
                module: "stat",
                name: "all".into(),
                ..s.clone()
            });
            moment.counters = Snapshot::new(seconds, samples.collect());
            moment
        };
        let now = at(1, &[("user", 20), ("system", 5), ("irq", 5), ("iowait", 10), ("idle", 60)]);
        let found = processors(Some(&at(0, &[])), &now).unwrap();
        assert_eq!(found, Processors { us: 20.0, sy: 10.0, wt: 10.0, id: 60.0, st: 0.0 });
        assert_eq!(found.lines(), "     cpu\n us  sy  wt  id  st\n 20  10  10  60   0");
        assert_eq!(processors(Some(&now), &now), None);
    }

    #[test]
    fn an_idle_device_is_left_out() {
        let names = ["reads", "writes", "read_size", "write_size", "busy_time", "queue_time"];
        let [before, now] = [0, 1].map(|second| disk(second, &names.map(|n| (n, 7))));
        assert!(rows(Some(&before), &now).is_empty());
    }
}
