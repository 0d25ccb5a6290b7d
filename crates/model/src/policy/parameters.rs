//! The parameters in a policy's text: `name=value,…` behind the colon.

use std::fmt;
use std::str::FromStr;

/// Why a policy cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// No policy has the name; the text says what may be meant, and what there is.
    #[error("{0}")]
    Unknown(String),
    /// A parameter is missing, unknown, no number or out of range.
    #[error("policy '{policy}': {problem}")]
    Parameter {
        /// The text as given.
        policy: String,
        /// What is wrong, and what is wanted.
        problem: String,
    },
}

/// The parameters behind the colon; each is taken out as it is read, and none may be left.
pub(super) struct Parameters<'a> {
    policy: &'a str,
    list: Vec<(&'a str, &'a str)>,
}

impl<'a> Parameters<'a> {
    /// `only` is the name of the parameter that may be written without it.
    pub fn new(policy: &'a str, text: Option<&'a str>, only: &'static str) -> Self {
        let list = text.into_iter().flat_map(|t| t.split(','));
        Self { policy, list: list.map(|item| item.split_once('=').unwrap_or((only, item))).collect() }
    }

    /// The problem, with the policy's text.
    pub fn error(&self, problem: String) -> PolicyError {
        PolicyError::Parameter { policy: self.policy.to_owned(), problem }
    }

    /// A number within the range, or the default.
    pub fn take<T: FromStr + PartialOrd + fmt::Display>(
        &mut self,
        name: &str,
        default: T,
        range: std::ops::RangeInclusive<T>,
    ) -> Result<T, PolicyError> {
        let Some(at) = self.list.iter().position(|(n, _)| *n == name) else { return Ok(default) };
        let (_, text) = self.list.remove(at);
        text.parse().ok().filter(|value| range.contains(value)).ok_or_else(|| {
            let (low, high) = (range.start(), range.end());
            self.error(format!("{name} must be a number from {low} to {high}, not '{text}'"))
        })
    }

    /// A number of references that has no default.
    pub fn needed(&mut self, name: &str, what: &str) -> Result<u64, PolicyError> {
        let policy = self.policy.split(':').next().unwrap_or_default();
        match self.take(name, 0, 1..=u64::MAX)? {
            0 => Err(self
                .error(format!("write {policy}:TAU with {what} of TAU references, such as {policy}:1000"))),
            given => Ok(given),
        }
    }

    /// One of these words, the first of which is the default.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, PolicyError> {
        let Some(at) = self.list.iter().position(|(n, _)| *n == name) else { return Ok(words[0].1) };
        let (_, text) = self.list.remove(at);
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(format!("{name} must be one of {}, not '{text}'", names.join(", ")))
        })
    }

    /// The policy, where no parameter is left.
    pub fn finish<K: fmt::Display>(self, kind: K) -> Result<K, PolicyError> {
        match self.list.first() {
            None => Ok(kind),
            Some((name, value)) => {
                Err(self.error(format!("'{name}={value}' is not a parameter here; it has: {kind}")))
            }
        }
    }
}
