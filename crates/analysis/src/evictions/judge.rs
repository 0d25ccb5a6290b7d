//! Compares each logged eviction with the reference stream, and with OPT in the same number of frames.

use pagelab_experiment::build::Evictor;
use pagelab_model::policy::Policy;
use pagelab_model::policy::opt::{NextUse, Opt};
use pagelab_simulation::memory::SwapDevice;
use serde::Serialize;

use super::ranks::Ranks;

/// Number of points in a run at which the pages in memory are sampled.
pub const SAMPLES: usize = 60;
/// An evicted page with a lower age rank was in the younger half of memory.
const YOUNG: f64 = 50.0;

/// A reference stream and its log of evictions.
pub struct Log<'a> {
    /// Pages of the mapping.
    pub pages: u32,
    /// Number of references in the opening, before the measured ones.
    pub opening: usize,
    /// All references, with the opening.
    pub references: &'a [u32],
    /// The pages in memory after the opening.
    pub present: &'a [bool],
    /// The evictions in order of time.
    pub rows: &'a [Row],
    /// The pages that entered memory, in order of time: the number of the measured reference, from
    /// 1, and the page. `None` if a page enters memory only when a reference faults on it.
    pub arrivals: Option<&'a [(u32, u32)]>,
    /// Frames of OPT.
    pub frames: u32,
    /// Frames of the memory limit, including those that a system keeps free.
    pub limit: u32,
    /// The swap device of the systems that the log is compared with.
    pub swap: SwapDevice,
    /// Whether every reference writes.
    pub writes: bool,
    /// Whether each page in [`Log::present`] was written since it was loaded.
    pub written: bool,
}

/// A row of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of measured references made when the page was first known to be absent.
    pub reference: u32,
    /// The page.
    pub page: u32,
    /// Who freed the page.
    pub by: Evictor,
    /// The kernel's workingset flag of the page.
    pub workingset: Option<bool>,
}

/// A judged eviction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Eviction {
    /// Number of references made when the page was first seen to be absent.
    pub reference: u32,
    /// The page.
    pub page: u32,
    /// References since the last reference to the page; `None` if there was none. Counts the
    /// opening.
    pub age: Option<u32>,
    /// Number of measured references to the page before the eviction.
    pub count: u32,
    /// The next reference to the page, counted from 1; `None` if there is none.
    pub next: Option<u32>,
    /// Percentage of the other pages in memory with a later last reference: 0 for the youngest
    /// page, 100 for the oldest.
    pub rank: f64,
    /// Whether the page was referenced at most once since it came into memory.
    pub once: bool,
    /// Whether read-ahead brought the page, and no reference followed.
    pub unused: bool,
    /// Number of references for which OPT kept the page afterwards; `None` if OPT did not have it.
    pub kept: Option<u32>,
    /// `Some(true)` if the page was written since it came into memory. `None` if that is not known:
    /// a page that was only read may still differ from its copy in swap.
    pub dirty: Option<bool>,
    /// Who freed the page.
    #[serde(skip)]
    pub by: Evictor,
    /// The kernel's workingset flag of the page: it was active before, or was fetched again soon
    /// after an earlier eviction.
    pub workingset: Option<bool>,
}

impl Eviction {
    /// The last reference to the page, counted from 1; 0 or less in the opening. `None` if there
    /// was none.
    pub fn last(&self) -> Option<i64> {
        self.age.map(|age| i64::from(self.reference) - i64::from(age))
    }
}

/// The faults beyond OPT by cause. The first five less [`Regret::saved`] and [`Regret::ahead`] are
/// the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Regret {
    /// Faults on pages evicted from the younger half of memory.
    pub young: u64,
    /// Faults on pages evicted from the older half, referenced once since they were loaded.
    pub once: u64,
    /// Faults on pages evicted from the older half, referenced several times.
    pub old: u64,
    /// Faults on pages that were not in memory before the first reference.
    pub outside: u64,
    /// Faults on pages that read-ahead had brought, evicted before the first reference to them.
    pub unused: u64,
    /// Hits on pages that OPT did not have in memory.
    pub saved: u64,
    /// First hits on pages that read-ahead brought, which OPT did not have in memory.
    pub ahead: u64,
}

impl Regret {
    /// Faults beyond OPT.
    pub fn total(&self) -> i64 {
        let more = self.young + self.once + self.old + self.outside + self.unused;
        more as i64 - (self.saved + self.ahead) as i64
    }
}

/// Deciles of ages in references, from the minimum to the maximum. Empty if there are no ages.
pub type Deciles = Vec<u32>;

/// A sample of the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Number of references made.
    pub reference: u32,
    /// Ages of the pages in memory.
    pub resident: Deciles,
    /// Ages of the pages evicted since the last sample.
    pub evicted: Deciles,
    /// The pages in memory, one bit per page.
    #[serde(skip)]
    pub present: Vec<u64>,
}

/// The judgement of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The evictions that are consistent with the stream, in order of time.
    pub evictions: Vec<Eviction>,
    /// Number of evictions of pages that were not in memory. They contradict the rest of the log.
    pub contradictions: u64,
    /// Frames of OPT.
    pub frames: u32,
    /// Number of references to pages that were not in memory.
    pub faults: u64,
    /// Number of pages that entered memory, for a reference or by read-ahead.
    pub arrived: u64,
    /// Faults of OPT.
    pub opt: u64,
    /// Pages in memory after the opening, and at the end.
    pub resident: [u64; 2],
    /// The faults beyond OPT by cause.
    pub regret: Regret,
    /// Samples of the run.
    pub samples: Vec<Sample>,
}

/// A page that entered memory for a reference to it.
struct Demanded {
    page: u32,
    /// Whether its eviction is in the same step.
    evicted: bool,
}

/// The events of a step that wait for others, and the evictions of a round. Kept for their memory.
#[derive(Default)]
struct Waiting {
    left: Vec<Row>,
    entered: Vec<u32>,
    batch: Vec<Row>,
}

/// No time, or no eviction.
const NONE: u32 = u32::MAX;

/// Judges a log.
///
/// # Panics
/// When a page is not below [`Log::pages`], or there are 2^32 − 1 references or more.
pub fn judge(log: &Log) -> Judged {
    let future = NextUse::of(log.pages, log.references);
    let mut opt = Opt::naming(log.pages, log.frames.max(1), &future);
    let mut judging = Judging::new(log);
    for (time, &page) in log.references[..log.opening].iter().enumerate() {
        opt.reference(page);
        judging.last[page as usize] = time as u32;
    }
    judging.begin(log.present);
    let measured = &log.references[log.opening..];
    let samples = SAMPLES.min(measured.len());
    let (mut rows, mut arrivals) = (log.rows, log.arrivals.unwrap_or_default());
    let mut next_sample = 1;
    for made in 0..=measured.len() {
        let gone = up_to(&mut rows, |row| row.reference as usize <= made);
        let came = up_to(&mut arrivals, |row| row.0 as usize <= made);
        judging.step(gone, came, made as u32, &opt);
        if samples > 0 && made == measured.len() * next_sample / samples {
            judging.sample(made as u32);
            next_sample += 1;
        }
        if let Some(&page) = measured.get(made) {
            if log.arrivals.is_some() {
                judging.before(page, made as u32, rows, arrivals, &opt);
            }
            judging.reference(page, made as u32, &mut opt);
        }
    }
    judging.finish()
}

/// Splits off the leading rows for which `is_in` holds.
fn up_to<'a, T>(rows: &mut &'a [T], is_in: impl Fn(&T) -> bool) -> &'a [T] {
    let (these, later) = rows.split_at(rows.iter().take_while(|row| is_in(row)).count());
    *rows = later;
    these
}

/// The state of judging a log.
struct Judging {
    opening: u32,
    present: Vec<bool>,
    /// Time of each page's last reference, counted from the start of the opening.
    last: Vec<u32>,
    count: Vec<u32>,
    /// Number of references to each page since it was loaded.
    since: Vec<u32>,
    ranks: Ranks,
    /// Whether each page was brought by read-ahead and not referenced since.
    ahead: Vec<bool>,
    /// The page whose eviction and arrival came before the last reference, which was to it.
    demanded: Option<Demanded>,
    has_arrivals: bool,
    waiting: Waiting,
    /// Each absent page's last eviction.
    left: Vec<u32>,
    /// Each page's eviction after which OPT still has it.
    kept: Vec<u32>,
    ages: Vec<u32>,
    writes: bool,
    /// Whether each page was written since it was loaded.
    written: Vec<bool>,
    judged: Judged,
}

impl Judging {
    fn new(log: &Log) -> Self {
        let pages = log.pages as usize;
        Self {
            opening: log.opening as u32,
            present: vec![false; pages],
            last: vec![NONE; pages],
            count: vec![0; pages],
            since: vec![0; pages],
            ahead: vec![false; pages],
            demanded: None,
            has_arrivals: log.arrivals.is_some(),
            waiting: Waiting::default(),
            ranks: Ranks::new(log.references.len()),
            left: vec![NONE; pages],
            kept: vec![NONE; pages],
            ages: Vec::new(),
            writes: log.writes,
            written: vec![log.written; pages],
            judged: Judged {
                evictions: Vec::with_capacity(log.rows.len()),
                contradictions: 0,
                frames: log.frames,
                faults: 0,
                arrived: 0,
                opt: 0,
                resident: [0; 2],
                regret: Regret::default(),
                samples: Vec::new(),
            },
        }
    }

    fn begin(&mut self, present: &[bool]) {
        for (page, &inside) in present.iter().enumerate().take(self.present.len()) {
            if inside {
                self.enter(page);
            }
        }
        self.judged.resident[0] = self.resident();
    }

    fn resident(&self) -> u64 {
        self.present.iter().filter(|&&inside| inside).count() as u64
    }

    fn enter(&mut self, page: usize) {
        self.present[page] = true;
        if self.last[page] != NONE {
            self.ranks.insert(self.last[page]);
        }
    }

    /// Applies the events of a step: pages that left and pages that came during the last reference.
    /// The events of one page alternate, so its presence tells their order; it may leave and come
    /// several times.
    fn step(&mut self, gone: &[Row], came: &[(u32, u32)], made: u32, opt: &Opt) {
        let demanded = self.demanded.take();
        if !self.has_arrivals {
            self.leave(gone, made, opt);
            return;
        }
        let Waiting { mut left, mut entered, mut batch } = std::mem::take(&mut self.waiting);
        left.extend_from_slice(gone);
        entered.extend(came.iter().map(|row| row.1));
        if let Some(Demanded { page, evicted }) = demanded {
            // These came before the reference.
            entered.iter().position(|&other| other == page).map(|at| entered.remove(at));
            let eviction = |row: &Row| evicted && row.page == page;
            left.iter().position(eviction).map(|at| left.remove(at));
        }
        loop {
            let before = left.len() + entered.len();
            left.retain(|row| {
                let leaves = std::mem::replace(&mut self.present[row.page as usize], false);
                batch.extend(leaves.then_some(*row));
                !leaves
            });
            batch.iter().for_each(|row| self.present[row.page as usize] = true);
            self.leave(&batch, made, opt);
            batch.clear();
            entered.retain(|&page| !self.read_ahead(page));
            if left.len() + entered.len() == before {
                break;
            }
        }
        self.judged.contradictions += (left.len() + entered.len()) as u64;
        left.clear();
        entered.clear();
        self.waiting = Waiting { left, entered, batch };
    }

    /// A page enters memory by read-ahead. Returns `false` if it was there already.
    fn read_ahead(&mut self, page: u32) -> bool {
        let at = page as usize;
        if self.present[at] {
            return false;
        }
        self.judged.arrived += 1;
        (self.since[at], self.ahead[at], self.written[at]) = (0, true, false);
        self.enter(at);
        true
    }

    /// Looks ahead at the events of the next reference, to `page`: if the page enters memory during
    /// it, the page was absent, and an eviction in the same step came first.
    fn before(&mut self, page: u32, made: u32, rows: &[Row], arrivals: &[(u32, u32)], opt: &Opt) {
        let step = |reference: u32| reference <= made + 1;
        if !arrivals.iter().take_while(|row| step(row.0)).any(|row| row.1 == page) {
            return;
        }
        let mut evicted = false;
        if self.present[page as usize] {
            let mut rows = rows.iter().take_while(|row| step(row.reference));
            let Some(row) = rows.find(|row| row.page == page) else { return };
            self.leave(&[*row], made, opt);
            evicted = true;
        }
        self.demanded = Some(Demanded { page, evicted });
    }

    /// Removes the pages that are absent after `made` references. Ranks count all pages that were in
    /// memory before.
    fn leave(&mut self, gone: &[Row], made: u32, opt: &Opt) {
        let first = self.judged.evictions.len();
        for &Row { reference, page, by, workingset } in gone {
            let at = page as usize;
            if !std::mem::replace(&mut self.present[at], false) {
                self.judged.contradictions += 1;
                continue;
            }
            let last = Some(self.last[at]).filter(|&last| last != NONE);
            let others = f64::from(self.ranks.count().saturating_sub(1).max(1));
            let rank = last.map_or(100.0, |last| f64::from(self.ranks.later_than(last)) / others * 100.0);
            let age = last.map(|last| (self.opening + made).saturating_sub(last + 1));
            self.ages.extend(age);
            let number = self.judged.evictions.len() as u32;
            let kept = opt.contains(page) == Some(true);
            self.left[at] = number;
            self.kept[at] = if kept { number } else { NONE };
            self.judged.evictions.push(Eviction {
                reference,
                page,
                age,
                count: self.count[at],
                next: None,
                rank,
                once: self.since[at] <= 1,
                unused: self.ahead[at],
                kept: kept.then_some(0),
                dirty: self.written[at].then_some(true),
                by,
                workingset,
            });
            self.ahead[at] = false;
        }
        for number in first..self.judged.evictions.len() {
            let at = self.judged.evictions[number].page as usize;
            if self.last[at] != NONE {
                self.ranks.remove(self.last[at]);
            }
        }
    }

    /// Makes the next reference.
    fn reference(&mut self, page: u32, made: u32, opt: &mut Opt) {
        let at = page as usize;
        let (opt_hit, opt_gone) = opt.reference_naming(page);
        if let Some(gone) = opt_gone {
            self.end_kept(gone as usize, made + 1);
        }
        self.end_kept(at, made + 1);
        let left = std::mem::replace(&mut self.left[at], NONE);
        let eviction = self.judged.evictions.get_mut(left as usize);
        let hit = self.present[at];
        self.judged.faults += u64::from(!hit);
        self.judged.arrived += u64::from(!hit);
        // A page that was absent must have arrived.
        self.judged.contradictions += u64::from(!hit && self.has_arrivals && self.demanded.is_none());
        let first_after_ahead = std::mem::replace(&mut self.ahead[at], false);
        self.judged.opt += u64::from(!opt_hit);
        let regret = &mut self.judged.regret;
        match (hit, opt_hit, &eviction) {
            (true, false, _) if first_after_ahead => regret.ahead += 1,
            (true, false, _) => regret.saved += 1,
            (false, true, Some(eviction)) if eviction.unused => regret.unused += 1,
            (false, true, Some(eviction)) if eviction.rank < YOUNG => regret.young += 1,
            (false, true, Some(eviction)) if eviction.once => regret.once += 1,
            (false, true, Some(_)) => regret.old += 1,
            (false, true, None) => regret.outside += 1,
            (true, true, _) | (false, false, _) => {}
        }
        if let Some(eviction) = eviction {
            eviction.next = Some(made + 1);
        }
        if hit && self.last[at] != NONE {
            self.ranks.remove(self.last[at]);
        }
        self.written[at] = self.writes || hit && self.written[at];
        self.since[at] = if hit { self.since[at] + 1 } else { 1 };
        self.count[at] += 1;
        self.last[at] = self.opening + made;
        self.enter(at);
    }

    /// Ends the time for which OPT kept an evicted page.
    fn end_kept(&mut self, page: usize, made: u32) {
        let number = std::mem::replace(&mut self.kept[page], NONE);
        if let Some(eviction) = self.judged.evictions.get_mut(number as usize) {
            eviction.kept = Some(made.saturating_sub(eviction.reference));
        }
    }

    fn sample(&mut self, made: u32) {
        let now = self.opening + made;
        let inside = |(page, _): &(usize, &u32)| self.present[*page];
        let resident = self.last.iter().enumerate().filter(inside).filter(|(_, last)| **last != NONE);
        let resident: Vec<u32> = resident.map(|(_, last)| now.saturating_sub(last + 1)).collect();
        let mut bits = vec![0u64; self.present.len().div_ceil(64)];
        for (page, _) in self.present.iter().enumerate().filter(|(_, inside)| **inside) {
            bits[page / 64] |= 1 << (page % 64);
        }
        self.judged.samples.push(Sample {
            reference: made,
            resident: deciles(resident),
            evicted: deciles(std::mem::take(&mut self.ages)),
            present: bits,
        });
    }

    fn finish(mut self) -> Judged {
        self.judged.resident[1] = self.resident();
        let end = self.judged.samples.last().map_or(0, |sample| sample.reference);
        (0..self.kept.len()).for_each(|page| self.end_kept(page, end));
        self.judged
    }
}

fn deciles(mut ages: Vec<u32>) -> Deciles {
    ages.sort_unstable();
    let Some(last) = ages.len().checked_sub(1) else { return Vec::new() };
    (0..=10).map(|n| ages[last * n / 10]).collect()
}
