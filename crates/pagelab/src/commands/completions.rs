//! `pagelab completions SHELL`: a completion script on standard output.
//!
//! The script asks pagelab itself at each completion, so that it offers what is there now: the runs of the
//! notebook beside the words, patterns, targets and policies that the grammar takes. What an argument completes
//! follows from the name of its value (RUN, TARGET, PATTERN ...), so no argument has to say it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, Command};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use pagelab_model::policy::{Described, PolicyKind};
use pagelab_notebook::Notebook;
use pagelab_reference::Pattern;

use crate::targets;

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "PAGELAB_COMPLETE";

/// Values that an argument can have, each with a line of help.
type Values = fn() -> Vec<(String, String)>;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Example:\n  pagelab completions bash > pagelab.bash\n")]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for a shell.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let name = arguments.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).ok_or_else(|| anyhow::anyhow!("no completions for {name}"))?;
    shell.write_registration(VARIABLE, "pagelab", "pagelab", "pagelab", &mut std::io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// Answers a shell that asks for completions of this grammar, and ends; does nothing where none asks.
pub fn answer(grammar: fn() -> Command) {
    CompleteEnv::with_factory(|| with_values(grammar())).var(VARIABLE).complete();
}

/// The grammar, with the values that its arguments can have.
fn with_values(command: Command) -> Command {
    let command = command.mut_args(|arg| match candidates(&arg) {
        Some(list) => arg.add(ArgValueCompleter::new(move |current: &OsStr| offered(list, current))),
        None => arg,
    });
    command.mut_subcommands(with_values)
}

/// What the argument's values are, by their name.
fn candidates(arg: &Arg) -> Option<Values> {
    match arg.get_value_names()?.first()?.as_str() {
        "TARGET" => Some(all_targets),
        "MODEL" => Some(|| targets::models().map(|name| (name, String::new())).collect()),
        "PATTERN" => Some(|| owned(Pattern::catalogue())),
        "POLICY" | "POLICIES" => Some(policies),
        "RUN" => Some(runs),
        "FILE=VALUE" => Some(settings),
        _ => None,
    }
}

fn owned(catalogue: &[(&str, &str)]) -> Vec<(String, String)> {
    catalogue.iter().map(|(name, help)| ((*name).to_owned(), (*help).to_owned())).collect()
}

fn policies() -> Vec<(String, String)> {
    let one = |one: &Described| (one.form.to_owned(), one.help.to_owned());
    PolicyKind::catalogue().iter().map(one).collect()
}

fn all_targets() -> Vec<(String, String)> {
    let models = targets::kinds().into_iter().filter(|kind| kind.starts_with("model:"));
    let mut list = vec![
        ("host".to_owned(), "the running kernel".to_owned()),
        ("kernel:".to_owned(), "a kernel image".to_owned()),
    ];
    list.extend(models.map(|name| (name, "a model".to_owned())));
    list
}

/// The kernel's settings of virtual memory, each with its value now.
fn settings() -> Vec<(String, String)> {
    const FOLDERS: [&str; 4] = [
        "/proc/sys/vm",
        "/sys/kernel/mm/transparent_hugepage",
        "/sys/kernel/mm/lru_gen",
        "/sys/kernel/mm/ksm",
    ];
    let files = FOLDERS.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let setting = |file: std::fs::DirEntry| {
        let value = std::fs::read_to_string(file.path()).ok()?;
        Some((format!("{}=", file.path().display()), format!("now {}", value.trim())))
    };
    let mut list: Vec<(String, String)> = files.filter_map(setting).collect();
    list.sort();
    list
}

/// The runs of the notebook that would be used; none where it cannot be read.
fn runs() -> Vec<(String, String)> {
    let path =
        std::env::var_os("PAGELAB_NOTEBOOK").map_or_else(|| PathBuf::from("pagelab.db"), PathBuf::from);
    let entries = Notebook::open_existing(&path).and_then(|notebook| notebook.entries()).unwrap_or_default();
    entries.iter().rev().map(|entry| (entry.name().to_owned(), String::new())).collect()
}

fn offered(list: Values, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = list().into_iter().filter(|(name, _)| name.starts_with(&*current));
    fitting
        .map(|(name, help)| CompletionCandidate::new(name).help((!help.is_empty()).then(|| help.into())))
        .collect()
}
