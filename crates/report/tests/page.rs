//! The page: escaped, small, drawn without runs or figures, and alive in a real browser.

use std::process::Command;

use pagelab_experiment::experiments::Paging;
use pagelab_experiment::observation::{Better, Level, Metric, Note, Observations, Unit};
use pagelab_experiment::{
    Experiment, Observation, Outcome, Recorder, RecorderError, Repetition, Run, RunHeader, Setting, Target,
    TargetSpec,
};
use pagelab_model::target::Model;
use pagelab_report::{PageInput, TextTable, page};
use proptest::prelude::*;

#[derive(Default)]
struct Keep(Observations);

impl Recorder for Keep {
    fn observe(&mut self, observation: Observation) -> Result<(), RecorderError> {
        self.0.add(observation);
        Ok(())
    }

    fn progress(&mut self, _: &str, _: u64, _: u64) {}

    fn interrupted(&self) -> bool {
        false
    }
}

/// A run of a modelled system, which sees everything that a kernel's run sees.
fn run(name: &str, model: &str, paging: Paging) -> Run {
    let experiment = Experiment::Mapanon(paging);
    let mut setting = Setting::default();
    setting.apply("memory", "64M").unwrap();
    let mut keep = Keep::default();
    Model::new(model, &[]).unwrap().perform(&experiment, &setting, &mut keep).unwrap();
    Run {
        id: 1,
        header: RunHeader {
            name: name.into(),
            batch: "b".into(),
            experiment,
            target: format!("model:{model}").parse().unwrap(),
            setting,
            started: "2026-01-02T03:04:05Z".into(),
            pagelab: "0".into(),
        },
        repetitions: vec![Repetition {
            number: 1,
            started: "2026-01-02T03:04:05Z".into(),
            outcome: Outcome::Done,
            observations: keep.0,
        }],
    }
}

fn small() -> Run {
    run(
        "small",
        "linux-lru",
        Paging {
            pages: 20_000,
            references: 30_000,
            pattern: "uniform".parse().unwrap(),
            ..Paging::default()
        },
    )
}

fn html(runs: &[&Run]) -> String {
    page(&PageInput {
        title: "a title".into(),
        verdict: vec!["A sentence.".into()],
        runs: runs.to_vec(),
        comparisons: Vec::new(),
    })
}

#[test]
fn a_full_run_stays_below_400_kilobytes() {
    let full = run("full", "linux-lru", Paging::default());
    let random =
        run("random", "lru", Paging { pattern: "smooth-sin-random".parse().unwrap(), ..Paging::default() });
    for runs in [vec![&full], vec![&full, &random]] {
        let size = html(&runs).len();
        assert!(size < 400_000, "{} runs: {size} bytes", runs.len());
    }
}

#[test]
fn every_plot_has_its_data_and_a_table() {
    let run = small();
    let page = html(&[&run]);
    for title in [
        "Access time over the run",
        "Faults over the run",
        "Pages present over the run",
        "Latency of each kind",
        "Page age and presence",
        "Pages over time",
        "Pages present and swapped against references",
        "What was kept",
    ] {
        assert!(page.contains(title), "{title}");
    }
    let plots = page.matches("<figure class=\"plot\"").count();
    assert_eq!(page.matches("<summary>Figures</summary>").count(), plots);
    let data: Vec<&str> = page
        .split("<script type=\"application/json\">")
        .skip(1)
        .map(|rest| rest.split("</script>").next().unwrap())
        .collect();
    assert_eq!(data.len(), plots);
    for text in data {
        let plot: serde_json::Value = serde_json::from_str(text).unwrap();
        let curves = plot["curves"].as_array().unwrap();
        assert!(!curves.is_empty());
        for curve in curves {
            let x = &plot["xs"][curve["xs"].as_u64().unwrap() as usize];
            assert_eq!(x.as_array().unwrap().len(), curve["y"].as_array().unwrap().len());
        }
    }
    // Drawn without the script, each with its words, and a table of a fitting length.
    assert_eq!(page.matches("<svg class=\"frame\" role=\"img\" tabindex=\"0\" aria-label=").count(), plots);
    for table in page.split("<summary>Figures</summary>").skip(1) {
        let rows = table.split("</table>").next().unwrap().matches("<tr>").count();
        assert!((2..=202).contains(&rows), "{rows} rows");
    }
    assert!(!page.contains("NaN") && !page.contains(" style=\""));
}

#[test]
fn runs_without_figures_are_drawn_all_the_same() {
    assert!(html(&[]).contains("No runs."));
    let mut run = small();
    run.repetitions[0].outcome = Outcome::Failed("<b>out of memory</b>".into());
    let page = html(&[&run]);
    assert!(page.contains("Nothing to plot") && page.contains("&lt;b&gt;out of memory"));
    run.repetitions[0].outcome = Outcome::Done;
    run.repetitions[0].observations = Observations::default();
    assert!(html(&[&run]).contains("Nothing to plot"));
    run.repetitions[0].observations.metrics = vec![Metric {
        name: "time.elapsed".into(),
        unit: Unit::Nanoseconds,
        better: Better::Lower,
        value: None,
    }];
    assert!(html(&[&run]).contains('—'));
}

/// The only elements that run are ours.
fn scripts(page: &str) -> usize {
    page.to_lowercase().matches("<script").count()
        - page.matches("<script type=\"application/json\">").count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn nothing_from_outside_gets_out_of_its_place(text in "(<script>|</script>|<!--|-->|\"|'|&|<|>|\u{2028}|\u{0}|]]>|javascript:|[a-z ]){0,12}") {
        let mut run = run("x", "linux-lru", Paging { pages: 64, references: 300, ..Paging::default() });
        run.header.name.clone_from(&text);
        let seen = &mut run.repetitions[0].observations;
        seen.environment.insert(text.clone(), text.clone());
        seen.notes.push(Note { level: Level::Warning, text: text.clone() });
        seen.tables[0].columns[1].name.clone_from(&text);
        let table = TextTable { title: text.clone(), headings: vec![text.clone()], rows: vec![vec![text.clone()]], remarks: vec![text.clone()], warnings: vec![text.clone()] };
        let other = run.clone();
        let page = page(&PageInput { title: text.clone(), verdict: vec![text.clone()], runs: vec![&run, &other], comparisons: vec![table] });
        prop_assert_eq!(scripts(&page), 1);
        prop_assert!(!page.contains("<!--"));
        prop_assert_eq!(page.matches("</script>").count(), page.matches("<script").count());
    }
}

#[test]
fn the_script_runs_in_a_browser() {
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    let Some(browser) = browser else {
        eprintln!("the_script_runs_in_a_browser: skipped: no Chromium here (apt-get install chromium)");
        return;
    };
    let run = small();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, html(&[&run])).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--virtual-time-budget=4000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(dom.contains("data-ready=\"true\""), "{log}");
    assert!(!log.contains("CONSOLE") && !log.contains("Content Security Policy"), "{log}");
    assert!(!dom.contains("NaN"), "a coordinate is no number");
}

#[test]
fn runs_on_different_targets_are_told_apart_by_them() {
    let paging = Paging { pages: 64, references: 300, ..Paging::default() };
    let (a, mut b) = (run("a", "lru", paging.clone()), run("b", "opt", paging));
    let page = html(&[&a, &b]);
    assert!(page.contains("\"model:lru mean\"") && page.contains("\"model:opt mean\""));
    b.header.target = "model:lru".parse::<TargetSpec>().unwrap();
    assert!(html(&[&a, &b]).contains("\"b mean\""));
}
