//! A run as a row of the index: experiment, target, start and primary metric.

use pagelab_analysis::comparison::caveats::entry;
use pagelab_analysis::deciding_metrics;
use pagelab_analysis::finding::Severity;
use pagelab_analysis::findings::severity;
use pagelab_analysis::stats::median;
use pagelab_experiment::{Run, environment};

use crate::runs::measures;
use crate::text;

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Every repetition is complete.
    Complete,
    /// There is a warning about the run.
    Warning,
    /// A repetition is incomplete, or there is none.
    Failed,
    /// A live pagelab is still writing it.
    Running,
    /// It cannot be read, for this reason.
    Unreadable(String),
}

/// A figure with its unit, as text and for sorting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    pub metric: String,
    pub text: String,
    pub value: f64,
}

/// A row of the index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub id: i64,
    pub name: String,
    /// The address of its page; none if the run cannot be read.
    pub page: Option<String>,
    pub experiment: String,
    /// The parameters that differ from their defaults.
    pub parameters: String,
    pub target: String,
    pub setting: String,
    pub kernel: String,
    pub revision: String,
    /// The start: RFC 3339, UTC.
    pub started: String,
    /// The numbers of complete and of started repetitions.
    pub repetitions: (usize, usize),
    /// The median of the deciding metric.
    pub primary: Option<Figure>,
    pub state: State,
}

impl Row {
    /// The row of a run; `running` is the number of repetitions that a live pagelab still writes.
    pub fn of(run: &Run, running: usize, page: &str) -> Self {
        let header = &run.header;
        let fact = |key: &str| entry(run, key).unwrap_or_default().to_owned();
        let whole = format!("{:#}", header.experiment);
        let name = header.experiment.name();
        let state = match severity(run) {
            _ if running > 0 => State::Running,
            Severity::Failure => State::Failed,
            _ if run.repetitions.is_empty() => State::Failed,
            Severity::Warning => State::Warning,
            Severity::Info => State::Complete,
        };
        Self {
            id: run.id,
            name: header.name.clone(),
            page: Some(page.to_owned()),
            experiment: name.to_owned(),
            parameters: whole.strip_prefix(name).unwrap_or(&whole).trim().to_owned(),
            target: header.target.brief(),
            setting: header.setting.to_string(),
            kernel: fact(environment::KERNEL_RELEASE),
            revision: fact(environment::REVISION),
            started: header.started.clone(),
            repetitions: (run.done().count(), run.repetitions.len() + running),
            primary: primary(run),
            state,
        }
    }

    /// The row of a run that cannot be read.
    pub fn unreadable(id: i64, name: &str, experiment: &str, started: &str, why: &str) -> Self {
        Self {
            id,
            name: name.to_owned(),
            page: None,
            experiment: experiment.to_owned(),
            parameters: String::new(),
            target: String::new(),
            setting: String::new(),
            kernel: String::new(),
            revision: String::new(),
            started: started.to_owned(),
            repetitions: (0, 0),
            primary: None,
            state: State::Unreadable(why.to_owned()),
        }
    }

    /// The day of the start.
    pub fn day(&self) -> &str {
        self.started.get(..10).unwrap_or(&self.started)
    }
}

/// The median of the deciding metric, if the run measured it.
fn primary(run: &Run) -> Option<Figure> {
    let measured = |metric: pagelab_experiment::MetricId| !run.values(metric).is_empty();
    let (deciding, _) = deciding_metrics(&run.header.experiment, measured);
    let name = deciding.first()?.name;
    let measure = measures(run).into_iter().find(|measure| measure.name == name)?;
    let value = median(&measure.values)?;
    Some(Figure { metric: name.to_owned(), text: text::value(Some(value), measure.unit), value })
}
