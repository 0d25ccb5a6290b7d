//! The targets by name: opens one, and knows which of them honour what.

use std::path::Path;

use anyhow::Result;
use pagelab_experiment::declaration::listed;
use pagelab_experiment::experiments::{Command, Load};
use pagelab_experiment::setting::names;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Request, Setting, Target, TargetSpec, Unsupported, What};
use pagelab_guest::Guest;
use pagelab_live::Host;
use pagelab_live::plan::{self, Capabilities};
use pagelab_model::policy::PolicyKind;
use pagelab_model::published::PUBLISHED;
use pagelab_model::systems::SYSTEMS;
use pagelab_model::target::Model;
use pagelab_pager::target::Pager;

use crate::failure::usage;
use crate::output::HINT;

/// The target that `spec` names, with its own options.
///
/// # Errors
/// When there is no such image or model, or an option is unknown or its value impossible.
pub fn open(spec: &TargetSpec, own: &[(String, String)]) -> Result<Box<dyn Target>> {
    let wrong = |problem: String| {
        let hint = match &spec.kind {
            _ if problem.contains(HINT) => String::new(),
            TargetKind::Model(name) if systems().any(|(system, _)| system == name) => {
                format!("\nhint: 'pagelab targets {name}' lists its parameters")
            }
            _ => "\nhint: 'pagelab targets' lists targets and their options".to_owned(),
        };
        usage(format!("--on {spec}: {problem}{hint}"))
    };
    Ok(match (&spec.kind, own.first()) {
        (TargetKind::Host, None) => Box::new(Host::new()),
        (TargetKind::Host, Some((key, _))) => {
            let keys = Setting::keys();
            let keys: Vec<&str> = keys.iter().map(|parameter| parameter.name.as_str()).collect();
            return Err(wrong(format!(
                "the host has no option '{key}'; must be one of {}",
                listed(key, &keys)
            )));
        }
        (TargetKind::Model(name), _) => Box::new(Model::new(name, own).map_err(|e| wrong(e.to_string()))?),
        (TargetKind::Pager(policy), _) => {
            Box::new(Pager::new(policy, own).map_err(|e| wrong(e.to_string()))?)
        }
        (TargetKind::Kernel(path), _) => {
            Box::new(Guest::new(Path::new(path), own).map_err(|e| wrong(e.to_string()))?)
        }
    })
}

/// A kernel image with a clock of instructions and swap in memory, unless its options say
/// otherwise.
pub fn counting(mut target: TargetSpec) -> TargetSpec {
    if matches!(target.kind, TargetKind::Kernel(_)) {
        for (key, value) in [("accel", "icount"), (names::SWAP, "zram")] {
            if !target.options.iter().any(|(own, _)| own == key) {
                target.options.push((key.to_owned(), value.to_owned()));
            }
        }
    }
    target
}

/// The target as a run records it. Parameters of a published system at their default are omitted.
pub fn recorded(spec: &TargetSpec, own: &[(String, String)]) -> TargetSpec {
    let TargetKind::Model(name) = &spec.kind else { return spec.clone() };
    let conditions = spec.options.iter().filter(|option| !own.contains(option)).cloned();
    TargetSpec { kind: spec.kind.clone(), options: conditions.chain(Model::changed(name, own)).collect() }
}

/// The names of all systems, with one line of help each.
pub fn systems() -> impl Iterator<Item = (&'static str, &'static str)> {
    let published = PUBLISHED.iter().map(|system| (system.name, system.help));
    SYSTEMS.iter().map(|system| (system.name, system.help)).chain(published)
}

/// The name of every model.
pub fn models() -> impl Iterator<Item = String> {
    let systems = SYSTEMS.iter().map(|system| system.name);
    let published = PUBLISHED.iter().map(|system| system.name);
    let policies = PolicyKind::catalogue().iter().map(|one| one.form);
    systems.chain(published).chain(policies).map(str::to_owned)
}

/// The kinds of targets that a table of what is honoured has a column for.
pub fn kinds() -> Vec<String> {
    let mut kinds = vec!["host".to_owned(), KERNEL.to_owned(), PAGER.to_owned()];
    kinds.extend(models().filter(|name| !name.contains("TAU")).map(|name| format!("model:{name}")));
    kinds
}

/// Stands for the running kernel of any machine.
pub const ANY_HOST: &str = "any host";

/// Stands for any kernel image.
pub const KERNEL: &str = "kernel:PATH";

/// Stands for any policy that pages.
pub const PAGER: &str = "pager:POLICY";

/// Whether the kind of target honours `request`, as far as that does not depend on an image or on
/// privileges: its plan with what is known of all of that kind.
///
/// # Errors
/// What is not honoured.
pub fn honours(kind: &str, request: &Request) -> Result<(), Box<Unsupported>> {
    let planned = match kind.strip_prefix("model:") {
        None if kind == PAGER => Pager::new("lru", &[]).expect("a policy").honours(kind, request).map(drop),
        None if kind == KERNEL => plan::settle(request, &pagelab_guest::of_any(kind, 4096)).map(drop),
        None if kind == ANY_HOST => plan::settle(request, &Capabilities::of_any_host(kind)).map(drop),
        None => plan::settle(request, &Capabilities::of(&Host::new()).privileged()).map(drop),
        Some(name) => Model::new(name, &[]).expect("the catalogue names models").plan(request).map(drop),
    };
    planned.map_err(Box::new)
}

/// Why the kind of target does not perform `experiment` under `asked`, and its usual conditions
/// where nothing else is asked for.
pub fn refusal(kind: &str, experiment: &Experiment, asked: &Setting) -> Option<Box<Unsupported>> {
    let usual = experiment.declaration().usual();
    let request = Request { experiment: experiment.clone(), asked: asked.clone(), usual };
    // What only this machine lacks, another of the kind has.
    honours(kind, &request).err().filter(|refused| refused.what != What::Machine)
}

/// A setting with one condition alone, for each condition that there is; the conditions that mean nothing alone
/// have what they need beside them.
pub fn single_conditions() -> Vec<(&'static str, Setting)> {
    let list: [(&str, &[(&str, &str)]); 8] = [
        ("memory", &[("memory", "32M")]),
        ("swap", &[("memory", "32M"), ("swap", "file")]),
        ("swap-size", &[("memory", "32M"), ("swap", "file"), ("swap-size", "96M")]),
        ("thp", &[("thp", "always")]),
        ("swappiness", &[("swappiness", "37")]),
        ("functions", &[("functions", "on")]),
        ("profile", &[("profile", "99")]),
        ("set", &[("set", "/proc/sys/vm/page-cluster=2")]),
    ];
    let setting = |pairs: &[(&str, &str)]| {
        let mut setting = Setting::default();
        for (key, value) in pairs {
            assert_eq!(setting.apply(key, value), Ok(true), "{key}={value}");
        }
        setting
    };
    list.into_iter().map(|(name, pairs)| (name, setting(pairs))).collect()
}

/// Every experiment with its defaults; of `command`, a program that every system has.
pub fn experiments() -> Vec<Experiment> {
    let bare = |name: &str| serde_json::from_value(serde_json::json!({ "experiment": name }));
    let all = Experiment::catalogue()
        .into_iter()
        .map(|declared| bare(&declared.name).expect("every experiment has defaults"));
    let with_program = all.map(|experiment: Experiment| match experiment {
        experiment if matches!(experiment.declaration().load(), Load::Program(_)) => {
            Experiment::Command(Command::new(vec!["true".to_owned()]))
        }
        other => other,
    });
    with_program.collect()
}

/// The refusal, with the kinds of targets that honour what this one does not.
pub fn with_alternatives(refused: Unsupported, target: &TargetSpec, request: &Request) -> anyhow::Error {
    /// Names that a message has room for.
    const NAMED: usize = 4;
    if refused.what == What::Machine {
        return anyhow::anyhow!(refused);
    }
    let own = match &target.kind {
        TargetKind::Host => "host".to_owned(),
        TargetKind::Kernel(_) => KERNEL.to_owned(),
        TargetKind::Model(name) => format!("model:{name}"),
        TargetKind::Pager(_) => PAGER.to_owned(),
    };
    let others = kinds().into_iter().filter(|kind| *kind != own);
    let mut honoured_by: Vec<String> = others.filter(|kind| honours(kind, request).is_ok()).collect();
    if honoured_by.len() > NAMED {
        honoured_by.truncate(NAMED);
        honoured_by.push("others (see: pagelab targets --honours)".to_owned());
    }
    usage(Unsupported { honoured_by, ..refused }.to_string())
}
