//! The claims of a study as data: `published/claims/STUDY.toml`.
//!
//! Each claim says what was published and where, what the figure was to the model (its role), how
//! close the model must come and why, and the ablation: the change of the model under which the
//! claim must fail. A claim about a published table stands for one claim a row, or for one about
//! the median of rows that repeat a measurement. The study's code gives the model's figure by the
//! claim's name; it knows nothing of verdicts.

use std::collections::BTreeMap;

use pagelab_analysis::stats::median;
use serde::Deserialize;

use crate::claim::{Claim, Distance, Role, Tolerance, Verdict, find_repeats};
use crate::error::StudyError;
use crate::published::Sheet;
use crate::study::Assumption;

/// A study's file of claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Book {
    /// The citation.
    pub source: String,
    /// Changes of the model, by name, and what each takes away.
    pub ablations: BTreeMap<String, String>,
    /// Assumed values on which a verdict depends.
    #[serde(default, rename = "assumption")]
    pub assumptions: Vec<Assumption>,
    /// Why claims are not reproduced, as far as is suspected or known: by the claim, `real/4`, or
    /// for all rows of it that are not, `real`.
    #[serde(default)]
    pub suspected: BTreeMap<String, String>,
    /// Constants, and the claims whose figures they were computed from or fitted with.
    #[serde(default, rename = "fit")]
    fits: Vec<Fit>,
    /// What was published and no claim judges.
    #[serde(default)]
    pub excluded: Vec<Excluded>,
    #[serde(rename = "claim")]
    entries: Vec<Entry>,
}

/// A published statement, or the figures of a table, that no claim judges.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Excluded {
    /// What was published.
    pub what: String,
    /// Why the model cannot be held against it.
    pub why: String,
    /// The file of `published/` and its column (`*` means all), where the figures stand in a table.
    #[serde(default)]
    pub table: Option<(String, String)>,
    /// Which rows, by number from 1; none means all.
    #[serde(default)]
    pub rows: Vec<usize>,
}

/// Columns that say what was measured, and the counts that a printed share is of.
#[cfg(test)]
const CONDITIONS: [&str; 6] = ["virtual_mb", "jobs", "copies", "second", "samples", "total_samples"];

/// Constants that share figures: each takes the freedom of one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fit {
    /// By name, or `name/row`.
    claims: Vec<String>,
    /// In words; a choice between rules is one, too.
    constants: Vec<String>,
}

/// A claim, or one for each row of a published table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    id: String,
    /// With `{column}` for what a row has there, `{row}` for its number from 1.
    what: String,
    #[serde(default)]
    unit: String,
    published: Option<f64>,
    /// The file of `published/` and its column, where the figures stand in a table.
    table: Option<(String, String)>,
    /// Which rows, by number from 1.
    #[serde(default)]
    rows: Vec<usize>,
    /// Whether the rows repeat one measurement: one claim about their median, under the number of
    /// the first.
    #[serde(default)]
    median: bool,
    words: Option<String>,
    printed: String,
    role: Role,
    tolerance: Tolerance,
    why: String,
    ablation: Option<String>,
    /// The claims that its model figure is computed from.
    #[serde(default)]
    follows: Vec<String>,
}

/// Whether a claim of this name is meant: `real` means all rows of it, `real/4` one.
fn means(named: &str, id: &str) -> bool {
    named == id || id.split_once('/').is_some_and(|(name, _)| name == named)
}

/// What the model says to a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFigure {
    /// The figure.
    pub figure: f64,
    /// What it comes from, in words.
    pub detail: Option<String>,
    /// What the published figure was to the model, if not what the file says.
    pub role: Option<Role>,
}

impl From<f64> for ModelFigure {
    fn from(figure: f64) -> Self {
        Self { figure, detail: None, role: None }
    }
}

impl ModelFigure {
    /// A figure, and what it comes from.
    pub fn of(figure: f64, detail: impl Into<String>) -> Self {
        Self { figure, detail: Some(detail.into()), role: None }
    }
}

/// Where a claim stands: its name, and the number of its row from 1 if it is about one of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At<'a> {
    /// The claim's name.
    pub id: &'a str,
    /// The row; 0 where there is none.
    pub row: usize,
}

impl Book {
    /// Reads a study's file of claims.
    ///
    /// # Errors
    /// When it is not as it must be.
    pub fn read(study: &'static str, text: &str) -> Result<Self, StudyError> {
        let wrong = |what: String| StudyError::Claims { study, what };
        let book: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        for entry in &book.entries {
            match &entry.ablation {
                Some(name) if book.ablations.contains_key(name) => {}
                Some(name) => return Err(wrong(format!("claim {}: no ablation {name}", entry.id))),
                None if entry.role == Role::Identity => {}
                None => return Err(wrong(format!("claim {}: names no ablation that fails it", entry.id))),
            }
        }
        let known = |named: &String| {
            let name = named.split('/').next().unwrap_or(named);
            book.entries.iter().any(|entry| entry.id == name)
        };
        let named = book.fits.iter().flat_map(|fit| &fit.claims);
        if let Some(name) = named.chain(book.entries.iter().flat_map(|e| &e.follows)).find(|n| !known(n)) {
            return Err(wrong(format!("no claim {name}")));
        }
        Ok(book)
    }

    /// Every claim to keep, by its name and its ablation, with what the model says to it.
    ///
    /// # Errors
    /// When a table or a row is missing, or the model has no figure for a claim.
    pub fn judge(
        &self,
        study: &'static str,
        sheets: &[Sheet],
        model: impl Fn(At) -> Option<ModelFigure>,
        keep: impl Fn(&str, Option<&str>) -> bool,
    ) -> Result<Vec<Claim>, StudyError> {
        let mut claims = Vec::new();
        for entry in self.entries.iter().filter(|entry| keep(&entry.id, entry.ablation.as_deref())) {
            let wrong =
                |what: String| StudyError::Claims { study, what: format!("claim {}: {what}", entry.id) };
            let mut add = |row: usize, what: String, published: Option<f64>| {
                let said = model(At { id: &entry.id, row });
                let said = said.ok_or_else(|| wrong(format!("the model has no figure for row {row}")))?;
                claims.push(entry.claim(study, row, what, published, said));
                Ok(())
            };
            let Some((file, column)) = &entry.table else {
                add(0, entry.what.clone(), entry.published)?;
                continue;
            };
            let sheet = sheets.iter().find(|sheet| sheet.file == file);
            let rows = sheet.ok_or_else(|| wrong(format!("no file {file}")))?.records()?;
            let mut figures = Vec::new();
            for &row in &entry.rows {
                let fields = row.checked_sub(1).and_then(|index| rows.get(index));
                let fields = fields.ok_or_else(|| wrong(format!("{file} has no row {row}")))?;
                let figure = fields.get(column).and_then(|text| text.parse().ok());
                let figure: f64 =
                    figure.ok_or_else(|| wrong(format!("{file}, row {row}: no figure in {column}")))?;
                let what = fields
                    .iter()
                    .fold(entry.what.replace("{row}", &row.to_string()), |what, (name, text)| {
                        what.replace(&format!("{{{name}}}"), text)
                    });
                if entry.median {
                    figures.push(figure);
                } else {
                    add(row, what, Some(figure))?;
                }
            }
            if entry.median {
                let first = *entry.rows.first().ok_or_else(|| wrong("it has no rows".into()))?;
                add(first, entry.what.clone(), median(&figures))?;
            }
        }
        self.free(&mut claims);
        for claim in claims.iter_mut().filter(|claim| claim.verdict != Verdict::Reproduced) {
            let all = claim.id.split('/').next().unwrap_or(&claim.id);
            claim.suspected = self.suspected.get(&claim.id).or_else(|| self.suspected.get(all)).cloned();
        }
        Ok(claims)
    }

    /// The figures of the published tables that are neither claimed nor excluded, or both.
    #[cfg(test)]
    fn misjudged(&self, sheets: &[Sheet]) -> Vec<String> {
        let claimed = |sheet: &Sheet, column: &str, row: usize| {
            let of =
                |entry: &&Entry| entry.table.as_ref().is_some_and(|(f, c)| f == sheet.file && c == column);
            self.entries.iter().filter(of).any(|entry| entry.rows.contains(&row))
        };
        let excluded = |sheet: &Sheet, column: &str, row: usize| {
            let of = |(file, name): &(String, String)| file == sheet.file && (name == column || name == "*");
            let of = |one: &&Excluded| one.table.as_ref().is_some_and(of);
            self.excluded.iter().filter(of).any(|one| one.rows.is_empty() || one.rows.contains(&row))
        };
        let mut found = Vec::new();
        for sheet in sheets {
            for (fields, row) in sheet.records().unwrap().iter().zip(1..) {
                for (column, text) in fields {
                    let figure = text.parse::<f64>().is_ok() && !CONDITIONS.contains(&column.as_str());
                    if figure && claimed(sheet, column, row) == excluded(sheet, column, row) {
                        found.push(format!("{}, row {row}, {column}", sheet.file));
                    }
                }
            }
        }
        found
    }

    /// Finds repeats, and what freedom each claim has.
    fn free(&self, claims: &mut [Claim]) {
        find_repeats(claims);
        for claim in claims.iter_mut() {
            claim.freedom = f64::from(u8::from(claim.counted()));
        }
        for fit in &self.fits {
            let of = |claim: &Claim| {
                claim.role != Role::HeldOut
                    && claim.counted()
                    && fit.claims.iter().any(|named| means(named, &claim.id))
            };
            let figures = claims.iter().filter(|claim| of(claim)).count() as f64;
            let freedom = (1.0 - fit.constants.len() as f64 / figures).max(0.0);
            claims.iter_mut().filter(|claim| of(claim)).for_each(|claim| claim.freedom = freedom);
        }
    }
}

impl Entry {
    fn claim(
        &self,
        study: &str,
        row: usize,
        what: String,
        published: Option<f64>,
        said: ModelFigure,
    ) -> Claim {
        let model = said.figure;
        let distance = published.map(|published| match self.tolerance {
            Tolerance::Difference(_) | Tolerance::Exact => Distance::Difference(model - published),
            _ if published == 0.0 => Distance::Difference(model - published),
            _ => Distance::Ratio(model / published),
        });
        let mut claim = Claim {
            paper: study.to_owned(),
            id: if row == 0 { self.id.clone() } else { format!("{}/{row}", self.id) },
            what,
            unit: self.unit.clone(),
            published,
            words: self.words.clone(),
            printed: self.printed.clone(),
            model,
            detail: said.detail,
            distance,
            tolerance: self.tolerance,
            why: self.why.clone(),
            verdict: Verdict::Not,
            role: said.role.unwrap_or(self.role),
            suspected: None,
            ablation: self.ablation.clone(),
            marginal: false,
            follows: self.follows.clone(),
            repeats: None,
            freedom: 0.0,
        };
        claim.judge();
        claim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        source = "someone"
        [ablations]
        off = "nothing happens"
        [[claim]]
        id = "rows"
        what = "{name} of row {row}"
        unit = "s"
        table = ["t.csv", "time"]
        rows = [2]
        printed = "table 1"
        role = "held_out"
        tolerance = { share = 0.1 }
        why = "a tenth"
        ablation = "off"
    "#;
    const SHEET: Sheet = Sheet { file: "t.csv", text: "# rows\nname,time\na,1\nb,2\n" };

    #[test]
    fn a_table_gives_a_claim_for_each_row_asked_for() {
        let book = Book::read("t", TEXT).unwrap();
        let claims = book
            .judge("t", &[SHEET], |at| (at.row == 2).then(|| ModelFigure::from(2.1)), |_, _| true)
            .unwrap();
        assert_eq!((claims[0].what.as_str(), claims[0].published), ("b of row 2", Some(2.0)));
        assert_eq!((claims[0].verdict, claims[0].id.as_str()), (Verdict::Reproduced, "rows/2"));
        assert_eq!(claims[0].distance, Some(Distance::Ratio(1.05)));
    }

    #[test]
    fn repeated_rows_are_one_claim_about_their_median() {
        let text =
            TEXT.replace("rows = [2]", "rows = [2, 3, 4]\nmedian = true").replace("of row {row}", "rows");
        let sheet = Sheet { file: "t.csv", text: "name,time\na,1\nb,2\nc,9\nd,3\n" };
        let book = Book::read("t", &text).unwrap();
        let claims = book.judge("t", &[sheet], |at| Some((at.row as f64).into()), |_, _| true).unwrap();
        let found: Vec<_> = claims.iter().map(|c| (c.id.as_str(), c.published, c.model)).collect();
        assert_eq!(found, [("rows/2", Some(3.0), 2.0)]);
    }

    #[test]
    fn constants_take_the_freedom_of_the_figures_that_they_were_fitted_with() {
        let fit = "[[fit]]\nclaims = [\"rows\"]\nconstants = [\"one\"]\n[[claim]]";
        let text = TEXT.replace("[[claim]]", fit).replace("rows = [2]", "rows = [1, 2]");
        let freedom = |text: &str| -> Vec<f64> {
            let book = Book::read("t", text).unwrap();
            let claims = book.judge("t", &[SHEET], |at| Some((at.row as f64).into()), |_, _| true).unwrap();
            claims.iter().map(|claim| claim.freedom).collect()
        };
        // What is held out has its own.
        assert_eq!(freedom(&text), [1.0, 1.0]);
        assert_eq!(freedom(&text.replace("held_out", "fitted")), [0.5, 0.5]);
        assert_eq!(freedom(&text.replace("held_out", "fitted").replace("[1, 2]", "[1]")), [0.0]);
        let follows = text.replace("ablation = \"off\"", "ablation = \"off\"\nfollows = [\"rows\"]");
        assert_eq!(freedom(&follows), [0.0, 0.0]);
        let wrong = Book::read("t", &follows.replace("follows = [\"rows\"]", "follows = [\"raws\"]"));
        assert!(wrong.unwrap_err().to_string().contains("no claim raws"));
    }

    #[test]
    fn failed_claims_have_a_reason_per_row_or_for_all() {
        let text = TEXT.replace("[[claim]]", "[suspected]\nrows = \"all\"\n\"rows/2\" = \"this\"\n[[claim]]");
        let why = |text: &str, figure: f64| {
            let book = Book::read("t", text).unwrap();
            let claims = book.judge("t", &[SHEET], |_| Some(figure.into()), |_, _| true).unwrap();
            claims[0].suspected.clone()
        };
        assert_eq!(why(&text, 9.0).as_deref(), Some("this"));
        assert_eq!(why(&text.replace("rows/2", "rows/1"), 9.0).as_deref(), Some("all"));
        assert_eq!(why(&text, 2.0), None);
    }

    #[test]
    fn every_published_figure_is_claimed_or_excluded_with_a_reason() {
        for kind in crate::STUDIES {
            let book = kind.book().unwrap();
            let misjudged = book.misjudged(kind.sheets);
            assert!(misjudged.is_empty(), "{}: {misjudged:#?}", kind.name);
            for one in &book.excluded {
                let told = [&one.what, &one.why].iter().all(|text| !text.is_empty() && !text.ends_with('.'));
                assert!(told, "{}: {one:?}", kind.name);
            }
        }
    }

    #[test]
    fn a_figure_is_neither_claimed_twice_nor_forgotten() {
        let excluded = |rows: &str| {
            let one = "[[excluded]]\nwhat = \"w\"\nwhy = \"y\"\ntable = [\"t.csv\", \"time\"]";
            let text = TEXT.replace("[[claim]]", &format!("{one}\nrows = {rows}\n[[claim]]"));
            Book::read("t", &text).unwrap().misjudged(&[SHEET])
        };
        assert_eq!(excluded("[1]"), [""; 0]);
        assert_eq!(excluded("[2]"), ["t.csv, row 1, time", "t.csv, row 2, time"]);
        assert_eq!(excluded("[]"), ["t.csv, row 2, time"]);
    }

    #[test]
    fn a_claim_that_nothing_fails_or_nobody_answers_is_refused() {
        let error = |text: &str| Book::read("t", text).unwrap_err().to_string();
        assert!(error(&TEXT.replace("ablation = \"off\"", "")).contains("names no ablation"));
        assert!(error(&TEXT.replace("= \"off\"", "= \"on\"")).contains("no ablation on"));
        assert!(error(&TEXT.replace("why", "because")).contains("because"));
        let book = Book::read("t", TEXT).unwrap();
        assert!(book.judge("t", &[SHEET], |_| None, |_, _| true).is_err());
        assert!(book.judge("t", &[], |_| Some(1.0.into()), |_, _| true).is_err());
    }
}
