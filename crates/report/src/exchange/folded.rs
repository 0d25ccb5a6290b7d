//! Folded stacks: a line a stack, outermost function first, with its weight; the stacks of all repetitions together.

use std::collections::BTreeMap;
use std::io::Write;

use pagelab_experiment::Run;

use super::{ExchangeError, nothing};
use crate::page::flame::{LOG, stacks};

/// Of several runs the name is the outermost frame.
pub(super) fn write(runs: &[Run], to: &mut impl Write) -> Result<(), ExchangeError> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for run in runs {
        let logs = run.done().flat_map(|repetition| &repetition.observations.logs);
        for (_, text) in logs.filter(|(name, _)| name == LOG) {
            for (stack, weight) in stacks(text) {
                let stack = match runs {
                    [_] => stack.to_owned(),
                    _ => format!("{};{stack}", run.header.name.replace(';', ":")),
                };
                *sums.entry(stack).or_default() += weight;
            }
        }
    }
    if sums.is_empty() {
        return Err(nothing(runs, "there are no stacks", "run with --profile 99, which needs root"));
    }
    for (stack, weight) in sums {
        writeln!(to, "{stack} {weight}")?;
    }
    Ok(())
}
