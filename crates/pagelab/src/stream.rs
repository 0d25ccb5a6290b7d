//! The STREAM argument of `replay`, `mrc` and `wss`: a recorded trace or a generated pattern.

use std::path::Path;

use anyhow::{Result, anyhow};
use pagelab_reference::trace::{self, Format, Options};
use pagelab_reference::{Pattern, Stream};

use crate::context::Context;
use crate::failure::usage;
use crate::progress::Work;

/// What to read or to generate.
#[derive(clap::Args, Debug)]
pub struct StreamArguments {
    /// A recorded trace (plain, gzip or zstd), or a pattern (see: pagelab patterns)
    #[arg(value_name = "STREAM")]
    pub stream: String,
    /// The trace's format, where it is not recognised
    #[arg(long, value_name = "oracle-general|lackey|csv|load-store|text|u64")]
    format: Option<Format>,
    /// Bytes in a page, for traces of byte addresses
    #[arg(long, value_name = "BYTES", default_value_t = trace::DEFAULT_PAGE_SIZE)]
    page_size: u64,
    /// A pattern's pages
    #[arg(long, value_name = "N", default_value_t = 24_576)]
    pages: u64,
    /// A pattern's references
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    references: u64,
    /// A pattern's seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl StreamArguments {
    /// Reads or generates the stream. A file of that name comes before a pattern.
    pub fn load(&self, context: &Context) -> Result<Stream> {
        let path = Path::new(&self.stream);
        if path.exists() {
            let options = Options { format: self.format, page_size: self.page_size };
            let work = Work::new("reading the trace", context.quiet);
            return Ok(trace::load(path, &options, |fraction| work.at(fraction))?.stream);
        }
        match self.stream.parse::<Pattern>() {
            Ok(pattern) => {
                let work = Work::new("making the stream", context.quiet);
                pattern
                    .stream_with(self.pages, self.references, self.seed, &mut |fraction| work.at(fraction))
                    .map_err(|e| usage(e.to_string()))
            }
            Err(_) if self.stream.contains(['/', '.']) => Err(anyhow!("there is no trace {}", self.stream)),
            Err(error) => Err(usage(format!("'{}' is no file, and {error}", self.stream))),
        }
    }

    /// The bytes of a page, for sizes in bytes.
    pub fn page_size(&self) -> u64 {
        self.page_size
    }
}

/// Sizes in pages, each at least 1.
pub fn frames(sizes: &[pagelab_experiment::Size], page_size: u64) -> Result<Vec<u32>> {
    sizes
        .iter()
        .map(|size| match u32::try_from(size.pages(page_size)) {
            Ok(0) => Err(usage(format!("--memory {size} is less than a page of {page_size} bytes"))),
            Ok(frames) => Ok(frames),
            Err(_) => Err(usage(format!("--memory {size} is more than {} pages", u32::MAX))),
        })
        .collect()
}
