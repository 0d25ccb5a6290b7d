//! A plot as data: what `svg` draws, what the table behind it shows, and what the page's script
//! reads out under the cursor.

use maud::{Markup, PreEscaped, html};
use pagelab_experiment::observation::Unit;
use serde::{Serialize, Serializer};

use super::scale::Scale;
use super::{figures, svg};

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What it measures, with the unit where the ticks do not carry one.
    pub label: String,
    /// How figures are written: `ns`, `bytes`, `bytes/s`, `share`, `instr`, or empty for plain numbers.
    pub unit: &'static str,
    /// Logarithmic at first.
    #[serde(skip)]
    pub log: bool,
    /// Whether the reader may switch between linear and logarithmic.
    #[serde(skip)]
    pub toggle: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: &'static str) -> Self {
        Self { label: label.into(), unit, log: false, toggle: false }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>, unit: &'static str) -> Self {
        Self { label: label.into(), unit, log: true, toggle: false }
    }

    /// The same with a switch.
    pub fn switchable(self) -> Self {
        Self { toggle: true, ..self }
    }
}

/// Numbers to four significant digits, which is more than a pixel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Numbers(pub Vec<Option<f64>>);

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|v| v.filter(|v| v.is_finite()).map(Short)))
    }
}

struct Short(f64);

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.0;
        if value == value.trunc() && value.abs() < 1e15 {
            return serializer.serialize_i64(value as i64);
        }
        let scale = 10f64.powi(3 - value.abs().log10().floor() as i32);
        let rounded = (value * scale).round() / scale;
        if !rounded.is_finite() {
            return serializer.serialize_f64(value);
        }
        if rounded == rounded.trunc() && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The number of its colour.
    pub color: usize,
    /// 0 solid, 1 dotted and thin, 2 dashed, 3 dash-dotted, 4 none: dots alone.
    pub dash: usize,
    /// Drawn in steps.
    pub step: bool,
    /// With a dot at each value.
    pub dots: bool,
    /// Ascending.
    pub x: Numbers,
    /// As long as `x`; nothing is drawn where there is no value.
    pub y: Numbers,
}

/// A strip below the plot: a digit from 0 to 9, the share, for each of equal parts of `x`.
#[derive(Clone, Debug)]
pub struct Strip {
    /// Its name.
    pub name: &'static str,
    /// The colour's class.
    pub style: &'static str,
    /// Both ends.
    pub x: [f64; 2],
    /// The digits.
    pub cells: String,
}

/// A picture of shares: columns over x, rows over pages.
#[derive(Clone, Debug)]
pub struct Heat {
    /// The columns' edges, one more than columns.
    pub x: Vec<f64>,
    /// Rows in a column.
    pub rows: usize,
    /// What the rows cover together.
    pub pages: u32,
    /// What is drawn over one another.
    pub layers: Vec<Layer>,
}

/// One colour of a [`Heat`].
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its name in the legend.
    pub name: &'static str,
    /// The colour's class.
    pub style: &'static str,
    /// For each column a digit from 0 to 9, the share, for each row.
    pub columns: Vec<String>,
    /// For each column the share of all pages.
    pub shares: Vec<f64>,
}

/// A vertical mark, such as a knee.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// The interval's ends, if there is one.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// What it is.
    pub label: String,
    /// The number of the line's colour that it belongs to, where there are several.
    pub color: Option<usize>,
}

/// A plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The heading.
    pub title: String,
    /// What the reader should know: what a point stands for, and what to see.
    pub caption: String,
    /// Abscissa.
    pub x: Axis,
    /// Ordinate.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// The strips.
    pub strips: Vec<Strip>,
    /// The picture.
    pub heat: Option<Heat>,
    /// The marks.
    pub marks: Vec<Mark>,
    /// As wide as the page, and taller: the picture of its experiment.
    pub wide: bool,
}

/// A curve as the script and the table know it.
pub(super) struct Curve {
    pub name: String,
    pub color: usize,
    pub x: Numbers,
    pub y: Numbers,
    /// How its figures are written, as [`Axis::unit`].
    pub unit: &'static str,
    /// Whether a figure holds until the next one, as a histogram's does.
    pub step: bool,
}

/// What the script needs: the scales, and the figures to read out.
#[derive(Serialize)]
struct Data<'a> {
    x: Scaled<'a>,
    y: Scaled<'a>,
    /// The abscissae; curves share them.
    xs: Vec<&'a Numbers>,
    curves: Vec<CurveData<'a>>,
}

#[derive(Serialize)]
struct Scaled<'a> {
    label: &'a str,
    unit: &'a str,
    /// The ends of each scale that is drawn, the first one first: (logarithmic, low, high).
    scales: Vec<(bool, f64, f64)>,
}

#[derive(Serialize)]
struct CurveData<'a> {
    name: &'a str,
    color: usize,
    unit: &'a str,
    step: bool,
    /// Whether its ordinate is the plot's, so that a dot can be set on it.
    on: bool,
    xs: usize,
    y: &'a Numbers,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: impl Into<String>, caption: impl Into<String>, x: Axis, y: Axis) -> Self {
        Self {
            title: title.into(),
            caption: caption.into(),
            x,
            y,
            series: Vec::new(),
            strips: Vec::new(),
            heat: None,
            marks: Vec::new(),
            wide: false,
        }
    }

    /// Whether every line of it is level, so that there is nothing to see.
    pub fn is_flat(&self) -> bool {
        let level = |series: &Series| {
            let mut values = series.y.0.iter().flatten();
            let first = values.next();
            values.all(|value| Some(value) == first)
        };
        self.heat.is_none() && self.series.iter().all(level)
    }

    /// The plot as a figure numbered `number` on its page.
    pub fn figure(&self, number: usize) -> Markup {
        let curves = self.curves();
        let initial = if self.y.log { "log" } else { "linear" };
        html! {
            figure.plot.wide[self.wide] id={"plot-" (number)} data-scale=(initial) {
                h3 { (self.title) }
                figcaption { (self.caption) }
                (svg::legend(self))
                div.canvas { (svg::draw(self, &summary(self, &curves))) }
                div.readout {}
                details { summary { "Figures" } (figures::table(&self.x, &curves)) }
                script type="application/json" { (json(&self.data(&curves))) }
            }
        }
    }

    /// Its lines; of a picture, the share of each layer in each column.
    fn curves(&self) -> Vec<Curve> {
        let line = |s: &Series| Curve {
            name: if s.name.is_empty() { self.y.label.clone() } else { s.name.clone() },
            color: s.color,
            x: s.x.clone(),
            y: s.y.clone(),
            unit: self.y.unit,
            step: s.step,
        };
        let mut curves: Vec<Curve> = self.series.iter().map(line).collect();
        let Some(heat) = &self.heat else { return curves };
        let x = Numbers(heat.x.iter().skip(1).map(|&x| Some(x)).collect());
        curves.extend(heat.layers.iter().map(|layer| Curve {
            name: format!("{} (share of all pages)", layer.name),
            color: 0,
            x: x.clone(),
            y: Numbers(layer.shares.iter().map(|&share| Some(share)).collect()),
            unit: "share",
            step: false,
        }));
        curves
    }

    /// The abscissa's scale.
    pub(super) fn scale_x(&self) -> Scale {
        let lines = self.series.iter().flat_map(|s| s.x.0.iter().flatten().copied());
        let strips = self.strips.iter().flat_map(|s| s.x);
        let heat = self.heat.iter().flat_map(|h| h.x.iter().copied());
        let marks = self.marks.iter().flat_map(|m| [Some(m.x), m.low, m.high]).flatten();
        let scale = Scale::over(lines.chain(strips).chain(heat).chain(marks), self.x.log);
        // What begins a little above 0, as a first window does, is drawn from 0.
        let near = !scale.log && scale.low > 0.0 && scale.low < scale.high / 20.0;
        Scale { low: if near { 0.0 } else { scale.low }, ..scale }
    }

    /// The ordinate's scale, and the other one where the reader may switch.
    pub(super) fn scales_y(&self) -> Vec<Scale> {
        if let Some(heat) = &self.heat {
            return vec![Scale { low: 0.0, high: f64::from(heat.pages.max(1)), log: false }];
        }
        let values = || self.series.iter().flat_map(|s| s.y.0.iter().flatten().copied());
        let logs = if self.y.toggle { vec![self.y.log, !self.y.log] } else { vec![self.y.log] };
        logs.into_iter().map(|log| Scale::over(values(), log).with_room()).collect()
    }

    fn data<'a>(&'a self, curves: &'a [Curve]) -> Data<'a> {
        let mut xs: Vec<&Numbers> = Vec::new();
        let ends = |s: &Scale| (s.log, s.low, s.high);
        let curves = curves
            .iter()
            .enumerate()
            .map(|(n, curve)| {
                let known = xs.iter().position(|x| **x == curve.x).unwrap_or_else(|| {
                    xs.push(&curve.x);
                    xs.len() - 1
                });
                let (color, unit, on) = (curve.color, curve.unit, n < self.series.len());
                CurveData { name: &curve.name, color, unit, step: curve.step, on, xs: known, y: &curve.y }
            })
            .collect();
        Data {
            x: Scaled { label: &self.x.label, unit: self.x.unit, scales: vec![ends(&self.scale_x())] },
            y: Scaled {
                label: &self.y.label,
                unit: self.y.unit,
                scales: self.scales_y().iter().map(ends).collect(),
            },
            xs,
            curves,
        }
    }
}

/// The plot in words: what is drawn against what, and from where to where each curve goes.
fn summary(plot: &Plot, curves: &[Curve]) -> String {
    let mut text = format!("{}: {} against {}.", plot.title, plot.y.label, plot.x.label);
    for curve in curves.iter().take(8) {
        let values = || curve.y.0.iter().flatten().copied().filter(|v| v.is_finite());
        let (low, high) =
            (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
        if low <= high {
            let figure = |v| figures::figure(Some(v), curve.unit);
            text.push_str(&format!(" {}: from {} to {}.", curve.name, figure(low), figure(high)));
        }
    }
    for mark in &plot.marks {
        text.push_str(&format!(" Mark: {}.", mark.label));
    }
    text + " Arrow keys move the cursor, plus and minus zoom, Escape resets."
}

/// JSON that can stand in a script element: nothing in it ends the element or a line of a script.
fn json<T: Serialize>(value: &T) -> Markup {
    let text = serde_json::to_string(value).expect("numbers and texts");
    let safe = text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029");
    PreEscaped(safe)
}

/// The label of an axis of references' times.
pub const TIME: &str = "time of a reference";
/// The same where instructions were counted.
pub const INSTRUCTIONS: &str = "instructions of a reference";

/// What [`Axis::unit`] calls a unit.
pub fn unit_name(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::Nanoseconds) => "ns",
        Some(Unit::Instructions) => "instr",
        Some(Unit::Bytes) => "bytes",
        Some(Unit::BytesPerSecond) => "bytes/s",
        Some(Unit::Share) => "share",
        _ => "",
    }
}

/// A share from 0 to 1 as a digit; what is not nothing is at least 1.
pub fn digit(share: f64) -> char {
    let nine = (share.clamp(0.0, 1.0) * 9.0).round() as u32;
    char::from_digit(if share > 0.0 { nine.max(1) } else { 0 }, 10).expect("0 to 9")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let numbers = Numbers(vec![
            Some(123_456.0),
            Some(1.234_567),
            Some(0.000_123_456),
            None,
            Some(f64::NAN),
            Some(-98_765.43),
        ]);
        assert_eq!(serde_json::to_string(&numbers).unwrap(), "[123456,1.235,0.0001235,null,null,-98770]");
    }

    #[test]
    fn nothing_ends_the_script() {
        let text = json(&"</script><!--\u{2028}&").into_string();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "</script><!--\u{2028}&");
    }

    #[test]
    fn a_little_is_not_nothing() {
        assert_eq!([0.0, 0.001, 0.5, 1.0, 7.0].map(digit), ['0', '1', '5', '9', '9']);
    }
}
