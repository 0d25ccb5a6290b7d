//! The rules of the workspace that a machine can check.

use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folders of the crates.
fn crates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(workspace().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() >= 10, "{found:?}");
    found
}

/// The Rust files of a folder and of those in it.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Without a harness of the compiler's, a function marked as a test is left out, without a word.
#[test]
fn no_test_is_marked_where_tests_are_listed() {
    let mut seen = 0;
    for folder in crates() {
        let manifest = text(&folder.join("Cargo.toml"));
        for target in manifest.split("[[").filter(|target| target.starts_with("test]]")) {
            if !target.lines().any(|line| line == "harness = false") {
                continue;
            }
            let value = |key: &str| {
                let line = target.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""))?;
                line.strip_suffix('"')
            };
            let name = value("name").unwrap();
            let file = value("path").map_or_else(|| format!("tests/{name}.rs"), str::to_owned);
            let files = match file.strip_suffix("/main.rs") {
                Some(module) => sources(&folder.join(module)),
                None => vec![folder.join(&file)],
            };
            assert!(!files.is_empty(), "{file}");
            for file in files {
                let marked = text(&file).lines().any(|line| line.trim() == "#[test]");
                assert!(!marked, "{}: list the test in main, without #[test]", file.display());
                seen += 1;
            }
        }
    }
    assert!(seen >= 10, "only {seen} files looked at");
}

/// A test that returns because something is lacking passes: it says what it needs instead.
#[test]
fn no_test_says_that_it_was_skipped() {
    for folder in crates() {
        for file in sources(&folder) {
            if file.ends_with("testing/tests/rules.rs")
                || file.components().any(|c| c.as_os_str() == "benches")
            {
                continue;
            }
            let said = |line: &&str| line.contains("skipped: ") && !line.trim_start().starts_with("//");
            assert_eq!(
                text(&file).lines().find(said),
                None,
                "{}: name what the test needs, see crates/testing",
                file.display()
            );
        }
    }
}
