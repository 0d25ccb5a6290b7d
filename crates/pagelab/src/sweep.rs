//! `pagelab run command --sweep-memory LO..HI`: one run for each memory limit that the search asks for.

use anyhow::{Result, anyhow};
use pagelab_analysis::finding::Finding;
use pagelab_analysis::least_memory::{Next, Search, SearchError};
use pagelab_experiment::setting::Limit;
use pagelab_experiment::{Experiment, Failure, Request, Run, Setting, Size, TargetSpec};
use pagelab_report::text::bytes;

use crate::context::Context;
use crate::failure::usage;
use crate::performance::{self, Performed, Planned};

/// Repetitions under each limit unless told otherwise: a median needs three.
pub const REPEAT: u32 = 3;

/// Performs the search between two sizes; the runs, and what they say.
///
/// # Errors
/// When the program cannot be run at all or fails, or the notebook cannot be written.
pub fn sweep(
    experiment: &Experiment,
    (least, most): (Size, Size),
    name: Option<&str>,
    target: &TargetSpec,
    setting: &Setting,
    repeat: u32,
    context: &Context,
) -> Result<(Performed, Option<Finding>)> {
    let page = pagelab_live::region::page_size() as u64;
    let no_answer = |error: SearchError| match error {
        SearchError::NoRange(..) => usage(format!("--sweep-memory: {error}")),
        _ => anyhow!(error).context("--sweep-memory"),
    };
    let mut search = Search::new(least.bytes(page), most.bytes(page), page).map_err(no_answer)?;
    let mut runs: Vec<Run> = Vec::new();
    loop {
        let memory = match search.next() {
            Ok(Next::Measure(memory)) => memory,
            Ok(Next::Found(knee)) => {
                let finding = search.finding(&knee, &program(experiment), name.unwrap_or("command"));
                return Ok((Performed { runs, failure: None }, Some(finding)));
            }
            Err(error) => return Ok((Performed { runs, failure: Some(no_answer(error)) }, None)),
        };
        let size = Size::Bytes(memory);
        let setting = Setting { memory: Some(Limit::Of(size)), ..setting.clone() };
        // A limit that is measured again is another run.
        let before = runs.iter().filter(|run| run.header.setting.limit() == Some(size)).count();
        let point_name = name.map(|name| {
            let ordinal = if before == 0 { String::new() } else { format!("-{}", before + 1) };
            format!("{name}-{}{ordinal}", bytes(memory as f64).replace(' ', ""))
        });
        let request = Request::new(experiment.clone(), setting);
        let mut plans = [Planned::new(point_name, &request, target)?];
        let done = performance::perform(&mut plans, repeat, context)?;
        let measured = match &done.failure {
            None => done.runs.iter().try_for_each(|run| search.measured(memory, run)),
            Some(error) if error.downcast_ref::<Failure>().is_some_and(Failure::is_out_of_memory) => {
                search.killed(memory);
                Ok(())
            }
            Some(_) => {
                runs.extend(done.runs);
                return Ok((Performed { runs, failure: done.failure }, None));
            }
        };
        runs.extend(done.runs);
        if let Err(error) = measured {
            return Ok((Performed { runs, failure: Some(no_answer(error)) }, None));
        }
    }
}

/// What is run.
fn program(experiment: &Experiment) -> String {
    match experiment {
        Experiment::Command(command) => command.program.first().cloned().unwrap_or_default(),
        other => other.name().to_owned(),
    }
}
