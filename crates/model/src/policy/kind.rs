//! The policies by name: parsing, printing with every parameter, and making them.

use std::fmt;
use std::str::FromStr;

use super::opt::{NextUse, Opt};
use super::parameters::Parameters;
use super::s3_fifo::Fill;
use super::{
    Policy, PolicyError, aging, arc, cacheus, car, cflru, clock, clock_pro, fifo, gclock, hyperbolic, le_car,
    lfu, lfuda, lirs, lru, lru_k, mq, nru, pff, random, s3_fifo, sieve, slru, tiny_lfu, two_q, ws, wsclock,
};

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
    /// See [`super::lfuda`].
    Lfuda,
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
    /// See [`super::lru_k`].
    LruK {
        /// The reference that counts, from the last.
        k: u8,
    },
    /// See [`super::car`].
    Car,
    /// See [`super::mq`].
    Mq {
        /// Number of queues, 1 to 32.
        queues: u8,
        /// Lifetime in references as a share of the frames.
        life: f64,
        /// Size of the memory as a share of the frames.
        ghost: f64,
    },
    /// See [`super::tiny_lfu`].
    TinyLfu {
        /// The window as a share of the frames.
        window: f64,
    },
    /// See [`super::le_car`].
    LeCar {
        /// The learning rate.
        rate: f64,
        /// Seed of the draws.
        seed: u64,
    },
    /// See [`super::cacheus`].
    Cacheus {
        /// Seed of the draws.
        seed: u64,
    },
    /// See [`super::hyperbolic`].
    Hyperbolic {
        /// Pages that are looked at.
        sample: u32,
        /// Seed of the draws.
        seed: u64,
    },
    /// See [`super::nru`].
    Nru {
        /// References of a tick as a share of the frames.
        tick: f64,
        /// Seed of the draws.
        seed: u64,
    },
    /// See [`super::aging`].
    Aging {
        /// References of a tick as a share of the frames.
        tick: f64,
    },
    /// See [`super::gclock`].
    GClock {
        /// The bound of a counter.
        max: u8,
        /// The counter of a page that comes in.
        start: u8,
    },
    /// See [`super::cflru`].
    Cflru {
        /// The window as a share of the frames.
        window: f64,
    },
    /// See [`super::wsclock`].
    WsClock {
        /// τ in references as a share of the frames.
        tau: f64,
    },
    /// See [`super::pff`].
    Pff {
        /// The interval in references, at least 1.
        tau: u64,
    },
    /// See [`super::ws`].
    WorkingSet {
        /// The window in references, at least 1.
        tau: u64,
    },
}

impl PolicyKind {
    /// Whether the policy must know the stream before it starts.
    pub fn needs_future(&self) -> bool {
        matches!(self, Self::Opt)
    }

    /// Whether the policy decides itself how many pages are resident; the frames do not matter then.
    pub fn has_variable_space(&self) -> bool {
        matches!(self, Self::WorkingSet { .. } | Self::Pff { .. })
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
            Self::Lfu => Box::new(lfu::Lfu::new(pages, frames)),
            Self::Lfuda => Box::new(lfuda::Lfuda::new(pages, frames)),
            Self::TwoQ { kin, kout } => Box::new(two_q::TwoQ::new(pages, frames, kin, kout)),
            Self::Arc => Box::new(arc::Arc::new(pages, frames)),
            Self::Lirs { hir, least } => Box::new(lirs::Lirs::new(pages, frames, hir, least)),
            Self::ClockPro => Box::new(clock_pro::ClockPro::new(pages, frames)),
            Self::S3Fifo(parameters) => Box::new(s3_fifo::S3Fifo::new(pages, frames, parameters)),
            Self::Sieve => Box::new(sieve::Sieve::new(pages, frames)),
            Self::Slru { segments } => Box::new(slru::Slru::new(pages, frames, segments)),
            Self::LruK { k } => Box::new(lru_k::LruK::new(pages, frames, k)),
            Self::Car => Box::new(car::Car::new(pages, frames)),
            Self::Mq { queues, life, ghost } => Box::new(mq::Mq::new(pages, frames, queues, life, ghost)),
            Self::TinyLfu { window } => Box::new(tiny_lfu::TinyLfu::new(pages, frames, window)),
            Self::LeCar { rate, seed } => Box::new(le_car::LeCar::new(pages, frames, rate, seed)),
            Self::Cacheus { seed } => Box::new(cacheus::Cacheus::new(pages, frames, seed)),
            Self::Hyperbolic { sample, seed } => {
                Box::new(hyperbolic::Hyperbolic::new(pages, frames, sample, seed))
            }
            Self::Nru { tick, seed } => Box::new(nru::Nru::new(pages, frames, tick, seed)),
            Self::Aging { tick } => Box::new(aging::Aging::new(pages, frames, tick)),
            Self::GClock { max, start } => Box::new(gclock::GClock::new(pages, frames, max, start)),
            Self::Cflru { window } => Box::new(cflru::Cflru::new(pages, frames, window)),
            Self::WsClock { tau } => Box::new(wsclock::WsClock::new(pages, frames, tau)),
            Self::Pff { tau } => Box::new(pff::Pff::new(pages, tau)),
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
            Self::Lfuda => f.write_str("lfuda"),
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
            Self::LruK { k } => write!(f, "lru-k:{k}"),
            Self::Car => f.write_str("car"),
            Self::Mq { queues, life, ghost } => write!(f, "mq:queues={queues},life={life},ghost={ghost}"),
            Self::TinyLfu { window } => write!(f, "w-tinylfu:window={window}"),
            Self::LeCar { rate, seed } => write!(f, "lecar:rate={rate},seed={seed}"),
            Self::Cacheus { seed } => write!(f, "cacheus:{seed}"),
            Self::Hyperbolic { sample, seed } => write!(f, "hyperbolic:sample={sample},seed={seed}"),
            Self::Nru { tick, seed } => write!(f, "nru:tick={tick},seed={seed}"),
            Self::Aging { tick } => write!(f, "aging:tick={tick}"),
            Self::GClock { max, start } => write!(f, "gclock:max={max},start={start}"),
            Self::Cflru { window } => write!(f, "cflru:window={window}"),
            Self::WsClock { tau } => write!(f, "wsclock:tau={tau}"),
            Self::Pff { tau } => write!(f, "pff:{tau}"),
            Self::WorkingSet { tau } => write!(f, "ws:{tau}"),
        }
    }
}

/// References of a tick as a share of the frames.
const SHARES: std::ops::RangeInclusive<f64> = 0.0..=1e6;

impl FromStr for PolicyKind {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.strip_prefix("model:").unwrap_or(text);
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let only = match name {
            "random" | "cacheus" => "seed",
            "ws" | "pff" | "wsclock" => "tau",
            "aging" => "tick",
            "lru-k" => "k",
            "cflru" | "w-tinylfu" => "window",
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
            "lfuda" => Self::Lfuda,
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
            "lru-k" => Self::LruK { k: p.take("k", 2, 1..=16)? },
            "car" => Self::Car,
            "mq" => Self::Mq {
                queues: p.take("queues", 8, 1..=32)?,
                life: p.take("life", 10.0, SHARES)?,
                ghost: p.take("ghost", 4.0, 0.0..=100.0)?,
            },
            "w-tinylfu" => Self::TinyLfu { window: p.take("window", 0.01, 0.0..=1.0)? },
            "lecar" => Self::LeCar {
                rate: p.take("rate", 0.45, 0.0..=10.0)?,
                seed: p.take("seed", 1, 0..=u64::MAX)?,
            },
            "cacheus" => Self::Cacheus { seed: p.take("seed", 1, 0..=u64::MAX)? },
            "hyperbolic" => Self::Hyperbolic {
                sample: p.take("sample", 64, 1..=1_000_000)?,
                seed: p.take("seed", 1, 0..=u64::MAX)?,
            },
            "nru" => Self::Nru { tick: p.take("tick", 1.0, SHARES)?, seed: p.take("seed", 1, 0..=u64::MAX)? },
            "aging" => Self::Aging { tick: p.take("tick", 1.0, SHARES)? },
            "gclock" => Self::GClock { max: p.take("max", 3, 1..=254)?, start: p.take("start", 1, 0..=254)? },
            "cflru" => Self::Cflru { window: p.take("window", 0.25, 0.0..=1.0)? },
            "wsclock" => Self::WsClock { tau: p.take("tau", 0.5, 0.0..=1e6)? },
            "pff" => Self::Pff { tau: p.needed("tau", "an interval")? },
            "ws" => Self::WorkingSet { tau: p.needed("tau", "a window")? },
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
