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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did not get worse.
    Passed,
    /// It got worse, with how much.
    Failed(String),
    /// It was not judged, with the reason.
    Skipped(String),
}

/// A test suite: its name, the name of its class, a case for each metric, and what else is to say.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// What was judged.
    pub name: String,
    /// The run, or the program.
    pub class: &'a str,
    /// The metrics.
    pub cases: Vec<(&'a str, Outcome)>,
    /// The whole comparison.
    pub output: String,
}

impl Suite<'_> {
    fn count(&self, which: fn(&Outcome) -> bool) -> usize {
        self.cases.iter().filter(|(_, outcome)| which(outcome)).count()
    }
}

fn failed(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed(_))
}

fn skipped(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Skipped(_))
}

/// The document of comparisons.
pub fn junit(gates: &[Gate]) -> String {
    let suites = gates.iter().map(|gate| Suite {
        name: comparisons::title(gate.comparison),
        class: &gate.comparison.other.run,
        cases: gate.metrics.iter().map(|name| (*name, outcome(gate, name))).collect(),
        output: whole(gate.comparison),
    });
    document(&suites.collect::<Vec<_>>())
}

/// The document.
pub fn document(suites: &[Suite]) -> String {
    let all = |of| suites.iter().map(|suite| suite.count(of)).sum::<usize>();
    let document = html! {
        testsuites name="pagelab" tests=(all(|_| true)) failures=(all(failed)) errors="0" {
            @for suite in suites {
                testsuite name=(xml(&suite.name)) tests=(suite.cases.len()) failures=(suite.count(failed))
                    errors="0" skipped=(suite.count(skipped)) {
                    @for (name, outcome) in &suite.cases {
                        testcase name=(name) classname=(xml(suite.class)) { (case(outcome)) }
                    }
                    system-out { (xml(&suite.output)) }
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
