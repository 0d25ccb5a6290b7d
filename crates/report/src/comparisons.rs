//! Comparisons as a sentence, as tables and as JSON.

use std::fmt::Display;

use pagelab_analysis::comparison::{Caveat, Comparison, Line, SINGLE, Side, Test, Verdict};
use pagelab_analysis::rows::TableComparison;
use pagelab_experiment::observation::{Better, Unit};
use pagelab_experiment::{MetricId, metrics, tables, warnings};
use serde_json::{Value, json};

use crate::table::TextTable;
use crate::text::{self, DASH, Style, ratio, wrapped};

/// The columns of a comparison.
const HEADINGS: [&str; 7] = ["metric", "before", "after", "change", "95% interval", "p", "verdict"];
/// The longest name that heads a column.
const LONG_NAME: usize = 12;
/// Rows of a table with named rows.
const ROWS: usize = 15;

/// Which lines of a comparison to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Metrics without a difference as well.
    pub all: bool,
}

/// A verdict in words.
pub fn verdict(verdict: Verdict) -> &'static str {
    described(verdict).0
}

/// A verdict in words, and what it means.
fn described(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Better => ("better", "the metric changed significantly, for the better (a time: faster)"),
        Verdict::Worse => ("worse", "the metric changed significantly, for the worse (a time: slower)"),
        Verdict::Changed => ("changed", "the metric changed significantly; neither direction is better"),
        Verdict::Equal => ("equal", "both sides are deterministic and have the same figure"),
        Verdict::NoDifference => {
            ("no significant difference", "a change, if there is one, is below the minimum detectable change")
        }
        Verdict::WithinBoots => (
            "no difference beyond boots",
            "a side has one count of instructions, and the change is one that boots of one kernel can differ by",
        ),
        Verdict::Inconclusive(_) => (
            "inconclusive",
            "there are too few repetitions to show any difference; the line below the table says how \
                many are needed",
        ),
    }
}

/// Every verdict in words, with its meaning.
pub fn verdicts() -> [(&'static str, &'static str); 7] {
    use Verdict::{Better, Changed, Equal, Inconclusive, NoDifference, WithinBoots, Worse};
    [Better, Worse, Changed, Equal, NoDifference, WithinBoots, Inconclusive(0)].map(described)
}

/// The words of the warnings about a comparison, and what they mean.
pub const WARNINGS: [(&str, &str); 7] =
    [EXPERIMENTS, UNITS, ENVIRONMENT, NOT_INTERLEAVED, STEAL, BUSY, DRIFT];
const EXPERIMENTS: (&str, &str) = (
    "the experiments differ",
    "The runs did not do the same work, so a change is not one of the target or the setting. \
     Repeat one with the parameters of the other",
);
const UNITS: (&str, &str) = (
    "one side has its times in instructions",
    "A guest with accel=icount counts instructions, which cannot be compared with \
     nanoseconds. Only counts are compared",
);
const ENVIRONMENT: (&str, &str) = (
    "differs",
    "This entry of the environment is not the same on both sides, so it may be the cause of a \
     change. 'pagelab explain' has the entry",
);
const NOT_INTERLEAVED: (&str, &str) = (
    "the runs were not interleaved",
    "The sides were measured one after the other, so a drift of the machine between them \
     counts as a change. Run both in one command",
);
const STEAL: (&str, &str) = (
    "steal up to",
    "The hypervisor gave this share of the CPU time to other guests, so times are too long. \
     Measure on a quiet host",
);
const BUSY: (&str, &str) = (
    "load average",
    "More tasks were runnable than there are CPUs when the run began, so they competed with \
     it. Repeat it on an idle machine",
);
const DRIFT: (&str, &str) = (
    "drifts over the repetitions",
    "Later repetitions are slower or faster than earlier ones, so the figures depend on when \
     they were measured. Find the cause (temperature, other load), or interleave the sides",
);

/// What spoils a comparison, as a sentence.
pub fn caveat(caveat: &Caveat) -> String {
    match caveat {
        Caveat::Experiments(a, b) => format!("{}: {a} and {b}", EXPERIMENTS.0),
        Caveat::Units => format!("{}; they are left out", UNITS.0),
        Caveat::Environment(key, a, b) => format!("{key} {}: {a} and {b}", ENVIRONMENT.0),
        Caveat::NotInterleaved => format!(
            "{}, so a drift of the machine between them counts as well (run both sides in one command with --on)",
            NOT_INTERLEAVED.0
        ),
        Caveat::Clock(run, reason) => format!("{run}: {}: {reason}", warnings::CLOCKS.0),
        Caveat::Steal(run, share) => format!("{run}: {} {:.1}%", STEAL.0, share * 100.0),
        Caveat::Busy(run, load, processors) => {
            format!("{run}: {} {load:.1} on {processors:.0} CPUs at the start", BUSY.0)
        }
        Caveat::Drift(run, metric) => format!("{run}: {metric} {}", DRIFT.0),
    }
}

/// How many repetitions could tell, as a sentence.
pub(crate) fn repetitions(needed: impl Display) -> String {
    format!("To judge every inconclusive metric, repeat {needed} times on each side (--repeat {needed}).")
}

/// What single counts are held against.
pub(crate) fn single_counts() -> String {
    format!("one count per side; boots differ by up to {}%", SINGLE * 100.0)
}

/// A side by its name, and its target where the sides' differ.
fn side(side: &Side, other: &Side) -> String {
    if side.target == other.target { side.run.clone() } else { format!("{} ({})", side.run, side.target) }
}

/// What is compared with what.
pub fn title(comparison: &Comparison) -> String {
    let Comparison { baseline, other, .. } = comparison;
    format!("{} against {}", side(other, baseline), side(baseline, other))
}

/// A primary metric in words.
fn named(line: &Line) -> String {
    let words = [
        (metrics::ACCESS_MEAN, "mean access time"),
        (metrics::SPEED_LAST, "page reads per second at the largest size"),
        (metrics::FORKS_RATE, "forks per second"),
        (metrics::THROUGHPUT_BEST, "best throughput"),
        (metrics::READ_CPU_LARGE, "mean CPU time of a read"),
        (metrics::BANDWIDTH_BUFFERED, "best buffered bandwidth"),
        (metrics::CLOCK_STEP_WORST, "max difference of two clocks over a step"),
        (metrics::LATENCY_DRAM, "mean load from DRAM"),
        (metrics::TIME_ELAPSED, "elapsed time"),
        (metrics::TIME_CPU, "CPU time"),
    ];
    let name = line.name.as_str();
    let words = words.into_iter().find(|(known, _)| known == name).map_or(name, |(_, words)| words);
    match line.unit {
        Unit::PerMillionInstructions => words.replace("per second", "per million instructions"),
        _ => words.to_owned(),
    }
}

/// Whether a change of the metric is one of speed; of two clocks it is one of agreement.
fn is_speed(line: &Line) -> bool {
    let timed = [Unit::Nanoseconds, Unit::PerSecond, Unit::BytesPerSecond].contains(&line.unit);
    timed && metrics::CLOCK_STEP_WORST != *line.name
}

/// The answer in one sentence, by the primary metric.
pub fn headline(comparison: &Comparison) -> String {
    let Comparison { baseline, other, .. } = comparison;
    let Some(line) = comparison.main() else {
        return match comparison.primary() {
            Some(primary) => format!("{primary} was not measured on both sides."),
            None => "A recording has no primary metric.".to_owned(),
        };
    };
    let primary = comparison.primary().filter(|primary| *primary != line.name);
    if let Some(other) = primary.and_then(|primary| comparison.line(primary)) {
        let own = Comparison { deciding: vec![line.name.clone()], ..comparison.clone() };
        let detectable = other.detectable.map_or_else(String::new, |factor| {
            format!(" (minimum detectable change {})", either_way(factor))
        });
        let verdict = verdict(other.verdict);
        return format!("{} {}: {verdict}{detectable}.", headline(&own), other.name);
    }
    if let Some(missing) = &comparison.not_measured {
        let own = Comparison { not_measured: None, ..comparison.clone() };
        return format!("{} {missing}, the primary metric, was not measured on both sides.", headline(&own));
    }
    let (before, after) = (side(baseline, other), side(other, baseline));
    let metric = named(line);
    let figure = |v: f64| text::value(Some(v), line.unit);
    let from_to = format!("{} → {}", figure(line.medians.0), figure(line.medians.1));
    // The change is estimated from all pairs of repetitions, and need not be that of the medians
    // beside it.
    let of_medians = percent(line.medians.1 / line.medians.0 - 1.0);
    let change = line.change.map_or_else(String::new, |change| match change_of(line, change) {
        shown if shown == of_medians || percent(change) == of_medians => shown,
        shown => format!("Hodges-Lehmann estimate {shown}"),
    });
    let sure = match (comparison.exact, line.interval, line.p) {
        (true, ..) => ", exact".to_owned(),
        _ if line.test == Test::Counts => format!("; {}", single_counts()),
        (_, Some((low, high)), Some(p)) => {
            format!(", 95% interval {} … {}, p {}", percent(low), percent(high), p_value(p))
        }
        _ => String::new(),
    };
    let detectable = line
        .detectable
        .map_or_else(String::new, |share| format!("; minimum detectable change {}", either_way(share)));
    match line.verdict {
        Verdict::Equal => format!("No difference: {metric} {} on both sides, exact.", figure(line.medians.0)),
        Verdict::NoDifference => {
            format!("No significant difference in {metric}: {from_to} ({change}{detectable}).")
        }
        Verdict::WithinBoots => {
            format!("No difference beyond boots in {metric}: {from_to} ({change}{sure}).")
        }
        Verdict::Inconclusive(needed) => format!(
            "Inconclusive: {metric} {from_to} ({change}) with {} and {} repetitions; this metric needs at \
            least {needed} on each side.",
            baseline.n, other.n
        ),
        Verdict::Better | Verdict::Worse | Verdict::Changed => {
            let factor = line.change.map_or(f64::INFINITY, |change| 1.0 + change);
            let factor = factor.max(1.0 / factor);
            let faster = line.verdict == Verdict::Better;
            let word = match (is_speed(line), faster) {
                (true, true) => "faster",
                (true, false) => "slower",
                (false, true) => "better",
                (false, false) => "worse",
            };
            // "1.12× worse" says nothing of a count or a share: the change does.
            if factor.is_finite() && is_speed(line) {
                format!(
                    "{after} is {} {word} than {before}: {metric} {from_to} ({change}{sure}).",
                    ratio(factor)
                )
            } else {
                let change = if line.change.is_some() { format!(" ({change}{sure})") } else { String::new() };
                format!("{after} is {word} than {before}: {metric} {from_to}{change}.")
            }
        }
    }
}

pub(crate) fn percent(share: f64) -> String {
    match format!("{:+.1}%", share * 100.0) {
        // It has no direction.
        none if none == "+0.0%" || none == "-0.0%" => "0.0%".to_owned(),
        some => some,
    }
}

/// The change of a line that differs, however little: with two digits where one behind the point
/// would show none.
fn change_of(line: &Line, change: f64) -> String {
    match percent(change) {
        none if none == "0.0%" && line.verdict.differs() && change != 0.0 => {
            let share = change * 100.0;
            let places = (1 - share.abs().log10().floor() as i32).clamp(2, 9) as usize;
            format!("{share:+.places$}%")
        }
        some => some,
    }
}

/// The minimum detectable change: both directions.
pub(crate) fn either_way(factor: f64) -> String {
    match factor {
        _ if factor < 2.0 => format!("±{:.0}%", ((factor - 1.0) * 100.0).max(1.0)),
        _ => format!("a factor of {}", text::digits(factor)),
    }
}

pub(crate) fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// The headings, with the sides' names where they are short.
fn headings(comparison: &Comparison) -> Vec<String> {
    let (before, after) = (&comparison.baseline.run, &comparison.other.run);
    let mut headings = HEADINGS.map(str::to_owned);
    if before.chars().count() <= LONG_NAME && after.chars().count() <= LONG_NAME && before != after {
        headings[1].clone_from(before);
        headings[2].clone_from(after);
    }
    headings.to_vec()
}

fn row(line: &Line) -> Vec<String> {
    let value = |value: f64| text::value(Some(value), line.unit);
    vec![
        line.name.clone(),
        value(line.medians.0),
        value(line.medians.1),
        line.change.map_or_else(|| DASH.to_owned(), |change| change_of(line, change)),
        line.interval
            .map_or_else(|| DASH.to_owned(), |(low, high)| format!("{} … {}", percent(low), percent(high))),
        line.p.map_or_else(|| DASH.to_owned(), p_value),
        verdict(line.verdict).to_owned(),
    ]
}

/// The columns that the comparison has figures for: an exact one has no interval and no p value,
/// and one of single repetitions no verdict either.
fn columns(comparison: &Comparison, mut cells: Vec<String>) -> Vec<String> {
    if comparison.exact || comparison.of_single_counts() {
        cells.drain(4..6);
    } else if comparison.untested() {
        cells.truncate(4);
    }
    cells
}

/// A metric without a significant difference: its change, and how small a change could have been
/// found.
fn no_difference(line: &Line) -> String {
    let change = line.change.map_or_else(String::new, |change| format!(" {}", percent(change)));
    match line.detectable {
        Some(share) => format!("{}{change} (minimum detectable change {})", line.name, either_way(share)),
        None => format!("{}{change}", line.name),
    }
}

/// The rows of named tables that differ.
pub fn row_tables(comparison: &Comparison) -> Vec<TextTable> {
    let (first, second) = (&comparison.baseline.run, &comparison.other.run);
    let table = |table: &TableComparison| {
        let hidden = table.rows.len().saturating_sub(ROWS);
        let hidden = (hidden > 0).then(|| format!("{hidden} smaller differences"));
        let floor = (table.table == tables::profile::TABLE).then(|| {
            "sampled: functions whose samples differ by less than two standard errors are left out".to_owned()
        });
        let rows = table.rows.iter().take(ROWS).map(|row| {
            let change = row.change().map_or_else(|| DASH.to_owned(), percent);
            let value = |v| text::value(v, table.unit);
            vec![row.name.clone(), value(row.before), value(row.after), change]
        });
        let title = format!("{}: {}, {second} against {first}", table.table.name, table.column.name);
        let remarks = hidden.into_iter().chain(floor).collect();
        TextTable { remarks, ..TextTable::new(title, [table.table.name, first, second, "change"], rows) }
    };
    comparison.tables.iter().map(table).collect()
}

/// One comparison for the terminal: the answer, the metrics that differ (or all), then what limits
/// it.
pub fn terminal(comparison: &Comparison, options: Options, style: &Style) -> String {
    let wrap = |text: &str| wrapped(text, "", "  ", style) + "\n";
    let mut out = wrap(&title(comparison));
    out += &wrap(&headline(comparison));
    let is_shown = |line: &&Line| {
        options.all || line.verdict.differs() || matches!(line.verdict, Verdict::Inconclusive(_))
    };
    let rows: Vec<Vec<String>> =
        comparison.lines.iter().filter(is_shown).map(|line| columns(comparison, row(line))).collect();
    if !rows.is_empty() {
        out += &(text::table(&columns(comparison, headings(comparison)), &rows, style) + "\n");
    }
    // The sentence above has said the primary one's.
    let told = |line: &&Line| is_shown(line) || comparison.deciding.contains(&line.name);
    let hidden: Vec<&Line> = comparison.lines.iter().filter(|line| !told(line)).collect();
    if !hidden.is_empty() {
        let names: Vec<String> = match comparison.exact {
            true => hidden.iter().map(|line| line.name.clone()).collect(),
            false => hidden.iter().map(|line| no_difference(line)).collect(),
        };
        let begin = match (comparison.exact, comparison.of_single_counts()) {
            (true, _) => "Equal",
            (_, true) => "No difference beyond boots",
            _ => "No significant difference",
        };
        out += &wrap(&format!("{begin}: {}.", names.join(", ")));
    }
    if comparison.lines.is_empty() {
        out += "No metric was measured on both sides.\n";
    }
    if let Some(needed) = comparison.repetitions_needed() {
        out += &wrap(&repetitions(needed));
    }
    for spoils in &comparison.caveats {
        out += &wrap(&format!("Warning: {}", caveat(spoils)));
    }
    for table in row_tables(comparison) {
        out += &format!("\n{}", table.terminal(style));
    }
    out
}

/// Several comparisons for the terminal, of `many` runs the answer of each alone.
pub fn terminal_all(comparisons: &[Comparison], many: bool, style: &Style) -> String {
    if !many {
        return comparisons.iter().map(|c| terminal(c, Options::default(), style) + "\n").collect();
    }
    let line = |c: &Comparison| {
        let answer = headline(c);
        // The answer without a difference names no side.
        let whole = if answer.contains(&c.other.run) { answer } else { format!("{}: {answer}", title(c)) };
        wrapped(&whole, "  ", "    ", style) + "\n"
    };
    let lines: String = comparisons.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("Compared\n{lines}\n") }
}

/// A comparison as JSON.
pub fn json(comparison: &Comparison) -> Value {
    let lines: Vec<Value> = comparison
        .lines
        .iter()
        .map(|line| {
            json!({
                "metric": line.name,
                "unit": line.unit,
                "better": MetricId::find(&line.name).map_or(Better::Neither, |d| d.better),
                "before": { "median": line.medians.0, "values": line.baseline },
                "after": { "median": line.medians.1, "values": line.other },
                "change": line.change,
                "interval": line.interval.map(|(low, high)| [low, high]),
                "test": line.test.name(),
                "p": line.p,
                "minimum_detectable_factor": line.detectable,
                "verdict": verdict(line.verdict),
            })
        })
        .collect();
    let side = |side: &Side| json!({ "run": side.run, "target": side.target, "repetitions": side.n });
    json!({
        "before": comparison.baseline.run,
        "after": comparison.other.run,
        "sides": [side(&comparison.baseline), side(&comparison.other)],
        "exact": comparison.exact,
        "basis": comparison.of_single_counts().then(single_counts),
        "primary": comparison.primary(),
        "deciding": comparison.deciding,
        "primary_not_measured": comparison.not_measured,
        "headline": headline(comparison),
        "metrics": lines,
        "warnings": comparison.caveats.iter().map(caveat).collect::<Vec<_>>(),
    })
}
