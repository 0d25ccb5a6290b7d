//! The least memory at which a program still runs at full speed, by bisection.
//!
//! Full speed is the program's fastest time under any limit of the sweep, the greatest of which is at full
//! speed by definition. Another is when the fastest of its times is no more than a tenth longer. The
//! fastest, because whatever else runs on the machine makes a time longer and none shorter, and so does
//! less memory. (Where times do not grow with less memory, the bisection still ends, and says what it saw.)
//!
//! A limit that seems too little although the program had to fetch no more than with the most memory is
//! doubtful: something else may have slowed it. Where less memory was enough it is taken as enough, for more
//! does no harm; so it is where the program was never charged more than four fifths of it, for a limit that is
//! not met slows nobody. Else it is measured again, three times as often in all.
//!
//! The search halves the ratio of the greatest limit known to be too small and the least known to be
//! enough, until they are within [`PRECISION`]. Both are the ends of the interval: the knee lies
//! between them as surely as the two times tell full speed from less.

use pagelab_experiment::observation::Unit;
use pagelab_experiment::{Repetition, Run};

use crate::finding::{Evidence, Figure, Finding, MeasuredLimit, Severity, Statistic, What};

/// The ratio of the interval's ends at which the search ends.
pub const PRECISION: f64 = 1.06;
/// How much longer a time at full speed may be, as a share.
const TOLERANCE: f64 = 0.1;
/// How often a doubtful limit is measured, as a multiple of the times at the most memory.
const DOUBTS: usize = 3;
/// Pages fetched that are no sign of want of memory: beyond the most at the most memory, by this share and
/// this number.
const MARGIN: (f64, f64) = (0.05, 16.0);

/// The share of a limit up to which it was never met, as far as looks at intervals can tell.
const ROOM: f64 = 0.8;

/// A memory limit and what was measured under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// Bytes.
    pub memory: u64,
    /// Times in ns; empty: the program was OOM-killed.
    pub times: Vec<f64>,
    /// Pages that the program waited for to be fetched (major faults and reads from a disk), of each time
    /// for which it is known.
    pub fetched: Vec<f64>,
    /// The most memory charged to the program, bytes, of each time for which it is known.
    pub charged: Vec<f64>,
}

impl Point {
    /// The fastest; infinite where the program was killed.
    pub fn time(&self) -> f64 {
        self.times.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Whether the program was never charged enough to meet the limit.
    fn has_room(&self) -> bool {
        let most = self.charged.iter().copied().reduce(f64::max);
        most.is_some_and(|most| most <= ROOM * self.memory as f64)
    }

    /// Whether it fetched no more than with the most memory, so that a longer time may have another cause.
    fn is_doubtful(&self, top: &Self) -> bool {
        let least = self.fetched.iter().copied().fold(f64::INFINITY, f64::min);
        let most = top.fetched.iter().copied().fold(0.0, f64::max);
        !self.times.is_empty() && least <= most * (1.0 + MARGIN.0) + MARGIN.1
    }
}

/// Where the search stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Measure under this limit, perhaps once more.
    Measure(u64),
    /// The search is over.
    Found(Knee),
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knee {
    /// The least limit that was measured to be enough, bytes.
    pub enough: u64,
    /// The greatest that was measured to be too little; `None`: even the least of the sweep is enough.
    pub too_little: Option<u64>,
    /// The time at full speed, ns.
    pub full: f64,
    /// The longest time that still counts as full speed, ns.
    pub allowed: f64,
}

/// What to do next, after these points, in a sweep from `least` to `most` bytes. `page` bytes are the
/// granularity.
///
/// `None` when the program was killed at the most memory, or `least` is 0 or above `most`.
pub fn next(points: &[Point], least: u64, most: u64, page: u64) -> Option<Next> {
    if least == 0 || least > most || page == 0 {
        return None;
    }
    let at = |memory: u64| points.iter().find(|p| p.memory == memory);
    let Some(top) = at(most) else { return Some(Next::Measure(most)) };
    if !top.time().is_finite() {
        return None;
    }
    let full = points.iter().map(Point::time).fold(f64::INFINITY, f64::min);
    let allowed = full * (1.0 + TOLERANCE);
    let Some(bottom) = at(least) else { return Some(Next::Measure(least)) };
    let fast = |point: &Point| point.memory == most || point.time() <= allowed;
    let less_is_enough = |memory: u64| points.iter().any(|p| p.memory < memory && fast(p));
    let is_enough = |p: &Point| fast(p) || (p.is_doubtful(top) && (p.has_room() || less_is_enough(p.memory)));
    let again = |p: &&Point| !is_enough(p) && p.is_doubtful(top) && p.times.len() < DOUBTS * top.times.len();
    if let Some(doubtful) = points.iter().find(again) {
        return Some(Next::Measure(doubtful.memory));
    }
    if is_enough(bottom) {
        return Some(Next::Found(Knee { enough: least, too_little: None, full, allowed }));
    }
    let too_little = points.iter().filter(|p| !is_enough(p)).map(|p| p.memory).max().unwrap_or(least);
    let enough = points.iter().filter(|p| is_enough(p) && p.memory > too_little).map(|p| p.memory).min();
    let enough = enough.unwrap_or(most);
    let middle = ((too_little as f64 * enough as f64).sqrt() as u64 / page).max(1) * page;
    if enough as f64 / too_little as f64 <= PRECISION || middle <= too_little || middle >= enough {
        return Some(Next::Found(Knee { enough, too_little: Some(too_little), full, allowed }));
    }
    Some(Next::Measure(middle))
}

/// Why a sweep has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The sizes are no range.
    #[error("{0} to {1} bytes is not a range of at least a page")]
    NoRange(u64, u64),
    /// The kernel killed the program under the greatest limit.
    #[error("the kernel kills the program under the greatest limit, {0} bytes: sweep to more")]
    KilledAtMost(u64),
    /// The program ended with a status other than 0, whatever the memory: its time means nothing.
    #[error("the program failed with exit status {0}: a failing program has no working size")]
    ProgramFailed(i64),
}

/// A sweep under way: the limits that were measured, and what to measure next.
#[derive(Clone, Debug)]
pub struct Search {
    least: u64,
    most: u64,
    page: u64,
    points: Vec<Point>,
}

impl Search {
    /// A sweep between two limits in bytes, in steps of `page` bytes.
    ///
    /// # Errors
    /// When they are no range.
    pub fn new(least: u64, most: u64, page: u64) -> Result<Self, SearchError> {
        let page = page.max(1);
        let whole = |bytes: u64| bytes / page * page;
        if whole(least) == 0 || least > most {
            return Err(SearchError::NoRange(least, most));
        }
        Ok(Self { least: whole(least), most: whole(most), page, points: Vec::new() })
    }

    /// What to do next.
    ///
    /// # Errors
    /// When the program was killed under the greatest limit.
    pub fn next(&self) -> Result<Next, SearchError> {
        next(&self.points, self.least, self.most, self.page).ok_or(SearchError::KilledAtMost(self.most))
    }

    /// The runs under this limit ended because the kernel killed the program for want of memory.
    pub fn killed(&mut self, memory: u64) {
        self.point(memory).times.clear();
    }

    /// What a run under this limit measured.
    ///
    /// # Errors
    /// When the program failed.
    pub fn measured(&mut self, memory: u64, run: &Run) -> Result<(), SearchError> {
        if let Some(status) = run.values("command.status").into_iter().find(|&status| status != 0.0) {
            return Err(SearchError::ProgramFailed(status as i64));
        }
        let page = self.page as f64;
        let point = self.point(memory);
        point.times.extend(run.done().filter_map(own_time));
        point.fetched.extend(run.done().filter_map(|repetition| fetched(repetition, page)));
        point.charged.extend(run.values("memory.charged.peak"));
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
        let n = self.points.iter().map(|point| point.times.len()).sum();
        let bytes =
            |name: &str, value: u64| Figure::derived(name, Unit::Bytes, Statistic::Value, value as f64, n);
        let time =
            |name: &str, statistic, value| Figure::derived(name, Unit::Nanoseconds, statistic, value, n);
        let mut figures = vec![
            bytes("memory.enough", knee.enough),
            time("time.full", Statistic::Min, knee.full),
            time("time.allowed", Statistic::Value, knee.allowed),
        ];
        figures.extend(knee.too_little.map(|memory| bytes("memory.too-little", memory)));
        let limit = |point: &Point| MeasuredLimit {
            memory: point.memory,
            time: Some(point.time()).filter(|time| time.is_finite()),
            fetched: point.fetched.iter().copied().reduce(f64::min),
        };
        let mut limits: Vec<MeasuredLimit> = self.points.iter().map(limit).collect();
        limits.sort_by_key(|limit| limit.memory);
        Finding {
            what: What::LeastMemory { program: program.to_owned(), limits },
            run: name.to_owned(),
            severity: Severity::Info,
            figures,
            evidence: vec![Evidence::Metrics],
        }
    }
}

/// How long the program took, ns, less what its threads waited for a processor, where that is known: that
/// is others' doing, not memory's.
fn own_time(repetition: &Repetition) -> Option<f64> {
    let seen = &repetition.observations;
    let others = seen.metric("state.run-queue").unwrap_or(0.0);
    Some(seen.metric("time.elapsed")? * (1.0 - others))
}

/// Pages that the program waited for: those of its major faults, and what was read from a disk for it.
fn fetched(repetition: &Repetition, page: f64) -> Option<f64> {
    let seen = &repetition.observations;
    Some(seen.metric("faults.major")? + seen.metric("io.read").unwrap_or(0.0) / page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_runs::{Figures, run};
    use pagelab_experiment::Experiment;
    use pagelab_experiment::experiments::Command;
    use proptest::prelude::*;

    /// A program that needs 50 MiB, is killed below 10, and ends with this status.
    fn swept(status: f64) -> Result<(Search, Knee), SearchError> {
        let experiment = Experiment::Command(Command::new(vec!["sort".into()]));
        let mut search = Search::new(1 << 20, 256 << 20, 4096)?;
        loop {
            let memory = match search.next()? {
                Next::Found(knee) => return Ok((search, knee)),
                Next::Measure(memory) => memory,
            };
            if memory < 10 << 20 {
                search.killed(memory);
                continue;
            }
            let short = memory < 50 << 20;
            let metrics: Figures = &[
                ("time.elapsed", &[if short { 3e9 } else { 1e9 }]),
                ("faults.major", &[if short { 900.0 } else { 0.0 }]),
                ("command.status", &[status]),
            ];
            search.measured(memory, &run("s", experiment.clone(), "host", metrics))?;
        }
    }

    #[test]
    fn a_sweep_finds_the_least_memory_and_lists_every_limit() {
        let (search, knee) = swept(0.0).unwrap();
        let found = search.finding(&knee, "sort", "s");
        assert!(found.figure("memory.enough").unwrap().value >= f64::from(50 << 20));
        assert!(found.figure("memory.too-little").unwrap().value < f64::from(50 << 20));
        let What::LeastMemory { limits, .. } = &found.what else { panic!("{found:?}") };
        assert_eq!((limits[0].memory, limits[0].time), (1 << 20, None), "killed");
        assert_eq!(limits.last().unwrap().time, Some(1e9));
    }

    #[test]
    fn a_failing_program_has_no_working_size() {
        assert_eq!(swept(2.0).unwrap_err(), SearchError::ProgramFailed(2));
    }

    #[test]
    fn what_is_no_sweep() {
        assert_eq!(Search::new(4096, 1, 4096).unwrap_err(), SearchError::NoRange(4096, 1));
        assert_eq!(Search::new(100, 8192, 4096).unwrap_err(), SearchError::NoRange(100, 8192));
        let mut search = Search::new(4096, 8192, 4096).unwrap();
        search.killed(8192);
        assert_eq!(search.next().unwrap_err(), SearchError::KilledAtMost(8192));
    }

    fn search(least: u64, most: u64, time: impl Fn(u64) -> Vec<f64>) -> (Knee, usize) {
        let mut points = Vec::new();
        loop {
            match next(&points, least, most, 4096).unwrap() {
                Next::Found(knee) => return (knee, points.len()),
                Next::Measure(memory) => {
                    points.push(Point { memory, times: time(memory), ..Point::default() });
                }
            }
            assert!(points.len() < 40, "it goes on for ever");
        }
    }

    #[test]
    fn a_step_is_found_within_the_precision() {
        let need = 100 << 20;
        let (knee, measured) =
            search(32 << 20, 2 << 30, |m| if m >= need { vec![1.0, 1.01, 0.99] } else { vec![3.0] });
        let too_little = knee.too_little.unwrap();
        assert!(too_little < need && need <= knee.enough, "{knee:?}");
        assert!(knee.enough as f64 / too_little as f64 <= PRECISION && measured <= 10, "{measured}");
    }

    #[test]
    fn killed_is_too_little_and_enough_everywhere_has_no_lower_end() {
        let (knee, _) = search(1 << 20, 1 << 30, |m| if m >= 50 << 20 { vec![5.0] } else { vec![] });
        assert!(knee.too_little.unwrap() < 50 << 20);
        let (knee, measured) = search(1 << 20, 1 << 30, |_| vec![5.0]);
        assert_eq!((knee.enough, knee.too_little, measured), (1 << 20, None, 2));
        assert_eq!(next(&[Point { memory: 1 << 30, ..Point::default() }], 1, 1 << 30, 4096), None);
    }

    #[test]
    fn what_disturbs_a_time_does_not_move_the_knee() {
        let need = 50 << 20;
        let disturbed = |m: u64| if m >= need { vec![140.0, 101.0, 300.0] } else { vec![125.0, 190.0] };
        let (knee, _) = search(1 << 20, 1 << 30, disturbed);
        assert!(knee.too_little.unwrap() < need && need <= knee.enough, "{knee:?}");
    }

    #[test]
    fn a_slow_time_with_the_most_memory_is_not_full_speed() {
        let (knee, _) = search(8 << 20, 256 << 20, |m| match m >> 20 {
            256 => vec![7.0, 6.9],
            16.. => vec![2.5],
            _ => vec![9.0],
        });
        assert_eq!(knee.full, 2.5);
        assert!(knee.too_little.unwrap() < 16 << 20 && 16 << 20 <= knee.enough, "{knee:?}");
    }

    #[test]
    fn a_slow_time_without_more_fetching_is_measured_again() {
        let point = |memory, time, fetched| Point {
            memory,
            times: vec![time],
            fetched: vec![fetched],
            ..Point::default()
        };
        let mut points = vec![point(256, 1.0, 10.0), point(64, 1.5, 11.0)];
        assert_eq!(next(&points, 64, 256, 1), Some(Next::Measure(64)));
        points[1].times.push(1.05);
        assert!(matches!(next(&points, 64, 256, 1), Some(Next::Found(Knee { too_little: None, .. }))));
        // One that stays slow is too little after all, and so is at once one that fetched more.
        points[1].times = vec![1.5; 3];
        assert_eq!(next(&points, 64, 256, 1), Some(Next::Measure(128)));
        points[1] = point(64, 1.5, 500.0);
        assert_eq!(next(&points, 64, 256, 1), Some(Next::Measure(128)));
    }

    #[test]
    fn a_limit_that_was_not_met_is_enough_however_slow() {
        let point = |memory, time, charged| Point {
            memory,
            times: vec![time],
            fetched: vec![0.0],
            charged: vec![charged],
        };
        let mut points = vec![point(256, 1.0, 30.0), point(64, 1.5, 40.0)];
        let enough = |next| matches!(next, Some(Next::Found(Knee { enough: 64, too_little: None, .. })));
        assert!(enough(next(&points, 64, 256, 1)));
        points[1].charged = vec![40.0, 60.0];
        assert_eq!(next(&points, 64, 256, 1), Some(Next::Measure(64)), "one time it was met");
        points[1] = Point { fetched: vec![900.0], ..point(64, 1.5, 40.0) };
        assert!(!enough(next(&points, 64, 256, 1)), "it fetched more: a look has missed something");
    }

    #[test]
    fn what_disturbs_every_limit_above_an_undisturbed_one_does_not_move_the_knee() {
        // As once seen: 185 ms at 19 MiB, 204 to 223 ms at all that were measured after it, and nothing fetched.
        let point = |memory: u64| {
            let (time, fetched) = match memory >> 20 {
                0..12 => (1560.0, 6000.0),
                12..16 => (800.0, 3000.0),
                16..20 => (185.0, 0.0),
                _ => (209.0, 0.0),
            };
            Point { memory, times: vec![time; 2], fetched: vec![fetched; 2], ..Point::default() }
        };
        let mut points = Vec::new();
        let knee = loop {
            match next(&points, 8 << 20, 256 << 20, 4096).unwrap() {
                Next::Found(knee) => break knee,
                Next::Measure(memory) => match points.iter_mut().find(|p: &&mut Point| p.memory == memory) {
                    Some(again) => again.times.extend(point(memory).times),
                    None => points.push(point(memory)),
                },
            }
            assert!(points.len() < 40, "{points:?}");
        };
        assert!(knee.enough <= 19 << 20 && knee.too_little.unwrap() >= 15 << 20, "{knee:?}");
    }

    proptest! {
        #[test]
        fn every_step_is_enclosed(need in 1u64..1 << 33, least in 4096u64..1 << 30, ratio in 2u64..4096) {
            let most = least.saturating_mul(ratio);
            let (knee, _) = search(least, most, |m| if m >= need || m == most { vec![1.0] } else { vec![2.0] });
            match knee.too_little {
                Some(too_little) => prop_assert!(too_little < need && (knee.enough >= need || knee.enough == most)),
                None => prop_assert!(least >= need || least == most),
            }
        }
    }
}
