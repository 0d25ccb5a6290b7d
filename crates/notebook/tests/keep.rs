//! What is stored is loaded again; names, imports, exports, two writers.

mod common;

use std::collections::BTreeMap;

use common::{NOW, header, place, some};
use pagelab_experiment::observation::{
    Better, Column, Counter, Histogram, Level, Metric, Note, PageSet, PageSnapshot, Table, Unit, Values,
};
use pagelab_experiment::{Failure, Observation, Observations, Outcome, Run};
use pagelab_notebook::export::{Format, export};
use pagelab_notebook::{Notebook, Problem};
use proptest::prelude::*;

fn unit() -> impl Strategy<Value = Unit> {
    prop::sample::select(vec![Unit::Nanoseconds, Unit::Count, Unit::Pages, Unit::PerSecond, Unit::Ratio])
}

fn number() -> impl Strategy<Value = Option<f64>> {
    prop::option::of(prop::num::f64::NORMAL | prop::num::f64::ZERO)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["\\PC{0,12}", any::<String>()]
}

fn column() -> impl Strategy<Value = Column> {
    let values = prop_oneof![
        prop::collection::vec(number(), 0..20).prop_map(Values::Number),
        prop::collection::vec(text(), 0..20).prop_map(Values::Text),
    ];
    (text(), prop::option::of(unit()), values).prop_map(|(name, unit, values)| Column { name, unit, values })
}

fn observation() -> impl Strategy<Value = Observation> {
    let most = i64::MAX as u64;
    prop_oneof![
        prop::collection::btree_map(text(), text(), 0..4).prop_map(Observation::Environment),
        (text(), unit(), number()).prop_map(|(name, unit, value)| {
            Observation::Metric(Metric { name, unit, better: Better::Lower, value })
        }),
        (text(), unit(), prop::collection::btree_map(0..most, 0..most, 0..9), 0..most, 0..most, 0..most)
            .prop_map(|(name, unit, buckets, min, max, sum)| {
                let buckets = buckets.into_iter().collect();
                Observation::Histogram(Histogram { name, unit, buckets, min, max, sum })
            }),
        (text(), prop::collection::vec(column(), 0..4))
            .prop_map(|(name, columns)| Observation::Table(Table { name, columns })),
        (0..most, any::<u32>(), any::<Vec<bool>>(), any::<Vec<u32>>(), any::<Vec<u32>>()).prop_map(
            |(reference, pages, present, count, last)| {
                let present = PageSet::from_flags(present);
                let swapped = PageSet::from_runs(count.clone());
                Observation::Pages(PageSnapshot { reference, pages, present, swapped, count, last })
            }
        ),
        prop::collection::vec((text(), text(), any::<i64>(), any::<i64>()), 0..4).prop_map(|counters| {
            let counter = |(source, name, before, after)| Counter { source, name, before, after };
            Observation::Counters(counters.into_iter().map(counter).collect())
        }),
        text().prop_map(|text| Observation::Note(Note { level: Level::Warning, text })),
        (text(), text()).prop_map(|(name, text)| Observation::Log(name, text)),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Done),
        Just(Outcome::Interrupted),
        Just(Outcome::Torn),
        text().prop_map(|what| Outcome::Failed(Failure::unsupported(what, "less")))
    ]
}

fn keep(notebook: &mut Notebook, name: &str, seen: &[Observation], outcome: &Outcome) -> Run {
    let id = notebook.begin_run(&header(name)).unwrap();
    let repetition = notebook.begin_repetition(id, 1, NOW).unwrap();
    for observation in seen {
        notebook.record(repetition, observation).unwrap();
    }
    notebook.finish_repetition(repetition, outcome).unwrap();
    notebook.load(id).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stored_runs_load_import_and_export_the_same(
        seen in prop::collection::vec(observation(), 0..8),
        outcome in outcome(),
    ) {
        let (folder, path) = place();
        let mut notebook = Notebook::open(&path).unwrap();
        let run = keep(&mut notebook, "r", &seen, &outcome);
        let mut expected = Observations::default();
        seen.iter().cloned().for_each(|o| expected.add(o));
        prop_assert_eq!(&run.header, &header("r"));
        prop_assert_eq!(&run.repetitions[0].outcome, &outcome);
        prop_assert_eq!(&run.repetitions[0].observations, &expected);

        let mut other = Notebook::open(&folder.path().join("other.db")).unwrap();
        other.import(&path).unwrap();
        let imported = other.load(other.resolve("r").unwrap()).unwrap();
        prop_assert_eq!(&imported.repetitions, &run.repetitions);

        let mut json = Vec::new();
        export(std::slice::from_ref(&run), Format::Json, &mut json).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let exported = &json["runs"][0]["repetitions"][0]["observations"];
        prop_assert_eq!(&exported["tables"], &serde_json::to_value(&expected.tables).unwrap());
        prop_assert_eq!(&exported["metrics"], &serde_json::to_value(&expected.metrics).unwrap());
        for (index, pages) in expected.pages.iter().enumerate() {
            prop_assert_eq!(&exported["pages"][index]["last"], &serde_json::to_value(&pages.last).unwrap());
            prop_assert_eq!(&exported["pages"][index]["present"], &serde_json::to_value(pages.present.runs()).unwrap());
        }

        let mut csv = Vec::new();
        export(std::slice::from_ref(&run), Format::Csv, &mut csv).unwrap();
        let rows: Vec<BTreeMap<String, String>> =
            csv::Reader::from_reader(&csv[..]).deserialize().collect::<Result<_, _>>().unwrap();
        let metrics: Vec<Option<f64>> =
            rows.iter().filter(|r| r["kind"] == "metric").map(|r| r["value"].parse().ok()).collect();
        prop_assert_eq!(metrics, expected.metrics.iter().map(|m| m.value).collect::<Vec<_>>());
    }
}

#[test]
fn a_spreadsheet_sees_no_formula_in_csv() {
    let (_folder, path) = place();
    let texts = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "-1.5", "+3", "plain", "1-2"];
    let logs = texts.iter().map(|text| Observation::Log(format!("={text}"), (*text).into()));
    let (name, unit, better) = ("@m".into(), Unit::Ratio, Better::Lower);
    let figure = Observation::Metric(Metric { name, unit, better, value: Some(-2.5) });
    let seen: Vec<Observation> = logs.chain([figure]).collect();
    let run = keep(&mut Notebook::open(&path).unwrap(), "=run", &seen, &Outcome::Done);
    let mut csv = Vec::new();
    export(std::slice::from_ref(&run), Format::Csv, &mut csv).unwrap();
    let rows: Vec<BTreeMap<String, String>> =
        csv::Reader::from_reader(&csv[..]).deserialize().collect::<Result<_, _>>().unwrap();
    assert!(rows.iter().all(|row| row["run"] == "'=run"), "{rows:?}");
    let metric = rows.iter().find(|row| row["kind"] == "metric").unwrap();
    assert_eq!((metric["name"].as_str(), metric["value"].as_str()), ("'@m", "-2.5"));
    for text in texts {
        let row = rows.iter().find(|row| row["name"] == format!("'={text}")).unwrap();
        let number = text.parse::<f64>().is_ok();
        let formula = !number && !text.starts_with(|c: char| c.is_alphanumeric());
        assert_eq!(row["text"], if formula { format!("'{text}") } else { text.to_owned() });
    }
}

#[test]
fn nan_is_null_in_json() {
    let (_folder, path) = place();
    let figure = |value| {
        Observation::Metric(Metric {
            name: "m".into(),
            unit: Unit::Ratio,
            better: Better::Lower,
            value: Some(value),
        })
    };
    let run = keep(
        &mut Notebook::open(&path).unwrap(),
        "r",
        &[figure(f64::NAN), figure(f64::INFINITY)],
        &Outcome::Done,
    );
    let mut json = Vec::new();
    export(&[run], Format::Json, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let metrics = &json["runs"][0]["repetitions"][0]["observations"]["metrics"];
    assert!(metrics[0]["value"].is_null() && metrics[1]["value"].is_null(), "{metrics}");
}

#[test]
fn names_numbers_and_the_newest() {
    let (_folder, path) = place();
    let mut notebook = Notebook::open(&path).unwrap();
    let first = notebook.begin_run(&header("")).unwrap();
    let named = notebook.begin_run(&header("before")).unwrap();
    let second = notebook.begin_run(&header("")).unwrap();
    let names: Vec<_> = notebook.list().unwrap().into_iter().map(|s| s.header.name).collect();
    assert_eq!(names, ["mapanon-1", "before", "mapanon-2"]);
    for (text, id) in [
        ("mapanon-1", first),
        ("before", named),
        ("@1", second),
        ("@3", first),
        (first.to_string().as_str(), first),
    ] {
        assert_eq!(notebook.resolve(text).unwrap(), id, "{text}");
    }
    for text in ["@0", "@4", "@", "@x", "99", "", "mapanon", "@-1"] {
        assert!(matches!(notebook.resolve(text).unwrap_err().problem, Problem::NoRun { .. }), "{text}");
    }
    assert!(matches!(notebook.begin_run(&header("before")).unwrap_err().problem, Problem::NameTaken(_)));
    for name in ["@1", "17"] {
        assert!(matches!(notebook.begin_run(&header(name)).unwrap_err().problem, Problem::NameImpossible(_)));
    }
    assert!(Notebook::open_existing(&path).unwrap().begin_run(&header("x")).is_err(), "only to read");
}

#[test]
fn importing_renames_recognises_and_completes() {
    let (folder, path) = place();
    let there = folder.path().join("other.db");
    let mut here = Notebook::open(&path).unwrap();
    let mut other = Notebook::open(&there).unwrap();
    keep(&mut here, "same", &some(10), &Outcome::Done);
    keep(&mut other, "same", &some(20), &Outcome::Done);
    let running = other.begin_run(&header("running")).unwrap();
    let repetition = other.begin_repetition(running, 1, NOW).unwrap();

    let report = here.import(&there).unwrap();
    assert_eq!(report.known, 0);
    assert_eq!(
        report.imported,
        [("same".into(), "same-2".into()), ("running".into(), "running".into())] as [(String, String); 2]
    );
    let taken = here.load(here.resolve("same-2").unwrap()).unwrap();
    assert_eq!(taken.repetitions[0].observations.pages[0].pages, 20);

    other.finish_repetition(repetition, &Outcome::Done).unwrap();
    let report = here.import(&there).unwrap();
    assert_eq!((report.imported.len(), report.known), (0, 2));
    assert_eq!(here.load(here.resolve("running").unwrap()).unwrap().repetitions.len(), 1);
    assert_eq!(here.list().unwrap().len(), 3);
}

#[test]
fn two_writers_at_once() {
    let (_folder, path) = place();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut notebook = Notebook::open(&path).unwrap();
                for _ in 0..10 {
                    keep(&mut notebook, "", &some(10), &Outcome::Done);
                }
            });
        }
    });
    let notebook = Notebook::open_existing(&path).unwrap();
    let list = notebook.list().unwrap();
    assert_eq!(list.len(), 20);
    assert!(list.iter().all(|s| (s.repetitions, s.done, s.running) == (1, 1, 0)));
}

#[test]
fn a_table_grows_below_and_by_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut notebook = Notebook::open(&folder.path().join("n.db")).unwrap();
    let run = notebook.begin_run(&header("grows")).unwrap();
    let repetition = notebook.begin_repetition(run, 1, NOW).unwrap();
    let column = |name: &str, values: &[Option<f64>]| Column {
        name: name.to_owned(),
        unit: Some(Unit::Count),
        values: Values::Number(values.to_vec()),
    };
    let part = |columns| Table { name: "counters".to_owned(), columns };
    let parts = [
        part(vec![column("time", &[Some(1.0), Some(2.0)]), column("a", &[Some(5.0), None])]),
        part(vec![column("time", &[Some(3.0)]), column("b", &[Some(7.0)])]),
        part(vec![column("time", &[Some(4.0)]), column("b", &[Some(8.0)]), column("a", &[Some(6.0)])]),
    ];
    for part in &parts {
        notebook.extend_table(repetition, part).unwrap();
    }
    notebook.finish_repetition(repetition, &Outcome::Done).unwrap();
    let whole = part(vec![
        column("time", &[Some(1.0), Some(2.0), Some(3.0), Some(4.0)]),
        column("a", &[Some(5.0), None, None, Some(6.0)]),
        column("b", &[None, None, Some(7.0), Some(8.0)]),
    ]);
    assert_eq!(notebook.load(run).unwrap().repetitions[0].observations.tables, [whole]);
}

#[test]
fn the_newest_entry_of_a_target_is_found_under_its_condition() {
    let (_folder, path) = place();
    let mut notebook = Notebook::open(&path).unwrap();
    let target = header("a").target.to_string();
    let newest = |notebook: &Notebook, target: &str| {
        notebook.newest(target, "guest.begun.after", ("guest.begun", "booted")).unwrap()
    };
    assert_eq!(newest(&notebook, &target), None);
    for (name, begun, after) in
        [("a", "booted", "9.0 s"), ("b", "booted", "8.0 s"), ("c", "restored", "0.4 s")]
    {
        let seen = [("guest.begun", begun), ("guest.begun.after", after)];
        let seen = seen.map(|(name, value)| (name.to_owned(), value.to_owned()));
        notebook.keep(&header(name), &[Observation::Environment(seen.into())]).unwrap();
    }
    assert_eq!(newest(&notebook, &target).as_deref(), Some("8.0 s"));
    assert_eq!(newest(&notebook, "another"), None);
}
