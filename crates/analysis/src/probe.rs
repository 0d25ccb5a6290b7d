//! How much memory running tasks need: a controller that has their cgroup reclaimed in small steps and
//! watches how much of it comes back.
//!
//! Memory in use is fetched again (a refault), and its tasks stall meanwhile; other memory stays out. The
//! size at which most of each step comes back is the need. The idea is that of Senpai (Weiner et al.,
//! "TMO: Transparent Memory Offloading in Datacenters", ASPLOS 2022), which holds the pressure of a
//! container near a target for as long as it runs. This controller ends when it has found the size, and
//! its tasks stall for at most a stated share of the time that it takes.

use serde::Serialize;

/// Intervals at the beginning in which nothing is reclaimed.
const WATCHED: usize = 5;
/// Intervals at the end in which memory in use comes back.
const RECOVERY: usize = 5;
/// Steps in a row of which most came back, at which the size is found.
const FLOOR: usize = 3;
/// Steps in a row of which the kernel reclaimed next to nothing, at which the rest cannot be reclaimed.
const REFUSED: usize = 3;
/// The share of a step that came back up to which the next one is larger.
const LITTLE: f64 = 0.1;
/// The share from which the next one is smaller.
const MOST: f64 = 0.5;
/// The smallest step, bytes; the first is a few of them.
const SMALLEST: u64 = 256 << 10;
const FIRST: u64 = 1 << 20;
/// The largest step as a share of the memory in use.
const LARGEST: u64 = 16;
/// Seconds that a refault costs until it was measured: a slow SSD.
const ASSUMED: f64 = 200e-6;
/// Refaults from which their cost is measured.
const MEASURED: u64 = 64;
/// The share of the budget kept for the steps that are under way.
const RESERVE: f64 = 0.1;

/// The state of the tasks at one time. Counters count from any start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    /// Seconds since the start.
    pub second: f64,
    /// Bytes charged to the cgroup.
    pub memory: u64,
    /// Refaults so far, pages.
    pub refaults: u64,
    /// Seconds in which some task stalled for memory so far; `None` without PSI.
    pub stalled: Option<f64>,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Reclaim as many bytes, then wait for an interval.
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
    pub second: f64,
    /// Bytes charged at its end.
    pub memory: u64,
    /// Bytes that were reclaimed at its beginning.
    pub reclaimed: u64,
    /// Bytes that came back in it.
    pub returned: u64,
    /// The share of it in which some task stalled; an estimate from the refaults without PSI.
    pub stall: f64,
}

/// How the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Most of what was reclaimed last came back: the size is what is used.
    Found,
    /// The kernel could not reclaim more: no swap for anonymous memory, or everything is protected.
    NotReclaimable,
    /// The tasks stalled for more than the budget before anything was reclaimed.
    ShortAlready,
    /// The time was over while memory could still be taken without its coming back: the need is lower.
    TimeOver,
    /// The stall budget was spent before the size was found: the need is between the last sizes.
    BudgetSpent,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Need {
    /// How the search ended.
    pub ending: Ending,
    /// Bytes needed for the stall budget; an upper bound if the time was over.
    pub needed: u64,
    /// Bytes charged at the beginning.
    pub before: u64,
    /// The share of all the time in which some task stalled.
    pub stall: f64,
    /// The same before anything was reclaimed.
    pub stall_before: f64,
    /// Bytes per second by which the tasks grew, apart from what was reclaimed and came back.
    pub growth: f64,
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
    /// How many intervals there are at most.
    most: usize,
    step: u64,
    asked: u64,
    states: Vec<State>,
    intervals: Vec<Interval>,
    recovering: Option<(usize, Ending)>,
}

impl Probe {
    /// A search of `most` intervals of `interval` seconds whose tasks may stall for the share `budget` of
    /// the time, with pages of `page` bytes.
    pub fn new(most: usize, interval: f64, budget: f64, page: u64) -> Self {
        let most = most.max(WATCHED + RECOVERY + 1);
        Self {
            page: page.max(1),
            allowed: budget * most as f64 * interval,
            budget,
            most,
            step: FIRST,
            asked: 0,
            states: Vec::new(),
            intervals: Vec::new(),
            recovering: None,
        }
    }

    /// Takes the state, and the bytes by which the last [`Action::Reclaim`] made the cgroup smaller.
    pub fn next(&mut self, state: State, reclaimed: u64) -> Action {
        if let Some(before) = self.states.last() {
            let seconds = (state.second - before.second).max(f64::MIN_POSITIVE);
            let refaults = state.refaults.saturating_sub(before.refaults);
            let stalled = match (before.stalled, state.stalled) {
                (Some(before), Some(now)) => (now - before).max(0.0),
                _ => refaults as f64 * ASSUMED,
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
        let action = self.decide();
        self.asked = if let Action::Reclaim(bytes) = action { bytes } else { 0 };
        action
    }

    fn decide(&mut self) -> Action {
        let made = self.intervals.len();
        if let Some((since, _)) = self.recovering {
            return if made >= since + RECOVERY { Action::End } else { Action::Wait };
        }
        if made < WATCHED {
            return Action::Wait;
        }
        if made == WATCHED && self.stall_before() > self.budget {
            self.recovering = Some((made.saturating_sub(RECOVERY), Ending::ShortAlready));
            return Action::End;
        }
        let stepped: Vec<&Interval> = self.intervals[WATCHED..].iter().collect();
        let last = |number: usize, is: &dyn Fn(&Interval) -> bool| {
            stepped.len() >= number && stepped[stepped.len() - number..].iter().all(|one| is(one))
        };
        let came_back =
            |one: &Interval| one.reclaimed >= self.page && one.returned as f64 >= MOST * one.reclaimed as f64;
        let left = self.left();
        let ending = if last(FLOOR, &came_back) {
            Some(Ending::Found)
        } else if last(REFUSED, &|one| one.reclaimed < SMALLEST / 4) {
            Some(Ending::NotReclaimable)
        } else if left <= RESERVE * self.allowed {
            Some(Ending::BudgetSpent)
        } else if made + RECOVERY >= self.most {
            Some(Ending::TimeOver)
        } else {
            None
        };
        if let Some(ending) = ending {
            self.recovering = Some((made, ending));
            return Action::Wait;
        }
        if let Some(interval) = stepped.last().filter(|one| one.reclaimed >= self.page) {
            let share = interval.returned as f64 / interval.reclaimed as f64;
            if share <= LITTLE {
                self.step *= 2;
            } else if share >= MOST {
                self.step /= 2;
            }
        }
        let memory = self.states.last().map_or(0, |state| state.memory);
        let affordable = (left / 2.0 / self.refault_cost()) as u64 * self.page;
        self.step = self.step.min(memory / LARGEST).min(affordable).max(SMALLEST);
        Action::Reclaim(self.step)
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
        let watched = &self.intervals[..self.intervals.len().min(WATCHED)];
        watched.iter().map(|one| one.stall).sum::<f64>() / watched.len().max(1) as f64
    }

    /// Seconds of stall per refault.
    fn refault_cost(&self) -> f64 {
        let refaults = self.intervals[WATCHED..].iter().map(|one| one.returned / self.page).sum::<u64>();
        let stalled: f64 =
            self.seconds().zip(&self.intervals).skip(WATCHED).map(|(seconds, one)| one.stall * seconds).sum();
        // Never too low: parallel refaults share a stall, and a quiet disk is no promise.
        if refaults >= MEASURED { (2.0 * stalled / refaults as f64).max(ASSUMED / 100.0) } else { ASSUMED }
    }

    /// The answer; `None` before there is an interval.
    pub fn need(&self) -> Option<Need> {
        let (first, last) = (self.states.first()?, self.states.last()?);
        let elapsed = last.second - first.second;
        if self.intervals.is_empty() || elapsed <= 0.0 {
            return None;
        }
        let ending = self.recovering.map_or(Ending::TimeOver, |(_, ending)| ending);
        let sum = |of: fn(&Interval) -> u64| self.intervals.iter().map(of).sum::<u64>() as f64;
        // What came back may have been reclaimed before the search.
        let returned = sum(|one| one.returned).min(sum(|one| one.reclaimed));
        let growth = last.memory as f64 - first.memory as f64 + sum(|one| one.reclaimed) - returned;
        Some(Need {
            ending,
            needed: if ending == Ending::ShortAlready { first.memory } else { last.memory },
            before: first.memory,
            stall: self.stalled() / elapsed,
            stall_before: self.stall_before(),
            growth: growth / elapsed,
            intervals: self.intervals.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PAGE: u64 = 4096;

    /// A cgroup whose tasks reference their hot pages all the time and the cold ones never; the kernel
    /// takes `skill` of each step from the cold pages while there are any.
    struct Cgroup {
        hot: u64,
        hot_out: u64,
        cold: u64,
        fixed: u64,
        skill: f64,
        refaults: u64,
        stalled: f64,
        /// Seconds that a refault costs.
        cost: f64,
        leak: u64,
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
            let hot = (pages - cold).min(self.hot - self.hot_out);
            self.hot_out += hot;
            before - self.memory()
        }

        fn second(&mut self) {
            self.refaults += self.hot_out;
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
            fixed: 0,
            skill: 1.0,
            refaults: 0,
            stalled: 0.0,
            cost: 50e-6,
            leak: 0,
        }
    }

    #[test]
    fn the_need_is_what_is_used() {
        for (hot, cold) in [(10_000, 30_000), (40_000, 5_000), (5_000, 0)] {
            let need = search(&mut cgroup(hot, cold), 120, true);
            let ratio = need.needed as f64 / (hot * PAGE) as f64;
            assert_eq!(need.ending, Ending::Found, "{need:?}");
            assert!(
                (0.95..=1.05).contains(&ratio) && need.stall <= 0.01,
                "{hot} {cold}: {ratio} {}",
                need.stall
            );
        }
    }

    #[test]
    fn without_swap_what_cannot_be_reclaimed_is_said() {
        let mut fixed = Cgroup { fixed: 20_000, ..cgroup(0, 8_000) };
        let need = search(&mut fixed, 120, true);
        assert_eq!((need.ending, need.needed), (Ending::NotReclaimable, 20_000 * PAGE));
    }

    #[test]
    fn short_tasks_are_left_alone() {
        let mut probe = Probe::new(60, 1.0, 0.01, PAGE);
        let mut second = 0.0;
        loop {
            let state = State { second, memory: 1 << 20, refaults: 0, stalled: Some(second / 10.0) };
            match probe.next(state, 0) {
                Action::Reclaim(_) => panic!("a step of tasks that stall for a tenth of the time"),
                Action::Wait => second += 1.0,
                Action::End => break,
            }
        }
        assert_eq!(probe.need().unwrap().ending, Ending::ShortAlready);
    }

    #[test]
    fn a_leak_grows_and_is_not_needed() {
        let need = search(&mut Cgroup { leak: 100, ..cgroup(10_000, 10_000) }, 120, true);
        assert!((need.growth / (100 * PAGE) as f64 - 1.0).abs() < 0.05, "{}", need.growth);
        assert!(need.needed < 13_000 * PAGE, "{}", need.needed);
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
