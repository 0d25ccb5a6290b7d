//! The guide "Adding an experiment" in the architecture page, held to its example: a patch that
//! `scripts/guide` applies, builds and runs.

mod common;

use std::process::Command;

use common::{text, workspace};

/// Files of an experiment, with its entry in the list, its test and its page.
const MAX_FILES: usize = 8;

#[test]
fn an_experiment_is_eight_files_and_its_example_applies() {
    let patch = workspace().join("crates/testing/fixtures/experiment.patch");
    let patched = text(&patch);
    let files: Vec<&str> = patched.lines().filter_map(|line| line.strip_prefix("+++ b/")).collect();
    assert!((1..=MAX_FILES).contains(&files.len()), "{files:?}");
    let guide = text(&workspace().join("docs/src/explanation/architecture.md"));
    for file in files {
        let general = file.strip_prefix("crates/").unwrap_or(file).replace("fill", "NAME");
        assert!(guide.contains(&general), "the guide does not name {general}");
    }
    // Only looks: nothing of the tree changes.
    let output = Command::new("git")
        .args(["apply", "--check"])
        .arg(&patch)
        .current_dir(workspace())
        .output()
        .expect("git");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
