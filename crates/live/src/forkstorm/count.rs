//! What was counted and sampled, as tables.

use std::collections::{HashMap, HashSet};

use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Recorder, TargetError};

use super::storm::Seen;
use crate::observe::Sheet;
use crate::perf::Profile;
use crate::perf::symbols::Symbols;

/// The table `operations`: each tracepoint's count, in all and for each fork.
pub(super) fn report(
    counts: &[(&'static str, Option<u64>)],
    seen: &Seen,
    recorder: &mut dyn Recorder,
) -> Result<(), TargetError> {
    let mut sheet = Sheet::new("operations", &[("count", Unit::Count), ("each.fork", Unit::Count)])
        .with_texts("tracepoint");
    // Forks by the kernel's own count, where it has one: a script's pipelines fork more than once.
    let forks = counts.iter().find(|(name, _)| *name == "sched:sched_process_fork").and_then(|(_, n)| *n);
    let forks = forks.map_or(seen.forks, |n| n as f64);
    for (name, count) in counts {
        let count = count.map(|n| n as f64);
        sheet.named(name, [count, count.map(|n| n / forks)]);
    }
    sheet.record(recorder)
}

/// A function's name, samples in it, samples in it and what it called.
pub(super) type Function = (String, u64, u64);

/// Functions by samples, the most first; and stacks, outermost first, `;` between, with theirs.
/// Samples in user mode are not the kernel's and left out.
pub(super) fn fold(profile: &Profile, symbols: &Symbols) -> (Vec<Function>, Vec<(String, u64)>) {
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
