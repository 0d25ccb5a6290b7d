//! The command line and the Python package parse, call and print: what replays a stream, and the
//! threads for it, are in `crates/simulation`.

mod common;

use common::{sources, text, workspace};
use syn::visit::{self, Visit};
use syn::{File, Path, UseTree};

/// Files of the command line with a thread that replays nothing: counters beside a run, signals, a
/// larger stack, the exporter's requests, the progress bar.
const OTHER_THREADS: [&str; 8] = [
    "recording.rs",
    "restored/mod.rs",
    "interrupt.rs",
    "main.rs",
    "serve.rs",
    "progress.rs",
    "src/site.rs",
    "src/cells.rs",
];

/// What makes threads, behind `thread`.
const THREADS: [&str; 3] = ["spawn", "scope", "Builder"];

/// What the models replay with.
const REPLAYS: [&str; 6] = ["Replays", "Feed", "SizedReplay", "Miniature", "working_set_of", "Plugged"];

/// The names of threads and replays that a file uses.
#[derive(Default)]
struct Used {
    threads: Vec<String>,
    replays: Vec<String>,
}

impl Used {
    fn note(&mut self, names: &[String]) {
        if let [.., module, name] = names
            && module == "thread"
            && (THREADS.contains(&name.as_str()) || name == "*")
        {
            self.threads.push(names.join("::"));
        }
        if names.last().is_some_and(|name| REPLAYS.contains(&name.as_str())) {
            self.replays.push(names.join("::"));
        }
    }

    fn note_tree(&mut self, before: &[String], tree: &UseTree) {
        let with = |name: &dyn ToString| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&with(&path.ident), &path.tree),
            UseTree::Name(name) => self.note(&with(&name.ident)),
            UseTree::Rename(name) => self.note(&with(&name.ident)),
            UseTree::Glob(_) => self.note(&with(&"*")),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(before, tree)),
        }
    }
}

impl<'a> Visit<'a> for Used {
    fn visit_path(&mut self, path: &'a Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        (1..=names.len()).for_each(|end| self.note(&names[..end]));
        visit::visit_path(self, path);
    }

    fn visit_use_tree(&mut self, tree: &'a UseTree) {
        self.note_tree(&[], tree);
    }
}

fn used(source: &str) -> Used {
    let file: File = syn::parse_file(source).unwrap();
    let mut used = Used::default();
    used.visit_file(&file);
    used
}

#[test]
fn nobody_but_simulation_replays_a_stream() {
    let mut seen = 0;
    for folder in ["crates/pagelab/src", "crates/python/src"] {
        for file in sources(&workspace().join(folder)) {
            let (name, found) = (file.display(), used(&text(&file)));
            assert_eq!(found.replays, [""; 0], "{name}: call pagelab_simulation");
            if !OTHER_THREADS.iter().any(|other| file.ends_with(other)) {
                assert_eq!(found.threads, [""; 0], "{name}: threads for a replay are pagelab_simulation's");
            }
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} files looked at");
}

#[test]
fn threads_and_replays_are_found() {
    let found = used(
        "use std::{thread, thread::{Builder as B, sleep}};\n\
         use std::thread::*;\n\
         use pagelab_model::replay::{Feed, Replayed};\n\
         fn f() { thread::scope(|s| { s.spawn(g); }); std::thread::Builder::new(); Replays::of(1, 2); thread::sleep(d) }",
    );
    assert_eq!(
        found.threads,
        ["std::thread::Builder", "std::thread::*", "thread::scope", "std::thread::Builder"]
    );
    assert_eq!(found.replays, ["pagelab_model::replay::Feed", "Replays"]);
}
