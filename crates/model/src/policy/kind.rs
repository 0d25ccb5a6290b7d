//! The policies: one table with the name, the parameters with their defaults, the source and the
//! constructor of each. Parsing, printing, the catalogue (and with it completions, documentation
//! and Python) derive from it.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use super::lru_k::History;
use super::opt::{NextUse, Opt};
use super::parameters::Parameters;
use super::s3_fifo::Fill;
use super::{
    Described, Policy, PolicyError, aging, arc, cacheus, car, cflru, clock, clock_pro, fifo, gclock,
    hyperbolic, le_car, lfu, lfuda, lirs, lru, lru_k, mq, mru, nru, pff, random, s3_fifo, sieve, slru,
    tiny_lfu, two_q, ws, wsclock,
};

/// References of a tick as a share of the frames.
const SHARES: std::ops::RangeInclusive<f64> = 0.0..=1e6;
/// Seeds of draws.
const SEEDS: std::ops::RangeInclusive<u64> = 0..=u64::MAX;

/// The part of a form before the colon.
fn name(form: &str) -> &str {
    form.split(':').next().unwrap_or(form)
}

/// A policy's text: its name, and every parameter; `bare`: without their names.
fn print(f: &mut fmt::Formatter, name: &str, bare: bool, list: &[(&str, &dyn fmt::Display)]) -> fmt::Result {
    f.write_str(name)?;
    for (n, (parameter, value)) in list.iter().enumerate() {
        f.write_str(if n == 0 { ":" } else { "," })?;
        if bare { write!(f, "{value}")? } else { write!(f, "{parameter}={value}")? }
    }
    Ok(())
}

/// Each policy: the form, the variant (`bare`: its parameter is printed without a name), the
/// parameters and how they are [taken](Parameters) with their defaults, one line, the source, and
/// the constructor of the three values named first. The first parameter may be written without its
/// name.
macro_rules! policies {
    (
        |$pages:ident, $frames:ident, $future:ident|
        $(
            $form:literal $variant:ident $($bare:ident)?
            $({ $($parameter:ident: $type:ty = $take:ident($($argument:expr),*)),* })?,
            $help:literal, $source:literal, $make:expr;
        )*
    ) => {
        /// A policy and its parameters. The text form is a name, or a name and parameters:
        /// `ws:1000`, `2q:kin=0.25,kout=0.5`; `model:` may stand before it. [`fmt::Display`] prints
        /// every parameter, also those left at their defaults.
        #[derive(Clone, Debug, PartialEq)]
        pub enum PolicyKind {
            $(
                #[doc = $help]
                $variant $({
                    $(#[doc = concat!("The parameter `", stringify!($parameter), "`.")] $parameter: $type),*
                })?,
            )*
        }

        impl PolicyKind {
            /// Makes the policy with `frames` (at least 1) empty frames for the pages `0..pages`.
            ///
            /// # Panics
            /// When the policy [needs the future](Self::needs_future) and it is not given.
            pub fn build<'a>(
                &self,
                $pages: u32,
                $frames: u32,
                $future: Option<&'a NextUse>,
            ) -> Box<dyn Policy + 'a> {
                let $frames = $frames.max(1);
                match *self {
                    $(Self::$variant $({ $($parameter),* })? => Box::new($make),)*
                }
            }

            /// Every policy.
            pub fn catalogue() -> &'static [Described] {
                static CATALOGUE: LazyLock<Vec<Described>> =
                    LazyLock::new(|| vec![$(Described::new($form, $help, $source)),*]);
                &CATALOGUE
            }
        }

        impl fmt::Display for PolicyKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$variant $({ $($parameter),* })? => {
                        let bare = !concat!($(stringify!($bare))?).is_empty();
                        print(f, name($form), bare, &[$($((stringify!($parameter), $parameter)),*)?])
                    })*
                }
            }
        }

        impl FromStr for PolicyKind {
            type Err = PolicyError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let text = text.strip_prefix("model:").unwrap_or(text);
                let (named, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
                $(
                    if named == name($form) {
                        let first: &[&str] = &[$($(stringify!($parameter)),*)?];
                        let mut _p = Parameters::new(text, rest, first.first().copied().unwrap_or_default());
                        let kind = Self::$variant $({ $(
                            $parameter: _p.$take(stringify!($parameter), $($argument),*)?
                        ),* })?;
                        return _p.finish(kind);
                    }
                )*
                Err(Self::unknown(text))
            }
        }
    };
}

policies! {
    |pages, frames, future|

    "opt" Opt,
    "Belady's optimum: evicts the page whose next reference is farthest (exact, offline)",
    "Belady 1966 (MIN)",
    Opt::new(frames, future.expect("OPT needs the next uses"));

    "lru" Lru,
    "least recently used",
    "Mattson, Gecsei, Slutz and Traiger 1970",
    lru::Lru::new(pages, frames);

    "fifo" Fifo,
    "first in, first out",
    "Belady 1966",
    fifo::Fifo::new(pages, frames);

    "mru" Mru,
    "most recently used: for loops larger than memory",
    "Chou and DeWitt, VLDB 1985",
    mru::Mru::new(pages, frames);

    "clock" Clock,
    "one reference bit and a hand",
    "Corbató 1968",
    clock::Clock::new(pages, frames);

    "random" Random bare { seed: u64 = take(1, SEEDS) },
    "any resident page, by a seed",
    "Belady 1966 (RAND)",
    random::Random::new(pages, frames, seed);

    "lfu" Lfu,
    "least frequently used since it came in, the oldest of equals",
    "Shah, Mitra and Matani 2010",
    lfu::Lfu::new(pages, frames);

    "lfuda" Lfuda,
    "LFU with dynamic aging (LFU-DA)",
    "Arlitt, Cherkasova, Dilley, Friedrich and Jin 2000",
    lfuda::Lfuda::new(pages, frames);

    "2q" TwoQ { kin: f64 = take(0.25, 0.0..=1.0), kout: f64 = take(0.5, 0.0..=10.0) },
    "2Q; A1in and A1out as shares of the frames",
    "Johnson and Shasha, VLDB 1994",
    two_q::TwoQ::new(pages, frames, kin, kout);

    "arc" Arc,
    "adaptive replacement cache",
    "Megiddo and Modha, FAST 2003",
    arc::Arc::new(pages, frames);

    "lirs" Lirs { hir: f64 = take(0.01, 0.0..=1.0), least: u32 = take(2, 1..=u32::MAX) },
    "low inter-reference recency set; HIR pages as a share of the frames, and at least so many",
    "Jiang and Zhang, SIGMETRICS 2002",
    lirs::Lirs::new(pages, frames, hir, least);

    "clock-pro" ClockPro,
    "CLOCK-Pro with adaptive cold pages",
    "Jiang, Chen and Zhang, USENIX 2005",
    clock_pro::ClockPro::new(pages, frames);

    "s3-fifo" S3Fifo {
        small: f64 = take(0.1, 0.0..=1.0), ghost: f64 = take(0.9, 0.0..=10.0), promote: u8 = take(2, 1..=3),
        fill: Fill = word(&[("main", Fill::Main), ("small", Fill::Small)])
    },
    "S3-FIFO. Queues are shares of the frames. Then hits that promote, and the queue that is filled first \
    (main or small)",
    "Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023",
    s3_fifo::S3Fifo::new(pages, frames, small, ghost, promote, fill);

    "sieve" Sieve,
    "SIEVE",
    "Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024",
    sieve::Sieve::new(pages, frames);

    "slru" Slru { segments: u8 = take(4, 1..=250) },
    "segmented LRU",
    "Karedla, Love and Wherry 1994; Huang and others, SOSP 2013",
    slru::Slru::new(pages, frames, segments);

    "lru-k" LruK {
        k: u8 = take(2, 1..=16),
        history: History = word(&[("all", History::All), ("resident", History::Resident)])
    },
    "by the K-th last reference; the pages whose references are remembered (all, or those resident)",
    "O'Neil, O'Neil and Weikum, SIGMOD 1993",
    lru_k::LruK::new(pages, frames, k, history);

    "car" Car,
    "clock with adaptive replacement",
    "Bansal and Modha, FAST 2004",
    car::Car::new(pages, frames);

    "mq" Mq {
        queues: u8 = take(8, 1..=32), life: f64 = take(10.0, SHARES), ghost: f64 = take(4.0, 0.0..=100.0)
    },
    "multi-queue; lifetime in references and ghosts as shares of the frames",
    "Zhou, Philbin and Li, USENIX 2001",
    mq::Mq::new(pages, frames, queues, life, ghost);

    "w-tinylfu" TinyLfu { window: f64 = take(0.01, 0.0..=1.0) },
    "a window (a share of the frames) and admission by recent frequency",
    "Einziger, Friedman and Manes 2017",
    tiny_lfu::TinyLfu::new(pages, frames, window);

    "lecar" LeCar { rate: f64 = take(0.45, 0.0..=10.0), seed: u64 = take(1, SEEDS) },
    "LRU or LFU, by weights that are learned at a rate",
    "Vietri and others, HotStorage 2018",
    le_car::LeCar::new(pages, frames, rate, seed);

    "cacheus" Cacheus bare { seed: u64 = take(1, SEEDS) },
    "LRU that resists scans or LFU that resists churn, by weights that are learned",
    "Rodriguez and others, FAST 2021",
    cacheus::Cacheus::new(pages, frames, seed);

    "hyperbolic" Hyperbolic { sample: u32 = take(64, 1..=1_000_000), seed: u64 = take(1, SEEDS) },
    "fewest references for its time, of a sample of pages",
    "Blankstein, Sen and Freedman, ATC 2017",
    hyperbolic::Hyperbolic::new(pages, frames, sample, seed);

    "nru" Nru { tick: f64 = take(1.0, SHARES), seed: u64 = take(1, SEEDS) },
    "not recently used: a page of the lowest class of two bits; references of a tick as a share of the frames",
    "Tanenbaum and Bos 2014, 3.4.2",
    nru::Nru::new(pages, frames, tick, seed);

    "aging" Aging { tick: f64 = take(1.0, SHARES) },
    "eight-bit counters, shifted at each tick; references of a tick as a share of the frames",
    "Tanenbaum and Bos 2014, 3.4.7",
    aging::Aging::new(pages, frames, tick);

    "gclock" GClock { max: u8 = take(3, 1..=254), start: u8 = take(1, 0..=254) },
    "a hand that counts down; the bound of a counter, and the counter of a page that comes in",
    "Smith 1978; Nicola, Dan and Dias 1992",
    gclock::GClock::new(pages, frames, max, start);

    "wsclock" WsClock { tau: f64 = take(0.5, SHARES) },
    "a hand that takes what has left the working set; the window in references as a share of the frames",
    "Carr and Hennessy, SOSP 1981",
    wsclock::WsClock::new(pages, frames, tau);

    "cflru" Cflru { window: f64 = take(0.25, 0.0..=1.0) },
    "LRU that prefers a clean page in its window (a share of the frames)",
    "Park, Jung, Kang, Kim and Lee, CASES 2006",
    cflru::Cflru::new(pages, frames, window);

    "pff:TAU" Pff bare { tau: u64 = needed("an interval") },
    "page fault frequency: lets unused pages go at a fault more than TAU references after the last",
    "Chu and Opderbeck 1972",
    pff::Pff::new(pages, tau);

    "ws:TAU" WorkingSet bare { tau: u64 = needed("a window") },
    "Denning's working set: resident while referenced within the last TAU references",
    "Denning 1968",
    ws::WorkingSet::new(pages, tau);
}

impl PolicyKind {
    /// Whether the policy must know the stream before it starts.
    pub fn needs_future(&self) -> bool {
        matches!(self, Self::Opt)
    }

    /// Whether the policy decides itself how many pages are resident; the frames do not matter
    /// then.
    pub fn has_variable_space(&self) -> bool {
        matches!(self, Self::WorkingSet { .. } | Self::Pff { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_policy_of_the_catalogue_parses_and_prints_its_parameters() {
        for name in PolicyKind::catalogue().iter().map(|one| one.form) {
            let kind: PolicyKind = name.replace("TAU", "1000").parse().unwrap();
            assert_eq!(kind.to_string().parse::<PolicyKind>().unwrap(), kind, "{name}");
        }
        assert_eq!("2q:kout=0.4".parse::<PolicyKind>().unwrap().to_string(), "2q:kin=0.25,kout=0.4");
        assert_eq!("model:lru".parse::<PolicyKind>().unwrap(), PolicyKind::Lru);
        assert_eq!(
            "s3-fifo:fill=small".parse::<PolicyKind>().unwrap().to_string(),
            "s3-fifo:small=0.1,ghost=0.9,promote=2,fill=small"
        );
        assert_eq!("2q:0.3".parse::<PolicyKind>().unwrap().to_string(), "2q:kin=0.3,kout=0.5");
        assert_eq!("slru:3".parse::<PolicyKind>().unwrap().to_string(), "slru:segments=3");
        let help = |form| &PolicyKind::catalogue().iter().find(|one| one.form == form).unwrap().help;
        assert!(help("2q").ends_with("(default 2q:kin=0.25,kout=0.5)") && !help("lru").contains("default"));
        assert_eq!("random:7".parse::<PolicyKind>().unwrap().to_string(), "random:7");
    }

    #[test]
    fn bad_text_says_what_is_wanted() {
        for (text, wanted) in [
            ("nonesuch", "clock-pro"),
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
            ("lfu-da", "did you mean 'lfuda'?"),
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
