//! The published systems as targets: each performs the experiment that its study was made with, in virtual
//! time, with the tables and figures of the live experiment.
//!
//! | system | experiment |
//! |---|---|
//! | Sun-4 pmegs | `vmtest` |
//! | reverse maps | `forkstorm --script` |
//! | VM token | `faultscale` with anonymous memory |

use std::collections::BTreeMap;

use pagelab_experiment::catalogue::metric;
use pagelab_experiment::experiments::{Experiment, Faultscale, Forkstorm, Mapping, PagesOf, Vmtest, Work};
use pagelab_experiment::observation::{Column, Level, Note, Table, Unit, Values};
use pagelab_experiment::{Observation, Recorder, TargetError};

use crate::locks::Token;
use crate::rmap::{self, Kind, Script};
use crate::sun4::{Copies, FAMILY, Outcome, SPARCSTATION_1, Sun4, VmTest};

/// A published system by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The name on the command line, behind `model:`.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    system: System,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum System {
    /// A machine of the family, by its place in it, and what is kept of a pmeg.
    Sun4(usize, Copies),
    Rmap(Kind),
    Token(Token),
}

/// All of them.
pub const PUBLISHED: &[Published] = &[
    Published {
        name: "sun4c-sunos403",
        help: "vmtest: SPARCstation 1, SunOS 4.0.3, 128 pmegs (Irlam 1990)",
        system: System::Sun4(0, Copies::None),
    },
    Published {
        name: "sun4c-copies",
        help: "vmtest: the same with a copy of every pmeg in memory, as Irlam proposed and Sun announced",
        system: System::Sun4(0, Copies::All),
    },
    Published {
        name: "sun4c-ss2-sunos403",
        help: "vmtest: SPARCstation 2, 256 pmegs, at the costs of a SPARCstation 1",
        system: System::Sun4(1, Copies::None),
    },
    Published {
        name: "linux-2.5.27",
        help: "forkstorm --script: 2.5.27 without reverse map (Morton 2002)",
        system: System::Rmap(Kind::None),
    },
    Published {
        name: "linux-2.5.27-rmap",
        help: "forkstorm --script: 2.5.27 with pte_chain (Morton 2002)",
        system: System::Rmap(Kind::Chain),
    },
    Published {
        name: "linux-2.6.7-objrmap",
        help: "forkstorm --script: reverse map through objects",
        system: System::Rmap(Kind::Object),
    },
    Published {
        name: "linux-6-folio",
        help: "forkstorm --script: reverse map through objects, counts by folio",
        system: System::Rmap(Kind::Folio),
    },
    Published {
        name: "dragonfly-2011-token",
        help: "faultscale: one VM token for all (Dillon 2011)",
        system: System::Token(Token { held: ALONE / 225_000.0, slowing: SLOWING }),
    },
    Published {
        name: "dragonfly-2011-queues",
        help: "faultscale: page queues divided, October 2011",
        system: System::Token(Token { held: ALONE / 900_000.0, slowing: SLOWING }),
    },
];

/// Zero-fill faults a second of one process alone; the ceilings above are those of the commit messages.
const ALONE: f64 = 35_000.0;
/// By how much a waiter lengthens a hold: fitted on the builds of the study.
const SLOWING: f64 = 0.0166;
const PAGE: u64 = 4096;
/// The system time of one fork, with its share of execs and faults, without reverse map: 76.19 s for 25,000.
const FORK: f64 = 76.19e9 / 25_000.0;
/// And the user time: 43.01 s.
const FORK_USER: f64 = 43.01e9 / 25_000.0;
const PROCESSORS: f64 = 4.0;

impl Published {
    /// The system of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PUBLISHED.iter().find(|system| system.name == name)
    }

    /// Performs the experiment of the system's study.
    ///
    /// # Errors
    /// When it is another experiment, or one with parameters that the model does not have.
    pub fn perform(&self, experiment: &Experiment, recorder: &mut dyn Recorder) -> Result<(), TargetError> {
        let facts = BTreeMap::from([
            ("model.name".to_owned(), self.name.to_owned()),
            ("page.size".to_owned(), PAGE.to_string()),
        ]);
        match (self.system, experiment) {
            (System::Sun4(machine, copies), Experiment::Vmtest(vmtest)) => {
                recorder.observe(Observation::Environment(facts))?;
                let machine = FAMILY.get(machine).copied().unwrap_or(SPARCSTATION_1);
                self.vmtest(&Sun4 { copies, ..Sun4::sunos403(machine) }, vmtest, recorder)
            }
            (System::Rmap(kind), Experiment::Forkstorm(forkstorm)) => {
                recorder.observe(Observation::Environment(facts))?;
                self.forkstorm(kind, forkstorm, recorder)
            }
            (System::Token(token), Experiment::Faultscale(faultscale)) => {
                recorder.observe(Observation::Environment(facts))?;
                self.faultscale(&token, faultscale, recorder)
            }
            (system, other) => Err(self.unsupported(
                format!("{}, not {}", system.performs(), other.name()),
                format!("use {}, or perform it on host", system.performs()),
            )),
        }
    }

    fn unsupported(&self, performs: String, remedy: String) -> TargetError {
        TargetError::Unsupported { what: format!("model:{} performs {performs}", self.name), remedy }
    }

    fn vmtest(&self, system: &Sun4, vmtest: &Vmtest, recorder: &mut dyn Recorder) -> Result<(), TargetError> {
        if vmtest.mapping == Mapping::File || vmtest.pages_of != PagesOf::Base || vmtest.cpus != 1 {
            return Err(self.unsupported(
                "vmtest over memory in base pages on one processor".into(),
                "use --mapping shared or private, --pages-of 4k, --cpus 1".into(),
            ));
        }
        let sizes = vmtest.sizes.bytes(PAGE);
        let mut columns = Sheet::new(&[
            ("size", Unit::Bytes),
            ("processes", Unit::Count),
            ("relative.speed", Unit::Ratio),
            ("time.elapsed", Unit::Nanoseconds),
            ("time.user", Unit::Nanoseconds),
            ("time.system", Unit::Nanoseconds),
            ("faults.minor", Unit::Count),
            ("reads", Unit::Count),
            ("access.mean", Unit::Nanoseconds),
        ]);
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (n, &size) in sizes.iter().enumerate() {
            recorder.progress("sizes", n as u64, sizes.len() as u64);
            let test = sized(vmtest, size);
            let outcome = system.run(&test, 1);
            outcomes.push(outcome);
            let speed = |o: &Outcome| o.reads as f64 / o.elapsed;
            columns.row(&[
                size as f64,
                f64::from(test.children),
                speed(&outcome) / speed(&outcomes[0]),
                outcome.elapsed * 1e9,
                outcome.user * 1e9,
                outcome.system * 1e9,
                outcome.faults as f64,
                outcome.reads as f64,
                outcome.elapsed * 1e9 / outcome.reads as f64,
            ]);
        }
        recorder.observe(columns.table("vmtest"))?;
        let sum = |of: fn(&Outcome) -> f64| Some(outcomes.iter().map(of).sum::<f64>());
        let speed = |outcome: Option<&Outcome>| outcome.map(|o| o.reads as f64 / o.elapsed);
        for (name, value) in [
            ("time.elapsed", sum(|o| o.elapsed * 1e9)),
            ("time.user", sum(|o| o.user * 1e9)),
            ("time.system", sum(|o| o.system * 1e9)),
            ("faults.minor", sum(|o| o.faults as f64)),
            ("speed.first", speed(outcomes.first())),
            ("speed.last", speed(outcomes.last())),
        ] {
            recorder.observe(Observation::Metric(metric(name, value)))?;
        }
        let allocations: u64 = outcomes.iter().map(|o| o.pool.allocations).sum();
        let steals: u64 = outcomes.iter().map(|o| o.pool.steals).sum();
        let swapped: u64 = outcomes.iter().map(|o| o.swap_ins).sum();
        note(
            recorder,
            format!("hatcnt: {allocations} pmegs allocated, {steals} of them taken; {swapped} swap-ins"),
        )
    }

    fn forkstorm(
        &self,
        kind: Kind,
        forkstorm: &Forkstorm,
        recorder: &mut dyn Recorder,
    ) -> Result<(), TargetError> {
        if forkstorm.script.is_none() {
            return Err(self.unsupported(
                "the published script of forkstorm".into(),
                "use --script FILE (the model reads no file; any name will do)".into(),
            ));
        }
        let script = Script {
            instances: forkstorm.copies,
            iterations: forkstorm.forks,
            ..Script::published(forkstorm.copies)
        };
        let memory = rmap::run(&script, 1);
        let work = memory.work(kind);
        let counts = &memory.counts;
        let names = ["forks", "execs", "copy_page_range", "do_no_page", "do_wp_page", "adds", "removes"];
        let values = [
            counts.forks,
            counts.execs,
            counts.copy_page_range,
            counts.do_no_page,
            counts.do_wp_page,
            counts.adds(),
            counts.removes(),
        ];
        let mut columns = Sheet::new(&[("count", Unit::Count), ("each.fork", Unit::Count)]);
        let work_names = ["reverse map: operations", "atomic operations", "cache misses", "allocations"];
        let work_values = [work.operations, work.atomics, work.misses, work.slab];
        let mut texts = Vec::new();
        for (name, value) in names.into_iter().zip(values).chain(work_names.into_iter().zip(work_values)) {
            texts.push(name.to_owned());
            columns.row(&[value as f64, value as f64 / counts.forks as f64]);
        }
        recorder.observe(columns.with_texts("operation", texts).table("operations"))?;
        let forks = counts.forks as f64;
        let system = forks * FORK + rmap::Costs::QUAD_PENTIUM_III.time(&work);
        let user = forks * FORK_USER;
        let elapsed = (system + user) / PROCESSORS.min(f64::from(forkstorm.copies));
        for (name, value) in [
            ("time.elapsed", elapsed),
            ("time.user", user),
            ("time.system", system),
            ("faults.minor", (counts.do_no_page + counts.do_wp_page) as f64),
            ("forks.rate", forks / elapsed * 1e9),
            ("fork.system", system / forks),
        ] {
            recorder.observe(Observation::Metric(metric(name, Some(value))))?;
        }
        note(recorder, "times are those of a quad Pentium III: the published time without reverse map for each fork, and the modelled reverse map's".into())
    }

    fn faultscale(
        &self,
        token: &Token,
        faultscale: &Faultscale,
        recorder: &mut dyn Recorder,
    ) -> Result<(), TargetError> {
        let greatest = faultscale.workers.iter().copied().max().unwrap_or(1);
        if faultscale.work != Work::Anon || greatest > 48 {
            return Err(self.unsupported(
                "faultscale with anonymous memory on up to 48 processors".into(),
                "use --work anon and --workers up to 48".into(),
            ));
        }
        let rates = token.throughput(greatest);
        let seconds = faultscale.seconds;
        let mut columns = Sheet::new(&[
            ("workers", Unit::Count),
            ("throughput", Unit::PerSecond),
            ("time.elapsed", Unit::Nanoseconds),
            ("faults.minor", Unit::Count),
            ("lock.wait", Unit::Share),
        ]);
        let mut points = Vec::new();
        for &workers in &faultscale.workers {
            let rate = rates[workers as usize];
            points.push((workers, rate * ALONE));
            let waiting = 1.0 - rate / f64::from(workers.max(1));
            columns.row(&[f64::from(workers), rate * ALONE, seconds * 1e9, rate * ALONE * seconds, waiting]);
        }
        recorder.observe(columns.table("faultscale"))?;
        let best = points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        for (name, value) in [
            ("time.elapsed", Some(seconds * 1e9 * points.len() as f64)),
            ("faults.minor", Some(points.iter().map(|p| p.1 * seconds).sum())),
            ("throughput.first", points.first().map(|p| p.1)),
            ("throughput.best", best.map(|p| p.1)),
            ("throughput.best.workers", best.map(|p| f64::from(p.0))),
            ("throughput.last", points.last().map(|p| p.1)),
        ] {
            recorder.observe(Observation::Metric(metric(name, value)))?;
        }
        Ok(())
    }
}

impl System {
    fn performs(self) -> &'static str {
        match self {
            Self::Sun4(..) => "vmtest",
            Self::Rmap(_) => "forkstorm",
            Self::Token(_) => "faultscale",
        }
    }
}

/// The test at one size, as the live experiment has it: whole segments, or one process with a smaller one
/// that makes as many reads.
fn sized(vmtest: &Vmtest, size: u64) -> VmTest {
    let segment = (vmtest.process_size.bytes(PAGE) / PAGE).max(1);
    let pages = size / PAGE;
    let (children, each) =
        if pages <= segment { (1, pages.max(1)) } else { ((pages / segment) as u32, segment) };
    let passes = vmtest.passes.saturating_mul(segment.max(each)) / each;
    // The parent sleeps twice; each sleep is that many ticks and the rest of the present one.
    let ticks = 100u64.div_ceil(u64::from(vmtest.switch_rate.max(1)));
    VmTest {
        children,
        bytes: each * PAGE,
        passes: passes.clamp(1, u64::from(u32::MAX)) as u32,
        poll: 2 * (ticks + 1),
        seconds: Some(vmtest.seconds),
    }
}

fn note(recorder: &mut dyn Recorder, text: String) -> Result<(), TargetError> {
    Ok(recorder.observe(Observation::Note(Note { level: Level::Info, text }))?)
}

/// A table under construction.
struct Sheet {
    columns: Vec<Column>,
}

impl Sheet {
    fn new(columns: &[(&str, Unit)]) -> Self {
        let column = |&(name, unit): &(&str, Unit)| Column {
            name: name.to_owned(),
            unit: Some(unit),
            values: Values::Number(Vec::new()),
        };
        Self { columns: columns.iter().map(column).collect() }
    }

    fn row(&mut self, figures: &[f64]) {
        for (column, &figure) in self.columns.iter_mut().zip(figures) {
            if let Values::Number(values) = &mut column.values {
                values.push(figure.is_finite().then_some(figure));
            }
        }
    }

    fn with_texts(mut self, name: &str, texts: Vec<String>) -> Self {
        self.columns.insert(0, Column { name: name.to_owned(), unit: None, values: Values::Text(texts) });
        self
    }

    fn table(self, name: &str) -> Observation {
        Observation::Table(Table { name: name.to_owned(), columns: self.columns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagelab_experiment::{Observations, RecorderError};

    #[derive(Default)]
    struct Keeper(Observations);

    impl Recorder for Keeper {
        fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
            self.0.add(observation);
            Ok(())
        }
        fn progress(&mut self, _: &str, _: u64, _: u64) {}
        fn interrupted(&self) -> bool {
            false
        }
    }

    fn perform(name: &str, experiment: &Experiment) -> Result<Observations, TargetError> {
        let mut keeper = Keeper::default();
        Published::named(name).unwrap().perform(experiment, &mut keeper)?;
        Ok(keeper.0)
    }

    #[test]
    fn vmtest_slows_down_beyond_the_pmegs() {
        let vmtest = Vmtest {
            sizes: "2M,16M,32M".parse().unwrap(),
            passes: 300,
            seconds: 1e6,
            mapping: Mapping::Shared,
            ..Vmtest::default()
        };
        let experiment = Experiment::Vmtest(vmtest);
        let seen = perform("sun4c-sunos403", &experiment).unwrap();
        let speed =
            |seen: &Observations| seen.metric("speed.last").unwrap() / seen.metric("speed.first").unwrap();
        assert!(speed(&seen) < 0.2, "{}", speed(&seen));
        let cured = perform("sun4c-copies", &experiment).unwrap();
        assert!(speed(&cured) > 0.8, "{}", speed(&cured));
        // The same number of reads is made.
        assert!(seen.metric("faults.minor") > cured.metric("faults.minor"));
    }

    #[test]
    fn time_bounds_a_size() {
        let vmtest = Vmtest { sizes: "4M".parse().unwrap(), seconds: 5.0, ..Vmtest::default() };
        let seen = perform("sun4c-sunos403", &Experiment::Vmtest(vmtest)).unwrap();
        let elapsed = seen.metric("time.elapsed").unwrap();
        assert!((5e9..6.5e9).contains(&elapsed), "{elapsed}");
    }

    #[test]
    fn chains_cost_the_script_more_than_counts() {
        let storm = Forkstorm { copies: 4, forks: 20, script: Some("file".into()), ..Forkstorm::default() };
        let experiment = Experiment::Forkstorm(storm);
        let system = |name| perform(name, &experiment).unwrap().metric("time.system").unwrap();
        let (none, chain, folio) =
            (system("linux-2.5.27"), system("linux-2.5.27-rmap"), system("linux-6-folio"));
        assert!(none < folio && folio < chain, "{none} {folio} {chain}");
        assert!(perform("linux-2.5.27", &Experiment::Forkstorm(Forkstorm::default())).is_err());
    }

    #[test]
    fn the_token_saturates() {
        let scale = Faultscale { workers: vec![1, 8, 48], ..Faultscale::default() };
        let experiment = Experiment::Faultscale(scale);
        let token = perform("dragonfly-2011-token", &experiment).unwrap();
        let queues = perform("dragonfly-2011-queues", &experiment).unwrap();
        assert!(token.metric("throughput.last") < queues.metric("throughput.last"));
        assert!((token.metric("throughput.first").unwrap() - ALONE).abs() < 1.0);
    }

    #[test]
    fn another_experiment_is_refused_with_a_remedy() {
        for system in PUBLISHED {
            let error = perform(system.name, &Experiment::Mapanon(Default::default())).unwrap_err();
            assert!(error.to_string().contains(system.name), "{error}");
        }
    }
}
