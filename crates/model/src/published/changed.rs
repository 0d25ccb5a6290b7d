//! Tests of the parameters: each changes a figure, and none changes one at its default.

use pagelab_experiment::experiments::{
    Access, Clock, Experiment, Faultscale, Fileread, Forkstorm, Mapping, PagesOf, Paging, Vmtest, Work,
};
use pagelab_experiment::observation::{Metric, Table};
use pagelab_experiment::{Observations, Request, Setting, Target};

use super::{PUBLISHED, Published};
use crate::parameter::{Declared, Value};
use crate::systems::SYSTEMS;
use crate::target::Model;
use pagelab_caches::Buffer;

/// Small experiments that together depend on every part of a system.
fn experiments(system: &Published) -> Vec<Experiment> {
    let vmtest = |sizes: &str, process: &str, pages_of| {
        Experiment::Vmtest(Vmtest {
            sizes: Some(sizes.parse().unwrap()),
            process_size: process.parse().unwrap(),
            pages_of,
            passes: 100,
            seconds: if system.name == "tlb" { 0.05 } else { 3600.0 },
            mapping: Mapping::Shared,
            ..Vmtest::default()
        })
    };
    match system.system.performs() {
        "vmtest" if system.name == "tlb" => vec![
            vmtest("128K,4M,128M", "2M", PagesOf::Base),
            vmtest("32M,128M", "128M", PagesOf::Thp),
            vmtest("1792M", "1792M", PagesOf::Base),
        ],
        "vmtest" => vec![vmtest("2M,32M,80M", "2M", PagesOf::Base)],
        "forkstorm" => {
            let storm = Forkstorm { copies: 4, forks: 10, ..Forkstorm::default() };
            vec![
                Experiment::Forkstorm(Forkstorm { script: Some("file".into()), ..storm.clone() }),
                Experiment::Forkstorm(storm),
            ]
        }
        "faultscale" => {
            let of = |work, workers: &[u32], copies| {
                let workers = workers.to_vec();
                Experiment::Faultscale(Faultscale { work, workers, copies, ..Faultscale::default() })
            };
            vec![of(Work::Anon, &[1, 8], 1), of(Work::Build, &[4, 48], 1), of(Work::Build, &[8], 4)]
        }
        "fileread" => vec![Experiment::Fileread(Fileread {
            access: vec![Access::Pread, Access::Mmap, Access::Nowait],
            reads: 2000,
            ..Fileread::default()
        })],
        "clock" => vec![Experiment::Clock(Clock { steps: 200, ..Clock::default() })],
        other => panic!("{other} has no small experiment"),
    }
}

fn figures(system: &Published, experiment: &Experiment) -> (Vec<Metric>, Vec<Table>) {
    let setting = Setting { memory: Some("64M".parse().unwrap()), ..Setting::default() };
    let mut seen = Observations::default();
    system.honours(experiment).unwrap();
    system.perform(experiment, &setting, &mut seen).unwrap();
    (seen.metrics, seen.tables)
}

/// Values other than the default, within the range.
fn others(declared: &Declared) -> Vec<Value> {
    let near = match declared.value {
        Value::Buffer(Buffer { entries, ways }) => {
            return vec![Value::Buffer(Buffer { entries: entries / 4, ways: ways.min(entries / 4) })];
        }
        Value::Number(0.0) => vec![declared.range[1] / 10.0, 1.0],
        Value::Number(value) => {
            vec![2.0 * value, (value / 2.0).floor().max(1.0), value / 64.0, 5.0, declared.range[0]]
        }
    };
    near.into_iter().map(Value::Number).filter(|&v| declared.allows(v) && v != declared.value).collect()
}

#[test]
fn every_parameter_changes_a_figure() {
    let mut idle = Vec::new();
    for system in PUBLISHED {
        let all = experiments(system);
        let usual: Vec<_> = all.iter().map(|one| figures(system, one)).collect();
        for declared in system.parameters() {
            let moved = others(&declared).into_iter().any(|value| {
                let option = (declared.name.to_owned(), declared.written(value));
                // A machine on which no process makes progress is refused and has no figures.
                system.with(&[option]).is_ok_and(|changed| {
                    all.iter().zip(&usual).any(|(one, usual)| figures(&changed, one) != *usual)
                })
            });
            if !moved {
                idle.push(format!("model:{},{}", system.name, declared.name));
            }
        }
    }
    assert!(idle.is_empty(), "these change nothing: {idle:?}");
}

#[test]
fn a_parameter_at_its_default_changes_nothing() {
    for system in PUBLISHED {
        let names: Vec<&str> = system.parameters().iter().map(|declared| declared.name).collect();
        for (index, declared) in system.parameters().iter().enumerate() {
            assert!(declared.allows(declared.value), "{}: {declared:?}", system.name);
            assert!(!names[..index].contains(&declared.name), "{}: twice {}", system.name, declared.name);
            let option = (declared.name.to_owned(), declared.written(declared.value));
            assert_eq!(system.with(&[option]).unwrap(), *system, "{}: {}", system.name, declared.name);
        }
    }
}

#[test]
fn what_is_left_out_is_a_parameter_of_some_system() {
    let known =
        |name: &&str| PUBLISHED.iter().any(|other| other.parameters().iter().any(|one| one.name == *name));
    // Parameters that only a study depends on are declared with the machine, too.
    let of_studies = ["child", "child-faults", "test", "test-faults", "shared"];
    for system in PUBLISHED {
        for name in system.without.iter().filter(|name| !of_studies.contains(name)) {
            assert!(known(name), "{}: {name}", system.name);
        }
    }
}

#[test]
fn a_machine_without_enough_pmegs_is_refused() {
    let with = |options: &[(&str, &str)]| {
        let options: Vec<_> = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Published::named("sun4c-sunos403").unwrap().with(&options)
    };
    assert!(with(&[("pmegs", "64")]).is_ok());
    let few = with(&[("pmegs", "64"), ("locked", "60")]).unwrap_err().to_string();
    assert!(few.contains("at least 12 pmegs"), "{few}");
    let unknown = with(&[("pmeg", "64")]).unwrap_err().to_string();
    assert!(unknown.contains("model:sun4c-sunos403 has no parameter 'pmeg'"), "{unknown}");
    assert!(unknown.contains("did you mean pmegs?"), "{unknown}");
    let range = with(&[("pmegs", "9")]).unwrap_err().to_string();
    assert_eq!(range, "pmegs=9: must be a whole number from 32 to 8192");
}

/// Every parameter of a paging system's memory, swap device and scanner has an effect.
#[test]
fn every_parameter_of_a_paging_system_changes_a_figure() {
    let paging =
        Paging { pages: 2000, references: 30_000, pattern: "zipf:0.6".parse().unwrap(), ..Paging::default() };
    let setting = Setting { memory: Some("1500p".parse().unwrap()), ..Setting::default() };
    let request = Request::new(Experiment::Mapanon(paging), setting);
    for kind in SYSTEMS {
        let seen = |options: &[(String, String)]| {
            let mut seen = Observations::default();
            Model::new(kind.name, options).unwrap().plan(&request).unwrap().perform(&mut seen).unwrap();
            (seen.metrics, seen.tables)
        };
        let usual = seen(&[]);
        for declared in Model::new(kind.name, &[]).unwrap().parameters() {
            let with = |value| seen(&[(declared.name.to_owned(), declared.written(value))]);
            let value = declared.value.number().unwrap();
            let parts = [2.0, 16.0, 64.0].map(|part| Value::Number((value / part).ceil()));
            let mut allowed = parts.into_iter().filter(|&value| declared.allows(value));
            assert!(allowed.any(|value| with(value) != usual), "{}: {}", kind.name, declared.name);
            assert!(with(declared.value) == usual, "{}: {}", kind.name, declared.name);
        }
    }
}
