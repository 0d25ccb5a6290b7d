//! Where the pagelab for a kernel's processor is: a guest's first program is the running one, but where its kernel is for
//! another processor.

use std::env;
use std::path::{Path, PathBuf};

use crate::image::Machine;

/// The static pagelab for `machine` that stands beside the running one.
pub fn beside(machine: Machine) -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    places(own.parent()?, machine).into_iter().find(|path| path.is_file())
}

/// Where it would be, beside a program in `folder`: with it, where its libraries are installed, and where cargo builds for
/// another processor (the folder is `target/PROFILE`, or `target/PROCESSOR/PROFILE`).
fn places(folder: &Path, machine: Machine) -> Vec<PathBuf> {
    let (name, _) = machine.name();
    let installed = format!("pagelab-{name}");
    let built = |above: &str, profile: &str| {
        folder.join(above).join(format!("{name}-unknown-linux-gnu")).join(profile).join("pagelab")
    };
    vec![
        folder.join(&installed),
        folder.join("../lib/pagelab").join(&installed),
        built("..", "release"),
        built("..", "debug"),
        built("../..", "release"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_processor_is_looked_for_beside_this_one_and_where_cargo_builds_it() {
        let places = places(Path::new("/x/target/debug"), Machine::Aarch64);
        assert_eq!(places[0], Path::new("/x/target/debug/pagelab-aarch64"));
        assert!(places.contains(&"/x/target/debug/../aarch64-unknown-linux-gnu/release/pagelab".into()));
    }
}
