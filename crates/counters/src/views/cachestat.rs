//! The view of page-cache requests: hits, misses and read-ahead, in pages. BPF programs count them
//! in the kernel while the view runs; this module computes the ratio, sorts the owners and formats
//! the table.

use serde::Serialize;

use super::{Described, Width, fitting};

/// The kind of owner that requests are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The whole machine.
    Machine,
    /// The requesting process.
    Process,
    /// The memory cgroup of the requesting process.
    Cgroup,
    /// The requested file.
    File,
}

/// The machine, or a process, cgroup or file that requests are counted for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Owner {
    /// The process ID, or the inode number of the file or of the cgroup's directory; None for the
    /// machine.
    pub number: Option<u64>,
    /// The name; empty for the machine.
    pub name: String,
}

/// Page counts of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Requested, and in the cache from an earlier use.
    pub hits: u64,
    /// Requested, and absent: a task waited until they were read.
    pub misses: u64,
    /// Requested for the first time after read-ahead brought them in.
    pub ahead: u64,
    /// Read ahead and evicted without a request; None if the owner is unknown.
    pub wasted: Option<u64>,
    /// Clean pages that became dirty.
    pub dirtied: u64,
    /// Written back; None if the owner is unknown.
    pub written: Option<u64>,
}

impl Counts {
    /// Pages requested.
    pub fn requests(&self) -> u64 {
        self.hits + self.misses + self.ahead
    }

    /// Hits as a share of requests, from 0 to 1; None without a request.
    pub fn hit_ratio(&self) -> Option<f64> {
        let requests = self.requests();
        (requests > 0).then(|| self.hits as f64 / requests as f64)
    }
}

/// The requests of one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Counts by owner, unsorted.
    pub owners: Vec<(Owner, Counts)>,
    /// Pages not counted or not classified: a BPF map was full, or a request was too large.
    pub lost: u64,
}

/// The counts of one owner in one interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The owner.
    #[serde(flatten)]
    pub owner: Owner,
    /// Pages of the interval.
    #[serde(flatten)]
    pub counts: Counts,
    /// Hits as a share of requests, from 0 to 1; None without a request.
    pub hit_ratio: Option<f64>,
}

/// The `keep` owners with the most pages requested, dirtied and written. The machine always has one
/// row, even without requests.
pub fn rows(requests: Requests, by: By, keep: usize) -> Vec<Row> {
    let mut owners = requests.owners;
    if by == By::Machine && owners.is_empty() {
        owners.push((Owner::default(), Counts { wasted: Some(0), written: Some(0), ..Counts::default() }));
    }
    let weight = |counts: &Counts| counts.requests() + counts.dirtied + counts.written.unwrap_or(0);
    owners.sort_by(|a, b| weight(&b.1).cmp(&weight(&a.1)).then_with(|| a.0.name.cmp(&b.0.name)));
    owners.truncate(keep);
    owners.into_iter().map(|(owner, counts)| Row { owner, counts, hit_ratio: counts.hit_ratio() }).collect()
}

/// The page columns: name, value, description.
type Column = (&'static str, fn(&Counts) -> Option<u64>, &'static str);
const COLUMNS: [Column; 6] = [
    ("hits", |c| Some(c.hits), "requested pages that were in the cache from an earlier use"),
    ("misses", |c| Some(c.misses), "requested pages that were absent: the task waited"),
    ("ahead", |c| Some(c.ahead), "first requests of pages that read-ahead brought in"),
    ("waste", |c| c.wasted, "pages read ahead and evicted without a request"),
    ("dirtied", |c| Some(c.dirtied), "clean pages that became dirty"),
    ("written", |c| c.written, "pages written back, counted for the task that starts the writeback"),
];

/// Every column with its description.
pub fn described() -> Vec<Described> {
    let ratio = [("hit%", "hits as a share of hits, misses and ahead")];
    ratio.into_iter().chain(COLUMNS.iter().map(|(name, _, help)| (*name, *help))).collect()
}

/// The header of the table.
pub fn heading(by: By) -> String {
    let numbers: String = COLUMNS.iter().map(|(name, ..)| format!("{name:>8} ")).collect();
    let name = match by {
        By::Machine => "",
        By::Process => "    PID COMMAND",
        By::Cgroup => "CGROUP",
        By::File => "FILE",
    };
    format!("  hit% {numbers} {name}").trim_end().to_owned()
}

impl Row {
    /// The row's line under [`heading`], in pages per second.
    pub fn line(&self, by: By, seconds: f64, width: Width) -> String {
        let ratio = self.hit_ratio.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1}", 100.0 * ratio));
        let rate = |of: fn(&Counts) -> Option<u64>| of(&self.counts).map(|pages| pages as f64 / seconds);
        let numbers: String =
            COLUMNS.iter().map(|(_, of, _)| fitting(rate(*of), 8, 1000.0, &["", "K", "M", "G"])).collect();
        let number = match self.owner.number {
            Some(number) if by == By::Process => format!("{number:>7} "),
            _ => String::new(),
        };
        let line = format!("{ratio:>6} {numbers} {number}");
        let taken = line.chars().count();
        (line + &width.cut(&self.owner.name, taken)).trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(hits: u64, misses: u64, ahead: u64) -> Counts {
        Counts { hits, misses, ahead, wasted: Some(0), written: Some(0), ..Counts::default() }
    }

    #[test]
    fn pages_read_ahead_are_no_hits() {
        assert_eq!(counts(0, 1, 31).hit_ratio(), Some(0.0));
        assert_eq!(counts(32, 0, 0).hit_ratio(), Some(1.0));
        assert_eq!(counts(0, 0, 0).hit_ratio(), None, "no page was requested");
    }

    #[test]
    fn the_machine_has_a_row_and_unknown_is_a_dash() {
        let rows_of = |owners| rows(Requests { owners, lost: 0 }, By::Machine, 20);
        let idle = rows_of(Vec::new());
        assert_eq!(idle[0].line(By::Machine, 1.0, Width::Whole).split_whitespace().next(), Some("-"));
        let owner = |number, name: &str| Owner { number: Some(number), name: name.to_owned() };
        let unknown = Counts { wasted: None, ..counts(3, 1, 0) };
        let requests = Requests {
            owners: vec![(owner(7, "small"), unknown), (owner(8, "large"), counts(99, 0, 1))],
            lost: 0,
        };
        let rows = rows(requests, By::Process, 20);
        assert_eq!(rows[0].owner.name, "large");
        let line = rows[1].line(By::Process, 2.0, Width::Whole);
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words, ["75.0", "2", "0", "0", "-", "0", "0", "7", "small"]);
        assert_eq!(heading(By::Process).split_whitespace().count(), words.len());
    }
}
