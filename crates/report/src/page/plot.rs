//! A plot as data: what the page's script draws, and what the table behind it shows.

use maud::{Markup, PreEscaped, html};
use serde::{Serialize, Serializer};

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub struct Axis {
    /// What it measures, with the unit where the ticks do not carry one.
    pub label: String,
    /// How figures are written: `ns`, `bytes`, `share`, or empty for plain numbers.
    pub unit: &'static str,
    /// Logarithmic at first.
    pub log: bool,
    /// Whether the reader may switch between linear and logarithmic.
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
        if rounded == rounded.trunc() && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

/// A line.
#[derive(Clone, Debug, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The number of its colour.
    pub color: usize,
    /// 0 solid, 1 dotted and thin, 2 dashed, 3 dash-dotted.
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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
pub struct Layer {
    /// Its name in the legend.
    pub name: &'static str,
    /// The colour's class.
    pub style: &'static str,
    /// For each column a digit from 0 to 9, the share, for each row.
    pub columns: Vec<String>,
}

/// A vertical mark, such as a knee.
#[derive(Clone, Debug, Serialize)]
pub struct Mark {
    /// Where.
    pub x: f64,
    /// The interval's ends, if there is one.
    pub low: Option<f64>,
    /// See `low`.
    pub high: Option<f64>,
    /// What it is.
    pub label: String,
}

/// A plot.
#[derive(Clone, Debug, Serialize)]
pub struct Plot {
    /// The heading.
    #[serde(skip)]
    pub title: String,
    /// What the reader should know: what a point stands for, and what to see.
    #[serde(skip)]
    pub caption: String,
    /// For those who do not see it.
    pub label: String,
    /// Abscissa.
    pub x: Axis,
    /// Ordinate.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// The strips.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strips: Vec<Strip>,
    /// The picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
    /// The marks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

impl Plot {
    /// An empty plot.
    pub fn new(title: impl Into<String>, caption: impl Into<String>, x: Axis, y: Axis) -> Self {
        let title = title.into();
        let label = format!("{title}: {} against {}", y.label, x.label);
        Self {
            title,
            caption: caption.into(),
            label,
            x,
            y,
            series: Vec::new(),
            strips: Vec::new(),
            heat: None,
            marks: Vec::new(),
        }
    }

    /// The plot as a figure numbered `number` on its page.
    pub fn figure(&self, number: usize) -> Markup {
        html! {
            figure.plot id={"plot-" (number)} {
                h3 { (self.title) }
                figcaption { (self.y.label) " — " (self.caption) }
                div.legend {}
                div.canvas { noscript { p.soft { "Plots need scripts; the figures are in the tables and in the notebook." } } }
                div.readout {}
                details { summary { "Figures" } }
                script type="application/json" { (json(self)) }
            }
        }
    }
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
