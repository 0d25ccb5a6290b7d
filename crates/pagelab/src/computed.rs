//! Keeps what was computed of a stream (`replay`, `mrc`, `wss`) as runs in the notebook, like what was performed.

use anyhow::Result;
use pagelab_analysis::figure::Plot;
pub use pagelab_experiment::build::Point;
use pagelab_experiment::build::{Sheet, curve, page_size_of};
use pagelab_experiment::metrics;
use pagelab_experiment::observation::{Table, Unit};
use pagelab_experiment::tables::{self, working_set};
use pagelab_experiment::{Experiment, MetricId, Observation, RunHeader, Setting, TargetSpec};
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
        Self { experiment, target, deterministic: true, seen: curve(page_size, points) }
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

    /// A program's references, recorded: the figures of its row, and how long it took.
    pub fn recorded(experiment: Experiment, figures: [u64; 8], nanoseconds: f64) -> Self {
        let mut sheet = Sheet::new(tables::recording::TABLE);
        sheet.row(figures.map(|figure| Some(figure as f64)));
        let seen = vec![
            Observation::Environment(pagelab_live::harness::environment::machine()),
            Observation::Table(sheet.table()),
            Observation::Metric(metrics::TIME_ELAPSED.figure(Some(nanoseconds))),
        ];
        Self { experiment, target: TargetSpec::host(), deterministic: false, seen }
    }

    /// The working set over time: (reference or nanosecond, pages).
    pub fn working_set(
        experiment: Experiment,
        target: TargetSpec,
        page_size: u64,
        at: Unit,
        sizes: &[(f64, f64)],
    ) -> Self {
        let absent = if at == Unit::Nanoseconds { working_set::REFERENCE } else { working_set::TIME };
        let mut sheet = Sheet::without(working_set::TABLE, &[absent]);
        sizes.iter().for_each(|&(at, pages)| sheet.row([Some(at), Some(pages)]));
        let pages = || sizes.iter().map(|(_, pages)| *pages);
        let figure = |metric: MetricId| metric.figure(metric.over(pages()).1);
        let environment = match at {
            Unit::Nanoseconds => Observation::Environment(pagelab_live::harness::environment::machine()),
            _ => page_size_of(page_size),
        };
        let seen = vec![
            environment,
            Observation::Table(sheet.table()),
            Observation::Metric(figure(metrics::WORKING_SET_MEAN)),
            Observation::Metric(figure(metrics::WORKING_SET_PEAK)),
        ];
        Self { experiment, target, deterministic: at != Unit::Nanoseconds, seen }
    }
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
            let header = RunHeader {
                name: name.unwrap_or_default(),
                batch: started.clone(),
                experiment: computed.experiment,
                target: computed.target,
                setting: Setting::default(),
                conditions: Vec::new(),
                deterministic: computed.deterministic,
                started: started.clone(),
                pagelab: env!("CARGO_PKG_VERSION").to_owned(),
            };
            let run = notebook.keep(&header, &computed.seen)?;
            names.push(notebook.load(run)?.header.name);
        }
        if !context.quiet {
            let kept = format!("Kept in {} as {}.", context.notebook.display(), names.join(", "));
            if json { eprintln!("pagelab: {kept}") } else { sentences(&kept, "", "  ", &context.style) }
        }
        Ok(())
    }
}
