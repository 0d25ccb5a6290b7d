//! The documents say what the program does.

mod common;

use common::Lab;
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

#[test]
fn the_notebooks_tables_are_all_described() {
    let text = document("notebook.md");
    for part in ["live", "model", "guest", "experiment"] {
        let mut folders = vec![format!("{}/../{part}/src", env!("CARGO_MANIFEST_DIR")).into()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir::<std::path::PathBuf>(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let source = std::fs::read_to_string(&path).unwrap();
                let source = source.split("#[cfg(test)]").next().unwrap();
                let made = source
                    .split("Sheet::new(")
                    .skip(1)
                    .filter_map(|rest| rest.trim_start().strip_prefix('"'));
                for name in made.filter_map(|rest| rest.split('"').next()) {
                    assert!(
                        text.contains(&format!("`{name}`")),
                        "docs/notebook.md lacks the table {name} of {path:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_metric_has_its_row_of_accuracy() {
    let text = document("accuracy.md");
    for metric in METRICS {
        let rows = text.lines().filter(|line| line.starts_with(&format!("| `{}` |", metric.name)));
        let rows: Vec<&str> = rows.collect();
        assert!(!rows.is_empty(), "docs/accuracy.md lacks {} (scripts/accuracy --document)", metric.name);
        for row in rows {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert!(cells[4] != "–" || !cells[5].is_empty(), "neither a figure nor a reason: {row}");
        }
    }
}

#[test]
fn the_glossary_is_what_the_program_explains() {
    let lab = Lab::new();
    let printed = lab.ok("explain --markdown");
    assert_eq!(document("glossary.md"), printed, "run: pagelab explain --markdown > docs/glossary.md");
}

#[test]
fn a_term_is_explained_however_it_is_written() {
    let lab = Lab::new();
    for (asked, name) in [
        ("refaults", "refault:"),
        ("working-set", "working set:"),
        ("Working set", "working set:"),
        ("opt", "OPT:"),
        ("swap-in", "swap-in, swap-out:"),
        ("access.major.p50", "access.major.p50:"),
    ] {
        assert!(lab.ok(&format!("explain {asked}")).starts_with(name), "{asked}");
    }
    let error = lab.fails("explain refalt", 2);
    assert!(error.contains("did you mean 'refault'?"), "{error}");
    assert_eq!(lab.json("explain knee --json")["terms"][0]["name"], "knee");
    let names = common::joined(&lab.ok("explain"));
    assert!(names.contains("minimum detectable change") && names.contains("pages.present"), "{names}");
}

/// What packages it elsewhere names this version.
#[test]
fn every_recipe_is_of_this_version() {
    for (file, line) in [("../packaging/PKGBUILD", "pkgver="), ("../flake.nix", "version = \"")] {
        let text = document(file);
        let named = text.split(line).nth(1).unwrap_or_else(|| panic!("{file} has no {line}"));
        let version = named.split(['"', '\n']).next();
        assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "{file}");
    }
}
