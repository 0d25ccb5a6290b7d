//! The page: escaped, small, drawn without runs or figures, and alive in a real browser.

use std::process::ExitCode;

use pagelab_analysis::figure::{Axis, BarRow, Bars, Plot, Series, Tone};
use pagelab_analysis::findings::assess;
use pagelab_experiment::MetricId;
use pagelab_experiment::build::Sheet;
use pagelab_experiment::experiments::{Bandwidth, Latency, Paging, Restore, Vmtest};
use pagelab_experiment::observation::{
    Better, Counter, Level, Metric, Note, Observations, PageSet, Unit, Values,
};
use pagelab_experiment::{
    Experiment, Failure, Outcome, Repetition, Request, Run, RunHeader, Setting, Target, TargetSpec, tables,
};
use pagelab_model::target::Model;
use pagelab_report::{Score, Section, TextTable, document, page};
use pagelab_testing::{CHROMIUM, tests};
use proptest::prelude::*;

fn main() -> ExitCode {
    pagelab_testing::run(tests! {
        a_full_run_stays_below_400_kilobytes;
        many_experiments_are_one_small_page_with_a_ladder_first;
        many_experiments_are_not_tall: CHROMIUM;
        every_plot_has_its_data_and_a_table;
        runs_without_figures_are_drawn_all_the_same;
        foreign_text_stays_escaped;
        the_script_runs_in_a_browser_on_every_kind_of_page: CHROMIUM;
        keys_and_buttons_work: CHROMIUM;
        missing_data_is_reported;
        instructions_and_time_share_no_axis;
        bandwidth_is_drawn_by_loop_and_threads_before_all_else;
        a_restore_is_drawn_by_prefetch_order;
        broken_observations_are_drawn_as_far_as_they_go;
        the_median_repetition_is_one_that_was_timed;
        the_words_of_a_small_page;
        runs_on_different_targets_are_labelled_by_target;
    })
}

/// A run of a modelled system, which sees everything that a kernel's run sees.
fn run(name: &str, model: &str, paging: Paging) -> Run {
    let experiment = Experiment::Mapanon(paging);
    let mut setting = Setting::default();
    setting.apply("memory", "64M").unwrap();
    let mut seen = Observations::default();
    let request = Request::new(experiment.clone(), setting.clone());
    Model::new(model, &[]).unwrap().plan(&request).unwrap().perform(&mut seen).unwrap();
    Run {
        id: 1,
        header: RunHeader {
            name: name.into(),
            batch: "b".into(),
            experiment,
            target: format!("model:{model}").parse().unwrap(),
            setting,
            conditions: Vec::new(),
            deterministic: false,
            started: "2026-01-02T03:04:05Z".into(),
            pagelab: "0".into(),
        },
        repetitions: vec![Repetition {
            number: 1,
            started: "2026-01-02T03:04:05Z".into(),
            outcome: Outcome::Done,
            observations: seen,
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
    page(&assess(runs))
}

fn a_full_run_stays_below_400_kilobytes() {
    let full = run("full", "linux-lru", Paging::default());
    let paging = Paging { pattern: "smooth-sin-random".parse().unwrap(), ..Paging::default() };
    let random = run("random", "linux-lru", paging);
    for runs in [vec![&full], vec![&random], vec![&full, &random]] {
        let size = html(&runs).len();
        println!("{} runs: {size} bytes", runs.len());
        assert!(size < 400_000, "{} runs: {size} bytes", runs.len());
    }
}

/// As many experiments as the standard suite has, as much seen in each.
fn many() -> Vec<Run> {
    let loads = [("latency.l1", 1.0), ("latency.dram", 90.0), ("latency.minor-fault", 1e3)];
    let mut latency = small();
    latency.header.experiment = Experiment::Latency(Latency::default());
    let metrics = loads.map(|(name, value)| MetricId::find(name).unwrap().figure(Some(value))).to_vec();
    latency.header.name = "latency".into();
    latency.header.target = "model:linux-lru".parse().unwrap();
    latency.repetitions[0].observations = Observations { metrics, ..Observations::default() };
    let mut runs: Vec<Run> = (1..=9)
        .map(|seed| {
            let paging = Paging { seed, pattern: "smooth-sin-random".parse().unwrap(), ..Paging::default() };
            run(&format!("part-{seed}"), "linux-lru", Paging { references: 100_000, ..paging })
        })
        .collect();
    runs.push(swept());
    runs.push(latency);
    runs
}

fn many_experiments_are_one_small_page_with_a_ladder_first() {
    let mut runs = many();
    runs[0].repetitions[0].observations.notes.push(Note { level: Level::Warning, text: "steal".into() });
    let page = html(&runs.iter().collect::<Vec<_>>());
    assert!(page.len() < 400_000, "{} bytes", page.len());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("no {text}"));
    assert!(at("<h1>Memory stops being cheap at the first major fault") < at("(11 runs)"));
    assert!(at(">The time of one access, and what it moves</h2>") < at(">Experiments</h2>"));
    assert!(at(">Experiments</h2>") < at("<figure"));
    // Every entry of the index leads somewhere, and the glossary is one of them.
    let index = page.split("<nav").nth(1).unwrap().split("</nav>").next().unwrap();
    let places: Vec<&str> =
        index.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(places.len() >= 14 && places.contains(&"glossary"), "{places:?}");
    for place in places {
        assert_eq!(page.matches(&format!("id=\"{place}\"")).count(), 1, "{place}");
    }
    assert!(page.contains("minor fault") && page.contains("major fault, swap file"));
    for n in 1..=11 {
        assert!(page.contains(&format!("href=\"#e{n}\"")) && page.contains(&format!("id=\"e{n}\"")));
    }
    assert_eq!(page.matches("<strong class=\"warning\">Warning: </strong>steal").count(), 1, "one row");
}

fn many_experiments_are_not_tall() {
    let tell = "<script>document.body.append(Object.assign(document.createElement(\"pre\"), { textContent: document.documentElement.scrollHeight }));</script></body>";
    let page = html(&many().iter().collect::<Vec<_>>());
    let page = page.replace("Content-Security-Policy", "x-none").replace("</body>", tell);
    let (dom, log) = browse(&page);
    let height = dom.split("<pre>").nth(1).unwrap_or_else(|| panic!("{log}")).split('<').next().unwrap();
    assert!(height.parse::<u32>().unwrap() < 8000, "{height} pixels");
}

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

fn runs_without_figures_are_drawn_all_the_same() {
    assert!(html(&[]).contains("No runs."));
    let mut run = small();
    run.repetitions[0].outcome = Outcome::Failed(Failure::unsupported("<b>out of memory</b>", "more"));
    let page = html(&[&run]);
    assert!(page.contains("No time series") && page.contains("&lt;b&gt;out of memory"));
    run.repetitions[0].outcome = Outcome::Done;
    run.repetitions[0].observations = Observations::default();
    assert!(html(&[&run]).contains("No time series"));
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
    fn foreign_text_stays_escaped(text in "(<script>|</script>|<!--|-->|\"|'|&|<|>|\u{2028}|\u{0}|\u{1b}|\u{9b}|\r|]]>|javascript:|[a-z ]){0,12}") {
        let mut run = run("x", "linux-lru", Paging { pages: 64, references: 300, ..Paging::default() });
        run.header.name.clone_from(&text);
        let seen = &mut run.repetitions[0].observations;
        seen.environment.insert(text.clone(), text.clone());
        seen.notes.push(Note { level: Level::Warning, text: text.clone() });
        seen.tables[0].columns[1].name.clone_from(&text);
        let mut other = run.clone();
        other.header.setting.apply("memory", "1M").unwrap();
        for page in [html(&[&run, &other]), studied(&text)] {
            prop_assert_eq!(scripts(&page), 1);
            prop_assert!(!page.contains("<!--"));
            prop_assert!(!page.contains(|c: char| c.is_control() && c != '\n' && c != '\t'));
            prop_assert_eq!(page.matches("</script>").count(), page.matches("<script").count());
        }
    }
}

/// A page of finished sections, as studies and miss ratio curves have it.
fn studied(text: &str) -> String {
    let texts = || vec![text.to_owned()];
    let table = TextTable {
        title: text.to_owned(),
        headings: texts(),
        rows: vec![texts()],
        remarks: texts(),
        tones: vec![Tone::Bad],
    };
    let mut plot = Plot::new(text, text, Axis::log(text, ""), Axis::linear(text, "share").switchable());
    plot.series.push(Series {
        name: text.to_owned(),
        dots: true,
        x: vec![Some(1.0), Some(10.0)],
        y: vec![Some(0.5), None],
        ..Series::default()
    });
    let section = Section {
        heading: text.to_owned(),
        answer: text.to_owned(),
        paragraphs: texts(),
        score: vec![Score { name: text.to_owned(), counts: vec![("good", Tone::Good, 1)] }],
        bars: vec![Bars {
            title: text.to_owned(),
            caption: text.to_owned(),
            unit: "s",
            decimals: 1,
            models: vec!["model"],
            rows: vec![BarRow {
                verdict: Some((text.to_owned(), Tone::Fair)),
                ..BarRow::new(text, Some(1.0), Some(2.0))
            }],
        }],
        ranges: Vec::new(),
        plots: vec![plot.clone(), plot],
        seen: None,
        tables: vec![table.clone()],
        notes: texts(),
    };
    document(text, Some(&table), &[section])
}

/// What a browser makes of a page: the document after its scripts ran, and the log.
fn browse(html: &str) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, html).unwrap();
    let browsed = pagelab_testing::browser::browse(file.to_str().unwrap(), &[]);
    (browsed.dom, browsed.log)
}

/// A run whose profile makes a flame graph.
fn profiled() -> Run {
    let mut run = small();
    let stacks = "entry;do_fault;alloc 30\nentry;exit 10\n";
    run.repetitions[0].observations.logs.push(("folded".into(), stacks.into()));
    run
}

/// A run of `vmtest`, with knees.
fn swept() -> Run {
    let experiment = Experiment::Vmtest(Vmtest::default());
    let mut seen = Observations::default();
    let request = Request::new(experiment.clone(), Setting::default());
    let model = Model::new("sun4c-sunos403", &[]).unwrap();
    model.plan(&request).unwrap().perform(&mut seen).unwrap();
    let mut run = small();
    run.header.experiment = experiment;
    run.repetitions[0].observations = seen;
    run
}

/// A run of `bandwidth` at these working sets, with one and two threads: the rates of copy, scale, add and triad are 1 to 4 GB a second
/// for each thread. What went on beside it is drawn too.
fn streamed(sizes: &[f64]) -> Run {
    let mut sheet = Sheet::new(pagelab_experiment::tables::bandwidth::TABLE);
    for &size in sizes {
        for threads in [1.0, 2.0] {
            let rate = |which: f64| Some(which * threads * 1e9);
            sheet.named(["row"], [Some(size), Some(threads), rate(1.0), rate(2.0), rate(3.0), rate(4.0)]);
        }
    }
    let mut run = small();
    run.header.experiment = Experiment::Bandwidth(Bandwidth::default());
    let seen = &mut run.repetitions[0].observations;
    let beside = std::mem::take(&mut seen.tables);
    seen.tables = beside.into_iter().chain([sheet.table()]).collect();
    seen.environment.insert("cache.l2".into(), "1048576".into());
    run
}

fn bandwidth_is_drawn_by_loop_and_threads_before_all_else() {
    let titles = |page: &str| -> Vec<String> {
        let titles = page.split("<h3>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
        titles.filter(|title| title != "Where the time went").collect()
    };
    let drawn = ["Memory bandwidth against the working set", "Memory bandwidth against the threads"];
    let (sweep, other) = (streamed(&[262_144.0, 1e6, 6.4e7]), streamed(&[262_144.0, 6.4e7]));
    let page = html(&[&sweep]);
    assert_eq!(titles(&page)[..2], drawn);
    assert!(titles(&page).len() > 2, "what went on beside it: {:?}", titles(&page));
    for line in ["copy, 1 thread", "scale, 1 thread", "add, 2 threads", "triad, 2 threads", "L2 1 MiB"] {
        assert!(page.contains(line), "{line}");
    }
    // Against the threads at the greatest working set alone.
    let data =
        page.split("<script type=\"application/json\">").nth(2).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let triad = data["curves"].as_array().unwrap_or_else(|| panic!("{data}")).last().unwrap();
    let (ends, rates) =
        (serde_json::json!([[1, 2]]), serde_json::json!([4_000_000_000_u64, 8_000_000_000_u64]));
    assert_eq!((&data["xs"], &triad["name"], &triad["y"]), (&ends, &"triad".into(), &rates));
    // Of one working set there is no line over working sets; of several runs triad alone.
    assert_eq!(titles(&html(&[&streamed(&[6.4e7])]))[0], drawn[1]);
    let both = html(&[&sweep, &other]);
    assert_eq!(titles(&both)[..2], drawn);
    let figure = both.split("<figure class=\"plot").nth(1).unwrap();
    assert!(figure.contains("triad, 2 threads") && !figure.contains("copy, 2 threads"), "{figure}");
}

/// Three restores, each with a row per order.
fn restored(name: &str) -> Run {
    let mut run = small();
    run.header.name = name.into();
    run.header.experiment = Experiment::Restore(Restore::default());
    let missing = tables::restore::TABLE.columns.iter().copied().filter(|column| {
        ![tables::restore::ORDER, tables::restore::ANSWER, tables::restore::VAIN].contains(column)
    });
    let missing: Vec<_> = missing.collect();
    let repetition = |number: u32| {
        let more = f64::from(number);
        let mut sheet = Sheet::without(tables::restore::TABLE, &missing);
        sheet.named(["none"], [Some(4e7 + more * 1e6), Some(0.0)]);
        sheet.named(["recorded"], [Some(2e7), Some(340.0 + more)]);
        let observations = Observations { tables: vec![sheet.table()], ..Observations::default() };
        Repetition { number, observations, ..small().repetitions.remove(0) }
    };
    run.repetitions = (1..=3).map(repetition).collect();
    run
}

fn a_restore_is_drawn_by_prefetch_order() {
    let page = html(&[&restored("r")]);
    for part in [
        "Time to the first answer",
        "Prefetched pages that the answer never touched",
        "with their range (min … max), per prefetch order",
        "none: 42.0 ms (41.0 ms … 43.0 ms)",
        "recorded: 342 (341 … 343)",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let two = html(&[&restored("r"), &restored("s")]);
    assert!(two.contains("class=\"key c1\""), "each run has its colour");
}

fn the_script_runs_in_a_browser_on_every_kind_of_page() {
    let (small, profiled, swept) = (small(), profiled(), swept());
    let streamed = streamed(&[262_144.0, 1e6, 6.4e7]);
    let mut failed = small.clone();
    failed.repetitions[0].outcome = Outcome::Failed(Failure::interrupted());
    for (kind, html) in [
        ("a run", html(&[&small])),
        ("a flame graph", html(&[&profiled])),
        ("a sweep", html(&[&swept])),
        ("bandwidth", html(&[&streamed])),
        ("a comparison", html(&[&small, &profiled])),
        ("a failed run", html(&[&failed])),
        ("many experiments", html(&many().iter().collect::<Vec<_>>())),
        ("no runs", html(&[])),
        ("a study", studied("claims")),
    ] {
        let (dom, log) = browse(&html);
        assert!(dom.contains("data-ready=\"true\""), "{kind}: {log}");
        assert!(!log.contains("CONSOLE") && !log.contains("Content Security Policy"), "{kind}: {log}");
        assert!(!dom.contains("NaN"), "{kind}: a coordinate is no number");
    }
}

/// Presses keys and buttons, and writes down what came of it.
const READER: &str = r#"<script>
const box = document.querySelector(".plot"), svg = box.querySelector("svg.frame"), said = [];
const say = (what, value) => said.push(what + "=" + value);
const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const view = () => box.querySelector(".zooms").getAttribute("viewBox");
press("End"); say("end", box.querySelector(".readout").textContent);
say("dots", box.querySelectorAll(".cursor circle").length);
press("+"); say("near", view());
press("Escape"); say("far", view());
const place = svg.getBoundingClientRect(), at = (share) => place.left + 64 + share * (place.width - 80);
const point = (type, share) => svg.dispatchEvent(new PointerEvent(type, { clientX: at(share), bubbles: true, button: 0 }));
point("pointermove", 0.5); say("middle", box.querySelector(".readout").textContent);
point("pointerdown", 0.25); point("pointermove", 0.75); point("pointerup", 0.75); say("dragged", view());
svg.dispatchEvent(new MouseEvent("dblclick", { bubbles: true })); say("whole", view());
point("pointerleave", 0.5);
say("silent", box.querySelector(".readout").textContent === "");
box.querySelector("button.scale").click(); say("scale", box.dataset.scale);
const latency = [...document.querySelectorAll(".plot")].find((p) => p.querySelector("h3").textContent.startsWith("Latency"));
latency.querySelector("svg.frame").dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
say("first", latency.querySelector(".readout").textContent);
const line = box.querySelector("button[data-series='0']");
line.click(); say("hidden", box.querySelectorAll(".s0.off").length + line.getAttribute("aria-pressed"));
document.getElementById("theme").click(); say("theme", document.documentElement.dataset.theme);
document.body.append(Object.assign(document.createElement("pre"), { textContent: said.join("|") }));
</script></body>"#;

fn keys_and_buttons_work() {
    // The reader's script is none of the page's: its policy would not let it run.
    let page = html(&[&small()]).replace("Content-Security-Policy", "x-none").replace("</body>", READER);
    let (dom, log) = browse(&page);
    let said = dom.split("<pre>").nth(1).unwrap_or_else(|| panic!("{log}")).split("</pre>").next().unwrap();
    let of = |what: &str| {
        let found = said.split('|').find_map(|part| part.strip_prefix(&format!("{what}=")));
        found.unwrap_or_else(|| panic!("no {what} in {said}"))
    };
    assert!(
        of("end").starts_with("references made 30,000 · mean ") && of("end").contains(" · worst "),
        "{said}"
    );
    assert_eq!(of("dots"), "2");
    let view = |what: &str| -> Vec<f64> { of(what).split(' ').map(|v| v.parse().unwrap()).collect() };
    assert_eq!((view("near")[0], view("near")[2]), (5000.0, 5000.0));
    assert!(view("near")[3] < 2000.0, "the ordinate is fitted to what is shown: {said}");
    assert!(
        of("first").contains(" · hit ") && !of("first").contains("fault"),
        "no fault is that quick: {said}"
    );
    assert!(of("middle").starts_with("references made 15,000 · mean "), "{said}");
    assert_eq!(
        (view("dragged")[0], view("dragged")[2], of("whole")),
        (2500.0, 5000.0, "0 0 10000 2000"),
        "{said}"
    );
    assert_eq!((of("far"), of("silent")), ("0 0 10000 2000", "true"));
    assert_eq!((of("scale"), of("hidden"), of("theme")), ("linear", "2false", "dark"));
}

fn missing_data_is_reported() {
    let mut run = small();
    let seen = &mut run.repetitions[0].observations;
    seen.pages.clear();
    let Values::Number(column) = &mut seen.tables[0].columns[6].values else { panic!("swap.in") };
    column.fill(Some(0.0));
    let Values::Number(column) = &mut seen.tables[0].columns[7].values else { panic!("swap.out") };
    column.fill(Some(0.0));
    let Values::Number(column) = &mut seen.tables[0].columns[8].values else { panic!("pages.present") };
    column.fill(None);
    let page = html(&[&run]);
    for line in [
        "<b>Swap traffic over the run</b> is not drawn: no page went to swap or came from it.",
        "<b>Pages present over the run</b> is not drawn: not measured.",
        "<b>Pages over time</b> is not drawn: the target showed no whole page maps.",
    ] {
        assert!(page.contains(line), "{line}");
    }
}

fn instructions_and_time_share_no_axis() {
    let (time, mut counted) = (small(), small());
    counted.header.name = "counted".into();
    let seen = &mut counted.repetitions[0].observations;
    for unit in seen
        .histograms
        .iter_mut()
        .map(|h| &mut h.unit)
        .chain(seen.tables[0].columns.iter_mut().filter_map(|c| c.unit.as_mut()))
        .chain(seen.metrics.iter_mut().map(|m| &mut m.unit))
        .filter(|unit| **unit == Unit::Nanoseconds)
    {
        *unit = Unit::Instructions;
    }
    let page = html(&[&time, &counted]);
    assert_eq!(page.matches("<h3>Access time over the run</h3>").count(), 2);
    assert_eq!(page.matches("<h3>Latency of each kind of reference</h3>").count(), 2);
    // The same figures in two units: each bar is the longest of its own.
    let bars: Vec<&str> = page.split("<div class=\"bar\">").skip(1).collect();
    let ends = |bar: &str| bar.split("</svg>").next().unwrap().split("<rect").skip(1).collect::<String>();
    assert_eq!(bars.len(), 2);
    assert_eq!(ends(bars[0]), ends(bars[1]));
    assert!(bars[1].contains(" instr <span") && !bars[0].contains(" instr <span"), "{}", bars[1]);
    assert!(page.contains("instructions of a reference"));
}

fn broken_observations_are_drawn_as_far_as_they_go() {
    let mut run = small();
    let seen = &mut run.repetitions[0].observations;
    seen.pages[3].last.truncate(5);
    seen.pages[4].pages = 7;
    seen.pages[5].present = PageSet::from_runs(vec![u32::MAX, u32::MAX]);
    seen.counters.push(Counter { source: "x".into(), name: "y".into(), before: i64::MIN, after: i64::MAX });
    seen.histograms[0].buckets = vec![(u64::MAX, u64::MAX), (0, u64::MAX), (5, 1)];
    seen.tables[0].columns[2].values = Values::Number(vec![Some(f64::INFINITY), Some(-1.0), Some(f64::MAX)]);
    seen.tables[0].columns.swap(3, 0);
    let mut other = run.clone();
    other.repetitions[0].observations.pages.last_mut().unwrap().count.clear();
    let page = html(&[&run, &other]);
    assert!(page.contains("showed no whole page maps") && !page.contains("NaN"));
}

fn the_median_repetition_is_one_that_was_timed() {
    let mut run = small();
    let again = run.repetitions[0].clone();
    run.repetitions.extend([again.clone(), again]);
    for (n, elapsed) in [(0, None), (1, Some(5.0)), (2, Some(4.0))] {
        run.repetitions[n].number = n as u32 + 1;
        let metrics = &mut run.repetitions[n].observations.metrics;
        metrics.iter_mut().find(|m| m.name == "time.elapsed").unwrap().value = elapsed;
    }
    assert!(html(&[&run]).contains("number 3 of 3"));
}

/// The words of a page without what is drawn: one line for each piece of text.
fn words(page: &str) -> String {
    let mut text = page.to_owned();
    for (from, to) in [
        ("<script", "</script>"),
        ("<style", "</style>"),
        ("<svg class=\"frame\"", "<div class=\"readout\""),
        ("<details", "</details>"),
    ] {
        while let Some(start) = text.find(from) {
            let end = text[start..].find(to).map_or(text.len(), |n| start + n + to.len());
            text.replace_range(start..end, "<x>");
        }
    }
    let pieces = text.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, words)| words.trim());
    pieces.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n")
}

fn the_words_of_a_small_page() {
    let paging = Paging { pages: 400, references: 3000, ..Paging::default() };
    let mut run = run("small", "linux-lru", paging);
    run.repetitions[0].observations.notes.push(Note { level: Level::Warning, text: "a warning".into() });
    insta::assert_snapshot!(words(&html(&[&run])));
}

fn runs_on_different_targets_are_labelled_by_target() {
    let paging = Paging { pages: 64, references: 300, ..Paging::default() };
    let (a, mut b) = (run("a", "lru", paging.clone()), run("b", "opt", paging));
    let page = html(&[&a, &b]);
    let answer = page.find("<h1>No significant difference in mean access time").unwrap();
    assert!(page[answer..].contains("class=\"forest\""));
    assert!(page.contains("\"model:lru hit\"") && page.contains("\"model:opt hit\""));
    b.header.target = "model:lru".parse::<TargetSpec>().unwrap();
    assert!(html(&[&a, &b]).contains("\"b hit\""));
}
