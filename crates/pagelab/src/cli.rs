//! The command line's grammar. Help, manual pages and completions come from these definitions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};
use pagelab_experiment::Experiment;
use pagelab_experiment::declaration::closest;

use crate::commands::{
    bisect_run, cachestat, catalogue, clock, compare, completions, convert, doctor, explain, export, fixture,
    fuzz_reclaim, gate, history, import, iostat, list, manual, mechanisms, memstat, mrc, need, policies,
    prstat, record, reduce, reference, replay, report, reproduce, run, shadow, show, site, stat, top, trace,
    vmstat, wss,
};
use crate::context::Context;
use crate::output;
use crate::targets;
use crate::terminal::{self, Color};

/// A laboratory for virtual-memory performance: runs experiments on kernels and simulators, stores
/// the results, compares any two runs and draws them.
#[derive(Parser, Debug)]
#[command(
    name = "pagelab",
    version,
    propagate_version = true,
    max_term_width = 100,
    before_help = EXAMPLES,
    after_help = "Exit status: 0 success; 1 'compare --fail-on' found a regression, 'doctor' a \
shortage, 'stat' no match; 2 wrong usage; 3 failure."
)]
pub struct Cli {
    /// The options that every command has
    #[command(flatten)]
    pub global: Global,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The options that every command has.
#[derive(clap::Args, Debug)]
pub struct Global {
    /// The notebook: one SQLite file that keeps every run [env: PAGELAB_NOTEBOOK]
    // Not clap's `env`: its usage lines would show the option as if it had been typed.
    #[arg(long, value_name = "FILE", default_value_os_t = notebook(), global = true, help_heading = GLOBAL)]
    pub notebook: PathBuf,
    /// When to print colours (NO_COLOR is honoured)
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        global = true,
        help_heading = GLOBAL,
        hide_possible_values = false
    )]
    pub color: Color,
    /// No progress and no notes, only results and errors
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
}

fn notebook() -> PathBuf {
    std::env::var_os("PAGELAB_NOTEBOOK").map_or_else(|| PathBuf::from("pagelab.db"), PathBuf::from)
}

/// Prints what is wrong with the command line.
pub fn usage_error(error: &clap::Error) {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return;
    }
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let text = in_words(&error.render().to_string(), &named_command(&words));
    output::error(&anyhow::anyhow!("{text}"));
}

/// The command that a command line names, as far as it exists: "pagelab run latency".
fn named_command(words: &[OsString]) -> String {
    let grammar = grammar();
    let mut command = &grammar;
    let mut path = vec!["pagelab"];
    for word in words.iter().filter_map(|word| word.to_str()) {
        if let Some(found) = command.find_subcommand(word) {
            command = found;
            path.push(found.get_name());
        }
    }
    path.join(" ")
}

/// A usage error of clap in the form of every other error: the problem, then one hint. Ranges are
/// written in words, and an experiment is not called a subcommand.
fn in_words(text: &str, command: &str) -> String {
    let (noun, all) = if command == "pagelab run" {
        ("experiment", "'pagelab experiments' lists all".to_owned())
    } else {
        ("command", format!("'{command} --help' lists all"))
    };
    let is_unknown = text.contains("unrecognized subcommand");
    let is_incomplete = text.contains("required");
    let text = text.replace("unrecognized subcommand", &format!("unknown {noun}"));
    let mut problem: Vec<String> = Vec::new();
    let mut hints: Vec<String> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(hint) = line.strip_prefix(&output::HINT[1..]) {
            hints.push(hint.to_owned());
        } else if let Some(tip) = line.strip_prefix("  tip: ") {
            hints.extend(suggestion(tip, &text));
        } else if !line.starts_with("For more information")
            && (is_incomplete || !line.starts_with("Usage: pagelab"))
        {
            problem.push(range_in_words(line).unwrap_or_else(|| line.to_owned()));
        }
    }
    if is_unknown {
        hints.push(all);
    } else if hints.is_empty() {
        hints.push(format!("see '{command} --help'"));
    }
    format!("{}{}{}", problem.join("\n"), output::HINT, hints.join(" "))
        .trim_start_matches("error: ")
        .to_owned()
}

/// A tip of clap as a question, if what it suggests is near what was written.
fn suggestion(tip: &str, text: &str) -> Option<String> {
    let written = text.split('\'').nth(1)?;
    let Some((_, similar)) = tip.split_once("similar ").and_then(|(_, rest)| rest.split_once(": ")) else {
        // Advice on passing an option as a value is for numbers below zero only.
        return (!tip.contains("as a value") || written.parse::<f64>().is_ok()).then(|| tip.to_owned());
    };
    let suggested: Vec<&str> = similar.split('\'').skip(1).step_by(2).collect();
    closest(written, suggested).map(|near| format!("did you mean '{near}'?"))
}

/// A line of clap about a range, which it writes as Rust does.
fn range_in_words(line: &str) -> Option<String> {
    let (before, range) = line.split_once(" is not in ")?;
    let (before, _) = before.rsplit_once(": ")?;
    let (from, to) = range.trim_end().split_once("..")?;
    let from = from.parse::<i128>().ok()?;
    Some(match to.strip_prefix('=') {
        Some(to) => format!("{before}: must be between {from} and {to}"),
        // A range without an end, or to the largest number.
        None => format!("{before}: must be at least {from}"),
    })
}

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "Examples:
  pagelab run                                  # the standard suite
  pagelab run mapanon --memory 64M --repeat 5  # one experiment, five times
  pagelab run mapanon --repeat 8 --on host,thp=never --on host,thp=always
  pagelab compare @2 @1                        # the last two runs
  pagelab report @1 -o page.html               # a run as a page of charts
";

/// The commands by what they are for.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Measure", &["run", "need", "wss", "clock"]),
    (
        "Compare and gate",
        &["compare", "gate", "history", "bisect-run", "fuzz-reclaim", "mechanisms", "reproduce"],
    ),
    ("Traces and simulation", &["trace", "replay", "mrc", "reduce", "convert"]),
    (
        "Live views",
        &[
            "top",
            "doctor",
            "vmstat",
            "memstat",
            "cachestat",
            "shadow",
            "prstat",
            "iostat",
            "stat",
            "record",
            "fixture",
        ],
    ),
    ("Notebook", &["list", "show", "report", "site", "export", "import"]),
    ("Reference", &["experiments", "targets", "patterns", "policies", "explain", "completions", "man"]),
];

/// Reads the command line.
///
/// # Errors
/// A usage error, or a help or version to print.
pub fn parse() -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(cli) = parse_view(&words) {
        return Ok(cli);
    }
    let mut grammar = grammar();
    let matches = grammar.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut grammar))
}

/// Parses a command line that begins with the name of a live view by the grammar of that view
/// alone: building the whole grammar takes most of the CPU time of a start. `None` for any other
/// line, for a wrong one, and for one that asks for help.
fn parse_view(words: &[OsString]) -> Option<Cli> {
    let view = |name: &'static str, arguments: fn(clap::Command) -> clap::Command| {
        (words.get(1)? == name).then(|| arguments(clap::Command::new(name)))
    };
    let view = view("vmstat", vmstat::Arguments::augment_args)
        .or_else(|| view("prstat", prstat::Arguments::augment_args))
        .or_else(|| view("iostat", iostat::Arguments::augment_args))
        .or_else(|| view("memstat", memstat::Arguments::augment_args))
        .or_else(|| view("cachestat", cachestat::Arguments::augment_args))?;
    let grammar = Global::augment_args(clap::Command::new("pagelab")).subcommand(view);
    Cli::from_arg_matches(&grammar.try_get_matches_from(words).ok()?).ok()
}

/// The grammar with its helps arranged: description, usage, arguments, and examples as they are
/// typed, never wrapped.
pub fn grammar() -> clap::Command {
    let command = arranged(without_refused(Cli::command()));
    let overview = overview(&command);
    command.override_help(overview)
}

/// Hides the conditions that an experiment refuses on every target from its help.
fn without_refused(command: clap::Command) -> clap::Command {
    let conditions = targets::single_conditions();
    let hide = |run: clap::Command, experiment: Experiment| {
        let refused = |option: &&clap::Arg| {
            let setting = conditions.iter().find(|(name, _)| option.get_long() == Some(name));
            let values = setting.map(|(_, setting)| setting.values()).unwrap_or_default();
            let own = values.iter().filter(|value| option.get_long() == Some(value.key()));
            own.into_iter().any(|value| pagelab_live::plan::honours(&experiment, value).is_err())
        };
        let hidden: Vec<clap::Arg> =
            run.get_arguments().filter(refused).map(|option| option.clone().hide(true)).collect();
        let runs = run.find_subcommand(experiment.name()).is_some();
        if runs { run.mut_subcommand(experiment.name(), |own| own.args(hidden)) } else { run }
    };
    command.mut_subcommand("run", |run| targets::experiments().into_iter().fold(run, hide))
}

fn arranged(command: clap::Command) -> clap::Command {
    let examples = command.get_before_help().map(|text| format!("\n\n{}", text.to_string().trim_end()));
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{{all-args}}{}{{after-help}}",
        examples.unwrap_or_default()
    );
    command.help_template(template).mut_subcommands(arranged)
}

/// The help of pagelab itself: its commands in groups.
fn overview(command: &clap::Command) -> StyledStr {
    let mut groups = String::new();
    for (title, names) in GROUPS {
        groups += &format!("{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let line = format!("  {name:<12} {}", about.map(ToString::to_string).unwrap_or_default());
            let wrapping = textwrap::Options::new(80).subsequent_indent("               ");
            groups += &textwrap::fill(&line, wrapping);
            groups.push('\n');
        }
        groups.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}\n\n{}{{after-help}}",
        EXAMPLES.trim_end()
    );
    let bare = command.clone().mut_subcommands(|command| command.hide(true));
    bare.override_usage("pagelab [OPTIONS] <COMMAND>").help_template(template).render_help()
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run an experiment, or the standard suite, and store the results
    Run(run::Arguments),
    /// Find how much memory a program, a process or a container needs
    Need(need::Arguments),
    /// List the runs in the notebook
    List(list::Arguments),
    /// Show the metrics of a run
    Show(show::Arguments),
    /// Compare runs: change, interval, significance, verdict
    Compare(compare::Arguments),
    /// Compare a program's exact counts, the kernel's included, with a baseline in a file
    Gate(gate::Arguments),
    /// Find a load on which two kernels or models differ most
    FuzzReclaim(fuzz_reclaim::Arguments),
    /// Measure the effect of each mechanism of a kernel under ten loads
    Mechanisms(mechanisms::Arguments),
    /// Show a metric over dates, kernels or revisions, with its change points
    History(history::Arguments),
    /// Draw runs: one self-contained HTML page
    Report(report::Arguments),
    /// Write the notebook as a static site: an index, a page per run, comparisons, history
    Site(site::Arguments),
    /// Compare the simulators with the published results
    Reproduce(reproduce::Arguments),
    /// Judge a kernel for git bisect: good, bad, or does not boot
    BisectRun(bisect_run::Arguments),
    /// Write runs as JSON, CSV or Parquet, or serve the kernel's counters
    Export(export::Arguments),
    /// Import runs from another notebook
    Import(import::Arguments),
    /// Simulate policies and systems on a trace or a pattern: misses by memory size
    Replay(replay::Arguments),
    /// Record the references of a program
    Trace(trace::Arguments),
    /// Write a trace or a pattern in a format that other programs read
    Convert(convert::Arguments),
    /// Shorten a trace without changing its LRU and OPT misses above a given memory size
    Reduce(reduce::Arguments),
    /// Compute the miss-ratio curve of a trace or a pattern
    Mrc(mrc::Arguments),
    /// Print kernel counters as module:instance:name:statistic
    Stat(stat::Arguments),
    /// Print available memory, reclaim and paging by kind, one line per interval
    Vmstat(vmstat::Arguments),
    /// Print the load of each block device and the time of its requests
    Iostat(iostat::Arguments),
    /// Print the use of physical memory, and the sharing of pages
    Memstat(memstat::Arguments),
    /// Print hits and misses of the page cache, and the work of read-ahead
    Cachestat(cachestat::Arguments),
    /// Simulate other memory sizes and policies on the live requests of the page cache
    Shadow(shadow::Arguments),
    /// Print microstates of each process or thread: running, waiting for memory, sleeping
    Prstat(prstat::Arguments),
    /// Diagnose memory shortage; check whether this host is fit for benchmarking
    Doctor(doctor::Arguments),
    /// Watch memory by kind, reclaim, pressure and waiting tasks on one screen
    Top(top::Arguments),
    /// Record counters over time in the notebook
    Record(record::Arguments),
    /// Save a copy of this host's /proc and /sys counter files (for --root)
    Fixture(fixture::Arguments),
    /// Measure the working set over time, of a process, a trace or a pattern
    Wss(wss::Arguments),
    /// Serve this host's clocks to 'run clock --reference' on another host
    Clock(clock::Arguments),
    /// List the experiments with every parameter
    Experiments(catalogue::Arguments),
    /// List the targets
    Targets(catalogue::TargetArguments),
    /// List the reference patterns
    Patterns(catalogue::Arguments),
    /// List the replacement policies with their sources, or their conformance
    Policies(policies::Arguments),
    /// Explain a metric or a term of the output
    Explain(explain::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Print a generated part of the book's reference as Markdown
    #[command(hide = true)]
    Reference(reference::Arguments),
    /// Write the manual pages into a folder
    #[command(name = "man")]
    Manual(manual::Arguments),
}

/// Performs the command.
pub fn dispatch(cli: Cli) -> Result<ExitCode> {
    let Global { notebook, color, quiet } = cli.global;
    let context = Context { notebook, style: terminal::style(color), quiet };
    output::set_style(&context.style);
    // Whatever an earlier pagelab could not undo is undone first.
    let recovery = pagelab_confine::Recovery::begin();
    for line in recovery.first() {
        output::remark!("{line}");
    }
    let done = perform(cli.command, &context);
    for line in recovery.rest() {
        output::remark!("{line}");
    }
    done
}

fn perform(command: Command, context: &Context) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => run::run(&arguments, context),
        Command::Need(arguments) => need::run(&arguments, context),
        Command::List(arguments) => list::run(&arguments, context),
        Command::Show(arguments) => show::run(&arguments, context),
        Command::Compare(arguments) => compare::run(&arguments, context),
        Command::Gate(arguments) => gate::run(&arguments, context),
        Command::FuzzReclaim(arguments) => fuzz_reclaim::run(&arguments, context),
        Command::Mechanisms(arguments) => mechanisms::run(&arguments, context),
        Command::History(arguments) => history::run(&arguments, context),
        Command::Replay(arguments) => replay::run(&arguments, context),
        Command::Trace(arguments) => trace::run(&arguments, context),
        Command::Reduce(arguments) => reduce::run(&arguments, context),
        Command::Mrc(arguments) => mrc::run(&arguments, context),
        Command::Wss(arguments) => wss::run(&arguments, context),
        Command::Reproduce(arguments) => reproduce::run(&arguments, context),
        Command::BisectRun(arguments) => bisect_run::run(&arguments, context),
        Command::Report(arguments) => report::run(&arguments, context),
        Command::Site(arguments) => site::run(&arguments, context),
        Command::Export(arguments) => export::run(&arguments, context),
        Command::Import(arguments) => import::run(&arguments, context),
        Command::Stat(arguments) => stat::run(&arguments, context),
        Command::Vmstat(arguments) => vmstat::run(&arguments, context),
        Command::Iostat(arguments) => iostat::run(&arguments, context),
        Command::Memstat(arguments) => memstat::run(&arguments, context),
        Command::Cachestat(arguments) => cachestat::run(&arguments, context),
        Command::Shadow(arguments) => shadow::run(&arguments, context),
        Command::Prstat(arguments) => prstat::run(&arguments, context),
        Command::Doctor(arguments) => doctor::run(&arguments, context),
        Command::Top(arguments) => top::run(&arguments, context),
        Command::Record(arguments) => record::run(&arguments, context),
        Command::Fixture(arguments) => fixture::run(&arguments, context),
        Command::Clock(arguments) => clock::run(&arguments),
        Command::Experiments(arguments) => catalogue::experiments(&arguments, context),
        Command::Targets(arguments) => catalogue::targets(&arguments, context),
        Command::Convert(arguments) => convert::run(&arguments, context),
        Command::Patterns(arguments) => catalogue::patterns(&arguments, context),
        Command::Policies(arguments) => policies::run(&arguments, context),
        Command::Explain(arguments) => explain::run(&arguments, context),
        Command::Reference(arguments) => reference::run(&arguments, &Cli::command()),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Manual(arguments) => manual::run(&arguments, Cli::command()),
    }
}

#[cfg(test)]
mod tests;
