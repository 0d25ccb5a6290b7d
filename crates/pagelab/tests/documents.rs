//! The documents say what the program does.

use pagelab_experiment::catalogue::{ENVIRONMENT, METRICS};

fn document(name: &str) -> String {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn the_notebooks_names_are_all_described() {
    let text = document("notebook.md");
    for name in METRICS.iter().map(|m| m.name).chain(ENVIRONMENT.iter().map(|(name, _)| *name)) {
        assert!(text.contains(&format!("| `{name}` |")), "docs/notebook.md lacks {name}");
    }
}
