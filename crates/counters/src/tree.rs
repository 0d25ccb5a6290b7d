//! Reading the tree: what a selection asks for, at one moment.

use std::sync::Arc;
use std::time::Instant;

use crate::providers::{self, Provider};
use crate::root::Root;
use crate::select::Selection;
use crate::sink::Sink;
use crate::value::{Kind, Sample, Unit, Value};

/// The counters of one machine.
pub struct Tree {
    root: Root,
    providers: Vec<Provider>,
    start: Instant,
}

impl Tree {
    /// The tree of the machine under `root`.
    pub fn new(root: Root) -> Self {
        Self { root, providers: providers::all(), start: Instant::now() }
    }

    /// The running machine's tree.
    pub fn live() -> Self {
        Self::new(Root::live())
    }

    /// The same with one provider more.
    #[must_use]
    pub fn with(mut self, provider: Provider) -> Self {
        self.providers.push(provider);
        self
    }

    /// The machine.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The providers, for a list of what there is.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// Reads what is selected. Nothing fails: what cannot be read is absent.
    pub fn read(&self, selection: &Selection) -> Snapshot {
        let at_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut samples = Vec::new();
        for provider in &self.providers {
            let (module, class) = (provider.module, provider.class);
            let selectors = selection.of_module(module, class, provider.on_demand);
            if !selectors.is_empty() {
                provider.read(&self.root, &mut Sink::new(module, class, selectors, &mut samples));
            }
        }
        Snapshot::new(at_ns, samples)
    }
}

/// Counters of one moment, in kstat's order.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// When reading began, in nanoseconds on a clock that only goes forward.
    pub at_ns: u64,
    /// Shared, so that a copy of a moment costs nothing.
    samples: Arc<Vec<Sample>>,
}

impl Snapshot {
    /// A snapshot of these samples; a name that comes twice keeps its first value.
    pub fn new(at_ns: u64, mut samples: Vec<Sample>) -> Self {
        samples.sort_by(Sample::order);
        samples.dedup_by(|b, a| a.order(b).is_eq());
        Self { at_ns, samples: samples.into() }
    }

    /// The samples in order.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The samples of one module.
    pub fn module(&self, module: &str) -> &[Sample] {
        let start = self.samples.partition_point(|s| s.module < module);
        let end = self.samples.partition_point(|s| s.module <= module);
        &self.samples[start..end]
    }

    /// The samples of a module in groups of one instance and name.
    pub fn groups(&self, module: &str) -> impl Iterator<Item = (u64, &Arc<str>, &[Sample])> {
        self.module(module)
            .chunk_by(|a, b| a.instance == b.instance && a.name == b.name)
            .map(|group| (group[0].instance, &group[0].name, group))
    }

    /// The samples of one instance of a module, whatever its name: a task may change its own.
    pub fn instance(&self, module: &str, instance: u64) -> &[Sample] {
        let samples = self.module(module);
        let start = samples.partition_point(|s| s.instance < instance);
        let end = samples.partition_point(|s| s.instance <= instance);
        &samples[start..end]
    }

    /// One sample.
    pub fn find(&self, module: &str, instance: u64, name: &str, statistic: &str) -> Option<&Sample> {
        let key = (module, instance, name, statistic);
        let of = |s: &Sample| (s.module, s.instance, &*s.name, &*s.statistic).cmp(&key);
        self.samples.binary_search_by(of).ok().map(|i| &self.samples[i])
    }

    /// One value as a number.
    pub fn number(&self, module: &str, instance: u64, name: &str, statistic: &str) -> Option<f64> {
        self.find(module, instance, name, statistic)?.value.number()
    }

    /// Seconds since an earlier snapshot of the same tree; None unless time has passed.
    pub fn seconds_since(&self, earlier: &Self) -> Option<f64> {
        let ns = self.at_ns.checked_sub(earlier.at_ns)?;
        (ns > 0).then_some(ns as f64 / 1e9)
    }

    /// Seconds since an earlier snapshot, or since boot where there is none; None where no time has passed.
    pub fn seconds_from(&self, earlier: Option<&Self>) -> Option<f64> {
        match earlier {
            Some(earlier) => self.seconds_since(earlier),
            None => self.number("system", 0, "clock", "uptime").map(|ns| ns / 1e9).filter(|s| *s > 0.0),
        }
    }

    /// Growing counters as their growth per second since an earlier snapshot (gauges stay as they
    /// are). A counter that was not there before, or has fallen because its thing was replaced by
    /// another of the same name, is absent. A rate's type is f64 and its kind a gauge.
    pub fn rates_since(&self, earlier: &Self) -> Self {
        let seconds = self.seconds_since(earlier);
        let rate = |now: &Sample| {
            if now.kind == Kind::Gauge {
                return Some(now.clone());
            }
            let before = earlier.find(now.module, now.instance, &now.name, &now.statistic)?.value.number()?;
            let grown = now.value.number()? - before;
            let seconds = seconds?;
            (grown >= 0.0).then(|| Sample {
                value: Value::F64(grown / seconds),
                kind: Kind::Gauge,
                ..now.clone()
            })
        };
        Self { at_ns: self.at_ns, samples: Arc::new(self.samples.iter().filter_map(rate).collect()) }
    }
}

/// A value in a group of [`Snapshot::groups`].
pub(crate) fn of_group(group: &[Sample], statistic: &str) -> Option<f64> {
    value_of_group(group, statistic)?.number()
}

/// A text in a group of [`Snapshot::groups`].
pub(crate) fn text_of_group<'a>(group: &'a [Sample], statistic: &str) -> Option<&'a str> {
    value_of_group(group, statistic)?.text()
}

fn value_of_group<'a>(group: &'a [Sample], statistic: &str) -> Option<&'a Value> {
    group.binary_search_by(|s| (*s.statistic).cmp(statistic)).ok().map(|i| &group[i].value)
}

/// The unit that a rate of this unit is printed with.
pub fn rate_word(unit: Unit) -> String {
    format!("{}/s", unit.word())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(statistic: &'static str, value: u64, kind: Kind) -> Sample {
        Sample::new("m", 0, "n", statistic, value, kind)
    }

    #[test]
    fn rates_are_growth_over_time_and_gauges_stay() {
        let before =
            Snapshot::new(0, vec![counter("a", 10, Kind::Counter), counter("fell", 9, Kind::Counter)]);
        let now = Snapshot::new(
            2_000_000_000,
            vec![
                counter("level", 5, Kind::Gauge),
                counter("a", 40, Kind::Counter),
                counter("fell", 1, Kind::Counter),
                counter("new", 7, Kind::Counter),
            ],
        );
        let rates = now.rates_since(&before);
        assert_eq!(rates.number("m", 0, "n", "a"), Some(15.0));
        assert_eq!(rates.number("m", 0, "n", "level"), Some(5.0));
        assert_eq!(rates.find("m", 0, "n", "fell"), None);
        assert_eq!(rates.find("m", 0, "n", "new"), None);
        assert_eq!(before.rates_since(&before).samples().len(), 0, "no time, no rate");
    }

    #[test]
    fn samples_are_found_by_name_in_order() {
        let snapshot = Snapshot::new(1, vec![counter("b", 2, Kind::Gauge), counter("a", 1, Kind::Gauge)]);
        assert_eq!(snapshot.samples()[0].full_name(), "m:0:n:a");
        assert_eq!(snapshot.number("m", 0, "n", "b"), Some(2.0));
        assert_eq!(snapshot.number("m", 1, "n", "b"), None);
        let (instance, name, group) = snapshot.groups("m").next().unwrap();
        assert_eq!((instance, &**name, of_group(group, "b")), (0, "n", Some(2.0)));
    }
}
