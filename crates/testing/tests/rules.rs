//! The rules of the workspace that a machine can check.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{crates, sources, text, workspace};
use proc_macro2::{TokenStream, TokenTree};

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

/// Only what is in `crates/live` may have unsafe code: everybody else's lints forbid it, and none has any.
#[test]
fn unsafe_code_is_in_one_folder() {
    let root = text(&workspace().join("Cargo.toml"));
    assert!(root.contains("[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"));
    for folder in crates() {
        if folder.ends_with("live") {
            continue;
        }
        let manifest = text(&folder.join("Cargo.toml"));
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{}: [lints]", folder.display());
        for file in sources(&folder) {
            let tokens: TokenStream = text(&file).parse().unwrap();
            assert!(!has_word(tokens, "unsafe"), "{}: unsafe code", file.display());
        }
    }
}

/// Nor do the others ask the kernel by a library of its calls; `testing` does, for tests alone.
#[test]
fn system_calls_are_in_one_folder() {
    for folder in crates() {
        if folder.ends_with("live") || folder.ends_with("testing") {
            continue;
        }
        let manifest = text(&folder.join("Cargo.toml"));
        let name = |line: &str| line.split(['.', ' ', '=']).next().unwrap_or_default().to_owned();
        let found = manifest.lines().map(name).find(|name| ["libc", "nix", "rustix"].contains(&&**name));
        assert_eq!(found, None, "{}: its calls belong into crates/live", folder.display());
    }
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == word,
        TokenTree::Group(group) => has_word(group.stream(), word),
        _ => false,
    })
}

/// The table in docs/architecture.md says which crate uses which.
#[test]
fn the_table_of_crates_is_the_graph() {
    let document = text(&workspace().join("docs/architecture.md"));
    let written: BTreeMap<String, BTreeSet<String>> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `crates/"))
        .map(|line| {
            let (name, rest) = line.split_once('`').unwrap();
            let uses = rest.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            let uses = match uses {
                "nothing of ours" => BTreeSet::new(),
                "all but testing, ring, caches and python" => {
                    let others = [name, "testing", "ring", "caches", "python"];
                    names().into_iter().filter(|n| !others.contains(&n.as_str())).collect()
                }
                list => list.split(", ").map(str::to_owned).collect(),
            };
            (name.to_owned(), uses)
        })
        .collect();
    let real: BTreeMap<String, BTreeSet<String>> =
        crates().iter().map(|folder| (name(folder), used(folder))).collect();
    assert_eq!(written, real, "docs/architecture.md (left) against the manifests (right)");
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

fn names() -> Vec<String> {
    crates().iter().map(|folder| name(folder)).collect()
}

/// The crates of ours that a crate depends on; for its tests alone counts for nothing.
fn used(folder: &Path) -> BTreeSet<String> {
    let manifest = text(&folder.join("Cargo.toml"));
    let dependencies = manifest.split("\n[").find_map(|part| part.strip_prefix("dependencies]\n"));
    let ours = |line: &str| Some(line.strip_prefix("pagelab-")?.split(['.', ' ']).next()?.to_owned());
    dependencies.unwrap_or_default().lines().filter_map(ours).collect()
}
