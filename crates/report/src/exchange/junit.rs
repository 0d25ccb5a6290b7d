//! The outcome of a gate in JUnit's XML, which every CI service shows: a test suite for each comparison, a test case
//! for each metric that was judged.

use maud::{Markup, PreEscaped, html};
use pagelab_analysis::comparison::{Comparison, Verdict};

use crate::comparisons::{self, Options};
use crate::text::{self, Style};

/// A comparison and the metrics that decide, of which none may have got worse by more than `percent`.
#[derive(Clone, Copy, Debug)]
pub struct Gate<'a> {
    /// The comparison.
    pub comparison: &'a Comparison,
    /// The metrics that are judged.
    pub metrics: &'a [&'a str],
    /// By how much a metric may have got worse, in percent.
    pub percent: f64,
}

/// What became of a judged metric.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Which outcomes to count.
type Which = fn(&Outcome) -> bool;

const EVERY: Which = |_| true;
const FAILED: Which = |outcome| matches!(outcome, Outcome::Failed(_));
const SKIPPED: Which = |outcome| matches!(outcome, Outcome::Skipped(_));

fn count(cases: &[(&str, Outcome)], which: Which) -> usize {
    cases.iter().filter(|(_, outcome)| which(outcome)).count()
}

/// The document.
pub fn junit(gates: &[Gate]) -> String {
    let suites: Vec<(&Gate, Vec<(&str, Outcome)>)> = gates
        .iter()
        .map(|gate| (gate, gate.metrics.iter().map(|name| (*name, outcome(gate, name))).collect()))
        .collect();
    let all = |of| suites.iter().map(|(_, cases)| count(cases, of)).sum::<usize>();
    let document = html! {
        testsuites name="pagelab" tests=(all(EVERY)) failures=(all(FAILED)) errors="0" {
            @for (gate, cases) in &suites {
                testsuite name=(xml(&comparisons::title(gate.comparison))) tests=(cases.len()) failures=(count(cases, FAILED))
                    errors="0" skipped=(count(cases, SKIPPED)) {
                    @for (name, outcome) in cases {
                        testcase name=(name) classname=(xml(&gate.comparison.other.run)) { (case(outcome)) }
                    }
                    system-out { (xml(&whole(gate.comparison))) }
                }
            }
        }
    };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", document.into_string())
}

fn case(outcome: &Outcome) -> Markup {
    match outcome {
        Outcome::Passed => PreEscaped(String::new()),
        Outcome::Failed(why) => html! { failure message=(xml(why)) {} },
        Outcome::Skipped(why) => html! { skipped message=(xml(why)) {} },
    }
}

fn outcome(gate: &Gate, name: &str) -> Outcome {
    let comparison = gate.comparison;
    let Some(line) = comparison.line(name) else {
        return Outcome::Skipped("not measured on both sides".to_owned());
    };
    if !comparison.worse_by(gate.percent, &[name]).is_empty() {
        let change =
            line.change.map_or_else(String::new, |change| format!(" by {:.1}%", change.abs() * 100.0));
        let figure = |value: f64| text::value(Some(value), line.unit);
        let (before, after) = (figure(line.medians.0), figure(line.medians.1));
        let why = format!("worse{change}, more than {}%: {before} → {after}", gate.percent);
        return Outcome::Failed(why);
    }
    match line.verdict {
        Verdict::Inconclusive(needed) => {
            Outcome::Skipped(format!("inconclusive: at least {needed} repetitions on each side are needed"))
        }
        _ => Outcome::Passed,
    }
}

fn whole(comparison: &Comparison) -> String {
    comparisons::terminal(comparison, Options { all: true }, &Style { color: false, width: 100 })
}

/// Text without the characters that XML 1.0 cannot hold.
fn xml(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().filter(allowed).collect()
}
