//! Recorded machines with spoiled files: every provider gives what it can read of them, and none panics.

use std::fs;
use std::path::{Path, PathBuf};

use pagelab_counters::{Root, Selection, Tree, openmetrics};
use pagelab_testing::fuzz;

fn collect(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
}

fn fixture(name: &str) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    collect(&from, &from, &mut files);
    let mut good = Vec::new();
    for file in &files {
        let (content, place) = (fs::read(from.join(file)).unwrap(), folder.path().join(file));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, &content).unwrap();
        // An input names its file in its first line.
        good.push([file.to_string_lossy().as_bytes(), b"\n", &content].concat());
    }
    let tree = Tree::new(Root::new(folder.path()));
    fuzz::fuzz(&format!("fixture-{name}"), &good, |bytes| {
        let (name, content) = bytes.split_at(bytes.iter().position(|&b| b == b'\n').unwrap_or(0));
        let named = files.iter().find(|file| file.to_string_lossy().as_bytes() == name);
        let file = named.unwrap_or(&files[bytes.len() % files.len()]);
        let place = folder.path().join(file);
        fs::write(&place, content.get(1..).unwrap_or_default()).unwrap();
        let _ = openmetrics::render(tree.read(&Selection::all()).samples());
        fs::write(&place, fs::read(from.join(file)).unwrap()).unwrap();
    });
}

#[test]
fn recorded_machines() {
    fixture("adapted-cgroup2");
    fixture("linux-6.18-cgroup1");
}
