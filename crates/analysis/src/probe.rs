//! How much memory running tasks need: a controller that reclaims their cgroup in small steps and
//! watches how much comes back.
//!
//! Memory in use is fetched again (a refault), and its tasks stall meanwhile; other memory stays
//! out. The size at which most of each step comes back is the need. The idea is that of Senpai
//! (Weiner et al., "TMO: Transparent Memory Offloading in Datacenters", ASPLOS 2022), which holds
//! the pressure of a container near a target for as long as it runs. This controller ends when it
//! has found the size, and its tasks stall for at most a stated share of the time that it takes.

use serde::Serialize;

/// Intervals at the beginning in which nothing is reclaimed: they show what the tasks do by
/// themselves.
const BASELINE_INTERVALS: usize = 5;
/// Intervals at the end in which memory in use comes back.
const RECOVERY_INTERVALS: usize = 5;
/// Maximum number of further intervals if memory rose in only one: the peak may recur.
const PEAK_INTERVALS: usize = 10;
/// The share by which such a peak exceeds the second highest of the last intervals, at least.
const PEAK_SHARE: f64 = 0.03;
/// Fine steps in a row of which most came back: the size is found.
const RETURNED_STEPS: usize = 3;
/// Steps in a row of which the kernel reclaimed almost nothing: it cannot reclaim the rest.
const REFUSED_STEPS: usize = 3;
/// The share of a step that comes back up to which the next step is larger.
const COLD_SHARE: f64 = 0.1;
/// The share from which the next step is smaller.
const HOT_SHARE: f64 = 0.5;
/// A step of at most the memory in use divided by this is fine enough to tell the size, as the
/// smallest step always is.
const FINE_DIVISOR: u64 = 32;
/// The smallest step, bytes.
const MIN_STEP: u64 = 256 << 10;
/// The first step, bytes.
const FIRST_STEP: u64 = 1 << 20;
/// The largest step is the memory in use divided by this.
const MAX_STEP_DIVISOR: u64 = 16;
/// Seconds per refault until it is measured: assumed, that of a slow SSD.
const ASSUMED_REFAULT: f64 = 200e-6;
/// The seconds per refault that are reckoned with at least, however fast the device was so far.
const MIN_REFAULT: f64 = 2e-6;
/// Refaults from which their time counts as measured.
const MIN_MEASURED: u64 = 64;
/// Minimum refaults of an interval for a time per refault.
const MIN_INTERVAL: u64 = 16;
/// The share of the stall budget that is kept for steps under way.
const RESERVE: f64 = 0.25;
/// The share of what is left of it at which the rest of a step is not reclaimed.
const STEP_SHARE: f64 = 0.2;

/// The state of the tasks at one time. Counters count from any start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Seconds since the start.
    pub second: f64,
    /// Bytes charged to the cgroup, at most since the state before.
    pub memory: u64,
    /// Bytes of anonymous memory, in memory or swapped, at most since the state before; `None` if
    /// unknown.
    pub anonymous: Option<u64>,
    /// Refaults so far, pages.
    pub refaults: u64,
    /// Seconds in which some task stalled for memory so far; `None` without PSI.
    pub stalled: Option<f64>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reclaim as many bytes in an interval, part by part, as long as the tasks stall for less than
    /// [`Probe::step_limit`].
    Reclaim(u64),
    /// Wait for an interval.
    Wait,
    /// The answer is there.
    End,
}

/// One interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    /// Its end, seconds since the start.
    #[serde(rename = "time_seconds")]
    pub second: f64,
    /// Bytes charged in it at most.
    #[serde(rename = "memory_bytes")]
    pub memory: u64,
    /// Bytes that were reclaimed at its beginning.
    #[serde(rename = "reclaimed_bytes")]
    pub reclaimed: u64,
    /// Bytes that were fetched again in it.
    #[serde(rename = "returned_bytes")]
    pub returned: u64,
    /// The share of it in which some task stalled; without PSI an estimate from the refaults.
    #[serde(rename = "stall_share")]
    pub stall: f64,
}

/// How the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Most of the last steps came back: what is left is in use.
    Found,
    /// The kernel could not reclaim more: there is no swap for anonymous memory, or memory is
    /// protected.
    NotReclaimable,
    /// The tasks stalled for more than the budget before anything was reclaimed.
    ShortAlready,
    /// The time ended while reclaimed memory still stayed out: the need is lower.
    TimeOver,
    /// The stall budget was spent before the size was found.
    BudgetSpent,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Need {
    /// How the search ended.
    pub ending: Ending,
    /// Bytes needed; an upper bound if the search was not [`Ending::Found`].
    #[serde(rename = "needed_bytes")]
    pub needed: u64,
    /// Bytes charged at the beginning.
    #[serde(rename = "before_bytes")]
    pub before: u64,
    /// The share of the whole time in which some task stalled.
    #[serde(rename = "stall_share")]
    pub stall: f64,
    /// The same before anything was reclaimed.
    #[serde(rename = "stall_share_before")]
    pub stall_before: f64,
    /// Bytes per second by which anonymous memory grew, in memory or swapped: 0 unless the peaks of
    /// all quarters of the time rise, or all fall; `None` if unknown.
    #[serde(rename = "growth_bytes_per_second")]
    pub growth: Option<f64>,
    /// The intervals.
    pub intervals: Vec<Interval>,
}

/// The controller. Call [`Probe::next`] once per interval with the state and what the last action
/// reclaimed, and do what it says.
#[derive(Clone, Debug)]
pub struct Probe {
    page: u64,
    /// The seconds that the tasks may stall more than they do by themselves.
    allowed: f64,
    budget: f64,
    max_intervals: usize,
    step: u64,
    states: Vec<State>,
    intervals: Vec<Interval>,
    recovering: Option<(usize, Ending)>,
}

impl Probe {
    /// A search of at most `max_intervals` intervals of `interval` seconds. The tasks may stall for
    /// the share `budget` of the time. A page has `page` bytes.
    pub fn new(max_intervals: usize, interval: f64, budget: f64, page: u64) -> Self {
        let max_intervals = max_intervals.max(BASELINE_INTERVALS + RECOVERY_INTERVALS + 1);
        Self {
            page: page.max(1),
            allowed: budget * max_intervals as f64 * interval,
            budget,
            max_intervals,
            step: FIRST_STEP,
            states: Vec::new(),
            intervals: Vec::new(),
            recovering: None,
        }
    }

    /// Takes the state and the bytes that the last [`Action::Reclaim`] freed; says what to do next.
    pub fn next(&mut self, state: State, reclaimed: u64) -> Action {
        if let Some(before) = self.states.last() {
            let seconds = (state.second - before.second).max(f64::MIN_POSITIVE);
            let refaults = state.refaults.saturating_sub(before.refaults);
            let stalled = match (before.stalled, state.stalled) {
                (Some(before), Some(now)) => (now - before).max(0.0),
                _ => refaults as f64 * ASSUMED_REFAULT,
            };
            self.intervals.push(Interval {
                second: state.second,
                memory: state.memory,
                reclaimed,
                returned: refaults * self.page,
                stall: (stalled / seconds).min(1.0),
            });
        }
        self.states.push(state);
        self.decide()
    }

    fn decide(&mut self) -> Action {
        let made = self.intervals.len();
        if let Some((since, _)) = self.recovering {
            let recovered = since + RECOVERY_INTERVALS;
            let may_recur = made < (recovered + PEAK_INTERVALS).min(self.max_intervals) && self.lone_peak();
            return if made < recovered || may_recur { Action::Wait } else { Action::End };
        }
        if made < BASELINE_INTERVALS {
            return Action::Wait;
        }
        if made == BASELINE_INTERVALS && self.stall_before() > self.budget {
            self.recovering = Some((made.saturating_sub(RECOVERY_INTERVALS), Ending::ShortAlready));
            return Action::End;
        }
        let stepped: Vec<&Interval> = self.intervals[BASELINE_INTERVALS..].iter().collect();
        let last = |number: usize, is: &dyn Fn(&Interval) -> bool| {
            stepped.len() >= number && stepped[stepped.len() - number..].iter().all(|one| is(one))
        };
        let usual = self.returned_before();
        let share = |one: &Interval| (one.returned as f64 - usual).max(0.0) / one.reclaimed as f64;
        // A coarse step can hit pages in use while others are not.
        let is_fine = |one: &Interval| one.reclaimed <= (one.memory / FINE_DIVISOR).max(MIN_STEP);
        let came_back =
            |one: &Interval| one.reclaimed >= self.page && is_fine(one) && share(one) >= HOT_SHARE;
        let left = self.left();
        let affordable = (left / 2.0 / self.refault_cost()) as u64 * self.page;
        let ending = if last(RETURNED_STEPS, &came_back) {
            Some(Ending::Found)
        } else if last(REFUSED_STEPS, &|one| one.reclaimed < MIN_STEP / 4) {
            Some(Ending::NotReclaimable)
        } else if left <= RESERVE * self.allowed || affordable < MIN_STEP {
            Some(Ending::BudgetSpent)
        } else if made + RECOVERY_INTERVALS >= self.max_intervals {
            Some(Ending::TimeOver)
        } else {
            None
        };
        if let Some(ending) = ending {
            self.recovering = Some((made, ending));
            return Action::Wait;
        }
        if let Some(interval) = stepped.last().filter(|one| one.reclaimed >= self.page) {
            let share = share(interval);
            if share <= COLD_SHARE {
                self.step *= 2;
            } else if share >= HOT_SHARE {
                self.step /= 2;
            }
        }
        let memory = self.states.last().map_or(0, |state| state.memory);
        self.step = self.step.min(memory / MAX_STEP_DIVISOR).min(affordable).max(MIN_STEP);
        Action::Reclaim(self.step)
    }

    /// Seconds of stall in an interval from which the rest of its step is not to be reclaimed: what
    /// a refault costs is known only then.
    pub fn step_limit(&self) -> f64 {
        (STEP_SHARE * self.left()).max(0.0)
    }

    /// The memory of the intervals since the last step, or of the last five if those are more:
    /// bytes, the largest first.
    fn recent(&self) -> Vec<u64> {
        let since = self.recovering.map_or(0, |(since, _)| self.intervals.len().saturating_sub(since));
        let number = since.max(RECOVERY_INTERVALS);
        let mut recent: Vec<u64> = self.states.iter().rev().take(number).map(|state| state.memory).collect();
        recent.sort_unstable_by(|a, b| b.cmp(a));
        recent
    }

    /// Whether memory rose in only one of those intervals.
    fn lone_peak(&self) -> bool {
        let recent = self.recent();
        let second = recent.get(1).map_or(f64::INFINITY, |&second| second as f64);
        recent.first().is_some_and(|&first| first as f64 > second * (1.0 + PEAK_SHARE))
    }

    /// Seconds that the tasks may still stall.
    fn left(&self) -> f64 {
        let (Some(first), Some(last)) = (self.states.first(), self.states.last()) else {
            return self.allowed;
        };
        let elapsed = last.second - first.second;
        self.allowed - (self.stalled() - self.stall_before() * elapsed).max(0.0)
    }

    /// Seconds that some task stalled so far.
    fn stalled(&self) -> f64 {
        self.seconds().zip(&self.intervals).map(|(seconds, one)| one.stall * seconds).sum()
    }

    /// The lengths of the intervals.
    fn seconds(&self) -> impl Iterator<Item = f64> {
        self.states.windows(2).map(|pair| pair[1].second - pair[0].second)
    }

    /// The share of the time that was stalled before anything was reclaimed.
    fn stall_before(&self) -> f64 {
        let baseline = &self.intervals[..self.intervals.len().min(BASELINE_INTERVALS)];
        baseline.iter().map(|one| one.stall).sum::<f64>() / baseline.len().max(1) as f64
    }

    /// Bytes that came back per interval before anything was reclaimed: those of tasks that page
    /// anyway.
    fn returned_before(&self) -> f64 {
        let baseline = &self.intervals[..self.intervals.len().min(BASELINE_INTERVALS)];
        baseline.iter().map(|one| one.returned as f64).sum::<f64>() / baseline.len().max(1) as f64
    }

    /// Seconds of stall per refault: twice the mean, or the maximum over the intervals if that is
    /// larger.
    fn refault_cost(&self) -> f64 {
        let (mut refaults, mut stalled, mut most) = (0, 0.0, 0.0f64);
        for (seconds, one) in self.seconds().zip(&self.intervals).skip(BASELINE_INTERVALS) {
            let (pages, stall) = (one.returned / self.page, one.stall * seconds);
            refaults += pages;
            stalled += stall;
            if pages >= MIN_INTERVAL {
                most = most.max(stall / pages as f64);
            }
        }
        if refaults < MIN_MEASURED {
            return ASSUMED_REFAULT;
        }
        // Refaults that wait at the same time share a stall, so one alone may take longer than the
        // mean.
        most.max(2.0 * stalled / refaults as f64).max(MIN_REFAULT)
    }

    /// The answer; `None` before there is an interval.
    pub fn need(&self) -> Option<Need> {
        let (first, last) = (self.states.first()?, self.states.last()?);
        let elapsed = last.second - first.second;
        if self.intervals.is_empty() || elapsed <= 0.0 {
            return None;
        }
        let ending = self.recovering.map_or(Ending::TimeOver, |(_, ending)| ending);
        // Tasks that take and release memory by turns need what they have at most. A peak that does
        // not recur costs them less than the stall that is allowed.
        let recent = self.recent();
        let rank = usize::from(recent.len() > RECOVERY_INTERVALS && self.lone_peak());
        let recent = recent.get(rank).copied();
        Some(Need {
            ending,
            needed: if ending == Ending::ShortAlready { first.memory } else { recent? },
            before: first.memory,
            stall: self.stalled() / elapsed,
            stall_before: self.stall_before(),
            growth: self.growth(elapsed),
            intervals: self.intervals.clone(),
        })
    }

    /// Bytes per second by which anonymous memory grew.
    fn growth(&self, elapsed: f64) -> Option<f64> {
        let held = self.states.iter().map(|state| state.anonymous).collect::<Option<Vec<u64>>>()?;
        let quarter = held.len().div_ceil(4).max(1);
        let peaks: Vec<f64> =
            held.chunks(quarter).filter_map(|part| part.iter().max()).map(|&peak| peak as f64).collect();
        let (first, last) = (peaks.first()?, peaks.last()?);
        let rises = peaks.is_sorted_by(|a, b| a < b) || peaks.is_sorted_by(|a, b| a > b);
        // From the end of the first quarter to that of the last.
        let share = (held.len() - quarter) as f64 / (held.len() - 1).max(1) as f64;
        Some(if rises && share > 0.0 { (last - first) / (share * elapsed) } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    /// A cgroup whose tasks reference their hot pages all the time and the cold ones never; the
    /// kernel takes `skill` of each step from the cold pages while there are any.
    struct Cgroup {
        hot: u64,
        hot_out: u64,
        cold: u64,
        cold_out: u64,
        fixed: u64,
        skill: f64,
        refaults: u64,
        stalled: f64,
        /// Seconds that a refault costs.
        cost: f64,
        leak: u64,
        /// Refaults per second on pages that were reclaimed before the search.
        paging: u64,
    }

    impl Cgroup {
        fn memory(&self) -> u64 {
            (self.hot - self.hot_out + self.cold + self.fixed) * PAGE
        }

        fn reclaim(&mut self, bytes: u64) -> u64 {
            let before = self.memory();
            let pages = bytes / PAGE;
            let cold = ((pages as f64 * self.skill) as u64).min(self.cold);
            self.cold -= cold;
            self.cold_out += cold;
            let hot = (pages - cold).min(self.hot - self.hot_out);
            self.hot_out += hot;
            before - self.memory()
        }

        fn second(&mut self) {
            self.refaults += self.hot_out + self.paging;
            self.stalled += self.hot_out as f64 * self.cost;
            self.hot_out = 0;
            self.cold += self.leak;
        }
    }

    fn search(cgroup: &mut Cgroup, seconds: usize, psi: bool) -> Need {
        let mut probe = Probe::new(seconds, 1.0, 0.01, PAGE);
        let mut reclaimed = 0;
        for second in 0.. {
            let state = State {
                second: f64::from(second),
                memory: cgroup.memory(),
                anonymous: Some(cgroup.memory() + (cgroup.hot_out + cgroup.cold_out) * PAGE),
                refaults: cgroup.refaults,
                stalled: psi.then_some(cgroup.stalled),
            };
            match probe.next(state, reclaimed) {
                Action::Reclaim(bytes) => reclaimed = cgroup.reclaim(bytes),
                Action::Wait => reclaimed = 0,
                Action::End => break,
            }
            cgroup.second();
        }
        probe.need().unwrap()
    }

    fn cgroup(hot: u64, cold: u64) -> Cgroup {
        Cgroup {
            hot,
            hot_out: 0,
            cold,
            cold_out: 0,
            fixed: 0,
            skill: 1.0,
            refaults: 0,
            stalled: 0.0,
            cost: 50e-6,
            leak: 0,
            paging: 0,
        }
    }

    #[test]
    fn the_need_is_the_memory_in_use() {
        for (hot, cold) in [(10_000, 30_000), (40_000, 5_000), (5_000, 0)] {
            let need = search(&mut cgroup(hot, cold), 120, true);
            let ratio = need.needed as f64 / (hot * PAGE) as f64;
            assert_eq!(need.ending, Ending::Found, "{need:?}");
            // Of the planned time, of which the search may not take all.
            let stall = need.stall * need.intervals.last().unwrap().second / 120.0;
            assert!((0.95..=1.05).contains(&ratio) && stall <= 0.01, "{hot} {cold}: {ratio} {stall}");
        }
    }

    #[test]
    fn memory_that_cannot_be_reclaimed_is_an_upper_bound() {
        let mut fixed = Cgroup { fixed: 20_000, ..cgroup(0, 8_000) };
        let need = search(&mut fixed, 120, true);
        assert_eq!((need.ending, need.needed), (Ending::NotReclaimable, 20_000 * PAGE));
    }

    #[test]
    fn nothing_is_reclaimed_from_tasks_that_stall_already() {
        let mut probe = Probe::new(60, 1.0, 0.01, PAGE);
        let mut second = 0.0;
        loop {
            let stalled = Some(second / 10.0);
            let state = State { second, memory: 1 << 20, anonymous: None, refaults: 0, stalled };
            match probe.next(state, 0) {
                Action::Reclaim(_) => panic!("a step of tasks that stall for a tenth of the time"),
                Action::Wait => second += 1.0,
                Action::End => break,
            }
        }
        let need = probe.need().unwrap();
        assert_eq!((need.ending, need.growth), (Ending::ShortAlready, None), "growth that is not known");
    }

    #[test]
    fn a_step_may_take_a_fifth_of_what_is_left_of_the_budget() {
        let mut probe = Probe::new(60, 1.0, 0.01, PAGE);
        let close = |limit: f64, wanted: f64| assert!((limit - wanted).abs() < 1e-9, "{limit} {wanted}");
        close(probe.step_limit(), 0.12);
        for second in 0..8 {
            let stalled = if second > 6 { 0.1 } else { 0.0 };
            let state = State {
                second: f64::from(second),
                memory: 1 << 26,
                stalled: Some(stalled),
                ..State::default()
            };
            probe.next(state, if second > 5 { 1 << 20 } else { 0 });
        }
        close(probe.step_limit(), 0.1);
        probe.next(State { second: 8.0, memory: 1 << 26, stalled: Some(5.0), ..State::default() }, 1 << 20);
        close(probe.step_limit(), 0.0);
    }

    #[test]
    fn a_leak_grows_and_is_not_needed() {
        let need = search(&mut Cgroup { leak: 100, ..cgroup(10_000, 10_000) }, 120, true);
        let growth = need.growth.unwrap();
        assert!((growth / (100 * PAGE) as f64 - 1.0).abs() < 0.05, "{growth}");
        assert!(need.needed < 13_000 * PAGE, "{}", need.needed);
    }

    #[test]
    fn tasks_that_take_and_release_memory_need_their_peak_and_do_not_grow() {
        let mut probe = Probe::new(60, 1.0, 0.01, PAGE);
        for second in 0.. {
            let memory = [40_000, 60_000, 20_000][second % 3] * PAGE;
            let second = second as f64;
            let state = State { second, memory, anonymous: Some(memory), refaults: 0, stalled: Some(0.0) };
            if probe.next(state, 0) == Action::End {
                break;
            }
        }
        let need = probe.need().unwrap();
        assert_eq!((need.needed, need.growth), (60_000 * PAGE, Some(0.0)));
    }

    /// Tasks that hold 40,000 pages, and 60,000 in the seconds for which `peaks` is true.
    fn with_peaks(peaks: impl Fn(usize) -> bool) -> Need {
        let mut probe = Probe::new(60, 1.0, 0.01, PAGE);
        for second in 0.. {
            let memory = if peaks(second) { 60_000 } else { 40_000 } * PAGE;
            let second = second as f64;
            if probe.next(State { second, memory, stalled: Some(0.0), ..State::default() }, 0) == Action::End
            {
                break;
            }
        }
        probe.need().unwrap()
    }

    #[test]
    fn a_peak_counts_if_it_recurs() {
        let once = with_peaks(|second| second == 11);
        assert_eq!((once.needed, once.intervals.len()), (40_000 * PAGE, 23));
        let recurs = with_peaks(|second| second % 8 == 3);
        assert_eq!((recurs.needed, recurs.intervals.len()), (60_000 * PAGE, 19));
        let never = with_peaks(|_| false);
        assert_eq!((never.needed, never.intervals.len()), (40_000 * PAGE, 13));
    }

    #[test]
    fn refaults_of_tasks_that_page_anyway_do_not_end_the_search() {
        let need = search(&mut Cgroup { paging: 2_000, ..cgroup(10_000, 30_000) }, 120, true);
        assert_eq!(need.ending, Ending::Found);
        assert!(need.needed < 10_500 * PAGE, "{}", need.needed);
    }

    #[test]
    fn a_search_that_has_too_little_time_gives_an_upper_bound() {
        let need = search(&mut cgroup(1_000, 10_000_000), 12, true);
        assert_eq!(need.ending, Ending::TimeOver);
        assert!(need.needed > 1_000 * PAGE && need.needed < need.before);
    }

    proptest! {
        #[test]
        fn the_stall_budget_holds(
            hot in 500u64..50_000, cold in 0u64..50_000, skill in 0.3f64..1.0, cost in 10e-6f64..190e-6,
            seconds in 12usize..200, psi: bool,
        ) {
            let mut cgroup = Cgroup { skill, cost, ..cgroup(hot, cold) };
            let need = search(&mut cgroup, seconds, psi);
            // Of the planned time, of which it may not take all.
            prop_assert!(cgroup.stalled <= 0.0101 * seconds as f64, "{} {need:?}", cgroup.stalled);
            prop_assert!(need.needed >= hot * PAGE && need.needed <= need.before);
        }
    }
}
