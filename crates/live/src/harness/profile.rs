//! Where the kernel is during a load: samples as tables.
//!
//! The samples are equally far apart in time. In a guest whose clock counts instructions they are
//! equally far apart in instructions, and the profile is one of instructions.

use std::collections::{HashMap, HashSet};

use pagelab_experiment::build::{Sheet, metric, note};
use pagelab_experiment::observation::Level;
use pagelab_experiment::{Failure, Observation, Recorder, Result, metrics, tables};
use pagelab_kernel::perf::symbols::Symbols;
use pagelab_kernel::perf::{self, Profile, Sampling};

/// Functions of the table.
const FUNCTIONS: usize = 60;
/// Folded stacks are cut at this many bytes.
const STACKS: usize = 4 << 20;

/// Performs `load` and records its profile at `frequency` samples a second on each processor. The
/// load may take what was sampled so far ([`Sampling::poll`]), else there is room for the last 4
/// MiB.
///
/// # Errors
/// Those of the load, when the profile cannot be kept, and when it was `asked` for and cannot be taken.
pub fn take(
    frequency: u32,
    asked: bool,
    recorder: &mut dyn Recorder,
    load: impl FnOnce(&mut Sampling, &mut dyn Recorder) -> Result<()>,
) -> Result<()> {
    let mut sampling = match Sampling::clock(frequency) {
        Ok(sampling) => sampling,
        Err(error) if asked => {
            return Err(Failure::unsupported("no profile can be taken", perf::REMEDY).because(&error));
        }
        Err(error) => {
            return note(recorder, Level::Info, format!("no profile ({error}): {}", perf::REMEDY));
        }
    };
    load(&mut sampling, recorder)?;
    report(&sampling.finish(&[]), frequency, asked, recorder)
}

/// The table `profile` (functions by samples, as Morton's) and the log `folded` (stacks, outermost
/// first, as flame graphs are drawn from).
fn report(profile: &Profile, frequency: u32, asked: bool, recorder: &mut dyn Recorder) -> Result<()> {
    let Some(symbols) = Symbols::read() else {
        if asked {
            let remedy = "show them to root with --set /proc/sys/kernel/kptr_restrict=0";
            return Err(Failure::unsupported("no profile: the kernel hides its symbols", remedy));
        }
        return note(
            recorder,
            Level::Info,
            "no profile: the kernel hides its symbols (--set /proc/sys/kernel/kptr_restrict=0 shows them to root)",
        );
    };
    let (functions, stacks) = fold(profile, &symbols);
    let kernel: u64 = functions.iter().map(|(_, own, _)| own).sum();
    let period = 1e9 / f64::from(frequency);
    let mut sheet = Sheet::new(tables::profile::TABLE);
    for (name, own, with) in functions.iter().take(FUNCTIONS) {
        let own = *own as f64;
        sheet.named([name], [Some(own), Some(own / kernel as f64), Some(own * period), Some(*with as f64)]);
    }
    sheet.record(recorder)?;
    let all = profile.samples.len() as f64;
    metric(recorder, metrics::PROFILE_SAMPLES, Some(all))?;
    metric(recorder, metrics::PROFILE_KERNEL, (all > 0.0).then(|| kernel as f64 / all))?;
    let mut folded = String::new();
    for (stack, samples) in &stacks {
        if folded.len() + stack.len() > STACKS {
            break;
        }
        folded += &format!("{stack} {samples}\n");
    }
    recorder.observe(Observation::Log("folded".into(), folded))?;
    if profile.lost > 0 {
        note(recorder, Level::Info, format!("{} records of the profile were lost", profile.lost))?;
    }
    Ok(())
}

/// A function's name, samples in it, samples in it and what it called.
type Function = (String, u64, u64);

/// Functions by samples, the most first; and stacks, outermost first, `;` between, with theirs.
/// Samples in user mode are not the kernel's and left out.
fn fold(profile: &Profile, symbols: &Symbols) -> (Vec<Function>, Vec<(String, u64)>) {
    let mut functions: HashMap<&str, (u64, u64)> = HashMap::new();
    let mut stacks: HashMap<String, u64> = HashMap::new();
    for sample in profile.samples.iter().filter(|s| !s.chain.is_empty()) {
        let names: Vec<&str> = sample.chain.iter().map(|&address| symbols.name(address)).collect();
        functions.entry(names[0]).or_default().0 += 1;
        for name in names.iter().copied().collect::<HashSet<_>>() {
            functions.entry(name).or_default().1 += 1;
        }
        let stack: Vec<&str> = names.iter().rev().copied().collect();
        *stacks.entry(stack.join(";")).or_default() += 1;
    }
    let mut functions: Vec<Function> =
        functions.into_iter().map(|(name, (own, with))| (name.to_owned(), own, with)).collect();
    functions.sort_by(|a, b| (b.1, b.2, &a.0).cmp(&(a.1, a.2, &b.0)));
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    (functions, stacks)
}
