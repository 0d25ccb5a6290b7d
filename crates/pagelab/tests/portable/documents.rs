//! The documents say what the program does.

use crate::common::Lab;
use pagelab_experiment::catalogue;

fn document(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Every page of the book below a folder of docs/src.
fn pages(folder: &str) -> Vec<std::path::PathBuf> {
    let folder = format!("{}/../../docs/src/{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "md")).collect()
}

/// What stands below `<!-- generated: COMMAND -->` is what that command prints; PAGELAB_UPDATE=1
/// writes it.
#[test]
fn generated_parts_are_what_their_commands_print() {
    let lab = Lab::new();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let (mut seen, mut stale) = (0, Vec::new());
    for path in ["evidence", "reference", "reference/experiments"].into_iter().flat_map(pages) {
        let text = std::fs::read_to_string(&path).unwrap();
        let Some((before, rest)) = text.split_once("<!-- generated: ") else { continue };
        let (command, below) = rest.split_once(" -->\n").unwrap();
        let printed = match command.strip_prefix("pagelab ") {
            Some(arguments) => lab.ok(arguments),
            None => {
                let mut words = command.split(' ');
                let script = format!("{root}/{}", words.next().unwrap());
                let output = std::process::Command::new(script).args(words).output().unwrap();
                assert!(output.status.success(), "{command}: {output:?}");
                String::from_utf8(output.stdout).unwrap()
            }
        };
        seen += 1;
        if below.trim() != printed.trim() {
            if std::env::var_os("PAGELAB_UPDATE").is_some() {
                let new = format!("{before}<!-- generated: {command} -->\n\n{}\n", printed.trim());
                std::fs::write(&path, new).unwrap();
            }
            stale.push(path);
        }
    }
    assert!(seen > 25, "{seen}");
    assert!(stale.is_empty(), "stale, PAGELAB_UPDATE=1 writes them: {stale:#?}");
}

/// Every experiment has a page of its own, and every page of evidence at most 40 lines of method.
#[test]
fn pages_are_complete_and_short() {
    for experiment in pagelab_experiment::Experiment::catalogue() {
        let page = document(&format!("src/reference/experiments/{}.md", experiment.name));
        assert!(
            page.contains(&format!("<!-- generated: pagelab reference experiment {} -->", experiment.name))
        );
    }
    for path in pages("evidence") {
        let text = std::fs::read_to_string(&path).unwrap();
        let method = text.split("<!-- generated: ").next().unwrap();
        assert!(method.lines().count() <= 40, "{path:?}");
    }
}

#[test]
fn every_metric_has_its_row_of_accuracy() {
    let text = document("src/evidence/accuracy.csv");
    let missing: Vec<&str> =
        catalogue::metrics().map(|m| m.name).filter(|name| !text.contains(&format!(",{name},"))).collect();
    assert!(
        missing.is_empty(),
        "docs/src/evidence/accuracy.csv lacks {missing:?} (scripts/accuracy --document)"
    );
}

#[test]
fn a_term_is_explained_however_it_is_written() {
    let lab = Lab::new();
    for (asked, name) in [
        ("refault", "refault:"),
        ("refaults", "refaults:"),
        ("reclaim.had", "reclaim.reclaimed:"),
        ("working-set", "working set:"),
        ("Working set", "working set:"),
        ("opt", "OPT:"),
        ("swap-in", "swap-in, swap-out:"),
        ("access.major.p50", "access.major.p50:"),
    ] {
        assert!(lab.ok(&format!("explain {asked}")).starts_with(name), "{asked}");
    }
    assert!(lab.ok("explain refaults").contains("\nrefault:"), "the term of the same name as well");
    lab.refuses("explain fault", 2, &["there is 'major fault', 'minor fault'"]);
    assert_eq!(lab.json("explain knee --json")["terms"][0]["name"], "knee");
    lab.shows("explain", &["minimum detectable change", "pages.present"]);
}

/// The files of the book and those beside it that Markdown links may lead to.
fn markdown() -> Vec<std::path::PathBuf> {
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut found: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root.join(name)).into();
    let mut folders = vec![root.join("docs/src")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|e| e == "md") => found.push(path),
                false => (),
            }
        }
    }
    found
}

/// The relative paths that a page links to.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains([':', ' '])).collect()
}

#[test]
fn every_link_leads_to_a_file_and_no_page_links_out_of_the_book() {
    let mut broken = Vec::new();
    for page in markdown() {
        let in_book = page.to_str().unwrap().contains("docs/src/");
        for link in links(&std::fs::read_to_string(&page).unwrap()) {
            let target = page.parent().unwrap().join(link);
            let inside = target.canonicalize().is_ok_and(|path| path.to_str().unwrap().contains("docs/src/"));
            if !target.exists() || in_book && !inside {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Evidence and Reference are looked up, not read.
#[test]
fn the_reading_path_is_short_and_every_page_is_in_the_summary() {
    let summary = document("src/SUMMARY.md");
    let listed = links(&summary);
    let lines = |name: &str| document(name).lines().count();
    assert!(lines("../README.md") <= 120 && lines("../CHANGELOG.md") <= 150);
    for page in markdown() {
        if let Some(name) = page.to_str().unwrap().split("docs/src/").nth(1) {
            assert!(name == "SUMMARY.md" || listed.contains(&name), "SUMMARY.md lacks {name}");
        }
    }
    let reading =
        listed.iter().filter(|name| !name.starts_with("reference/") && !name.starts_with("evidence/"));
    let words: usize = reading.map(|name| document(&format!("src/{name}")).split_whitespace().count()).sum();
    assert!(words <= 25_000, "the reading path has {words} words");
}
