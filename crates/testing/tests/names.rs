//! Metrics, tables, columns and entries of the environment are referred to by their constants: no literal repeats the
//! name of one.
//!
//! Names of one word ("misses") are ordinary words too. Types guard those: look-ups take a
//! `MetricId`, a `TableId` or a `ColumnId`, and those by a stored name take no literal.

mod common;

use std::collections::BTreeSet;

use common::{crates, sources, text};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Names that are also those of something else, by the file: a file of the kernel's, an entry of
/// the environment, a policy, a heading.
const EXCEPTIONS: [(&str, &str); 3] = [
    ("kernel/src/cgroup.rs", "memory.peak"),
    ("model/src/policy/catalogue.rs", "working-set"),
    ("report/src/curves.rs", "write-backs"),
];

/// Crates whose names are the kernel's: they know no metric.
const APART: [&str; 1] = ["counters"];

#[test]
fn no_literal_repeats_a_declared_name() {
    let (mut declared, mut literals, mut named) = (BTreeSet::new(), Vec::new(), Vec::new());
    for folder in crates().iter().filter(|folder| !APART.iter().any(|apart| folder.ends_with(apart))) {
        for file in sources(&folder.join("src")) {
            let path = file.display().to_string();
            // The names that metrics had in older notebooks stand beside the present ones.
            if !["tests.rs", "test_runs.rs", "metrics/renamed.rs"].iter().any(|apart| path.ends_with(apart)) {
                let mut found = Found::default();
                found.visit(text(&file).parse().unwrap());
                declared.extend(found.declared);
                literals.extend(found.literals.into_iter().map(|literal| (path.clone(), literal)));
                named.extend(found.named.into_iter().map(|literal| (path.clone(), literal)));
            }
        }
    }
    assert!(declared.len() > 250, "{declared:?}");
    let excepted = |path: &str, name: &str| {
        EXCEPTIONS.iter().any(|(file, known)| path.ends_with(file) && name == *known)
    };
    literals.retain(|(path, literal)| declared.contains(literal) && !excepted(path, literal));
    literals.extend(named);
    assert!(
        literals.is_empty(),
        "use the constants of pagelab_experiment::metrics, tables and environment: {literals:#?}"
    );
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
    let found = |text: &str| {
        let mut found = Found::default();
        found.visit(text.parse().unwrap());
        found
    };
    let declared = "metrics! { A_B = \"a.b\", Count; WORD = \"word\", Count; } \
                    super::tables! { a = \"a-table\", \"row\" { C = \"c.d\", Count, \"x-y\"; } }";
    let names = ["a-table", "a.b", "c.d"].map(str::to_owned);
    assert_eq!(found(declared).declared, BTreeSet::from(names));
    let used = "fn f() { g!(\"a.b\") } #[cfg(test)] mod tests { const C: &str = \"in.tests\"; } const D: &str = \"d\";";
    assert_eq!(found(used).literals, ["a.b", "d"]);
    for by_name in ["seen.table_named(\"clock\")", "Table { name: \"clock\".into(), columns }"] {
        assert_eq!(found(by_name).named, ["clock"], "{by_name}");
    }
    assert!(found("seen.table_named(name) Table { name: CLOCK.name.into() }").named.is_empty());
}

/// What code has in it, but that of unit tests.
#[derive(Default)]
struct Found {
    /// The names of more than one word in `metrics!` and `tables!`.
    declared: BTreeSet<String>,
    /// Every string outside these.
    literals: Vec<String>,
    /// The literals by which something observed is named.
    named: Vec<String>,
}

impl Found {
    fn visit(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) if group.stream().to_string().replace(' ', "") == "cfg(test)" => {
                    // What is for tests alone ends with its braces or its semicolon.
                    let ends = |token: &TokenTree| match token {
                        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                        TokenTree::Punct(end) => end.as_char() == ';',
                        _ => false,
                    };
                    at += tokens[at..].iter().position(ends).map_or(0, |end| end + 1);
                }
                TokenTree::Group(group) => self.visit(group.stream()),
                TokenTree::Literal(literal) => self.literals.extend(string(&literal.to_string())),
                TokenTree::Ident(word) => match (word.to_string().as_str(), &tokens[at..]) {
                    (
                        "metrics" | "tables" | "environment",
                        [TokenTree::Punct(sign), TokenTree::Group(group), ..],
                    ) if sign.as_char() == '!' => {
                        self.declare(group.stream());
                        at += 2;
                    }
                    ("metric_named" | "values_named" | "table_named" | "numbers_named", rest)
                    | ("Metric" | "Table" | "Column", rest) => {
                        let Some(TokenTree::Group(group)) = rest.first() else { continue };
                        let mut given = group
                            .stream()
                            .into_iter()
                            .skip_while(|token| matches!(token, TokenTree::Ident(field) if field == "name"));
                        let first = given.find(|token| !matches!(token, TokenTree::Punct(_)));
                        self.named.extend(first.and_then(|token| string(&token.to_string())));
                    }
                    _ => {}
                },
                TokenTree::Punct(_) => {}
            }
        }
    }

    /// `NAME = "name", …`, also within the braces of a table.
    fn declare(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for window in tokens.windows(2) {
            if let [TokenTree::Punct(is), TokenTree::Literal(literal)] = window
                && is.as_char() == '='
            {
                self.declared.extend(string(&literal.to_string()).filter(|name| name.contains(['.', '-'])));
            }
        }
        for token in tokens {
            if let TokenTree::Group(group) = token {
                self.declare(group.stream());
            }
        }
    }
}

/// The value of a plain string.
fn string(literal: &str) -> Option<String> {
    Some(literal.strip_prefix('"')?.strip_suffix('"')?.to_owned())
}
