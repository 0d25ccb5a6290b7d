//! `pagelab explain TERM`: what a word of the output means: a term, a metric, a column, a verdict, …

use std::process::ExitCode;

use anyhow::Result;
use pagelab_counters::views::{cachestat, doctor, files, iostat, memstat, prstat, stat, vmstat};
use pagelab_experiment::declaration::closest;
use pagelab_experiment::glossary::{Entry, metrics, terms};
use pagelab_experiment::metrics::{Statistic, current};
use pagelab_experiment::{environment, warnings};
use pagelab_report::comparisons;
use pagelab_studies::claim;
use serde_json::json;

use super::wss;
use crate::context::Context;
use crate::failure::usage;
use crate::output::{self, print_json, say};

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab explain refault\n  pagelab explain faults.major\n  pagelab explain \
        DFL\n"
)]
pub struct Arguments {
    /// A term, metric, column, verdict, statistic, entry of the environment or words of a warning; without one, all names
    #[arg(value_name = "TERM")]
    term: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Everything that is explained, by kind.
pub fn sections() -> [(&'static str, Vec<Entry>); 7] {
    let entries = |of: String, list: &[(&'static str, &'static str)]| -> Vec<Entry> {
        let entry = |&(name, help): &_| Entry { name, text: format!("{of}: {help}.") };
        list.iter().map(entry).collect()
    };
    let columns = [
        ("vmstat", vmstat::described()),
        ("iostat", iostat::described()),
        ("memstat", memstat::described()),
        ("memstat --files", files::described()),
        ("cachestat", cachestat::described()),
        ("prstat", prstat::described()),
        ("stat", stat::PARTS.to_vec()),
        ("wss", wss::COLUMNS.to_vec()),
    ];
    let columns =
        columns.into_iter().flat_map(|(view, list)| entries(format!("Column of {view}"), &list)).collect();
    let verdicts = [
        entries("In a comparison".to_owned(), &comparisons::verdicts()),
        entries("Of a claim".to_owned(), &claim::Verdict::ALL.map(claim::Verdict::described)),
        entries("In doctor".to_owned(), &doctor::Level::ALL.map(doctor::Level::described)),
    ];
    // Their meanings are sentences.
    let warned = |of: &str, list: &[(&'static str, &'static str)]| -> Vec<Entry> {
        let entry = |&(name, help): &_| Entry { name, text: format!("Warning {of}. {help}.") };
        list.iter().map(entry).collect()
    };
    let warnings = [
        warned("about a run", warnings::ALL),
        warned("about a run's limits or settings", &pagelab_confine::WARNINGS),
        warned("about a comparison", &comparisons::WARNINGS),
        warned("of a command", &output::WARNINGS),
    ];
    let statistics = Statistic::ALL.map(Statistic::described);
    [
        ("Terms", terms()),
        ("Metrics", metrics()),
        ("Statistics", entries("Statistic".to_owned(), &statistics)),
        ("Verdicts", verdicts.concat()),
        ("Columns", columns),
        ("Warnings", warnings.concat()),
        ("Environment", entries("Fact about the machine or the run".to_owned(), environment::ALL)),
    ]
}

/// Prints the paragraph.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let sections = sections();
    if arguments.term.is_empty() && !arguments.json {
        for (number, (heading, entries)) in sections.iter().enumerate() {
            let names: Vec<&str> = entries.iter().map(|entry| entry.name).collect();
            if number > 0 {
                say!();
            }
            output::sentences(&names.join("; "), &format!("{heading}: "), "  ", &context.style);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let all = sections.into_iter().flat_map(|(_, entries)| entries).collect();
    let chosen = match arguments.term.join(" ") {
        term if term.is_empty() => all,
        term => found(&term, all)?,
    };
    if arguments.json {
        let list: Vec<_> = chosen.iter().map(|e| json!({"name": e.name, "text": e.text})).collect();
        return print_json("terms", list.into());
    }
    for entry in chosen {
        output::sentences(&format!("{}: {}", entry.name, entry.text), "", "  ", &context.style);
    }
    Ok(ExitCode::SUCCESS)
}

/// The entries of this name, the exact ones first, then those that differ in case, hyphens or a
/// plural: a term, a metric and a column can share a name. A metric is also found by its former name.
fn found(term: &str, all: Vec<Entry>) -> Result<Vec<Entry>> {
    let term = current(term);
    let plain = |name: &str| {
        let name = name.to_lowercase().replace(['-', '_'], " ");
        // `S`, `us` and `r/s` are columns.
        if name.len() > 4 { name.trim_end_matches('s').to_owned() } else { name }
    };
    // "swap-in, swap-out" is one entry of two names, "set FILE" an entry for every file.
    let is = |entry: &Entry| {
        plain(entry.name) == plain(term)
            || entry.name.split(", ").any(|name| plain(name) == plain(term))
            || environment::help(term).is_some_and(|help| entry.text.ends_with(&format!(": {help}.")))
    };
    let mut found: Vec<Entry> = all.iter().filter(|entry| is(entry)).cloned().collect();
    if !found.is_empty() {
        found.sort_by_key(|entry| entry.name != term);
        return Ok(found);
    }
    // A warning is pasted whole, with names and figures around its declared words.
    let warnings = all.iter().filter(|entry| entry.text.starts_with("Warning "));
    let pasted = warnings.filter(|entry| plain(term).contains(&plain(entry.name)));
    found.extend(pasted.max_by_key(|entry| entry.name.len()).cloned());
    if !found.is_empty() {
        return Ok(found);
    }
    // A part of a name: the entry, if there is only one.
    let is_part = |entry: &&Entry| plain(entry.name).split(' ').any(|word| word == plain(term));
    let with: Vec<&Entry> = all.iter().filter(is_part).collect();
    if let [only] = with[..] {
        return Ok(vec![only.clone()]);
    }
    let meant = match (&with[..], closest(term, all.iter().map(|entry| entry.name))) {
        ([_, ..], _) => {
            let names: Vec<String> = with.iter().map(|entry| format!("'{}'", entry.name)).collect();
            format!(" (there is {})", names.join(", "))
        }
        ([], Some(name)) => format!(" (did you mean '{name}'?)"),
        ([], None) => String::new(),
    };
    Err(usage(format!("unknown term '{term}'{meant}\nhint: 'pagelab explain' lists all")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_counters::views::cachestat::By;
    use pagelab_counters::views::{Width, iostat, memstat, prstat, vmstat};

    use pagelab_analysis::comparison::Caveat;

    use crate::commands::top::draw;

    fn names(term: &str) -> Vec<&'static str> {
        let all: Vec<Entry> = sections().into_iter().flat_map(|(_, entries)| entries).collect();
        found(term, all).map_or_else(|_| Vec::new(), |list| list.iter().map(|entry| entry.name).collect())
    }

    #[test]
    fn everything_declared_is_found_by_its_name_and_first() {
        for entry in sections().iter().flat_map(|(_, entries)| entries) {
            let names_of = if entry.text.starts_with("Warning ") { "\n" } else { ", " };
            for name in entry.name.split(names_of) {
                assert_eq!(names(name).first(), Some(&entry.name), "{name}");
            }
            assert!(entry.text.ends_with('.') && !entry.text.contains(".."), "{entry:?}");
        }
        assert_eq!(names("set /proc/sys/vm/swappiness"), ["set FILE"]);
        assert_eq!(names("model.cost.major"), ["model.cost.NAME"]);
        assert_eq!(names("primary"), ["primary metric"]);
    }

    #[test]
    fn a_warning_is_found_by_the_whole_sentence() {
        let entries = sections().into_iter().find(|(heading, _)| *heading == "Warnings").unwrap().1;
        for Entry { name, .. } in &entries {
            assert_eq!(names(&format!("Warning: run-2: the cgroup /a (12.0 MiB) {name}: 1 and 2")), [*name]);
        }
        let caveat = comparisons::caveat(&Caveat::Steal("swap-1".to_owned(), 0.25));
        assert_eq!(names(&format!("Warning: {caveat}")), ["steal up to"]);
        assert!(names("Warning: run-2: all is well").is_empty());
    }

    #[test]
    fn every_word_of_the_live_views_headings_is_explained() {
        let layouts = [false, true].map(|swapping| vmstat::Layout { swapping, ..Default::default() });
        let mut headings: Vec<String> =
            layouts.map(|layout| vmstat::heading(layout).lines().last().unwrap().to_owned()).into();
        headings.extend([iostat::heading(Width::Whole, true), iostat::short_heading()]);
        headings.push(iostat::Processors::default().lines().lines().nth(1).unwrap().to_owned());
        for other in [false, true] {
            headings.extend([memstat::holder_heading(other), prstat::summary_heading(other)]);
            let widths = [Width::Whole, Width::Columns(80)];
            headings.extend(widths.map(|width| prstat::microstate_heading(other, width)));
            headings.push(draw::heading(other));
        }
        headings.extend([By::Machine, By::Process, By::Cgroup, By::File].map(cachestat::heading));
        headings.extend(["DIRECTORY", "FILE"].map(|title| files::table(title, &[], Width::Whole)));
        let unexplained: Vec<&str> = headings
            .iter()
            .flat_map(|h| h.split_whitespace())
            .filter(|word| names(word).first() != Some(word))
            .collect();
        assert!(unexplained.is_empty(), "{unexplained:?}");
    }
}
