//! Where the libraries are that other programs load for pagelab.

use std::path::PathBuf;

/// The library `name`: what the environment's `variable` says, else beside this program, else in
/// `../lib/pagelab`.
pub fn find(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(path.into());
    }
    let own = std::env::current_exe().ok()?;
    let folder = own.parent()?;
    [folder.join(name), folder.join("../lib/pagelab").join(name)].into_iter().find(|path| path.is_file())
}
