//! The published studies, each held against its model: `pagelab reproduce`.
//!
//! A study is one file here and one line in [`STUDIES`]. It reads the published figures (embedded from
//! `published/`), runs its model and returns a [`Study`]: claims with their distances and verdicts,
//! parameters with their standing, tables and plots. Runs of the same experiment on a kernel that runs are
//! handed in ([`here`]), and laid beside.

pub mod claim;
pub mod dillon_2011;
pub mod gorman_2002;
pub mod here;
pub mod irlam_1990;
pub mod mcdougall_2005;
pub mod mcdougall_2007;
pub mod morton_2002;
pub mod published;

use pagelab_experiment::Run;

pub use claim::{Claim, Study};
pub use here::Live;

/// What can be asked of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Every random choice of a model follows from this.
    pub seed: u64,
    /// The rows to fit parameters with, by number from 1, where a study fits any
    /// (`dillon-2011`); the others are held out and predicted. None: the study's own choice.
    pub fit: Option<Vec<usize>>,
    /// Runs on a kernel that runs, the oldest first: a study takes the newest of each of its experiments.
    pub here: Vec<Run>,
}

impl Default for Options {
    fn default() -> Self {
        Self { seed: 1, fit: None, here: Vec::new() }
    }
}

/// Why a study could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StudyError {
    /// The published figures cannot be read.
    #[error("published/{file}: {what}")]
    Published {
        /// The file.
        file: &'static str,
        /// What is wrong with it.
        what: String,
    },
    /// The rows to fit cannot be used.
    #[error("--fit: {0}")]
    Fit(String),
}

/// A study by its name.
#[derive(Clone, Copy, Debug)]
pub struct StudyKind {
    /// `irlam-1990`.
    pub name: &'static str,
    /// One line for `pagelab reproduce`.
    pub title: &'static str,
    /// Makes the study.
    pub make: fn(&Options) -> Result<Study, StudyError>,
    /// The same experiments for a kernel that runs; a few seconds in all.
    pub live: fn() -> Vec<Live>,
}

/// Every study, oldest first.
pub const STUDIES: &[StudyKind] = &[
    StudyKind {
        name: "irlam-1990",
        title: "Sun-4 pmegs: a SPARCstation 1 under vmtest, and what would have helped",
        make: irlam_1990::study,
        live: irlam_1990::here::live,
    },
    StudyKind {
        name: "morton-2002",
        title: "reverse maps: the cost of pte_chain at fork, exec and exit, against four others",
        make: morton_2002::study,
        live: morton_2002::live,
    },
    StudyKind {
        name: "gorman-2002",
        title: "page replacement: Linux 2.4.19 against rmap14a, VM Regress's four tests",
        make: gorman_2002::study,
        live: gorman_2002::live,
    },
    StudyKind {
        name: "mcdougall-2005",
        title: "the Solaris page cache: segmap, segkpm, and who pays when files fill memory",
        make: mcdougall_2005::study,
        live: mcdougall_2005::live,
    },
    StudyKind {
        name: "mcdougall-2007",
        title: "time in a guest whose virtual processors move between cores",
        make: mcdougall_2007::study,
        live: mcdougall_2007::live,
    },
    StudyKind {
        name: "dillon-2011",
        title: "VM locks: DragonFly builds on 48 processors before and after finer locking",
        make: dillon_2011::study,
        live: dillon_2011::live,
    },
];

/// The study of this name.
pub fn named(name: &str) -> Option<&'static StudyKind> {
    STUDIES.iter().find(|study| study.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (index, study) in STUDIES.iter().enumerate() {
            assert_eq!(named(study.name).map(|found| found.title), Some(study.title));
            assert!(STUDIES[..index].iter().all(|other| other.name != study.name));
        }
        assert!(named("nobody-1999").is_none());
    }
}
