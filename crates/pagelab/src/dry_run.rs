//! `run --dry-run`: what would be performed, under which conditions, and what it would change.

use std::process::ExitCode;

use anyhow::Result;
use pagelab_experiment::Plan;
use pagelab_report::text::{self, bytes, count};
use serde_json::{Value, json};

use crate::context::Context;
use crate::output::{print_json, say, sentences};
use crate::performance::Planned;

/// Prints the plans.
///
/// # Errors
/// When standard output cannot be written.
pub fn print(plans: &[Planned], repeat: u32, as_json: bool, context: &Context) -> Result<ExitCode> {
    if as_json {
        let list: Vec<Value> = plans.iter().map(|planned| of(planned, repeat)).collect();
        return print_json("plans", list.into());
    }
    for planned in plans {
        let plan = planned.plan();
        say!("pagelab run {} --on {}", plan.experiment, planned.target());
        let rows: Vec<Vec<String>> = plan
            .conditions
            .iter()
            .map(|c| vec![c.name.clone(), c.value.clone(), c.origin.to_string()])
            .collect();
        say!("{}", text::table(&["condition", "value", "origin"], &rows, &context.style));
        for (name, value) in facts(plan, planned.repetitions(repeat)) {
            sentences(&value, &format!("{name}: "), "  ", &context.style);
        }
        for note in &plan.notes {
            sentences(&note.text, "note: ", "  ", &context.style);
        }
        say!();
    }
    say!("Nothing was done: --dry-run.");
    Ok(ExitCode::SUCCESS)
}

/// What is needed and changed: (name, text).
fn facts(plan: &Plan, repeat: u32) -> Vec<(&'static str, String)> {
    let needs = &plan.needs;
    let mut list = vec![("page size", bytes(plan.page_size as f64))];
    list.extend(plan.frames.map(|frames| ("frames", count(frames as f64))));
    let repetitions = match (plan.deterministic, repeat) {
        (true, _) => format!("{repeat}; deterministic: every one gives the same figures"),
        (false, _) => repeat.to_string(),
    };
    list.push(("repetitions", repetitions));
    list.push(("memory at once", bytes(needs.memory as f64)));
    if needs.disk > 0 {
        list.push(("disk at once", bytes(needs.disk as f64)));
    }
    list.extend(needs.tasks.map(|tasks| ("tasks at once", tasks.to_string())));
    let seconds = needs.seconds.map(|seconds| format!("about {:.1} s per repetition", seconds));
    list.push(("time", seconds.unwrap_or_else(|| text::DASH.to_owned())));
    list.extend(needs.privileges.iter().map(|need| ("needs", need.clone())));
    list.extend(plan.changes.iter().map(|change| ("changes, then undoes", change.clone())));
    list
}

fn of(planned: &Planned, repeat: u32) -> Value {
    let plan = planned.plan();
    json!({
        "experiment": plan.experiment,
        "command": format!("pagelab run {} --on {}", plan.experiment, planned.target()),
        "target": planned.target(),
        "conditions": plan.conditions,
        "page_size": plan.page_size,
        "frames": plan.frames,
        "deterministic": plan.deterministic,
        "repetitions": planned.repetitions(repeat),
        "needs": plan.needs,
        "changes": plan.changes,
        "notes": plan.notes,
    })
}
