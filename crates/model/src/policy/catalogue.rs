//! What policies there are: the form, one line and the source of each, and the refusal of a name that is none of them.

use super::PolicyKind;

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
    let name = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let known = PolicyKind::catalogue().iter().map(|one| (one.form, one.form));
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

/// A policy as it is listed.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    /// The text form; `TAU` stands for a number that must be given.
    pub form: &'static str,
    /// One line, with the parameters and their defaults.
    pub help: &'static str,
    /// Who published it.
    pub source: &'static str,
}

const fn one(form: &'static str, help: &'static str, source: &'static str) -> Described {
    Described { form, help, source }
}

const CATALOGUE: &[Described] = &[
    one(
        "opt",
        "Belady's optimum: evicts the page whose next reference is farthest (exact, offline)",
        "Belady 1966 (MIN)",
    ),
    one("lru", "least recently used", "Mattson, Gecsei, Slutz and Traiger 1970"),
    one("fifo", "first in, first out", "Belady 1966"),
    one("clock", "one reference bit and a hand", "Corbató 1968"),
    one("random", "any resident page (random:SEED, default 1)", "Belady 1966 (RAND)"),
    one("lfu", "least frequently used since it came in, the oldest of equals", "Shah, Mitra and Matani 2010"),
    one("lfuda", "LFU with dynamic aging (LFU-DA)", "Arlitt, Cherkasova, Dilley, Friedrich and Jin 2000"),
    one(
        "2q",
        "2Q (2q:kin=SHARE,kout=SHARE of the frames, default 0.25 and 0.5)",
        "Johnson and Shasha, VLDB 1994",
    ),
    one("arc", "adaptive replacement cache", "Megiddo and Modha, FAST 2003"),
    one(
        "lirs",
        "low inter-reference recency set (lirs:hir=SHARE,least=FRAMES for HIR pages, default 0.01 and 2)",
        "Jiang and Zhang, SIGMETRICS 2002",
    ),
    one("clock-pro", "CLOCK-Pro with adaptive cold pages", "Jiang, Chen and Zhang, USENIX 2005"),
    one(
        "s3-fifo",
        "S3-FIFO (s3-fifo:small=SHARE,ghost=SHARE,promote=HITS,fill=main|small, default 0.1, 0.9, 2, main)",
        "Yang, Zhang, Qiu, Yue and Rashmi, SOSP 2023",
    ),
    one("sieve", "SIEVE", "Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024"),
    one(
        "slru",
        "segmented LRU (slru:segments=N, default 4)",
        "Karedla, Love and Wherry 1994; Huang and others, SOSP 2013",
    ),
    one("lru-k", "by the K-th last reference (lru-k:K, default 2)", "O'Neil, O'Neil and Weikum, SIGMOD 1993"),
    one("car", "clock with adaptive replacement", "Bansal and Modha, FAST 2004"),
    one(
        "mq",
        "multi-queue (mq:queues=N,life=SHARE,ghost=SHARE of the frames, default 8, 10 and 4)",
        "Zhou, Philbin and Li, USENIX 2001",
    ),
    one(
        "w-tinylfu",
        "a window and admission by recent frequency (w-tinylfu:window=SHARE, default 0.01)",
        "Einziger, Friedman and Manes 2017",
    ),
    one(
        "lecar",
        "LRU or LFU, by weights that are learned (lecar:rate=R,seed=N, default 0.45 and 1)",
        "Vietri and others, HotStorage 2018",
    ),
    one(
        "cacheus",
        "LRU that resists scans or LFU that resists churn, by weights that are learned (cacheus:SEED, default 1)",
        "Rodriguez and others, FAST 2021",
    ),
    one(
        "hyperbolic",
        "fewest references for its time, of a sample (hyperbolic:sample=N,seed=N, default 64 and 1)",
        "Blankstein, Sen and Freedman, ATC 2017",
    ),
    one(
        "nru",
        "not recently used: a page of the lowest class of two bits (nru:tick=SHARE of the frames,seed=N, default 1 and 1)",
        "Tanenbaum and Bos 2014, 3.4.2",
    ),
    one(
        "aging",
        "eight-bit counters, shifted at each tick (aging:tick=SHARE of the frames in references, default 1)",
        "Tanenbaum and Bos 2014, 3.4.7",
    ),
    one(
        "gclock",
        "a hand that counts down (gclock:max=N,start=N, default 3 and 1)",
        "Smith 1978; Nicola, Dan and Dias 1992",
    ),
    one(
        "wsclock",
        "a hand that takes what has left the working set (wsclock:tau=SHARE of the frames in references, default 0.5)",
        "Carr and Hennessy, SOSP 1981",
    ),
    one(
        "cflru",
        "LRU that prefers a clean page in its window (cflru:window=SHARE, default 0.25)",
        "Park, Jung, Kang, Kim and Lee, CASES 2006",
    ),
    one(
        "pff:TAU",
        "page fault frequency: lets unused pages go at a fault more than TAU references after the last",
        "Chu and Opderbeck 1972",
    ),
    one(
        "ws:TAU",
        "Denning's working set: resident while referenced within the last TAU references",
        "Denning 1968",
    ),
];

impl PolicyKind {
    /// Every policy.
    pub fn catalogue() -> &'static [Described] {
        CATALOGUE
    }

    fn names() -> String {
        CATALOGUE.iter().map(|one| one.form).collect::<Vec<_>>().join(", ")
    }
}
