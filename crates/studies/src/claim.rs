//! What a study of a published system says: claims, parameters, tables and plots.
//!
//! A claim lays one published figure beside the model's, with the distance between them and the
//! tolerance asked, and so gives its own verdict. What is claimed is data ([`crate::book`]); a parameter
//! says where its value comes from. Nothing here prints: the command line and the report draw what they
//! are given.

use std::collections::BTreeMap;

use pagelab_analysis::figure::{Axis, Bars, Plot, Series, Table, Tone};
use pagelab_analysis::stats::median;
use pagelab_model::parameter::Declared;
pub use pagelab_model::parameter::Standing;
use serde::{Deserialize, Serialize};

/// How far a model's figure may be from the published one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// The larger of the two is at most this many times the smaller.
    Factor(f64),
    /// They differ by at most this share of the published figure (0.1 = 10%).
    Share(f64),
    /// They differ by at most this much, in the claim's unit.
    Difference(f64),
    /// The model's figure lies from the one to the other.
    Range(f64, f64),
    /// The model's figure is at most this.
    AtMost(f64),
    /// The model's figure is at least this.
    AtLeast(f64),
    /// They are equal.
    Exact,
}

impl Tolerance {
    /// How much of the tolerance a model's figure uses: up to 1 it is reproduced, up to 2 partly.
    pub fn used(self, published: f64, model: f64) -> f64 {
        match self {
            _ if !model.is_finite() => f64::INFINITY,
            Self::Factor(factor) if published > 0.0 && model > 0.0 => {
                (model / published).ln().abs() / factor.ln()
            }
            Self::Factor(_) | Self::Exact => {
                if published == model {
                    0.0
                } else {
                    f64::INFINITY
                }
            }
            Self::Share(share) => (model - published).abs() / (share * published.abs()),
            Self::Difference(most) => (model - published).abs() / most,
            // A wide range forgives no figure far below it.
            Self::Range(from, _) if model < from / 2.0 => f64::INFINITY,
            Self::Range(from, to) => (model - (from + to) / 2.0).abs() / ((to - from) / 2.0),
            Self::AtMost(limit) if limit > 0.0 => model.max(0.0) / limit,
            Self::AtMost(limit) if model <= limit => 0.0,
            Self::AtLeast(limit) if limit > 0.0 => limit / model.max(0.0),
            Self::AtLeast(limit) if model >= limit => 0.0,
            Self::AtMost(_) | Self::AtLeast(_) => f64::INFINITY,
        }
    }

    /// How far apart two model figures may be and still be one prediction: a hundredth of the
    /// tolerance.
    fn resolution(self, published: f64) -> f64 {
        const PART: f64 = 0.01;
        match self {
            Self::Factor(factor) => PART * (factor - 1.0) * published.abs(),
            Self::Share(share) => PART * share * published.abs(),
            Self::Difference(most) => PART * most,
            Self::Range(from, to) => PART * (to - from) / 2.0,
            Self::AtMost(limit) | Self::AtLeast(limit) => PART * limit.abs(),
            Self::Exact => 0.0,
        }
    }
}

/// A reproduced claim that uses more of its tolerance is marginal.
const MARGINAL: f64 = 0.9;

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
    /// Every verdict.
    pub const ALL: [Self; 3] = [Self::Reproduced, Self::Partly, Self::Not];

    /// The verdict on a figure that uses so much of its tolerance.
    fn of(used: f64) -> Self {
        if used <= 1.0 + 1e-9 {
            Self::Reproduced
        } else if used <= 2.0 {
            Self::Partly
        } else {
            Self::Not
        }
    }

    /// The verdict in a word.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// The verdict in a word, and what it means.
    pub fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Reproduced => ("reproduced", "the simulator's figure is within the claim's tolerance"),
            Self::Partly => ("partly", "it is outside, by at most the tolerance once again"),
            Self::Not => ("not reproduced", "it is further away, or cannot be compared"),
        }
    }

    /// What the word is coloured by.
    pub fn tone(self) -> Tone {
        match self {
            Self::Reproduced => Tone::Good,
            Self::Partly => Tone::Fair,
            Self::Not => Tone::Bad,
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

/// What the published figure was to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// No parameter has seen this figure.
    HeldOut,
    /// A parameter was computed from this figure or its like.
    Derived,
    /// A parameter was fitted with this figure.
    Fitted,
    /// The figure follows without a model: arithmetic, a unit, our own rule on the source's rows,
    /// as many constants as figures. Never counted as reproduced.
    Identity,
}

/// Every role, the strongest first.
pub const ROLES: [Role; 4] = [Role::HeldOut, Role::Derived, Role::Fitted, Role::Identity];

impl Role {
    /// The role in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::HeldOut => "held out",
            Self::Derived => "derived",
            Self::Fitted => "fitted",
            Self::Identity => "identity",
        }
    }
}

/// One published figure beside the model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Claim {
    /// The study it belongs to, `irlam-1990`.
    pub paper: String,
    /// What it is called in the study's file of claims, with the row if it is one of several.
    pub id: String,
    /// What the figure is of.
    pub what: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// The published figure, if there is one.
    pub published: Option<f64>,
    /// The source's words, where it gives words.
    pub words: Option<String>,
    /// Where they are printed.
    pub printed: String,
    /// The model's figure.
    pub model: f64,
    /// What it comes from, in words.
    pub detail: Option<String>,
    /// How far apart they are; none without a published figure.
    pub distance: Option<Distance>,
    /// What was asked.
    pub tolerance: Tolerance,
    /// Why no more and no less.
    pub why: String,
    /// Whether it was reached.
    pub verdict: Verdict,
    /// What the published figure was to the model.
    pub role: Role,
    /// Why it is not reproduced, as far as is suspected or known; none of what is.
    pub suspected: Option<String>,
    /// The change of the model under which a reproduced claim must fail; none for an identity.
    pub ablation: Option<String>,
    /// Whether it is reproduced with less than a tenth of its tolerance to spare.
    pub marginal: bool,
    /// The claims whose model figures its own is computed from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub follows: Vec<String>,
    /// Of a held-out claim, another one with the same model figure: both are one prediction.
    pub repeats: Option<String>,
    /// Its part of the figures that its constants did not use up: 1 of a prediction, 2/5 of each of
    /// five figures that three constants were fitted with, 0 of what is not counted.
    pub freedom: f64,
}

impl Claim {
    /// Whether it is counted: it neither follows without a model, nor from other claims, nor
    /// repeats one.
    pub fn counted(&self) -> bool {
        self.role != Role::Identity && self.follows.is_empty() && self.repeats.is_none()
    }

    /// How far the model is from the published figure, as a share of it.
    pub fn apart(&self) -> Option<f64> {
        let published = self.published.filter(|published| *published != 0.0)?;
        Some((self.model / published - 1.0).abs()).filter(|share| share.is_finite())
    }

    /// Its verdict, and whether it is marginal.
    pub(crate) fn judge(&mut self) {
        let used = self.tolerance.used(self.published.unwrap_or(f64::NAN), self.model);
        self.verdict = Verdict::of(used);
        self.marginal = self.verdict == Verdict::Reproduced && used > MARGINAL;
    }

    /// Whether the other's model figure is the same as this one's.
    fn is_one_with(&self, other: &Self) -> bool {
        let near = self.tolerance.resolution(self.published.unwrap_or(self.model));
        self.unit == other.unit && (self.model - other.model).abs() <= near
    }
}

/// Finds the held-out claims whose model figure another claim has, too. What stands first counts,
/// unless the other is fitted, derived or given: then the figure was never free.
pub(crate) fn find_repeats(claims: &mut [Claim]) {
    for n in 0..claims.len() {
        let claim = &claims[n];
        if claim.role != Role::HeldOut || !claim.follows.is_empty() {
            continue;
        }
        let earlier = |(m, other): &(usize, &Claim)| {
            *m != n && other.follows.is_empty() && (*m < n || other.role != Role::HeldOut)
        };
        let same = claims.iter().enumerate().filter(earlier).find(|(_, other)| claim.is_one_with(other));
        claims[n].repeats = same.map(|(_, other)| other.id.clone());
    }
}

/// How many claims of one role came to which verdict. Of held-out claims a model figure counts
/// once.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The role.
    pub role: Role,
    /// Claims of it that are counted; all of the identities.
    pub claims: usize,
    /// Reproduced ones.
    pub reproduced: usize,
    /// Of them, those with less than a tenth of their tolerance to spare.
    pub marginal: usize,
    /// Partly reproduced ones.
    pub partly: usize,
    /// Claims that are not counted, because they follow from others or repeat them.
    pub dependent: usize,
    /// Figures less the constants computed from them or fitted with them.
    pub freedom: f64,
    /// The median distance from the published figures, as a share of them.
    pub distance: Option<f64>,
}

/// The score of each role that has claims, the strongest role first.
pub fn scores<'a>(claims: impl IntoIterator<Item = &'a Claim> + Clone) -> Vec<Score> {
    let score = |role| {
        let of: Vec<&Claim> = claims.clone().into_iter().filter(|claim| claim.role == role).collect();
        let counted: Vec<&Claim> =
            of.iter().copied().filter(|claim| claim.counted() || role == Role::Identity).collect();
        let verdict = |verdict| counted.iter().filter(|claim| claim.verdict == verdict).count();
        let distances: Vec<f64> = counted.iter().filter_map(|claim| claim.apart()).collect();
        let score = Score {
            role,
            claims: counted.len(),
            reproduced: verdict(Verdict::Reproduced),
            marginal: counted.iter().filter(|claim| claim.marginal).count(),
            partly: verdict(Verdict::Partly),
            dependent: of.len() - counted.len(),
            freedom: counted.iter().map(|claim| claim.freedom).sum(),
            distance: median(&distances),
        };
        (!of.is_empty()).then_some(score)
    };
    ROLES.into_iter().filter_map(score).collect()
}

/// How many of a study's reproduced predictions stay so when a fitted constant is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sensitivity {
    /// The constant's name to the study's model.
    pub constant: &'static str,
    /// Reproduced held-out claims.
    pub claims: usize,
    /// Of them, those that are reproduced with 10% less of the constant and with 10% more.
    pub survive: usize,
}

/// Fixed inputs of a model: name, value, unit, source of the value.
macro_rules! facts {
    ($($name:literal, $value:expr, $unit:literal, $standing:ident($why:expr);)*) => {
        [$($crate::claim::Parameter {
            name: $name,
            value: $value,
            unit: $unit,
            standing: $crate::claim::Standing::$standing($why),
            constant: None,
            set: None,
        }),*]
    };
}
pub(crate) use facts;

/// The columns of a table: unit and decimals, and the names of those that have them.
macro_rules! columns {
    ($($unit:literal $decimals:literal $($name:literal)+;)+) => {
        vec![$($(pagelab_analysis::figure::Column::new($name, $unit, $decimals)),+),+]
    };
}
pub(crate) use columns;

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
    /// The name of a fitted constant in the study's model.
    pub constant: Option<&'static str>,
    /// The name for `--set`, if the parameter can be set.
    pub set: Option<&'static str>,
}

impl Parameter {
    /// The rows of declared parameters with their values. Buffers have no row.
    pub(crate) fn of(declared: &[Declared]) -> Vec<Self> {
        let parameter = |one: &Declared| {
            Some(Self {
                name: one.help,
                value: one.value.number()?,
                unit: one.unit,
                standing: one.standing,
                constant: matches!(one.standing, Standing::Fitted { .. }).then_some(one.name),
                set: Some(one.name),
            })
        };
        declared.iter().filter_map(parameter).collect()
    }
}

/// An assumed value, and the range of it over which the verdict that it decides stays.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assumption {
    /// Its name to the study's model.
    pub id: String,
    /// What it is.
    pub what: String,
    /// The value taken.
    pub value: f64,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// The claim whose verdict it decides, if it decides any.
    pub decides: Option<Decides>,
}

/// The verdict that an assumed value decides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decides {
    /// The claim.
    pub claim: String,
    /// From where to where the verdict is the same.
    pub holds: (f64, f64),
    /// Values outside at which it is another.
    pub otherwise: Vec<f64>,
}

/// An assumed value, and the range of it over which every verdict of the study stays.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Range {
    /// The assumption's name to the study's model.
    pub id: String,
    /// What it is.
    pub what: String,
    /// The value taken.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// The lower end.
    pub from: End,
    /// The upper end.
    pub to: End,
    /// Values tried between the ends.
    pub tried: usize,
    /// What turns at some of them, ascending.
    pub inside: Vec<Turn>,
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct End {
    /// The last value with every verdict as it is.
    pub at: f64,
    /// What turns beyond it; none where nothing does as far as was looked.
    pub turns: Option<Turn>,
}

/// A verdict that turns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// The value at which it was seen to.
    pub at: f64,
    /// The first claim whose verdict is another.
    pub claim: String,
    /// Its verdict there.
    pub verdict: Verdict,
    /// How many other claims turn with it.
    pub others: usize,
}

/// Captions of plots.
const BOTH: &str = "Dots alone: published. Lines: the model, and this machine where it was measured.";
const MODEL: &str = "The model; no figures were published for it.";

/// A plot like the original's: published figures as dots, each in the colour of the line of the same name.
pub(crate) fn study_plot(title: impl Into<String>, x: Axis, y: Axis, series: Vec<Series>) -> Plot {
    let caption = if series.iter().any(|one| one.published) { BOTH } else { MODEL };
    let lines: Vec<&str> = series.iter().filter(|s| !s.published).map(|s| s.name.as_str()).collect();
    let color = |(n, one): (usize, &Series)| {
        let own = one.name.trim_start_matches("published").trim_start_matches(", ");
        let own = if own.is_empty() { "model" } else { own };
        lines.iter().position(|&line| line == own).unwrap_or(lines.len() + n)
    };
    let colors: Vec<usize> = series.iter().enumerate().map(color).collect();
    let series = series.into_iter().zip(colors).map(|(one, color)| Series { color, ..one }).collect();
    Plot { series, ..Plot::new(title, caption, x, y.switchable()) }
}

/// A published study held against its model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// `irlam-1990`.
    pub name: &'static str,
    /// What was studied.
    pub title: &'static str,
    /// The citation.
    pub source: String,
    /// Published figures beside the model's.
    pub claims: Vec<Claim>,
    /// How many of each role were reproduced.
    pub scores: Vec<Score>,
    /// What the predictions owe to each fitted constant, of the model as it is.
    pub sensitivity: Vec<Sensitivity>,
    /// The changes of the model under which claims must fail, and what each takes away.
    pub ablations: BTreeMap<String, String>,
    /// Assumed values on which a verdict depends.
    pub assumptions: Vec<Assumption>,
    /// Over which range of each every verdict stays, where that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Range>,
    /// What the model was given.
    pub parameters: Vec<Parameter>,
    /// The same experiment on a kernel that runs, beside the two; dashes where it has not been run.
    pub here: Table,
    /// Figures in full.
    pub tables: Vec<Table>,
    /// Published figures beside the model's as bars.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<Bars>,
    /// Plots for the page.
    pub plots: Vec<Plot>,
    /// How many of the plots the page opens with.
    #[serde(skip)]
    pub opening: usize,
    /// What does not come out and why, and what a reader must know; one sentence or two each.
    pub notes: Vec<String>,
}

/// The root of the mean square of the logarithms of the ratios: 0.12 is about 12%.
pub fn log_rms(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (sum, count) =
        pairs.into_iter().fold((0.0, 0u32), |(sum, count), (a, b)| (sum + (a / b).ln().powi(2), count + 1));
    (sum / f64::from(count)).sqrt()
}

#[cfg(test)]
mod tests;
