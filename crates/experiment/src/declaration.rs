//! One declaration for each experiment: its struct.
//!
//! A parameter is one field: its type, default, bounds and help stand on it as clap's attributes.
//! From it come the command line, the catalogue, the default, the command line that is printed
//! back, the shell's completions, the manual page, and the reading of notebooks that were written
//! before the field was.

use std::fmt;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use serde::Serialize;
use serde_json::Value;

pub use pagelab_reference::pattern::closest;

use crate::size::{Size, SizeError};
use crate::words::byte;

/// An experiment as the command line has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    /// The name.
    pub name: String,
    /// One line.
    pub help: String,
    /// The parameters, in order.
    pub parameters: Vec<Parameter>,
}

/// A parameter as the command line has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The name, without dashes.
    pub name: String,
    /// The default as text; `None`: none, or one that the help describes.
    pub default: Option<String>,
    /// One line.
    pub help: String,
    /// The words it takes, where it takes only some.
    pub words: Vec<String>,
}

impl Parameter {
    fn of(arg: &Arg) -> Self {
        let texts = arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned());
        let default: Vec<String> = texts.collect();
        let flag = matches!(arg.get_action(), ArgAction::SetTrue);
        let words = arg.get_possible_values().into_iter().map(|word| word.get_name().to_owned());
        Self {
            name: arg.get_long().unwrap_or_else(|| arg.get_id().as_str()).to_owned(),
            default: (!flag && !default.is_empty()).then(|| default.join(",")),
            help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            words: if flag { Vec::new() } else { words.collect() },
        }
    }
}

/// The parameters that a type declares, in order.
pub fn parameters<A: clap::Args>() -> Vec<Parameter> {
    A::augment_args(Command::new("")).get_arguments().map(Parameter::of).collect()
}

/// The subcommands that a type declares, in order.
pub fn subcommands<S: clap::Subcommand>() -> Vec<Declared> {
    let command = S::augment_subcommands(Command::new(""));
    let declared = command.get_subcommands().map(|command| Declared {
        name: command.get_name().to_owned(),
        help: command.get_about().map(ToString::to_string).unwrap_or_default(),
        parameters: command.get_arguments().filter(|own| !own.is_hide_set()).map(Parameter::of).collect(),
    });
    declared.collect()
}

/// The values of a type that nobody gave any, from its declaration; `words` are what it requires.
///
/// # Panics
/// When a declared default is impossible, which a test of each type would have found.
pub fn default<A: clap::Args>(words: &[&str]) -> A {
    let command = A::augment_args(Command::new("").no_binary_name(true));
    let matches = command.try_get_matches_from(words).expect("the declared defaults are possible");
    A::from_arg_matches(&matches).expect("the declared defaults are possible")
}

/// The values of a type as (argument, text of its value), in the order of the declaration, for
/// those that have one.
fn texts<A: clap::Args + Serialize>(values: &A) -> Vec<(Arg, Vec<String>)> {
    let json = serde_json::to_value(values).expect("parameters are plain values");
    let command = A::augment_args(Command::new(""));
    let of = |arg: &Arg| {
        let texts = match json.get(arg.get_id().as_str())? {
            Value::Array(items) => items.iter().filter_map(text).collect(),
            value => vec![text(value)?],
        };
        Some((arg.clone(), texts))
    };
    command.get_arguments().filter_map(of).collect()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Bool(false) | Value::Array(_) | Value::Object(_) => None,
        Value::Bool(true) => Some("on".to_owned()),
        // 1 and not 1.0.
        Value::Number(number) if number.is_f64() => number.as_f64().map(|n| n.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
    }
}

/// The words of the command line that gives these values, without those of options that
/// `is_left_out`.
fn line<A: clap::Args + Serialize>(
    values: &A,
    is_left_out: impl Fn(&str, &Arg, &[String]) -> bool,
) -> Vec<String> {
    let mut words = Vec::new();
    for (arg, texts) in texts(values) {
        match arg.get_long() {
            None => {
                words.push("--".to_owned());
                words.extend(texts);
            }
            Some(name) if is_left_out(name, &arg, &texts) => {}
            Some(name) if matches!(arg.get_action(), ArgAction::SetTrue) => words.push(format!("--{name}")),
            Some(name) if arg.get_value_delimiter().is_some() => {
                words.extend([format!("--{name}"), texts.join(",")]);
            }
            Some(name) => words.extend(texts.into_iter().flat_map(|text| [format!("--{name}"), text])),
        }
    }
    words
}

/// The defaults that were others when runs of the experiment were first recorded: the type of the
/// parameters, the option, the former default. Among them are the values of options that a preset
/// may set, whose declared default is none. A series is named by what differs from these, so
/// that an upgrade does not end it.
const FIRST_DEFAULTS: &[(&str, &str, &str)] =
    &[("Fileread", "read", "8K"), ("Fileread", "writes", "0%"), ("Fileread", "files", "1")];

/// Writes the command line that gives these values; in the alternate form (`{:#}`) without the
/// options that have the defaults of the version that first had them, which is the same in every
/// version.
///
/// # Errors
/// Those of the formatter.
pub fn write_line<A: clap::Args + Serialize>(values: &A, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let whole = !f.alternate();
    let is_default = |name: &str, arg: &Arg, texts: &[String]| {
        let of_type = |(of, option, _): &&(&str, &str, &str)| {
            std::any::type_name::<A>().ends_with(of) && *option == name
        };
        let declared = arg.get_default_values().iter().map(|value| value.to_string_lossy());
        match FIRST_DEFAULTS.iter().find(of_type) {
            Some((.., first)) => texts.join(",") == *first,
            None => texts.join(",") == declared.collect::<Vec<_>>().join(","),
        }
    };
    f.write_str(&joined(&line(values, |name, arg, texts| !whole && is_default(name, arg, texts))))
}

fn joined(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it; one that is not UTF-8 as bash and zsh do.
fn quoted(word: &str) -> String {
    if word.chars().any(|c| byte(c).is_some()) {
        let part = |c: char| match (byte(c), c) {
            (Some(byte), _) => format!("\\x{byte:02x}"),
            (None, '\'' | '\\') => format!("\\{c}"),
            (None, c) => c.to_string(),
        };
        return format!("$'{}'", word.chars().map(part).collect::<String>());
    }
    let plain =
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// A value that a declaration refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    /// With this sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

impl From<String> for Refusal {
    fn from(sentence: String) -> Self {
        Self(sentence)
    }
}

/// Gives the declared argument `key` the `value`; `Ok(false)` where the type declares no such
/// argument.
///
/// # Errors
/// A sentence that says what the value should be.
pub fn assign<A: clap::Args + Serialize>(values: &mut A, key: &str, value: &str) -> Result<bool, Refusal> {
    let command = A::augment_args(Command::new("").no_binary_name(true));
    let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(key)) else {
        return Ok(false);
    };
    let flag = matches!(arg.get_action(), ArgAction::SetTrue);
    let wanted = match (flag, value) {
        (true, "on" | "true") => Some(format!("--{key}")),
        (true, "off" | "false") => None,
        (true, _) => return Err(Refusal(format!("{key}: must be on or off, not '{value}'"))),
        (false, _) => Some(format!("--{key}={value}")),
    };
    // All values at once: an update alone would set every other flag and default again.
    let mut words: Vec<String> = wanted.into_iter().collect();
    words.extend(line(values, |name, _, _| name == key));
    let matches = command.try_get_matches_from(words).map_err(|e| Refusal(sentence(key, &e)))?;
    *values = A::from_arg_matches(&matches).map_err(|e| Refusal(sentence(key, &e)))?;
    Ok(true)
}

/// What clap says of a value of `key`, in one sentence.
fn sentence(key: &str, error: &clap::Error) -> String {
    let value = match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => value.as_str(),
        _ => "",
    };
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(words))) => {
            format!("{key}: '{value}' must be one of {}", listed(value, words))
        }
        _ => match std::error::Error::source(error) {
            Some(source) => format!("{key}: {source}"),
            None => error.to_string().lines().next().unwrap_or_default().replacen("error: ", "", 1),
        },
    }
}

/// The words, with the one that was probably meant.
pub fn listed<T: AsRef<str>>(text: &str, words: &[T]) -> String {
    let all = words.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match closest(text, words.iter().map(AsRef::as_ref)) {
        Some(word) => format!("{all} (did you mean {word}?)"),
        None => all,
    }
}

/// A number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, Refusal> {
    let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    number.ok_or_else(|| Refusal(format!("'{text}' must be a number above 0")))
}

/// A size above 0.
pub(crate) fn some(text: &str) -> Result<Size, Refusal> {
    let size: Size = text.parse().map_err(|e: SizeError| Refusal(e.to_string()))?;
    if size.bytes(1) > 0 { Ok(size) } else { Err(Refusal(format!("'{text}' must be a size above 0"))) }
}

/// `Default` and `Display` (the command line) of a type of parameters, from its declaration.
macro_rules! declared {
    ($type:ident) => {
        impl Default for $type {
            fn default() -> Self {
                $crate::declaration::default(&[])
            }
        }
        $crate::declaration::displayed!($type);
    };
}
pub(crate) use declared;

/// `Display` alone: the command line.
macro_rules! displayed {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                $crate::declaration::write_line(self, f)
            }
        }
    };
}
pub(crate) use displayed;

/// `Display` and `FromStr` of an enum by the words that it declares.
macro_rules! words {
    ($type:ident) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let value = clap::ValueEnum::to_possible_value(self);
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        }
        impl std::str::FromStr for $type {
            type Err = $crate::declaration::Refusal;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                <Self as clap::ValueEnum>::from_str(text, false).map_err(|_| {
                    let words: Vec<String> =
                        <Self as clap::ValueEnum>::value_variants().iter().map(ToString::to_string).collect();
                    let words = $crate::declaration::listed(text, &words);
                    $crate::declaration::Refusal::new(format!("'{text}' must be one of {words}"))
                })
            }
        }
        #[cfg(test)]
        impl $type {
            /// The stored word of every value, and the one that is typed.
            pub(crate) fn stored_and_typed() -> Vec<(serde_json::Value, String)> {
                let values = <Self as clap::ValueEnum>::value_variants().iter();
                values.map(|value| (serde_json::to_value(value).unwrap(), value.to_string())).collect()
            }
        }
    };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::reclaim::{Action, By};
    use crate::experiments::{
        Access, Backing, Beside, Child, Mapping, PagesOf, Paging, Prefetch, Preset, Touch, Work, Workers,
    };
    use crate::setting::{Mode, Swap};

    #[test]
    fn typed_values_are_stored_unchanged() {
        let all = [
            Access::stored_and_typed(),
            Action::stored_and_typed(),
            Backing::stored_and_typed(),
            Beside::stored_and_typed(),
            By::stored_and_typed(),
            Child::stored_and_typed(),
            Mapping::stored_and_typed(),
            PagesOf::stored_and_typed(),
            Prefetch::stored_and_typed(),
            Preset::stored_and_typed(),
            Touch::stored_and_typed(),
            Work::stored_and_typed(),
            Workers::stored_and_typed(),
            crate::experiments::neighbour::Task::stored_and_typed(),
            Swap::stored_and_typed(),
            Mode::stored_and_typed(),
        ];
        for (stored, typed) in all.into_iter().flatten() {
            assert_eq!(stored, typed.as_str());
        }
    }

    #[test]
    fn a_wrong_word_is_answered_with_the_right_one() {
        let mut paging = Paging::default();
        assert_eq!(assign(&mut paging, "touch", "write"), Ok(true));
        assert_eq!(paging.touch, Touch::Write);
        assert_eq!(assign(&mut paging, "colour", "red"), Ok(false));
        let refused = assign(&mut paging, "touch", "wrote").unwrap_err().to_string();
        assert_eq!(refused, "touch: 'wrote' must be one of page, word, write (did you mean write?)");
        let refused = assign(&mut paging, "pages", "0").unwrap_err().to_string();
        assert!(refused.contains("pages"), "{refused}");
        assert_eq!(assign(&mut paging, "warm", "on"), Ok(true));
        assert!(paging.warm);
        assert_eq!(
            "pag".parse::<Touch>().unwrap_err().to_string(),
            "'pag' must be one of page, word, write (did you mean page?)"
        );
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("a-b.c"), "a-b.c");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
