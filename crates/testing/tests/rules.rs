//! The rules of the workspace that a machine can check.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Package, crates, packages, sources, text, workspace};
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
            let files = match folder.join(format!("tests/{name}.rs")) {
                file if file.exists() => vec![file],
                _ => sources(&folder.join("tests").join(name)),
            };
            assert!(!files.is_empty(), "{name}");
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

/// The crates with unsafe code: interfaces of the kernel, measured loops, and two libraries that
/// other programs load.
const UNSAFE: [&str; 4] = ["kernel", "live", "tracer", "preload"];
/// Others that use a library of system calls: the confinement, and the harness of the tests.
const SYSTEM_CALLS: [&str; 2] = ["confine", "testing"];

/// Every other crate's lints forbid unsafe code, and none has any.
#[test]
fn unsafe_code_is_in_four_crates() {
    let root = text(&workspace().join("Cargo.toml"));
    assert!(root.contains("[workspace.lints.rust]\nunsafe_code = \"forbid\"\n"));
    for package in packages().iter().filter(|package| !UNSAFE.contains(&&*package.name)) {
        let manifest = text(&package.folder.join("Cargo.toml"));
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{}: [lints]", package.name);
        for file in sources(&package.folder) {
            let tokens: TokenStream = text(&file).parse().unwrap();
            assert!(!has_word(tokens, "unsafe"), "{}: unsafe code", file.display());
        }
    }
    let broken = "fn f() { m!(g(unsafe { h() })) }";
    assert!(has_word(broken.parse().unwrap(), "unsafe"), "also in the arguments of a macro");
    assert!(!has_word("/* unsafe */ const S: &str = \"unsafe\";".parse().unwrap(), "unsafe"));
}

#[test]
fn libraries_of_system_calls_are_in_six_crates() {
    let broken = Package { uses: BTreeSet::from(["rustix".into()]), ..Package::default() };
    assert_eq!(system_calls(&broken), Some("rustix"));
    let others = |package: &&Package| ![&UNSAFE[..], &SYSTEM_CALLS].concat().contains(&&*package.name);
    for package in packages().iter().filter(others) {
        assert_eq!(system_calls(package), None, "{}: its system calls belong into kernel", package.name);
    }
}

/// The library of system calls that a package uses.
fn system_calls(package: &Package) -> Option<&'static str> {
    ["libc", "nix", "rustix", "syscalls"].into_iter().find(|library| package.uses.contains(*library))
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == word,
        TokenTree::Group(group) => has_word(group.stream(), word),
        _ => false,
    })
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The table in docs/src/explanation/architecture.md says which crate uses which.
#[test]
fn the_table_of_crates_is_the_graph() {
    let ours = |package: &Package| {
        package.uses.iter().filter_map(|name| Some(name.strip_prefix("pagelab-")?.into())).collect()
    };
    let graph: Graph = packages().iter().map(|package| (package.name.clone(), ours(package))).collect();
    let document = text(&workspace().join("docs/src/explanation/architecture.md"));
    assert_eq!(
        table(&document),
        graph,
        "docs/src/explanation/architecture.md (left), cargo metadata (right)"
    );
    let broken = document.replacen("| kernel, confine, ", "| kernel, ", 1).replacen(
        "experiment, kernel |",
        "experiment |",
        1,
    );
    assert_ne!(table(&broken), graph, "a use that the table lacks");
}

/// The rows for crates: folder, contents, uses.
fn table(document: &str) -> Graph {
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `crates/")?.strip_suffix(" |"));
    let row = |row: &str| {
        let (name, rest) = row.split_once('`')?;
        let (_, uses) = rest.rsplit_once(" | ").filter(|_| rest.matches(" | ").count() == 2)?;
        let uses = uses.split(", ").filter(|name| *name != "none").map(str::to_owned).collect();
        Some((name.rsplit('/').next()?.to_owned(), uses))
    };
    rows.filter_map(row).collect()
}
