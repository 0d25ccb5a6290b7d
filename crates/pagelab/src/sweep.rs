//! `pagelab need` and `pagelab run command --sweep-memory`: one run for each memory limit that the
//! search asks for.

use std::time::Instant;

use anyhow::{Result, anyhow};
use pagelab_analysis::finding::Finding;
use pagelab_analysis::least_memory::{Effort, Goal, Next, Search, SearchError};
use pagelab_experiment::experiments::Command;
use pagelab_experiment::metrics;
use pagelab_experiment::setting::Limit;
use pagelab_experiment::target::TargetKind;
use pagelab_experiment::{Experiment, Failure, FailureKind, Request, Run, Setting, Size, TargetSpec};
use pagelab_report::text::{bytes, duration};

use crate::context::Context;
use crate::failure::usage;
use crate::output::remark;
use crate::performance::{self, Performed, Planned};

/// Repetitions under each limit unless told otherwise: the search measures again what it doubts.
pub const REPEAT: u32 = 1;

/// What swap holds beyond the memory charged to a program without a limit, bytes.
const MARGIN: u64 = 16 << 20;

/// A sweep over memory limits of one program on one target.
pub struct Sweep<'a> {
    /// The program; its sizes, and how long it may take.
    pub command: &'a Command,
    /// What the runs' names begin with.
    pub name: Option<&'a str>,
    /// The target.
    pub target: &'a TargetSpec,
    /// The conditions besides the limit.
    pub setting: &'a Setting,
    /// How long it may take, and how often the program runs under each limit.
    pub effort: Effort,
    /// What is searched for.
    pub goals: &'a [Goal],
    /// The command or option that asks for it, as errors name it.
    pub asked_by: &'static str,
}

impl Sweep<'_> {
    /// Performs the search between the two `sizes`; the runs, and what they say.
    ///
    /// # Errors
    /// When the program cannot be run at all or fails, or the notebook cannot be written.
    pub fn perform(&self, sizes: (Size, Size), context: &Context) -> Result<(Performed, Option<Finding>)> {
        let page = pagelab_kernel::region::page_size() as u64;
        let effort = self.effort;
        let no_answer = |error: SearchError| match error {
            SearchError::NoRange(..) => usage(format!("{}: {error}", self.asked_by)),
            _ => anyhow!(error).context(self.asked_by),
        };
        let (least, most) = (sizes.0.bytes(page), sizes.1.bytes(page));
        let mut search = Search::new(self.goals, least, most, page, effort).map_err(no_answer)?;
        if self.target.kind == TargetKind::Host && !pagelab_confine::cgroup::has_pressure() {
            search.ignore_stalls();
        }
        let mut runs: Vec<Run> = Vec::new();
        let program = self.command.program.first().map_or("", String::as_str);
        loop {
            let memory = match search.next() {
                Ok(Next::Measure(memory)) => memory,
                Ok(Next::Found(knee)) => {
                    let finding = search.finding(&knee, program, self.name.unwrap_or("command"));
                    return Ok((Performed { runs, failure: None }, Some(finding)));
                }
                Err(error) => return Ok((Performed { runs, failure: Some(no_answer(error)) }, None)),
            };
            // A limit that is measured again is another run.
            let size = Some(Size::Bytes(memory));
            let before = runs.iter().filter(|run| run.header.setting.limit() == size).count();
            let mut plans = [self.plan(memory, before, search.deadline(memory), search.peak())?];
            let began = Instant::now();
            let done = performance::perform(&mut plans, effort.repeat, context)?;
            let spent = began.elapsed().as_nanos() as f64;
            let kind = done.failure.as_ref().and_then(|e| e.downcast_ref::<Failure>()).map(|f| &f.kind);
            let measured = match (&done.failure, kind) {
                (None, _) => measured(&mut search, memory, &done.runs, None, spent),
                (Some(_), Some(FailureKind::OutOfMemory { .. })) => {
                    search.killed(memory, spent);
                    Ok(())
                }
                (Some(_), Some(FailureKind::TimedOut { .. })) => {
                    let stopped = done.runs.iter().flat_map(|run| &run.repetitions).next_back();
                    let stopped = stopped.and_then(|r| r.observations.metric(metrics::TIME_ELAPSED));
                    measured(&mut search, memory, &done.runs, stopped, spent)
                }
                _ => {
                    runs.extend(done.runs);
                    return Ok((Performed { runs, failure: done.failure }, None));
                }
            };
            let first = runs.is_empty();
            runs.extend(done.runs);
            if let Err(error) = measured {
                return Ok((Performed { runs, failure: Some(no_answer(error)) }, None));
            }
            if let (true, false, Some(estimate)) = (first, context.quiet, search.estimate()) {
                remark!(
                    "{program} takes {} under {}; the search takes at most {} ({} times that)",
                    duration(estimate.own),
                    bytes(most as f64),
                    duration(estimate.at_most),
                    effort.budget * f64::from(effort.repeat)
                );
            }
        }
    }

    /// The run under the greatest of the `sizes`, with which the sweep begins.
    ///
    /// # Errors
    /// What the target does not honour.
    pub fn first(&self, sizes: (Size, Size)) -> Result<Planned> {
        self.plan(sizes.1.bytes(pagelab_kernel::region::page_size() as u64), 0, None, None)
    }

    /// A run under one limit, which was measured `before` times before; the program is stopped
    /// after `deadline` ns. Its swap holds `peak` bytes, where they are known.
    fn plan(&self, memory: u64, before: usize, deadline: Option<f64>, peak: Option<f64>) -> Result<Planned> {
        let setting = Setting { memory: Some(Limit::Of(Size::Bytes(memory))), ..self.setting.clone() };
        let name = self.name.map(|name| {
            let ordinal = if before == 0 { String::new() } else { format!("-{}", before + 1) };
            format!("{name}-{}{ordinal}", bytes(memory as f64).replace(' ', ""))
        });
        let seconds = [deadline.map(|ns| ns / 1e9), self.command.timeout].into_iter().flatten();
        let peak = peak.filter(|_| self.command.sweep_memory.is_none());
        let max_memory = self.command.max_memory.or(peak.map(|peak| Size::Bytes(peak as u64 + MARGIN)));
        let command = Command { timeout: seconds.reduce(f64::min), max_memory, ..self.command.clone() };
        Planned::new(name, &Request::new(Experiment::Command(command), setting), self.target)
    }
}

fn measured(
    search: &mut Search,
    memory: u64,
    runs: &[Run],
    stopped: Option<f64>,
    spent: f64,
) -> Result<(), SearchError> {
    runs.iter().try_for_each(|run| search.measured(memory, run, stopped, spent))
}
