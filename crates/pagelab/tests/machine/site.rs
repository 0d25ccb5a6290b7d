//! Tests of `pagelab site`, with a browser.

use std::fs;
use std::os::unix::fs::symlink;

use crate::common::Lab;
use pagelab_testing::browser::{add_script, browse};
use pagelab_testing::{CHROMIUM, Test, tests};
use serde_json::Value;

pub fn tests() -> Vec<Test> {
    tests! {
        the_site_compares_runs_as_compare_does: CHROMIUM;
        a_second_site_replaces_the_files_of_the_first_and_no_others;
        a_folder_of_others_is_refused_and_links_are_not_followed;
    }
}

/// A notebook with deterministic runs and runs that vary.
fn notebook() -> Lab {
    let lab = Lab::new();
    let models = "--on model:lru --on model:opt";
    lab.ok(&format!(
        "run mapanon --pages 400 --references 4000 --pattern uniform --memory 1M --html none --name exact {models}"
    ));
    lab.ok(
        "run --html none --repeat 8 --name true --on host --on host,thp=never command --memory none -- true",
    );
    lab.ok("run --html none --repeat 2 --name few command --memory none -- true");
    lab
}

const COMPARED: &str = r##"
const rows = [...document.querySelectorAll("#lines tr")].map((row) => {
  const value = (n) => row.cells[n].querySelector("data")?.value ?? null;
  const number = (text) => (text === null ? null : Number(text));
  return { metric: row.dataset.metric, before: number(value(1)), after: number(value(2)), change: number(value(3)),
    interval: value(4)?.split(" ").map(Number) ?? null, p: number(value(5)), test: value(6), verdict: row.cells[6].querySelector("data").textContent,
    detectable: number(row.cells[6].querySelector(".soft data")?.value ?? null) };
});
say(JSON.stringify({ rows, answer: byId("answer").textContent, warnings: [...byId("warnings").children].map((item) => item.textContent) }));
"##;

fn the_site_compares_runs_as_compare_does() {
    let lab = notebook();
    let written = &lab.json("site public --json")["site"];
    assert_eq!((&written["runs"], &written["unreadable"]), (&5.into(), &0.into()));
    let page = lab.path("public/compare.html");
    for address in ["index.html", "compare.html", "glossary.html", "runs/exact-1-1.html"] {
        browse(lab.path("public").join(address).to_str().unwrap(), &[]).assert_clean(address);
    }
    add_script(&page, COMPARED);
    let near = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * b.abs().max(1e-6),
        (a, b) => a == b,
    };
    let mut detectables = 0;
    for (before, after) in [(1, 2), (2, 1), (3, 4), (3, 5), (1, 3)] {
        let browsed = browse(&format!("{}#{before},{after}", page.display()), &[]);
        browsed.assert_clean("the comparison");
        let found: Value = serde_json::from_str(&browsed.said()).unwrap();
        let json = lab.json(&format!("compare {before} {after} --json"));
        let compared = &json["comparisons"][0];
        let (rows, lines) = (found["rows"].as_array().unwrap(), compared["metrics"].as_array().unwrap());
        assert_eq!(rows.len(), lines.len(), "{before} {after}");
        assert!(rows.len() > 4);
        for (row, line) in rows.iter().zip(lines) {
            let what = format!("{row} instead of {line}");
            for key in ["metric", "test", "verdict"] {
                assert_eq!(row[key], line[key], "{what}");
            }
            assert!(near(&row["before"], &line["before"]["median"]), "{what}");
            assert!(near(&row["after"], &line["after"]["median"]), "{what}");
            assert!(near(&row["change"], &line["change"]) && near(&row["p"], &line["p"]), "{what}");
            let ends = [0, 1].iter().all(|&n| near(&row["interval"][n], &line["interval"][n]));
            assert!(ends, "{what}");
            let detectable = match line["verdict"].as_str() {
                Some("no significant difference") => &line["minimum_detectable_factor"],
                _ => &Value::Null,
            };
            assert!(near(&row["detectable"], detectable), "{what}");
            detectables += usize::from(!detectable.is_null());
        }
        let warnings = compared["warnings"].as_array().unwrap();
        let warnings: Vec<String> =
            warnings.iter().map(|one| format!("Warning: {}", one.as_str().unwrap())).collect();
        assert_eq!(found["warnings"], serde_json::json!(warnings));
        let main = compared["primary"].as_str();
        assert!(main.is_none_or(|main| found["answer"].as_str().unwrap().starts_with(main)), "{found}");
    }
    assert!(detectables > 0);
}

fn a_second_site_replaces_the_files_of_the_first_and_no_others() {
    let lab = Lab::new();
    let run = |name: &str| {
        lab.ok(&format!("run mapanon --pages 64 --references 300 --on model:lru --html none --name {name}"));
    };
    ["one", "two"].into_iter().for_each(run);
    lab.shows("site public", &["public/index.html: 2 runs, 7 files"]);
    fs::write(lab.path("public/CNAME"), "example.org").unwrap();
    fs::write(lab.path("public/runs/mine.html"), "mine").unwrap();
    let again = &lab.json("site public --json")["site"];
    assert_eq!((&again["changed"], &again["removed"], &again["files"]), (&0.into(), &0.into(), &7.into()));
    // A site of another notebook removes the pages of the first.
    lab.ok(
        "--notebook other.db run mapanon --pages 64 --references 300 --on model:lru --html none --name three",
    );
    let other = &lab.json("--notebook other.db site public --json")["site"];
    assert_eq!((&other["removed"], &other["runs"]), (&2.into(), &1.into()));
    let mut left: Vec<String> = fs::read_dir(lab.path("public/runs"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["mine.html", "three-1.html"]);
    assert_eq!(
        (lab.text("public/CNAME").as_str(), lab.text("public/runs/mine.html").as_str()),
        ("example.org", "mine")
    );
    // pagelab does not overwrite a foreign file with the name of a page.
    fs::write(lab.path("public/runs/one-1.html"), "mine").unwrap();
    lab.refuses("site public", 2, &["public/runs/one-1.html is not a file that pagelab wrote"]);
    assert_eq!(lab.text("public/runs/one-1.html"), "mine");
    assert!(lab.text("public/index.html").contains("three"), "the older site is unchanged");
}

fn a_folder_of_others_is_refused_and_links_are_not_followed() {
    let lab = Lab::new();
    lab.ok("run mapanon --pages 64 --references 300 --on model:lru --html none --name one");
    fs::create_dir(lab.path("full")).unwrap();
    fs::write(lab.path("full/notes"), "mine").unwrap();
    lab.refuses(
        "site full",
        2,
        &["full is not empty, and pagelab did not write what is in it", "name a new folder"],
    );
    assert_eq!(fs::read_dir(lab.path("full")).unwrap().count(), 1);
    lab.refuses("--notebook none.db site other", 3, &["has no notebook"]);
    assert!(!lab.path("other").exists());
    // Links in place of pagelab's files.
    lab.ok("site public");
    fs::write(lab.path("victim"), "precious").unwrap();
    fs::remove_file(lab.path("public/index.html")).unwrap();
    symlink(lab.path("victim"), lab.path("public/index.html")).unwrap();
    lab.ok("site public");
    assert_eq!(lab.text("victim"), "precious");
    assert!(fs::symlink_metadata(lab.path("public/index.html")).unwrap().is_file());
    fs::rename(lab.path("public/runs"), lab.path("elsewhere")).unwrap();
    symlink(lab.path("elsewhere"), lab.path("public/runs")).unwrap();
    lab.refuses("site public", 3, &["it is not a folder"]);
    fs::remove_file(lab.path("public/runs")).unwrap();
    // A list with names outside the folder.
    let list = r#"{"schema_version":1,"files":["../victim","/etc/passwd","runs/../../victim","index.html"]}"#;
    fs::write(lab.path("public/pagelab-site.json"), list).unwrap();
    for file in fs::read_dir(lab.path("public")).unwrap().map(|entry| entry.unwrap().path()) {
        if !file.ends_with("pagelab-site.json") {
            fs::remove_file(file).unwrap();
        }
    }
    lab.ok("site public");
    assert_eq!(lab.text("victim"), "precious");
}
