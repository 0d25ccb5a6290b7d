//! No circle of files longer than three in any crate: a file in a long circle can only be understood with all
//! the others of it.
//!
//! An edge is a path that begins with `crate`, `super` or `self`, to the file in which the item it names is. A file's
//! use of the modules inside it counts for nothing, for they are its parts; nor do unit tests at its end.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use common::{crates, sources, text};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The longest circle that may be.
const LONGEST: usize = 3;

/// A file as the path of its module.
type Module = Vec<String>;

#[test]
fn no_circle_of_files_is_longer_than_three() {
    let mut wrong = Vec::new();
    for folder in crates() {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for circle in circles(&imports(&folder.join("src"))) {
            let files: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            if files.len() > LONGEST {
                wrong.push(format!("crates/{name}: {} files: {}", files.len(), files.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "circles of imports:\n{}", wrong.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("lib.rs", "mod a; mod b; mod c; mod d; mod e; mod f; use a::Nothing; pub use self::f::F;"),
        ("a.rs", "//! crate::e\nuse crate::{b::{B, Other}, d};"),
        ("b.rs", "fn f() { super::c::f(\"crate::a\") }"),
        ("c.rs", "macro!(crate::d::inner::X);\n#[cfg(test)]\nmod tests { use crate::e::E; }"),
        ("d/mod.rs", "mod inner; use self::inner::X;"),
        ("d/inner.rs", "use super::super::a::A; use super::D;"),
        ("e.rs", "use crate::a;"),
        ("f.rs", "use super::Nothing;"),
    ];
    std::fs::create_dir(folder.path().join("d")).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let found = circles(&imports(folder.path()));
    let names: Vec<Vec<String>> =
        found.iter().map(|circle| circle.iter().map(|module| module.join("::")).collect()).collect();
    assert_eq!(names, [["a", "b", "c", "d::inner"]]);
}

/// Which files each file of a crate uses.
fn imports(source: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut files: BTreeMap<Module, TokenStream> = BTreeMap::new();
    for path in sources(source) {
        let relative = path.strip_prefix(source).unwrap().with_extension("");
        let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
        if ["mod", "lib", "main"].contains(&module.last().unwrap().as_str()) {
            module.pop();
        }
        let tokens = text(&path).parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        files.insert(module, tokens);
    }
    let mut edges = BTreeMap::new();
    for (module, tokens) in &files {
        let mut paths = Vec::new();
        collect(tokens.clone(), &mut paths);
        let used = paths.into_iter().filter_map(|path| file_of(module, path, &files));
        edges.insert(module.clone(), used.filter(|used| !used.starts_with(module)).collect());
    }
    edges
}

/// The file that a path in `module` leads to.
fn file_of(module: &Module, path: Vec<String>, files: &BTreeMap<Module, TokenStream>) -> Option<Module> {
    let mut at = module.clone();
    for (index, part) in path.into_iter().enumerate() {
        match part.as_str() {
            "crate" => at.clear(),
            "self" if index == 0 => {}
            "super" => _ = at.pop()?,
            _ => at.push(part),
        }
    }
    while !files.contains_key(&at) {
        at.pop()?;
    }
    Some(at)
}

/// The paths from `crate`, `super` or `self` in a file, macros included and unit tests left out.
fn collect(tokens: TokenStream, paths: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) if word == "crate" || word == "super" || word == "self" => {
                at = path(&tokens, at, Vec::new(), paths);
            }
            TokenTree::Punct(sign) if sign.as_char() == '#' && is_test(tokens.get(at + 1)) => {
                at += 2;
                // The item: all up to its body or its end.
                while at < tokens.len() && !ends_item(&tokens[at]) {
                    at += 1;
                }
                at += 1;
            }
            TokenTree::Group(group) => {
                collect(group.stream(), paths);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn is_test(attribute: Option<&TokenTree>) -> bool {
    attribute.is_some_and(|attribute| attribute.to_string().replace(' ', "") == "[cfg(test)]")
}

fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Punct(sign) => sign.as_char() == ';',
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    }
}

/// Reads the path or the tree of paths at `at`; gives where it ends.
fn path(tokens: &[TokenTree], mut at: usize, mut before: Vec<String>, paths: &mut Vec<Vec<String>>) -> usize {
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(word)) => {
                before.push(word.to_string());
                at += 1;
                let colons = |token: Option<&TokenTree>| token.is_some_and(|t| t.to_string() == ":");
                if !(colons(tokens.get(at)) && colons(tokens.get(at + 1))) {
                    break;
                }
                at += 2;
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut start = 0;
                while start < inner.len() {
                    start = path(&inner, start, before.clone(), paths);
                    while start < inner.len() && inner[start].to_string() != "," {
                        start += 1;
                    }
                    start += 1;
                }
                return at + 1;
            }
            // A glob, or the arguments of a type.
            _ => break,
        }
    }
    paths.push(before);
    at
}

/// The sets of files of which each reaches every other, of two files or more.
fn circles(edges: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        edges.keys().map(|file| (file, reached_from(file, edges))).collect();
    let mut found: Vec<BTreeSet<Module>> = Vec::new();
    for file in edges.keys() {
        let both = reached[file].iter().filter(|other| reached[*other].contains(file)).cloned();
        let circle: BTreeSet<Module> = both.collect();
        if circle.len() > 1 && !found.contains(&circle) {
            found.push(circle);
        }
    }
    found
}

/// The files that a file uses, those that these use, and so on.
fn reached_from(file: &Module, edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(next) = open.pop() {
        for used in &edges[next] {
            if reached.insert(used.clone()) {
                open.push(used);
            }
        }
    }
    reached
}
