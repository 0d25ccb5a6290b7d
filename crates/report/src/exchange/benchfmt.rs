//! Go's benchmark format: a line a repetition, so that benchstat does its own statistics. Of several runs the name is a
//! key that it makes columns of (`benchstat -col run`); one run a file is for `benchstat before.txt after.txt`.

use pagelab_experiment::environment;
use std::collections::BTreeMap;
use std::io::{self, Write};

use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::{Experiment, Run};

use super::symbol;
use crate::runs::Measure;

pub(super) fn write(runs: &[(&Run, Vec<Measure>)], to: &mut impl Write) -> io::Result<()> {
    let mut units = BTreeMap::new();
    for (run, measures) in runs {
        for measure in measures {
            // One unit is exact only where every run of it is.
            let exact = units.entry(unit(measure)).or_insert((measure.better, true));
            exact.1 &= run.header.deterministic;
        }
    }
    for (unit, (better, exact)) in &units {
        let better = match better {
            Better::Lower => " better=lower",
            Better::Higher => " better=higher",
            Better::Neither => "",
        };
        let assume = if *exact { " assume=exact" } else { "" };
        if !(better.is_empty() && assume.is_empty()) {
            writeln!(to, "Unit {unit}{better}{assume}")?;
        }
    }
    for (run, measures) in runs {
        let header = &run.header;
        let fact = |key: &str| run.done().find_map(|r| r.observations.environment.get(key)).cloned();
        let conditions = [
            ("run", Some(header.name.clone())),
            ("target", Some(header.target.brief())),
            ("setting", Some(header.setting.to_string()).filter(|setting| !setting.is_empty())),
            ("kernel", fact(environment::KERNEL_RELEASE)),
            ("cpu", fact(environment::CPU_MODEL)),
        ];
        for (name, value) in conditions {
            let Some(value) = value else { continue };
            // Benchstat lays nothing side by side that differs in a key: only what makes the columns is one.
            let key = name == "run" && runs.len() > 1;
            writeln!(to, "{}{name}: {}", if key { "" } else { "# " }, value.replace(['\n', '\r'], " "))?;
        }
        let name = name(&header.experiment);
        for repetition in run.done() {
            write!(to, "{name} 1")?;
            for measure in measures {
                if let Some(value) = repetition.observations.metric_named(measure.name) {
                    write!(to, " {value} {}", unit(measure))?;
                }
            }
            writeln!(to)?;
        }
    }
    Ok(())
}

/// A benchmark's name: the experiment's, its parameters behind it as `/name=value`.
fn name(experiment: &Experiment) -> String {
    let line = experiment.to_string();
    let mut name = String::from("Benchmark");
    let mut letters = experiment.name().chars();
    name.extend(letters.next().map(|c| c.to_ascii_uppercase()));
    name.extend(letters);
    let mut value_next = false;
    for word in line.split_whitespace().skip(1) {
        match word.strip_prefix("--") {
            Some(option) if !option.is_empty() => {
                name += "/";
                name += option;
                value_next = true;
            }
            _ => {
                name += if value_next { "=" } else { "_" };
                name += word;
                value_next = false;
            }
        }
    }
    name
}

/// The name of a metric with its unit, as benchstat takes apart.
fn unit(measure: &Measure) -> String {
    let Measure { name, .. } = measure;
    match measure.unit {
        Unit::PerSecond => format!("{name}/s"),
        Unit::BytesPerSecond => format!("{name}-B/s"),
        Unit::PerMillionInstructions => format!("{name}/Minstr"),
        Unit::BytesPerMillionInstructions => format!("{name}-B/Minstr"),
        unit => match symbol(unit) {
            "" => (*name).to_owned(),
            symbol => format!("{name}-{symbol}"),
        },
    }
}
