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

/// A file of lines `NAME: N kB` is read by crates/procfs.
#[test]
fn one_parser_of_names_and_numbers() {
    let (mut found, mut seen) = (Vec::new(), 0);
    for package in packages().iter().filter(|package| package.name != "procfs") {
        for file in sources(&package.folder.join("src")) {
            let tokens: TokenStream = text(&file).parse().unwrap();
            found.extend(parser(tokens).map(|word| format!("{}: {word}", file.display())));
            seen += 1;
        }
    }
    assert!(seen > 300, "only {seen} files looked at");
    assert!(found.is_empty(), "use pagelab_procfs:\n{}", found.join("\n"));
    for broken in [
        "fn f() { g!(line.strip_prefix(\"VmRSS:\")) }",
        "fn f() { text.split_once(\"Threads:\") }",
        "fn f() { if words.next() == Some(\"kB\") {} }",
        "fn f() { value.trim_end_matches(\" kB\") }",
        "fn f() { value.strip_suffix(\" kB\") }",
    ] {
        assert!(parser(broken.parse().unwrap()).is_some(), "{broken}");
    }
    let others = "fn f() { name.strip_suffix(\"kB\"); heading(\"avg-kB\"); text.contains(\"error: \") }";
    assert_eq!(parser(others.parse().unwrap()), None);
}

/// The first literal by which code looks for a name or for the unit of such a line. A name of a folder ends with the
/// unit too (`hugepages-2048kB`).
fn parser(tokens: TokenStream) -> Option<String> {
    let mut called = String::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => called = word.to_string(),
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                if let [TokenTree::Literal(literal)] = &inside[..] {
                    let word = literal.to_string();
                    let word = word.trim_matches('"');
                    let name = word.strip_suffix(':').unwrap_or_default();
                    let field = name.starts_with(|first: char| first.is_ascii_uppercase())
                        && name.contains(|c: char| c.is_ascii_lowercase())
                        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_()".contains(c));
                    if field && SEARCHES.contains(&called.as_str())
                        || word.trim() == "kB" && (called != "strip_suffix" || word != "kB")
                    {
                        return Some(word.to_owned());
                    }
                }
                let found = parser(group.stream());
                if found.is_some() {
                    return found;
                }
            }
            _ => {}
        }
    }
    None
}

/// What looks for a text in another.
const SEARCHES: [&str; 7] =
    ["strip_prefix", "starts_with", "split_once", "find", "contains", "split", "trim_start_matches"];

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
    let broken = document.replacen("ring, kernel, confine |", "ring, kernel |", 1);
    assert_ne!(table(&broken), graph, "a use that the table lacks");
    for (name, allowed) in ALLOWED {
        let beyond = |graph: &Graph| graph[name].iter().any(|used| !allowed.contains(&&**used));
        assert!(!beyond(&graph), "{name} uses more than {allowed:?}: {:?}", graph[name]);
        let mut broken = graph.clone();
        broken.get_mut(name).unwrap().insert("experiment".to_owned());
        assert!(beyond(&broken), "{name}");
    }
}

/// Crates that know no experiment, and what they may use.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("procfs", &[]),
    ("ring", &[]),
    ("caches", &[]),
    ("counters", &["procfs"]),
    ("kernel", &["procfs", "counters"]),
    ("confine", &["kernel"]),
];

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
