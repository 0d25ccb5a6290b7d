//! The rows of `prstat` as lines, wide and for 80 columns.

use super::{Ended, Row};
use crate::views::{Width, cell, fitting};

/// A figure of the microstates.
enum Figure {
    Share(Option<f64>),
    Count(Option<f64>),
}

/// Name, width, width in 80 columns (0: left out) and figure of a column.
type Column = (&'static str, usize, usize, fn(&Row) -> Figure);

const COLUMNS: [Column; 12] = [
    ("USR", 5, 4, |row| Figure::Share(Some(row.usr))),
    ("SYS", 4, 4, |row| Figure::Share(Some(row.sys))),
    ("TRP", 3, 0, |_| Figure::Share(None)),
    ("TFL", 4, 4, |row| Figure::Share(row.tfl)),
    ("DFL", 4, 4, |row| Figure::Share(row.dfl)),
    ("LCK", 4, 4, |row| Figure::Share(row.lck)),
    ("SLP", 4, 4, |row| Figure::Share(Some(row.slp))),
    ("LAT", 4, 4, |row| Figure::Share(Some(row.lat))),
    ("VCX", 5, 4, |row| Figure::Count(Some(row.vcx))),
    ("ICX", 5, 4, |row| Figure::Count(Some(row.icx))),
    ("SCL", 5, 4, |row| Figure::Count(row.scl)),
    ("SIG", 3, 3, |row| Figure::Count(row.sig)),
];

/// The columns that lines of this width have.
fn columns(lines: Width) -> impl Iterator<Item = (&'static str, usize, fn(&Row) -> Figure)> {
    let width = move |whole, narrow| if lines == Width::Whole { whole } else { narrow };
    let fit = move |(name, whole, narrow, of): Column| (name, width(whole, narrow), of);
    COLUMNS.into_iter().map(fit).filter(|(_, width, _)| *width > 0)
}

/// The line above the microstates.
pub fn microstate_heading(by_thread: bool, width: Width) -> String {
    let last = match (width, by_thread) {
        (Width::Whole, _) => last(by_thread),
        (_, true) => "NAME/TID",
        (_, false) => "NAME/NLWP",
    };
    let names: String = columns(width).map(|(name, width, _)| format!("{name:>width$} ")).collect();
    format!("    PID USER     {names}{last}")
}

/// The line above the summary.
pub fn summary_heading(by_thread: bool) -> String {
    format!("    PID USER       SIZE    RSS   SWAP S  MINF/s  MAJF/s   CPU {}", last(by_thread))
}

fn last(by_thread: bool) -> &'static str {
    if by_thread { "PROCESS/TID" } else { "PROCESS/NLWP" }
}

impl Row {
    /// The line under [`microstate_heading`]; `user` is the user's name.
    pub fn microstates(&self, user: &str, width: Width) -> String {
        let cells = columns(width).map(|(_, width, of)| match of(self) {
            Figure::Share(percent) => share(percent, width),
            Figure::Count(figure) => count(figure, width),
        });
        let line = format!("{:>7} {user:<8.8} {}", self.pid, cells.collect::<String>());
        self.with_name(line, width)
    }

    /// The line under [`summary_heading`]: sizes with K, M or G; CPU in percent of one.
    pub fn summary(&self, user: &str, width: Width) -> String {
        let cpu = (self.usr + self.sys) * if self.tid.is_some() { 1.0 } else { self.threads.max(1) as f64 };
        let line = [
            format!("{:>7} {user:<8.8} ", self.pid),
            format!("{:>6} {:>6} {:>6} ", size(self.virtual_size), size(self.rss), size(self.swap)),
            format!("{:<1} ", self.state),
            cell(Some(self.minor_faults), 7, 0),
            cell(Some(self.major_faults), 7, 0),
            cell(Some(cpu), 5, 1),
        ]
        .concat();
        self.with_name(line, width)
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
