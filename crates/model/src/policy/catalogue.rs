//! What policies there are: the form, one line and the source of each, and the refusal of a name that is none of them.

use pagelab_reference::pattern::closest;

use super::{PolicyError, PolicyKind};

/// Other names of policies: the literature's, and those of other simulators that are spelled quite differently.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("tinylfu", "w-tinylfu"),
    ("lru-2", "lru-k"),
    ("second-chance-n", "gclock"),
    ("belady", "opt"),
    ("min", "opt"),
    ("second-chance", "clock"),
    ("twoq", "2q"),
    ("lfu-aging", "lfuda"),
    ("working-set", "ws:TAU"),
];

/// The policy that an unknown name may mean, as the end of a sentence; empty where none is near.
fn did_you_mean(text: &str) -> String {
    let plain = |form: &'static str| form.split(':').next().unwrap_or_default();
    let name = text.split(':').next().unwrap_or_default();
    let known = PolicyKind::catalogue().iter().map(|one| (plain(one.form), one.form));
    let known: Vec<_> = known.chain(OTHER_NAMES).collect();
    let near = closest(name, known.iter().map(|(spelled, _)| *spelled));
    let meant = known.iter().find(|(spelled, _)| Some(*spelled) == near);
    meant.map_or_else(String::new, |(_, form)| format!(" (did you mean '{form}'?)"))
}

/// A policy as it is listed.
#[derive(Clone, Debug)]
pub struct Described {
    /// The text form; `TAU` stands for a number that must be given.
    pub form: &'static str,
    /// One line, with the defaults of the parameters.
    pub help: String,
    /// Who published it.
    pub source: &'static str,
}

impl Described {
    pub(super) fn new(form: &'static str, help: &str, source: &'static str) -> Self {
        let usual = form.parse::<PolicyKind>().ok().map(|kind| kind.to_string());
        let defaults = usual.filter(|usual| usual != form).map(|usual| format!(" (default {usual})"));
        Self { form, help: format!("{help}{}", defaults.unwrap_or_default()), source }
    }
}

impl PolicyKind {
    /// The refusal of a name that is not one of the [catalogue](Self::catalogue).
    pub(super) fn unknown(text: &str) -> PolicyError {
        let names: Vec<&str> = Self::catalogue().iter().map(|one| one.form).collect();
        let (hint, names) = (did_you_mean(text), names.join(", "));
        PolicyError::Unknown(format!("unknown policy '{text}'{hint}; must be one of {names}"))
    }
}
