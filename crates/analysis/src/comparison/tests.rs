use super::*;
use pagelab_experiment::Experiment;
use pagelab_experiment::experiments::Command;
use pagelab_experiment::metrics;
use pagelab_experiment::observation::Metric;
use pagelab_reference::rng::Rng;

fn run(name: &str, metrics: &[(&str, Better, Vec<f64>)]) -> Run {
    let experiment = Experiment::Mapanon(Default::default());
    let mut run = crate::test_runs::run(name, experiment, "host", &[("time.elapsed", &metrics[0].2)]);
    for (n, repetition) in run.repetitions.iter_mut().enumerate() {
        let metric = |(name, better, values): &(&str, Better, Vec<f64>)| Metric {
            name: (*name).into(),
            unit: Unit::Count,
            better: *better,
            value: Some(values[n]),
        };
        repetition.observations.metrics = metrics.iter().map(metric).collect();
    }
    run
}

fn noisy(seed: u64, n: usize, level: f64) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    (0..n).map(|_| level * (1.0 + 0.05 * (0..6).map(|_| rng.unit() - 0.5).sum::<f64>())).collect()
}

fn one(better: Better, a: Vec<f64>, b: Vec<f64>) -> Line {
    compare(&run("a", &[("m", better, a)]), &run("b", &[("m", better, b)])).lines.remove(0)
}

#[test]
fn instructions_are_not_compared_with_nanoseconds() {
    let in_unit = |unit| {
        let mut run =
            run("a", &[("time.elapsed", Better::Lower, vec![1.0]), ("m", Better::Lower, vec![2.0])]);
        run.repetitions[0].observations.metrics[0].unit = unit;
        run
    };
    let compared = compare(&in_unit(Unit::Instructions), &in_unit(Unit::Nanoseconds));
    assert_eq!(compared.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["m"]);
    assert!(compared.caveats.contains(&Caveat::Units));
    assert_eq!(compare(&in_unit(Unit::Nanoseconds), &in_unit(Unit::Nanoseconds)).lines.len(), 2);
}

#[test]
fn a_real_change_has_its_direction() {
    let (a, b) = (noisy(1, 10, 100.0), noisy(2, 10, 130.0));
    assert_eq!(one(Better::Lower, a.clone(), b.clone()).verdict, Verdict::Worse);
    assert_eq!(one(Better::Higher, a.clone(), b.clone()).verdict, Verdict::Better);
    assert_eq!(one(Better::Neither, a.clone(), b.clone()).verdict, Verdict::Changed);
    let line = one(Better::Lower, b, a);
    assert_eq!(line.verdict, Verdict::Better);
    let (low, high) = line.interval.unwrap();
    assert!(low < line.change.unwrap() && line.change.unwrap() < high && high < 0.0);
}

#[test]
fn too_few_repetitions_say_how_many_could() {
    let line = one(Better::Lower, noisy(1, 3, 100.0), noisy(2, 3, 200.0));
    assert_eq!(line.verdict, Verdict::Inconclusive(4));
    assert_eq!(line.detectable, None, "no change at all can be detected");
    assert_eq!(one(Better::Lower, vec![100.0], vec![150.0]).verdict, Verdict::Inconclusive(4));
}

#[test]
fn sides_that_repeat_themselves_need_no_test() {
    let line = one(Better::Lower, vec![4647.6, 4647.6], vec![4680.0, 4680.1]);
    assert_eq!((line.verdict, line.p), (Verdict::Worse, None));
    assert_eq!(one(Better::Lower, vec![4647.6; 2], vec![4650.0; 2]).verdict, Verdict::NoDifference);
    assert_eq!(one(Better::Lower, vec![0.0; 2], vec![0.0; 2]).verdict, Verdict::NoDifference);
    assert_eq!(one(Better::Lower, vec![0.0; 2], vec![7.0; 2]).verdict, Verdict::Worse);
}

/// A machine that counts instructions tells what is more than its own repetitions are apart, from 0.05% on.
#[test]
fn instructions_are_compared_as_finely_as_they_repeat_themselves() {
    let side = |values: [f64; 2]| {
        let mut side = run("x", &[("m", Better::Lower, values.to_vec())]);
        for repetition in &mut side.repetitions {
            repetition.observations.metrics[0].unit = Unit::Instructions;
        }
        side
    };
    let against = |values| compare(&side([100_000.0, 100_000.0]), &side(values));
    let worse = against([100_200.0, 100_200.0]);
    assert_eq!(worse.lines[0].verdict, Verdict::Worse);
    assert_eq!(worse.worse_by(0.1, &["m"]).len(), 1, "a gate at 0.1% sees 0.2%");
    assert!(worse.worse_by(0.3, &["m"]).is_empty());
    assert!(!worse.untested(), "the table shows this verdict");
    assert_eq!(against([100_000.0; 2]).lines[0].verdict, Verdict::NoDifference);
    // What the repetitions themselves are apart is no change.
    assert_eq!(against([100_010.0, 100_040.0]).lines[0].verdict, Verdict::NoDifference);
    assert_eq!(against([100_070.0, 100_080.0]).lines[0].verdict, Verdict::Worse);
    assert_eq!(against([100_010.0, 100_070.0]).lines[0].verdict, Verdict::NoDifference);
}

fn counting(unit: Unit, name: &str, values: &[f64]) -> Run {
    // What says that the machine counts instructions.
    let mut side =
        run("x", &[("time.elapsed", Better::Lower, values.to_vec()), (name, Better::Lower, values.to_vec())]);
    for repetition in &mut side.repetitions {
        repetition.observations.metrics[0].unit = Unit::Instructions;
        repetition.observations.metrics[1].unit = unit;
    }
    side
}

/// One boot per side shows no spread of its own: what boots were seen apart by is the floor.
#[test]
fn single_counts_differ_beyond_what_boots_do() {
    let before = counting(Unit::Instructions, "m", &[100_000.0]);
    let against = |values: &[f64]| compare(&before, &counting(Unit::Instructions, "m", values));
    let verdict = |values: &[f64]| against(values).line("m").unwrap().verdict;
    assert_eq!(verdict(&[100_499.0]), Verdict::WithinBoots);
    assert_eq!(verdict(&[100_501.0]), Verdict::Worse);
    assert_eq!(verdict(&[99_501.0]), Verdict::WithinBoots);
    assert_eq!(verdict(&[99_499.0]), Verdict::Better);
    assert_eq!(verdict(&[100_000.0]), Verdict::WithinBoots);
    assert_eq!(verdict(&[101_000.0, 101_010.0]), Verdict::Worse, "two against one");
    let worse = against(&[101_000.0]);
    assert_eq!(worse.worse_by(0.9, &["m"]).len(), 1, "a gate acts on it");
    assert!(worse.worse_by(1.1, &["m"]).is_empty());
    assert!(worse.of_single_counts() && !worse.untested());
    let mut later = counting(Unit::Instructions, "m", &[101_000.0]);
    later.header.batch = "another command".into();
    assert_eq!(compare(&before, &later).caveats, [], "a drift of the machine changes no count");
    let line = worse.line("m").unwrap();
    assert_eq!((line.test.name(), line.p, line.interval, line.detectable), ("counts", None, None, None));
}

/// A kernel thread runs once more in one boot, and the longest reference includes a timer tick or
/// none.
#[test]
fn single_counts_of_boots_alone_are_no_change() {
    let one = |unit, name: &str, before: f64, after: f64| {
        let compared = compare(&counting(unit, name, &[before]), &counting(unit, name, &[after]));
        compared.line(name).unwrap().verdict
    };
    assert_eq!(one(Unit::Count, "m", 3.0, 5.0), Verdict::WithinBoots);
    assert_eq!(one(Unit::Count, "m", 0.0, 1.0), Verdict::WithinBoots);
    assert_eq!(one(Unit::Count, "m", 0.0, 30.0), Verdict::Worse);
    assert_eq!(one(Unit::Count, "m", 300.0, 330.0), Verdict::Worse);
    let longest = one(Unit::Instructions, metrics::ACCESS_MAX.name, 4000.0, 9600.0);
    assert!(matches!(longest, Verdict::Inconclusive(_)), "{longest:?}");
}

#[test]
fn a_regression_beyond_the_limit_is_found_and_one_within_is_not() {
    const BOTH: [&str; 2] = ["slow", "same"];
    let comparison = compare(
        &run(
            "a",
            &[("slow", Better::Lower, noisy(1, 10, 100.0)), ("same", Better::Lower, noisy(2, 10, 50.0))],
        ),
        &run(
            "b",
            &[("slow", Better::Lower, noisy(3, 10, 125.0)), ("same", Better::Lower, noisy(4, 10, 50.0))],
        ),
    );
    assert_eq!(
        comparison.worse_by(10.0, &BOTH).iter().map(|l| l.name.as_str()).collect::<Vec<_>>(),
        ["slow"]
    );
    assert!(comparison.worse_by(60.0, &BOTH).is_empty());
    assert!(comparison.worse_by(10.0, &["same"]).is_empty(), "another metric decides");
}

/// A against A, 400 times with seven metrics that are not primary: fewer than one in twenty may raise any alarm.
#[test]
fn false_alarms_are_rarer_than_one_in_twenty() {
    let side = |seed: u64| {
        let metrics: Vec<_> = ["a", "b", "c", "d", "e", "faults.major", "access.hit.p50"]
            .iter()
            .enumerate()
            .map(|(n, name)| (*name, Better::Lower, noisy(seed * 10 + n as u64, 8, 100.0)))
            .chain([("access.mean", Better::Lower, vec![1.0; 8])])
            .collect();
        run("x", &metrics)
    };
    let alarms = (0..400)
        .filter(|&i| {
            let comparison = compare(&side(2 * i + 1), &side(2 * i + 2));
            comparison.lines.iter().any(|l| !matches!(l.verdict, Verdict::NoDifference))
        })
        .count();
    assert!(alarms <= 20, "{alarms} of 400");
}

#[test]
fn differences_that_spoil_are_named() {
    let a = run("a", &[("m", Better::Lower, noisy(1, 6, 1.0))]);
    let mut b = run("b", &[("m", Better::Lower, noisy(2, 6, 1.0))]);
    b.header.batch = "other".into();
    for r in &mut b.repetitions {
        r.observations.environment.insert("steal.share".into(), "0.08".into());
        r.observations.environment.insert("page.size".into(), "16384".into());
        r.observations.environment.insert("thp.enabled".into(), "always".into());
    }
    let mut a = a;
    a.repetitions[0].observations.environment.insert("thp.enabled".into(), "never".into());
    a.repetitions[0].observations.environment.insert("page.size".into(), "4096".into());
    let caveats = compare(&a, &b).caveats;
    for wanted in [
        Caveat::Environment("page.size", "4096".into(), "16384".into()),
        Caveat::Environment("thp.enabled", "never".into(), "always".into()),
        Caveat::NotInterleaved,
        Caveat::Steal("b".into(), 0.08),
    ] {
        assert!(caveats.contains(&wanted), "{wanted:?}: {caveats:?}");
    }
}

fn modelled(mut run: Run) -> Run {
    run.header.target = "model:lru".parse().unwrap();
    run.header.deterministic = true;
    run
}

#[test]
fn deterministic_runs_differ_exactly() {
    let of = |value: f64| modelled(run("m", &[("m", Better::Lower, vec![value])]));
    let compared = compare(&of(1000.0), &of(1001.0));
    let line = &compared.lines[0];
    assert!(compared.exact);
    assert_eq!((line.p, line.interval, line.detectable, line.verdict), (None, None, None, Verdict::Worse));
    assert_eq!(compared.repetitions_needed(), None);
    assert_eq!(compare(&of(7.0), &of(7.0)).lines[0].verdict, Verdict::Equal);
    let mut later = of(7.0);
    later.header.batch = "later".into();
    assert_eq!(compare(&of(7.0), &later).caveats, []);
}

#[test]
fn a_deterministic_side_is_one_figure_however_often_it_was_performed() {
    let host = |n| run("host", &[("m", Better::Lower, noisy(1, n, 200.0))]);
    let model = |n| modelled(run("model", &[("m", Better::Lower, vec![100.0; n])]));
    for repeated in [1, 8] {
        let line = compare(&host(8), &model(repeated)).lines.remove(0);
        assert_eq!(line.verdict, Verdict::Better);
        assert!((line.p.unwrap() - 2.0 / 256.0).abs() < 1e-12, "{line:?}");
    }
    assert_eq!(compare(&host(3), &model(8)).lines[0].verdict, Verdict::Inconclusive(6));
    assert_eq!(compare(&model(8), &host(8)).lines[0].verdict, Verdict::Worse);
}

#[test]
fn what_can_be_detected_is_the_same_either_way_round() {
    let (a, b) = (noisy(1, 8, 100.0), noisy(2, 12, 300.0));
    let there = one(Better::Lower, a.clone(), b.clone()).detectable.unwrap();
    let back = one(Better::Lower, b.clone(), a.clone()).detectable.unwrap();
    assert!((there - back).abs() < 1e-12 && there > 1.0, "{there} {back}");
    // Noise of either side counts, and a side of which half is alike is not without noise.
    let loud: Vec<f64> = b.iter().map(|v| 300.0 + 3.0 * (v - 300.0)).collect();
    assert!(one(Better::Lower, a.clone(), loud).detectable.unwrap() > there);
    let tied = vec![100.0, 100.0, 100.0, 100.0, 100.0, 150.0, 50.0];
    let turned = [&tied[2..], &tied[..2]].concat();
    assert!(one(Better::Lower, tied, turned).detectable.unwrap() > 1.1);
}

#[test]
fn no_change_is_never_inconclusive() {
    let line = one(Better::Lower, vec![100.0, 90.0, 110.0], vec![100.04, 95.0, 104.0]);
    assert_eq!(line.verdict, Verdict::NoDifference);
    assert!(matches!(one(Better::Lower, vec![100.0], vec![101.0]).verdict, Verdict::Inconclusive(_)));
}

#[test]
fn a_count_cannot_get_less_by_more_than_all_of_it() {
    let line = one(Better::Lower, vec![77.0, 60.0, 229.0, 80.0, 70.0, 75.0], vec![0.0; 6]);
    let (low, high) = line.interval.unwrap();
    assert_eq!((line.change, low), (Some(-1.0), -1.0), "{high}");
    let line = one(Better::Lower, vec![1.0, -2.0, 3.0, 1.0, 1.0, 2.0], vec![-9.0; 6]);
    assert!(line.change.unwrap() < -1.0, "a drift can");
}

#[test]
fn the_primary_metric_is_tested_by_itself() {
    let side = |name: &str, level: f64| {
        let metrics: Vec<_> = ["access.mean", "b", "c", "d", "e", "f"]
            .iter()
            .enumerate()
            .map(|(n, name)| (*name, Better::Lower, noisy(n as u64, 4, level)))
            .collect();
        run(name, &metrics)
    };
    let compared = compare(&side("a", 100.0), &side("b", 200.0));
    assert_eq!(compared.main().unwrap().verdict, Verdict::Worse);
    assert_eq!(compared.line("b").unwrap().verdict, Verdict::Inconclusive(5));
}

#[test]
fn cpu_time_decides_for_a_program_where_elapsed_time_hides_the_change() {
    let side = |name: &str, elapsed: f64, cpu: f64, seed: u64| {
        let noise = |seed, share: f64, level: f64| -> Vec<f64> {
            noisy(seed, 8, 1.0).iter().map(|value| level * (1.0 + share * (value - 1.0))).collect()
        };
        let command = Experiment::Command(Command::new(vec!["sort".to_owned()]));
        let (elapsed, cpu) = (noise(seed, 6.0, elapsed), noise(seed + 1, 0.2, cpu));
        crate::test_runs::run(name, command, "host", &[("time.elapsed", &elapsed), ("time.cpu", &cpu)])
    };
    let compared = compare(&side("a", 1e9, 0.5e9, 1), &side("b", 1e9, 0.55e9, 3));
    assert_eq!(compared.deciding, ["time.elapsed", "time.cpu"]);
    assert!(!compared.line("time.elapsed").unwrap().verdict.differs());
    let main = compared.main().unwrap();
    assert_eq!((main.name.as_str(), main.verdict), ("time.cpu", Verdict::Worse));
    let deciding: Vec<&str> = compared.deciding.iter().map(String::as_str).collect();
    assert_eq!(compared.worse_by(5.0, &deciding).len(), 1, "and a gate sees it");
    let slower = compare(&side("a", 1e9, 0.5e9, 1), &side("b", 4e9, 0.5e9, 3));
    assert_eq!(slower.main().unwrap().name, "time.elapsed", "waiting is no CPU time");
}

#[test]
fn the_first_headline_metric_decides_where_the_primary_one_was_not_measured() {
    let side = |name: &str, metric: &str, level: f64| {
        let values = noisy(level as u64, 8, level);
        crate::test_runs::run(name, Experiment::Latency(Default::default()), "host", &[(metric, &values)])
    };
    let compared = compare(&side("a", "latency.tlb-miss", 100.0), &side("b", "latency.tlb-miss", 200.0));
    assert_eq!(compared.deciding, ["latency.tlb-miss"]);
    assert_eq!(compared.not_measured.as_deref(), Some("latency.dram"));
    assert_eq!(compared.main().unwrap().verdict, Verdict::Worse);
    let neither = compare(&side("a", "latency.l1", 1.0), &side("b", "latency.l1", 2.0));
    assert_eq!(
        (neither.deciding, neither.not_measured.as_deref()),
        (vec!["latency.dram".to_owned()], Some("latency.dram"))
    );
}

/// The same with each of four kinds of noise, in pairs and not: the change that is said to be detectable is found four
/// times in five by a comparison made once more (80 times each: 4.5% standard error).
#[test]
fn minimum_detectable_change_is_found_in_80_percent() {
    type Noise = fn(&mut Rng, f64) -> f64;
    let normal = |rng: &mut Rng| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0;
    let even: Noise = |rng, _| 0.05 * ((0..12).map(|_| rng.unit()).sum::<f64>() - 6.0);
    let outliers: Noise =
        |rng, _| if rng.unit() < 0.1 { 0.2 * rng.unit() } else { 0.04 * (rng.unit() - 0.5) };
    // Two levels further apart than this are steps of the power, at which it cannot be told so well.
    let two_levels: Noise = |rng, _| 0.2 * (rng.unit() - 0.5) + if rng.unit() < 0.5 { 0.2 } else { 0.0 };
    let drift: Noise = |rng, shared| shared + 0.02 * (rng.unit() - 0.5);
    for (name, noise) in
        [("even", even), ("outliers", outliers), ("two levels", two_levels), ("drift", drift)]
    {
        for batch in ["b", "c"] {
            let mut rng = Rng::new(11);
            let mut sides = |factor: f64| {
                let mut shared = 0.0;
                let pairs = (0..8).map(|_| {
                    shared += 0.1 * normal(&mut rng);
                    (noise(&mut rng, shared).exp(), noise(&mut rng, shared).exp() * factor)
                });
                let (a, b): (Vec<f64>, Vec<f64>) = pairs.unzip();
                let mut b = run("b", &[("access.mean", Better::Lower, b)]);
                b.header.batch = batch.into();
                compare(&run("a", &[("access.mean", Better::Lower, a)]), &b).lines.remove(0)
            };
            let found = (0..80).filter(|_| {
                let line = sides(1.0);
                let factor = line.detectable.unwrap();
                sides(factor).verdict == Verdict::Worse
            });
            let found = found.count();
            assert!((55..=74).contains(&found), "{name}, {batch}: {found} of 80");
        }
    }
}

#[test]
fn what_slows_both_sides_of_a_pair_counts_for_neither() {
    let levels = [100.0, 140.0, 90.0, 200.0, 120.0, 160.0, 110.0, 180.0];
    let a: Vec<f64> =
        levels.iter().zip(noisy(1, 8, 0.1)).map(|(level, noise)| level * (1.0 + noise)).collect();
    let b: Vec<f64> =
        levels.iter().zip(noisy(2, 8, 0.1)).map(|(level, noise)| level * (1.05 + noise)).collect();
    let side = |values: &[f64], batch: &str| {
        let mut side = run("x", &[("access.mean", Better::Lower, values.to_vec())]);
        side.header.batch = batch.into();
        side
    };
    let line = compare(&side(&a, "b"), &side(&b, "b")).lines.remove(0);
    assert_eq!((line.test, line.verdict), (Test::Pairs, Verdict::Worse));
    let (low, high) = line.interval.unwrap();
    assert!(
        low > 0.02 && high < 0.07 && low < line.change.unwrap() && line.change.unwrap() < high,
        "{line:?}"
    );
    let line = compare(&side(&a, "b"), &side(&b, "c")).lines.remove(0);
    assert_eq!((line.test, line.verdict), (Test::Ranks, Verdict::NoDifference));
    // A repetition that only one side has leaves no pairs.
    let line = compare(&side(&a, "b"), &side(&b[..7], "b")).lines.remove(0);
    assert_eq!(line.test, Test::Ranks);
}

#[test]
fn headline_metrics_are_not_corrected_for_the_rest() {
    let side = |name: &str, level: f64| {
        let rest: Vec<String> = (0..20).map(|n| format!("rest.{n}")).collect();
        let primary = ("access.mean", Better::Lower, vec![1.0; 8]);
        let mut metrics = vec![primary, ("access.hit.p50", Better::Lower, noisy(91, 8, level))];
        metrics.extend(rest.iter().map(|name| (name.as_str(), Better::Lower, noisy(7, 8, level))));
        run(name, &metrics)
    };
    let compared = compare(&side("a", 100.0), &side("b", 120.0));
    let line = compared.line("access.hit.p50").unwrap();
    assert!((line.p.unwrap() - 2.0 / 256.0 / HEADLINE).abs() < 1e-12, "{line:?}");
    let line = compared.line("rest.3").unwrap();
    // So few pairs cannot reach a twentieth of the rest's level; their ranks can.
    assert_eq!(line.test, Test::Ranks);
    assert!((line.p.unwrap() - 20.0 * 2.0 / 12870.0 / (1.0 - HEADLINE)).abs() < 1e-9, "{line:?}");
}

#[test]
fn all_headline_metrics_are_corrected_together_and_others_that_got_worse_are_known() {
    let metrics = |level: f64| {
        let of = |seed, level| noisy(seed, 6, level);
        run(
            "x",
            &[
                ("access.mean", Better::Lower, of(1, 100.0)),
                ("faults.major", Better::Lower, of(2, 100.0 * level)),
                ("time.elapsed", Better::Lower, of(3, 100.0 * level)),
            ],
        )
    };
    let (a, b) = (metrics(1.0), metrics(1.5));
    let found = compare(&a, &b);
    let unjudged = |found: &Comparison, judged: &[&str]| -> Vec<String> {
        found.unjudged_worse_by(5.0, judged).iter().map(|line| line.name.clone()).collect()
    };
    assert!(found.worse_by(5.0, &["access.mean"]).is_empty());
    assert_eq!(unjudged(&found, &["access.mean"]).len(), 2, "{:?}", found.lines);
    assert_eq!(unjudged(&found, &["faults.major", "time.elapsed"]), [""; 0]);
    let all = headlines_against_first(&[&a, &b]).remove(0);
    let names: Vec<&str> = all.lines.iter().map(|line| line.name.as_str()).collect();
    assert_eq!(names, ["access.mean", "faults.major"]);
    let p = |c: &Comparison, name: &str| c.line(name).unwrap().p.unwrap();
    let alone = compare_by(&a, &b, &["access.mean".to_owned()]);
    assert!(p(&all, "access.mean") >= p(&alone, "access.mean"), "corrected with the others");
    assert_eq!(all.worse_by(5.0, &names).len(), 1);
}
