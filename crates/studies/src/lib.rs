//! The published studies, each held against its model: `pagelab reproduce`.
//!
//! A study is one file here, one line in [`STUDIES`], its published figures in `published/` and its
//! claims in `published/claims/` ([`book`]). Its code runs the model and gives a figure for each
//! claim; the verdicts follow from the file. Parameters with their standing, tables and plots come
//! with it. Runs of the same experiment on a kernel that runs are handed in ([`here`]), and laid
//! beside.

pub mod book;
pub mod claim;
mod dillon_2011;
mod error;
mod gorman_2002;
pub mod here;
mod irlam_1990;
mod mcdougall_2005;
mod mcdougall_2007;
mod morton_2002;
mod options;
pub mod published;
pub mod ranges;
pub mod study;
pub mod what_if;

use book::Book;
pub use claim::Claim;
use claim::{Role, Verdict, scores};
pub use error::StudyError;
pub use here::Live;
use options::{Answers, Shown};
pub use options::{Change, Options};
use pagelab_experiment::declaration::listed;
use pagelab_model::parameter::{Declared, Value};
use pagelab_simulation::spread::each;
use published::Sheet;
pub use study::Study;
use study::{Parameter, Sensitivity};

/// A study by its name.
#[derive(Clone, Copy, Debug)]
pub struct StudyKind {
    /// `irlam-1990`.
    pub name: &'static str,
    /// One line for `pagelab reproduce`.
    pub title: &'static str,
    /// Its file of claims.
    claims: &'static str,
    /// Its published tables.
    sheets: &'static [Sheet],
    /// The parameters of its model, with their values under the options.
    parameters: fn(&Options) -> Result<Vec<Declared>, StudyError>,
    /// The model's figures for the claims, under the options' change.
    answers: fn(&Options) -> Result<Answers, StudyError>,
    /// The same, and what is shown besides.
    make: fn(&Options) -> Result<(Answers, Shown), StudyError>,
    /// The same experiments for a kernel that runs; a few seconds in all.
    pub live: fn() -> Vec<Live>,
}

impl StudyKind {
    /// The file of claims.
    ///
    /// # Errors
    /// When it is not as it must be.
    pub fn book(&self) -> Result<Book, StudyError> {
        Book::read(self.name, self.claims)
    }

    /// The claims with the model's figures under the options' change.
    ///
    /// # Errors
    /// When published figures or claims cannot be read, or the options ask for what there is not.
    pub fn claims(&self, options: &Options) -> Result<Vec<Claim>, StudyError> {
        self.claims_that(options, |_, _| true)
    }

    /// The same of those claims alone that are to be kept, by their name and their ablation.
    ///
    /// # Errors
    /// As [`Self::claims`].
    pub fn claims_that(
        &self,
        options: &Options,
        keep: impl Fn(&str, Option<&str>) -> bool,
    ) -> Result<Vec<Claim>, StudyError> {
        let book = self.checked(options)?;
        book.judge(self.name, self.sheets, (self.answers)(options)?, keep)
    }

    /// The parameters of its model on which a claim depends, with their values under the published
    /// conditions.
    ///
    /// # Errors
    /// If published figures cannot be read, or the rows to fit cannot be used.
    pub fn parameters(&self, options: &Options) -> Result<Vec<Declared>, StudyError> {
        (self.parameters)(&options.unchanged())
    }

    /// The parameter of this name among `list`.
    ///
    /// # Errors
    /// If no claim of the study depends on a parameter of this name.
    pub fn parameter<'a>(&self, list: &'a [Declared], name: &str) -> Result<&'a Declared, StudyError> {
        list.iter().find(|declared| declared.name == name).ok_or_else(|| {
            let names: Vec<&str> = list.iter().map(|declared| declared.name).collect();
            let among = listed(name, &names);
            StudyError::Parameter(format!(
                "no claim of {} depends on a parameter '{name}'; must be one of {among}",
                self.name
            ))
        })
    }

    /// The file of claims, which has the ablation asked for.
    fn checked(&self, options: &Options) -> Result<Book, StudyError> {
        let book = self.book()?;
        if !options.set.is_empty() {
            let list = self.parameters(options)?;
            for (name, value) in &options.set {
                let declared = self.parameter(&list, name)?;
                let value = declared.written(Value::Number(*value));
                declared.read(&value).map_err(|error| StudyError::Parameter(error.to_string()))?;
            }
        }
        if let Change::Without(name) = &options.change
            && !book.ablations.contains_key(name)
        {
            let known = book.ablations.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(StudyError::Ablation { study: self.name, name: name.clone(), known });
        }
        Ok(book)
    }

    /// The whole study.
    ///
    /// # Errors
    /// As [`Self::claims`].
    pub fn study(&self, options: &Options) -> Result<Study, StudyError> {
        let book = self.checked(options)?;
        let (answers, shown) = (self.make)(options)?;
        let claims = book.judge(self.name, self.sheets, answers, |_, _| true)?;
        let mut bars = shown.bars;
        for row in bars.iter_mut().flat_map(|bars| &mut bars.rows) {
            let claim = claims.iter().find(|claim| Some(&claim.id) == row.claim.as_ref());
            // An identity has no verdict that counts.
            let claim = claim.filter(|claim| claim.role != Role::Identity);
            row.verdict = claim.map(|claim| (claim.verdict.name().to_owned(), claim.verdict.tone()));
        }
        let sensitivity = match options.change {
            Change::None if options.set.is_empty() => {
                self.sensitivity(options, &claims, &shown.parameters)?
            }
            _ => Vec::new(),
        };
        let excluded = book.excluded.iter().map(|one| format!("Not judged: {}: {}.", one.what, one.why));
        Ok(Study {
            name: self.name,
            title: self.title,
            source: book.source,
            scores: scores(&claims),
            sensitivity,
            claims,
            ablations: book.ablations,
            assumptions: book.assumptions,
            ranges: Vec::new(),
            parameters: shown.parameters,
            here: shown.here,
            tables: shown.tables,
            bars,
            plots: shown.plots,
            opening: shown.opening,
            notes: shown.notes.into_iter().chain(excluded).collect(),
        })
    }

    /// What the reproduced predictions owe to each fitted constant.
    fn sensitivity(
        &self,
        options: &Options,
        claims: &[Claim],
        parameters: &[Parameter],
    ) -> Result<Vec<Sensitivity>, StudyError> {
        let reproduced: Vec<&str> = claims
            .iter()
            .filter(|c| c.role == Role::HeldOut && c.counted() && c.verdict == Verdict::Reproduced)
            .map(|claim| claim.id.as_str())
            .collect();
        let constants: Vec<&'static str> = parameters.iter().filter_map(|p| p.constant).collect();
        let jobs: Vec<(&'static str, f64)> =
            constants.iter().flat_map(|&constant| SCALES.map(|scale| (constant, scale))).collect();
        let asked = |id: &str| reproduced.iter().any(|claim| claim.split('/').next() == Some(id));
        let kept = each(jobs.len(), |n| {
            let (constant, scale) = jobs[n];
            let options = Options { change: Change::Scaled(constant, scale), ..options.clone() };
            let found = self.claims_that(&options, |id, _| asked(id))?;
            let kept = found.into_iter().filter(|claim| claim.verdict == Verdict::Reproduced);
            Ok(kept.map(|claim| claim.id).collect())
        });
        let kept: Vec<Vec<String>> = kept.into_iter().collect::<Result<_, StudyError>>()?;
        let survives = |n: usize, id: &&&str| {
            kept[n * SCALES.len()..][..SCALES.len()].iter().all(|kept| kept.iter().any(|k| k == **id))
        };
        let sensitivity = |(n, &constant): (usize, &&'static str)| Sensitivity {
            constant,
            claims: reproduced.len(),
            survive: reproduced.iter().filter(|id| survives(n, id)).count(),
        };
        Ok(constants.iter().enumerate().map(sensitivity).collect())
    }
}

/// How many times a fitted constant is tried for the sensitivity.
const SCALES: [f64; 2] = [0.9, 1.1];

/// Every study, oldest first.
pub const STUDIES: &[StudyKind] = &[
    StudyKind {
        name: "irlam-1990",
        title: "Sun-4 pmegs: a SPARCstation 1 under vmtest, and what would have helped",
        claims: include_str!("../published/claims/irlam-1990.toml"),
        sheets: &[irlam_1990::PUBLISHED, irlam_1990::MACHINES],
        parameters: irlam_1990::parameters,
        answers: irlam_1990::answers,
        make: irlam_1990::study,
        live: irlam_1990::here::live,
    },
    StudyKind {
        name: "morton-2002",
        title: "reverse maps: the cost of pte_chain at fork, exec and exit, against four others",
        claims: include_str!("../published/claims/morton-2002.toml"),
        sheets: &[morton_2002::CALLS, morton_2002::RUN, morton_2002::PROFILE, morton_2002::INSTRUCTIONS],
        parameters: morton_2002::parameters,
        answers: morton_2002::answers,
        make: morton_2002::study,
        live: morton_2002::live,
    },
    StudyKind {
        name: "gorman-2002",
        title: "page replacement: Linux 2.4.19 against rmap14a, VM Regress's four tests",
        claims: include_str!("../published/claims/gorman-2002.toml"),
        sheets: &[],
        parameters: gorman_2002::parameters,
        answers: gorman_2002::answers,
        make: gorman_2002::study,
        live: gorman_2002::live,
    },
    StudyKind {
        name: "mcdougall-2005",
        title: "the Solaris page cache: segmap, segkpm, and the cost of files that fill memory",
        claims: include_str!("../published/claims/mcdougall-2005.toml"),
        sheets: &[
            mcdougall_2005::PUBLISHED,
            mcdougall_2005::IOSTAT,
            mcdougall_2005::PRSTAT,
            mcdougall_2005::VMSTAT,
        ],
        parameters: mcdougall_2005::parameters,
        answers: mcdougall_2005::answers,
        make: mcdougall_2005::study,
        live: mcdougall_2005::live,
    },
    StudyKind {
        name: "mcdougall-2007",
        title: "time in a guest on cores whose counters are slow and not in step",
        claims: include_str!("../published/claims/mcdougall-2007.toml"),
        sheets: &[mcdougall_2007::PUBLISHED],
        parameters: mcdougall_2007::parameters,
        answers: mcdougall_2007::answers,
        make: mcdougall_2007::study,
        live: mcdougall_2007::live,
    },
    StudyKind {
        name: "dillon-2011",
        title: "VM locks: DragonFly builds on 48 processors before and after finer locking",
        claims: include_str!("../published/claims/dillon-2011.toml"),
        sheets: &[dillon_2011::PUBLISHED],
        parameters: dillon_2011::parameters,
        answers: dillon_2011::answers,
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
