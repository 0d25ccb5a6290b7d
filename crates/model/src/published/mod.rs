//! The published systems as targets: each performs the experiment that its study was made with, in virtual
//! time, with the tables and figures of the live experiment.
//!
//! | system | experiment |
//! |---|---|
//! | Sun-4 pmegs | `vmtest` |
//! | translation buffers of today | `vmtest` |
//! | reverse maps | `forkstorm`, the storm or the script |
//! | VM token | `faultscale` with anonymous memory |
//! | Solaris's page cache | `fileread` |
//! | a guest's clocks | `clock` |

mod clock;
mod faultscale;
mod fileread;
mod forkstorm;
mod tlb;
mod vmtest;

use pagelab_experiment::environment;
use std::collections::BTreeMap;

use pagelab_experiment::declaration::Refusal;
use pagelab_experiment::experiments::Experiment;
use pagelab_experiment::{Failure, Observation, Recorder, Setting, Unsupported, What};

use crate::clocks::Guest;
use crate::locks::Token;
use crate::pagecache::Path;
use crate::parameter::{Declared, Parts, SEED, Seed, find};
use crate::rmap::Kind;
use crate::sun4::{Copies, Machine, SPARCSTATION_1, SPARCSTATION_2, Sun4};
use crate::tlb::Tlb;
use crate::{BASE_PAGE, clocks, sun4};

/// A published system by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The name on the command line, behind `model:`.
    pub name: &'static str,
    /// One line.
    pub help: &'static str,
    /// Parameters of its parts that have no effect on its experiment.
    without: &'static [&'static str],
    system: System,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum System {
    Sun4(Sun4, Seed),
    Tlb(Tlb, Seed),
    Rmap(forkstorm::Machine),
    Token(faultscale::Locked),
    Pagecache(fileread::Cached),
    Clock(Guest, Seed),
}

/// A machine of the Sun-4 family under SunOS 4.0.3, and its copies of PMEGs.
const fn sun4c(machine: Machine, copies: Copies) -> System {
    System::Sun4(Sun4 { copies, ..Sun4::sunos403(machine) }, Seed(1))
}

/// Parameters without effect on a Sun-4 that keeps copies: its time starts when all processes are
/// ready, and no process loses all its PMEGs.
const READY: &[&str] = &["child", "child-faults", "test", "test-faults", "swap-in"];
/// The same for a Sun-4 that keeps no copies.
const NO_COPIES: &[&str] = &["child", "child-faults", "test", "test-faults", "reload"];
/// The costs of a reverse map, for a kernel that has none.
const NO_MAP: &[&str] = &["miss", "shared", "atomic", "slab", "call", "seed"];
/// Parameters without effect on a map that only counts: the order of the processes does not matter.
const COUNTS: &[&str] = &["shared", "seed"];

/// All of them.
pub const PUBLISHED: &[Published] = &[
    Published {
        name: "sun4c-sunos403",
        help: "vmtest: SPARCstation 1, SunOS 4.0.3, 128 pmegs (Irlam 1990)",
        without: NO_COPIES,
        system: sun4c(SPARCSTATION_1, Copies::None),
    },
    Published {
        name: "sun4c-copies",
        help: "vmtest: the same with a copy of every pmeg in memory, as Irlam proposed and Sun announced",
        without: READY,
        system: sun4c(SPARCSTATION_1, Copies::All),
    },
    Published {
        name: "sun4c-ss2-sunos403",
        help: "vmtest: SPARCstation 2, 256 pmegs, at the costs of a SPARCstation 1",
        without: NO_COPIES,
        system: sun4c(SPARCSTATION_2, Copies::None),
    },
    Published {
        name: "tlb",
        help: "vmtest: translation buffers, walk caches and caches of a Skylake server",
        without: &[],
        system: System::Tlb(Tlb::SKYLAKE, Seed(1)),
    },
    Published {
        name: "linux-2.5.27",
        help: "forkstorm: 2.5.27 without reverse map (Morton 2002)",
        without: NO_MAP,
        system: System::Rmap(forkstorm::Machine::of(Kind::None)),
    },
    Published {
        name: "linux-2.5.27-rmap",
        help: "forkstorm: 2.5.27 with pte_chain (Morton 2002)",
        without: &["shared"],
        system: System::Rmap(forkstorm::Machine::of(Kind::Chain)),
    },
    Published {
        name: "linux-2.6.7-objrmap",
        help: "forkstorm: reverse map through objects",
        without: COUNTS,
        system: System::Rmap(forkstorm::Machine::of(Kind::Object)),
    },
    Published {
        name: "linux-6-folio",
        help: "forkstorm: reverse map through objects, counts by folio",
        without: COUNTS,
        system: System::Rmap(forkstorm::Machine::of(Kind::Folio)),
    },
    Published {
        name: "dragonfly-2011-token",
        help: "faultscale: one VM token for all (Dillon 2011)",
        without: &[],
        system: System::Token(faultscale::Locked::of(Token::ZERO_FILL, Token::BUILD)),
    },
    Published {
        name: "dragonfly-2011-queues",
        help: "faultscale: page queues divided, October 2011",
        without: &["build-slowing"],
        system: System::Token(faultscale::Locked::of(Token::ZERO_FILL_QUEUES, Token::NONE)),
    },
    Published {
        name: "solaris8-segmap",
        help: "fileread: reads through windows that are mapped and unmapped (McDougall 2005)",
        without: &[],
        system: System::Pagecache(fileread::Cached::by(Path::Segmap)),
    },
    Published {
        name: "solaris10-segkpm",
        help: "fileread: reads through memory mapped once",
        without: &["cross-call", "processors"],
        system: System::Pagecache(fileread::Cached::by(Path::Kpm)),
    },
    Published {
        name: "guest-clock",
        help: "clock: a guest on cores whose counters are slow and not in step (McDougall 2007)",
        // After a jump the guest ignores its time-of-day chip, which alone reveals the rate.
        without: &["rate"],
        system: System::Clock(Guest::UNBOUND, Seed(1)),
    },
    Published {
        name: "guest-clock-node",
        help: "clock: the same, bound to a node",
        without: &["nodes", "between-nodes", "moves"],
        system: System::Clock(Guest::NODE, Seed(1)),
    },
    Published {
        name: "guest-clock-core",
        help: "clock: the same, bound to a core, its counters not used",
        without: &["nodes", "between-nodes", "rate", "moves", "shortened"],
        system: System::Clock(Guest::TIMER, Seed(1)),
    },
];

impl Published {
    /// The system of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PUBLISHED.iter().find(|system| system.name == name)
    }

    /// The system with parameters from the command line.
    ///
    /// # Errors
    /// A sentence if the system has no such parameter, or the value is out of range.
    pub fn with(&self, options: &[(String, String)]) -> Result<Self, Refusal> {
        let mut system = self.system;
        for (name, text) in options {
            let mut parts = system.parts().without(self.without);
            let value = find(&format!("model:{}", self.name), &parts.declared(), name)?.read(text)?;
            parts.set(name, value);
        }
        if let System::Sun4(sun4, _) = &system {
            sun4.check()?;
        }
        Ok(Self { system, ..*self })
    }

    /// Its parameters with their values.
    pub fn parameters(&self) -> Vec<Declared> {
        let mut system = self.system;
        system.parts().without(self.without).declared()
    }

    /// Refuses an experiment that the model does not have, or has with other parameters.
    ///
    /// # Errors
    /// What it does not honour.
    pub fn honours(&self, experiment: &Experiment) -> Result<(), Unsupported> {
        let target = format!("model:{}", self.name);
        let performs = self.system.performs();
        if performs != experiment.name() {
            return Err(Unsupported::new(
                target,
                What::Experiment,
                format!("models {performs}"),
                format!("use {performs}, or run {} on host", experiment.name()),
            ));
        }
        let refused = match (self.system, experiment) {
            (System::Sun4(..), Experiment::Vmtest(vmtest)) => vmtest::refuses(vmtest),
            (System::Tlb(..), Experiment::Vmtest(vmtest)) => tlb::refuses(vmtest),
            (System::Token(locked), Experiment::Faultscale(faultscale)) => {
                faultscale::refuses(&locked, faultscale)
            }
            (System::Pagecache(..), Experiment::Fileread(fileread)) => fileread::refuses(fileread),
            (System::Clock(..), Experiment::Clock(clock)) => clock::refuses(clock),
            _ => None,
        };
        refused.map_or(Ok(()), |(parameter, why, remedy)| {
            Err(Unsupported::new(target, What::Parameter(parameter.to_owned()), why, remedy))
        })
    }

    /// The page size of the modelled machine, bytes.
    pub fn page_size(&self) -> u64 {
        self.system.page_size()
    }

    /// Whether a memory limit bounds anything in the model.
    pub fn honours_memory(&self) -> bool {
        matches!(self.system, System::Pagecache(..))
    }

    /// Performs the experiment of the system's study.
    ///
    /// # Errors
    /// When it is another experiment, or the recorder cannot keep what it sees.
    pub fn perform(
        &self,
        experiment: &Experiment,
        setting: &Setting,
        recorder: &mut dyn Recorder,
    ) -> Result<(), Failure> {
        let page = self.system.page_size();
        let facts = BTreeMap::from([
            (environment::MODEL_NAME.to_owned(), self.name.to_owned()),
            (environment::PAGE_SIZE.to_owned(), page.to_string()),
        ]);
        recorder.observe(Observation::Environment(facts))?;
        match (self.system, experiment) {
            (System::Sun4(sun4, seed), Experiment::Vmtest(vmtest)) => {
                vmtest::perform(&sun4, seed, vmtest, recorder)
            }
            (System::Tlb(tlb, seed), Experiment::Vmtest(vmtest)) => {
                tlb::perform(&tlb, seed, vmtest, recorder)
            }
            (System::Rmap(machine), Experiment::Forkstorm(forkstorm)) => {
                forkstorm::perform(&machine, forkstorm, recorder)
            }
            (System::Token(locked), Experiment::Faultscale(faultscale)) => {
                faultscale::perform(&locked, faultscale, recorder)
            }
            (System::Pagecache(cached), Experiment::Fileread(fileread)) => {
                fileread::perform(&cached, fileread, setting, recorder)
            }
            (System::Clock(guest, seed), Experiment::Clock(clock)) => {
                clock::perform(&guest, seed, clock, recorder)
            }
            _ => Err(Failure::unsupported(
                format!("model:{} performs {}", self.name, self.system.performs()),
                "perform what was planned",
            )),
        }
    }
}

/// A parameter of an experiment that a model does not honour: its name, the reason, the remedy.
type Refused = (&'static str, String, String);

fn refusal(parameter: &'static str, why: &str, remedy: &str) -> Refused {
    (parameter, why.to_owned(), remedy.to_owned())
}

fn refused(parameter: &'static str, why: &str, remedy: &str) -> Option<Refused> {
    Some(refusal(parameter, why, remedy))
}

impl System {
    fn parts(&mut self) -> Parts<'_> {
        let parts = Parts::default();
        match self {
            Self::Sun4(system, seed) => parts.and(sun4::PARAMETERS, system).and(SEED, seed),
            Self::Tlb(tlb, seed) => parts.and(crate::tlb::PARAMETERS, tlb).and(SEED, seed),
            Self::Rmap(machine) => machine.parts(),
            Self::Token(locked) => locked.parts(),
            Self::Pagecache(cached) => cached.parts(),
            Self::Clock(guest, seed) => parts.and(clocks::PARAMETERS, guest).and(SEED, seed),
        }
    }

    fn page_size(self) -> u64 {
        match self {
            Self::Sun4(sun4, _) => u64::from(sun4.machine.page),
            Self::Pagecache(..) => fileread::PAGE,
            Self::Rmap(_) | Self::Token(_) | Self::Clock(..) | Self::Tlb(..) => BASE_PAGE,
        }
    }

    fn performs(self) -> &'static str {
        match self {
            Self::Sun4(..) | Self::Tlb(..) => "vmtest",
            Self::Rmap(_) => "forkstorm",
            Self::Token(_) => "faultscale",
            Self::Pagecache(_) => "fileread",
            Self::Clock(..) => "clock",
        }
    }
}

#[cfg(test)]
mod changed;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks::ALONE;
    use pagelab_experiment::Observations;
    use pagelab_experiment::experiments::{
        Access, Clock, Faultscale, Fileread, Forkstorm, Mapping, Vmtest, Work,
    };
    use pagelab_experiment::{ColumnId, tables};

    fn perform(name: &str, experiment: &Experiment) -> Result<Observations, Failure> {
        let mut seen = Observations::default();
        let setting = Setting { memory: Some("64M".parse().unwrap()), ..Setting::default() };
        let system = Published::named(name).unwrap();
        system.honours(experiment)?;
        system.perform(experiment, &setting, &mut seen)?;
        Ok(seen)
    }

    #[test]
    fn vmtest_slows_down_beyond_the_pmegs() {
        let vmtest = Vmtest {
            sizes: Some("2M,16M,32M".parse().unwrap()),
            passes: 300,
            seconds: 1e6,
            mapping: Mapping::Shared,
            ..Vmtest::default()
        };
        let experiment = Experiment::Vmtest(vmtest);
        let seen = perform("sun4c-sunos403", &experiment).unwrap();
        let speed = |seen: &Observations| {
            seen.metric_named("speed.last").unwrap() / seen.metric_named("speed.first").unwrap()
        };
        assert!(speed(&seen) < 0.2, "{}", speed(&seen));
        let cured = perform("sun4c-copies", &experiment).unwrap();
        assert!(speed(&cured) > 0.8, "{}", speed(&cured));
        // The same number of reads is made.
        assert!(seen.metric_named("faults.minor") > cured.metric_named("faults.minor"));
    }

    #[test]
    fn time_bounds_a_size() {
        let vmtest = Vmtest { sizes: Some("4M".parse().unwrap()), seconds: 5.0, ..Vmtest::default() };
        let seen = perform("sun4c-sunos403", &Experiment::Vmtest(vmtest)).unwrap();
        let elapsed = seen.metric_named("time.elapsed").unwrap();
        assert!((5e9..6.5e9).contains(&elapsed), "{elapsed}");
    }

    #[test]
    fn chains_cost_the_script_more_than_counts() {
        let storm = Forkstorm { copies: 4, forks: 20, script: Some("file".into()), ..Forkstorm::default() };
        let experiment = Experiment::Forkstorm(storm);
        let system = |name| perform(name, &experiment).unwrap().metric_named("time.system").unwrap();
        let (none, chain, folio) =
            (system("linux-2.5.27"), system("linux-2.5.27-rmap"), system("linux-6-folio"));
        assert!(none < folio && folio < chain, "{none} {folio} {chain}");
    }

    #[test]
    fn chains_cost_the_storm_more_the_more_pages_it_has() {
        let extra = |pages| {
            let storm = Experiment::Forkstorm(Forkstorm { forks: 20, pages, ..Forkstorm::default() });
            let system = |name| perform(name, &storm).unwrap().metric_named("fork.system").unwrap();
            system("linux-2.5.27-rmap") - system("linux-2.5.27")
        };
        assert!(extra(2000) > 3.0 * extra(100), "{} {}", extra(2000), extra(100));
        // 1.15 µs was measured an operation; a page of the storm has two.
        let each = (extra(2000) - extra(1000)) / 1000.0;
        assert!((1000.0..4000.0).contains(&each), "{each}");
    }

    #[test]
    fn the_token_saturates() {
        let scale = Faultscale { workers: vec![1, 8, 48], ..Faultscale::default() };
        let experiment = Experiment::Faultscale(scale);
        let token = perform("dragonfly-2011-token", &experiment).unwrap();
        let queues = perform("dragonfly-2011-queues", &experiment).unwrap();
        assert!(token.metric_named("throughput.last") < queues.metric_named("throughput.last"));
        assert!((token.metric_named("throughput.first").unwrap() - ALONE).abs() < 1.0);
    }

    #[test]
    fn a_build_under_the_token_is_slower_with_many_jobs_than_with_few() {
        let build = |name, workers: Vec<u32>| {
            let scale = Faultscale { work: Work::Build, workers, ..Faultscale::default() };
            perform(name, &Experiment::Faultscale(scale)).unwrap()
        };
        let seconds = |name| {
            let seen = build(name, vec![4, 48]);
            let table = seen.table(tables::faultscale::TABLE).unwrap();
            table
                .numbers(tables::faultscale::TIME_ELAPSED)
                .unwrap()
                .iter()
                .map(|ns| ns.unwrap() / 1e9)
                .collect::<Vec<f64>>()
        };
        let [token, queues] = ["dragonfly-2011-token", "dragonfly-2011-queues"].map(seconds);
        // 137.95 and 167.62 s were measured under the token, 55 s without.
        assert!((token[0] / 138.0 - 1.0).abs() < 0.06 && (token[1] / 167.6 - 1.0).abs() < 0.06, "{token:?}");
        assert!((queues[1] / 55.0 - 1.0).abs() < 0.1, "{queues:?}");
        let own = Faultscale { work: Work::Build, cmd: Some("make".into()), ..Faultscale::default() };
        assert!(perform("dragonfly-2011-token", &Experiment::Faultscale(own)).is_err());
    }

    #[test]
    fn segkpm_reads_a_large_file_at_half_the_cost() {
        let read = Fileread {
            access: vec![Access::Pread],
            sizes: Some("4M,48M,512M".parse().unwrap()),
            ..Fileread::default()
        };
        let experiment = Experiment::Fileread(read);
        let cost = |name, metric| perform(name, &experiment).unwrap().metric_named(metric).unwrap() / 1000.0;
        assert!((cost("solaris8-segmap", "read.cpu.small") - 89.0).abs() < 1.0);
        assert!((cost("solaris8-segmap", "read.cpu.beyond") - 236.0).abs() < 24.0);
        let (old, new) =
            (cost("solaris8-segmap", "read.cpu.large"), cost("solaris10-segkpm", "read.cpu.large"));
        assert!(old > 1.5 * new, "{old} {new}");
        let rate = Fileread { rate: Some(100.0), ..Fileread::default() };
        assert!(perform("solaris8-segmap", &Experiment::Fileread(rate)).is_err());
    }

    #[test]
    fn a_mapping_spares_the_call_and_a_read_that_would_wait_is_made_twice() {
        let experiment = Experiment::Fileread(Fileread::default());
        let seen = perform("solaris8-segmap", &experiment).unwrap();
        let table = seen.table(tables::fileread::TABLE).unwrap();
        use pagelab_experiment::tables::fileread::{CALLS, CPU_EACH, FAULTS_MAJOR, HITS};
        let of = |column: ColumnId, row: usize| table.numbers(column).unwrap()[row];
        // Rows: small, large and beyond, each by pread, mmap and nowait.
        assert!(of(CPU_EACH, 1) < of(CPU_EACH, 0) && of(CPU_EACH, 8) > of(CPU_EACH, 6));
        assert!(of(FAULTS_MAJOR, 1) == Some(0.0) && of(FAULTS_MAJOR, 7) > Some(0.0));
        let (hits, calls) = (of(HITS, 8).unwrap(), of(CALLS, 8).unwrap());
        assert!((calls / 20_000.0 - (2.0 - hits)).abs() < 1e-9 && of(HITS, 6).is_none());
    }

    #[test]
    fn a_guest_that_does_not_use_the_counters_has_true_time() {
        let experiment = Experiment::Clock(Clock { steps: 200, ..Clock::default() });
        let truth = |name| perform(name, &experiment).unwrap().metric_named("clock.agreement");
        assert_eq!((truth("guest-clock"), truth("guest-clock-core")), (Some(0.0), Some(1.0)));
    }

    #[test]
    fn another_experiment_is_refused_with_a_remedy() {
        for system in PUBLISHED {
            let error = perform(system.name, &Experiment::Mapanon(Default::default())).unwrap_err();
            assert!(error.to_string().contains(system.name), "{error}");
        }
    }
}
