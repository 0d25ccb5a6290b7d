//! A study with other values of its parameters. It compares figures and verdicts with those under
//! the published conditions, for one set of values or along a range of one parameter.

use pagelab_analysis::figure::{Axis, Mark, MarkKind, Plot, Series};
use pagelab_model::parameter::{Declared, Form, Value};

use crate::claim::{Claim, Role, Verdict};
use crate::{Options, StudyError, StudyKind};

/// Default number of points of a sweep.
pub const POINTS: usize = 8;
/// Maximum number of points of a sweep.
pub const MAX_POINTS: usize = 100;
/// Ratio of the ends of a range from which its points are evenly spaced as logarithms.
const WIDE: f64 = 4.0;

/// A claim under the published conditions and under others.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The claim under the published conditions.
    pub usual: Claim,
    /// The claim under the other conditions.
    pub changed: Claim,
}

impl Changed {
    /// Whether the model's figure differs.
    pub fn differs(&self) -> bool {
        differ(self.usual.model, self.changed.model)
    }
}

/// Whether two figures differ; two NaNs do not.
fn differ(a: f64, b: f64) -> bool {
    a != b && !(a.is_nan() && b.is_nan())
}

/// Every claim of a study under the published conditions and under the values that the options set.
///
/// # Errors
/// As [`StudyKind::claims`].
pub fn changed(kind: &StudyKind, options: &Options) -> Result<Vec<Changed>, StudyError> {
    let changed = kind.claims(options)?;
    let usual = kind.claims(&Options { set: Vec::new(), ..options.clone() })?;
    Ok(usual.into_iter().zip(changed).map(|(usual, changed)| Changed { usual, changed }).collect())
}

/// Values of a parameter across a range, ascending. There are fewer than `points` if whole numbers
/// coincide.
pub fn points(declared: &Declared, from: f64, to: f64, points: usize) -> Vec<f64> {
    let (from, to) = (from.min(to), from.max(to));
    let last = points.max(2) - 1;
    let part = |n: usize| n as f64 / last as f64;
    let at = |n: usize| match n {
        0 => from,
        n if n == last => to,
        n if from > 0.0 && to / from >= WIDE => rounded(from * (to / from).powf(part(n))),
        n => rounded(from + (to - from) * part(n)),
    };
    let whole = matches!(declared.form, Form::Whole | Form::Size);
    let mut values: Vec<f64> =
        (0..=last).map(at).map(|value| if whole { value.round() } else { value }).collect();
    values.dedup();
    values
}

/// Rounded to three digits, as printed.
fn rounded(value: f64) -> f64 {
    if value == 0.0 {
        return value;
    }
    let scale = 10f64.powi(2 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// A study along a range of one parameter.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The parameter, with the value of the published conditions.
    pub parameter: Declared,
    /// The claims under the published conditions.
    pub usual: Vec<Claim>,
    /// The claims at each value of the parameter, ascending.
    pub points: Vec<(f64, Vec<Claim>)>,
}

/// Judges a study at each value of a parameter, in addition to the values that the options set.
/// `at` receives the completed share.
///
/// # Errors
/// As [`StudyKind::claims`].
pub fn sweep(
    kind: &StudyKind,
    options: &Options,
    parameter: Declared,
    values: &[f64],
    at: &dyn Fn(f64),
) -> Result<Sweep, StudyError> {
    let usual = kind.claims(options)?;
    let mut points = Vec::new();
    for (n, &value) in values.iter().enumerate() {
        at((n + 1) as f64 / (values.len() + 1) as f64);
        let mut options = options.clone();
        options.set.push((parameter.name.to_owned(), value));
        points.push((value, kind.claims(&options)?));
    }
    Ok(Sweep { parameter, usual, points })
}

/// Counted claims by verdict. Identities do not count, nor do claims that follow from others or
/// repeat one under the published conditions.
pub fn counted(usual: &[Claim], claims: &[Claim]) -> [usize; 3] {
    Verdict::ALL.map(|verdict| {
        let of =
            usual.iter().zip(claims).filter(|(usual, claim)| usual.counted() && claim.verdict == verdict);
        of.count()
    })
}

impl Sweep {
    /// The value under the published conditions.
    fn published(&self) -> Option<f64> {
        self.parameter.value.number()
    }

    /// The parameter's name with its unit.
    pub fn named(&self) -> String {
        match self.parameter.unit {
            "" => self.parameter.name.to_owned(),
            unit => format!("{} [{unit}]", self.parameter.name),
        }
    }

    /// Indices of the claims whose model figure differs at some value.
    pub fn moved(&self) -> Vec<usize> {
        let moves =
            |&n: &usize| self.points.iter().any(|(_, claims)| differ(claims[n].model, self.usual[n].model));
        (0..self.usual.len()).filter(moves).collect()
    }

    /// Indices of the claims whose verdict differs at some value.
    pub fn turned(&self) -> Vec<usize> {
        let turns = |&n: &usize| {
            self.usual[n].role != Role::Identity
                && self.points.iter().any(|(_, claims)| claims[n].verdict != self.usual[n].verdict)
        };
        (0..self.usual.len()).filter(turns).collect()
    }

    fn axis(&self) -> Axis {
        let ends = self.points.first().zip(self.points.last());
        let wide = ends.is_some_and(|((from, _), (to, _))| *from > 0.0 && to / from >= WIDE);
        let label = match self.parameter.unit {
            "" => self.parameter.help.to_owned(),
            unit => format!("{} ({unit})", self.parameter.help),
        };
        if wide { Axis::log(label, "") } else { Axis::linear(label, "") }
    }

    fn plot(&self, title: String, caption: &str, y: Axis, series: Vec<Series>) -> Plot {
        let published = self.published().map(|value| Mark {
            label: format!("published conditions: {}", self.parameter.shown(Value::Number(value))),
            kind: MarkKind::Place,
            ..Mark::at(value)
        });
        let colored = series.into_iter().enumerate().map(|(color, one)| Series { color, dots: true, ..one });
        let marks = published.into_iter().collect();
        Plot { series: colored.collect(), marks, ..Plot::new(title, caption, self.axis(), y.switchable()) }
    }

    /// A plot of the claims by verdict against the parameter, then plots of the model's figures.
    pub fn plots(&self) -> Vec<Plot> {
        let verdicts = Verdict::ALL.into_iter().enumerate().map(|(place, verdict)| {
            let count =
                |(value, claims): &(f64, Vec<Claim>)| (*value, counted(&self.usual, claims)[place] as f64);
            Series::line(verdict.name(), self.points.iter().map(count))
        });
        let title = format!("Claims by verdict against {}", self.parameter.name);
        let caption = "Counted claims: without identities and claims that follow from others or repeat one.";
        let first = self.plot(title, caption, Axis::linear("claims", ""), verdicts.collect());
        let mut plots = vec![Plot { wide: true, ..first }];
        let moved = self.moved();
        let name = |n: usize| self.usual[n].id.split('/').next().unwrap_or_default();
        let mut names: Vec<&str> = moved.iter().map(|&n| name(n)).collect();
        names.dedup();
        for of in names {
            let rows = moved.iter().copied().filter(|&n| name(n) == of);
            let line = |n: usize| {
                let finite = self.points.iter().map(|(value, claims)| (*value, claims[n].model));
                Series::line(self.usual[n].what.as_str(), finite.filter(|(_, figure)| figure.is_finite()))
            };
            let lines: Vec<Series> = rows.map(line).filter(|line| !line.x.is_empty()).collect();
            let one = moved[moved.iter().position(|&n| name(n) == of).expect("names are of these")];
            let unit = &self.usual[one].unit;
            let label = if unit.is_empty() { "model".to_owned() } else { format!("model ({unit})") };
            if !lines.is_empty() {
                let title = if lines.len() == 1 { self.usual[one].what.clone() } else { of.to_owned() };
                let caption = "The model's figure; the published conditions are marked.";
                plots.push(self.plot(title, caption, Axis::linear(label, ""), lines));
            }
        }
        plots
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_model::parameter::Standing;

    fn declared(form: Form) -> Declared {
        Declared {
            name: "p",
            unit: "",
            help: "a parameter",
            form,
            range: [0.0, 1e6],
            standing: Standing::assumed("so"),
            value: Value::Number(1.0),
        }
    }

    #[test]
    fn a_wide_range_is_divided_as_logarithms_and_a_narrow_one_evenly() {
        assert_eq!(points(&declared(Form::Whole), 64.0, 512.0, 4), [64.0, 128.0, 256.0, 512.0]);
        assert_eq!(points(&declared(Form::Number), 0.0, 1.0, 5), [0.0, 0.25, 0.5, 0.75, 1.0]);
        // The ends are exact, in either order.
        assert_eq!(points(&declared(Form::Number), 30.0, 10.0, 3), [10.0, 20.0, 30.0]);
    }

    #[test]
    fn whole_numbers_that_are_too_near_are_fewer() {
        assert_eq!(points(&declared(Form::Whole), 1.0, 3.0, 8), [1.0, 2.0, 3.0]);
        assert_eq!(points(&declared(Form::Whole), 5.0, 5.0, 8), [5.0]);
    }
}
