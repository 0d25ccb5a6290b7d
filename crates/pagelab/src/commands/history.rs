//! `pagelab history`: a metric over revisions, and where it steps.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};
use pagelab_analysis::history::{self, By, Series, Step};
use pagelab_experiment::Run;
use pagelab_experiment::declaration::Refusal;
use pagelab_notebook::{Notebook, Summary};
use pagelab_report::text::wrapped;

use super::compare::{measured, metric_name};
use crate::context::Context;
use crate::failure::usage;
use crate::output::say;
use crate::{file, output, page};

/// What a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Points {
    /// One run, by its date
    Date,
    /// All runs on a kernel release, in version order
    Kernel,
    /// All runs of a revision (run --revision), in the order of its first run
    #[value(alias = "commit")]
    Revision,
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    before_help = "Examples:\n  pagelab history                          # every series in the notebook\n  pagelab history mapanon --by kernel\n  pagelab history 'nightly-*' --metric faults.major --html history.html\n  pagelab history latency --since 7d --fail-on-new-change\n",
    after_help = "A series is the runs of one experiment with the same parameters, conditions and CPU. Its change \
points are found with E-divisive and permutation tests: a series needs 9 points, a level 3; a series without a change shows \
one with a probability of 2%, and changes below 1% are left out (of exact counts: below 0.05%). A machine that drifts \
has changes too: look at what changed with the metric."
)]
pub struct Arguments {
    /// An experiment, or a pattern of run names such as 'nightly-*'; none: every experiment
    #[arg(value_name = "EXPERIMENT|PATTERN")]
    what: Option<String>,
    /// Follow these metrics; the first decides [default: those that decide a comparison, and the
    /// headline metrics]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = metric_name)]
    metric: Vec<String>,
    /// One point per run, kernel or revision
    #[arg(long, value_enum, value_name = "WHAT", default_value = "date")]
    by: Points,
    /// Report only changes since this date (2026-11-01) or for this long (7d)
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
    /// Exit with status 1 if the deciding metric of a series got worse (see --since)
    #[arg(long)]
    fail_on_new_change: bool,
    /// Print every point, not only the newest 20
    #[arg(short, long)]
    all: bool,
    /// Write a page with a plot of each metric
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A date or a moment, or an age before now.
fn since(text: &str) -> Result<Timestamp, Refusal> {
    let now = || Zoned::now().with_time_zone(TimeZone::UTC);
    let of_date = |date: Date| date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
    let of_span = |span: Span| now().checked_sub(span.abs()).ok().map(|zoned| zoned.timestamp());
    text.parse::<Timestamp>()
        .ok()
        .or_else(|| text.parse().ok().and_then(of_date))
        .or_else(|| text.parse().ok().and_then(of_span))
        .ok_or_else(|| Refusal::new("must be a date such as 2026-11-01 or an age such as 7d or 12h"))
}

/// Whether `name` is like `pattern`, in which a * stands for any characters.
fn is_like(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let parts: Vec<&str> = rest.split('*').collect();
    let (last, middle) = parts.split_last().expect("a split has a part");
    for part in middle {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(last)
}

/// Prints the series.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let notebook = Notebook::open_existing(&context.notebook)?;
    let is_wanted = |run: &Summary| match &arguments.what {
        Some(what) => run.header.experiment.name() == what || is_like(&run.header.name, what),
        None => true,
    };
    let wanted: Vec<Summary> =
        notebook.list()?.into_iter().filter(|run| run.done > 0 && is_wanted(run)).collect();
    if wanted.is_empty() {
        let what = arguments.what.as_deref().unwrap_or("any experiment");
        return Err(anyhow!(
            "{}: no run of {what} with a complete repetition\nhint: 'pagelab list' lists all runs",
            context.notebook.display()
        ));
    }
    let runs = wanted.iter().map(|run| Ok(notebook.load_figures(run.id)?)).collect::<Result<Vec<Run>>>()?;
    arguments.metric.iter().try_for_each(|metric| measured(metric, &runs))?;
    let by = match arguments.by {
        Points::Date => By::Date,
        Points::Kernel => By::Kernel,
        Points::Revision => By::Revision,
    };
    let all = history::series(&runs, by, &arguments.metric);
    if all.is_empty() {
        return Err(usage(match by {
            By::Revision => {
                "--by revision: no run has one\nhint: run with --revision, or use --by date".to_owned()
            }
            _ => "--by kernel: no run has a kernel release\nhint: use --by date".to_owned(),
        }));
    }
    let is_new = |series: &Series, step: &Step| {
        let begun = series.points[step.at].started.parse::<Timestamp>().ok();
        arguments.since.is_none_or(|since| begun.is_some_and(|begun| begun >= since))
    };
    if let Some(path) = &arguments.html {
        let section = |series| pagelab_report::history::section(series, |step| is_new(series, step));
        let sections: Vec<_> = all.iter().map(section).collect();
        page::write_document("History", None, &sections, path)?;
    }
    let worse = |series: &&Series| {
        let steps = series.tracks.first().map(|track| track.steps.as_slice()).unwrap_or_default();
        steps.iter().any(|step| step.worse == Some(true) && is_new(series, step))
    };
    let failed = arguments.fail_on_new_change && all.iter().any(|series| worse(&series));
    output::set_status(u8::from(failed));
    if arguments.json {
        output::print_json("series", all.iter().map(pagelab_report::history::json).collect())?;
    } else {
        print(&all, arguments, is_new, context);
    }
    if arguments.fail_on_new_change {
        for series in all.iter().filter(worse) {
            output::remark!("{}: got worse", pagelab_report::history::title(series));
        }
    }
    if let Some(path) = &arguments.html
        && !context.quiet
        && !file::is_stdout(path)
        && !arguments.json
    {
        say!("{}", path.display());
    }
    Ok(ExitCode::from(u8::from(failed)))
}

fn print(all: &[Series], arguments: &Arguments, is_new: impl Fn(&Series, &Step) -> bool, context: &Context) {
    // Of several series the points are many: those of one, or what changed.
    let whole = all.len() == 1 || arguments.all;
    for (index, series) in all.iter().enumerate() {
        if index > 0 {
            say!();
        }
        say!("{}", wrapped(&pagelab_report::history::title(series), "", "  ", &context.style));
        for sentence in pagelab_report::history::answer(series, |step| is_new(series, step)) {
            say!("{}", wrapped(&sentence, "  ", "    ", &context.style));
        }
        if whole && !series.tracks.is_empty() {
            say!();
            output::text(&pagelab_report::history::table(series, arguments.all).terminal(&context.style));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        for (name, pattern, is) in [
            ("nightly-7", "nightly-*", true),
            ("nightly-7", "nightly-7", true),
            ("nightly-7", "nightly", false),
            ("a-night-7", "*night*", true),
            ("a-night-7", "a*t*8", false),
            ("aa", "a*aa", false),
            ("", "*", true),
        ] {
            assert_eq!(is_like(name, pattern), is, "{name} {pattern}");
        }
    }

    #[test]
    fn a_moment_is_a_date_or_an_age() {
        assert_eq!(since("2026-11-01").unwrap().to_string(), "2026-11-01T00:00:00Z");
        assert_eq!(since("2026-11-01T12:00:00Z").unwrap().to_string(), "2026-11-01T12:00:00Z");
        let week = Timestamp::now().duration_since(since("7d").unwrap()).as_secs();
        assert!((week - 7 * 86_400).abs() < 60, "{week}");
        assert!(since("yesterday").is_err());
    }
}
