//! What the program knows of an experiment is declared in one place: no other crate asks which
//! experiment it has.

mod common;

use std::collections::BTreeSet;

use common::{crates, sources, text, workspace};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, Pat, Path};

/// Files that match on experiments by name, and why.
const KNOWN: [(&str, &str); 3] = [
    ("live/src/experiments/mod.rs", "the list of how each is performed on the running kernel"),
    ("model/src/published/mod.rs", "the list of what each published system models"),
    ("model/src/target.rs", "how the models perform the references to one mapping"),
];

#[test]
fn nothing_else_matches_on_experiments_by_name() {
    let mut found = BTreeSet::new();
    for folder in crates() {
        for file in sources(&folder.join("src")) {
            let name = file.strip_prefix(workspace().join("crates")).unwrap().to_string_lossy().into_owned();
            // There they are declared.
            if !name.starts_with("experiment/") && matches_experiments(&text(&file)) {
                found.insert(name);
            }
        }
    }
    let known = BTreeSet::from(KNOWN.map(|(file, _)| file.to_owned()));
    let new: Vec<_> = found.difference(&known).collect();
    assert!(
        new.is_empty(),
        "they match on experiments by name; declare it (experiment/src/experiments): {new:?}"
    );
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "they match on none any more, so take them from the list: {gone:?}");
}

#[test]
fn matches_are_found_in_patterns_and_macros_and_nowhere_else() {
    for (code, found) in [
        ("fn f(e: &Experiment) { match e { Experiment::Oom(_) => {} _ => {} } }", true),
        ("fn f(e: &Experiment) { let Experiment::Oom(oom) = e else { return }; }", true),
        ("fn f(e: &Experiment) { if let (Some(_), Experiment::Oom(_)) = (1, e) {} }", true),
        ("fn f(e: &E) -> bool { matches!(e, pagelab_experiment::Experiment::Oom(_)) }", true),
        ("fn f(e: &E) { assert!(matches!(e, Experiment::Oom(_))); }", true),
        ("fn f() -> Experiment { Experiment::Oom(Oom::default()) }", false),
        ("fn f() { list(vec![Experiment::Oom(Oom::default())]); }", false),
        ("#[cfg(test)] mod tests { fn f(e: &E) -> bool { matches!(e, Experiment::Oom(_)) } }", false),
    ] {
        assert_eq!(matches_experiments(code), found, "{code}");
    }
}

fn matches_experiments(code: &str) -> bool {
    let mut matches = Matches(false);
    matches.visit_file(&syn::parse_file(code).unwrap());
    matches.0
}

struct Matches(bool);

impl<'a> Visit<'a> for Matches {
    fn visit_item(&mut self, item: &'a Item) {
        let of_tests = |module: &syn::ItemMod| {
            module.attrs.iter().any(|attribute| {
                matches!(&attribute.meta, syn::Meta::List(list)
                if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
            })
        };
        if !matches!(item, Item::Mod(module) if of_tests(module)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_pat(&mut self, pattern: &'a Pat) {
        let path = match pattern {
            Pat::TupleStruct(pattern) => Some(&pattern.path),
            Pat::Struct(pattern) => Some(&pattern.path),
            Pat::Path(pattern) => Some(&pattern.path),
            _ => None,
        };
        self.0 |= path.is_some_and(is_variant);
        visit::visit_pat(self, pattern);
    }

    fn visit_macro(&mut self, found: &'a syn::Macro) {
        let is_match = found.path.segments.last().is_some_and(|name| name.ident == "matches");
        self.0 |= names_variant(&found.tokens, is_match);
    }
}

fn is_variant(path: &Path) -> bool {
    path.segments.len() >= 2 && path.segments[path.segments.len() - 2].ident == "Experiment"
}

/// Whether the tokens have a variant inside `matches!`, or anywhere where these are its own.
fn names_variant(tokens: &TokenStream, is_match: bool) -> bool {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let punct = |n: usize, c: char| matches!(tokens.get(n), Some(TokenTree::Punct(p)) if p.as_char() == c);
    tokens.iter().enumerate().any(|(n, token)| match token {
        TokenTree::Ident(name) => is_match && name == "Experiment" && punct(n + 1, ':') && punct(n + 2, ':'),
        TokenTree::Group(group) => {
            let inner = n >= 2
                && punct(n - 1, '!')
                && matches!(&tokens[n - 2], TokenTree::Ident(i) if i == "matches");
            names_variant(&group.stream(), is_match || inner)
        }
        _ => false,
    })
}
