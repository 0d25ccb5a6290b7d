//! Notebooks of every schema version, through every command that takes one; and with a run in them
//! that cannot be read.

use std::path::{Path, PathBuf};

use crate::common::Lab;

/// The notebooks of every version so far.
fn golden() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../notebook/tests/golden");
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// A lab whose notebook is a copy of `from`.
fn lab(from: &Path) -> Lab {
    let lab = Lab::new();
    std::fs::copy(from, lab.path("pagelab.db")).unwrap();
    lab
}

fn names(lab: &Lab) -> Vec<String> {
    let listed = lab.json("list --check --json");
    let runs = listed["runs"].as_array().unwrap();
    runs.iter().map(|run| run["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_command_takes_notebooks_of_every_version() {
    for notebook in golden() {
        let lab = lab(&notebook);
        let names = names(&lab);
        let text = lab.ok("list");
        assert!(names.len() >= 15 && !text.contains("unreadable"), "{text}");
        for name in &names {
            assert!(text.contains(name.as_str()), "{name}: {text}");
            lab.shows(&format!("show {name} --all"), &[name.as_str()]);
            assert_eq!(lab.json(&format!("show {name} --json"))["result"]["runs"][0]["name"], name.as_str());
            lab.ok(&format!("compare {name} {name} --all"));
        }
        lab.shows("compare model-1 model-2 --all", &["faults.major"]);
        let all = names.join(" ");
        lab.ok(&format!("report {all} -o page.html"));
        let page = std::fs::read_to_string(lab.path("page.html")).unwrap();
        assert!(names.iter().all(|name| page.contains(name.as_str())));
        for (format, least) in [("json", 50_000), ("csv", 50_000), ("parquet", 10_000)] {
            lab.ok(&format!("export {all} --format {format} -o exported"));
            assert!(std::fs::metadata(lab.path("exported")).unwrap().len() > least, "{format}");
        }
        assert!(std::fs::read(lab.path("pagelab.db")).unwrap() == std::fs::read(&notebook).unwrap());
        lab.ok("--notebook other.db import pagelab.db");
        let there = lab.json("--notebook other.db list --check --json");
        assert_eq!(there["runs"].as_array().unwrap().len(), names.len());
        // And goes on being written to.
        lab.ok("run mapanon --on model:lru --pages 8 --references 20 --memory 4p --html none --name more");
        assert_eq!(self::names(&lab).len(), names.len() + 1);
    }
}

#[test]
fn a_run_that_cannot_be_read_is_named_and_hides_no_other() {
    let lab = lab(&golden()[0]);
    let spoil = "UPDATE run SET parameters = json_set(parameters, '$.prefault', 3) WHERE name = 'paging'";
    rusqlite::Connection::open(lab.path("pagelab.db")).unwrap().execute_batch(spoil).unwrap();
    let listed = lab.ok("list");
    let line = listed.lines().find(|l| l.contains("paging")).unwrap();
    assert!(line.contains("unreadable: parameters: 'prefault' is unknown"), "{line}");
    assert!(listed.contains("model-1") && listed.lines().count() > 14, "{listed}");
    assert!(lab.json("list --json")["runs"][0]["unreadable"].as_str().unwrap().contains("prefault"));
    for command in ["show paging", "show 1", "compare paging file", "report file paging", "export paging"] {
        lab.refuses(command, 3, &["the run 'paging' cannot be read", "prefault"]);
    }
    lab.ok("compare model-1 model-2");
    let output = lab.output("--notebook other.db import pagelab.db");
    assert_eq!(output.status.code(), Some(3));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("skipped 'paging'"), "{error}");
    lab.shows("--notebook other.db list", &["model-1"]);
}
