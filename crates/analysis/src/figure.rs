//! The one vocabulary of figures: plots, their axes and series, and tables of figures, for experiments, studies
//! and miss ratio curves alike. Plain data; `report` draws it.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// An axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Axis {
    /// What it measures, with the unit where the ticks do not carry one.
    pub label: String,
    /// How figures are written: `ns`, `bytes`, `bytes/s`, `share`, `instr`, `/Minstr`, `bytes/Minstr`, or empty for plain
    /// numbers.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub unit: &'static str,
    /// Logarithmic at first.
    pub log: bool,
    /// Whether the reader may switch between linear and logarithmic.
    #[serde(skip)]
    pub toggle: bool,
    /// Bytes of a page, of an axis in bytes that also counts pages.
    #[serde(skip)]
    pub page: Option<u64>,
    /// Whether a linear ordinate begins at its smallest figure where 0 is far away, to show small differences.
    #[serde(skip)]
    pub close: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: impl Into<String>, unit: &'static str) -> Self {
        Self { label: label.into(), unit, log: false, toggle: false, page: None, close: false }
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>, unit: &'static str) -> Self {
        Self { log: true, ..Self::linear(label, unit) }
    }

    /// The same with a switch.
    pub fn switchable(self) -> Self {
        Self { toggle: true, ..self }
    }
}

/// A line, or dots alone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Figures of a publication, which are dots alone.
    pub published: bool,
    /// The number of its colour.
    pub color: usize,
    /// 0 solid, 1 dotted and thin, 2 dashed, 3 dash-dotted.
    pub dash: usize,
    /// Drawn in steps.
    pub step: bool,
    /// With a dot at each value.
    pub dots: bool,
    /// Small dots alone, one for each of many events.
    pub cloud: bool,
    /// Ascending.
    pub x: Vec<Option<f64>>,
    /// As long as `x`; nothing is drawn where there is no value.
    pub y: Vec<Option<f64>>,
}

impl Series {
    /// A line through points (x, y).
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (x, y) = points.into_iter().map(|(x, y)| (Some(x), Some(y))).unzip();
        Self { name: name.into(), x, y, ..Self::default() }
    }

    /// Published points (x, y).
    pub fn published(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { published: true, dots: true, ..Self::line(name, points) }
    }

    /// Small dots alone at points (x, y) with ascending x.
    pub fn cloud(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self { cloud: true, dots: true, ..Self::line(name, points) }
    }

    /// The points (x, y).
    pub fn points(&self) -> impl Iterator<Item = (Option<f64>, Option<f64>)> + '_ {
        self.x.iter().copied().zip(self.y.iter().copied())
    }
}

/// The figures, without the way they are drawn.
impl Serialize for Series {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Series", 3)?;
        fields.serialize_field("name", &self.name)?;
        fields.serialize_field("published", &self.published)?;
        fields.serialize_field("points", &self.points().collect::<Vec<_>>())?;
        fields.end()
    }
}

/// A strip below the plot: a digit from 0 to 9, the share, for each of equal parts of `x`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Strip {
    /// Its name.
    pub name: &'static str,
    /// The colour's class.
    #[serde(skip)]
    pub style: &'static str,
    /// Both ends.
    pub x: [f64; 2],
    /// The digits.
    pub cells: String,
}

/// A picture of shares: columns over x, rows over pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Heat {
    /// The columns' edges, one more than columns.
    pub x: Vec<f64>,
    /// Rows in a column.
    pub rows: usize,
    /// What the rows cover together.
    pub pages: u32,
    /// What is drawn over one another.
    pub layers: Vec<Layer>,
    /// Pages that have a name together, ascending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<Band>,
}

/// Pages of a [`Heat`] that have a name together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Band {
    /// The first.
    pub from: u32,
    /// The first behind them.
    pub to: u32,
    /// The name; empty: they have none.
    pub name: String,
}

/// One colour of a [`Heat`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// Its name in the legend.
    pub name: &'static str,
    /// The colour's class.
    #[serde(skip)]
    pub style: &'static str,
    /// For each column a digit from 0 to 9, the share, for each row.
    pub columns: Vec<String>,
    /// For each column the share of all pages.
    pub shares: Vec<f64>,
}

/// A vertical mark, such as a knee.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    #[serde(skip)]
    pub color: Option<usize>,
    /// What it marks.
    pub kind: MarkKind,
}

/// What a [`Mark`] is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    /// A knee that was found.
    #[default]
    Knee,
    /// A place that is known without the curve: a limit, a cache's size.
    Place,
}

impl Mark {
    /// A mark without an interval and words.
    pub fn at(x: f64) -> Self {
        Self { x, low: None, high: None, label: String::new(), color: None, kind: MarkKind::Knee }
    }
}

/// A plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strips: Vec<Strip>,
    /// The picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heat: Option<Heat>,
    /// The marks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// As wide as the page, and taller: the picture of its experiment.
    #[serde(skip)]
    pub wide: bool,
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
            let mut values = series.y.iter().flatten();
            let first = values.next();
            values.all(|value| Some(value) == first)
        };
        self.heat.is_none() && self.series.iter().all(level)
    }
}

/// How well something came out, which a word is coloured by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// As it should.
    Good,
    /// Nearly so.
    Fair,
    /// Not.
    Bad,
}

/// Bars of named rows below one another: published figures beside a model's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bars {
    /// The heading.
    pub title: String,
    /// What the reader should know.
    pub caption: String,
    /// The unit of all figures.
    pub unit: &'static str,
    /// Decimals worth showing.
    pub decimals: u8,
    /// What each colour of the model's bars is, in their order.
    pub models: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<BarRow>,
}

/// A row of [`Bars`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BarRow {
    /// What its figures are of.
    pub label: String,
    /// The published figure.
    pub published: Option<f64>,
    /// The model's.
    pub model: Option<f64>,
    /// The number of the model's colour.
    #[serde(skip)]
    pub color: usize,
    /// The claim that the row is, if it is one.
    pub claim: Option<String>,
    /// What became of it, in a word.
    pub verdict: Option<(String, Tone)>,
}

impl BarRow {
    /// A row of the first colour.
    pub fn new(label: impl Into<String>, published: Option<f64>, model: Option<f64>) -> Self {
        Self { label: label.into(), published, model, color: 0, claim: None, verdict: None }
    }

    /// The same as one claim's row.
    pub fn of(self, claim: impl Into<String>) -> Self {
        Self { claim: Some(claim.into()), ..self }
    }
}

/// Bars of named rows from 0, each with the range of the figures behind it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RangeBars {
    /// The heading.
    pub title: String,
    /// What the reader should know.
    pub caption: String,
    /// How figures are written, as [`Axis::unit`].
    pub unit: &'static str,
    /// What each colour is, by its number; empty where there is one.
    pub colors: Vec<(usize, String)>,
    /// The rows.
    pub rows: Vec<RangeBar>,
}

/// A row of [`RangeBars`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RangeBar {
    /// What its figure is of; empty: of the same as the row above.
    pub label: String,
    /// The figure.
    pub value: Option<f64>,
    /// The ends of its range, if it has one.
    pub range: Option<(f64, f64)>,
    /// The number of its colour.
    #[serde(skip)]
    pub color: usize,
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
