//! `pagelab run command --sweep-memory LO..HI`: one run for each memory limit that the bisection asks
//! for, and the least limit at which the program still runs at full speed.

use anyhow::{Result, anyhow};
use pagelab_analysis::least_memory::{Knee, Next, Point, next};
use pagelab_experiment::setting::Limit;
use pagelab_experiment::{Experiment, Outcome, Repetition, Run, Setting, Size, TargetSpec};
use pagelab_report::text::{bytes, duration};

use crate::context::Context;
use crate::failure::usage;
use crate::performance::{self, Performed, Plan};

/// Repetitions under each limit unless told otherwise: a median needs three.
pub const REPEAT: u32 = 3;

/// The page size of the granularity.
const PAGE: u64 = 4096;

/// Performs the search between `least` and `most`; the runs, and what they say.
///
/// # Errors
/// When the program cannot be run at all, or the notebook not be written.
pub fn sweep(
    experiment: &Experiment,
    (least, most): (Size, Size),
    name: Option<&str>,
    target: &TargetSpec,
    setting: &Setting,
    repeat: u32,
    context: &Context,
) -> Result<(Performed, Vec<String>)> {
    let (least, most) = (least.bytes(PAGE) / PAGE * PAGE, most.bytes(PAGE) / PAGE * PAGE);
    let mut points: Vec<Point> = Vec::new();
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let asked = next(&points, least, most, PAGE).ok_or_else(|| match points.is_empty() {
            true => usage(format!("--sweep-memory: {least} to {most} bytes is no range of at least a page")),
            false => anyhow!(
                "the program is killed for want of memory under {}: give --sweep-memory a greatest size that suffices",
                bytes(most as f64)
            ),
        })?;
        let memory = match asked {
            Next::Found(knee) => {
                let name = name.unwrap_or("command");
                let lines = vec![sentence(&knee, &points, name), listed(&mut points, name)];
                return Ok((Performed { runs, failure: None }, lines));
            }
            Next::Measure(memory) => memory,
        };
        let size = Size::Bytes(memory);
        let setting = Setting { memory: Some(Limit::Of(size)), ..setting.clone() };
        // A limit that is measured again is another run.
        let before = runs.iter().filter(|run| run.header.setting.limit() == Some(size)).count();
        let point_name = name.map(|name| {
            let ordinal = if before == 0 { String::new() } else { format!("-{}", before + 1) };
            format!("{name}-{}{ordinal}", bytes(memory as f64).replace(' ', ""))
        });
        let mut plans = [Plan::new(point_name, experiment.clone(), target, &setting)?];
        let done = performance::perform(&mut plans, repeat, context)?;
        let killed = done.runs.iter().flat_map(|r| &r.repetitions).any(|r| out_of_memory(&r.outcome));
        if let (Some(error), false) = (done.failure, killed) {
            runs.extend(done.runs);
            return Ok((Performed { runs, failure: Some(error) }, Vec::new()));
        }
        let mut point = points
            .iter()
            .position(|p| p.memory == memory)
            .map_or_else(|| Point { memory, ..Point::default() }, |known| points.remove(known));
        if killed {
            point.times.clear();
        } else {
            point.times.extend(done.runs.iter().flat_map(|r| r.done()).filter_map(own_time));
            point.fetched.extend(done.runs.iter().flat_map(|r| r.done()).filter_map(fetched));
            point.charged.extend(done.runs.iter().flat_map(|r| r.values("memory.charged.peak")));
        }
        points.push(point);
        runs.extend(done.runs);
    }
}

/// How long the program took, ns, less what its threads waited for a processor, where that is known: that
/// is others' doing, not memory's.
fn own_time(repetition: &Repetition) -> Option<f64> {
    let seen = &repetition.observations;
    let others = seen.metric("state.run-queue").unwrap_or(0.0);
    Some(seen.metric("time.elapsed")? * (1.0 - others))
}

/// Pages that the program waited for: those of its major faults, and what was read from a disk for it.
fn fetched(repetition: &Repetition) -> Option<f64> {
    let seen = &repetition.observations;
    Some(seen.metric("faults.major")? + seen.metric("io.read").unwrap_or(0.0) / PAGE as f64)
}

/// Whether a repetition ended because the kernel killed the program inside the limit.
fn out_of_memory(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(failure) if failure.is_out_of_memory())
}

fn sentence(knee: &Knee, points: &[Point], name: &str) -> String {
    let size = |memory: u64| bytes(memory as f64);
    let measured = points.len();
    let Some(too_little) = knee.too_little else {
        return format!(
            "{name}: even {} is enough for full speed ({}); sweep from less to find the knee.",
            size(knee.enough),
            duration(knee.full)
        );
    };
    let below = points.iter().find(|p| p.memory == too_little).map(Point::time);
    let below = match below {
        Some(time) if time.is_finite() => format!("takes {} already", duration(time)),
        _ => "is killed for want of memory".to_owned(),
    };
    format!(
        "{name}: {} is the least memory at full speed ({}, and up to {} counts as that): the knee is between {} and {}, where it {below}; {measured} limits measured.",
        size(knee.enough),
        duration(knee.full),
        duration(knee.allowed),
        size(too_little),
        size(knee.enough),
    )
}

/// Every limit and its time.
fn listed(points: &mut [Point], name: &str) -> String {
    points.sort_by_key(|p| p.memory);
    let each: Vec<String> = points
        .iter()
        .map(|point| {
            let time = if point.time().is_finite() { duration(point.time()) } else { "killed".to_owned() };
            format!("{} {time}", bytes(point.memory as f64))
        })
        .collect();
    format!("{name}: the fastest of each limit: {}.", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_both_ends() {
        let knee = Knee { enough: 64 << 20, too_little: Some(61 << 20), full: 1e9, allowed: 1.05e9 };
        let points = [Point { memory: 61 << 20, ..Point::default() }];
        let text = sentence(&knee, &points, "sort");
        assert!(text.contains("between 61 MiB and 64 MiB") && text.contains("is killed"), "{text}");
        assert!(
            sentence(&Knee { too_little: None, ..knee }, &points, "sort").contains("even 64 MiB is enough")
        );
    }
}
