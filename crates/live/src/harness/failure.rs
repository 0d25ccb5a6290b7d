//! Errors of the system, with what was being done.

use std::io;

use pagelab_experiment::Failure;
use pagelab_kernel::error::Error;

/// An error of the system while `doing` something.
pub fn failed(doing: &str) -> impl FnOnce(io::Error) -> Failure {
    let doing = doing.to_owned();
    move |error| Failure::system(doing, &error)
}

/// An error of one of the kernel's interfaces.
pub fn of(error: Error) -> Failure {
    match error {
        Error::Unsupported { what, remedy } => Failure::unsupported(what, remedy),
        Error::System { doing, source } => Failure::system(doing, &source),
    }
}
