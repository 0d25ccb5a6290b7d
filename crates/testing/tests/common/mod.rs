//! What the tests of the workspace's rules share: its files.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The folder of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The folders of the crates.
pub fn crates() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(workspace().join("crates")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() >= 10, "{found:?}");
    found
}

/// The Rust files of a folder and of those in it.
pub fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// What a file says.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A package of the workspace, as `cargo metadata` has it.
#[derive(Default)]
pub struct Package {
    /// Its name without `pagelab-`.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// The first file of each of its libraries and programs.
    pub roots: Vec<PathBuf>,
    /// The packages that it uses, other than for tests.
    pub uses: BTreeSet<String>,
}

/// The packages of the workspace.
pub fn packages() -> Vec<Package> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]).current_dir(workspace());
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value, key: &str| value[key].as_array().unwrap().clone();
    let word = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
    let package = |package: &Value| {
        let code = |target: &Value| {
            !["test", "bench", "example", "custom-build"].contains(&target["kind"][0].as_str().unwrap())
        };
        Package {
            name: word(package, "name").trim_start_matches("pagelab-").to_owned(),
            folder: Path::new(&word(package, "manifest_path")).parent().unwrap().to_owned(),
            roots: list(package, "targets")
                .iter()
                .filter(|t| code(t))
                .map(|t| word(t, "src_path").into())
                .collect(),
            uses: list(package, "dependencies")
                .iter()
                .filter(|dependency| dependency["kind"].is_null())
                .map(|dependency| word(dependency, "name"))
                .collect(),
        }
    };
    list(&metadata, "packages").iter().map(package).collect()
}
