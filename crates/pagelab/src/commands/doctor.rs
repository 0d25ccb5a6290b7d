//! `pagelab doctor`: is memory short, who waits, who holds it, what helps; is this machine fit to
//! measure on.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use pagelab_confine::leftovers;
use pagelab_counters::views::doctor::{self, Level, Recent, Report};
use pagelab_counters::views::memstat::Holder;
use pagelab_counters::views::prstat::size;
use serde_json::json;

use super::watcher::{Watcher, accounting};
use crate::context::Context;
use crate::interrupt::Interrupt;
use crate::output::{self, SCHEMA_VERSION, bounded, print_json, say, sentences};
use crate::ticker::{Interval, Schedule, Ticker};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab doctor\n  pagelab doctor --watch 10\n  pagelab doctor --leftovers\n  pagelab doctor --json | jq .doctor.level\n  pagelab doctor --quiet || logger 'memory is short'\n",
    after_help = "Samples for two seconds and reports on that interval. The page 'Counters and live views' of the book \
has every threshold and its reason.\n\nExit status: 0 fine or strained; 1 memory is short, of the machine or of a \
cgroup as the first line says; 3 unknown."
)]
pub struct Arguments {
    /// Repeat every N seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "5", value_parser = clap::value_parser!(Interval))]
    watch: Option<Interval>,
    /// End after N samples
    #[arg(long, value_name = "N", requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Enable delay accounting meanwhile, for processes that start from then on
    #[arg(long)]
    enable_accounting: bool,
    /// List what pagelab has set up and could not undo, each with the command that undoes it, and exit
    #[arg(long, conflicts_with_all = ["watch", "enable_accounting"])]
    leftovers: bool,
    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
}

/// Looks and answers; status 1 on a shortage in the last sample, 3 where nothing is known.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    if arguments.leftovers {
        return leftovers(arguments.json, context);
    }
    let interrupt = Interrupt::listen()?;
    let _accounting = accounting(arguments.enable_accounting)?;
    let mut watcher = Watcher::live(doctor::selection(), false);
    let schedule = match arguments.watch {
        Some(_) => Schedule { interval: arguments.watch, count: arguments.count },
        None => Schedule { interval: Some("2".parse().expect("two seconds")), count: Some(1) },
    };
    let mut ticker = Ticker::new(schedule, Some(interrupt));
    let mut earlier = watcher.sample();
    loop {
        if !ticker.wait() {
            return Ok(ExitCode::SUCCESS);
        }
        let now = watcher.sample();
        let tree = watcher.tree();
        let shares = tree.read(&doctor::share_selection(&now.counters));
        let mut report = doctor::examine(&earlier, &now, &shares, tree.root().page_size());
        if let Some(why) = output::unread(tree.root()) {
            report.verdict.doubt(&why);
        }
        output::set_status(status(&report));
        let mut out = crate::output::stdout();
        if arguments.json {
            let time = jiff::Timestamp::now().to_string();
            writeln!(out, "{}", json!({ "schema_version": SCHEMA_VERSION, "time": time, "doctor": report }))?;
        } else if context.quiet {
            // What an exit status other than 0 is about.
            if matches!(report.verdict.level, Level::Short | Level::Unknown) {
                writeln!(out, "{}", headline(&report))?;
            }
        } else {
            if arguments.watch.is_some() {
                writeln!(out, "{}", jiff::Zoned::now().strftime("%F %T"))?;
            }
            let text = text(&report, watcher.why_no_delays().as_deref(), arguments.watch.is_none());
            for line in text.lines() {
                writeln!(out, "{}", bounded(line, "      ", context))?;
            }
        }
        out.flush()?;
        earlier = now;
        if !ticker.more() {
            return Ok(ExitCode::from(status(&report)));
        }
    }
}

fn status(report: &Report) -> u8 {
    match report.verdict.level {
        Level::Fine | Level::Strained => 0,
        Level::Short => 1,
        Level::Unknown => 3,
    }
}

/// The answer in a sentence.
fn headline(report: &Report) -> String {
    let words = report.verdict.headline();
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{} (sampled for {:.1} s).", letters.as_str(), report.seconds)
}

/// Lists what could not be undone.
fn leftovers(json: bool, context: &Context) -> Result<ExitCode> {
    let found = leftovers::list().context("the folder of the journals cannot be read")?;
    if json {
        return print_json("leftovers", serde_json::to_value(&found)?);
    }
    if found.is_empty() {
        say!("Nothing is left to undo on this machine.");
    }
    for leftover in &found {
        sentences(&format!("{}: {}", leftover.what, leftover.why), "", "  ", &context.style);
        say!("  {}", leftover.command);
    }
    Ok(ExitCode::SUCCESS)
}

/// The answer in words.
fn text(report: &Report, why_no_delays: Option<&str>, fitness: bool) -> String {
    let mut out = headline(report) + "\n";
    for e in &report.verdict.evidence {
        let mark = match e.level {
            Level::Fine => ' ',
            Level::Unknown => '?',
            Level::Strained => '!',
            Level::Short => '#',
        };
        let value = e.value.map_or_else(
            || "-".to_owned(),
            |v| if v < 100.0 { format!("{v:.1}") } else { format!("{v:.0}") },
        );
        let limits = match (e.strained, e.short) {
            (Some(strained), Some(short)) => format!("  (strained from {strained}, short from {short})"),
            _ => String::new(),
        };
        let _ = writeln!(out, "{mark} {:<29} {value:>8} {}{limits}", e.sign, e.unit);
    }
    for group in &report.verdict.limited {
        let pressure =
            group.pressure.map_or_else(String::new, |share| format!(", waiting {share:.1}% of the time"));
        let _ = writeln!(
            out,
            "  cgroup {} is at {} of {}: {:.0} refaults/s, met its limit {:.0} times/s{pressure}",
            group.path,
            size(Some(group.current)),
            size(Some(group.max)),
            group.refaults,
            group.met
        );
    }
    if report.waiting.is_empty() {
        let _ = writeln!(out, "No waiting tasks found.");
    } else {
        let _ = writeln!(out, "Waiting tasks:");
    }
    for waiting in &report.waiting {
        let row = &waiting.row;
        let how = match row.dfl {
            Some(dfl) => format!("{dfl:.1}% of its time waiting for memory"),
            None => "not accounted how long".to_owned(),
        };
        let _ = writeln!(
            out,
            "  {} ({}){}: {how}, {:.0} major faults/s",
            row.command,
            row.pid,
            waiting.cgroup.as_deref().map(|c| format!(" in {c}")).unwrap_or_default(),
            row.major_faults
        );
    }
    if let Some(why) = why_no_delays {
        let _ = writeln!(out, "  ({why})");
    }
    let of_groups = report.verdict.limited.iter().filter(|group| !group.holding.is_empty());
    for group in of_groups {
        hold(&mut out, &format!("the memory of {}", group.path), &group.holding);
    }
    if report.verdict.level == Level::Fine || report.verdict.machine >= Level::Strained {
        hold(&mut out, "the machine's memory", &report.holding);
    }
    for recent in &report.recent {
        let _ = writeln!(out, "{}", before(recent));
    }
    for growing in &report.growing {
        let rate = size(Some(growing.rate));
        let _ = writeln!(out, "  {} ({}) grows by {rate}/s", growing.name, growing.pid);
    }
    if let Some(forks) = &report.forks {
        let names: Vec<String> = forks.ended.iter().map(|(name, n)| format!("{name} {n}")).collect();
        let ended = if names.is_empty() { String::new() } else { format!("; ended: {}", names.join(", ")) };
        let _ = writeln!(out, "  {:.0} forks per second{ended}", forks.rate);
    }
    if !report.relief.is_empty() {
        let _ = writeln!(out, "What would relieve it:");
        for advice in &report.relief {
            let _ = writeln!(out, "  - {advice}");
        }
    }
    if fitness {
        let unfit = report.fitness.iter().filter(|c| !c.fit).count();
        let verdict = match unfit {
            0 => "Benchmark readiness: no warnings".to_owned(),
            1 => "Benchmark readiness: 1 warning".to_owned(),
            n => format!("Benchmark readiness: {n} warnings"),
        };
        let _ = writeln!(out, "{verdict}");
        for check in &report.fitness {
            let mark = if check.fit { ' ' } else { '!' };
            let line = format!("{mark} {:<24} {}", check.what, check.found);
            let remedy = if check.fit { String::new() } else { format!(": {}", check.remedy) };
            let _ = writeln!(out, "{line}{remedy}");
        }
    }
    out
}

/// What happened before the interval.
fn before(recent: &Recent) -> String {
    let minutes = recent.within.map(|seconds| (seconds / 60.0).ceil());
    let when = match (&recent.cgroup, minutes) {
        (_, Some(minutes)) if minutes <= 10.0 => format!("in the last {minutes:.0} minutes"),
        (Some(_), _) => "since it was created; times unknown".to_owned(),
        (None, Some(minutes)) => {
            format!("in the {:.0} hours since boot; times unknown", (minutes / 60.0).ceil())
        }
        (None, None) => "since boot; times unknown".to_owned(),
    };
    let who = recent.cgroup.as_ref().map_or_else(|| "machine".to_owned(), |path| format!("cgroup {path}"));
    let count = |n: f64, one: &str, many: &str| {
        (n > 0.0).then(|| format!("{n:.0} {}", if n == 1.0 { one } else { many }))
    };
    let mut counts = count(recent.kills, "OOM kill", "OOM kills").into_iter().collect::<Vec<_>>();
    counts.extend(count(recent.met, "limit met", "limits met"));
    let mut parts =
        if counts.is_empty() { Vec::new() } else { vec![format!("{} ({when})", counts.join(", "))] };
    parts.extend(recent.pressure.map(|share| format!("tasks waited {share:.1}% of the last 5 minutes")));
    format!("  {who}: {}", parts.join("; "))
}

/// Who holds whose memory.
fn hold(out: &mut String, whose: &str, holding: &[Holder]) {
    let _ = writeln!(out, "Who holds {whose}:");
    for holder in holding {
        let parts = [("anonymous", holder.anonymous), ("swapped out", holder.swap)]
            .into_iter()
            .filter_map(|(what, bytes)| Some(format!(", {} {what}", size(Some(bytes.filter(|b| *b > 0.0)?)))))
            .collect::<String>();
        let pid = holder.pid.map_or_else(String::new, |pid| format!(" ({pid})"));
        let _ = writeln!(out, "  {}{pid}: {}{parts}", holder.name, size(holder.total));
    }
}
