//! Each policy from 1 to 100% of the pages: no size may take much longer than another, or than
//! LIRS. Prints a table for docs/src/evidence/performance.md: nanoseconds of processor time a
//! reference, medians of rounds in which all take turns.
//!
//! `cargo bench -p pagelab-model --bench sizes -- [--rounds N] [POLICY...]`

use std::hint::black_box;
use std::time::{Duration, Instant};

use pagelab_model::policy::PolicyKind;
use pagelab_model::replay::replay;
use pagelab_reference::{Pattern, Stream};

const PAGES: u32 = 200_000;
const REFERENCES: u64 = 2_000_000;
const PERCENT: [u32; 8] = [1, 5, 20, 50, 70, 90, 99, 100];

/// Processor time of this thread, which other load lengthens least; else the time since the first call.
fn clock() -> Duration {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse().ok());
    spent.map_or_else(|| BEGUN.get_or_init(Instant::now).elapsed(), Duration::from_nanos)
}

/// Nanoseconds a reference of one replay.
fn once(stream: &Stream, kind: &PolicyKind, percent: u32) -> f64 {
    let begin = clock();
    black_box(replay(stream, kind, PAGES * percent / 100));
    (clock() - begin).as_nanos() as f64 / REFERENCES as f64
}

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds = match words.iter().position(|word| word == "--rounds") {
        Some(at) => words.drain(at..at + 2).nth(1).and_then(|n| n.parse().ok()).expect("--rounds N"),
        None => 3,
    };
    let stream = Pattern::Zipf(0.8).stream(PAGES.into(), REFERENCES, 1).expect("the pattern fits");
    let lirs = "lirs".to_owned();
    let forms = PolicyKind::catalogue().iter().map(|one| one.form.replace("TAU", "10000"));
    let name = |form: &str| form.split(':').next().unwrap_or(form).to_owned();
    let forms: Vec<String> =
        forms.filter(|form| words.is_empty() || words.contains(&name(form)) || *form == lirs).collect();
    let kinds: Vec<PolicyKind> =
        forms.iter().map(|form| form.parse().expect("the catalogue's names parse")).collect();
    let mut times = vec![vec![Vec::new(); PERCENT.len()]; kinds.len()];
    for _ in 0..rounds {
        for (size, percent) in PERCENT.into_iter().enumerate() {
            for (of_it, kind) in times.iter_mut().zip(&kinds) {
                of_it[size].push(once(&stream, kind, percent));
            }
        }
    }
    let median = |list: &Vec<f64>| {
        let mut list = list.clone();
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    let medians: Vec<Vec<f64>> = times.iter().map(|of_it| of_it.iter().map(median).collect()).collect();
    let base =
        &medians[kinds.iter().position(|kind| kind.to_string().starts_with(&lirs)).expect("LIRS is one")];
    println!("| policy | {} | most, of LIRS's |", PERCENT.map(|percent| format!("{percent}%")).join(" | "));
    println!("|{}", "---|".repeat(PERCENT.len() + 2));
    for (form, of_it) in forms.iter().zip(&medians) {
        let most = of_it.iter().zip(base).map(|(one, lirs)| one / lirs).fold(0.0, f64::max);
        // Whoever walks over its pages at each miss takes hundreds of times as long; those that rank them 3 to 11.
        let ranks = ["lru-k", "lecar", "hyperbolic", "cacheus", "lfuda"].contains(&&*name(form));
        assert!(most < if ranks { 20.0 } else { 15.0 }, "{form}: {most:.1} times as long as LIRS");
        let cells: Vec<String> = of_it.iter().map(|time| format!("{time:.0}")).collect();
        println!("| `{}` | {} | {most:.1} × |", name(form), cells.join(" | "));
    }
}
