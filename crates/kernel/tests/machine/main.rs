//! Parts of the crate that only root, or only some kernels, can perform: the counting of tracepoints.

mod bpf;
mod files;
mod page_requests;
mod reclaim;

use std::process::ExitCode;

use pagelab_testing::{Need, run_in_turn};

/// A file system that can drop a file's cached pages.
const DISK: Need = Need {
    name: "disk",
    on: &[],
    met: || {
        const TMPFS: i64 = 0x0102_1994;
        let kind = rustix::fs::statfs("/var/tmp").map_err(|e| format!("/var/tmp: {e}"))?.f_type;
        if kind as i64 == TMPFS { Err("/var/tmp is a tmpfs".into()) } else { Ok(()) }
    },
};

fn main() -> ExitCode {
    run_in_turn([bpf::tests(), files::tests(), page_requests::tests(), reclaim::tests()].concat())
}
