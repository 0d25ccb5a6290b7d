//! Keeps what was computed of a stream (`replay`, `mrc`, `wss`) as runs in the notebook, like what was performed.

use anyhow::Result;
use pagelab_analysis::figure::Plot;
use pagelab_experiment::catalogue::{CURVE, metric};
use pagelab_experiment::observation::{Column, Table, Unit, Values};
use pagelab_experiment::{Experiment, Observation, Outcome, RunHeader, Setting, TargetSpec};
use pagelab_notebook::Notebook;
use pagelab_report::curves::Curve;

use crate::context::Context;
use crate::output::sentences;

/// Where the results are kept.
#[derive(clap::Args, Debug)]
pub struct Keeping {
    /// The run's name [default: one made from the command's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print the results alone, and keep no run in the notebook
    #[arg(long)]
    no_keep: bool,
}

/// One point of a curve.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The memory in frames.
    pub frames: u32,
    /// The misses; `None` where only a share of the pages was looked at.
    pub misses: Option<u64>,
    /// Misses divided by references.
    pub ratio: Option<f64>,
    /// The standard error of a sampled ratio.
    pub error: Option<f64>,
    /// Pages resident in the mean, of a policy without a fixed number of frames.
    pub mean_resident: Option<f64>,
    /// Times that a dirty page had to be written.
    pub write_backs: Option<u64>,
    /// Bytes missed divided by bytes asked for, of objects of different sizes.
    pub byte_ratio: Option<f64>,
    /// With read-ahead: references that waited for a read, and pages read.
    pub read_ahead: Option<(u64, u64)>,
}

/// What was computed: a run of its own.
pub struct Computed {
    experiment: Experiment,
    target: TargetSpec,
    deterministic: bool,
    seen: Vec<Observation>,
}

impl Computed {
    /// The curve of `target` on the stream of `experiment`.
    pub fn curve(experiment: Experiment, target: TargetSpec, page_size: u64, points: &[Point]) -> Self {
        let column = |name: &str, unit, value: &dyn Fn(&Point) -> Option<f64>| Column {
            name: name.to_owned(),
            unit: Some(unit),
            values: Values::Number(points.iter().map(value).collect()),
        };
        let mut columns = vec![
            column("size", Unit::Bytes, &|p| Some(f64::from(p.frames) * page_size as f64)),
            column("frames", Unit::Pages, &|p| Some(f64::from(p.frames))),
            column("misses", Unit::Count, &|p| p.misses.map(|misses| misses as f64)),
            column("miss.ratio", Unit::Share, &|p| p.ratio),
            column("miss.ratio.error", Unit::Share, &|p| p.error),
        ];
        if points.iter().any(|point| point.mean_resident.is_some()) {
            columns.push(column("frames.mean", Unit::Pages, &|p| p.mean_resident));
        }
        if points.iter().any(|point| point.byte_ratio.is_some()) {
            columns.push(column("byte.miss.ratio", Unit::Share, &|p| p.byte_ratio));
        }
        if points.iter().any(|point| point.write_backs.is_some()) {
            columns.push(column("write-backs", Unit::Count, &|p| p.write_backs.map(|count| count as f64)));
        }
        if points.iter().any(|point| point.read_ahead.is_some()) {
            columns.push(column("read-ahead.waits", Unit::Count, &|p| {
                p.read_ahead.map(|(waits, _)| waits as f64)
            }));
            columns.push(column("read-ahead.pages", Unit::Pages, &|p| {
                p.read_ahead.map(|(_, pages)| pages as f64)
            }));
        }
        let table = Table { name: CURVE.to_owned(), columns };
        let largest = points.iter().max_by_key(|point| point.frames);
        let ratios: Vec<f64> = points.iter().filter_map(|point| point.ratio).collect();
        let mean = (ratios.len() == points.len() && !ratios.is_empty())
            .then(|| ratios.iter().sum::<f64>() / ratios.len() as f64);
        let seen = vec![
            page_size_of(page_size),
            Observation::Table(table),
            Observation::Metric(metric("misses", largest.and_then(|p| p.misses).map(|misses| misses as f64))),
            Observation::Metric(metric("miss.ratio.mean", mean)),
        ];
        Self { experiment, target, deterministic: true, seen }
    }

    /// The plots of curves on one stream, as `pagelab report` draws them from their runs.
    pub fn plots(curves: &[Self]) -> Vec<Plot> {
        let Some(first) = curves.first() else { return Vec::new() };
        pagelab_report::curve_plots(&first.experiment, &Self::drawn(curves))
    }

    /// The curves as they are drawn and printed.
    pub fn drawn(curves: &[Self]) -> Vec<Curve<'_>> {
        let mut list = Vec::new();
        for (color, computed) in curves.iter().enumerate() {
            let name = computed.target.to_string();
            let name = name.strip_prefix("model:").unwrap_or(&name).to_owned();
            list.extend(computed.table().map(|table| Curve { name, color, table }));
        }
        list
    }

    fn table(&self) -> Option<&Table> {
        self.seen.iter().find_map(|seen| match seen {
            Observation::Table(table) => Some(table),
            _ => None,
        })
    }

    /// The working set over time: (reference or nanosecond, pages).
    pub fn working_set(
        experiment: Experiment,
        target: TargetSpec,
        page_size: u64,
        at: Unit,
        sizes: &[(f64, f64)],
    ) -> Self {
        let column = |name: &str, unit, values: Vec<Option<f64>>| Column {
            name: name.to_owned(),
            unit: Some(unit),
            values: Values::Number(values),
        };
        let abscissa = if at == Unit::Nanoseconds { "time" } else { "reference" };
        let table = Table {
            name: "working-set".to_owned(),
            columns: vec![
                column(abscissa, at, sizes.iter().map(|(at, _)| Some(*at)).collect()),
                column("pages", Unit::Pages, sizes.iter().map(|(_, pages)| Some(*pages)).collect()),
            ],
        };
        let pages = || sizes.iter().map(|(_, pages)| *pages);
        let mean = (!sizes.is_empty()).then(|| pages().sum::<f64>() / sizes.len() as f64);
        let environment = match at {
            Unit::Nanoseconds => Observation::Environment(pagelab_live::environment::machine()),
            _ => page_size_of(page_size),
        };
        let seen = vec![
            environment,
            Observation::Table(table),
            Observation::Metric(metric("working-set.mean", mean)),
            Observation::Metric(metric("working-set.peak", pages().reduce(f64::max))),
        ];
        Self { experiment, target, deterministic: at != Unit::Nanoseconds, seen }
    }
}

/// The only fact about the machine behind a stream.
fn page_size_of(bytes: u64) -> Observation {
    Observation::Environment([("page.size".to_owned(), bytes.to_string())].into())
}

/// The target of a policy or a system, as `replay` and `mrc` print it.
///
/// # Errors
/// When it cannot be named.
pub fn model(name: &str) -> Result<TargetSpec> {
    Ok(format!("model:{name}").parse()?)
}

impl Keeping {
    /// Keeps what was computed, in one batch, and says so: on standard output, or on standard error where that
    /// is JSON.
    ///
    /// # Errors
    /// When the notebook cannot be written.
    pub fn keep(&self, list: Vec<Computed>, json: bool, context: &Context) -> Result<()> {
        if self.no_keep {
            return Ok(());
        }
        let mut notebook = Notebook::open(&context.notebook)?;
        let started = jiff::Timestamp::now().to_string();
        let several = list.len() > 1;
        let mut names = Vec::new();
        for (n, computed) in list.into_iter().enumerate() {
            let name = self.name.as_deref();
            let name = name.map(|name| if several { format!("{name}-{}", n + 1) } else { name.to_owned() });
            let run = notebook.begin_run(&RunHeader {
                name: name.unwrap_or_default(),
                batch: started.clone(),
                experiment: computed.experiment,
                target: computed.target,
                setting: Setting::default(),
                conditions: Vec::new(),
                deterministic: computed.deterministic,
                started: started.clone(),
                pagelab: env!("CARGO_PKG_VERSION").to_owned(),
            })?;
            let repetition = notebook.begin_repetition(run, 1, &started)?;
            for observation in &computed.seen {
                notebook.record(repetition, observation)?;
            }
            notebook.finish_repetition(repetition, &Outcome::Done)?;
            names.push(notebook.load(run)?.header.name);
        }
        if !context.quiet {
            let kept = format!("Kept in {} as {}.", context.notebook.display(), names.join(", "));
            if json { eprintln!("pagelab: {kept}") } else { sentences(&kept, "", "  ", &context.style) }
        }
        Ok(())
    }
}
