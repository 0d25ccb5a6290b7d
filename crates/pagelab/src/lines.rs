//! One sentence on a run of each experiment that is not on one mapping.

use pagelab_analysis::vmtest::Curve;
use pagelab_analysis::{scaling, stats};
use pagelab_experiment::experiments::{Command, Faultscale, Forkstorm, Work};
use pagelab_experiment::observation::{Table, Unit, Values};
use pagelab_experiment::{Experiment, Run};
use pagelab_report::text::{bytes, count, duration, value};

/// The sentence; `None` when no repetition was wholly performed, and of mapanon and mapfile.
pub fn of_run(run: &Run) -> Option<String> {
    let text = match &run.header.experiment {
        Experiment::Vmtest(_) => vmtest(&pagelab_analysis::vmtest::of_run(run)?),
        Experiment::Forkstorm(parameters) => forkstorm(run, parameters)?,
        Experiment::Faultscale(parameters) => faultscale(run, parameters)?,
        Experiment::Fileread(_) => fileread(run)?,
        Experiment::Seqread(_) => seqread(run)?,
        Experiment::Clock(_) => clock(run)?,
        Experiment::Command(parameters) => command(run, parameters)?,
        _ => return None,
    };
    Some(format!("{}: {text}.", run.header.name))
}

fn median(run: &Run, name: &str) -> Option<f64> {
    stats::median(&run.values(name))
}

fn shown(run: &Run, name: &str, unit: Unit) -> String {
    value(median(run, name), unit)
}

/// The first table of this name.
fn table<'a>(run: &'a Run, name: &str) -> Option<&'a Table> {
    run.done().find_map(|r| r.observations.table(name))
}

fn texts(table: &Table) -> &[String] {
    match table.columns.first().map(|c| &c.values) {
        Some(Values::Text(texts)) => texts,
        _ => &[],
    }
}

fn vmtest(curve: &Curve) -> String {
    let (first, last) = (curve.points.first(), curve.points.last());
    let mut text = match (first, last) {
        (Some(first), Some(last)) => format!(
            "reading a page takes {} at {} of active virtual memory and {} at {}",
            duration(first.1),
            bytes(first.0),
            duration(last.1),
            bytes(last.0)
        ),
        _ => "no sizes".to_owned(),
    };
    let knees: Vec<String> = curve
        .knees
        .iter()
        .map(|knee| {
            let cause = match &knee.cause {
                Some((cause, at)) => format!("{} of {}", cause.words(), bytes(*at)),
                None => "unexplained".to_owned(),
            };
            let (low, high) = knee.interval;
            format!("{} ({} … {}; {cause})", bytes(knee.at), bytes(low), bytes(high))
        })
        .collect();
    text += &match knees.len() {
        0 => "; no knee".to_owned(),
        1 => format!("; the knee is at {}", knees[0]),
        _ => format!("; knees at {}", knees.join(", ")),
    };
    text
}

fn forkstorm(run: &Run, parameters: &Forkstorm) -> Option<String> {
    let rate = median(run, "forks.rate")?;
    let mut parts = vec![format!("{} forks a second by {} copies", count(rate), parameters.copies)];
    if let Some(cost) = median(run, "fork.cost") {
        parts.push(format!("a fork takes {}", duration(cost)));
    }
    for (name, what) in [("exec.cost", "exec, start and exit"), ("exit.cost", "its child's writes and exit")]
    {
        if let Some(cost) = median(run, name) {
            parts.push(format!("{what} {}", duration(cost)));
        }
    }
    if let Some(operations) = table(run, "operations") {
        let each = |name: &str| {
            let row = texts(operations).iter().position(|text| text == name)?;
            operations.numbers("each.fork")?[row]
        };
        if let (Some(faults), Some(pages)) = (each("exceptions:page_fault_user"), each("kmem:mm_page_alloc"))
        {
            parts.push(format!(
                "{} faults and {} allocations of pages for each",
                count(faults),
                count(pages)
            ));
        }
    }
    if let Some(profile) = table(run, "profile")
        && let (Some(name), Some(Some(share))) =
            (texts(profile).first(), profile.numbers("share").and_then(|s| s.first().copied()))
    {
        parts.push(format!("the kernel is most in {name} ({:.0} %)", share * 100.0));
    }
    Some(parts.join("; "))
}

fn faultscale(run: &Run, parameters: &Faultscale) -> Option<String> {
    let what = match parameters.work {
        Work::Anon => "anonymous faults",
        Work::File => "pages of a shared file mapped",
        Work::Map => "mappings",
        Work::Fork => "forks",
        Work::Build => "compilations",
    };
    let (mut workers, mut throughput) = (Vec::new(), Vec::new());
    for table in run.done().filter_map(|r| r.observations.table("faultscale")) {
        let numbers = |name: &str| table.numbers(name).unwrap_or_default().iter().copied();
        for (n, x) in numbers("workers").zip(numbers("throughput")) {
            workers.extend(n.filter(|_| x.is_some()));
            throughput.extend(x.filter(|_| n.is_some()));
        }
    }
    let of = |number: f64| {
        let pairs = workers.iter().zip(&throughput).filter(|(n, _)| **n == number);
        stats::median(&pairs.map(|(_, x)| *x).collect::<Vec<_>>())
    };
    let by_number = parameters.workers.iter().filter_map(|&n| Some((n, of(f64::from(n))?)));
    let best = by_number.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let mut text = format!(
        "{what} by {}: {} with {}, most with {} ({}), {} with {}",
        parameters.as_,
        shown(run, "throughput.first", Unit::PerSecond),
        parameters.workers.first()?,
        best.0,
        value(Some(best.1), Unit::PerSecond),
        shown(run, "throughput.last", Unit::PerSecond),
        parameters.workers.last()?,
    );
    if let Some(fit) = scaling::fit(&workers, &throughput, 1) {
        let percent = |v: f64| format!("{:.1} %", v * 100.0);
        let contention = fit.contention;
        text += &format!(
            "; scalability law: contention {} ({} … {})",
            percent(contention.value),
            percent(contention.interval.0),
            percent(contention.interval.1)
        );
        text += &match fit.best {
            None => ", no best number predicted".to_owned(),
            Some(best) => format!(
                ", predicted best number {:.0} ({:.0} … {})",
                best.workers,
                best.least,
                best.most.map_or("any".to_owned(), |most| format!("{most:.0}"))
            ),
        };
    }
    if let (Some(wait), Some(locks)) = (median(run, "state.lock"), table(run, "locks")) {
        text += &format!("; with the most, {} of their time waits for locks", value(Some(wait), Unit::Share));
        let numbers = |name: &str| locks.numbers(name).unwrap_or_default().to_vec();
        let most = *parameters.workers.last()? as f64;
        let last = numbers("workers").iter().position(|w| *w == Some(most));
        if let (Some(row), true) = (last, wait > 0.0) {
            text += &format!(", most for {}", texts(locks).get(row)?);
        }
    }
    Some(text)
}

fn fileread(run: &Run) -> Option<String> {
    median(run, "read.cpu.small")?;
    let mut text = format!(
        "a random read costs {} of processor time where the file is small in memory, {} where it is large, {} where it is larger than memory",
        shown(run, "read.cpu.small", Unit::Nanoseconds),
        shown(run, "read.cpu.large", Unit::Nanoseconds),
        shown(run, "read.cpu.beyond", Unit::Nanoseconds),
    );
    if let Some(table) = table(run, "fileread")
        && let Some(row) = texts(table).iter().position(|case| case == "beyond nowait")
        && let Some(Some(hits)) = table.numbers("hits").map(|h| h[row])
    {
        text += &format!(", of whose reads {:.0} % are found in the cache", hits * 100.0);
    }
    Some(text)
}

fn seqread(run: &Run) -> Option<String> {
    let table = table(run, "seqread")?;
    let best = |mode: &str| -> Option<String> {
        let numbers = |name: &str| Some(table.numbers(name)?.to_vec());
        let (bandwidth, transfer, seen) =
            (numbers("bandwidth")?, numbers("transfer")?, numbers("device.transfer")?);
        let rows = (0..bandwidth.len()).filter(|&row| texts(table)[row] == mode);
        let row = rows
            .max_by(|&a, &b| bandwidth[a].partial_cmp(&bandwidth[b]).unwrap_or(std::cmp::Ordering::Equal))?;
        let mut text = format!("{}/s {mode} by {}", bytes(bandwidth[row]?), bytes(transfer[row]?));
        if let Some(seen) = seen[row] {
            text += &format!(" (the device saw {})", bytes(seen));
        }
        Some(text)
    };
    let parts: Vec<String> = ["buffered", "direct"].into_iter().filter_map(best).collect();
    (!parts.is_empty()).then(|| format!("sequential reads reach {}", parts.join(", ")))
}

fn clock(run: &Run) -> Option<String> {
    let is_true = run.values("clock.true").iter().all(|&v| v == 1.0);
    median(run, "clock.true")?;
    Some(format!(
        "time is {}: over a step the clocks part by at most {}, drift by {:.1} ppm; processors' counters differ by less than {}; {} of the processors' time was stolen",
        if is_true { "true" } else { "SUSPECT" },
        shown(run, "clock.step.worst", Unit::Nanoseconds),
        median(run, "clock.drift.worst").unwrap_or(f64::NAN) * 1e6,
        shown(run, "clock.skew.bound", Unit::Nanoseconds),
        shown(run, "clock.steal", Unit::Share),
    ))
}

fn command(run: &Run, parameters: &Command) -> Option<String> {
    median(run, "time.elapsed")?;
    let mut text = format!(
        "{} takes {} ({} user, {} system), at most {} resident, {} major faults",
        parameters.program.first()?,
        shown(run, "time.elapsed", Unit::Nanoseconds),
        shown(run, "time.user", Unit::Nanoseconds),
        shown(run, "time.system", Unit::Nanoseconds),
        shown(run, "memory.peak", Unit::Bytes),
        shown(run, "faults.major", Unit::Count),
    );
    let states = [
        ("state.user", "user"),
        ("state.system", "system"),
        ("state.fault", "waiting for input"),
        ("state.run-queue", "waiting for a processor"),
        ("state.sleep", "asleep"),
    ];
    let parts: Vec<String> = states
        .iter()
        .filter_map(|(name, what)| Some((median(run, name).filter(|&share| share >= 0.005)?, what)))
        .map(|(share, what)| format!("{:.0} % {what}", share * 100.0))
        .collect();
    if !parts.is_empty() {
        text += &format!("; its threads' time: {}", parts.join(", "));
    }
    Some(text)
}
