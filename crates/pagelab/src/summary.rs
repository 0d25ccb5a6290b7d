//! What `pagelab run` and `pagelab show` print in the end: runs, comparisons, the verdict, and where
//! everything is.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use pagelab_analysis::finding::Finding;
use pagelab_analysis::findings::Assessment;
use pagelab_analysis::groups;
use pagelab_report::{comparisons, findings, ladder, runs};

use crate::context::Context;
use crate::output::{say, sentences, text};

/// How much of the runs to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Figures and comparisons.
    Full,
    /// The verdict alone: a sweep's.
    Verdict,
}

/// Prints what `pagelab run` ends with: the figures, the comparisons, the verdict, and where everything is.
pub fn print(assessment: &Assessment, detail: Detail, page: Option<&Path>, context: &Context) {
    let Assessment { runs: list, findings: found, comparisons: compared, .. } = assessment;
    let experiments = groups(list).len();
    let many = experiments > runs::MANY;
    if detail == Detail::Full {
        // Of several experiments there are too many figures to print them all.
        text(&ladder::terminal(&assessment.ladder, &context.style));
        match experiments {
            1 => list.iter().for_each(|run| text(&(runs::terminal(run, false, &context.style) + "\n"))),
            _ if many => text(&(runs::experiments(list, &context.style) + "\n")),
            _ => {}
        }
        text(&comparisons::terminal_all(compared, experiments > 1, &context.style));
    }
    if many {
        text(&runs::verdict(&runs::beyond_the_main_figures(found), &context.style));
    } else {
        text(&runs::verdict(found, &context.style));
    }
    print_tables(found, context);
    if detail == Detail::Full && experiments > 1 {
        say!("\nDetails of a run: pagelab show NAME. Compare two: pagelab compare NAME NAME.");
    }
    let names: Vec<&str> = list.iter().map(|run| run.header.name.as_str()).collect();
    say!();
    sentences(
        &format!("Kept in {} as {}.", context.notebook.display(), names.join(", ")),
        "",
        "  ",
        &context.style,
    );
    if let Some(page) = page {
        let full = page.canonicalize().unwrap_or_else(|_| page.to_owned());
        say!("Plots: {}", full.display());
    }
}

/// Prints the tables of findings.
pub fn print_tables(found: &[Finding], context: &Context) {
    for table in found.iter().flat_map(findings::tables) {
        say!();
        text(&table.terminal(&context.style));
    }
}

/// Prints the runs and what they say as JSON.
pub fn print_json(assessment: &Assessment, page: Option<&Path>) -> Result<ExitCode> {
    let page = page.map(|page| page.display().to_string());
    crate::output::print_json("result", runs::json(assessment, page.as_deref()))
}
