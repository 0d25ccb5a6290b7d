//! How much memory a program needs, by bisection over memory limits.
//!
//! Three goals ([`Goal`]) share the measured limits: at most 1% of the time stalled for memory, at
//! most 10%, and completion. What other load does not change decides: the pages that the program
//! fetched and refaulted beyond those at full speed, and the time in which it stalled for them
//! (PSI). Without PSI the stall is those pages, each at the cost per page of the least disturbed
//! limit. Only a target without counters is judged by elapsed time.
//!
//! A limit is too little if the program fetched more, or the kernel wrote more of it to swap, and
//! it stalled for more than the goal allows. A limit is enough if the program ended and stalled for
//! less, if less memory was enough, or if it was never charged more than four fifths of the limit.
//! Anything else is unclear and is measured again, three times in all for each run under the
//! greatest limit. If the program ended and each run stalled for more (PSI), the limit is then too
//! little: reclaim of clean pages stalls too. Without PSI it is enough if the program was as fast
//! under a smaller one. Otherwise the answer is inconclusive, as it is for a limit that is too
//! little although less memory was enough. The largest limit that is too little is measured as
//! often if its loss is less than three times what the goal allows. The least disturbed run counts.
//!
//! The search halves the ratio of the greatest limit known to be too small and the least known to
//! be enough, until they are within [`PRECISION`]. Where the memory charged under the greatest
//! limit is known, it begins there and goes down by halves.
//!
//! It is bounded ([`Effort`]): a program is stopped under a limit that slows it clearly, and the
//! search ends, with the interval known by then, when it may have taken so many times what the
//! program takes by itself.

mod judge;
mod limits;
#[cfg(test)]
mod tests;

use pagelab_experiment::metrics;
use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Outcome, Repetition, Run};

use crate::finding::{Evidence, Figure, Finding, MeasuredLimit, Severity, Statistic, What};

use self::judge::View;
pub use self::judge::{Knee, Next, PRECISION};
use self::limits::least;
pub use self::limits::{Goal, Point};

/// How long a search may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// How much longer than at full speed a program may run under a limit before it is stopped.
    pub give_up: f64,
    /// How long the whole search may take, in times that the program takes under the greatest
    /// limit.
    pub budget: f64,
    /// How often the program runs under each limit.
    pub repeat: u32,
}

/// Why a sweep has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The sizes are no range.
    #[error("{0} to {1} bytes is not a range of at least a page")]
    NoRange(u64, u64),
    /// The program did not end by itself under the greatest limit.
    #[error(
        "the program does not end by itself under the largest limit, {0} bytes\nhint: search to a larger one"
    )]
    NoEndAtMost(u64),
    /// The program ended with a status other than 0, whatever the memory: its time means nothing.
    #[error("the program failed with exit status {0}: a failing program has no working size")]
    ProgramFailed(i64),
}

/// What a search will take at most, once the program has run under the greatest limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// What the program takes by itself, ns.
    pub own: f64,
    /// The whole search, ns.
    pub at_most: f64,
}

/// A sweep under way: the limits that were measured, and what to measure next.
#[derive(Clone, Debug)]
pub struct Search {
    goals: Vec<Goal>,
    least: u64,
    most: u64,
    page: u64,
    effort: Effort,
    points: Vec<Point>,
    /// What each limit took from its set-up to its removal, ns, in the order measured.
    spent: Vec<f64>,
    /// The least of those under which the program ended by itself.
    usual: f64,
    /// The fastest run from its start to its end, waiting for a CPU included, ns.
    fastest: f64,
    /// Whether the stalled times are of the program alone.
    own_stalls: bool,
}

impl Search {
    /// A sweep for these goals between two limits in bytes, in steps of `page` bytes.
    ///
    /// # Errors
    /// When they are no range.
    pub fn new(
        goals: &[Goal],
        least: u64,
        most: u64,
        page: u64,
        effort: Effort,
    ) -> Result<Self, SearchError> {
        let page = page.max(1);
        let whole = |bytes: u64| bytes / page * page;
        if whole(least) == 0 || least > most {
            return Err(SearchError::NoRange(least, most));
        }
        let (least, most) = (whole(least), whole(most));
        let (points, spent, goals) = (Vec::new(), Vec::new(), goals.to_vec());
        let (usual, fastest) = (f64::INFINITY, f64::INFINITY);
        Ok(Self { goals, least, most, page, effort, points, spent, usual, fastest, own_stalls: true })
    }

    /// Stalled times are the whole machine's, and say nothing of the program.
    pub fn ignore_stalls(&mut self) {
        self.own_stalls = false;
    }

    /// What to do next.
    ///
    /// # Errors
    /// When the program was killed or stopped under the greatest limit.
    pub fn next(&self) -> Result<Next, SearchError> {
        let mut found = None;
        for &goal in &self.goals {
            let next = judge::next(&self.points, goal, self.least, self.most, self.page)
                .ok_or(SearchError::NoEndAtMost(self.most))?;
            match next {
                Next::Found(knee) => found = found.or(Some(knee)),
                Next::Measure(_) => {
                    // Another limit may take this long; what is set up around the program takes its
                    // time too.
                    let another = self.usual * self.effort.give_up.max(1.0);
                    let spent = self.spent.iter().sum::<f64>() + another;
                    if self.estimate().is_some_and(|estimate| spent > estimate.at_most) {
                        return self.knee(self.goals[0], true).map(Next::Found);
                    }
                    return Ok(next);
                }
            }
        }
        found.map(Next::Found).ok_or(SearchError::NoEndAtMost(self.most))
    }

    /// The interval known by now for this goal.
    fn knee(&self, goal: Goal, early: bool) -> Result<Knee, SearchError> {
        let view = View::of(&self.points, goal, self.most).ok_or(SearchError::NoEndAtMost(self.most))?;
        Ok(view.knee(early))
    }

    /// The most memory charged to the program under the greatest limit, bytes, once it has run
    /// under it.
    pub fn peak(&self) -> Option<f64> {
        self.points.iter().find(|p| p.memory == self.most).and_then(Point::peak)
    }

    /// What it will take, once the program has run under the greatest limit.
    pub fn estimate(&self) -> Option<Estimate> {
        let first = *self.spent.first()?;
        let own = first / f64::from(self.effort.repeat.max(1));
        Some(Estimate { own, at_most: self.effort.budget * first })
    }

    /// When a run under this limit is to be stopped, ns after its start, each time twice as late;
    /// `None` under the greatest limit, which is at full speed.
    pub fn deadline(&self, memory: u64) -> Option<f64> {
        let stopped = self.points.iter().find(|p| p.memory == memory).map_or(0, |point| point.stopped.len());
        self.fastest.is_finite().then_some(self.fastest * self.effort.give_up * 2f64.powi(stopped as i32))
    }

    /// The runs under this limit, which took `spent` ns with their set-up, ended because the kernel
    /// killed the program for want of memory.
    pub fn killed(&mut self, memory: u64, spent: f64) {
        self.spent.push(spent);
        let point = self.point(memory);
        point.times.clear();
        point.killed = true;
    }

    /// What a run under this limit measured, which took `spent` ns with its set-up; `stopped`:
    /// after how many ns its last repetition was stopped, if it was.
    ///
    /// # Errors
    /// When the program failed.
    pub fn measured(
        &mut self,
        memory: u64,
        run: &Run,
        stopped: Option<f64>,
        spent: f64,
    ) -> Result<(), SearchError> {
        if let Some(status) = run.values(metrics::COMMAND_STATUS).into_iter().find(|&status| status != 0.0) {
            return Err(SearchError::ProgramFailed(status as i64));
        }
        self.spent.push(spent);
        if run.done().next().is_some() {
            self.usual = self.usual.min(spent);
        }
        self.fastest = self.fastest.min(least(&run.values(metrics::TIME_ELAPSED)));
        let (page, own_stalls) = (self.page as f64, self.own_stalls);
        let point = self.point(memory);
        let (done, known) = (run.done().next().is_some(), !point.times.is_empty());
        point.times.extend(run.done().filter_map(own_time));
        // Without what it waited for a CPU, as the times.
        let net = stopped.and_then(|ns| run.repetitions.last().and_then(own_time).or(Some(ns)));
        point.stopped.extend(net);
        // A stopped repetition does not count as one, but what it fetched and held tells why it was
        // slow, as long as none has ended.
        if done && !known {
            let of = [&mut point.fetched, &mut point.refaults, &mut point.written, &mut point.stalled];
            of.into_iter().for_each(Vec::clear);
        }
        let counts = |r: &&Repetition| r.outcome == Outcome::Done || stopped.is_some() && !done && !known;
        let seen = || run.repetitions.iter().filter(counts);
        let metric = |of| seen().filter_map(move |r| r.observations.metric(of));
        point.fetched.extend(seen().filter_map(|repetition| fetched(repetition, page)));
        point.refaults.extend(metric(metrics::REFAULTS));
        point.written.extend(metric(metrics::SWAP_OUT));
        point.stalled.extend(metric(metrics::TIME_STALLED).filter(|_| own_stalls));
        let charged = |repetition: &Repetition| repetition.observations.metric(metrics::MEMORY_CHARGED_PEAK);
        point.charged.extend(seen().filter_map(charged));
        Ok(())
    }

    fn point(&mut self, memory: u64) -> &mut Point {
        let at = self.points.iter().position(|p| p.memory == memory).unwrap_or_else(|| {
            self.points.push(Point { memory, ..Point::default() });
            self.points.len() - 1
        });
        &mut self.points[at]
    }

    /// What the sweep found about `program`, as a finding of the runs called `name`.
    pub fn finding(&self, knee: &Knee, program: &str, name: &str) -> Finding {
        let n = self.points.iter().map(Point::runs).sum();
        let bytes =
            |name: &str, value: u64| Figure::derived(name, Unit::Bytes, Statistic::Value, value as f64, n);
        let time =
            |name: &str, statistic, value| Figure::derived(name, Unit::Nanoseconds, statistic, value, n);
        let views = |&goal: &Goal| View::of(&self.points, goal, self.most);
        let views: Vec<View<'_>> = self.goals.iter().filter_map(views).collect();
        let mut figures = Vec::new();
        for view in &views {
            let (knee, [enough, too_little]) = (view.knee(knee.early), view.goal.names());
            figures.push(bytes(enough, knee.enough));
            figures.extend(knee.too_little.map(|memory| bytes(too_little, memory)));
        }
        figures.extend([
            time("time.full", Statistic::Min, knee.full),
            time("time.allowed", Statistic::Value, knee.allowed),
            time("time.sweep", Statistic::Value, self.spent.iter().sum()),
        ]);
        figures.extend(self.peak().map(|peak| bytes(metrics::MEMORY_PEAK.name, peak as u64)));
        let stall = |point: &Point| views.first().and_then(|view| view.stall(point));
        let limit = |point: &Point| {
            let (time, stopped) = (point.time(), point.stopped.iter().copied().reduce(f64::max));
            MeasuredLimit {
                memory: point.memory,
                time: Some(time).filter(|time| time.is_finite()).or(stopped),
                stopped: time.is_infinite() && stopped.is_some(),
                fetched: point.fetched.iter().copied().reduce(f64::min),
                stall: stall(point).filter(|_| !point.killed).map(|(share, _)| share),
            }
        };
        let mut limits: Vec<MeasuredLimit> = self.points.iter().map(limit).collect();
        limits.sort_by_key(|limit| limit.memory);
        Finding {
            what: What::LeastMemory {
                program: program.to_owned(),
                limits,
                // Near the smallest limit under which a program completes, chance decides whether
                // the kernel kills it.
                inconclusive: (views.iter().filter(|view| view.goal != Goal::Completion))
                    .any(|view| view.knee(knee.early).inconclusive),
                early: knee.early,
                stall: self.points.iter().find_map(|point| stall(point).map(|(_, source)| source)),
            },
            run: name.to_owned(),
            severity: Severity::Info,
            figures,
            evidence: vec![Evidence::Metrics],
        }
    }
}

/// How long the program took, ns, less what its threads waited for a processor, where that is
/// known: that is others' doing, not memory's.
fn own_time(repetition: &Repetition) -> Option<f64> {
    let seen = &repetition.observations;
    let others = seen.metric(metrics::STATE_RUN_QUEUE).unwrap_or(0.0);
    Some(seen.metric(metrics::TIME_ELAPSED)? * (1.0 - others))
}

/// Pages that the program waited for: those of its major faults, and what was read from a disk for
/// it.
fn fetched(repetition: &Repetition, page: f64) -> Option<f64> {
    let seen = &repetition.observations;
    Some(seen.metric(metrics::FAULTS_MAJOR)? + seen.metric(metrics::IO_READ).unwrap_or(0.0) / page)
}
