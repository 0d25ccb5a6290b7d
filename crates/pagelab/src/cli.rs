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
mod tests {
    use super::*;
    use pagelab_experiment::Setting;
    use pagelab_testing::fuzz;

    /// Every word of the grammar: commands, options, possible values.
    fn words(command: &clap::Command, list: &mut Vec<Vec<u8>>) {
        list.push(command.get_name().into());
        for argument in command.get_arguments() {
            let long = argument.get_long().map(|long| format!("--{long}").into_bytes());
            list.extend(long);
            list.extend(argument.get_possible_values().iter().map(|value| value.get_name().into()));
        }
        command.get_subcommands().for_each(|command| words(command, list));
    }

    #[test]
    fn no_words_make_the_grammar_panic() {
        let mut command = Cli::command();
        command.build();
        let mut grammar = Vec::new();
        words(&command, &mut grammar);
        for value in [
            "host,memory=64M,swap=zram",
            "kernel:/x,append=\"a b\"",
            "model:2q:kin=0.5,frames=10",
            "/proc/sys/vm/swappiness=1",
            "10%,64M,400p",
            "1M..4M:3",
            "zipf:0.9",
            "trace:x",
            "vmstat:0:vm:/^pg/",
            "18446744073709551616",
            "-0",
            "1e999",
            "@1",
            "--",
        ] {
            grammar.push(value.into());
        }
        // Some words make a line, an input; what is spoiled is the line.
        let lines: Vec<Vec<u8>> = (0..grammar.len() * 4)
            .map(|n| {
                let word = |k: usize| &grammar[(n * 31 + k * k * 17) % grammar.len()][..];
                let name = command.get_subcommands().nth(n % 29).map_or("run", |command| command.get_name());
                let mut line = name.as_bytes().to_vec();
                (1..=n % 6).for_each(|k| line.extend([b"\n", word(k)].concat()));
                line
            })
            .collect();
        fuzz::fuzz("arguments", &lines, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let _ = Cli::try_parse_from(std::iter::once("pagelab").chain(text.split('\n')));
        });
    }

    /// The words of a line for a shell, up to what is the shell's own; `None` where that comes
    /// among them.
    fn shell_words(line: &str) -> Option<Vec<String>> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match (letter, quote) {
                (letter, Some(open)) if letter == open => quote = None,
                ('\'' | '"', None) => quote = Some(letter),
                ('|' | '>' | '&' | ';' | '#', None) if word.is_empty() => break,
                ('>', None) if word == "2" => {
                    word.clear();
                    break;
                }
                (';', None) if letters.peek().is_none_or(|next| *next == ' ') => break,
                ('$' | '`' | '…' | '[', None) => return None,
                (' ', None) => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
                (letter, _) => word.push(letter),
            }
        }
        words.extend(Some(word).filter(|word| !word.is_empty()));
        Some(words)
    }

    /// What README, documents and helps tell readers to type, the grammar takes.
    #[test]
    fn every_example_is_of_this_grammar() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let mut texts = vec![format!("{root}/README.md")];
        let mut folders = vec![format!("{root}/docs/src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.to_str().unwrap().to_owned();
                if path.is_dir() {
                    folders.push(name);
                } else if name.ends_with(".md") {
                    texts.push(name);
                }
            }
        }
        let mut texts: Vec<(String, String)> =
            texts.into_iter().map(|file| (file.clone(), std::fs::read_to_string(&file).unwrap())).collect();
        fn helps(command: &mut clap::Command, texts: &mut Vec<(String, String)>) {
            texts.push((command.get_name().to_owned(), command.render_long_help().to_string()));
            command.get_subcommands_mut().for_each(|command| helps(command, texts));
        }
        helps(&mut grammar(), &mut texts);
        let (mut seen, mut wrong) = (0, Vec::new());
        for (name, text) in texts {
            let mut parts = text.split("\\\n");
            let mut whole = parts.next().unwrap_or_default().to_owned();
            parts.for_each(|part| whole.extend([" ", part.trim_start()]));
            for line in whole.lines() {
                let Some(line) = line.trim_start().strip_prefix("$ pagelab ").or_else(|| {
                    line.strip_prefix("    pagelab ").or_else(|| line.strip_prefix("  pagelab "))
                }) else {
                    continue;
                };
                // What it is for stands apart.
                let line = line.split("   ").next().unwrap_or_default();
                let Some(words) = shell_words(line) else { continue };
                let words = std::iter::once("pagelab".to_owned()).chain(words);
                seen += 1;
                if let Err(error) = Cli::try_parse_from(words)
                    && error.use_stderr()
                {
                    wrong.push(format!(
                        "{name}: pagelab {line}: {}",
                        error.to_string().lines().next().unwrap()
                    ));
                }
            }
        }
        assert!(wrong.is_empty() && seen > 150, "{} of {seen}: {wrong:#?}", wrong.len());
    }

    #[test]
    fn the_grammar_of_a_view_takes_what_the_whole_grammar_takes() {
        let split = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in [
            "pagelab vmstat 1 20",
            "pagelab vmstat -S --json 1 --root x",
            "pagelab prstat -mL -n 3 -p 1,2 0.1 1 --quiet",
            "pagelab iostat -q --notebook x.db 1",
            "pagelab memstat --color never",
        ] {
            let words = split(line);
            let whole = Cli::try_parse_from(&words).unwrap();
            assert_eq!(format!("{:?}", parse_view(&words).unwrap()), format!("{whole:?}"), "{line}");
        }
        for line in [
            "pagelab",
            "pagelab list",
            "pagelab -q vmstat",
            "pagelab vmstat --help",
            "pagelab vmstat -V",
            "pagelab vmstat --no",
            "pagelab prstat x",
        ] {
            assert!(parse_view(&split(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn every_command_is_in_one_group() {
        let command = Cli::command();
        let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut names: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        names.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(names, grouped);
    }

    #[test]
    fn examples_are_at_most_five_and_fit_76_columns() {
        fn check(command: &clap::Command, wrong: &mut Vec<String>) {
            let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> =
                examples.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
            let commands = lines.iter().filter(|line| line.starts_with("pagelab ")).count();
            if commands > 5 || lines.iter().any(|line| line.chars().count() > 76) {
                wrong.push(format!("{}: {lines:#?}", command.get_name()));
            }
            command.get_subcommands().for_each(|command| check(command, wrong));
        }
        let mut wrong = Vec::new();
        check(&Cli::command(), &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// clap wraps at the terminal's width: a break within a paragraph would leave a word alone.
    #[test]
    fn notes_of_a_help_have_no_breaks_within_a_paragraph() {
        fn check(command: &clap::Command, wrong: &mut Vec<String>) {
            let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let lines: Vec<&str> = notes.lines().collect();
            let text = |line: &str| !line.is_empty() && !line.starts_with(' ');
            let broken = lines.windows(2).filter(|pair| text(pair[0]) && text(pair[1]));
            wrong.extend(broken.map(|pair| format!("{}: {}", command.get_name(), pair[0])));
            command.get_subcommands().for_each(|command| check(command, wrong));
        }
        let mut wrong = Vec::new();
        check(&Cli::command(), &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_help_of_an_experiment_has_the_conditions_that_a_target_takes_and_no_others() {
        let mut grammar = grammar();
        grammar.build();
        let (mut seen, mut wrong) = (0, Vec::new());
        for experiment in targets::experiments() {
            let name = experiment.name();
            let run = grammar.find_subcommand("run").unwrap();
            let Some(command) = run.find_subcommand(name) else { continue };
            let refused = |setting: &Setting| {
                targets::kinds().iter().all(|kind| {
                    let kind = if kind == "host" { targets::ANY_HOST } else { kind };
                    targets::refusal(kind, &experiment, setting).is_some()
                })
            };
            for (condition, setting) in targets::single_conditions() {
                seen += 1;
                let shown = command
                    .get_arguments()
                    .any(|own| own.get_long() == Some(condition) && !own.is_hide_set());
                if shown == refused(&setting) {
                    wrong.push(format!("{name} --{condition}"));
                }
            }
        }
        assert!(wrong.is_empty() && seen > 150, "{} of {seen}: {wrong:?}", wrong.len());
    }

    #[test]
    fn a_usage_error_is_a_problem_and_one_hint() {
        let of = |text: &str| in_words(text, "pagelab run mapanon");
        let see = "\nhint: see 'pagelab run mapanon --help'";
        assert_eq!(of("error: a\n\nb is not in 3 words\n"), format!("a\nb is not in 3 words{see}"));
        assert_eq!(of("error: b: 0 is not in 1..=1000\n"), format!("b: must be between 1 and 1000{see}"));
        let tip = |tip: &str| {
            format!("error: invalid value 'wrote'\n\n  tip: {tip}\n\nFor more information, try '--help'.\n")
        };
        let invalid = "invalid value 'wrote'\nhint: ";
        assert_eq!(of(&tip("a similar value exists: 'write'")), format!("{invalid}did you mean 'write'?"));
        assert_eq!(of(&tip("a similar value exists: 'other'")), format!("invalid value 'wrote'{see}"));
        assert_eq!(of(&tip("use '-- -1'")), format!("{invalid}use '-- -1'"));
        let unknown = "error: unrecognized subcommand 'sho'\n\nUsage: pagelab run\n";
        assert_eq!(
            in_words(unknown, "pagelab run"),
            "unknown experiment 'sho'\nhint: 'pagelab experiments' lists all"
        );
    }
}
