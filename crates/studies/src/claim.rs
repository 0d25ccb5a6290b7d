//! A claim compares one published figure with the model's: their distance, the tolerance, and the
//! verdict. The claims are data ([`crate::book`]).

use pagelab_analysis::figure::Tone;
use pagelab_analysis::stats::median;
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

#[cfg(test)]
mod tests;
