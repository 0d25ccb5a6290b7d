//! What replays and curves give: points, their picture, and the runs that a notebook keeps of them.

use pagelab_experiment::build::{Point, curve};
use pagelab_experiment::experiments::Curve;
use pagelab_experiment::observation::Table as Observed;
use pagelab_experiment::{Experiment, Observation, RunHeader, Setting, TargetSpec};
use pagelab_model::policy::PolicyKind;
use pagelab_report::{Section, curve_plots, curves, document};
use pyo3::prelude::*;

use crate::trace::Trace;

/// A point and the policy that it is of.
#[derive(Clone)]
pub struct Named {
    /// The policy as it was asked for.
    pub policy: String,
    /// The point.
    pub point: Point,
}

/// Curves on one stream.
#[derive(Clone)]
pub struct Curves {
    /// The stream.
    pub about: Curve,
    /// Of `mrc`, else of `replay`.
    pub is_mrc: bool,
    /// The policies one after another.
    pub points: Vec<Named>,
}

impl Curves {
    /// Of a trace; `name` is what the record calls it, where that is not how it was made.
    pub fn of(
        trace: &Trace,
        py: Python<'_>,
        name: Option<String>,
        is_mrc: bool,
        sample: Option<f64>,
        points: Vec<Named>,
    ) -> Self {
        let about = Curve {
            stream: name.unwrap_or_else(|| trace.how().to_owned()),
            page_size: trace.bytes_of_page(),
            references: trace.references(py) as u64,
            pages: trace.page_count().into(),
            sample,
            ..Curve::default()
        };
        Self { about, is_mrc, points }
    }

    fn experiment(&self) -> Experiment {
        let about = self.about.clone();
        if self.is_mrc { Experiment::Mrc(about) } else { Experiment::Replay(about) }
    }

    /// What is observed of each policy.
    fn observed(&self) -> Vec<(String, Vec<Observation>)> {
        let mut names: Vec<&String> = self.points.iter().map(|one| &one.policy).collect();
        names.dedup();
        let of = |name: &String| {
            let own = self.points.iter().filter(|one| one.policy == *name).map(|one| one.point);
            (name.clone(), curve(self.about.page_size, &own.collect::<Vec<_>>()))
        };
        names.into_iter().map(of).collect()
    }

    /// The report's page of the curves.
    pub fn page(&self) -> String {
        let observed = self.observed();
        let mut drawn = Vec::new();
        for (color, (name, seen)) in observed.iter().enumerate() {
            let table: Option<&Observed> = seen.iter().find_map(|one| match one {
                Observation::Table(table) => Some(table),
                _ => None,
            });
            drawn.extend(table.map(|table| curves::Curve { name: name.clone(), color, table }));
        }
        let section = Section {
            heading: self.about.stream.clone(),
            answer: curves::answer(&drawn),
            plots: curve_plots(&self.experiment(), &drawn),
            tables: vec![curves::beside(&drawn)],
            ..Section::default()
        };
        document("Miss ratio curves", None, &[section])
    }

    /// The runs that a notebook keeps of them. A class of Python's is the model `python-NAME`.
    pub fn runs(&self, name: Option<&str>) -> Vec<(RunHeader, Vec<Observation>)> {
        let started = jiff::Timestamp::now().to_string();
        let observed = self.observed();
        let several = observed.len() > 1;
        let mut list = Vec::new();
        for (n, (policy, seen)) in observed.into_iter().enumerate() {
            // With its parameters.
            let Ok(kind) = policy.parse::<PolicyKind>() else { continue };
            let target: Result<TargetSpec, _> = format!("model:{kind}").parse();
            let Ok(target) = target else { continue };
            let name = match name {
                Some(name) if several => format!("{name}-{}", n + 1),
                name => name.unwrap_or_default().to_owned(),
            };
            let header = RunHeader {
                name,
                batch: started.clone(),
                experiment: self.experiment(),
                target,
                setting: Setting::default(),
                conditions: Vec::new(),
                deterministic: true,
                started: started.clone(),
                pagelab: env!("CARGO_PKG_VERSION").to_owned(),
            };
            list.push((header, seen));
        }
        list
    }
}
