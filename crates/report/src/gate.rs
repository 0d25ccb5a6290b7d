//! A program's counts against its baseline: in words, as a table, as JSON, as JUnit's XML and as
//! Markdown for the page that a CI service shows.

use pagelab_analysis::gate::{COUNTS, Call, Count, Counts, Judgement, Line, Verdict};
use pagelab_experiment::MetricId;
use serde_json::{Value, json};

use crate::exchange::{Judged, Suite, junit_document};
use crate::table::TextTable;
use crate::text::{self, DASH, Style};

/// The most system calls that are named.
const CALLS: usize = 12;

/// What was counted of a program, and how it compares with its baseline.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// The program.
    pub name: &'a str,
    /// The counts.
    pub counts: &'a Counts,
    /// How they compare; `None` without a baseline.
    pub judgement: Option<&'a Judgement>,
    /// By how much a count may be higher, in percent.
    pub percent: f64,
}

fn figure(metric: MetricId, count: u64) -> String {
    text::value(Some(count as f64), metric.unit)
}

fn spread(metric: MetricId, spread: Option<u64>) -> String {
    spread.map_or_else(|| DASH.to_owned(), |spread| figure(metric, spread))
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Same => "same",
        Verdict::WithinSpread => "within the spread",
        Verdict::Better => "better",
        Verdict::Allowed => "allowed",
        Verdict::Worse => "worse",
    }
}

/// A change in percent with as many digits as show it.
fn change(line: &Line) -> String {
    match (line.verdict, line.change()) {
        (Verdict::Same, _) => "0".to_owned(),
        (_, None) => DASH.to_owned(),
        (_, Some(change)) if change.abs() < 0.0005 => format!("{:+.4}%", change * 100.0),
        (_, Some(change)) => format!("{:+.1}%", change * 100.0),
    }
}

impl Report<'_> {
    /// The answer in one sentence.
    pub fn answer(&self) -> String {
        let Self { name, counts, percent, .. } = self;
        let on = format!("{name} on Linux {}", counts.kernel);
        let Some(judgement) = self.judgement else {
            return format!("{on}: {} counts, not judged.", COUNTS.len());
        };
        let worse: Vec<String> =
            judgement.worse().map(|line| format!("{} ({})", line.metric, change(line))).collect();
        let of = judgement.lines.len();
        match worse.len() {
            0 if judgement.lines.iter().all(|line| line.verdict == Verdict::Same) => {
                format!("{on}: all {of} counts are those of the baseline.")
            }
            0 => format!("{on}: none of {of} counts got worse by more than {percent}%."),
            number => format!(
                "{on}: {number} of {of} counts got worse by more than {percent}%: {}.",
                worse.join(", ")
            ),
        }
    }

    /// The table of counts.
    pub fn table(&self) -> TextTable {
        let Some(judgement) = self.judgement else {
            let row = |metric: MetricId| {
                let Count { least, spread } = *self.counts.counts.get(metric.name)?;
                Some(vec![metric.name.to_owned(), figure(metric, least), self::spread(metric, spread)])
            };
            return TextTable::new("", ["count", "now", "spread"], COUNTS.into_iter().filter_map(row));
        };
        let row = |line: &Line| {
            vec![
                line.metric.name.to_owned(),
                figure(line.metric, line.before.least),
                figure(line.metric, line.now.least),
                spread(line.metric, line.spread()),
                change(line),
                verdict(line.verdict).to_owned(),
            ]
        };
        let headings = ["count", "baseline", "now", "spread", "change", "verdict"];
        TextTable::new("", headings, judgement.lines.iter().map(row))
    }

    /// The system calls: those that differ, or, without a baseline, the most frequent ones.
    pub fn calls(&self) -> String {
        let list = |calls: Vec<String>, before: &str| match calls.len() {
            0 => String::new(),
            all => {
                let more = all.saturating_sub(CALLS);
                let more = if more > 0 { format!(", and {more} others") } else { String::new() };
                format!("{before}{}{more}", calls[..all.min(CALLS)].join(", "))
            }
        };
        match self.judgement {
            Some(judgement) => {
                let one = |call: &Call| format!("{} {} → {}", call.call, call.before, call.now);
                list(judgement.calls.iter().map(one).collect(), "System calls that differ: ")
            }
            None => {
                let mut calls: Vec<_> = self.counts.system_calls.iter().collect();
                calls.sort_by_key(|&(call, number)| (std::cmp::Reverse(number), call));
                let one = |(call, number): (&String, &u64)| format!("{call} {number}");
                list(calls.into_iter().map(one).collect(), "System calls: ")
            }
        }
    }

    /// All of it for a terminal.
    pub fn terminal(&self, style: &Style) -> String {
        let table = self.table();
        let mut out = text::wrapped(&self.answer(), "", "  ", style) + "\n\n";
        out += &(text::table(&table.headings, &table.rows, style) + "\n");
        let calls = self.calls();
        if !calls.is_empty() {
            out += &("\n".to_owned() + &text::wrapped(&calls, "", "  ", style) + "\n");
        }
        out
    }

    /// All of it in Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let table = self.table();
        let rule: Vec<String> = table.headings.iter().map(|_| "---".to_owned()).collect();
        let rows: String = table.rows.iter().map(|cells| row(cells)).collect();
        let mut out = format!("### pagelab gate\n\n{}\n\n", self.answer());
        out += &(row(&table.headings) + &row(&rule) + &rows);
        let calls = self.calls();
        if !calls.is_empty() {
            out += &format!("\n{calls}\n");
        }
        out + "\n"
    }

    /// All of it in JUnit's XML: a case for each count.
    pub fn junit(&self) -> String {
        let outcome = |line: &Line| match line.verdict {
            Verdict::Worse => Judged::Failed(format!(
                "worse by {}, more than {}%: {} → {}",
                change(line),
                self.percent,
                figure(line.metric, line.before.least),
                figure(line.metric, line.now.least)
            )),
            _ => Judged::Passed,
        };
        let lines = self.judgement.iter().flat_map(|judgement| &judgement.lines);
        junit_document(&[Suite {
            name: format!("{} on Linux {}", self.name, self.counts.kernel),
            class: self.name,
            cases: lines.map(|line| (line.metric.name, outcome(line))).collect(),
            output: self.terminal(&Style { color: false, width: 100 }),
        }])
    }

    /// All of it as JSON; counts of bytes have their unit in the name of the metric's catalogue.
    pub fn json(&self) -> Value {
        let of = |line: &Line| {
            json!({
                "metric": line.metric.name,
                "unit": line.metric.unit,
                "baseline": line.before.least,
                "now": line.now.least,
                "spread": line.spread(),
                "change": line.change(),
                "verdict": line.verdict,
            })
        };
        json!({
            "program": self.name,
            "kernel": self.counts.kernel,
            "emulator": self.counts.emulator,
            "fail_on_percent": self.percent,
            "counts": self.counts.counts,
            "system_calls": self.counts.system_calls,
            "judged": self.judgement.map(|judgement| judgement.lines.iter().map(of).collect::<Vec<_>>()),
            "system_calls_changed": self.judgement.map(|judgement| &judgement.calls),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn counts(user: u64, reads: u64) -> Counts {
        let count = |metric: &MetricId| {
            let least = if *metric == COUNTS[0] { user } else { 4096 };
            (metric.name.to_owned(), Count { least, spread: Some(0) })
        };
        Counts {
            kernel: "6.1.0".into(),
            emulator: "7.2".into(),
            counts: COUNTS.iter().map(count).collect(),
            system_calls: BTreeMap::from([("read".into(), reads), ("exit_group".into(), 1)]),
        }
    }

    #[test]
    fn a_worse_count_is_in_the_first_sentence_and_fails_its_case() {
        let (before, now) = (counts(1_000_000, 3), counts(1_020_000, 4));
        let judgement = Judgement::new(&before, &now, 1.0);
        let report = Report { name: "a|b", counts: &now, judgement: Some(&judgement), percent: 1.0 };
        let first = "a|b on Linux 6.1.0: 1 of 7 counts got worse by more than 1%: instructions.user (+2.0%).";
        let text = report.terminal(&Style { color: false, width: 200 });
        assert_eq!(text.lines().next(), Some(first));
        assert!(text.contains("System calls that differ: read 3 → 4"), "{text}");
        let junit = report.junit();
        assert_eq!(junit.matches("<failure ").count(), 1, "{junit}");
        assert!(junit.contains("tests=\"7\" failures=\"1\""), "{junit}");
        let markdown = report.markdown();
        assert!(
            markdown.contains(
                "| instructions.user | 1,000,000 instr | 1,020,000 instr | 0 instr | +2.0% | worse |"
            ),
            "{markdown}"
        );
        assert_eq!(report.json()["judged"][0]["verdict"], "worse");
    }

    #[test]
    fn without_a_baseline_there_is_no_verdict() {
        let now = counts(7, 2);
        let report = Report { name: "true", counts: &now, judgement: None, percent: 1.0 };
        assert!(report.answer().ends_with("not judged."));
        assert_eq!(report.calls(), "System calls: read 2, exit_group 1");
        assert!(report.json()["judged"].is_null());
        let judgement = Judgement::new(&now, &now, 0.0);
        let report = Report { judgement: Some(&judgement), ..report };
        assert!(report.answer().ends_with("all 7 counts are those of the baseline."));
    }
}
