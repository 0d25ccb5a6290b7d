//! What runs say, in words and as JSON: a golden text of each kind of finding and comparison.

use pagelab_analysis::comparison::compare;
use pagelab_analysis::finding::{Finding, MeasuredLimit, What};
use pagelab_analysis::findings::{assess, assess_sweep};
use pagelab_analysis::least_memory::{Effort, Goal, Next, Search};
use pagelab_experiment::MetricId;
use pagelab_experiment::experiments::{
    Clock, Command, Faultscale, Fileread, Forkstorm, Latency, Paging, Reclaim, Recording, Restore, Seqread,
    Vmtest,
};
use pagelab_experiment::observation::{Column, Level, Note, Observations, Table, Unit, Values};
use pagelab_experiment::{Experiment, Failure, Outcome, Repetition, Run, RunHeader, Setting};
use pagelab_report::comparisons::{self, Options};
use pagelab_report::text::Style;
use pagelab_report::{findings, ladder, runs};

const STYLE: Style = Style { color: false, width: 100 };

/// A run whose repetitions measured these figures, with these tables.
fn run(
    name: &str,
    experiment: Experiment,
    target: &str,
    metrics: &[(&str, &[f64])],
    tables: &[Table],
) -> Run {
    let count = metrics.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
    let repetition = |n: usize| Repetition {
        number: n as u32 + 1,
        started: "2026-01-02T03:04:05Z".into(),
        outcome: Outcome::Done,
        observations: Observations {
            metrics: metrics
                .iter()
                .map(|(name, values)| MetricId::find(name).unwrap().figure(values.get(n).copied()))
                .collect(),
            tables: tables.to_vec(),
            ..Observations::default()
        },
    };
    let mut setting = Setting::default();
    setting.apply("memory", "64M").unwrap();
    Run {
        id: 1,
        header: RunHeader {
            name: name.into(),
            batch: "b".into(),
            experiment,
            target: target.parse().unwrap(),
            setting,
            conditions: Vec::new(),
            deterministic: target.starts_with("model:"),
            started: "2026-01-02T03:04:05Z".into(),
            pagelab: "0".into(),
        },
        repetitions: (0..count).map(repetition).collect(),
    }
}

fn paging(pages: u64, references: u64) -> Experiment {
    Experiment::Mapanon(Paging {
        pages,
        references,
        pattern: "smooth-sin-random".parse().unwrap(),
        ..Paging::default()
    })
}

fn texts(name: &str, values: &[&str]) -> Column {
    let values = Values::Text(values.iter().map(|&v| v.to_owned()).collect());
    Column { name: name.into(), unit: None, values }
}

fn numbers(name: &str, unit: Unit, values: &[f64]) -> Column {
    let values = Values::Number(values.iter().map(|&v| Some(v)).collect());
    Column { name: name.into(), unit: Some(unit), values }
}

fn table(name: &str, columns: Vec<Column>) -> Table {
    Table { name: name.into(), columns }
}

fn fits() -> Run {
    let metrics: [(&str, &[f64]); 4] = [
        ("access.mean", &[586.0, 580.0, 592.0]),
        ("access.hit.p50", &[581.0, 580.0, 582.0]),
        ("faults.major", &[0.0; 3]),
        ("faults.minor", &[0.0; 3]),
    ];
    run("fits", paging(4000, 10_000), "host", &metrics, &[])
}

fn exceeds() -> Run {
    let metrics: [(&str, &[f64]); 10] = [
        ("access.mean", &[20_000.0]),
        ("access.hit.p50", &[941.0]),
        ("access.major.p50", &[48_700.0]),
        ("access.major.mean", &[83_600.0]),
        ("access.minor.p50", &[4110.0]),
        ("access.minor.mean", &[5000.0]),
        ("faults.major", &[5000.0]),
        ("faults.minor", &[83.0]),
        ("io.read", &[5000.0 * 5.5 * 1_048_576.0]),
        ("pages.present", &[2000.0]),
    ];
    run("random", paging(3000, 10_000), "host", &metrics, &[])
}

/// Under thp=always.
fn huge() -> Run {
    let metrics: [(&str, &[f64]); 5] = [
        ("access.mean", &[300.0]),
        ("huge.coverage.before", &[0.96]),
        ("huge.coverage.after", &[0.5]),
        ("huge.before", &[0.96 * 64.0 * 1_048_576.0]),
        ("faults.populate", &[686.0]),
    ];
    let counters = table(
        "huge-pages",
        vec![
            texts("counter", &["thp_fault_alloc", "thp_split_page"]),
            texts("what", &["huge pages given at a fault", "huge pages split"]),
            numbers("populating", Unit::Count, &[31.0, 0.0]),
            numbers("references", Unit::Count, &[1.0, 15.0]),
        ],
    );
    run("huge", paging(16_384, 10_000), "host", &metrics, &[counters])
}

/// One run of each experiment.
fn each() -> Vec<Run> {
    let sizes: Vec<f64> = (0..12).map(|n| 65536.0 * 2f64.powi(n)).collect();
    let vmtest = table(
        "vmtest",
        vec![
            numbers("size", Unit::Bytes, &sizes),
            numbers(
                "access.mean",
                Unit::Nanoseconds,
                &sizes.iter().map(|&s| if s > 1e6 { 30.0 } else { 2.0 }).collect::<Vec<_>>(),
            ),
            numbers("faults.major", Unit::Count, &[0.0; 12]),
            numbers("reads", Unit::Count, &[1e6; 12]),
        ],
    );
    let operations = table(
        "operations",
        vec![
            texts("operation", &["exceptions:page_fault_user", "kmem:mm_page_alloc"]),
            numbers("each.fork", Unit::Count, &[42.0, 55.4]),
        ],
    );
    let profile = table(
        "profile",
        vec![texts("function", &["unmap_page_range"]), numbers("share", Unit::Share, &[0.13])],
    );
    let workers = [1.0, 2.0, 3.0, 4.0, 6.0, 8.0];
    let faultscale = table(
        "faultscale",
        vec![
            numbers("workers", Unit::Count, &workers),
            numbers("throughput", Unit::PerSecond, &[1e5, 1.8e5, 2.4e5, 2.8e5, 2.9e5, 2.6e5]),
        ],
    );
    let locks = table("locks", vec![texts("lock", &["mmap_lock"]), numbers("workers", Unit::Count, &[8.0])]);
    let seqread = table(
        "seqread",
        vec![
            texts("mode", &["buffered", "direct"]),
            numbers("transfer", Unit::Bytes, &[65536.0, 1_048_576.0]),
            numbers("bandwidth", Unit::BytesPerSecond, &[2.5e9, 1.2e8]),
            numbers("device.transfer", Unit::Bytes, &[131_072.0, 1_048_576.0]),
        ],
    );
    let fileread =
        table("fileread", vec![texts("case", &["beyond nowait"]), numbers("hits", Unit::Share, &[0.61])]);
    let counters = table(
        "counters",
        vec![
            numbers("time", Unit::Nanoseconds, &[0.0, 1e9, 2e9]),
            numbers("vmstat:0:vm:pgfault", Unit::PerSecond, &[10.0, 30.0, 20.0]),
            numbers("vmstat:0:vm:oom_kill", Unit::PerSecond, &[0.0; 3]),
        ],
    );
    let command = Command::new(["sort".to_owned(), "big.txt".to_owned()].to_vec());
    let scale = Faultscale { workers: vec![1, 2, 3, 4, 6, 8], ..Faultscale::default() };
    vec![
        fits(),
        exceeds(),
        run("reads", Experiment::Vmtest(Vmtest::default()), "host", &[], &[vmtest]),
        run(
            "forks",
            Experiment::Forkstorm(Forkstorm::default()),
            "host",
            &[
                ("forks.rate", &[3927.0, 3900.0]),
                ("fork.cost", &[161_000.0; 2]),
                ("exit.cost", &[351_000.0; 2]),
            ],
            &[operations, profile],
        ),
        run("scale", Experiment::Faultscale(scale), "host", &[("state.lock", &[0.21])], &[faultscale, locks]),
        run(
            "files",
            Experiment::Fileread(Fileread::default()),
            "host",
            &[("read.cpu.small", &[800.0]), ("read.cpu.large", &[900.0]), ("read.cpu.beyond", &[2400.0])],
            &[fileread],
        ),
        run("sequential", Experiment::Seqread(Seqread::default()), "host", &[], &[seqread]),
        run(
            "clock",
            Experiment::Clock(Clock::default()),
            "host",
            &[
                ("clock.agreement", &[1.0]),
                ("clock.step.worst", &[32.0]),
                ("clock.drift.worst", &[1e-7]),
                ("clock.skew.bound", &[265.0]),
                ("clock.steal", &[0.002]),
            ],
            &[],
        ),
        run(
            "sort",
            Experiment::Command(command),
            "host",
            &[
                ("time.elapsed", &[1.2e9, 1.1e9, 1.3e9]),
                ("time.user", &[8e8; 3]),
                ("time.system", &[1e8; 3]),
                ("memory.peak", &[3e7; 3]),
                ("faults.major", &[12.0; 3]),
                ("swap.out", &[900.0; 3]),
                ("command.status", &[0.0; 3]),
                ("state.user", &[0.8; 3]),
                ("state.fault", &[0.2; 3]),
            ],
            &[],
        ),
        run(
            "latency",
            Experiment::Latency(Latency::default()),
            "host",
            &[
                ("latency.dram", &[90.0, 80.0, 95.0]),
                ("latency.l1", &[1.04; 3]),
                ("latency.minor-fault", &[510.0; 3]),
            ],
            &[],
        ),
        run("watch", Experiment::Record(Recording::default()), "host", &[], &[counters]),
    ]
}

#[test]
fn every_finding_in_words() {
    let mut runs = each();
    runs[1].repetitions[0].observations.notes.push(Note { level: Level::Warning, text: "steal 3%".into() });
    let failed = Repetition {
        number: 2,
        outcome: Outcome::Failed(Failure::out_of_memory(1 << 20)),
        ..runs[1].repetitions[0].clone()
    };
    runs[1].repetitions.push(failed);
    runs.push(huge());
    let list: Vec<&Run> = runs.iter().collect();
    insta::assert_snapshot!(runs::verdict(&assess(&list).findings, &STYLE));
}

#[test]
fn a_restore_in_words() {
    let figures = [
        ("restore.answer", &[4.1e7, 4e7, 4.2e7][..]),
        ("restore.answer.recorded", &[1.8e7; 3]),
        ("restore.answer.sequential", &[4.5e7; 3]),
        ("restore.vain.recorded", &[0.12; 3]),
        ("restore.vain.sequential", &[0.75; 3]),
    ];
    let list = [run("r", Experiment::Restore(Restore::default()), "host", &figures, &[])];
    let found = assess(&list.iter().collect::<Vec<_>>()).findings;
    let line = findings::line(&found[0]);
    for part in [
        "first answer after 41",
        "without prefetching; after 18",
        "the recording prefetched (-56.1%, 12",
        "start prefetched (+9.8%, 75",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
}

#[test]
fn findings_as_json() {
    let runs = [fits(), exceeds()];
    let list: Vec<&Run> = runs.iter().collect();
    let assessment = assess(&list);
    let json: Vec<_> = assessment.findings.iter().map(runs::finding_json).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&json).unwrap());
    // Whatever stands in a sentence stands in the data.
    for (finding, json) in assessment.findings.iter().zip(&json) {
        assert_eq!(json["text"], findings::text(finding));
        assert_eq!(json["figures"].as_array().unwrap().len(), finding.figures.len());
    }
}

#[test]
fn hot_pages_that_read_ahead_brought_back_are_no_faults_but_named() {
    let measured = |mistakes: f64| {
        let metrics: &[(&str, &[f64])] = &[
            ("reclaim.reclaimed", &[4e6]),
            ("reclaim.pages", &[1024.0]),
            ("reclaim.cold", &[0.5]),
            ("reclaim.mistakes", &[mistakes]),
        ];
        let run = run("r", Experiment::Reclaim(Reclaim::default()), "host", metrics, &[]);
        findings::text(&assess(&[&run]).findings[0])
    };
    let text = measured(65.0);
    assert!(text.contains("512 of its pages were paged out; 447 came back by read-ahead"), "{text}");
    let text = measured(512.0);
    assert!(text.contains("512 major faults on the hot part;"), "{text}");
}

#[test]
fn a_load_is_no_figure_in_instructions() {
    let mut run = run(
        "l",
        Experiment::Latency(Latency::default()),
        "kernel:k,accel=icount",
        &[("latency.minor-fault", &[1200.0])],
        &[],
    );
    run.repetitions[0].observations.metrics[0].unit = Unit::Instructions;
    let text = findings::text(&assess(&[&run]).findings[0]);
    assert!(text.contains("do not show in instructions: minor fault 1,200 instr"), "{text}");
}

#[test]
fn the_ladder_in_words() {
    let mut exceeds = exceeds();
    exceeds.repetitions[0].observations.environment.insert("swap.kind".into(), "zram".into());
    let file = Experiment::Mapfile(Paging::default());
    let faults: &[(&str, &[f64])] =
        &[("access.major.p50", &[6.8e6, 5e6, 9e6]), ("faults.major", &[2.0; 3]), ("io.read", &[8e6; 3])];
    let file = run("file", file, "host", faults, &[]);
    let loads: &[(&str, &[f64])] = &[
        ("latency.l1", &[1.04]),
        ("latency.l2", &[3.46]),
        ("latency.l3", &[12.1]),
        ("latency.dram", &[90.0]),
        ("latency.tlb-miss", &[21.0]),
        ("latency.minor-fault", &[510.0, 500.0, 700.0]),
        ("latency.huge-fault", &[41e3]),
    ];
    let mut latency = run("latency", Experiment::Latency(Latency::default()), "host", loads, &[]);
    let sizes =
        [("cache.l1d", "49152"), ("cache.l2", "1048576"), ("cache.l3", "33554432"), ("page.size", "4096")];
    for (key, bytes) in sizes {
        latency.repetitions[0].observations.environment.insert(key.into(), bytes.into());
    }
    insta::assert_snapshot!(ladder::terminal(&assess(&[&latency, &exceeds, &file]).ladder, &STYLE));
    assert_eq!(ladder::terminal(&assess(&[&file]).ladder, &STYLE), "");
}

#[test]
fn many_experiments_have_a_line_each() {
    let runs = each();
    let list: Vec<&Run> = runs.iter().collect();
    let pair = [fits(), exceeds()];
    let compared = comparisons::terminal_all(&[compare(&pair[0], &pair[1])], true, &STYLE);
    assert!(compared.contains("random") && compared.contains("fits"), "both sides are named: {compared}");
    insta::assert_snapshot!(runs::experiments(&list, &STYLE));
    let narrow = runs::experiments(&list, &Style { color: false, width: 80 });
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    assert_eq!(narrow.lines().count(), list.len() + 2, "{narrow}");
    // What has no line there stays in the verdict.
    let rest = runs::beyond_the_main_figures(&assess(&list).findings);
    assert!(rest.iter().any(|f| matches!(f.what, What::Regret)), "{rest:?}");
    assert!(rest.iter().all(|f| !matches!(f.what, What::AccessTime { .. })), "{rest:?}");
}

#[test]
fn a_recording_shows_figures() {
    let watch = each().pop().unwrap();
    insta::assert_snapshot!(runs::terminal(&watch, false, &STYLE));
}

#[test]
fn a_sweep_over_memory_in_words() {
    insta::assert_snapshot!(swept(&[Goal::Slowdown]));
}

#[test]
fn the_memory_that_a_program_needs_in_words() {
    let text = swept(&Goal::ALL);
    assert!(text.contains("(≤ 1% stall)") && text.contains("completes with"), "{text}");
    insta::assert_snapshot!(text);
}

/// The verdict and the table of a program that is killed below 12 MiB and slow below 30 MiB.
fn swept(goals: &[Goal]) -> String {
    let command = Experiment::Command(Command::new(vec!["sort".into()]));
    let effort = Effort { give_up: 2.0, budget: 9.0 * goals.len() as f64, repeat: 1 };
    let mut search = Search::new(goals, 2 << 20, 64 << 20, 4096, effort).unwrap();
    let knee = loop {
        match search.next().unwrap() {
            Next::Found(knee) => break knee,
            Next::Measure(memory) if memory < 12 << 20 => search.killed(memory, 1e8),
            Next::Measure(memory) if memory < 20 << 20 => {
                let metrics: [(&str, &[f64]); 2] = [("time.elapsed", &[2e9]), ("faults.major", &[2000.0])];
                search
                    .measured(memory, &run("s", command.clone(), "host", &metrics, &[]), Some(2e9), 2e9)
                    .unwrap();
            }
            Next::Measure(memory) => {
                let short = memory < 30 << 20;
                let metrics: [(&str, &[f64]); 2] = [
                    ("time.elapsed", if short { &[1.6e9] } else { &[1e9] }),
                    ("faults.major", if short { &[900.0] } else { &[0.0] }),
                ];
                let time = metrics[0].1[0];
                search
                    .measured(memory, &run("s", command.clone(), "host", &metrics, &[]), None, time)
                    .unwrap();
            }
        }
    };
    let assessment = assess_sweep(&[], Some(search.finding(&knee, "sort", "s")));
    let table = findings::limits(&assessment.findings[0]).unwrap();
    runs::verdict(&assessment.findings, &STYLE) + "\n" + &table.terminal(&STYLE)
}

/// What was stopped is a lower bound on the page as in the terminal, in the table and in the
/// picture.
#[test]
fn the_page_of_a_sweep_says_over_of_a_stopped_limit() {
    let limit = |memory: u64, time: f64, stopped| MeasuredLimit {
        memory: memory << 20,
        time: Some(time),
        stopped,
        fetched: Some(7.0),
        stall: None,
    };
    let page = |stopped| {
        let limits = vec![limit(8, 2.1e9, stopped), limit(16, 1.4e9, false), limit(32, 1e9, false)];
        let what = What::LeastMemory {
            program: "sort".into(),
            limits,
            inconclusive: false,
            early: false,
            stall: None,
        };
        let finding = Finding::new(&fits(), what, Vec::new(), Vec::new());
        pagelab_report::page(&assess_sweep(&[], Some(finding)))
    };
    let (stopped, ended) = (page(true), page(false));
    assert!(stopped.contains("over 2.10 s") && stopped.contains("stopped: at least this"), "{stopped}");
    assert!(ended.contains("2.10 s") && !ended.contains("over 2.10 s") && !ended.contains("at least this"));
}

fn compared(a: &[f64], b: &[f64], targets: (&str, &str)) -> String {
    let of = |name: &str, target: &str, values: &[f64]| {
        let same: &[f64] = &[7.0, 7.1, 6.9, 7.2, 6.8, 7.0, 7.1, 6.9];
        let metrics: [(&str, &[f64]); 2] = [("access.mean", values), ("faults.minor", &same[..values.len()])];
        run(name, paging(100, 100), target, &metrics, &[])
    };
    let comparison = compare(&of("before", targets.0, a), &of("after", targets.1, b));
    comparisons::terminal(&comparison, Options::default(), &STYLE)
}

/// Figures in one sentence close, or name their statistic.
#[test]
fn a_change_that_is_not_that_of_the_medians_says_what_it_is() {
    let host = ("host", "host");
    let text = compared(&[90_900.0, 46_900.0, 104_000.0], &[40_400.0, 27_400.0, 64_700.0], host);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("90.9 µs → 40.4 µs (Hodges-Lehmann estimate -"), "{text}");
    let text = compared(&[100.0, 100.0, 100.0], &[110.0, 110.0, 110.0], host);
    assert!(text.contains("100 ns → 110 ns (+10.0%)"), "{text}");
}

/// One metric of a guest that counts instructions, as the guest hands it on.
fn counting(name: &str, experiment: Experiment, metric: &str, value: f64) -> Run {
    let figures: &[(&str, &[f64])] = &[("time.elapsed", &[1e6]), (metric, &[value])];
    let mut run = run(name, experiment, "kernel:k,accel=icount", figures, &[]);
    for metric in &mut run.repetitions[0].observations.metrics {
        let (unit, factor) = metric.unit.counted();
        (metric.unit, metric.value) = (unit, metric.value.map(|value| value * factor));
    }
    run
}

#[test]
fn single_counts_are_compared_by_what_boots_differ_by() {
    let text = |after: f64| {
        let of = |name: &str, value| counting(name, paging(100, 100), "access.mean", value);
        let comparison = compare(&of("before", 4000.0), &of("after", after));
        (comparisons::terminal(&comparison, Options::default(), &STYLE), comparisons::json(&comparison))
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (worse, json) = text(4040.0);
    let label = "one count per side; boots differ by up to 0.5%";
    let shown = words(&worse);
    assert!(shown.contains("after is worse than before"), "{worse}");
    assert!(shown.contains(&format!("4,000 instr → 4,040 instr (+1.0%; {label})")), "{worse}");
    assert!(!worse.contains("repetitions") && !worse.contains("interval"), "{worse}");
    assert_eq!(json["basis"], label);
    let line =
        json["metrics"].as_array().unwrap().iter().find(|line| line["metric"] == "access.mean").unwrap();
    assert_eq!([&line["verdict"], &line["test"], &line["unit"]], ["worse", "counts", "instructions"]);
    let (same, json) = text(4012.0);
    let shown = words(&same);
    assert!(
        shown.contains("No difference beyond boots in mean access time: 4,000 instr → 4,012 instr"),
        "{same}"
    );
    assert!(json.to_string().contains("\"no difference beyond boots\""), "{json}");
}

#[test]
fn rates_of_counted_instructions_are_per_instruction() {
    let storm =
        |name: &str, rate| counting(name, Experiment::Forkstorm(Forkstorm::default()), "forks.rate", rate);
    let (before, after) = (storm("before", 2500.0), storm("after", 2000.0));
    let text = findings::text(&assess(&[&before]).findings[0]);
    assert!(text.contains("2.50/Minstr") && !text.contains("/s"), "{text}");
    let text = comparisons::terminal(&compare(&before, &after), Options::default(), &STYLE);
    assert!(text.contains("forks per million instructions") && text.contains("2.00/Minstr"), "{text}");
    assert!(!text.contains("per second") && !text.contains("/s"), "{text}");
    let page = pagelab_report::page(&assess(&[&before]));
    assert!(page.contains("2.50/Minstr") && !page.contains("2,500/s"));
}

#[test]
fn the_throughput_of_counted_instructions_is_per_instruction() {
    let columns = vec![
        numbers("workers", Unit::Count, &[1.0, 2.0]),
        numbers("throughput", Unit::PerMillionInstructions, &[100.0, 90.0]),
    ];
    let scale = Experiment::Faultscale(Faultscale { workers: vec![1, 2], ..Faultscale::default() });
    let run = run("scale", scale, "kernel:k,accel=icount", &[], &[table("faultscale", columns)]);
    let text = findings::text(&assess(&[&run]).findings[0]);
    assert!(text.contains("100/Minstr") && !text.contains("/s"), "{text}");
}

#[test]
fn every_answer_of_a_comparison_in_words() {
    let file = [27_000.0, 26_500.0, 27_400.0, 26_900.0, 27_100.0, 27_300.0, 26_800.0, 27_000.0];
    let zram = file.map(|v| v / 3.25);
    let near = [27_100.0, 26_600.0, 27_300.0, 27_000.0, 26_950.0, 27_250.0, 26_700.0, 27_200.0];
    let host = ("host", "host");
    let all = [
        ("changed", compared(&file, &zram, ("host,swap=file", "host,swap=zram"))),
        ("not significant", compared(&file, &near, host)),
        ("inconclusive", compared(&file[..2], &zram[..2], host)),
        ("exact", compared(&[100.0], &[130.0], ("model:opt", "model:lru"))),
        ("equal", compared(&[100.0], &[100.0], ("model:lru", "model:lru"))),
        ("against a model", compared(&file, &[100.0], ("host", "model:lru"))),
    ];
    let text: String = all.iter().map(|(what, text)| format!("== {what}\n{text}\n")).collect();
    insta::assert_snapshot!(text);
    for exact in ["exact", "equal"] {
        let text = &all.iter().find(|(what, _)| *what == exact).unwrap().1;
        assert!(
            !text.contains(" p ") && !text.contains("repetitions") && !text.contains("interval"),
            "{text}"
        );
    }
}
