//! Planted streams, sums, and a naive judge.

use super::*;
use pagelab_model::policy::PolicyKind;
use pagelab_model::policy::opt::NextUse;
use pagelab_model::policy::{Policy, opt::Opt};
use pagelab_simulation::memory::SwapDevice;
use proptest::prelude::*;

/// The evictions of a policy on `measured`, and its pages after `opening`.
fn log_of(
    policy: &mut dyn Policy,
    pages: u32,
    opening: &[u32],
    measured: &[u32],
) -> (Vec<bool>, Vec<(u32, u32)>) {
    let held = |policy: &dyn Policy| -> Vec<bool> {
        (0..pages).map(|page| policy.contains(page).expect("it names its pages")).collect()
    };
    for &page in opening {
        policy.reference(page);
    }
    let start = held(policy);
    let (mut before, mut rows) = (start.clone(), Vec::new());
    for (made, &page) in (1..).zip(measured) {
        policy.reference(page);
        let after = held(policy);
        let gone =
            (0..pages).filter(|&other| before[other as usize] && !after[other as usize] && other != page);
        rows.extend(gone.map(|gone| (made, gone)));
        before = after;
    }
    (start, rows)
}

fn of_rows(rows: &[(u32, u32)]) -> Vec<Row> {
    rows.iter().map(|&(reference, page)| Row { reference, page, ..Row::default() }).collect()
}

fn judged(
    policy: &str,
    pages: u32,
    frames: u32,
    opening: &[u32],
    measured: &[u32],
) -> (Judged, Vec<(u32, u32)>) {
    let all = [opening, measured].concat();
    let future = NextUse::of(pages, &all);
    let (present, rows) = match policy {
        "opt" => log_of(&mut Opt::naming(pages, frames, &future), pages, opening, measured),
        name => {
            let kind: PolicyKind = name.parse().unwrap();
            log_of(kind.build(pages, frames, None).as_mut(), pages, opening, measured)
        }
    };
    let log = Log {
        pages,
        opening: opening.len(),
        references: &all,
        present: &present,
        rows: &of_rows(&rows),
        arrivals: None,
        frames,
        limit: frames,
        swap: SwapDevice::Disk,
        writes: false,
        written: true,
    };
    (judge(&log), rows)
}

/// A loop over one page more than memory: at every reference LRU evicts the oldest page, which is
/// referenced next. OPT keeps that page, and misses once per `frames` references.
#[test]
fn a_loop_under_lru_evicts_the_oldest_page_which_opt_keeps() {
    let (pages, frames) = (101u32, 100u32);
    let opening: Vec<u32> = (0..pages).collect();
    let measured: Vec<u32> = (0..20 * pages).map(|n| n % pages).collect();
    let (judged, _) = judged("lru", pages, frames, &opening, &measured);
    assert_eq!(judged.faults, 2020);
    assert!(judged.evictions.iter().all(|one| one.rank == 100.0 && one.age == Some(100)));
    assert!((20..=21).contains(&judged.opt), "{}", judged.opt);
    assert_eq!(judged.regret.total(), 2020 - judged.opt as i64);
    // OPT lacks a single page at any time.
    let kept = judged.evictions.iter().filter(|one| one.kept.is_some()).count();
    assert!(kept as f64 / 2020.0 > 0.98, "{kept}");
    assert_eq!((judged.regret.young, judged.regret.outside), (0, 1));
    assert_eq!(judged.regret.once, judged.regret.total() as u64 - 1, "each page is referenced once");
}

#[test]
fn opt_regrets_nothing() {
    let measured: Vec<u32> = (0..5000u32).map(|n| n.wrapping_mul(2_654_435_761) >> 26).collect();
    let opening: Vec<u32> = (0..64).collect();
    let (judged, rows) = judged("opt", 64, 20, &opening, &measured);
    assert!(rows.len() > 1000 && judged.evictions.iter().all(|one| one.kept.is_none()));
    assert_eq!((judged.faults, judged.regret), (judged.opt, Regret::default()));
}

/// The age rank, OPT's set and the next reference, from a scan of every page and reference.
fn naive(
    opening: &[u32],
    measured: &[u32],
    present: &[bool],
    rows: &[(u32, u32)],
    frames: usize,
) -> Vec<(f64, bool, Option<u32>)> {
    let all = [opening, measured].concat();
    let next =
        |page: u32, from: usize| (from..all.len()).find(|&time| all[time] == page).unwrap_or(usize::MAX);
    let last = |page: u32, before: usize| (0..before).rfind(|&time| all[time] == page);
    let (mut opt, mut held, mut list): (Vec<u32>, Vec<bool>, Vec<_>) =
        (Vec::new(), present.to_vec(), Vec::new());
    for time in 0..=all.len() {
        if time >= opening.len() {
            let made = (time - opening.len()) as u32;
            let now: Vec<u32> = rows.iter().filter(|row| row.0 == made).map(|row| row.1).collect();
            for &page in &now {
                let age = last(page, time);
                let others: Vec<u32> =
                    (0..held.len() as u32).filter(|&other| held[other as usize] && other != page).collect();
                let younger = others.iter().filter(|&&other| last(other, time) > age).count();
                let rank = younger as f64 / others.len().max(1) as f64 * 100.0;
                let next = next(page, time);
                let next = (next != usize::MAX).then(|| (next - opening.len() + 1) as u32);
                list.push((rank, opt.contains(&page), next));
            }
            now.iter().for_each(|&page| held[page as usize] = false);
        }
        let Some(&page) = all.get(time) else { break };
        if !opt.contains(&page) {
            if opt.len() == frames {
                let far = (0..opt.len()).max_by_key(|&n| next(opt[n], time)).unwrap();
                opt.swap_remove(far);
            }
            opt.push(page);
        }
        if time >= opening.len() {
            held[page as usize] = true;
        }
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_parts_sum_to_the_faults_beyond_opt_and_pages_are_conserved(
        measured in proptest::collection::vec(0u32..24, 1..400),
        frames in 1u32..20,
        policy in "lru|clock|fifo|2q|arc|random",
    ) {
        let opening: Vec<u32> = (0..24).collect();
        let (judged, rows) = judged(&policy, 24, frames, &opening, &measured);
        prop_assert_eq!(judged.regret.total(), judged.faults as i64 - judged.opt as i64);
        prop_assert!(judged.regret.total() >= 0, "OPT has the fewest faults");
        prop_assert_eq!(judged.contradictions, 0);
        let [first, last] = judged.resident;
        prop_assert_eq!(first + judged.faults, last + rows.len() as u64);
        prop_assert_eq!(judged.samples.len(), judge::SAMPLES.min(measured.len()));
    }

    #[test]
    fn a_slow_judge_says_the_same(
        measured in proptest::collection::vec(0u32..16, 1..200),
        frames in 1u32..14,
        policy in "lru|clock|fifo|random",
    ) {
        let opening: Vec<u32> = (0..16).collect();
        let all = [&opening[..], &measured].concat();
        let kind: PolicyKind = policy.parse().unwrap();
        let (present, rows) =
            log_of(kind.build(16, frames, None).as_mut(), 16, &opening, &measured);
        let log = Log { pages: 16, opening: 16, references: &all, present: &present, rows: &of_rows(&rows), arrivals: None, frames, limit: frames, swap: SwapDevice::Disk, writes: false, written: false };
        let judged = judge(&log);
        let slow = naive(&opening, &measured, &present, &rows, frames as usize);
        prop_assert_eq!(judged.evictions.len(), slow.len());
        for (fast, slow) in judged.evictions.iter().zip(slow) {
            prop_assert!((fast.rank - slow.0).abs() < 1e-9, "{:?} {:?}", fast, slow);
            prop_assert_eq!(fast.next, slow.2);
            // OPT may drop any page that is not referenced again.
            if fast.next.is_some() {
                prop_assert_eq!(fast.kept.is_some(), slow.1);
            }
        }
    }

    #[test]
    fn a_log_that_contradicts_itself_is_judged_all_the_same(
        measured in proptest::collection::vec(0u32..8, 1..100),
        mut rows in proptest::collection::vec((0u32..100, 0u32..8), 0..50),
        present in proptest::collection::vec(proptest::bool::ANY, 8),
    ) {
        rows.sort_unstable();
        let log = Log { pages: 8, opening: 0, references: &measured, present: &present, rows: &of_rows(&rows), arrivals: None, frames: 3, limit: 3, swap: SwapDevice::Disk, writes: false, written: false };
        let judged = judge(&log);
        prop_assert_eq!(judged.regret.total(), judged.faults as i64 - judged.opt as i64);
    }
}

/// Read-ahead of two pages per fault into a FIFO of `frames` pages, with some evictions put off to
/// the next step, as kswapd makes them. Returns the evictions, the arrivals, the misses, and the
/// pages at the end.
fn read_ahead(
    measured: &[u32],
    pages: u32,
    frames: usize,
    late: &[bool],
) -> ([Vec<(u32, u32)>; 2], u64, usize) {
    let (mut held, mut rows, mut came, mut misses) =
        (std::collections::VecDeque::new(), Vec::new(), Vec::new(), 0);
    for (made, &page) in (1u32..).zip(measured) {
        // kswapd, before the reference.
        if late[made as usize % late.len()]
            && let Some(gone) = held.pop_front()
        {
            rows.push((made, gone));
        }
        if held.contains(&page) {
            continue;
        }
        misses += 1;
        for new in page..(page + 3).min(pages) {
            if !held.contains(&new) {
                if held.len() == frames {
                    rows.push((made, held.pop_front().unwrap()));
                }
                held.push_back(new);
                came.push((made, new));
            }
        }
    }
    ([rows, came], misses, held.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_parts_of_a_file_sum_to_the_misses_beyond_opt_and_pages_are_conserved(
        measured in proptest::collection::vec(0u32..24, 1..400),
        frames in 4usize..20,
        late in proptest::collection::vec(proptest::bool::ANY, 1..40),
    ) {
        let ([rows, came], misses, last) = read_ahead(&measured, 24, frames, &late);
        let all = of_rows(&rows);
        let log = Log { pages: 24, opening: 0, references: &measured, present: &[false; 24], rows: &all, arrivals: Some(&came), frames: frames as u32, limit: frames as u32, swap: SwapDevice::Disk, writes: false, written: false };
        let judged = judge(&log);
        prop_assert_eq!(judged.contradictions, 0);
        prop_assert_eq!((judged.faults, judged.arrived), (misses, came.len() as u64));
        prop_assert_eq!(judged.regret.total(), judged.faults as i64 - judged.opt as i64);
        prop_assert_eq!(judged.resident, [0, last as u64]);
        prop_assert_eq!(judged.evictions.len(), rows.len());
    }
}

/// A sequential scan with read-ahead: two of three references hit pages that OPT does not have, and
/// nothing is evicted before its use.
#[test]
fn hits_on_pages_that_were_read_ahead_are_counted_against_the_misses() {
    let measured: Vec<u32> = (0..60).collect();
    let ([rows, came], misses, _) = read_ahead(&measured, 60, 6, &[false]);
    let all = of_rows(&rows);
    let log = Log {
        pages: 60,
        opening: 0,
        references: &measured,
        present: &[false; 60],
        rows: &all,
        arrivals: Some(&came),
        frames: 6,
        limit: 6,
        swap: SwapDevice::Disk,
        writes: false,
        written: false,
    };
    let judged = judge(&log);
    assert_eq!((misses, judged.faults, judged.opt), (20, 20, 60));
    assert_eq!(judged.regret, Regret { ahead: 40, ..Regret::default() });
    assert!(judged.evictions.iter().all(|one| !one.unused && one.once));
}

/// In one reference page 1 comes, leaves and comes twice, next to the page that the reference
/// fetches.
#[test]
fn a_page_may_leave_and_come_several_times_in_a_step() {
    let came = [(1, 0), (1, 1), (1, 1), (1, 1), (2, 2)];
    let rows = of_rows(&[(1, 1), (1, 1), (2, 1), (2, 5)]);
    let log = Log {
        pages: 8,
        opening: 0,
        references: &[0, 2],
        present: &[false; 8],
        rows: &rows,
        arrivals: Some(&came),
        frames: 4,
        limit: 4,
        swap: SwapDevice::Disk,
        writes: false,
        written: false,
    };
    let judged = judge(&log);
    // Page 5 was never in memory.
    assert_eq!((judged.arrived, judged.evictions.len(), judged.contradictions), (5, 3, 1));
    assert_eq!((judged.faults, judged.resident), (2, [0, 2]));
}

/// A model's own run is most similar to that model, and its log is complete.
#[test]
fn a_models_run_is_most_like_itself() {
    use pagelab_experiment::experiments::Experiment;
    use pagelab_experiment::{Request, Target};
    use pagelab_model::target::Model;
    for model in ["lru", "clock", "2q", "linux-lru", "linux-mglru"] {
        let paging = Paging {
            pages: 2000,
            references: 30_000,
            pattern: "zipf:0.8".parse().unwrap(),
            evictions: true,
            ..Paging::default()
        };
        let setting =
            pagelab_experiment::Setting { memory: Some("1200p".parse().unwrap()), ..Default::default() };
        let mut seen = Observations::default();
        let request = Request::new(Experiment::Mapanon(paging.clone()), setting);
        Model::new(model, &[]).unwrap().plan(&request).unwrap().perform(&mut seen).unwrap();
        let judgement = of_observations(&paging, Backing::Anonymous, &seen).unwrap().unwrap();
        let complete = judgement.completeness;
        assert!(judgement.evictions > 1000 && complete.is_whole(), "{complete:?}");
        assert_eq!((complete.difference(), complete.unseen()), (Some(0), Some(0)), "{model} {complete:?}");
        assert_eq!(complete.contradictions, 0, "{model}");
        assert_eq!(judgement.regret.total(), judgement.faults as i64 - judgement.opt as i64);
        let likest = judgement.similar[0].clone();
        assert_eq!(likest.model, model, "{:?}", judgement.similar);
        assert_eq!((likest.jaccard, likest.agreed), (1.0, 1.0), "{model}");
        assert_eq!((likest.matched, likest.tau), (1.0, Some(1.0)), "{model}");
        assert_eq!(Similarity::by_order(&judgement.similar), Some(&likest), "{model}");
    }
}
