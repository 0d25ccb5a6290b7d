//! Policies that page real memory: their misses are the model's, and what was written comes back.

use std::process::ExitCode;

use pagelab_experiment::experiments::{Experiment, Paging, Touch};
use pagelab_experiment::{Observations, Request, Setting, Target};
use pagelab_kernel::userfault::Paged;
use pagelab_kernel::waiting::Bell;
use pagelab_model::Model;
use pagelab_model::policy::PolicyKind;
use pagelab_model::policy::opt::NextUse;
use pagelab_pager::engine::Engine;
use pagelab_pager::mapping::Shared;
use pagelab_pager::policy::{Chooser, refusal};
use pagelab_pager::target::Pager;
use pagelab_reference::rng::Rng;
use pagelab_testing::{USERFAULT, tests};

fn main() -> ExitCode {
    pagelab_testing::run(tests! {
        with_every_reference_visible_the_misses_are_the_models: USERFAULT;
        unhidden_pages_take_no_fault: USERFAULT;
        written_pages_read_back: USERFAULT;
        a_fault_that_cannot_be_resolved_gets_zeroes: USERFAULT;
    })
}

fn a_fault_that_cannot_be_resolved_gets_zeroes() {
    for panics in [false, true] {
        let (paged, stop) = (Paged::new(3).unwrap(), Bell::new().unwrap());
        let mut error = None;
        let resolve = |page: u32| {
            assert!(!panics, "not page {page}");
            Err(std::io::Error::other("no such page"))
        };
        std::thread::scope(|scope| {
            scope.spawn(|| paged.serve(&stop, resolve, |why| error = Some(why)));
            assert_eq!([2, 0, 1].map(|page| paged.word(page, 0)), [0; 3]);
            stop.ring();
        });
        assert!(error.is_some());
    }
}

fn performed(target: &dyn Target, paging: &Paging, frames: u32) -> Observations {
    let setting = Setting { memory: Some(format!("{frames}p").parse().unwrap()), ..Setting::default() };
    let request = Request::new(Experiment::Mapanon(paging.clone()), setting);
    let mut seen = Observations::default();
    target.plan(&request).unwrap().perform(&mut seen).unwrap();
    seen
}

fn pager(name: &str, hidden: &str) -> Pager {
    Pager::new(name, &[("hidden".to_owned(), hidden.to_owned())]).unwrap()
}

/// The policies that can page.
fn policies() -> impl Iterator<Item = &'static str> {
    let all = PolicyKind::catalogue().iter().map(|one| one.form);
    all.filter(|form| form.parse().is_ok_and(|kind| refusal(&kind).is_none()))
}

fn with_every_reference_visible_the_misses_are_the_models() {
    let mut runs = 0;
    for policy in policies() {
        for (pattern, touch, frames, warm) in [
            ("zipf:0.9", Touch::Write, 60, false),
            ("smooth-sin", Touch::Word, 100, true),
            ("uniform", Touch::Page, 7, false),
        ] {
            let pattern = pattern.parse().unwrap();
            let paging = Paging { pages: 200, references: 2000, pattern, touch, warm, ..Paging::default() };
            let real = performed(&pager(policy, "1"), &paging, frames);
            let model = performed(&Model::new(policy, &[]).unwrap(), &paging, frames);
            let of = |seen: &Observations, name| seen.metric_named(name).unwrap();
            let misses = of(&model, "faults.major");
            assert_eq!(of(&real, "faults.major"), misses, "{policy}, {:?}, {frames}", paging.pattern);
            assert!(misses > 50.0, "{policy}: {misses} misses show little");
            assert_eq!(of(&real, "pager.visible"), 1.0, "{policy}");
            assert_eq!(of(&real, "faults.minor") + misses, 2000.0, "{policy}: every reference is a fault");
            assert_eq!(of(&real, "pages.present"), f64::from(frames), "{policy}");
            // The model of OPT does not say which pages it has.
            let present = &real.pages.last().unwrap().present;
            assert!(model.pages.last().is_none_or(|model| model.present == *present), "{policy}");
            runs += 1;
        }
    }
    assert!(runs > 75, "{runs}");
}

fn unhidden_pages_take_no_fault() {
    let paging =
        Paging { pages: 200, references: 5000, pattern: "zipf:0.9".parse().unwrap(), ..Paging::default() };
    let [all, some, misses] = ["1", "0.5", "0"].map(|hidden| performed(&pager("lru", hidden), &paging, 80));
    let of = |seen: &Observations, name| seen.metric_named(name).unwrap();
    assert!(of(&some, "pager.visible") < 1.0 && of(&some, "faults.minor") > 0.0);
    assert_eq!(of(&misses, "faults.minor"), 0.0, "nothing is hidden");
    let share = of(&misses, "faults.major") / 5000.0;
    assert!((of(&misses, "pager.visible") - share).abs() < 1e-9, "the policy sees only misses");
    // What sees misses alone orders pages by when they came in.
    let fifo = performed(&Model::new("fifo", &[]).unwrap(), &paging, 80);
    assert_eq!(of(&misses, "faults.major"), of(&fifo, "faults.major"));
    assert!(of(&all, "faults.major") < of(&some, "faults.major"));
    assert!(of(&some, "faults.major") < of(&misses, "faults.major"));
}

/// Words at random places of random pages, against a copy that nobody pages.
fn written_pages_read_back() {
    const PAGES: usize = 50;
    const STEPS: usize = 6000;
    for (n, (policy, frames, window)) in [
        ("lru", 1, 1),
        ("lru", 20, 1),
        ("fifo", 5, 5),
        ("clock", 30, 10),
        ("arc", 10, 4),
        ("s3-fifo", 25, 20),
        ("random", 49, 49),
        ("opt", 12, 0),
    ]
    .into_iter()
    .enumerate()
    {
        let kind: PolicyKind = policy.parse().unwrap();
        let mut rng = Rng::new(n as u64);
        let steps: Vec<(u32, usize, Option<u64>)> = (0..STEPS)
            .map(|_| {
                // One in eight writes zeroes, so that some pages are empty again.
                let value = [0, rng.next_u64(), 1, rng.next_u64()][rng.below(4) as usize];
                let write = (rng.below(2) == 0).then_some(value);
                (rng.below(PAGES as u64) as u32, rng.below(512) as usize, write)
            })
            .collect();
        let stream: Vec<u32> = steps.iter().map(|step| step.0).collect();
        let future = NextUse::of(PAGES as u32, &stream);
        let paged = Paged::new(PAGES).unwrap();
        let chooser = Chooser::new(&kind, PAGES as u32, frames, Some(&future));
        let engine = Engine::new(&paged, PAGES as u32, frames, window, chooser).unwrap();
        let shared = Shared::new(engine, &paged).unwrap();
        let mut copy = vec![[0u64; 512]; PAGES];
        std::thread::scope(|scope| {
            let _stop = shared.stop();
            scope.spawn(|| shared.serve());
            for &(page, word, write) in &steps {
                let known = &mut copy[page as usize][word];
                match write {
                    Some(value) => {
                        paged.set_word(page, word, value);
                        *known = value;
                    }
                    None => assert_eq!(paged.word(page, word), *known, "{policy}: page {page}, word {word}"),
                }
                if window == 0 {
                    shared.with(Engine::hide_all).unwrap();
                }
                shared.check().unwrap();
            }
            if policy == "opt" {
                return;
            }
            for page in 0..PAGES as u32 {
                let got: Vec<u64> = (0..512).map(|word| paged.word(page, word)).collect();
                assert_eq!(got, copy[page as usize], "{policy}: page {page}");
            }
        });
        let tally = shared.tally();
        assert!(tally.stored > 100 && tally.fetched > 100, "{policy}: {tally:?}");
        assert!(shared.with(|engine| engine.resident()) <= u64::from(frames));
    }
}
