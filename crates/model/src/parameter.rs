//! The parameters of the published models. Each is declared once, with its unit, range, source and
//! field in a configuration.
//!
//! A table of [`Parameter`]s belongs to one configuration type. It has no defaults: the default of
//! a parameter is its value in the configuration. [`Parts`] joins the tables of all parts of a
//! model, each with its configuration.

use std::fmt;

use pagelab_caches::Buffer;
use pagelab_experiment::Size;
use pagelab_experiment::declaration::{Refusal, listed};
use serde::Serialize;

/// Where the value of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// A source states the value.
    Documented {
        /// The source.
        source: &'static str,
    },
    /// Computed from documented or published figures.
    Derived {
        /// The figures and the computation.
        from: &'static str,
    },
    /// Chosen because it fits.
    Fitted {
        /// The fitted data.
        on: &'static str,
    },
    /// Neither sources nor data determine the value.
    Assumed {
        /// The reason for this value.
        why: &'static str,
    },
}

impl Standing {
    /// A documented value.
    pub const fn documented(source: &'static str) -> Self {
        Self::Documented { source }
    }

    /// A derived value.
    pub const fn derived(from: &'static str) -> Self {
        Self::Derived { from }
    }

    /// A fitted value.
    pub const fn fitted(on: &'static str) -> Self {
        Self::Fitted { on }
    }

    /// An assumed value.
    pub const fn assumed(why: &'static str) -> Self {
        Self::Assumed { why }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Documented { source } => write!(f, "documented: {source}"),
            Self::Derived { from } => write!(f, "derived: {from}"),
            Self::Fitted { on } => write!(f, "fitted to {on}"),
            Self::Assumed { why } => write!(f, "assumed: {why}"),
        }
    }
}

/// The type of a value and its notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// A whole number.
    Whole,
    /// Bytes, with the suffixes of a size.
    Size,
    /// Entries and ways of a set-associative buffer, such as 64x4; the range limits the entries.
    Buffer,
}

/// A value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number in the parameter's unit; bytes for a size.
    Number(f64),
    /// A set-associative buffer.
    Buffer(Buffer),
}

impl Value {
    /// The number, if the value is a number.
    pub fn number(self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(number),
            Self::Buffer(_) => None,
        }
    }
}

/// A parameter of configurations of type `C`, declared by
/// [`parameter_table!`](crate::parameter_table).
#[derive(Debug)]
pub struct Parameter<C> {
    /// Its name on the command line.
    pub name: &'static str,
    /// The unit; empty for a plain number.
    pub unit: &'static str,
    /// The meaning, in one line.
    pub help: &'static str,
    /// The type and notation.
    pub form: Form,
    /// Minimum and maximum.
    pub range: [f64; 2],
    /// The source of the default.
    pub standing: Standing,
    /// Reads the field of the configuration.
    pub get: fn(&C) -> Value,
    /// Sets the field of the configuration.
    pub set: fn(&mut C, Value),
}

/// A table of parameters, one per line: form, name, unit, range, help, source, and the field of the
/// configuration. The field of a `scaled` parameter is an integer: the value times the factor.
///
/// ```ignore
/// parameter_table! {
///     whole "pmegs" "" [48.0, 8192.0] "PMEGs", documented(KERNELS), (machine.pmegs);
///     scaled "fault" "µs" [0.0, 1e5] "system time of a fault", derived("…"), (costs.fault * 1e3);
/// }
/// ```
#[macro_export]
macro_rules! parameter_table {
    ($($form:ident $name:literal $unit:literal $range:tt $help:literal, $standing:ident($why:expr), $field:tt;)*) => {
        &[$($crate::parameter::Parameter {
            name: $name,
            unit: $unit,
            help: $help,
            form: $crate::parameter_table!(@form $form),
            range: $range,
            standing: $crate::parameter::Standing::$standing($why),
            get: |c| $crate::parameter_table!(@get $form c $field),
            set: |c, value| $crate::parameter_table!(@set $form c value $field),
        }),*]
    };
    (@form number) => { $crate::parameter::Form::Number };
    (@form scaled) => { $crate::parameter::Form::Number };
    (@form whole) => { $crate::parameter::Form::Whole };
    (@form size) => { $crate::parameter::Form::Size };
    (@form buffer) => { $crate::parameter::Form::Buffer };
    (@get number $c:ident ($($field:tt)+)) => { $crate::parameter::Value::Number($c.$($field)+) };
    (@get buffer $c:ident ($($field:tt)+)) => { $crate::parameter::Value::Buffer($c.$($field)+) };
    (@get scaled $c:ident ($($field:ident).+ * $scale:literal)) => {
        $crate::parameter::Value::Number($c.$($field).+ as f64 / $scale)
    };
    (@get $form:ident $c:ident ($($field:tt)+)) => { $crate::parameter::Value::Number($c.$($field)+ as f64) };
    (@set number $c:ident $value:ident ($($field:tt)+)) => {
        if let $crate::parameter::Value::Number(number) = $value { $c.$($field)+ = number; }
    };
    (@set buffer $c:ident $value:ident ($($field:tt)+)) => {
        if let $crate::parameter::Value::Buffer(buffer) = $value { $c.$($field)+ = buffer; }
    };
    (@set scaled $c:ident $value:ident ($($field:ident).+ * $scale:literal)) => {
        if let $crate::parameter::Value::Number(number) = $value { $c.$($field).+ = (number * $scale).round() as _; }
    };
    (@set $form:ident $c:ident $value:ident ($($field:tt)+)) => {
        if let $crate::parameter::Value::Number(number) = $value { $c.$($field)+ = number.round() as _; }
    };
}

/// A parameter and its value, without the configuration, as lists show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Declared {
    /// Its name on the command line.
    pub name: &'static str,
    /// The unit; empty for a plain number.
    pub unit: &'static str,
    /// The meaning, in one line.
    pub help: &'static str,
    /// The type and notation.
    pub form: Form,
    /// Minimum and maximum; of the entries for a buffer.
    pub range: [f64; 2],
    /// The source of the default.
    pub standing: Standing,
    /// The value in the configuration: the default, unless it was set.
    pub value: Value,
}

/// Significant digits of a displayed default; some fitted values have more than are useful.
const DIGITS: i32 = 5;

impl Declared {
    /// A value in the notation that [`Self::read`] accepts, without its unit.
    pub fn written(&self, value: Value) -> String {
        match value {
            Value::Buffer(buffer) => format!("{}x{}", buffer.entries, buffer.ways),
            Value::Number(bytes) if self.form == Form::Size => Size::Bytes(bytes as u64).to_string(),
            Value::Number(number) => number.to_string(),
        }
    }

    /// The same, rounded to five digits and with the unit.
    pub fn shown(&self, value: Value) -> String {
        let value = match value {
            // Whole numbers keep all digits.
            Value::Number(number) if number.fract() != 0.0 => {
                let scale = 10f64.powi(DIGITS - 1 - number.abs().log10().floor() as i32);
                Value::Number((number * scale).round() / scale)
            }
            other => other,
        };
        let space = if self.unit == "%" { "" } else { " " };
        format!("{}{space}{}", self.written(value), self.unit).trim_end().to_owned()
    }

    /// The range as text.
    pub fn range_text(&self) -> String {
        let [low, high] = self.range.map(|end| match self.form {
            Form::Buffer => end.to_string(),
            _ => self.written(Value::Number(end)),
        });
        let of = if self.form == Form::Buffer { " entries" } else { "" };
        format!("{low} to {high}{of}")
    }

    /// Parses a value.
    ///
    /// # Errors
    /// A sentence with the range if `text` is not a value, or is out of range.
    pub fn read(&self, text: &str) -> Result<Value, Refusal> {
        let value = match self.form {
            Form::Number => text.parse().ok().map(Value::Number),
            Form::Whole => text.parse::<u64>().ok().map(|n| Value::Number(n as f64)),
            Form::Size => {
                text.parse().ok().map(|size: Size| Value::Number(size.bytes(crate::BASE_PAGE) as f64))
            }
            Form::Buffer => buffer(text).map(Value::Buffer),
        };
        value.filter(|&value| self.allows(value)).ok_or_else(|| Refusal::new(self.refusal(text)))
    }

    /// Whether a value is within the range.
    pub fn allows(&self, value: Value) -> bool {
        let within = |number: f64| self.range[0] <= number && number <= self.range[1];
        match value {
            Value::Number(number) => within(number) && (self.form == Form::Number || number.fract() == 0.0),
            Value::Buffer(buffer) => within(f64::from(buffer.entries)),
        }
    }

    fn refusal(&self, text: &str) -> String {
        let what = match self.form {
            Form::Number => "a number",
            Form::Whole => "a whole number",
            Form::Size => "a size",
            Form::Buffer => "ENTRIESxWAYS, such as 64x4, of entries",
        };
        let [low, high] = self.range.map(|end| match self.form {
            Form::Buffer => end.to_string(),
            _ => self.written(Value::Number(end)),
        });
        let of = if self.unit.is_empty() { String::new() } else { format!(" ({})", self.unit) };
        format!("{}={text}: must be {what} from {low} to {high}{of}", self.name)
    }
}

/// Parses `64x4`; the ways are optional.
fn buffer(text: &str) -> Option<Buffer> {
    let (entries, ways) = text.split_once('x').unwrap_or((text, "4"));
    let buffer = Buffer { entries: entries.parse().ok()?, ways: ways.parse().ok()? };
    (0 < buffer.ways && buffer.ways <= buffer.entries).then_some(buffer)
}

/// The parameters of a configuration of any type.
trait Part {
    fn declared(&self) -> Vec<Declared>;

    fn set(&mut self, name: &str, value: Value) -> bool;
}

/// A table with the configuration that it reads and sets.
struct Bound<'a, C: 'static> {
    table: &'static [Parameter<C>],
    of: &'a mut C,
}

impl<C> Part for Bound<'_, C> {
    fn declared(&self) -> Vec<Declared> {
        let of = |parameter: &'static Parameter<C>| Declared {
            name: parameter.name,
            unit: parameter.unit,
            help: parameter.help,
            form: parameter.form,
            range: parameter.range,
            standing: parameter.standing,
            value: (parameter.get)(self.of),
        };
        self.table.iter().map(of).collect()
    }

    fn set(&mut self, name: &str, value: Value) -> bool {
        let Some(parameter) = self.table.iter().find(|parameter| parameter.name == name) else {
            return false;
        };
        (parameter.set)(self.of, value);
        true
    }
}

/// The parts of a model: each is a table with the configuration that it reads and sets.
#[derive(Default)]
pub struct Parts<'a> {
    parts: Vec<Box<dyn Part + 'a>>,
    without: &'static [&'static str],
}

impl<'a> Parts<'a> {
    /// Adds a table and its configuration.
    pub fn and<C>(mut self, table: &'static [Parameter<C>], of: &'a mut C) -> Self {
        self.parts.push(Box::new(Bound { table, of }));
        self
    }

    /// Hides the parameters of these names, because nothing depends on them.
    pub fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    /// All parameters with their values.
    pub fn declared(&self) -> Vec<Declared> {
        let all = self.parts.iter().flat_map(|part| part.declared());
        all.filter(|one| !self.without.contains(&one.name)).collect()
    }

    /// Sets the parameter of this name. Returns false if there is none.
    pub fn set(&mut self, name: &str, value: Value) -> bool {
        !self.without.contains(&name) && self.parts.iter_mut().any(|part| part.set(name, value))
    }
}

/// The parameter of this name.
///
/// # Errors
/// A sentence with all names and the nearest one if `owner` has no parameter of this name.
pub fn find<'a>(owner: &str, list: &'a [Declared], name: &str) -> Result<&'a Declared, Refusal> {
    list.iter().find(|declared| declared.name == name).ok_or_else(|| {
        let names: Vec<&str> = list.iter().map(|declared| declared.name).collect();
        let among = listed(name, &names);
        Refusal::new(format!("{owner} has no parameter '{name}'; must be one of {among}"))
    })
}

/// The seed of a model's random number generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

/// The parameter for the seed.
pub const SEED: &[Parameter<Seed>] = parameter_table! {
    whole "seed" "" [0.0, 1e9] "random seed", assumed("any value works"), (0);
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Things {
        many: u32,
        cost: u64,
        share: f64,
        cache: [u64; 1],
        buffer: Buffer,
    }

    const TABLE: &[Parameter<Things>] = parameter_table! {
        whole "many" "" [1.0, 9.0] "how many", documented("a manual"), (many);
        scaled "cost" "µs" [0.0, 10.0] "what it costs", fitted("rows"), (cost * 1e3);
        number "share" "" [0.0, 1.0] "which share", assumed("so"), (share);
        size "cache" "" [1024.0, 1048576.0] "its cache", derived("one"), (cache[0]);
        buffer "buffer" "" [1.0, 64.0] "its buffer", documented("a manual"), (buffer);
    };

    fn things() -> Things {
        Things { many: 3, cost: 1_500, share: 0.25, cache: [2048], buffer: Buffer { entries: 8, ways: 2 } }
    }

    #[test]
    fn values_are_read_within_their_range_and_reach_their_field() {
        let mut things = things();
        let list = Parts::default().and(TABLE, &mut things).declared();
        let texts: Vec<String> = list.iter().map(|one| one.written(one.value)).collect();
        assert_eq!(texts, ["3", "1.5", "0.25", "2K", "8x2"]);
        for (name, text) in
            [("many", "7"), ("cost", "0.25"), ("share", "1"), ("cache", "1M"), ("buffer", "16x4")]
        {
            let value = find("it", &list, name).unwrap().read(text).unwrap();
            assert!(Parts::default().and(TABLE, &mut things).set(name, value));
        }
        let other = Things {
            many: 7,
            cost: 250,
            share: 1.0,
            cache: [1 << 20],
            buffer: Buffer { entries: 16, ways: 4 },
        };
        assert_eq!(things, other);
    }

    #[test]
    fn what_is_out_of_range_or_unknown_is_refused_with_what_there_is() {
        let mut things = things();
        let list = Parts::default().and(TABLE, &mut things).declared();
        let refusal =
            |name: &str, text: &str| find("it", &list, name).unwrap().read(text).unwrap_err().to_string();
        assert_eq!(refusal("many", "10"), "many=10: must be a whole number from 1 to 9");
        assert_eq!(refusal("cost", "x"), "cost=x: must be a number from 0 to 10 (µs)");
        assert_eq!(refusal("cache", "1"), "cache=1: must be a size from 1K to 1M");
        for (name, text) in
            [("many", "2.5"), ("many", ""), ("share", "NaN"), ("share", "-0.1"), ("buffer", "0x4")]
        {
            assert!(refusal(name, text).contains("must be"), "{name}={text}");
        }
        let unknown = find("it", &list, "shear").unwrap_err().to_string();
        assert!(unknown.starts_with("it has no parameter 'shear'; must be one of many, cost"), "{unknown}");
        assert!(unknown.ends_with("(did you mean share?)"), "{unknown}");
    }

    #[test]
    fn what_is_left_out_is_neither_listed_nor_set() {
        let mut things = things();
        let mut parts = Parts::default().and(TABLE, &mut things).without(&["many"]);
        assert!(parts.declared().iter().all(|one| one.name != "many"));
        assert!(!parts.set("many", Value::Number(4.0)) && parts.set("share", Value::Number(0.5)));
    }

    proptest! {
        /// A written value is read back unchanged.
        #[test]
        fn writing_and_reading_agree(many in 1u32..=9, cost in 0u64..=10_000, share in 0.0f64..=1.0) {
            let mut things = Things { many, cost, share, ..things() };
            let before = things.clone();
            let list = Parts::default().and(TABLE, &mut things).declared();
            for one in list {
                let value = one.read(&one.written(one.value)).unwrap();
                Parts::default().and(TABLE, &mut things).set(one.name, value);
            }
            prop_assert_eq!(things, before);
        }
    }
}
