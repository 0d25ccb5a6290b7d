//! Where providers put what they read: it tells them what is wanted, so that they read no more.

use std::borrow::Cow;
use std::sync::Arc;

use crate::select::{Part, Selector};
use crate::value::{Kind, Sample, Unit, Value};
use crate::visible::visible;

/// What one provider is asked for, and the samples it gave.
#[derive(Debug)]
pub struct Sink<'a> {
    module: &'static str,
    class: &'static str,
    selectors: Vec<&'a Selector>,
    samples: &'a mut Vec<Sample>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(
        module: &'static str,
        class: &'static str,
        selectors: Vec<&'a Selector>,
        samples: &'a mut Vec<Sample>,
    ) -> Self {
        Self { module, class, selectors, samples }
    }

    /// Whether anything of this instance may be wanted.
    pub fn wants_instance(&self, instance: u64) -> bool {
        self.selectors.iter().any(|s| s.instance.matches_number(instance))
    }

    /// Whether anything of this name may be wanted.
    pub fn wants_name(&self, name: &str) -> bool {
        let name = visible(name);
        self.selectors.iter().any(|s| s.name.matches(&name))
    }

    /// The instances where every selector names one, so that none needs to be searched for.
    pub fn named_instances(&self) -> Option<Vec<u64>> {
        self.selectors
            .iter()
            .map(|s| match &s.instance {
                Part::Exact(text) => Some(text.parse().ok()),
                _ => None,
            })
            .collect::<Option<Vec<Option<u64>>>>()
            .map(|found| {
                let mut found: Vec<u64> = found.into_iter().flatten().collect();
                found.sort_unstable();
                found.dedup();
                found
            })
    }

    /// The statistics of one instance and name; None where nobody wants any.
    ///
    /// This is where names come in from outside: from here on they are as they can be shown.
    pub fn group(&mut self, instance: u64, name: &str) -> Option<Group<'_>> {
        let name = visible(name);
        let statistics: Vec<&Part> = self
            .selectors
            .iter()
            .filter(|s| s.instance.matches_number(instance) && s.name.matches(&name))
            .map(|s| &s.statistic)
            .collect();
        (!statistics.is_empty()).then(|| Group {
            module: self.module,
            class: self.class,
            instance,
            name: Arc::from(&*name),
            statistics,
            samples: self.samples,
        })
    }
}

/// The statistics of one instance and name. What nobody wants is dropped here, so a provider may
/// give all of a file it has read.
#[derive(Debug)]
pub struct Group<'s> {
    module: &'static str,
    class: &'static str,
    instance: u64,
    name: Arc<str>,
    statistics: Vec<&'s Part>,
    samples: &'s mut Vec<Sample>,
}

impl Group<'_> {
    /// Whether this statistic is wanted.
    pub fn wants(&self, statistic: &str) -> bool {
        self.statistics.iter().any(|part| part.matches(statistic))
    }

    /// Whether one of these is wanted: asked before a file is opened that only they need.
    pub fn wants_any(&self, statistics: &[&str]) -> bool {
        statistics.iter().any(|statistic| self.wants(statistic))
    }

    /// Adds a value.
    pub fn add(
        &mut self,
        statistic: impl Into<Cow<'static, str>>,
        value: impl Into<Value>,
        unit: Unit,
        kind: Kind,
    ) {
        let mut statistic = statistic.into();
        if let Cow::Owned(text) = &statistic
            && let Cow::Owned(shown) = visible(text)
        {
            statistic = shown.into();
        }
        if self.wants(&statistic) {
            self.samples.push(Sample {
                module: self.module,
                instance: self.instance,
                name: Arc::clone(&self.name),
                statistic,
                class: self.class,
                value: match value.into() {
                    Value::Text(text) => Value::Text(visible(&text).into_owned()),
                    figure => figure,
                },
                unit,
                kind,
            });
        }
    }

    /// Adds a state, where there is a value.
    pub fn gauge(
        &mut self,
        statistic: impl Into<Cow<'static, str>>,
        value: Option<impl Into<Value>>,
        unit: Unit,
    ) {
        if let Some(value) = value {
            self.add(statistic, value, unit, Kind::Gauge);
        }
    }

    /// Adds a growing counter, where there is a value.
    pub fn counter(
        &mut self,
        statistic: impl Into<Cow<'static, str>>,
        value: Option<impl Into<Value>>,
        unit: Unit,
    ) {
        if let Some(value) = value {
            self.add(statistic, value, unit, Kind::Counter);
        }
    }

    /// Adds a text, where there is one.
    pub fn text(&mut self, statistic: impl Into<Cow<'static, str>>, value: Option<&str>) {
        if let Some(value) = value {
            self.add(statistic, value, Unit::None, Kind::Gauge);
        }
    }
}
