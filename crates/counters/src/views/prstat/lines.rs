//! The rows of `prstat` as lines, wide and for 80 columns.

use super::{Ended, Row};
use crate::views::{Described, Width, cell, fitting};

/// A column: name, width, width in 80 columns (0: left out), the cell of that width, meaning.
type Column = (&'static str, usize, usize, fn(&Row, usize) -> String, &'static str);

const MICROSTATES: [Column; 12] = [
    ("USR", 5, 4, |r, w| share(Some(r.usr), w), "percent of the time on a CPU in user mode"),
    ("SYS", 4, 4, |r, w| share(Some(r.sys), w), "percent of the time on a CPU in the kernel"),
    ("TRP", 3, 0, |_, w| cell(None, w, 0), "time in traps: part of SYS, because Linux does not split it"),
    ("TFL", 4, 4, |r, w| share(r.tfl, w), "percent asleep in a page fault on an instruction; needs --trace"),
    ("DFL", 4, 4, |r, w| share(r.dfl, w), "percent waiting for memory: swap-in, thrashing, reclaim, copies"),
    ("LCK", 4, 4, |r, w| share(r.lck, w), "percent waiting in futex(2) for a lock; needs --trace"),
    ("SLP", 4, 4, |r, w| share(Some(r.slp), w), "percent of the rest: asleep, waiting for block I/O"),
    ("LAT", 4, 4, |r, w| share(Some(r.lat), w), "percent runnable, waiting for a CPU"),
    ("VCX", 5, 4, |r, w| count(Some(r.vcx), w), "voluntary context switches"),
    ("ICX", 5, 4, |r, w| count(Some(r.icx), w), "involuntary context switches"),
    ("SCL", 5, 4, |r, w| count(r.scl, w), "system calls; needs --trace"),
    ("SIG", 3, 3, |r, w| count(r.sig, w), "signals delivered; needs --trace"),
];

const SUMMARY: [Column; 7] = [
    ("SIZE", 6, 6, |r, w| format!("{:>w$} ", size(r.virtual_size)), "virtual memory of the process"),
    ("RSS", 6, 6, |r, w| format!("{:>w$} ", size(r.rss)), "its pages in memory (resident set)"),
    ("SWAP", 6, 6, |r, w| format!("{:>w$} ", size(r.swap)), "its pages in swap"),
    (
        "S",
        1,
        1,
        |r, w| format!("{:<w$} ", r.state),
        "state: R runs, S sleeps, D waits for I/O, T stopped, Z zombie",
    ),
    ("MINF/s", 7, 7, |r, w| cell(Some(r.minor_faults), w, 0), "minor faults per second"),
    ("MAJF/s", 7, 7, |r, w| cell(Some(r.major_faults), w, 0), "major faults per second"),
    ("CPU", 5, 5, |r, w| cell(Some(r.cpu()), w, 1), "percent of one CPU"),
];

/// What stands left and right of the figures.
const NAMES: [Described; 7] = [
    ("PID", "the process"),
    ("USER", "the owner"),
    ("CGROUP", "in top: the cgroup that its memory is charged to"),
    ("PROCESS/NLWP", "the command and its number of threads"),
    ("PROCESS/TID", "the command and the thread's number"),
    ("NAME/NLWP", "PROCESS/NLWP in 80 columns"),
    ("NAME/TID", "PROCESS/TID in 80 columns"),
];

/// Every column with its meaning.
pub fn described() -> Vec<Described> {
    let figures = MICROSTATES.iter().chain(&SUMMARY).map(|(name, .., help)| (*name, *help));
    figures.chain(NAMES).collect()
}

/// The line above the microstates.
pub fn microstate_heading(by_thread: bool, width: Width) -> String {
    let last = match (width, by_thread) {
        (Width::Whole, _) => last(by_thread),
        (_, true) => "NAME/TID",
        (_, false) => "NAME/NLWP",
    };
    heading(&MICROSTATES, width) + last
}

/// The line above the summary.
pub fn summary_heading(by_thread: bool) -> String {
    heading(&SUMMARY, Width::Whole) + last(by_thread)
}

fn last(by_thread: bool) -> &'static str {
    if by_thread { "PROCESS/TID" } else { "PROCESS/NLWP" }
}

fn heading(columns: &[Column], width: Width) -> String {
    let names = fitted(columns, width).map(|((name, ..), width)| format!("{name:>width$} "));
    format!("    PID {:<8} {}", "USER", names.collect::<String>())
}

/// The columns that there is room for, with their widths.
fn fitted(columns: &[Column], width: Width) -> impl Iterator<Item = (&Column, usize)> {
    let of = move |column: &Column| if width == Width::Whole { column.1 } else { column.2 };
    columns.iter().map(move |column| (column, of(column))).filter(|(_, width)| *width > 0)
}

impl Row {
    /// The line under [`microstate_heading`]; `user` is the user's name.
    pub fn microstates(&self, user: &str, width: Width) -> String {
        self.line(&MICROSTATES, user, width)
    }

    /// The line under [`summary_heading`]: sizes with K, M or G; CPU in percent of one.
    pub fn summary(&self, user: &str, width: Width) -> String {
        self.line(&SUMMARY, user, width)
    }

    fn cpu(&self) -> f64 {
        (self.usr + self.sys) * if self.tid.is_some() { 1.0 } else { self.threads.max(1) as f64 }
    }

    fn line(&self, columns: &[Column], user: &str, width: Width) -> String {
        let cells = fitted(columns, width).map(|((_, _, _, of, _), width)| of(self, width));
        self.with_name(format!("{:>7} {user:<8.8} {}", self.pid, cells.collect::<String>()), width)
    }

    /// The line with the command's name behind it, cut where the line has an end: the thread's number or the
    /// threads' stays.
    fn with_name(&self, line: String, width: Width) -> String {
        let number = format!("/{}", self.tid.unwrap_or(self.threads));
        let taken = line.chars().count() + number.chars().count();
        line + &width.cut(&self.command, taken) + &number
    }
}

impl Ended {
    /// The line under the rows.
    pub fn line(&self) -> String {
        let mut text = format!("ended within the interval: {} tasks", self.tasks);
        if let Some(cpu) = self.cpu {
            text += &format!(", {:.2} s on a CPU", cpu / 1e9);
        }
        if let Some(dfl) = self.memory.filter(|dfl| *dfl > 0.0) {
            text += &format!(", {:.2} s waiting for memory", dfl / 1e9);
        }
        let names: Vec<String> = self.names.iter().map(|(name, tasks)| format!("{name} {tasks}")).collect();
        match (names.is_empty(), self.tasks > self.names.iter().map(|(_, tasks)| tasks).sum()) {
            (true, _) => text,
            (false, more) => text + " (" + &names.join(", ") + if more { ", …)" } else { ")" },
        }
    }
}

/// A share in percent: a decimal where there is room.
fn share(percent: Option<f64>, width: usize) -> String {
    let whole = percent.is_some_and(|p| p >= 99.95);
    cell(percent, width, usize::from(!whole))
}

/// A count, in thousands or millions where it is too long.
fn count(count: Option<f64>, width: usize) -> String {
    fitting(count, width, 1000.0, &["", "K", "M"])
}

/// Bytes in four characters and a letter; a dash where there is no figure.
pub fn size(bytes: Option<f64>) -> String {
    let Some(bytes) = bytes else { return "-".to_owned() };
    let mut value = bytes / 1024.0;
    for unit in ["K", "M", "G"] {
        if value < 1000.0 {
            return if value < 9.95 && unit != "K" {
                format!("{value:.1}{unit}")
            } else {
                format!("{value:.0}{unit}")
            };
        }
        value /= 1024.0;
    }
    format!("{value:.1}T")
}
