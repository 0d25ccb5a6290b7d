//! Why a trace cannot be used.

use std::path::PathBuf;

/// Why a trace cannot be used. Every message names the file and, within it, the position.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The operating system refused.
    #[error("cannot read the trace {path}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The content is not what the format wants.
    #[error("the trace {path} is not usable at {position}: {problem}", path = path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Where: a line, or a byte of the decompressed content.
        position: String,
        /// What is wrong.
        problem: String,
    },
    /// No format fits, or several.
    #[error("{path}: unknown trace format: {why}\nhint: name it with --format (see: pagelab replay --help)", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// The page size is not a power of two.
    #[error("a page size of {0} bytes is not a power of two\nhint: use one such as 4096")]
    PageSize(u64),
}
