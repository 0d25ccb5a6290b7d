//! A study of a published system: its claims, parameters, tables and plots.

use std::collections::BTreeMap;

use pagelab_analysis::figure::{Axis, Bars, Plot, Series, Table};
use pagelab_model::parameter::Declared;
pub use pagelab_model::parameter::Standing;
use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Score, Verdict};

/// A published study, compared with its model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// `irlam-1990`.
    pub name: &'static str,
    /// What was studied.
    pub title: &'static str,
    /// The citation.
    pub source: String,
    /// Published figures, each with the model's.
    pub claims: Vec<Claim>,
    /// How many of each role were reproduced.
    pub scores: Vec<Score>,
    /// How predictions depend on each fitted constant of the unchanged model.
    pub sensitivity: Vec<Sensitivity>,
    /// The changes of the model under which claims must fail, and what each takes away.
    pub ablations: BTreeMap<String, String>,
    /// Assumed values on which a verdict depends.
    pub assumptions: Vec<Assumption>,
    /// The range of each assumed value that keeps all verdicts, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<Range>,
    /// The model's inputs.
    pub parameters: Vec<Parameter>,
    /// Published and modelled figures, and those of a running kernel; dashes if it has none.
    pub here: Table,
    /// Figures in full.
    pub tables: Vec<Table>,
    /// Bars of published and modelled figures.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bars: Vec<Bars>,
    /// Plots for the page.
    pub plots: Vec<Plot>,
    /// The number of plots at the top of the page.
    #[serde(skip)]
    pub opening: usize,
    /// Differences and their reasons, and caveats; one or two sentences each.
    pub notes: Vec<String>,
}

/// How many reproduced predictions hold if a fitted constant changes.
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
        [$($crate::study::Parameter {
            name: $name,
            value: $value,
            unit: $unit,
            standing: $crate::study::Standing::$standing($why),
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
    /// The range in which the verdict is the same.
    pub holds: (f64, f64),
    /// Values outside the range, with another verdict.
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
    /// The verdicts that change at some of them, ascending.
    pub inside: Vec<Turn>,
}

/// An end of a range.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct End {
    /// The last value with every verdict as it is.
    pub at: f64,
    /// The verdict that changes beyond it; `None` if none does in the range searched.
    pub turns: Option<Turn>,
}

/// A change of a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Turn {
    /// The value at which it changed.
    pub at: f64,
    /// The first claim whose verdict is another.
    pub claim: String,
    /// Its verdict there.
    pub verdict: Verdict,
    /// The number of other claims that change with it.
    pub others: usize,
}

/// Captions of plots.
const BOTH: &str = "Dots alone: published. Lines: the model, and this machine where it was measured.";
const MODEL: &str = "The model; no figures were published for it.";

/// A plot like the original's. Published figures are dots, in the colour of the line of that name.
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

/// The root of the mean square of the logarithms of the ratios: 0.12 is about 12%.
pub fn log_rms(pairs: impl IntoIterator<Item = (f64, f64)>) -> f64 {
    let (sum, count) =
        pairs.into_iter().fold((0.0, 0u32), |(sum, count), (a, b)| (sum + (a / b).ln().powi(2), count + 1));
    (sum / f64::from(count)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_rms_of_a_common_factor_is_its_logarithm() {
        let e = std::f64::consts::E;
        assert!((log_rms([(e, 1.0), (1.0, e), (2.0 * e, 2.0)]) - 1.0).abs() < 1e-12);
    }
}
