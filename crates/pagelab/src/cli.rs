//! The command line's grammar. Help, manual pages and completions come from these definitions.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{
    bisect_run, catalogue, clock, compare, completions, convert, doctor, explain, export, fixture, import,
    iostat, list, manual, memstat, mrc, policies, prstat, record, reduce, replay, report, reproduce, run,
    show, stat, top, trace, vmstat, wss,
};
use crate::terminal::Color;

/// A laboratory for virtual-memory performance: runs experiments on the kernel, keeps what it saw,
/// compares any two runs and draws them.
#[derive(Parser, Debug)]
#[command(
    name = "pagelab",
    version,
    propagate_version = true,
    max_term_width = 100,
    before_help = EXAMPLES,
    after_help = "Exit status: 0 done; 1 'compare --fail-on' found a regression, 'doctor' a shortage, 'stat' nothing; 2 wrong usage; 3 could not be performed."
)]
pub struct Cli {
    /// The notebook: one SQLite file that keeps every run
    #[arg(long, value_name = "FILE", env = "PAGELAB_NOTEBOOK", default_value = "pagelab.db", global = true, help_heading = GLOBAL)]
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
    /// No progress and no remarks, only results and errors
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    pub quiet: bool,
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// The heading of the options that every command has.
const GLOBAL: &str = "Global options";

const EXAMPLES: &str = "Examples:
  pagelab run                                      the standard suite: a verdict and report.html
  pagelab run mapanon --memory 64M --repeat 5      one experiment, five times
  pagelab run mapanon --repeat 8 --on host,thp=never --on host,thp=always
  pagelab compare @2 @1                            the last two runs against each other
  pagelab report @1 -o page.html                   a run as one page of plots
";

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Perform an experiment, or the standard suite, and keep what was seen
    Run(run::Arguments),
    /// The runs in the notebook
    List(list::Arguments),
    /// One run's figures
    Show(show::Arguments),
    /// Compare runs: change, interval, significance, verdict
    Compare(compare::Arguments),
    /// Draw runs: one self-contained HTML page
    Report(report::Arguments),
    /// The published figures beside the models'
    Reproduce(reproduce::Arguments),
    /// Judge a kernel for git bisect: good, bad, or does not boot
    BisectRun(bisect_run::Arguments),
    /// Write runs as JSON, CSV or Parquet, or serve the kernel's counters
    Export(export::Arguments),
    /// Take the runs of another notebook over
    Import(import::Arguments),
    /// Recorded traces on policies and modelled systems: misses for each memory size
    Replay(replay::Arguments),
    /// Record the references of a program
    Trace(trace::Arguments),
    /// Write a trace or a pattern in a format that other programs read
    Convert(convert::Arguments),
    /// Make a stream shorter that faults alike: exact for LRU and OPT above a size
    Reduce(reduce::Arguments),
    /// Miss ratio against memory, of a recorded trace or a pattern
    Mrc(mrc::Arguments),
    /// The kernel's counters as module:instance:name:statistic
    Stat(stat::Arguments),
    /// Free memory, reclaim and paging by kind, a line an interval
    Vmstat(vmstat::Arguments),
    /// What each block device does, and how long its requests take
    Iostat(iostat::Arguments),
    /// Where physical memory is, and who shares it
    Memstat(memstat::Arguments),
    /// Who waits for memory: microstates of each process or thread
    Prstat(prstat::Arguments),
    /// Is memory short, who waits, who holds it; is this machine fit to measure on
    Doctor(doctor::Arguments),
    /// Memory by kind, reclaim, pressure and who waits, live on one screen
    Top(top::Arguments),
    /// Keep chosen counters over time in the notebook
    Record(record::Arguments),
    /// Record the counters' files into a folder
    Fixture(fixture::Arguments),
    /// The working set over time, of a process, a recorded trace or a pattern
    Wss(wss::Arguments),
    /// This machine's clock for another's 'run clock --reference'
    Clock(clock::Arguments),
    /// The experiments and every parameter
    Experiments(catalogue::ExperimentArguments),
    /// The targets
    Targets(catalogue::TargetArguments),
    /// The reference patterns
    Patterns(catalogue::Arguments),
    /// The replacement policies, their sources, and how they stand beside independent simulators
    Policies(policies::Arguments),
    /// What a metric or a term of the output means
    Explain(explain::Arguments),
    /// Print a completion script for a shell
    Completions(completions::Arguments),
    /// Write the manual pages into a folder
    #[command(name = "man")]
    Manual(manual::Arguments),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
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

    /// The words of a line for a shell, up to what is the shell's own; `None` where that comes among them.
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
        for folder in ["docs", "docs/experiments", "docs/models"] {
            let files = std::fs::read_dir(format!("{root}/{folder}")).unwrap();
            let files = files.map(|file| file.unwrap().path().to_str().unwrap().to_owned());
            texts.extend(files.filter(|file| file.ends_with(".md")));
        }
        let mut texts: Vec<(String, String)> =
            texts.into_iter().map(|file| (file.clone(), std::fs::read_to_string(&file).unwrap())).collect();
        fn helps(command: &mut clap::Command, texts: &mut Vec<(String, String)>) {
            texts.push((command.get_name().to_owned(), command.render_long_help().to_string()));
            command.get_subcommands_mut().for_each(|command| helps(command, texts));
        }
        helps(&mut Cli::command(), &mut texts);
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
}
