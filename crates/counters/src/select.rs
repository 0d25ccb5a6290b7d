//! Which counters are wanted: kstat's operands and filters.
//!
//! A [`Selector`] has four parts, `module:instance:name:statistic`, and a class. Each part is empty
//! (anything), a shell glob that must match the whole (`pg*`), or a regular expression between
//! slashes that may match anywhere (`/^pg(scan|steal)/`). Trailing parts may be left out. The parts
//! of a selector must all match; of several selectors one must.

use std::str::FromStr;
use std::sync::Arc;

use glob::Pattern;
use regex_lite::Regex;

/// Why a selector was not understood.
#[derive(Debug, thiserror::Error)]
pub enum SelectorError {
    /// More than three colons.
    #[error(
        "'{0}' has more than four parts: a selector is module:instance:name:statistic\nhint: give a name with a colon to --name"
    )]
    TooManyParts(String),
    /// A glob that is none.
    #[error("'{part}' is not a glob: {why}")]
    Glob {
        /// The part.
        part: String,
        /// What is wrong with it.
        why: String,
    },
    /// A regular expression that is none.
    #[error("'/{part}/' is not a regular expression: {why}")]
    Regex {
        /// The part without its slashes.
        part: String,
        /// What is wrong with it.
        why: String,
    },
}

/// A choice of texts that is fast to refuse, because most texts are refused.
#[derive(Clone, Debug)]
pub struct Words {
    words: Arc<[String]>,
    /// A bit for each length of a word; the last one for all from 63 bytes on.
    lengths: u64,
}

impl Words {
    fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let words: Arc<[String]> = words.map(str::to_owned).collect();
        let lengths = words.iter().fold(0, |lengths, word| lengths | Self::length(word));
        Self { words, lengths }
    }

    fn length(text: &str) -> u64 {
        1 << text.len().min(63)
    }

    fn contain(&self, text: &str) -> bool {
        self.lengths & Self::length(text) != 0
            && self.words.iter().any(|word| word.as_bytes().last() == text.as_bytes().last() && word == text)
    }
}

/// One part of a selector.
#[derive(Clone, Debug, Default)]
pub enum Part {
    /// Anything.
    #[default]
    Any,
    /// This text and no other.
    Exact(String),
    /// A shell glob over the whole text.
    Glob(Pattern),
    /// A regular expression that matches somewhere.
    Regex(Regex),
    /// One of these texts: what a regular expression such as `^(one|other)$` means, without the
    /// time that it takes.
    Words(Words),
}

impl Part {
    /// Whether the text is wanted.
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(wanted) => wanted == text,
            Self::Glob(glob) => glob.matches(text),
            Self::Regex(regex) => regex.is_match(text),
            Self::Words(words) => words.contain(text),
        }
    }

    /// The words of a regular expression that is nothing but a choice of some.
    fn words(expression: &str) -> Option<Self> {
        let words = expression.strip_prefix("^(")?.strip_suffix(")$")?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'|';
        words.bytes().all(plain).then(|| Self::Words(Words::new(words.split('|'))))
    }

    /// Whether the number, written in decimal, is wanted.
    pub fn matches_number(&self, number: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Exact(wanted) => wanted.parse() == Ok(number),
            _ => self.matches(&number.to_string()),
        }
    }
}

impl FromStr for Part {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.is_empty() {
            return Ok(Self::Any);
        }
        if let Some(inner) =
            text.strip_prefix('/').and_then(|t| t.strip_suffix('/')).filter(|t| !t.contains('/'))
        {
            if let Some(words) = Self::words(inner) {
                return Ok(words);
            }
            return Regex::new(inner).map(Self::Regex).map_err(|e| {
                let why = e.to_string();
                SelectorError::Regex {
                    part: inner.to_owned(),
                    why: why.lines().last().unwrap_or(&why).trim_start_matches("error: ").to_owned(),
                }
            });
        }
        if !text.contains(['*', '?', '[']) {
            return Ok(Self::Exact(text.to_owned()));
        }
        Pattern::new(text)
            .map(Self::Glob)
            .map_err(|e| SelectorError::Glob { part: text.to_owned(), why: e.msg.to_owned() })
    }
}

/// Four parts and a class that must all match.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    /// The provider.
    pub module: Part,
    /// The instance.
    pub instance: Part,
    /// The name.
    pub name: Part,
    /// The statistic.
    pub statistic: Part,
    /// The class.
    pub class: Part,
}

impl Selector {
    /// Whether a module that is only read when it is named is named: its part is not empty.
    pub(crate) fn names_module(&self, module: &str, class: &str) -> bool {
        !matches!(self.module, Part::Any) && self.takes_module(module, class)
    }

    pub(crate) fn takes_module(&self, module: &str, class: &str) -> bool {
        self.module.matches(module) && self.class.matches(class)
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let parts = split(text);
        if parts.len() > 4 {
            return Err(SelectorError::TooManyParts(text.to_owned()));
        }
        let part = |i: usize| parts.get(i).copied().unwrap_or_default().parse();
        Ok(Self {
            module: part(0)?,
            instance: part(1)?,
            name: part(2)?,
            statistic: part(3)?,
            class: Part::Any,
        })
    }
}

/// Splits at the colons outside /…/.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let end = match rest
            .strip_prefix('/')
            .and_then(|inner| inner.find("/:").or_else(|| inner.strip_suffix('/').map(str::len)))
        {
            Some(close) if !rest[1..=close].contains('/') => close + 2,
            _ => rest.find(':').unwrap_or(rest.len()),
        };
        parts.push(&rest[..end]);
        match rest.get(end + 1..) {
            Some(next) => rest = next,
            None => return parts,
        }
    }
}

/// Several selectors of which one must match. Without any, everything is wanted.
#[derive(Clone, Debug)]
pub struct Selection {
    selectors: Vec<Selector>,
}

impl Selection {
    /// One of these; everything when there is none.
    pub fn new(selectors: impl IntoIterator<Item = Selector>) -> Self {
        let mut selectors: Vec<_> = selectors.into_iter().collect();
        if selectors.is_empty() {
            selectors.push(Selector::default());
        }
        Self { selectors }
    }

    /// Everything that is not read only when named.
    pub fn all() -> Self {
        Self::new([])
    }

    /// The selection that these operands mean.
    ///
    /// # Errors
    /// When an operand has too many parts, or one of them is neither a glob nor a regular
    /// expression.
    pub fn parse<'a>(operands: impl IntoIterator<Item = &'a str>) -> Result<Self, SelectorError> {
        Ok(Self::new(operands.into_iter().map(str::parse).collect::<Result<Vec<_>, _>>()?))
    }

    /// The same with what names this module wanted of these of its instances alone.
    #[must_use]
    pub fn of_instances(&self, module: &str, instances: &[u64]) -> Self {
        let mut selectors = Vec::with_capacity(self.selectors.len() + instances.len());
        for selector in &self.selectors {
            match &selector.module {
                Part::Exact(named) if named == module => {
                    let of = |instance: &u64| Selector {
                        instance: Part::Exact(instance.to_string()),
                        ..selector.clone()
                    };
                    selectors.extend(instances.iter().map(of));
                }
                _ => selectors.push(selector.clone()),
            }
        }
        Self { selectors }
    }

    /// The selectors that concern a module, which is read only when one names it if `on_demand`.
    pub(crate) fn of_module(&self, module: &str, class: &str, on_demand: bool) -> Vec<&Selector> {
        let concerns = |s: &&Selector| {
            if on_demand { s.names_module(module, class) } else { s.takes_module(module, class) }
        };
        self.selectors.iter().filter(concerns).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_globs_expressions_or_anything() {
        let s: Selector = "vmstat::vm:/^pg(scan|steal)_/".parse().unwrap();
        assert!(s.module.matches("vmstat") && !s.module.matches("vmstats"));
        assert!(s.instance.matches_number(7));
        assert!(s.statistic.matches("pgscan_anon") && !s.statistic.matches("nr_pgscan_anon"));
        let s: Selector = "p*:1?::".parse().unwrap();
        assert!(
            s.module.matches("process") && s.instance.matches_number(17) && !s.instance.matches_number(170)
        );
        assert!(s.name.matches("") && s.statistic.matches("x"));
    }

    #[test]
    fn a_choice_of_words_is_what_its_expression_says() {
        for (expression, is_choice) in [
            ("^(utime|stime)$", true),
            ("^(one)$", true),
            ("^(a|)$", true),
            ("(utime)", false),
            ("^(a.c|b)$", false),
        ] {
            let part: Part = format!("/{expression}/").parse().unwrap();
            assert_eq!(matches!(part, Part::Words(_)), is_choice, "{expression}");
            let regex = Regex::new(expression).unwrap();
            for text in ["utime", "utimes", "stime", "one", "a", "", "abc", "b", "a|"] {
                assert_eq!(part.matches(text), regex.is_match(text), "{expression} and {text}");
            }
        }
    }

    #[test]
    fn a_module_is_narrowed_to_instances() {
        let all = Selection::parse(["process:::/^utime$/", "stat:0:all:forks"]).unwrap();
        let some = all.of_instances("process", &[7, 9]);
        let wanted = |selection: &Selection, instance| {
            let selectors = selection.of_module("process", "process", false);
            selectors.iter().any(|s| s.instance.matches_number(instance) && s.statistic.matches("utime"))
        };
        assert!(wanted(&all, 8) && wanted(&some, 7) && wanted(&some, 9) && !wanted(&some, 8));
        let none = all.of_instances("process", &[]);
        assert!(!wanted(&none, 7) && none.of_module("stat", "misc", false).len() == 1);
    }

    #[test]
    fn a_glob_crosses_slashes_and_an_expression_may_hold_colons() {
        let s: Selector = "cgroup:1:/user*".parse().unwrap();
        assert!(s.name.matches("/user.slice/user-0.slice"), "a lone leading slash is a path's");
        let s: Selector = "process::/kworker.0:1/:utime".parse().unwrap();
        assert!(s.name.matches("kworker/0:1-events") && s.statistic.matches("utime"));
    }

    #[test]
    fn invalid_selectors_are_refused_with_the_reason() {
        for (wrong, says) in
            [("a:b:c:d:e", "four parts"), ("a:[", "not a glob"), ("a:/(/", "not a regular expression")]
        {
            let error = wrong.parse::<Selector>().unwrap_err().to_string();
            assert!(error.contains(says), "{wrong}: {error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,40}") {
            let _ = text.parse::<Selector>();
        }

        #[test]
        fn splitting_keeps_every_character(text in "[a:/*]{0,20}") {
            prop_assert_eq!(split(&text).join(":"), text);
        }
    }
}
