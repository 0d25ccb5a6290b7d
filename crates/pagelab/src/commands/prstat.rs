//! `pagelab prstat`: in which state each process or thread spends its time; who waits for memory.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::Root;
use pagelab_counters::views::described;
use pagelab_counters::views::prstat::{self, Ended, Row};
use serde_json::json;

use super::watcher::{Watcher, accounting};
use crate::context::Context;
use crate::interrupt::Interrupt;
use crate::output::{SCHEMA_VERSION, bounded, remark};
use crate::terminal;
use crate::ticker::{Machine, Schedule, Ticker};

/// The columns of the microstates with the longest names.
const WHOLE: usize = 100;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab prstat -m 1\n  pagelab prstat -mL 2 5 --rows 40\n  sudo pagelab prstat -m 1 --enable-accounting --trace\n",
    after_help = format!("The columns; -m has those in percent, with the tasks that waited longest for \
memory first:
{}
Shares are of the time since the last print: of a process, of the time of all its threads; of a task that \
started meanwhile, of its own time. Tasks that ended meanwhile are counted below the table. A dash is a \
figure that Linux does not have. --trace needs root and costs every system call of the machine about 0.4 \
us. DFL needs root, sysctl kernel.task_delayacct=1, and a process that started after that was set; \
--enable-accounting sets it while prstat runs. Delays include CPU time, so a row may sum to more than 100. \
In 80 columns TRP is left out. Without an interval, prstat prints once, after one second.",
        described(&prstat::described()))
)]
pub struct Arguments {
    /// Microstates instead of sizes and faults
    #[arg(short = 'm', long)]
    microstates: bool,
    /// One line per thread
    #[arg(short = 'L', long)]
    threads: bool,
    /// At most N lines per print
    #[arg(short = 'n', long, value_name = "N", default_value_t = 15)]
    rows: usize,
    /// Only these processes
    #[arg(short = 'p', long = "pid", value_name = "PID", value_delimiter = ',')]
    pids: Vec<u64>,
    /// Enable delay accounting while prstat runs
    #[arg(long)]
    enable_accounting: bool,
    /// Also count system calls, signals, lock waits and waits for code
    #[arg(long, conflicts_with = "root")]
    trace: bool,
    #[command(flatten)]
    schedule: Schedule,
    /// One JSON object per print; sizes in bytes
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    machine: Machine,
}

/// Prints the tasks once an interval.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    // A signal must not leave the switch on.
    let interrupt = if arguments.enable_accounting { Some(Interrupt::listen()?) } else { None };
    let _accounting = accounting(arguments.enable_accounting)?;
    let selection = match arguments.json {
        true => prstat::selection(),
        false => prstat::selection_of_lines(arguments.microstates),
    };
    let mut watcher = match (arguments.machine.is_live(), arguments.threads || arguments.trace) {
        (true, false) => Watcher::processes(selection, prstat::processes()).leaving_idle(),
        (true, true) => Watcher::live(selection, arguments.threads),
        (false, _) => Watcher::recorded(arguments.machine.tree(), selection),
    };
    if arguments.trace {
        watcher.trace()?;
    }
    if let Some(why) = watcher.why_no_delays().filter(|_| arguments.microstates && !context.quiet) {
        crate::output::remark!("no DFL: {why}");
    }
    let users = users(&Root::new(&arguments.machine.root));
    let mut ticker = Ticker::new(arguments.schedule, interrupt);
    let mut before = watcher.sample();
    loop {
        if !ticker.wait() {
            return Ok(ExitCode::SUCCESS);
        }
        let now = watcher.sample();
        let mut rows = prstat::rows(&before, &now, arguments.threads);
        let mut ended = prstat::ended(&before, &now);
        if !arguments.pids.is_empty() {
            rows.retain(|row| arguments.pids.contains(&row.pid));
            ended = None;
            if rows.is_empty() {
                remark!("no process {}", listed(&arguments.pids));
                return Ok(ExitCode::from(1));
            }
        }
        if !arguments.microstates {
            let used = |row: &Row| (row.usr + row.sys) * row.threads as f64;
            rows.sort_by(|a, b| used(b).total_cmp(&used(a)));
        }
        rows.truncate(arguments.rows);
        watcher.describe(&mut rows, arguments.json);
        print(arguments, &rows, ended.as_ref(), &users, context)?;
        before = now;
        if !ticker.more() {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Numbers of processes in words.
fn listed(pids: &[u64]) -> String {
    pids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

fn print(
    arguments: &Arguments,
    rows: &[Row],
    ended: Option<&Ended>,
    users: &HashMap<u64, String>,
    context: &Context,
) -> Result<()> {
    let mut out = BufWriter::new(crate::output::stdout());
    if arguments.json {
        let time = jiff::Timestamp::now().to_string();
        writeln!(
            out,
            "{}",
            json!({ "schema_version": SCHEMA_VERSION, "time": time, "tasks": rows, "ended": ended })
        )?;
        out.flush()?;
        return Ok(());
    }
    let threads = arguments.threads;
    let width = terminal::width(WHOLE);
    let heading = if arguments.microstates {
        prstat::microstate_heading(threads, width)
    } else {
        prstat::summary_heading(threads)
    };
    writeln!(out, "{heading}")?;
    for row in rows {
        let user = row.uid.map(|uid| users.get(&uid).cloned().unwrap_or_else(|| uid.to_string()));
        let user = user.unwrap_or_else(|| "-".to_owned());
        let line =
            if arguments.microstates { row.microstates(&user, width) } else { row.summary(&user, width) };
        writeln!(out, "{line}")?;
    }
    if let Some(ended) = ended {
        writeln!(out, "{}", bounded(&ended.line(), "        ", context))?;
    }
    if arguments.schedule.interval.is_some() {
        writeln!(out)?;
    }
    out.flush()?;
    Ok(())
}

/// User names by number, from /etc/passwd; a directory service is not asked.
pub fn users(root: &Root) -> HashMap<u64, String> {
    let passwd = root.read("etc/passwd").unwrap_or_default();
    let entry = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    };
    passwd.lines().filter_map(entry).collect()
}
