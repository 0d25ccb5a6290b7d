//! Metrics are referred to by their constants: no literal repeats the name of one.
//!
//! Names of one word ("misses") are ordinary words too. Types guard those: look-ups take a `MetricId`.

mod common;

use std::collections::BTreeSet;

use common::{crates, sources, text};
use proc_macro2::{TokenStream, TokenTree};

/// Names that are also those of something else, by the file: a file of the kernel's, an entry of
/// the environment.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("kernel/src/cgroup.rs", "memory.peak"),
    ("pager/src/target.rs", "pager.policy"),
    ("experiment/src/catalogue.rs", "pager.policy"),
];

/// Crates whose names are the kernel's: they know no metric.
const APART: [&str; 1] = ["counters"];

#[test]
fn no_literal_repeats_a_metrics_name() {
    let mut declared = BTreeSet::new();
    let mut literals = Vec::new();
    for folder in crates().iter().filter(|folder| !APART.iter().any(|apart| folder.ends_with(apart))) {
        for file in sources(&folder.join("src")) {
            let tokens: TokenStream = text(&file).parse().unwrap();
            let path = file.display().to_string();
            if path.contains("/experiment/src/")
                && (path.ends_with("/metrics.rs") || path.contains("/metrics/"))
            {
                declarations(tokens, &mut declared);
            } else if !path.ends_with("tests.rs") && !path.ends_with("test_runs.rs") {
                strings(tokens, &mut |literal| literals.push((path.clone(), literal)));
            }
        }
    }
    assert!(declared.len() > 200, "{declared:?}");
    let excepted = |path: &str, name: &str| {
        EXCEPTIONS.iter().any(|(file, known)| path.ends_with(file) && name == *known)
    };
    let wrong: Vec<_> = literals
        .iter()
        .filter(|(path, literal)| declared.contains(literal) && !excepted(path, literal))
        .collect();
    assert!(wrong.is_empty(), "use the constants of pagelab_experiment::metrics: {wrong:#?}");
}

/// What is said of an experiment follows from its declaration, its parameters' type, its metrics
/// and its tables.
#[test]
fn no_finding_or_chart_asks_for_an_experiment_by_name() {
    for folder in
        crates().iter().filter(|folder| ["analysis", "report"].iter().any(|of| folder.ends_with(of)))
    {
        for file in sources(&folder.join("src")) {
            let code = text(&file);
            let code = code.split("#[cfg(test)]").next().unwrap_or_default();
            let apart = file.ends_with("tests.rs") || file.ends_with("test_runs.rs");
            let names = code.match_indices("Experiment::").map(|(at, found)| &code[at + found.len()..]);
            let variants = names.filter(|rest| rest.starts_with(char::is_uppercase)).count();
            assert!(apart || variants == 0, "{}: {variants} variants of Experiment", file.display());
        }
    }
}

#[test]
fn a_repeated_name_is_found_also_in_a_macro_but_not_in_tests() {
    let mut declared = BTreeSet::new();
    declarations(
        "metrics! { A_B = \"a.b\", Count; WORD = \"word\", Count; }".parse().unwrap(),
        &mut declared,
    );
    assert_eq!(declared, BTreeSet::from(["a.b".to_owned()]));
    let mut found = Vec::new();
    let text = "fn f() { g!(\"a.b\") } #[cfg(test)] mod tests { const C: &str = \"in.tests\"; } const D: &str = \"d\";";
    strings(text.parse().unwrap(), &mut |literal| found.push(literal));
    assert_eq!(found, ["a.b", "d"]);
}

/// The names of more than one word that declarations (`CONSTANT = "name", …`) give.
fn declarations(tokens: TokenStream, into: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for window in tokens.windows(3) {
        if let [TokenTree::Ident(constant), TokenTree::Punct(is), TokenTree::Literal(literal)] = window
            && is.as_char() == '='
            && constant.to_string().starts_with(char::is_uppercase)
        {
            into.extend(string(&literal.to_string()).filter(|name| name.contains('.')));
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            declarations(group.stream(), into);
        }
    }
}

/// Every string of the code but that of unit tests.
fn strings(tokens: TokenStream, found: &mut dyn FnMut(String)) {
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) if group.stream().to_string().replace(' ', "") == "cfg(test)" => {
                // What is for tests alone ends with its braces or its semicolon.
                for skipped in tokens.by_ref() {
                    let ends = match skipped {
                        TokenTree::Group(group) => group.delimiter() == proc_macro2::Delimiter::Brace,
                        TokenTree::Punct(end) => end.as_char() == ';',
                        _ => false,
                    };
                    if ends {
                        break;
                    }
                }
            }
            TokenTree::Group(group) => strings(group.stream(), found),
            TokenTree::Literal(literal) => string(&literal.to_string()).into_iter().for_each(&mut *found),
            _ => {}
        }
    }
}

/// The value of a plain string.
fn string(literal: &str) -> Option<String> {
    Some(literal.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}
