//! What the limits measured so far say together: which are enough, and which to measure next.

use super::limits::{Goal, Point, TOLERANCE, beyond, least};
use crate::finding::StallSource;

/// The ratio of the interval's ends at which the search ends.
pub const PRECISION: f64 = 1.06;
/// How often a doubtful limit is measured, as a multiple of the times at the most memory.
const DOUBTS: usize = 3;
/// The largest limit that is too little is doubtful up to this multiple of the allowed loss. Other
/// load makes a stall longer, never shorter.
const CLOSE: f64 = 3.0;
/// The limits between two are multiples of this share of their size or less, so that they have
/// short names.
const GRAIN: u64 = 32;
/// Pages fetched from which the cost of one is told.
const MIN_PRICED: f64 = 256.0;

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
    /// The greatest that was measured to be too little; `None`: none of those that were measured
    /// is.
    pub too_little: Option<u64>,
    /// The time at full speed, ns.
    pub full: f64,
    /// The longest time that still counts as full speed, ns.
    pub allowed: f64,
    /// Whether a limit between the two was slow for a reason that may not be memory.
    pub inconclusive: bool,
    /// Whether the time that the search may take was over before the interval was as narrow as it
    /// should be.
    pub early: bool,
}

/// What is known of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    Enough,
    TooLittle,
    Unclear,
}

/// What the points say together.
pub(super) struct View<'a> {
    points: &'a [Point],
    pub(super) goal: Goal,
    top: &'a Point,
    /// The time at full speed, ns.
    full: f64,
    allowed: f64,
    /// Pages fetched, refaults, ns stalled, and pages written with room to spare; where no limit
    /// has room, the fewest at full speed.
    usual: [f64; 4],
    /// What a page fetched costs where it costs least, ns, where one can be told.
    cost: Option<f64>,
    /// Whether more than one limit tells that cost.
    sure: bool,
}

impl<'a> View<'a> {
    /// Of a sweep to `most` bytes; `None` before its greatest limit was measured, or where the
    /// program was killed or stopped under it.
    pub(super) fn of(points: &'a [Point], goal: Goal, most: u64) -> Option<Self> {
        let top = points.iter().find(|p| p.memory == most).filter(|top| top.time().is_finite())?;
        let full = points.iter().map(Point::time).fold(f64::INFINITY, f64::min);
        let allowed = full * (1.0 + TOLERANCE);
        // A limit with room does not make the program fetch anything: what it fetches there it
        // always does.
        let usual = |of: fn(&Point) -> &Vec<f64>| {
            let roomy = points.iter().filter(|p| p.time().is_finite() && p.has_room_in(p.memory));
            let always = roomy.map(|p| least(of(p))).filter(|of| of.is_finite()).reduce(f64::max);
            let fastest = points.iter().filter(|p| p.memory == most || p.time() <= allowed);
            let fewest = fastest.map(|p| least(of(p))).fold(f64::INFINITY, f64::min);
            always.unwrap_or(if fewest.is_finite() { fewest } else { 0.0 })
        };
        let usual =
            [usual(|p| &p.fetched), usual(|p| &p.refaults), usual(|p| &p.stalled), usual(|p| &p.written)];
        let mut view = Self { points, goal, top, full, allowed, usual, cost: None, sure: false };
        let costs = |from: f64| {
            let priced = points.iter().filter(|p| p.time().is_finite() && p.time() >= from * full);
            let priced = priced.filter(|p| p.time() > full && view.pages(p) >= MIN_PRICED);
            priced.map(|p| (p.time() - full) / view.pages(p)).collect::<Vec<f64>>()
        };
        // Where the program mostly waits, other load changes the difference least.
        let costs = Some(costs(2.0)).filter(|costs| !costs.is_empty()).unwrap_or_else(|| costs(1.0));
        view.cost = costs.iter().copied().reduce(f64::min);
        view.sure = costs.len() > 1;
        Some(view)
    }

    pub(super) fn is_fast(&self, point: &Point) -> bool {
        point.memory == self.top.memory || point.time() <= self.allowed
    }

    /// Pages that the program fetched, or that refaulted, for want of memory.
    pub(super) fn pages(&self, point: &Point) -> f64 {
        beyond(&point.fetched, self.usual[0]).max(beyond(&point.refaults, self.usual[1]))
    }

    /// The stall for memory as a share of the time at full speed, and how it is known; of a stopped
    /// run, that until then.
    pub(super) fn stall(&self, point: &Point) -> Option<(f64, StallSource)> {
        if !point.stalled.is_empty() {
            let stalled = (least(&point.stalled) - self.usual[2]).max(0.0);
            return Some((stalled / self.full, StallSource::Pressure));
        }
        Some((self.paging(point)?, StallSource::Pages))
    }

    /// What paging cost, as a share of the time at full speed: the waits for pages, and the work
    /// for them.
    pub(super) fn paging(&self, point: &Point) -> Option<f64> {
        let pages = self.pages(point);
        if point.fetched.is_empty() && point.refaults.is_empty() {
            return None;
        }
        let stalled = match self.cost {
            _ if pages == 0.0 => 0.0,
            Some(cost) => pages * cost,
            None => {
                let time = point.time().min(point.stopped.iter().copied().fold(f64::INFINITY, f64::min));
                (time - self.full).max(0.0)
            }
        };
        Some(stalled / self.full)
    }

    /// The share of the time at full speed that the goal limits.
    pub(super) fn loss(&self, point: &Point) -> Option<f64> {
        let (stall, _) = self.stall(point)?;
        let paging = self.paging(point).filter(|_| self.goal != Goal::Stall && self.sure);
        Some(paging.map_or(stall, |paging| paging.max(stall)))
    }

    pub(super) fn judge(&self, point: &Point) -> Judgement {
        let ended = point.time().is_finite();
        if point.killed {
            return Judgement::TooLittle;
        }
        let room = point.memory == self.top.memory || point.has_room_in(point.memory);
        if ended && (room || self.goal == Goal::Completion) {
            return Judgement::Enough;
        }
        let Some(loss) = self.loss(point) else {
            return if self.is_fast(point) { Judgement::Enough } else { Judgement::TooLittle };
        };
        // What is written to swap and not used again stalls the program too, once.
        let more = self.pages(point) > 0.0 || beyond(&point.written, self.usual[3]) > 0.0;
        // One that was given up and had fetched nothing more says nothing of its memory.
        let allowed = if ended { self.goal.allowed() } else { self.goal.allowed().min(TOLERANCE) };
        match (loss > allowed, more) {
            (true, true) => Judgement::TooLittle,
            (false, _) if ended => Judgement::Enough,
            (_, false) if room || self.less_is_enough(point) => Judgement::Enough,
            // Reclaim of clean pages stalls the program too, if it does so in each run.
            (_, false) if ended && !point.stalled.is_empty() => match point.runs() >= self.doubts() {
                true => Judgement::TooLittle,
                false => Judgement::Unclear,
            },
            (_, false) if self.points.iter().any(|p| p.memory < point.memory && self.is_fast(p)) => {
                Judgement::Enough
            }
            _ => Judgement::Unclear,
        }
    }

    /// Whether the program ended under a smaller limit and lost no more than the goal allows.
    fn less_is_enough(&self, point: &Point) -> bool {
        let enough = |p: &Point| self.loss(p).is_some_and(|loss| loss <= self.goal.allowed());
        self.points.iter().any(|p| p.memory < point.memory && p.time().is_finite() && enough(p))
    }

    /// How often a doubtful limit is measured.
    fn doubts(&self) -> usize {
        DOUBTS * self.top.runs()
    }

    /// Whether a limit is too little although less memory was enough.
    pub(super) fn contradicts(&self, point: &Point) -> bool {
        let enough = |p: &Point| p.memory < point.memory && self.judge(p) == Judgement::Enough;
        self.judge(point) == Judgement::TooLittle && self.points.iter().any(enough)
    }

    /// The limit that is to be measured again because what is known of it is unclear.
    pub(super) fn doubtful(&self) -> Option<&Point> {
        let too_little = self.points.iter().filter(|p| self.judge(p) == Judgement::TooLittle);
        let largest = too_little.map(|p| p.memory).max();
        let close = |p: &Point| {
            let near = self.loss(p).is_some_and(|loss| loss <= CLOSE * self.goal.allowed());
            Some(p.memory) == largest && near && p.time().is_finite()
        };
        let doubtful = |p: &Point| self.judge(p) == Judgement::Unclear || self.contradicts(p) || close(p);
        self.points.iter().find(|p| doubtful(p) && p.runs() < self.doubts() && !p.killed)
    }

    /// The interval known by now; `early`: the search is ended before its time.
    pub(super) fn knee(&self, early: bool) -> Knee {
        let of = |judgement| {
            self.points.iter().filter(move |p| self.judge(p) == judgement).map(|point| point.memory)
        };
        let too_little = of(Judgement::TooLittle).max();
        let inside = |memory: &u64| too_little.is_none_or(|less| *memory > less);
        let enough = of(Judgement::Enough).filter(inside).min().unwrap_or(self.top.memory);
        let inconclusive = of(Judgement::Unclear).filter(inside).any(|memory| memory < enough)
            || self.points.iter().any(|p| self.contradicts(p));
        Knee { enough, too_little, full: self.full, allowed: self.allowed, inconclusive, early }
    }
}

/// What to do next, after these points, in a sweep from `lowest` to `most` bytes. `page` bytes are
/// the granularity.
///
/// `None` when the program was killed at the most memory, or `lowest` is 0 or above `most`.
pub(super) fn next(points: &[Point], goal: Goal, lowest: u64, most: u64, page: u64) -> Option<Next> {
    if lowest == 0 || lowest > most || page == 0 {
        return None;
    }
    if !points.iter().any(|p| p.memory == most) {
        return Some(Next::Measure(most));
    }
    let view = View::of(points, goal, most)?;
    let bottom = points.iter().any(|p| p.memory == lowest);
    // A program that has room in the least limit needs no search.
    if !bottom && view.top.has_room_in(lowest) {
        return Some(Next::Measure(lowest));
    }
    if let Some(doubtful) = view.doubtful() {
        return Some(Next::Measure(doubtful.memory));
    }
    let knee = view.knee(false);
    let below = match knee.too_little {
        Some(too_little) => too_little,
        None if bottom && !knee.inconclusive => return Some(Next::Found(knee)),
        None => lowest,
    };
    let near = knee.enough as f64 / below as f64 <= PRECISION;
    let mut middle = (below as f64 * knee.enough as f64).sqrt();
    // What was charged under the greatest limit is near the answer.
    if let (None, Some(peak)) = (knee.too_little, view.top.peak()) {
        middle = if knee.enough as f64 > peak * 1.2 { peak * 1.03 } else { knee.enough as f64 / 2.0 };
        middle = middle.max(below as f64);
    }
    let middle = named(middle as u64, page);
    if !near && below < middle && middle < knee.enough {
        // What stayed unclear would stay so.
        let known = points.iter().any(|p| p.memory == middle);
        return Some(if known { Next::Found(knee) } else { Next::Measure(middle) });
    }
    Some(if knee.too_little.is_none() && !bottom { Next::Measure(lowest) } else { Next::Found(knee) })
}

/// A limit near this many bytes with a short name.
pub(super) fn named(bytes: u64, page: u64) -> u64 {
    let grain = (bytes / GRAIN).checked_ilog2().map_or(1, |log| 1 << log).max(page);
    ((bytes + grain / 2) / grain).max(1) * grain
}
