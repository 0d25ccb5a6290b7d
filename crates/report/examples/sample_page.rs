//! Draws a page of real runs, to be looked at: this machine under 64 MiB (where it can be bounded) beside a
//! modelled kernel, two repetitions each.
//!
//! `cargo run -p pagelab-report --example sample_page -- FOLDER` writes `one.html`, `two.html` and
//! `model.html` there.

use std::path::PathBuf;

use pagelab_analysis::findings::assess;
use pagelab_experiment::experiments::Paging;
use pagelab_experiment::{
    Experiment, Failure, Observations, Outcome, Repetition, Request, Run, RunHeader, Setting, Target,
    TargetSpec,
};
use pagelab_live::{Host, worker};
use pagelab_model::target::Model;
use pagelab_report::page;

fn run(name: &str, target: &str, paging: Paging, perform: &mut dyn Target) -> Run {
    let experiment = Experiment::Mapanon(paging);
    let mut setting = Setting::default();
    for (key, value) in [("memory", "64M"), ("swap", "file")] {
        setting.apply(key, value).expect("a setting");
    }
    let repetitions = (1..=2)
        .map(|number| {
            let mut seen = Observations::default();
            let outcome = match perform
                .plan(&Request::new(experiment.clone(), setting.clone()))
                .map_err(Failure::from)
                .and_then(|mut plan| plan.perform(&mut seen))
            {
                Ok(()) => Outcome::Done,
                Err(error) => Outcome::Failed(error),
            };
            Repetition { number, started: "2026-01-02T03:04:05Z".into(), outcome, observations: seen }
        })
        .collect();
    Run {
        id: 1,
        header: RunHeader {
            name: name.into(),
            batch: "sample".into(),
            experiment,
            target: target.parse::<TargetSpec>().expect("a target"),
            setting,
            conditions: Vec::new(),
            deterministic: false,
            started: "2026-01-02T03:04:05Z".into(),
            pagelab: env!("CARGO_PKG_VERSION").into(),
        },
        repetitions,
    }
}

fn main() -> std::io::Result<()> {
    let argument = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    if argument == worker::ARGUMENT {
        pagelab_live::worker_main();
        return Ok(());
    }
    let folder = PathBuf::from(argument);
    let paging = |pattern: &str, references| Paging {
        references,
        pattern: pattern.parse().expect("a pattern"),
        ..Paging::default()
    };
    let host = run("quiet-otter", "host", paging("drift", 400_000), &mut Host::new());
    let mut linux = Model::new("linux-lru", &[]).expect("a model");
    let model = run("brave-heron", "model:linux-lru", paging("drift", 400_000), &mut linux);
    let full = run("calm-finch", "model:linux-lru", paging("smooth-sin", 2_000_000), &mut linux);
    for (name, runs) in [("one", vec![&host]), ("two", vec![&host, &model]), ("model", vec![&full])] {
        let html = page(&assess(&runs));
        std::fs::write(folder.join(format!("{name}.html")), &html)?;
        println!("{name}.html: {} bytes", html.len());
    }
    Ok(())
}
