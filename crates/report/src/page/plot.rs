//! A plot on the page: what `svg` draws, the table behind it, and what the page's script reads out under the
//! cursor.

use maud::{Markup, PreEscaped, html};
use pagelab_analysis::figure::{Plot, Series};
use pagelab_experiment::observation::Unit;
use serde::{Serialize, Serializer};

use super::figures::{self, Curve, Numbers};
use super::scale::{Scale, scale_x, scales_y};
use super::svg;

/// Figures as the script has them: to four significant digits, which is more than a pixel.
struct Rounded<'a>(&'a [Option<f64>]);

impl Serialize for Rounded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|v| v.filter(|v| v.is_finite()).map(Short)))
    }
}

struct Short(f64);

impl Serialize for Short {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let scale = 10f64.powi(3 - self.0.abs().log10().floor().max(-330.0) as i32);
        let rounded = (self.0 * scale).round() / scale;
        let whole = self.0 == self.0.trunc();
        match if whole || !rounded.is_finite() { self.0 } else { rounded } {
            value if value == value.trunc() && value.abs() < 1e15 => serializer.serialize_i64(value as i64),
            value => serializer.serialize_f64(value),
        }
    }
}

/// What the script needs: the scales, and the figures to read out.
#[derive(Serialize)]
struct Data<'a> {
    x: Scaled<'a>,
    y: Scaled<'a>,
    /// The abscissae; curves share them.
    xs: Vec<Rounded<'a>>,
    curves: Vec<CurveData<'a>>,
}

#[derive(Serialize)]
struct Scaled<'a> {
    label: &'a str,
    unit: &'a str,
    /// Bytes of a page, where pages are counted too.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<u64>,
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
    y: Rounded<'a>,
}

/// The plot as figure `number` of its page; `with_table` adds a table of its values.
pub(super) fn figure(plot: &Plot, number: usize, with_table: bool) -> Markup {
    let curves = curves(plot);
    let initial = if plot.y.log { "log" } else { "linear" };
    html! {
        figure.plot.wide[plot.wide] id={"plot-" (number)} data-scale=(initial) {
            h3 { (plot.title) }
            figcaption { (plot.caption) }
            (svg::legend(plot))
            div.canvas { (svg::draw(plot, &summary(plot, &curves))) }
            div.readout {}
            @if with_table { details { summary { "Figures" } (figures::table(&plot.x, &curves)) } }
            script type="application/json" { (json(&data(plot, &curves))) }
        }
    }
}

/// Its lines; of a picture, the share of each layer in each column.
fn curves(plot: &Plot) -> Vec<Curve> {
    let line = |s: &Series| Curve {
        name: if s.name.is_empty() { plot.y.label.clone() } else { s.name.clone() },
        color: s.color,
        x: s.x.clone(),
        y: s.y.clone(),
        unit: plot.y.unit,
        step: s.step,
    };
    let mut curves: Vec<Curve> = plot.series.iter().map(line).collect();
    let Some(heat) = &plot.heat else { return curves };
    let x = heat.x.iter().skip(1).map(|&x| Some(x)).collect::<Numbers>();
    curves.extend(heat.layers.iter().map(|layer| Curve {
        name: format!("{} (share of all pages)", layer.name),
        color: 0,
        x: x.clone(),
        y: layer.shares.iter().map(|&share| Some(share)).collect(),
        unit: "share",
        step: false,
    }));
    curves
}

fn data<'a>(plot: &'a Plot, curves: &'a [Curve]) -> Data<'a> {
    let mut xs: Vec<Rounded> = Vec::new();
    let ends = |s: &Scale| (s.log, s.low, s.high);
    let curves = curves
        .iter()
        .enumerate()
        .map(|(n, curve)| {
            let known = xs.iter().position(|x| x.0 == curve.x).unwrap_or_else(|| {
                xs.push(Rounded(&curve.x));
                xs.len() - 1
            });
            let (color, unit, on) = (curve.color, curve.unit, n < plot.series.len());
            CurveData {
                name: &curve.name,
                color,
                unit,
                step: curve.step,
                on,
                xs: known,
                y: Rounded(&curve.y),
            }
        })
        .collect();
    Data {
        x: Scaled {
            label: &plot.x.label,
            unit: plot.x.unit,
            page: plot.x.page,
            scales: vec![ends(&scale_x(plot))],
        },
        y: Scaled {
            label: &plot.y.label,
            unit: plot.y.unit,
            page: None,
            scales: scales_y(plot).iter().map(ends).collect(),
        },
        xs,
        curves,
    }
}

/// The plot in words: what is drawn against what, and from where to where each curve goes.
fn summary(plot: &Plot, curves: &[Curve]) -> String {
    let mut text = format!("{}: {} against {}.", plot.title, plot.y.label, plot.x.label);
    for curve in curves.iter().take(8) {
        let values = || curve.y.iter().flatten().copied().filter(|v| v.is_finite());
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
pub(crate) fn json<T: Serialize>(value: &T) -> Markup {
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

/// What [`Axis::unit`](pagelab_analysis::figure::Axis::unit) calls a unit.
pub fn unit_name(unit: Option<Unit>) -> &'static str {
    match unit {
        Some(Unit::Nanoseconds) => "ns",
        Some(Unit::Instructions) => "instr",
        Some(Unit::Bytes) => "bytes",
        Some(Unit::BytesPerSecond) => "bytes/s",
        Some(Unit::PerMillionInstructions) => "/Minstr",
        Some(Unit::BytesPerMillionInstructions) => "bytes/Minstr",
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
        let numbers =
            [Some(123_456.0), Some(1.234_567), Some(0.000_123_456), None, Some(f64::NAN), Some(-98_765.43)];
        assert_eq!(
            serde_json::to_string(&Rounded(&numbers)).unwrap(),
            "[123456,1.235,0.0001235,null,null,-98770]"
        );
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
