//! Fuzzing without instrumentation: inputs are good ones, spoiled. A target may refuse an input, and must neither
//! panic nor go on for long.
//!
//! Runs for `FUZZ_SECONDS` (two without it), from `FUZZ_SEED` (another each time without it). An input that fails
//! is written to `target/fuzz`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::random::{Random, seed};

/// How much processor time one input may take: on a busy machine the others have the rest.
const MAX_CASE_TIME: Duration = Duration::from_secs(10);

/// Gives spoiled inputs to `target`; how many there were. Of two good inputs parts are joined now and then.
///
/// # Panics
/// When an input makes the target panic, or takes more than ten seconds of processor time.
pub fn fuzz(name: &str, good: &[Vec<u8>], target: impl FnMut(&[u8])) -> u64 {
    fuzz_within(MAX_CASE_TIME, name, good, target)
}

/// As [`fuzz`] where an input may take so much.
fn fuzz_within(longest: Duration, name: &str, good: &[Vec<u8>], mut target: impl FnMut(&[u8])) -> u64 {
    let number = |variable: &str| std::env::var(variable).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(2));
    let seed = number("FUZZ_SEED").unwrap_or_else(seed);
    let (mut random, begun, mut inputs) = (Random::new(seed), Instant::now(), 0);
    while begun.elapsed() < seconds {
        let mut bytes = pick(&mut random, good);
        match random.below(20) {
            0 => {
                let other = pick(&mut random, good);
                let (at, from) = (random.below(bytes.len() as u64 + 1), random.below(other.len() as u64 + 1));
                bytes.truncate(at as usize);
                bytes.extend_from_slice(&other[from as usize..]);
            }
            1 => bytes = (0..random.below(300)).map(|_| random.next() as u8).collect(),
            _ => random.spoil(&mut bytes),
        }
        let started = spent();
        let performed = catch_unwind(AssertUnwindSafe(|| target(&bytes)));
        let took = spent().saturating_sub(started);
        inputs += 1;
        if performed.is_err() || took > longest {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fuzz");
            let file = folder.join(format!("{name}-{seed}-{inputs}"));
            let kept = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, &bytes));
            panic!(
                "{name}: input {inputs} of seed {seed} failed after {took:?}; kept in {} ({kept:?})",
                file.display()
            );
        }
    }
    println!("{name}: {inputs} inputs in {:.0} s, seed {seed}", begun.elapsed().as_secs_f64());
    inputs
}

/// The processor time of this thread.
fn spent() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

fn pick(random: &mut Random, good: &[Vec<u8>]) -> Vec<u8> {
    good.get(random.below(good.len() as u64) as usize).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_differ_and_a_panic_is_found() {
        let good = [b"a good input".to_vec()];
        let mut seen = std::collections::HashSet::new();
        let failed = catch_unwind(AssertUnwindSafe(|| {
            fuzz("itself", &good, |bytes| {
                seen.insert(bytes.to_vec());
                assert!(seen.len() < 100, "as asked");
            })
        }));
        assert!(failed.is_err() && seen.len() == 100);
    }

    #[test]
    fn what_keeps_the_processor_is_found_and_what_waits_is_not() {
        let longest = Duration::from_millis(200);
        let seen_by = |hold_up: &dyn Fn()| {
            let mut seen = 0;
            let failed = catch_unwind(AssertUnwindSafe(|| {
                fuzz_within(longest, "itself", &[b"a good input".to_vec()], |_| {
                    seen += 1;
                    if seen == 1 {
                        hold_up();
                    }
                    assert!(seen < 100, "as asked");
                })
            }));
            assert!(failed.is_err());
            seen
        };
        assert_eq!(seen_by(&|| std::thread::sleep(2 * longest)), 100);
        let keep = || {
            let begun = spent();
            while spent() - begun <= longest {}
        };
        assert_eq!(seen_by(&keep), 1);
    }
}
