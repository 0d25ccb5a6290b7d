//! `make torture`: kills pagelab at random moments, fills its disks, spoils its notebooks, traces and fixtures,
//! gives it hostile names, has many write at once, keeps processes, /proc and /sys from it, plants links and attacks
//! its exporter, for 30 minutes or `TORTURE_SECONDS`; with `TORTURE_KINDS=kill` the kinds of that beginning alone,
//! with `TORTURE_KILLS` until so many processes are killed.
//!
//! Each try is in a folder of its own and is followed by a look whether anything is left on the machine. Prints
//! tries and failures by kind; a failure names its seed, with which `TORTURE_SEED` begins a run that repeats it.

mod files;
mod kills;
mod lab;
mod network;
mod scarce;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lab::Lab;
use pagelab_testing::random::{self, Random};

/// What goes wrong in a try, in words.
type Try = fn(&Lab, &mut Random) -> Result<(), String>;

/// The kinds of tries, and each one's share of them.
const KINDS: [(&str, Try, u64); 19] = [
    ("kill the parent", kills::parent, 14),
    ("kill the worker", kills::worker, 10),
    ("kill all processes", kills::all, 10),
    ("kill the recovery", kills::recovery, 10),
    ("interrupt, once or often", kills::interrupt, 14),
    ("full disk for the notebook", files::full_disk, 6),
    ("full disk for the journal", files::full_state, 3),
    ("spoiled notebook", files::notebook, 12),
    ("spoiled trace", files::trace, 6),
    ("spoiled fixture", files::fixture, 6),
    ("hostile names", files::names, 3),
    ("random arguments", files::arguments, 10),
    ("writers at once", files::writers, 3),
    ("exporter under attack", network::exporter, 2),
    ("clock server under attack", network::clock, 1),
    ("two to six tasks", scarce::tasks, 4),
    ("plans of too many tasks", scarce::bombs, 2),
    ("planted links", scarce::links, 4),
    ("no /proc, no /sys", scarce::missing, 4),
];

fn main() -> ExitCode {
    let seconds = number("TORTURE_SECONDS").unwrap_or(1800);
    let seed = number("TORTURE_SEED").unwrap_or_else(random::seed);
    let program =
        std::env::var_os("PAGELAB").map_or_else(|| PathBuf::from("target/release/pagelab"), PathBuf::from);
    let Ok(program) = program.canonicalize() else {
        eprintln!("torture: no {}: build it (make build), or name it with PAGELAB", program.display());
        return ExitCode::from(2);
    };
    let kinds = std::env::var("TORTURE_KINDS").unwrap_or_default();
    let most_kills = number("TORTURE_KILLS").unwrap_or(u64::MAX);
    println!("torture: {} for {seconds} s, seed {seed}", program.display());
    let (started, end) = (Instant::now(), Duration::from_secs(seconds));
    let mut counts = [(0_u64, 0_u64); KINDS.len()];
    let mut told = Instant::now();
    // With a seed that was given, the first try is the one that failed under it.
    let mut seeds = Random::new(seed);
    let mut next = seed;
    while started.elapsed() < end && kills() < most_kills {
        let mut random = Random::new(next);
        let kind = chosen(random.below(KINDS.iter().map(|(.., share)| share).sum()));
        let (name, perform, _) = KINDS[kind];
        if !name.starts_with(&kinds) {
            next = seeds.next();
            continue;
        }
        counts[kind].0 += 1;
        let mut lab = Lab::new(&program);
        if let Err(why) = perform(&lab, &mut random).and_then(|()| lab.nothing_is_left()) {
            counts[kind].1 += 1;
            println!("FAILED {name} (TORTURE_SEED={next}): {why}");
            lab.keep();
        }
        next = seeds.next();
        if told.elapsed() > Duration::from_secs(60) {
            told = Instant::now();
            let (tries, failures) = sum(&counts);
            let (seconds, kills) = (started.elapsed().as_secs(), kills());
            println!("{seconds:>5} s  {tries} tries, {failures} failures, {kills} processes killed");
        }
    }
    println!("\n{:<28}{:>8}{:>10}", "kind", "tries", "failures");
    let chosen = KINDS.iter().zip(&counts).filter(|((name, ..), _)| name.starts_with(&kinds));
    for ((name, ..), (tries, failures)) in chosen.clone() {
        println!("{name:<28}{tries:>8}{failures:>10}");
    }
    let (tries, failures) = sum(&counts);
    println!("{:<28}{tries:>8}{failures:>10}   in {} s", "all", started.elapsed().as_secs());
    let all_kills = kills();
    let killed = kills::KILLED.lock().expect("no thread panics with it");
    let killed: Vec<String> = killed.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("killed processes: {all_kills} ({})", killed.join(", "));
    let ends = kills::ENDS.lock().expect("no thread panics with it");
    let late = ends.iter().filter(|took| **took > Duration::from_secs(1)).count();
    let longest = ends.iter().max().copied().unwrap_or_default();
    println!(
        "ended within a second of Ctrl-C: {} of {}; the longest after {longest:.1?}",
        ends.len() - late,
        ends.len()
    );
    let never = chosen.filter(|(_, (tries, _))| *tries == 0).map(|((name, ..), _)| *name);
    let never: Vec<&str> = never.collect();
    if !never.is_empty() {
        println!("never tried: {}", never.join(", "));
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Processes killed so far.
fn kills() -> u64 {
    kills::KILLED.lock().expect("no thread panics with it").values().sum()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The kind whose share this place among all shares is in.
fn chosen(mut place: u64) -> usize {
    for (kind, (.., share)) in KINDS.iter().enumerate() {
        if place < *share {
            return kind;
        }
        place -= share;
    }
    unreachable!("a place beyond all shares")
}

fn sum(counts: &[(u64, u64)]) -> (u64, u64) {
    counts.iter().fold((0, 0), |(tries, failures), count| (tries + count.0, failures + count.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_tried_as_often_as_its_share_says() {
        let mut tried = [0; KINDS.len()];
        for place in 0..KINDS.iter().map(|(.., share)| share).sum() {
            tried[chosen(place)] += 1;
        }
        assert_eq!(tried, KINDS.map(|(.., share)| share));
    }
}
