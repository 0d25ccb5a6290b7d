//! The policies by name: parsing, printing with every parameter, and making them.

use std::fmt;
use std::str::FromStr;

use super::opt::{NextUse, Opt};
use super::s3_fifo::Fill;
use super::{Policy, arc, clock, clock_pro, fifo, lfu, lirs, lru, random, s3_fifo, sieve, slru, two_q, ws};

/// A policy and its parameters. The text form is a name, or a name and parameters: `ws:1000`,
/// `2q:kin=0.25,kout=0.5`; `model:` may stand before it. [`fmt::Display`] prints every parameter, also those left at their defaults.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyKind {
    /// See [`super::opt`].
    Opt,
    /// See [`super::lru`].
    Lru,
    /// See [`super::fifo`].
    Fifo,
    /// See [`super::clock`].
    Clock,
    /// See [`super::random`].
    Random {
        /// Seed of the draws.
        seed: u64,
    },
    /// See [`super::lfu`].
    Lfu,
    /// LFU with dynamic aging, see [`super::lfu`].
    LfuAging,
    /// See [`super::two_q`].
    TwoQ {
        /// Size of A1in as a share of the frames.
        kin: f64,
        /// Size of A1out as a share of the frames.
        kout: f64,
    },
    /// See [`super::arc`].
    Arc,
    /// See [`super::lirs`].
    Lirs {
        /// Share of the frames for HIR pages.
        hir: f64,
        /// Frames for HIR pages at least.
        least: u32,
    },
    /// See [`super::clock_pro`].
    ClockPro,
    /// See [`super::s3_fifo`].
    S3Fifo(s3_fifo::Parameters),
    /// See [`super::sieve`].
    Sieve,
    /// See [`super::slru`].
    Slru {
        /// Number of segments, 1 to 250.
        segments: u8,
    },
    /// See [`super::ws`].
    WorkingSet {
        /// The window in references, at least 1.
        tau: u64,
    },
}

/// Why a policy cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The name is not one of [`PolicyKind::catalogue`].
    #[error("unknown policy '{0}'{hint}; must be one of {names}", hint = did_you_mean(.0), names = PolicyKind::names())]
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

/// Other names of policies: the literature's, and those of other simulators that are spelled quite differently.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("belady", "opt"),
    ("min", "opt"),
    ("second-chance", "clock"),
    ("twoq", "2q"),
    ("lfuda", "lfu-aging"),
    ("working-set", "ws:TAU"),
];

/// The policy that an unknown name may mean, as the end of a sentence; empty where none is near.
fn did_you_mean(text: &str) -> String {
    let name = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let known = PolicyKind::catalogue().iter().map(|&(known, _)| (known, known));
    let near = known
        .chain(OTHER_NAMES)
        .map(|(spelled, meant)| {
            let spelled = spelled.split(':').next().unwrap_or_default();
            (strsim::normalized_damerau_levenshtein(&name, spelled), meant)
        })
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match near {
        Some((likeness, meant)) if likeness >= 0.6 => format!(" (did you mean '{meant}'?)"),
        _ => String::new(),
    }
}

impl PolicyKind {
    /// Text form and one line for each policy.
    pub fn catalogue() -> &'static [(&'static str, &'static str)] {
        &[
            ("opt", "Belady's optimum: evicts the page whose next reference is farthest (exact, offline)"),
            ("lru", "least recently used"),
            ("fifo", "first in, first out"),
            ("clock", "one reference bit and a hand"),
            ("random", "any resident page (random:SEED, default 1)"),
            ("lfu", "least frequently used since it came in, the oldest of equals"),
            ("lfu-aging", "LFU with dynamic aging (LFU-DA)"),
            ("2q", "2Q (2q:kin=SHARE,kout=SHARE of the frames, default 0.25 and 0.5)"),
            ("arc", "adaptive replacement cache"),
            (
                "lirs",
                "low inter-reference recency set (lirs:hir=SHARE,least=FRAMES for HIR pages, default 0.01 and 2)",
            ),
            ("clock-pro", "CLOCK-Pro with adaptive cold pages"),
            (
                "s3-fifo",
                "S3-FIFO (s3-fifo:small=SHARE,ghost=SHARE,promote=HITS,fill=main|small, default 0.1, 0.9, 2, main)",
            ),
            ("sieve", "SIEVE"),
            ("slru", "segmented LRU (slru:segments=N, default 4)"),
            ("ws:TAU", "Denning's working set: resident while referenced within the last TAU references"),
        ]
    }

    fn names() -> String {
        Self::catalogue().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }

    /// Whether the policy must know the stream before it starts.
    pub fn needs_future(&self) -> bool {
        matches!(self, Self::Opt)
    }

    /// Makes the policy with `frames` (at least 1) empty frames for the pages `0..pages`.
    ///
    /// # Panics
    /// When the policy [needs the future](Self::needs_future) and it is not given.
    pub fn build<'a>(&self, pages: u32, frames: u32, future: Option<&'a NextUse>) -> Box<dyn Policy + 'a> {
        let frames = frames.max(1);
        match *self {
            Self::Opt => Box::new(Opt::new(frames, future.expect("OPT needs the next uses"))),
            Self::Lru => Box::new(lru::Lru::new(pages, frames)),
            Self::Fifo => Box::new(fifo::Fifo::new(pages, frames)),
            Self::Clock => Box::new(clock::Clock::new(pages, frames)),
            Self::Random { seed } => Box::new(random::Random::new(pages, frames, seed)),
            Self::Lfu => Box::new(lfu::Lfu::new(pages, frames, false)),
            Self::LfuAging => Box::new(lfu::Lfu::new(pages, frames, true)),
            Self::TwoQ { kin, kout } => Box::new(two_q::TwoQ::new(pages, frames, kin, kout)),
            Self::Arc => Box::new(arc::Arc::new(pages, frames)),
            Self::Lirs { hir, least } => Box::new(lirs::Lirs::new(pages, frames, hir, least)),
            Self::ClockPro => Box::new(clock_pro::ClockPro::new(pages, frames)),
            Self::S3Fifo(parameters) => Box::new(s3_fifo::S3Fifo::new(pages, frames, parameters)),
            Self::Sieve => Box::new(sieve::Sieve::new(pages, frames)),
            Self::Slru { segments } => Box::new(slru::Slru::new(pages, frames, segments)),
            Self::WorkingSet { tau } => Box::new(ws::WorkingSet::new(pages, tau)),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opt => f.write_str("opt"),
            Self::Lru => f.write_str("lru"),
            Self::Fifo => f.write_str("fifo"),
            Self::Clock => f.write_str("clock"),
            Self::Random { seed } => write!(f, "random:{seed}"),
            Self::Lfu => f.write_str("lfu"),
            Self::LfuAging => f.write_str("lfu-aging"),
            Self::TwoQ { kin, kout } => write!(f, "2q:kin={kin},kout={kout}"),
            Self::Arc => f.write_str("arc"),
            Self::Lirs { hir, least } => write!(f, "lirs:hir={hir},least={least}"),
            Self::ClockPro => f.write_str("clock-pro"),
            Self::S3Fifo(s3_fifo::Parameters { small, ghost, promote, fill }) => {
                let fill = match fill {
                    Fill::Small => "small",
                    Fill::Main => "main",
                };
                write!(f, "s3-fifo:small={small},ghost={ghost},promote={promote},fill={fill}")
            }
            Self::Sieve => f.write_str("sieve"),
            Self::Slru { segments } => write!(f, "slru:segments={segments}"),
            Self::WorkingSet { tau } => write!(f, "ws:{tau}"),
        }
    }
}

/// The parameters behind the colon; each is taken out as it is read, and none may be left.
struct Parameters<'a> {
    policy: &'a str,
    list: Vec<(&'a str, &'a str)>,
}

impl<'a> Parameters<'a> {
    /// `only` is the name of the parameter that may be written without it.
    fn new(policy: &'a str, text: Option<&'a str>, only: &'static str) -> Self {
        let list = text.into_iter().flat_map(|t| t.split(','));
        Self { policy, list: list.map(|item| item.split_once('=').unwrap_or((only, item))).collect() }
    }

    fn error(&self, problem: String) -> PolicyError {
        PolicyError::Parameter { policy: self.policy.to_owned(), problem }
    }

    fn take<T: FromStr + PartialOrd + fmt::Display>(
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

    /// One of these words, the first of which is the default.
    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, PolicyError> {
        let Some(at) = self.list.iter().position(|(n, _)| *n == name) else { return Ok(words[0].1) };
        let (_, text) = self.list.remove(at);
        words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value).ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error(format!("{name} must be one of {}, not '{text}'", names.join(", ")))
        })
    }

    fn finish(self, kind: PolicyKind) -> Result<PolicyKind, PolicyError> {
        match self.list.first() {
            None => Ok(kind),
            Some((name, value)) => {
                Err(self.error(format!("'{name}={value}' is not a parameter here; it has: {kind}")))
            }
        }
    }
}

impl FromStr for PolicyKind {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix("model:").unwrap_or(text);
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let only = match name {
            "random" => "seed",
            "ws" => "tau",
            "lirs" => "hir",
            "slru" => "segments",
            _ => "",
        };
        let mut p = Parameters::new(text, rest, only);
        let kind = match name {
            "opt" => Self::Opt,
            "lru" => Self::Lru,
            "fifo" => Self::Fifo,
            "clock" => Self::Clock,
            "random" => Self::Random { seed: p.take("seed", 1, 0..=u64::MAX)? },
            "lfu" => Self::Lfu,
            "lfu-aging" => Self::LfuAging,
            "2q" => {
                Self::TwoQ { kin: p.take("kin", 0.25, 0.0..=1.0)?, kout: p.take("kout", 0.5, 0.0..=10.0)? }
            }
            "arc" => Self::Arc,
            "lirs" => {
                Self::Lirs { hir: p.take("hir", 0.01, 0.0..=1.0)?, least: p.take("least", 2, 1..=u32::MAX)? }
            }
            "clock-pro" => Self::ClockPro,
            "s3-fifo" => Self::S3Fifo(s3_fifo::Parameters {
                small: p.take("small", 0.1, 0.0..=1.0)?,
                ghost: p.take("ghost", 0.9, 0.0..=10.0)?,
                promote: p.take("promote", 2, 1..=3)?,
                fill: p.word("fill", &[("main", Fill::Main), ("small", Fill::Small)])?,
            }),
            "sieve" => Self::Sieve,
            "slru" => Self::Slru { segments: p.take("segments", 4, 1..=250)? },
            "ws" => match p.take("tau", 0, 1..=u64::MAX)? {
                0 => {
                    return Err(
                        p.error("write ws:TAU with a window of TAU references, such as ws:1000".into())
                    );
                }
                tau => Self::WorkingSet { tau },
            },
            _ => return Err(PolicyError::Unknown(text.to_owned())),
        };
        p.finish(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_policy_of_the_catalogue_parses_and_prints_its_parameters() {
        for (name, _) in PolicyKind::catalogue() {
            let kind: PolicyKind = name.replace("TAU", "1000").parse().unwrap();
            assert_eq!(kind.to_string().parse::<PolicyKind>().unwrap(), kind, "{name}");
        }
        assert_eq!("2q:kout=0.4".parse::<PolicyKind>().unwrap().to_string(), "2q:kin=0.25,kout=0.4");
        assert_eq!("model:lru".parse::<PolicyKind>().unwrap(), PolicyKind::Lru);
        assert_eq!(
            "s3-fifo:fill=small".parse::<PolicyKind>().unwrap().to_string(),
            "s3-fifo:small=0.1,ghost=0.9,promote=2,fill=small"
        );
        assert_eq!("random:7".parse::<PolicyKind>().unwrap().to_string(), "random:7");
    }

    #[test]
    fn bad_text_says_what_is_wanted() {
        for (text, wanted) in [
            ("mru", "clock-pro"),
            ("ws", "ws:TAU"),
            ("ws:0", "from 1"),
            ("lru:3", "not a parameter"),
            ("2q:kin=2", "from 0 to 1"),
            ("2q:kin=0.1,kin=0.2", "not a parameter"),
            ("s3-fifo:promote=x", "from 1 to 3"),
            ("s3-fifo:fill=ghost", "fill must be one of main, small"),
            ("lrux", "did you mean 'lru'?"),
            ("s3fifo", "did you mean 's3-fifo'?"),
            ("Belady", "did you mean 'opt'?"),
            ("lfuda", "did you mean 'lfu-aging'?"),
            ("clokc-pro", "did you mean 'clock-pro'?"),
        ] {
            let error = text.parse::<PolicyKind>().unwrap_err().to_string();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(!"xyzzy".parse::<PolicyKind>().unwrap_err().to_string().contains("did you mean"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(2q|ws|slru|s3-fifo|lirs|x)?:?[a-z0-9=,.:-]{0,20}") {
            if let Ok(kind) = text.parse::<PolicyKind>() {
                prop_assert_eq!(kind.to_string().parse::<PolicyKind>().unwrap(), kind);
            }
        }
    }
}
