//! `pagelab stat`: the tree of counters with kstat's habits.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use pagelab_counters::{Part, Selection, Selector, SelectorError, Snapshot, Tree, views};
use pagelab_experiment::declaration::closest;
use serde_json::json;

use crate::context::Context;
use crate::failure::usage;
use crate::output::{self, SCHEMA_VERSION, bounded, remark, say};
use crate::ticker::{Extra, Interval, Machine, Schedule, Ticker};

/// How a time stamp is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stamp {
    /// Date and time
    D,
    /// Seconds since 1970
    U,
}

/// The arguments.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "pagelab stat [OPTIONS] [SELECTOR]... [INTERVAL [COUNT]]",
    before_help = "Examples:\n  pagelab stat vmstat:::pgfault\n  pagelab stat -p 'vmstat:::/^pg(scan|steal)_(anon|file)/' --rate 1 10\n  pagelab stat -m process -n postgres -s rss\n  pagelab stat -q swaps && echo 'there is swap'\n  pagelab stat --modules\n",
    after_help = "A selector is module:instance:name:statistic. Each part is empty (anything), a shell \
glob over the whole part, or a /regular expression/ that matches anywhere. Trailing parts may be left out; \
of several selectors one must match. Sizes are in bytes or pages and times in nanoseconds, regardless of \
the unit of the kernel's file.

Exit status: 0 something matched; 1 nothing matched; 2 wrong usage; 3 files could not be read."
)]
pub struct Arguments {
    /// Selectors, then INTERVAL and COUNT: seconds between two prints, and how many
    #[arg(value_name = "SELECTOR")]
    operands: Vec<String>,
    /// Only these modules
    #[arg(short, long, value_name = "GLOB")]
    module: Option<String>,
    /// Only these instances
    #[arg(short, long, value_name = "GLOB")]
    instance: Option<String>,
    /// Only these names
    #[arg(short, long, value_name = "GLOB")]
    name: Option<String>,
    /// Only these statistics
    #[arg(short, long, value_name = "GLOB")]
    statistic: Option<String>,
    /// Only modules of this class: vm, disk, cpu, process, cgroup, misc
    #[arg(short, long, value_name = "GLOB")]
    class: Option<String>,
    /// One 'name TAB value' per line
    #[arg(short, long)]
    parsable: bool,
    /// Names only
    #[arg(short, long, conflicts_with_all = ["parsable", "json"])]
    list: bool,
    /// Growing counters as growth per second; the first print comes after one interval
    #[arg(long)]
    rate: bool,
    /// A time stamp before each print: d(ate) or u(nix seconds)
    #[arg(short = 'T', value_enum, value_name = "FORM")]
    timestamp: Option<Stamp>,
    /// One JSON object per print
    #[arg(long, conflicts_with = "parsable")]
    json: bool,
    /// The modules and the files they read
    #[arg(long, exclusive = true)]
    modules: bool,
    #[command(flatten)]
    machine: Machine,
    #[command(flatten)]
    extra: Extra,
}

/// Prints what is selected.
pub fn run(arguments: &Arguments, context: &Context) -> Result<ExitCode> {
    let tree = arguments.extra.add(arguments.machine.tree())?;
    if arguments.modules {
        for provider in tree.providers() {
            let line = format!("{:<11} {:<8} {}", provider.module, provider.class, provider.source);
            say!("{}", bounded(&line, &" ".repeat(21), context));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (selectors, mut schedule) = split(&arguments.operands)?;
    let selection = selection(arguments, selectors)?;
    if arguments.rate && schedule.interval.is_none() {
        schedule = Schedule { interval: Some("1".parse().expect("a second")), count: Some(1) };
    }
    let mut ticker = Ticker::new(schedule, None);
    let mut before = tree.read(&selection);
    if arguments.rate {
        ticker.wait();
    }
    loop {
        let now = tree.read(&selection);
        let shown = if arguments.rate { now.rates_since(&before) } else { now.clone() };
        if shown.samples().is_empty() {
            if output::unread(tree.root()).is_some() {
                return Ok(output::complete(tree.root()));
            }
            if tree.read(&Selection::new([])).samples().is_empty() {
                remark!("no counter could be read; are /proc and /sys mounted?");
                return Ok(ExitCode::from(3));
            }
            if !context.quiet {
                remark!("{}", nothing(&tree, selectors));
            }
            return Ok(ExitCode::from(1));
        }
        // kstat's -q is the same option as pagelab's: only the exit status is wanted.
        if context.quiet {
            return Ok(output::complete(tree.root()));
        }
        print(arguments, &shown)?;
        before = now;
        if !ticker.more() {
            return Ok(output::complete(tree.root()));
        }
        ticker.wait();
    }
}

fn print(arguments: &Arguments, shown: &Snapshot) -> Result<()> {
    let mut out = crate::output::stdout();
    match arguments.timestamp {
        Some(Stamp::D) if !arguments.json => writeln!(out, "{}", jiff::Zoned::now().strftime("%F %T %Z"))?,
        Some(Stamp::U) if !arguments.json => writeln!(out, "{}", jiff::Timestamp::now().as_second())?,
        _ => {}
    }
    if arguments.json {
        let object = json!({
            "schema_version": SCHEMA_VERSION,
            "time": jiff::Timestamp::now().to_string(),
            "rates": arguments.rate,
            "counters": shown.samples(),
        });
        serde_json::to_writer(&mut out, &object).map_err(std::io::Error::from)?;
        writeln!(out)?;
    } else if arguments.list {
        out.write_all(views::stat::names(shown).as_bytes())?;
    } else if arguments.parsable {
        out.write_all(views::stat::parsable(shown).as_bytes())?;
    } else {
        out.write_all(views::stat::human(shown, arguments.rate).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// That nothing matched, and what was probably meant.
fn nothing(tree: &Tree, selectors: &[String]) -> String {
    let modules: Vec<&str> = tree.providers().iter().map(|provider| provider.module).collect();
    let module = |selector: &String| selector.split(':').next().unwrap_or_default().to_owned();
    let plain =
        |name: &String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let unknown = selectors.iter().map(module).filter(plain).find(|name| !modules.contains(&name.as_str()));
    let meant = unknown.and_then(|name| closest(&name, modules.iter().copied()));
    let meant = meant.map_or_else(String::new, |module| format!(" (did you mean '{module}'?)"));
    match selectors {
        [] => format!("nothing matched{meant}"),
        _ => format!("nothing matched {}{meant}", selectors.join(" ")),
    }
}

/// The last one or two operands may be an interval and a count.
fn split(operands: &[String]) -> Result<(&[String], Schedule)> {
    let number = |text: &String| text.parse::<f64>().is_ok();
    let numbers = operands.iter().rev().take(2).take_while(|text| number(text)).count();
    let (selectors, trailing) = operands.split_at(operands.len() - numbers);
    let interval = match trailing.first() {
        Some(text) => Some(text.parse::<Interval>().map_err(|why| usage(format!("'{text}': {why}")))?),
        None => None,
    };
    let count = match trailing.get(1) {
        Some(text) => Some(
            text.parse()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| usage(format!("'{text}': the count must be a whole number from 1")))?,
        ),
        None => None,
    };
    Ok((selectors, Schedule { interval, count }))
}

/// The operands or the filters, as in kstat not both; the class goes with either.
fn selection(arguments: &Arguments, operands: &[String]) -> Result<Selection> {
    let part = |text: &Option<String>| -> Result<Part> {
        text.as_deref().unwrap_or_default().parse().map_err(|e: SelectorError| usage(e.to_string()))
    };
    let filters = [&arguments.module, &arguments.instance, &arguments.name, &arguments.statistic];
    let filtered = filters.iter().any(|f| f.is_some());
    if filtered && !operands.is_empty() {
        return Err(usage("use either selectors or the filters -m -i -n -s, not both"));
    }
    let class = part(&arguments.class)?;
    let selectors: Vec<Selector> = if operands.is_empty() {
        vec![Selector {
            module: part(&arguments.module)?,
            instance: part(&arguments.instance)?,
            name: part(&arguments.name)?,
            statistic: part(&arguments.statistic)?,
            class,
        }]
    } else {
        let parsed = operands.iter().map(|text| text.parse::<Selector>());
        parsed
            .map(|s| s.map(|s| Selector { class: class.clone(), ..s }).map_err(|e| usage(e.to_string())))
            .collect::<Result<_>>()?
    };
    Ok(Selection::new(selectors))
}
