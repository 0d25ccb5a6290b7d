//! What a study of a published system says: claims, parameters, tables and plots.
//!
//! A claim lays one published figure beside the model's, with the distance between them and the
//! tolerance asked, and so gives its own verdict. A parameter says where its value comes from. Nothing
//! here prints: the command line and the report draw what they are given.

use serde::Serialize;

/// A figure, or the words of a source where it gives none.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A figure in the claim's unit.
    Number(f64),
    /// What is said in words.
    Words(String),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Value {
    fn from(words: &str) -> Self {
        Self::Words(words.to_owned())
    }
}

impl From<String> for Value {
    fn from(words: String) -> Self {
        Self::Words(words)
    }
}

/// How far a model's figure may be from the published one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// The larger of the two is at most this many times the smaller.
    Factor(f64),
    /// They differ by at most this share of the published figure (0.1 = 10 %).
    Share(f64),
    /// They differ by at most this much, in the claim's unit.
    Difference(f64),
    /// The model's figure is at most this; the published one is only shown.
    AtMost(f64),
    /// The published figure is a lower bound.
    AtLeastPublished,
    /// They are equal.
    Exact,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The model's figure is within the tolerance.
    Reproduced,
    /// It is outside, but by no more than the tolerance once again.
    Partly,
    /// It is further away, or cannot be compared.
    Not,
}

impl Verdict {
    /// The verdict in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partly => "partly",
            Self::Not => "not",
        }
    }
}

/// How far apart published and model are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// Model divided by published.
    Ratio(f64),
    /// Model minus published, in the claim's unit.
    Difference(f64),
}

/// The part of the published figures that a claim's figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// A parameter was fitted with this figure.
    Fitted,
    /// No parameter has seen this figure.
    HeldOut,
}

/// One published figure beside the model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The study it belongs to, `irlam-1990`.
    pub paper: &'static str,
    /// What the figure is of.
    pub what: String,
    /// Its unit; empty for a plain number.
    pub unit: &'static str,
    /// What was published, if it was.
    pub published: Option<Value>,
    /// What the model says.
    pub model: Value,
    /// How far apart they are; none where one of them is not a figure.
    pub distance: Option<Distance>,
    /// What was asked.
    pub tolerance: Tolerance,
    /// Whether it was reached.
    pub verdict: Verdict,
    /// Whether a parameter was fitted with this very figure.
    pub split: Split,
}

impl Claim {
    /// A claim about a figure; the verdict follows from the tolerance.
    pub fn figure(
        paper: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        published: f64,
        model: f64,
        tolerance: Tolerance,
        split: Split,
    ) -> Self {
        let distance = match tolerance {
            Tolerance::Factor(_) | Tolerance::Share(_) | Tolerance::AtLeastPublished if published != 0.0 => {
                Distance::Ratio(model / published)
            }
            _ => Distance::Difference(model - published),
        };
        Self {
            paper,
            what: what.into(),
            unit,
            published: Some(Value::Number(published)),
            model: Value::Number(model),
            distance: Some(distance),
            tolerance,
            verdict: judge(published, model, tolerance),
            split,
        }
    }

    /// A claim whose published side is words (or nothing); `verdict` is decided by the study.
    pub fn words(
        paper: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        published: Option<&str>,
        model: impl Into<Value>,
        verdict: Verdict,
        split: Split,
    ) -> Self {
        Self {
            paper,
            what: what.into(),
            unit,
            published: published.map(Value::from),
            model: model.into(),
            distance: None,
            tolerance: Tolerance::Exact,
            verdict,
            split,
        }
    }

    /// A claim that a figure of the model (an error, say) is no more than `limit`.
    pub fn at_most(
        paper: &'static str,
        what: impl Into<String>,
        unit: &'static str,
        limit: f64,
        model: f64,
        split: Split,
    ) -> Self {
        Self {
            paper,
            what: what.into(),
            unit,
            published: None,
            model: Value::Number(model),
            distance: None,
            tolerance: Tolerance::AtMost(limit),
            verdict: judge(limit, model, Tolerance::AtMost(limit)),
            split,
        }
    }
}

fn judge(published: f64, model: f64, tolerance: Tolerance) -> Verdict {
    // How much of the allowance is used: up to 1 reproduced, up to 2 partly.
    let used = match tolerance {
        Tolerance::Factor(factor) => {
            if published > 0.0 && model > 0.0 {
                (model / published).ln().abs() / factor.ln()
            } else if published == model {
                0.0
            } else {
                f64::INFINITY
            }
        }
        Tolerance::Share(share) => (model - published).abs() / (share * published.abs()),
        Tolerance::Difference(most) => (model - published).abs() / most,
        Tolerance::AtMost(limit) => model / limit,
        Tolerance::AtLeastPublished => published / model,
        Tolerance::Exact => {
            if published == model {
                0.0
            } else {
                f64::INFINITY
            }
        }
    };
    if used <= 1.0 + 1e-9 {
        Verdict::Reproduced
    } else if used <= 2.0 {
        Verdict::Partly
    } else {
        Verdict::Not
    }
}

/// Where the value of a parameter comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A source says so.
    Documented {
        /// Which.
        source: &'static str,
    },
    /// It follows by arithmetic from documented or published figures.
    Derived {
        /// From which, and how.
        from: &'static str,
    },
    /// It was chosen because it fits.
    Fitted {
        /// To which data.
        on: String,
    },
    /// Neither source nor data decide it; it is a plain assumption.
    Assumed {
        /// Why this value.
        why: &'static str,
    },
}

/// A parameter of a model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its value, in `unit`.
    pub value: f64,
    /// The unit; empty for a plain number.
    pub unit: &'static str,
    /// Where the value comes from.
    pub standing: Standing,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Its heading.
    pub name: String,
    /// The unit of its figures.
    pub unit: &'static str,
    /// Decimals worth showing.
    pub decimals: u8,
}

impl Column {
    /// A column of figures.
    pub fn new(name: impl Into<String>, unit: &'static str, decimals: u8) -> Self {
        Self { name: name.into(), unit, decimals }
    }
}

/// Named rows of figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// What the table shows.
    pub title: String,
    /// What the row labels are.
    pub rows_are: &'static str,
    /// The columns after the label.
    pub columns: Vec<Column>,
    /// Label and figures of each row; a dash where there is none.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Table {
    /// An empty table.
    pub fn new(title: impl Into<String>, rows_are: &'static str, columns: Vec<Column>) -> Self {
        Self { title: title.into(), rows_are, columns, rows: Vec::new() }
    }

    /// Adds a row; it has a figure, or none, for each column.
    pub fn row(&mut self, label: impl Into<String>, figures: impl IntoIterator<Item = Option<f64>>) {
        let figures: Vec<_> = figures.into_iter().collect();
        debug_assert_eq!(figures.len(), self.columns.len());
        self.rows.push((label.into(), figures));
    }
}

/// An axis of a plot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: &'static str,
    /// Whether it is logarithmic.
    pub log: bool,
}

/// A line or a set of marks in a plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Published figures are drawn as marks, the model's as a line.
    pub published: bool,
    /// The points (x, y), by rising x.
    pub points: Vec<(f64, f64)>,
}

/// A plot like the original's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

/// A published study held against its model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// `irlam-1990`.
    pub name: &'static str,
    /// What was studied.
    pub title: &'static str,
    /// The citation.
    pub source: &'static str,
    /// Published figures beside the model's.
    pub claims: Vec<Claim>,
    /// What the model was given.
    pub parameters: Vec<Parameter>,
    /// The same experiment on a kernel that runs, beside the two; dashes where it has not been run.
    pub here: Table,
    /// Figures in full.
    pub tables: Vec<Table>,
    /// Plots for the page.
    pub plots: Vec<Plot>,
    /// What does not come out and why, and what a reader must know; one sentence or two each.
    pub notes: Vec<String>,
}

/// The root of the mean square of the logarithms of the ratios: 0.12 is about 12 %.
pub fn log_rms(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (sum, count) =
        pairs.into_iter().fold((0.0, 0u32), |(sum, count), (a, b)| (sum + (a / b).ln().powi(2), count + 1));
    (sum / f64::from(count)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(published: f64, model: f64, tolerance: Tolerance) -> Verdict {
        Claim::figure("p", "w", "s", published, model, tolerance, Split::Fitted).verdict
    }

    #[test]
    fn a_claim_is_reproduced_within_partly_within_twice_and_else_not() {
        for (tolerance, good, partly, bad) in [
            (Tolerance::Factor(1.35), 134.0, 1.35 * 134.0, 183.0),
            (Tolerance::Share(0.1), 91.0, 119.0, 121.0),
            (Tolerance::Difference(5.0), 95.0, 109.0, 111.0),
        ] {
            assert_eq!(verdict(100.0, good, tolerance), Verdict::Reproduced);
            assert_eq!(verdict(100.0, partly, tolerance), Verdict::Partly);
            assert_eq!(verdict(100.0, bad, tolerance), Verdict::Not);
        }
        assert_eq!(verdict(3.0, 3.0, Tolerance::Exact), Verdict::Reproduced);
        assert_eq!(verdict(3.0, 3.1, Tolerance::Exact), Verdict::Not);
        assert_eq!(verdict(0.0, 0.0, Tolerance::Factor(1.1)), Verdict::Reproduced);
        assert_eq!(Claim::at_most("p", "w", "", 0.12, 0.13, Split::Fitted).verdict, Verdict::Partly);
    }

    #[test]
    fn a_figure_that_is_no_number_never_passes() {
        for tolerance in
            [Tolerance::Factor(1.35), Tolerance::Share(0.1), Tolerance::Difference(1.0), Tolerance::Exact]
        {
            assert_eq!(verdict(1.0, f64::NAN, tolerance), Verdict::Not);
        }
    }

    #[test]
    fn distances_are_ratios_or_differences() {
        let claim = Claim::figure("p", "w", "s", 4.0, 5.0, Tolerance::Factor(1.3), Split::Fitted);
        assert_eq!(claim.distance, Some(Distance::Ratio(1.25)));
        let claim = Claim::figure("p", "w", "s", 4.0, 5.0, Tolerance::Difference(2.0), Split::Fitted);
        assert_eq!(claim.distance, Some(Distance::Difference(1.0)));
    }

    #[test]
    fn log_rms_of_a_common_factor_is_its_logarithm() {
        let e = std::f64::consts::E;
        assert!((log_rms([(e, 1.0), (1.0, e), (2.0 * e, 2.0)]) - 1.0).abs() < 1e-12);
    }
}
