//! Errors of the system, with what was being done.

use std::io;

use pagelab_experiment::Failure;

/// An error of the system while `doing` something.
pub fn failed(doing: &str) -> impl FnOnce(io::Error) -> Failure {
    let doing = doing.to_owned();
    move |error| Failure::system(doing, &error)
}
