//! `pagelab man DIR`: a manual page for pagelab and for each of its commands, with examples, exit status, files and
//! environment, and the pages beside it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::file;

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(before_help = "Example:\n  pagelab man ~/.local/share/man/man1\n")]
pub struct Arguments {
    /// The folder; it is made where it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages of this grammar.
pub fn run(arguments: &Arguments, grammar: Command) -> Result<ExitCode> {
    let folder = &arguments.folder;
    let failed = || format!("the manual pages cannot be written to {}", folder.display());
    file::create_folder(folder).with_context(failed)?;
    let mut grammar = grammar.disable_help_subcommand(true);
    grammar.build();
    write(&grammar, None, folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of those below it.
fn write(command: &Command, parent: Option<&Command>, folder: &Path) -> Result<()> {
    let below = || command.get_subcommands().filter(|command| !command.is_hide_set());
    let related: Vec<&str> = parent.into_iter().chain(below()).map(name).collect();
    let text = page(command, &related)?;
    file::write(&folder.join(format!("{}.1", name(command))), |out| Ok(out.write_all(&text)?))?;
    below().try_for_each(|child| write(child, Some(command), folder))
}

/// The day that the pages are written, or that of SOURCE_DATE_EPOCH, so that packages are
/// reproducible.
fn date() -> Result<String> {
    let now = match std::env::var("SOURCE_DATE_EPOCH") {
        Ok(seconds) => jiff::Timestamp::from_second(seconds.parse().context("SOURCE_DATE_EPOCH")?)?,
        Err(_) => jiff::Timestamp::now(),
    };
    Ok(now.strftime("%Y-%m-%d").to_string())
}

/// The page's name: `pagelab-run-mapanon`.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// The page of a command.
fn page(command: &Command, related: &[&str]) -> Result<Vec<u8>> {
    let source = format!("pagelab {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).manual("pagelab").source(source).date(date()?);
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if let Some(examples) = command.get_before_help() {
        let examples = examples.to_string();
        section(&mut out, "EXAMPLES", |roff| {
            roff.control("nf", []);
            for line in examples.lines().skip(1) {
                roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
            }
            roff.control("fi", []);
        })?;
    }
    man.render_options_section(&mut out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    if let Some(notes) = command.get_after_help() {
        let notes = notes.to_string();
        section(&mut out, "NOTES", |roff| {
            for line in notes.lines() {
                roff.text([roman(line)]);
            }
        })?;
    }
    section(&mut out, "EXIT STATUS", |roff| {
        roff.text([roman(EXIT)]);
    })?;
    for (title, entries) in [("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)] {
        section(&mut out, title, |roff| {
            for (name, what) in entries {
                roff.control("TP", []);
                roff.text([bold(*name)]);
                roff.text([roman(*what)]);
            }
        })?;
    }
    if !related.is_empty() {
        let list: Vec<String> = related.iter().map(|name| format!("{name}(1)")).collect();
        section(&mut out, "SEE ALSO", |roff| {
            roff.text([roman(list.join(", "))]);
        })?;
    }
    Ok(out)
}

/// Adds a section.
fn section(out: &mut Vec<u8>, title: &str, fill: impl FnOnce(&mut Roff)) -> Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [title]);
    fill(&mut roff);
    Ok(roff.to_writer(out)?)
}

const EXIT: &str = "0 success; 1 a regression (compare --fail-on), a shortage (doctor), no match (stat); 2 \
    wrong usage; 3 failure. bisect-run has the statuses of git bisect run.";

pub const ENVIRONMENT: &[(&str, &str)] = &[
    ("PAGELAB_NOTEBOOK", "The notebook if --notebook names none."),
    ("PAGELAB_SCRATCH_DIR", "The folder of scratch and swap files (default: /var/tmp/pagelab)."),
    (
        "PAGELAB_STATE_DIR",
        "The folder of the journal (default: /var/lib/pagelab for root, $XDG_STATE_HOME/pagelab for others).",
    ),
    ("PAGELAB_TRACER", "The recorder's plugin, libpagelab_tracer.so (default: next to pagelab)."),
    ("PAGELAB_PRELOAD", "The pager's library, libpagelab_preload.so (default: next to pagelab)."),
    ("PAGELAB_COMPLETE", "Set by a shell's completion script."),
    ("NO_COLOR", "If set, no colours."),
];

const FILES: &[(&str, &str)] = &[
    ("pagelab.db", "The notebook of the working folder."),
    ("report.html", "The page of plots of the last run."),
];
