//! The verdict: what runs say, in plain words and figures.

use pagelab_experiment::experiments::{Experiment, Paging};
use pagelab_experiment::observation::Level;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Run, Setting};
use pagelab_report::text::{bytes, count, value};

/// Bytes read for each major fault from which on the read-ahead is worth a word: twice the 128 KiB that
/// the kernel reads ahead unless told otherwise.
const MUCH_READ_AHEAD: f64 = 262_144.0;

/// The sentences for `runs`: first what each says by itself, then what they say together.
pub fn verdict(runs: &[&Run]) -> Vec<String> {
    let mut lines: Vec<String> =
        runs.iter().filter_map(|run| of_run(run).or_else(|| crate::lines::of_run(run))).collect();
    lines.extend(past_the_limit(runs));
    lines.extend(runs.iter().filter_map(|run| avoidable(run)));
    lines.extend(warnings(runs));
    lines
}

/// What the clock's run says in a word for the environment of others.
pub fn of_clock(runs: &[Run]) -> String {
    let notes = runs.iter().flat_map(|run| run.done()).flat_map(|r| &r.observations.notes);
    let reasons: Vec<&str> = notes.filter(|n| n.level == Level::Warning).map(|n| n.text.as_str()).collect();
    let measured = runs.iter().any(|run| !run.values("clock.true").is_empty());
    match (measured, reasons.first()) {
        (false, _) => "not measured".to_owned(),
        (true, None) => "true".to_owned(),
        (true, Some(reason)) => format!("suspect: {reason}"),
    }
}

/// The same with its unit: time, or instructions where the run counted them.
fn shown(run: &Run, metric: &str) -> Option<String> {
    let unit = run.done().flat_map(|r| &r.observations.metrics).find(|m| m.name == metric)?.unit;
    Some(value(Some(median(run, metric)?), unit))
}

/// The median over the repetitions that count of one figure.
fn median(run: &Run, metric: &str) -> Option<f64> {
    pagelab_analysis::stats::median(&run.values(metric))
}

fn paging(run: &Run) -> Option<&Paging> {
    match &run.header.experiment {
        Experiment::Mapanon(paging) | Experiment::Mapfile(paging) => Some(paging),
        _ => None,
    }
}

/// One sentence on one run; none when no repetition was wholly performed.
fn of_run(run: &Run) -> Option<String> {
    let paging = paging(run)?;
    let mean = shown(run, "access.mean")?;
    let hit = shown(run, "access.hit.p50");
    let mut parts = vec![format!(
        "{}: {} references to {} pages ({}), {} each in the mean",
        run.header.name,
        count(paging.references as f64),
        count(paging.pages as f64),
        paging.pattern,
        mean,
    )];
    if let Some(hit) = hit {
        parts.push(format!("{hit} where the page is there"));
    }
    for (kind, what) in [("major", "major faults"), ("minor", "minor faults")] {
        let faults = median(run, &format!("faults.{kind}"));
        let cost = shown(run, &format!("access.{kind}.p50"));
        match (faults, cost) {
            (Some(faults), Some(cost)) if faults > 0.0 => {
                parts.push(format!("{} {what} at {cost}", count(faults)));
            }
            (Some(0.0), _) => parts.push(format!("no {what}")),
            _ => {}
        }
    }
    if let (Some(read), Some(faults)) = (median(run, "io.read"), median(run, "faults.major"))
        && faults > 0.0
        && read / faults > MUCH_READ_AHEAD
    {
        parts.push(format!("each major fault read {} from the disk (read-ahead)", bytes(read / faults)));
    }
    Some(parts.join("; ") + ".")
}

/// How much slower a reference gets past the limit: the same kind of mapping with and without
/// major faults, where `runs` has both.
fn past_the_limit(runs: &[&Run]) -> Option<String> {
    let of_kind = |faulting: bool| {
        runs.iter().copied().find(|run| {
            matches!(run.header.experiment, Experiment::Mapanon(_))
                && median(run, "faults.major").is_some_and(|faults| (faults > 0.0) == faulting)
        })
    };
    let (fits, exceeds) = (of_kind(false)?, of_kind(true)?);
    let (inside, outside) = (median(fits, "access.mean")?, median(exceeds, "access.mean")?);
    let pages = paging(exceeds)?.pages as f64;
    let present = median(exceeds, "pages.present")?;
    Some(format!(
        "Past the limit of {} a reference is {} times as slow: {} instead of {} with {:.0} % of the pages out of memory ({} against {}).",
        limit(&exceeds.header.setting)?,
        count((outside / inside).round()),
        shown(exceeds, "access.mean")?,
        shown(fits, "access.mean")?,
        (1.0 - present / pages) * 100.0,
        exceeds.header.name,
        fits.header.name,
    ))
}

/// How many of a kernel's major faults the best policy would have spared it, on the same stream with
/// the frames that the limit really left; nothing for models and for runs without major faults.
fn avoidable(run: &Run) -> Option<String> {
    if matches!(run.header.target.kind, TargetKind::Model(_)) {
        return None;
    }
    let regret = pagelab_analysis::regret::of_run(run).ok()??;
    let judged = match regret.avoidable() {
        Some(share) => format!("{:.0} % of the major faults were avoidable", share * 100.0),
        None => "fewer than any policy can have that reads one page at a time: read-ahead brought the others"
            .to_owned(),
    };
    let ahead = match regret.minor {
        Some(minor) if minor > 0.0 => {
            format!(" ({} more pages came by read-ahead or were still cached)", count(minor))
        }
        _ => String::new(),
    };
    Some(format!(
        "{}: with {} frames this kernel had {} major faults{ahead}; LRU {}; OPT {}: {judged}.",
        run.header.name,
        count(f64::from(regret.frames)),
        count(regret.kernel),
        count(regret.lru as f64),
        count(regret.opt as f64),
    ))
}

fn limit(setting: &Setting) -> Option<String> {
    setting.limit().map(|size| size.to_string())
}

/// The warnings of all repetitions, each once.
pub fn warnings(runs: &[&Run]) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for note in runs.iter().flat_map(|run| &run.repetitions).flat_map(|r| &r.observations.notes) {
        if note.level == Level::Warning && !seen.contains(&note.text) {
            seen.push(note.text.clone());
        }
    }
    seen.iter().map(|text| format!("Beware: {text}")).collect()
}
