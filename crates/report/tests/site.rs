//! The site in a real browser, opened from a folder: its comparisons equal those of the analysis,
//! the index filters and sorts, and no page logs an error.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use pagelab_analysis::comparison::{Comparison, compare};
use pagelab_experiment::observation::{Better, Metric, Observations, Unit};
use pagelab_experiment::{
    Condition, Experiment, MetricId, Origin, Outcome, Repetition, Run, RunHeader, Setting, environment,
    metrics,
};
use pagelab_report::comparisons;
use pagelab_report::site::{INDEX, RUNS, Site};
use pagelab_report::text;
use pagelab_testing::browser::{add_script, browse};
use pagelab_testing::random::Random;
use pagelab_testing::{CHROMIUM, tests};
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

fn main() -> ExitCode {
    pagelab_testing::run(tests! {
        any_two_runs_are_compared_as_the_analysis_does: CHROMIUM;
        figures_are_written_as_in_the_terminal: CHROMIUM;
        the_index_is_filtered_sorted_and_chooses_two_runs: CHROMIUM;
        every_page_runs_without_an_error_in_both_themes: CHROMIUM;
        foreign_text_stays_escaped_on_every_page;
        a_large_page_names_the_charts_that_it_lacks;
        a_series_of_nine_runs_has_its_history;
    })
}

/// A run with these values of each metric, one per repetition.
fn run(id: i64, name: &str, figures: &[(MetricId, Vec<f64>)]) -> Run {
    let count = figures.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
    let repetition = |n: usize| Repetition {
        number: n as u32 + 1,
        started: "2026-01-02T03:04:05Z".into(),
        outcome: Outcome::Done,
        observations: Observations {
            metrics: figures.iter().map(|(metric, values)| metric.figure(values.get(n).copied())).collect(),
            ..Observations::default()
        },
    };
    Run {
        id,
        header: RunHeader {
            name: name.into(),
            batch: format!("batch-{id}"),
            experiment: Experiment::Mapanon(Default::default()),
            target: "host".parse().unwrap(),
            setting: Setting::default(),
            conditions: Vec::new(),
            deterministic: false,
            started: format!("2026-01-{:02}T03:04:05Z", 1 + id % 28),
            pagelab: "0".into(),
        },
        repetitions: (0..count).map(repetition).collect(),
    }
}

/// Writes the site of these runs into a folder, the last run first.
fn site(runs: &[Run]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(RUNS)).unwrap();
    let mut site = Site::new(runs.len(), false);
    let write =
        |file: &pagelab_report::site::File| fs::write(folder.path().join(&file.name), &file.text).unwrap();
    Site::shared().iter().for_each(write);
    for run in runs.iter().rev() {
        let page = site.draw(run);
        write(&site.add(run.clone(), 0, page));
    }
    site.finish(|| false).unwrap().iter().for_each(write);
    folder
}

fn address(folder: &Path, page: &str) -> String {
    folder.join(page).to_str().unwrap().to_owned()
}

/// Values around a level: equal, with ties, close together, with zeros, negative, or scattered.
fn values(random: &mut Random, level: f64, n: usize) -> Vec<f64> {
    let mut unit = |of: u64| random.below(of) as f64 / of as f64;
    let kind = (unit(7) * 7.0) as u32;
    let mut value = || match kind {
        0 => level.round(),
        1 => (level * (0.98 + 0.04 * unit(6))).round(),
        2 => level * (1.0 + 1e-4 * unit(1000)),
        3 => (level * 0.02 * unit(5)).floor(),
        4 => level * (unit(1000) - 0.5),
        _ => level * (0.9 + 0.2 * unit(100_000)),
    };
    (0..n).map(|_| value()).collect()
}

/// Runs of every kind that a comparison distinguishes: deterministic, instruction counts,
/// interleaved, few and many repetitions, different experiments, different machines.
fn various() -> Vec<Run> {
    let random = &mut Random::new(7);
    let measured = [
        metrics::TIME_ELAPSED,
        metrics::ACCESS_MEAN,
        metrics::ACCESS_MAX,
        metrics::FAULTS_MAJOR,
        metrics::FAULTS_MINOR,
        metrics::PAGES_PRESENT,
        metrics::SWAP_IN,
        metrics::TIME_CPU,
    ];
    let counts = [1, 1, 2, 3, 4, 5, 6, 7, 8, 8, 10, 12, 20, 33, 110];
    let mut runs: Vec<Run> = Vec::new();
    for id in 1..=40 {
        let n = counts[random.below(counts.len() as u64) as usize];
        let kept = |metric: &&MetricId| {
            **metric == *metrics::TIME_ELAPSED.name || id % 5 != 0 || metric.name.len().is_multiple_of(2)
        };
        let shift = [1.0, 1.0, 1.004, 1.03, 1.3, 3.0][random.below(6) as usize];
        let mut figures = Vec::new();
        for (at, metric) in measured.iter().filter(kept).enumerate() {
            figures.push((*metric, values(random, shift * [1e9, 586.0, 4e6, 1200.0, 50.0][at % 5], n)));
        }
        let mut run = run(id, &format!("run-{id}"), &figures);
        match id % 8 {
            1 | 2 => {
                run.header.deterministic = true;
                run.repetitions.truncate(1);
            }
            3 | 4 => {
                let figures = run.repetitions.iter_mut().flat_map(|r| &mut r.observations.metrics);
                figures.for_each(|metric| metric.unit = metric.unit.counted().0);
            }
            // Interleaved.
            5 | 6 => {
                run.header.batch = "together".into();
                run.repetitions.truncate(8);
            }
            7 => {
                run.header.experiment = Experiment::Command(Default::default());
                run.repetitions[0].outcome = Outcome::Interrupted;
            }
            _ => {}
        }
        for repetition in &mut run.repetitions {
            let facts = &mut repetition.observations.environment;
            facts.insert(environment::CPU_COUNT.into(), (1 + id % 2).to_string());
            facts.insert(environment::THP_ENABLED.into(), ["always", "never"][id as usize / 2 % 2].into());
            facts.insert(environment::LOAD_1MIN.into(), (0.5 * (id % 5) as f64).to_string());
            facts.insert(environment::STEAL_SHARE.into(), (0.01 * (id % 4) as f64).to_string());
        }
        if id % 6 == 0 {
            run.header.conditions.push(Condition::new("thp", "always", Origin::Asked));
        }
        runs.push(run);
    }
    runs
}

const ALL_PAIRS: &str = r##"
const all = data.runs.map((run) => run.id).sort((a, b) => a - b), found = [];
for (const a of all) for (const b of all) {
  const { lines, deciding, notMeasured, exact, warnings } = compareRuns(runs.get(a), runs.get(b));
  found.push({ a, b, deciding, notMeasured, exact, warnings, answer: answerOf({ lines, deciding, notMeasured, exact }, runs.get(a), runs.get(b)),
    lines: lines.map(({ name, unit, medians, test, p, change, interval, verdict, needed }) => ({ name, medians,
      test: data.tests[test.replace(/^sign.$/, "sign")], p, change, interval, verdict: verdicts[verdict], needed: needed ?? null,
      texts: medians.map((v) => figure(v, unit)) })) });
}
say(JSON.stringify(found));
"##;

/// Whether the values are equal except for the last digits.
fn near(one: &Value, other: Option<f64>) -> bool {
    match (one.as_f64(), other) {
        (None, None) => true,
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * other.abs().max(1e-6),
        _ => false,
    }
}

fn any_two_runs_are_compared_as_the_analysis_does() {
    let runs = various();
    let folder = site(&runs);
    add_script(&folder.path().join("compare.html"), ALL_PAIRS);
    let browsed = browse(&address(folder.path(), "compare.html"), &["--virtual-time-budget=60000"]);
    browsed.assert_clean("all pairs");
    let found: Vec<Value> = serde_json::from_str(&browsed.said()).unwrap();
    // A run without a complete repetition cannot be compared.
    let shown = runs.iter().filter(|run| run.done().next().is_some()).count();
    assert_eq!(found.len(), shown * shown);
    let run = |id: &Value| runs.iter().find(|run| Some(run.id) == id.as_i64()).unwrap();
    let (mut lines, mut verdicts) = (0, std::collections::BTreeMap::new());
    for found in &found {
        let compared: Comparison = compare(run(&found["a"]), run(&found["b"]));
        let pair = format!("{} compared with {}", found["b"], found["a"]);
        let warnings: Vec<String> = compared.caveats.iter().map(comparisons::caveat).collect();
        assert_eq!(found["warnings"], serde_json::json!(warnings), "{pair}");
        assert_eq!(found["deciding"], serde_json::json!(compared.deciding), "{pair}");
        assert_eq!(found["notMeasured"], serde_json::json!(compared.not_measured), "{pair}");
        assert_eq!(found["exact"], compared.exact, "{pair}");
        let told = found["lines"].as_array().unwrap();
        let names: Vec<&str> = told.iter().map(|line| line["name"].as_str().unwrap()).collect();
        assert_eq!(names, compared.lines.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), "{pair}");
        for (told, line) in told.iter().zip(&compared.lines) {
            let what = format!("{pair}: {told} instead of {line:?}");
            let medians = [line.medians.0, line.medians.1];
            assert!(
                near(&told["medians"][0], Some(medians[0])) && near(&told["medians"][1], Some(medians[1])),
                "{what}"
            );
            assert_eq!(
                told["texts"],
                serde_json::json!(medians.map(|v| text::value(Some(v), line.unit))),
                "{what}"
            );
            assert!(near(&told["change"], line.change) && near(&told["p"], line.p), "{what}");
            let ends = |n: usize| line.interval.map(|(low, high)| [low, high][n]);
            assert!(near(&told["interval"][0], ends(0)) && near(&told["interval"][1], ends(1)), "{what}");
            assert_eq!(told["test"], line.test.name(), "{what}");
            assert_eq!(told["verdict"], comparisons::verdict(line.verdict), "{what}");
            let needed = match line.verdict {
                pagelab_analysis::comparison::Verdict::Inconclusive(needed) => Some(needed),
                _ => None,
            };
            assert_eq!(told["needed"], serde_json::json!(needed), "{what}");
            lines += 1;
            *verdicts.entry((line.test.name(), comparisons::verdict(line.verdict))).or_insert(0) += 1;
        }
    }
    println!("{lines} lines: {verdicts:?}");
    // Every test and every verdict occurred.
    for name in ["signed-rank", "mann-whitney", "sign", "counts", "exact"] {
        assert!(verdicts.keys().any(|(test, _)| *test == name), "{name}");
    }
    for (name, _) in comparisons::verdicts() {
        assert!(verdicts.keys().any(|(_, verdict)| *verdict == name), "{name}");
    }
}

fn figures_are_written_as_in_the_terminal() {
    let random = &mut Random::new(3);
    let units = [
        (Unit::Nanoseconds, "ns"),
        (Unit::Count, "count"),
        (Unit::Bytes, "bytes"),
        (Unit::Share, "share"),
        (Unit::PerSecond, "/s"),
        (Unit::BytesPerSecond, "bytes/s"),
        (Unit::Instructions, "instr"),
        (Unit::PerMillionInstructions, "/Minstr"),
        (Unit::BytesPerMillionInstructions, "bytes/Minstr"),
        (Unit::Ratio, "ratio"),
    ];
    let mut list: Vec<f64> =
        vec![0.0, 0.5, 2.5, 0.25, 0.125, 0.03125, 99.95, 999.5, 1023.5, 1234.5, 9.995, 1e12, 65536.0];
    list.extend((0..3000).map(|n| {
        let size = 10f64.powi((n % 16) - 5);
        (random.below(2_000_000) as f64 / 1e6 - 0.2) * size
    }));
    // Multiples of one eighth: halves are rounded to even.
    list.extend((0..600).map(|n| f64::from(n) / 8.0 + [0.0, 1024.0, 99.0][n as usize % 3]));
    let cases: Vec<(f64, &str, String)> = list
        .iter()
        .flat_map(|&v| units.iter().map(move |&(unit, name)| (v, name, text::value(Some(v), unit))))
        .collect();
    let folder = site(&[run(1, "a", &[(metrics::ACCESS_MEAN, vec![1.0])])]);
    let script = format!(
        "say(JSON.stringify({}.filter(([v, unit, text]) => figure(v, unit) !== text).map((one) => [...one, figure(one[0], one[1])])));",
        serde_json::to_string(&cases).unwrap()
    );
    add_script(&folder.path().join("compare.html"), &script);
    let wrong = browse(&address(folder.path(), "compare.html"), &[]).said();
    assert_eq!(wrong, "[]");
}

const USE_THE_INDEX: &str = r##"
const said = [], note = (what, value) => said.push(`${what}=${value}`);
const names = () => [...document.querySelectorAll("#runs tr:not([hidden]) td.name")].map((cell) => cell.textContent).join(" ");
const type = (words) => { filter.value = words; filter.dispatchEvent(new Event("input", { bubbles: true })); };
const press = (heading) => [...document.querySelectorAll("th button")].find((button) => button.textContent.startsWith(heading)).click();
const sorts = () => heads.map((head) => head.getAttribute("aria-sort")[0]).join("");
note("all", names());
type("NIGHTLY kernel:six"); note("both", names()); note("count", byId("shown").textContent);
type("abc123"); note("revision", names());
type("nothing-like-it"); note("none", names());
type(""); note("cleared", names());
press("run"); note("by name", names()); note("sorts", sorts());
press("run"); note("by name down", names());
press("primary"); note("by metric", names());
press("n"); note("by repetitions", names()); note("sorts down", sorts());
const radio = (side, name) => document.querySelector(`input[name=${side}][data-name="${name}"]`).click();
note("before", byId("compare").hasAttribute("href"));
radio("before", "nightly-2"); note("one", byId("compare").hasAttribute("href"));
radio("after", "nightly-10"); note("link", byId("compare").getAttribute("href"));
note("named", byId("before").textContent + byId("after").textContent);
radio("after", "nightly-2"); note("same", byId("compare").hasAttribute("href"));
say(said.join("|"));
"##;

/// Runs that differ in several columns of the index.
fn few() -> Vec<Run> {
    let figures = |level: f64, n: usize| vec![(metrics::ACCESS_MEAN, vec![level; n])];
    let mut runs = vec![
        run(1, "nightly-2", &figures(900.0, 3)),
        run(2, "nightly-10", &figures(1200.0, 1)),
        run(3, "other", &figures(5.0, 8)),
        run(4, "empty", &[]),
    ];
    runs[1].header.target = "kernel:/boot/six".parse().unwrap();
    runs[0].repetitions[0].observations.environment.insert(environment::REVISION.into(), "abc123".into());
    runs
}

fn the_index_is_filtered_sorted_and_chooses_two_runs() {
    let folder = site(&few());
    add_script(&folder.path().join(INDEX), USE_THE_INDEX);
    let browsed = browse(&address(folder.path(), INDEX), &[]);
    browsed.assert_clean("the index");
    let said = browsed.said();
    let of = |what: &str| {
        let found = said.split('|').find_map(|part| part.strip_prefix(&format!("{what}=")));
        found.unwrap_or_else(|| panic!("no {what} in {said}"))
    };
    let newest_first = "empty other nightly-10 nightly-2";
    assert_eq!((of("all"), of("cleared")), (newest_first, newest_first));
    assert_eq!(
        (of("both"), of("count"), of("revision"), of("none")),
        ("nightly-10", "1 of 4 runs", "nightly-2", "")
    );
    assert_eq!(of("by name"), "empty nightly-2 nightly-10 other");
    assert_eq!(of("by name down"), "other nightly-10 nightly-2 empty");
    assert_eq!(of("by metric"), "other nightly-2 nightly-10 empty", "a run without a figure comes last");
    assert_eq!(of("by repetitions"), "other nightly-2 nightly-10 empty", "the largest number first");
    assert_eq!((of("sorts"), of("sorts down")), ("annnnnnn", "nnnnndnn"));
    assert_eq!((of("before"), of("one"), of("same")), ("false", "false", "false"));
    assert_eq!((of("link"), of("named")), ("compare.html#1,2", "nightly-2nightly-10"));
}

fn every_page_runs_without_an_error_in_both_themes() {
    let mut runs = various();
    runs.extend(
        (100..110).map(|id| run(id, &format!("series-{id}"), &[(metrics::ACCESS_MEAN, vec![100.0, 101.0])])),
    );
    let folder = site(&runs);
    let a_run = format!("{RUNS}/run-40-40.html");
    for page in [
        INDEX,
        "compare.html",
        "compare.html#1,2",
        "compare.html#1,999",
        "history.html",
        "glossary.html",
        &a_run,
    ] {
        browse(&address(folder.path(), page), &[]).assert_clean(page);
    }
    // The browser's preferred theme, and the other one after a click.
    for page in [INDEX, "compare.html", &a_run] {
        add_script(
            &folder.path().join(page),
            "const papers = [], look = () => papers.push(getComputedStyle(document.body).backgroundColor); look(); \
             document.getElementById('theme').click(); look(); say(papers.join('|'));",
        );
        let light = browse(&address(folder.path(), page), &[]).said();
        let dark = browse(&address(folder.path(), page), &["--blink-settings=preferredColorScheme=0"]).said();
        let papers = ["rgb(255, 255, 255)", "rgb(20, 23, 27)"];
        assert_eq!((light, dark), (papers.join("|"), [papers[1], papers[0]].join("|")), "{page}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    fn foreign_text_stays_escaped_on_every_page(text in "(<script>|</script>|<!--|-->|\"|'|&|<|>|\u{2028}|\u{0}|\u{1b}|\u{9b}|\r|]]>|javascript:|\\.\\./|[a-z ]){0,12}") {
        let mut runs: Vec<Run> = (1..=10).map(|id| run(id, &format!("{text}{id}"), &[(metrics::ACCESS_MEAN, vec![1.0, 2.0])])).collect();
        for run in &mut runs {
            run.header.batch.clone_from(&text);
            let seen = &mut run.repetitions[0].observations;
            for key in [environment::KERNEL_RELEASE, environment::REVISION, environment::CPU_MODEL, environment::CLOCK_VERDICT] {
                seen.environment.insert(key.into(), format!("suspect: {text}"));
            }
            seen.metrics.push(Metric { name: text.clone(), unit: Unit::Count, better: Better::Lower, value: Some(1.0) });
        }
        let mut site = Site::new(runs.len(), false);
        let mut files: Vec<_> = runs.iter()
            .map(|run| {
                let page = site.draw(run);
                site.add(run.clone(), 0, page)
            })
            .collect();
        site.add_unreadable(99, &text, &text, &text, &text);
        files.extend(site.finish(|| false).unwrap());
        for file in files {
            let page = &file.text;
            let data = page.matches(" type=\"application/json\">").count();
            prop_assert_eq!(page.to_lowercase().matches("<script").count() - data, 1, "{}", file.name);
            prop_assert!(!page.contains("<!--") && !page.contains(" style=\""), "{}", file.name);
            prop_assert!(!page.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{}", file.name);
            prop_assert_eq!(page.matches("</script>").count(), page.matches("<script").count(), "{}", file.name);
            prop_assert!(file.name.split('/').all(|part| !part.starts_with('.')), "{}", file.name);
        }
    }
}

fn a_large_page_names_the_charts_that_it_lacks() {
    use pagelab_experiment::experiments::Paging;
    use pagelab_experiment::{Request, Target};
    use pagelab_model::target::Model;
    let mut large = run(1, "large", &[]);
    let paging = Paging {
        pages: 20_000,
        references: 30_000,
        pattern: "uniform".parse().unwrap(),
        ..Paging::default()
    };
    large.header.experiment = Experiment::Mapanon(paging);
    large.header.setting.apply("memory", "64M").unwrap();
    let mut seen = Observations::default();
    let request = Request::new(large.header.experiment.clone(), large.header.setting.clone());
    Model::new("linux-lru", &[]).unwrap().plan(&request).unwrap().perform(&mut seen).unwrap();
    large.repetitions = vec![Repetition {
        number: 1,
        started: large.header.started.clone(),
        outcome: Outcome::Done,
        observations: seen,
    }];
    let page = |runs: usize, full: bool| {
        let mut site = Site::new(runs, full);
        let page = site.draw(&large);
        let page = site.add(large.clone(), 0, page).text;
        println!("of {runs} runs, full {full}: {} bytes", page.len());
        (page, site.limited())
    };
    let ((few, none), (many, one), (full, _)) = (page(10, false), page(1000, false), page(1000, true));
    assert_eq!((none, one, &few), (0, 1, &full));
    assert!(few.len() > 60_000 && many.len() < 41_000, "{} {}", few.len(), many.len());
    assert!(
        !few.contains("Not on this page")
            && many.contains("Not on this page")
            && many.contains("pagelab report large")
    );
    let charts = |page: &str| page.matches("<figure class=\"plot").count();
    let lacking =
        many.split("for its size: ").nth(1).unwrap().split(' ').next().unwrap().parse::<usize>().unwrap();
    assert!(charts(&many) >= 2 && charts(&many) + lacking == charts(&few), "{lacking} of {}", charts(&few));
}

fn a_series_of_nine_runs_has_its_history() {
    let series = |count: i64| -> Vec<Run> {
        let level = |id: i64| if id > 5 { 130.0 } else { 100.0 };
        (1..=count)
            .map(|id| {
                run(id, &format!("n-{id}"), &[(metrics::ACCESS_MEAN, vec![level(id) + id as f64 / 10.0; 3])])
            })
            .collect()
    };
    let (long, short) = (site(&series(11)), site(&series(8)));
    let read =
        |folder: &TempDir, name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    assert!(read(&long, "history.html").contains("got worse by"), "a step after the fifth run");
    assert!(read(&long, INDEX).contains("got worse in 1 and better in 0"));
    assert_eq!(read(&short, "history.html"), "");
    assert!(read(&short, INDEX).contains("No series has the 9 runs"));
}
