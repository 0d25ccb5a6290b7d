//! The timing loop: one timestamp for each reference, its nanoseconds into a histogram.
//!
//! The end of one reference is the start of the next, so a reference's time includes one reading of
//! the clock and the recording of the reference before it (`harness.cost` in the environment says
//! how much that is). Only when a reference may have faulted ([`Doubt`]) are the thread's
//! fault counters read; from them it is known, not guessed, whether the reference was a hit, a minor
//! or a major fault. That reading belongs to no reference: the clock is read again after it.
//!
//! Where one reference in N is timed ([`sampled`]), which one of each N is drawn, so that no rhythm
//! of the stream meets that of the sampling.

use pagelab_experiment::build::Distribution;
use pagelab_kernel::region::Region;
use pagelab_kernel::rusage::{self, Usage};
use pagelab_reference::rng::Rng;

use crate::harness::clock::Clock;
use crate::harness::doubt::Doubt;
use crate::harness::touch::Touch;

/// What a reference met, in the order of [`pagelab_experiment::build::KINDS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The page was present.
    Hit,
    /// A fault that waited for no input.
    Minor,
    /// A fault that waited for input.
    Major,
}

impl Kind {
    /// From the growth of the thread's fault counters over one reference.
    #[inline]
    pub fn of(growth: Usage) -> Self {
        match growth {
            Usage { major: 1.., .. } => Self::Major,
            Usage { minor: 1.., .. } => Self::Minor,
            _ => Self::Hit,
        }
    }
}

/// What the loop fills.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The references by [`Kind`].
    pub kinds: [Distribution; 3],
    /// Hits that were in doubt: the kernel was entered for something else, an interrupt or another
    /// task. How many, and their nanoseconds.
    pub interrupted: (u64, u64),
    /// Of references of which some write, those that do, whatever they met.
    pub writes: Distribution,
    /// The indexes of the references of the last call of [`references`] that faulted, if requested.
    pub faulted: Option<Vec<u32>>,
    last: Usage,
}

/// One call of [`references`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Timed {
    /// The sum of the references' times, ns.
    pub sum: u64,
    /// The longest reference, ns; of a sample the longest of those timed.
    pub max: u64,
    /// What the thread consumed meanwhile.
    pub usage: Usage,
}

impl Tally {
    /// Creates an empty tally that collects the indexes of faults, for calls with at most `references`
    /// references.
    pub fn naming_faults(references: usize) -> Self {
        Self { faulted: Some(Vec::with_capacity(references)), ..Self::default() }
    }

    /// Reads the fault counters for a reference that took `nanoseconds`, and records it.
    #[cold]
    #[inline(never)]
    pub(super) fn classify(&mut self, nanoseconds: u64) -> Kind {
        let now = rusage::thread();
        let kind = Kind::of(now - self.last);
        self.last = now;
        self.kinds[kind as usize].record(nanoseconds);
        if kind == Kind::Hit {
            self.interrupted.0 += 1;
            self.interrupted.1 += nanoseconds;
        }
        kind
    }
}

impl Timed {
    /// Adds the timing of the references that followed.
    pub fn add(&mut self, next: &Self) {
        self.sum += next.sum;
        self.max = self.max.max(next.max);
        self.usage += next.usage;
    }
}

/// Makes the references `pages` to `region` and times each.
///
/// # Panics
/// When a reference lies outside the region.
#[inline(never)]
pub fn references<T: Touch, C: Clock, D: Doubt>(
    clock: &C,
    doubt: &D,
    region: &Region,
    pages: &[u32],
    tally: &mut Tally,
) -> Timed {
    check::<T>(region, pages);
    let (base, size, words) = (region.base(), region.page_size(), region.page_size() / 8);
    let (mut slow_sum, mut slow_max) = (0, 0);
    let (mut sum, mut min, mut max) = (0, u64::MAX, 0);
    let start = rusage::thread_up_to_date();
    tally.last = start;
    doubt.arm();
    let mut before = clock.now();
    for (place, &reference) in pages.iter().enumerate() {
        let (page, write) = T::parted(reference);
        // SAFETY: the page lies within the region (checked above), which is readable, writable,
        // aligned to a page, and to which no reference exists.
        unsafe { made::<T>(base.add(page as usize * size).cast(), words, write) };
        let now = clock.now();
        // Processors' counters may differ by a tick or two after a migration.
        let nanoseconds = clock.nanoseconds(now.saturating_sub(before));
        before = now;
        if write {
            tally.writes.record(nanoseconds);
        }
        if doubt.is(nanoseconds) {
            slow_sum += nanoseconds;
            slow_max = slow_max.max(nanoseconds);
            let kind = tally.classify(nanoseconds);
            if let (Some(faulted), Kind::Minor | Kind::Major) = (&mut tally.faulted, kind) {
                faulted.push(place as u32);
            }
            doubt.arm();
            before = clock.now();
        } else {
            tally.kinds[Kind::Hit as usize].bucket(nanoseconds);
            sum += nanoseconds;
            min = min.min(nanoseconds);
            max = max.max(nanoseconds);
        }
    }
    let usage = rusage::thread_up_to_date() - start;
    tally.kinds[Kind::Hit as usize].fold(sum, min, max);
    Timed { sum: sum + slow_sum, max: max.max(slow_max), usage }
}

/// Makes the references and times one of each `every`; the sum is the time of all.
///
/// # Panics
/// When a reference lies outside the region.
#[inline(never)]
pub fn sampled<T: Touch, C: Clock, D: Doubt>(
    clock: &C,
    doubt: &D,
    region: &Region,
    pages: &[u32],
    (every, rng): (u32, &mut Rng),
    tally: &mut Tally,
) -> Timed {
    check::<T>(region, pages);
    let (base, size, words) = (region.base(), region.page_size(), region.page_size() / 8);
    let touch = |reference: u32| {
        let (page, write) = T::parted(reference);
        // SAFETY: as in `references`.
        unsafe { made::<T>(base.add(page as usize * size).cast(), words, write) };
    };
    let start = rusage::thread_up_to_date();
    tally.last = start;
    doubt.arm();
    let (mut classifying, mut longest) = (0, 0);
    let begun = clock.now();
    for block in pages.chunks(every as usize) {
        // The last, shorter block has its share of samples too.
        let chosen = (rng.below(u64::from(every)) as usize).min(block.len());
        block[..chosen].iter().copied().for_each(touch);
        let Some((&page, rest)) = block[chosen..].split_first() else { continue };
        let mut before = clock.now();
        if doubt.is(u64::MAX) {
            // A reference that was not timed may have faulted: the counters must be of this moment.
            let entered = before;
            tally.last = rusage::thread();
            doubt.arm();
            before = clock.now();
            classifying += before.saturating_sub(entered);
        }
        touch(page);
        let now = clock.now();
        let nanoseconds = clock.nanoseconds(now.saturating_sub(before));
        longest = longest.max(nanoseconds);
        if T::parted(page).1 {
            tally.writes.record(nanoseconds);
        }
        if doubt.is(nanoseconds) {
            tally.classify(nanoseconds);
            doubt.arm();
            classifying += clock.now().saturating_sub(now);
        } else {
            tally.kinds[Kind::Hit as usize].record(nanoseconds);
        }
        rest.iter().copied().for_each(touch);
    }
    let whole = clock.now().saturating_sub(begun).saturating_sub(classifying);
    Timed { sum: clock.nanoseconds(whole), max: longest, usage: rusage::thread_up_to_date() - start }
}

/// Makes the same references as [`references`] without timing them: what the harness is measured
/// against.
///
/// # Panics
/// When a reference lies outside the region.
#[inline(never)]
pub fn bare<T: Touch>(region: &Region, pages: &[u32]) {
    check::<T>(region, pages);
    let (base, size, words) = (region.base(), region.page_size(), region.page_size() / 8);
    for &reference in pages {
        let (page, write) = T::parted(reference);
        // SAFETY: as in `references`.
        unsafe { made::<T>(base.add(page as usize * size).cast(), words, write) };
    }
}

/// Makes one reference.
///
/// # Safety
/// As of [`Touch::touch`].
#[inline(always)]
unsafe fn made<T: Touch>(page: *mut u64, words: usize, write: bool) {
    // SAFETY: the caller's promise.
    unsafe { if write { T::write(page, words) } else { T::touch(page, words) } };
}

fn check<T: Touch>(region: &Region, pages: &[u32]) {
    let most = pages.iter().map(|&reference| T::parted(reference).0).max().unwrap_or(0) as usize;
    assert!(pages.is_empty() || most < region.pages(), "reference to page {most} outside the region");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::clock::Monotonic;
    #[cfg(target_arch = "x86_64")]
    use crate::harness::doubt::Mark;
    use crate::harness::doubt::Slow;
    use crate::harness::touch;

    fn growth(minor: u64, major: u64) -> Usage {
        Usage { minor, major, ..Usage::default() }
    }

    #[test]
    fn kinds_from_counters() {
        assert_eq!(Kind::of(growth(0, 0)), Kind::Hit);
        assert_eq!(Kind::of(growth(1, 0)), Kind::Minor);
        assert_eq!(Kind::of(growth(0, 1)), Kind::Major);
        assert_eq!(Kind::of(growth(3, 1)), Kind::Major);
    }

    #[test]
    fn first_writes_are_minor_and_second_ones_hits() {
        let region = Region::base_pages(500).unwrap();
        let pages: Vec<u32> = (0..500).collect();
        // A threshold of 0 reads the counters for every reference: exact.
        let mut tally = Tally::default();
        let first = references::<touch::Write, _, _>(&Monotonic, &Slow(0), &region, &pages, &mut tally);
        let second = references::<touch::Write, _, _>(&Monotonic, &Slow(0), &region, &pages, &mut tally);
        let counts: Vec<u64> = tally.kinds.iter().map(Distribution::count).collect();
        assert_eq!(counts, [500, 500, 0]);
        assert_eq!((first.usage.minor, second.usage.minor), (500, 0));
        let sum: u64 = tally.kinds.iter().map(Distribution::sum).sum();
        assert_eq!(sum, first.sum + second.sum);
        assert_eq!(
            first.max.max(second.max),
            tally.kinds.iter().filter_map(Distribution::max).max().unwrap()
        );
    }

    /// The same without a threshold, where the processor has a mark.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_mark_tells_faults_from_hits() {
        let Some(mark) = Mark::trusted().unwrap() else { return };
        let region = Region::base_pages(2000).unwrap();
        let pages: Vec<u32> = (0..2000).flat_map(|page| [page, page / 2]).collect();
        let mut tally = Tally::default();
        let timed = references::<touch::Write, _, _>(&Monotonic, &mark, &region, &pages, &mut tally);
        let counts: Vec<u64> = tally.kinds.iter().map(Distribution::count).collect();
        assert_eq!((counts, timed.usage.minor), (vec![2000, 2000, 0], 2000));
        assert!(tally.interrupted.0 < 200, "hits are seldom in doubt: {:?}", tally.interrupted);
    }

    /// The thread's processor time, which stands still while others run.
    struct Own;

    impl Clock for Own {
        const NAME: &'static str = "thread";

        fn now(&self) -> u64 {
            rusage::thread_time()
        }

        fn nanoseconds(&self, ticks: u64) -> u64 {
            ticks
        }
    }

    #[test]
    fn a_sample_has_its_share_and_its_kinds() {
        let region = Region::base_pages(4000).unwrap();
        let pages: Vec<u32> = (0..4000).flat_map(|page| [page, page / 2]).collect();
        let mut tally = Tally::default();
        let mut rng = Rng::new(1);
        let way = (10, &mut rng);
        let timed = sampled::<touch::Write, _, _>(&Own, &Slow(0), &region, &pages, way, &mut tally);
        let counts: Vec<u64> = tally.kinds.iter().map(Distribution::count).collect();
        assert_eq!((counts[0] + counts[1], counts[2]), (800, 0));
        // The pages of this code itself are a few faults once.
        assert!((4000..4010).contains(&timed.usage.minor), "{timed:?}");
        assert!(counts[1].abs_diff(400) < 80, "half of them fault: {counts:?}");
        let sampled: u64 = tally.kinds.iter().map(Distribution::sum).sum();
        assert!(timed.sum > 2 * sampled, "the time is that of all: {timed:?}, {sampled} of the sample");
    }

    #[test]
    fn of_mixed_references_those_write_that_are_to() {
        let region = Region::anonymous(100).unwrap();
        let pages: Vec<u32> =
            (0..100).map(|page| if page % 4 == 0 { page | touch::WRITE } else { page }).collect();
        let mut tally = Tally::default();
        references::<touch::Mixed<touch::Word>, _, _>(&Monotonic, &Slow(0), &region, &pages, &mut tally);
        assert_eq!(tally.writes.count(), 25);
        // SAFETY: the first word of each page of the region, which nobody else uses.
        let word = |page: usize| unsafe { region.base().add(page * region.page_size()).cast::<u64>().read() };
        assert!((0..100).all(|page| (word(page) != 0) == (page % 4 == 0)));
        let counts: Vec<u64> = tally.kinds.iter().map(Distribution::count).collect();
        assert_eq!(counts[0] + counts[1], 100, "writes are among the kinds");
    }

    #[test]
    #[should_panic(expected = "outside the region")]
    fn a_reference_outside_is_refused() {
        let region = Region::anonymous(2).unwrap();
        bare::<touch::Word>(&region, &[2]);
    }
}
