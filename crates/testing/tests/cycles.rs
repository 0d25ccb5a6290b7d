//! No cycle of modules: none between the top-level modules of a crate, and at most two files in any.
//!
//! The graph is read from the syntax tree of every file that belongs to a library or program. A
//! path is an edge to the file that defines what it names: from `crate`, `super`, `self` or the
//! name of a module's own child, in code as in the arguments of macros, through `use` declarations
//! and globs. A re-export is followed, and is no use by itself. Unit tests are left out.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use common::{packages, text};
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// The path of a module from the root of its crate.
type Module = Vec<String>;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_cycle_of_modules() {
    let (mut wrong, mut roots) = (Vec::new(), 0);
    for package in packages() {
        for root in &package.roots {
            let graph = graph(root);
            let found = [cycle(&top_level(&graph), 2), cycle(&graph, 3)];
            wrong.extend(
                found.into_iter().flatten().map(|cycle| format!("{}: {}", package.name, shown(&cycle))),
            );
            roots += 1;
        }
    }
    assert!(roots >= 20, "only {roots} looked at");
    assert!(wrong.is_empty(), "cycles of modules:\n{}", wrong.join("\n"));
}

#[test]
fn cycles_through_children_bare_paths_and_macros_are_found() {
    let common = "pub mod a; pub mod b; pub mod c; pub use b::B; macro_rules! m { ($($t:tt)*) => {} }";
    let found = |a: &str, b: &str, c: &str| {
        let folder = tempfile::tempdir().unwrap();
        let files =
            [("lib.rs", common), ("a/mod.rs", a), ("b.rs", b), ("c.rs", c), ("a/x.rs", "pub struct X;")];
        std::fs::create_dir(folder.path().join("a")).unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let graph = graph(&folder.path().join("lib.rs"));
        [cycle(&top_level(&graph), 2), cycle(&graph, 3)].map(|found| found.map(|cycle| shown(&cycle)))
    };
    let [top, files] =
        found("mod x; use x::X; pub type A = crate::B;", "pub type B = crate::c::C;", "m!(crate::a::A);");
    assert_eq!(top.as_deref(), Some("a → b → c → a"));
    assert_eq!(files.as_deref(), Some("a → b → c → a"));
    let [top, files] = found("", "pub struct B; fn f() -> super::c::C {}", "use super::{*}; type D = B;");
    assert_eq!((top.as_deref(), files), (Some("b → c → b"), None), "through a glob of re-exports");
    let test = "pub type C = u8; #[cfg(test)] mod tests { use crate::a::A; }";
    assert_eq!(found("mod x; pub type A = x::X;", "use crate::a::A; pub struct B;", test), [None, None]);
}

/// The graph of the top-level modules.
fn top_level(graph: &Graph) -> Graph {
    let mut top = Graph::new();
    for (module, used) in graph {
        let Some(first) = module.first() else { continue };
        let others = used.iter().filter_map(|used| used.first()).filter(|used| *used != first);
        top.entry(vec![first.clone()]).or_default().extend(others.map(|used| vec![used.clone()]));
    }
    top
}

/// A shortest cycle of at least `min` modules.
fn cycle(graph: &Graph, min: usize) -> Option<Vec<Module>> {
    let mut found: Option<Vec<Module>> = None;
    for start in graph.keys() {
        // The shortest way back for each first step, which is no way back itself where two are too few.
        for first in &graph[start] {
            let mut ways = vec![vec![start.clone(), first.clone()]];
            let mut seen = BTreeSet::from([first.clone()]);
            while let Some(way) = (!ways.is_empty()).then(|| ways.remove(0)) {
                let last = &way[way.len() - 1];
                let none = BTreeSet::new();
                let next = graph.get(last).unwrap_or(&none);
                if way.len() >= min && next.contains(start) {
                    if found.as_ref().is_none_or(|found| found.len() > way.len()) {
                        found = Some(way);
                    }
                    break;
                }
                for module in next.iter().filter(|module| *module != start) {
                    if seen.insert(module.clone()) {
                        ways.push([&way[..], std::slice::from_ref(module)].concat());
                    }
                }
            }
        }
    }
    found
}

fn shown(cycle: &[Module]) -> String {
    let name = |module: &Module| if module.is_empty() { "crate".to_owned() } else { module.join("::") };
    cycle.iter().chain(cycle.first()).map(name).collect::<Vec<_>>().join(" → ")
}

/// What a module has in it.
#[derive(Default)]
struct Content {
    /// The module whose file it is in.
    file: Module,
    items: BTreeSet<String>,
    /// Names and the paths that `use` gives them.
    imported: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// The paths that it names.
    paths: Vec<Vec<String>>,
    /// The single names in its code, most of them of no module.
    names: BTreeSet<String>,
}

/// Which files each file of a crate uses.
fn graph(root: &Path) -> Graph {
    let mut modules = BTreeMap::new();
    let folder = root.parent().unwrap();
    read(root, folder, &Vec::new(), &mut modules);
    let mut graph: Graph = modules.values().map(|content| (content.file.clone(), BTreeSet::new())).collect();
    for (module, content) in &modules {
        let by_path =
            content.paths.iter().filter_map(|path| defined_in(module, path, &modules, &mut Seen::new()));
        let named = |name: &String| match content.imported.get(name) {
            Some(path) => defined_in(module, path, &modules, &mut Seen::new()),
            None => by_glob(module, name, &modules, &mut Seen::new()),
        };
        let by_name = content.names.iter().filter_map(named);
        let used = by_path.chain(by_name).map(|used| modules[&used].file.clone());
        graph.get_mut(&content.file).unwrap().extend(used.filter(|used| *used != content.file));
    }
    graph
}

fn read(file: &Path, children: &Path, module: &Module, modules: &mut BTreeMap<Module, Content>) {
    let tree = syn::parse_file(&text(file)).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    add(&tree.items, module, module, children, modules);
}

fn add(
    items: &[Item],
    file: &Module,
    module: &Module,
    folder: &Path,
    modules: &mut BTreeMap<Module, Content>,
) {
    // One name may stand for two modules, each for another architecture.
    let mut content = modules.remove(module).unwrap_or_default();
    content.file.clone_from(file);
    for item in items.iter().filter(|item| !is_test(attributes(item))) {
        if let Item::Mod(inner) = item {
            let name = inner.ident.to_string();
            let path: Module = [&module[..], std::slice::from_ref(&name)].concat();
            let below = folder.join(&name);
            match &inner.content {
                Some((_, items)) => add(items, file, &path, &below, modules),
                None => {
                    let found = [below.with_extension("rs"), below.join("mod.rs")];
                    let found: Option<PathBuf> = found.into_iter().find(|file| file.exists());
                    read(&found.unwrap_or_else(|| panic!("{}", below.display())), &below, &path, modules);
                }
            }
            continue;
        }
        content.items.extend(name(item));
        content.visit_item(item);
    }
    modules.insert(module.clone(), content);
}

fn name(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        Item::Macro(item) => item.ident.as_ref()?.to_string(),
        _ => return None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|p| p.is_ident("test"))
    })
}

impl Visit<'_> for Content {
    fn visit_path(&mut self, path: &syn::Path) {
        self.named(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        let private = matches!(item.vis, syn::Visibility::Inherited);
        let mut open = vec![(Vec::new(), &item.tree)];
        while let Some((before, tree)) = open.pop() {
            let with = |name: &syn::Ident| [&before[..], &[name.to_string()]].concat();
            match tree {
                UseTree::Path(path) => open.push((with(&path.ident), &path.tree)),
                UseTree::Group(group) => open.extend(group.items.iter().map(|tree| (before.clone(), tree))),
                UseTree::Glob(_) => {
                    self.paths.extend(private.then(|| before.clone()));
                    self.globs.push(before);
                }
                UseTree::Name(name) if name.ident == "self" => {
                    self.import(before.last().cloned(), before, private)
                }
                UseTree::Name(name) => self.import(Some(name.ident.to_string()), with(&name.ident), private),
                UseTree::Rename(new) => self.import(Some(new.rename.to_string()), with(&new.ident), private),
            }
        }
    }

    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_macro(&mut self, invoked: &syn::Macro) {
        self.in_tokens(invoked.tokens.clone());
        visit::visit_macro(self, invoked);
    }
}

impl Content {
    fn import(&mut self, name: Option<String>, path: Vec<String>, used: bool) {
        self.paths.extend(used.then(|| path.clone()));
        self.imported.extend(name.map(|name| (name, path)));
    }

    fn named(&mut self, mut path: Vec<String>) {
        match path.len() {
            0 => {}
            1 => self.names.extend(path.pop()),
            _ => self.paths.push(path),
        }
    }

    /// The paths in the arguments of a macro.
    fn in_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.named(std::mem::take(&mut path));
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => self.in_tokens(group.stream()),
                _ => self.named(std::mem::take(&mut path)),
            }
        }
        self.named(path);
    }
}

/// The names that were looked for on the way, each with its module: of names that import each other
/// there is no end.
type Seen = BTreeSet<(Module, String)>;

/// The module that defines what `path`, named in `module`, leads to; `None` for what is not of this
/// crate.
fn defined_in(
    module: &Module,
    path: &[String],
    modules: &BTreeMap<Module, Content>,
    seen: &mut Seen,
) -> Option<Module> {
    let mut at = module.clone();
    for (index, part) in path.iter().enumerate() {
        let child: Module = [&at[..], std::slice::from_ref(part)].concat();
        match part.as_str() {
            "crate" => at.clear(),
            "self" => {}
            "super" => _ = at.pop()?,
            _ if modules.contains_key(&child) => at = child,
            name if modules[&at].items.contains(name) => return Some(at),
            name if !seen.insert((at.clone(), name.to_owned())) => return None,
            name => {
                let found = match modules[&at].imported.get(name) {
                    Some(path_of) => {
                        let whole = [&path_of[..], &path[index + 1..]].concat();
                        defined_in(&at, &whole, modules, seen)
                    }
                    None => by_glob(&at, name, modules, seen),
                };
                return found.or_else(|| (index > 0).then_some(at));
            }
        }
    }
    Some(at)
}

/// The module that defines `name`, which `module` has through a glob.
fn by_glob(
    module: &Module,
    name: &str,
    modules: &BTreeMap<Module, Content>,
    seen: &mut Seen,
) -> Option<Module> {
    modules[module].globs.iter().find_map(|glob| {
        let source = defined_in(module, glob, modules, &mut seen.clone())?;
        let found = defined_in(&source, &[name.to_owned()], modules, seen);
        found.filter(|_| source != *module)
    })
}
