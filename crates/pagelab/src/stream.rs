//! The STREAM argument of `replay`, `mrc` and `wss`: a recorded trace or a generated pattern.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Result, anyhow};
use pagelab_experiment::declaration::Refusal;
pub use pagelab_experiment::memory::Memory;
use pagelab_reference::trace::csv::Columns;
use pagelab_reference::trace::recorded::Reduced;
use pagelab_reference::trace::{self, Format, Options, Reader, Reading};
use pagelab_reference::{Pattern, PatternError, Stream};
use pagelab_simulation::cost::{Cost, STREAM};
use pagelab_simulation::feed;

use crate::context::Context;
use crate::failure::usage;
use crate::progress::Work;
use crate::records;
use crate::watching::Watching;

/// The formats' names, for help, completions and errors alike.
#[derive(Clone)]
struct Formats;

impl clap::builder::TypedValueParser for Formats {
    type Value = Format;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Format, clap::Error> {
        let names = clap::builder::PossibleValuesParser::new(Format::ALL.map(|(_, name, _)| name));
        let name = names.parse_ref(command, argument, value)?;
        Ok(name.parse().expect("every name is a format's"))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = clap::builder::PossibleValue> + '_>> {
        let value = |(_, name, help): (Format, &'static str, &'static str)| {
            clap::builder::PossibleValue::new(name).help(help)
        };
        Some(Box::new(Format::ALL.into_iter().map(value)))
    }
}

/// Columns by their names, as a header has them.
fn columns(text: &str) -> Result<Columns, Refusal> {
    Columns::of_header(text.as_bytes()).ok_or_else(|| {
        Refusal::new(format!("'{text}': name address or page among the columns, as in time,address,rw"))
    })
}

/// What to read or to generate.
#[derive(clap::Args, Clone, Debug)]
pub struct StreamArguments {
    /// A recorded trace (plain or in gzip, zstd, bzip2 or xz; - for standard input), or a pattern (see: pagelab patterns)
    #[arg(value_name = "STREAM")]
    pub stream: String,
    /// The trace's format, where it is not recognised
    #[arg(long, value_name = "FORMAT", value_parser = Formats)]
    format: Option<Format>,
    /// What the columns of a csv hold, where its first line does not say it: address or page, pid, rw, size; others are passed over
    #[arg(long, value_name = "NAMES", value_parser = columns)]
    columns: Option<Columns>,
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
    /// Of a recording one process alone: its number in what pagelab show FILE lists
    #[arg(long, value_name = "N")]
    process: Option<NonZeroU32>,
    #[arg(skip)]
    reduced: bool,
}

/// A stream and, of a recorded one, how it was read.
pub struct Loaded {
    pub stream: Stream,
    reading: Option<Reading>,
}

/// The longest name of a stream in a table.
const LABEL: usize = 20;

impl StreamArguments {
    /// This stream, and others that are read or made as it is.
    pub fn and(&self, others: &[String]) -> Vec<Self> {
        let other = |stream: &String| Self { stream: stream.clone(), ..self.clone() };
        std::iter::once(self.clone()).chain(others.iter().map(other)).collect()
    }

    /// A short name for tables: a file's own, or the pattern.
    pub fn label(&self) -> String {
        let name = self.trace().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let mut name = name.unwrap_or_else(|| self.stream.clone());
        if let Some(number) = self.process {
            name += &format!(" #{number}");
        }
        if name.chars().count() <= LABEL {
            return name;
        }
        name.chars().take(LABEL - 1).chain(['…']).collect()
    }

    /// What runs and files that are made of it name: the trace or pattern, and the process where one is chosen.
    pub fn words(&self) -> String {
        self.process.map_or(self.stream.clone(), |number| format!("{} --process {number}", self.stream))
    }

    /// The recorded trace, `-` for standard input; a file of that name comes before a pattern.
    pub fn trace(&self) -> Option<&Path> {
        let path = Path::new(&self.stream);
        (self.stream == "-" || path.exists()).then_some(path)
    }

    /// How the trace is to be read.
    pub fn options(&self) -> Options {
        Options {
            format: self.format,
            page_size: self.page_size,
            columns: self.columns,
            reduced: self.reduced,
            process: self.process,
        }
    }

    /// How the trace was made shorter, where it was; then it is accepted from now on.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn accept_reduced(&mut self) -> Result<Option<Reduced>> {
        let Some(path) = self.trace().filter(|path| *path != Path::new("-")) else { return Ok(None) };
        let options = Options { reduced: true, ..self.options() };
        let reduced = Reader::open(path, &options)?.heading().and_then(|heading| heading.reduced.clone());
        self.reduced = reduced.is_some();
        Ok(reduced)
    }

    /// Reads or generates the stream, for a computation that takes `work` beside it.
    ///
    /// # Errors
    /// When it cannot be had, or the computation would take too much of this machine's memory.
    pub fn load(&self, work: &Cost, context: &Context) -> Result<Loaded> {
        match self.source()? {
            Source::Trace(path) => {
                let watching = Watching::new("reading the trace", context.quiet)?;
                let trace = feed::load(path, &self.options(), &work.and(&STREAM), &watching)?;
                Ok(Loaded { stream: trace.stream, reading: Some(trace.reading) })
            }
            Source::Pattern(pattern) => {
                let made = pattern.memory(self.pages, self.references);
                work.and(&STREAM).allow(self.pages, self.references, made)?;
                let progress = Work::new("making the stream", context.quiet);
                let stream = pattern
                    .stream_with(self.pages, self.references, self.seed, &mut |part| progress.at(part))
                    .map_err(unmade)?;
                Ok(Loaded { stream, reading: None })
            }
        }
    }

    /// As [`Self::load`] of a trace, record by record, for what its pages alone do not tell.
    ///
    /// # Errors
    /// As there, and when the trace does not know what is wanted.
    pub fn load_records(
        &self,
        wanted: records::Wanted,
        work: &Cost,
        context: &Context,
    ) -> Result<(Loaded, Option<Vec<bool>>)> {
        let cost = work.and(&STREAM).and(&Cost { page: 0, reference: 1 });
        let (trace, writes) =
            records::load(self.recorded(wanted.option())?, &self.options(), wanted, &cost, context.quiet)?;
        Ok((Loaded { stream: trace.stream, reading: Some(trace.reading) }, writes))
    }

    /// The trace.
    ///
    /// # Errors
    /// When it is a pattern, for which the option means nothing.
    pub fn recorded(&self, option: &str) -> Result<&Path> {
        match self.source()? {
            Source::Trace(path) => Ok(path),
            Source::Pattern(_) => {
                Err(usage(format!("{option}: the pattern {} knows pages alone; take a trace", self.stream)))
            }
        }
    }

    /// A recorded trace, or a pattern.
    fn source(&self) -> Result<Source<'_>> {
        if let Some(path) = self.trace() {
            return Ok(Source::Trace(path));
        }
        match self.stream.parse::<Pattern>() {
            Ok(_) if self.process.is_some() => Err(usage(format!(
                "--process: the pattern {} has no processes; take a recording",
                self.stream
            ))),
            Ok(pattern) => Ok(Source::Pattern(pattern)),
            Err(_) if self.stream.contains(['/', '.']) => Err(anyhow!("there is no trace {}", self.stream)),
            Err(error) => Err(usage(format!("'{}' is no file, and {error}", self.stream))),
        }
    }

    /// Gives every page to `take`, some thousand at a time, without keeping the stream; what there is to say of it.
    ///
    /// # Errors
    /// When it cannot be had, and those of `take`.
    pub fn pass(
        &self,
        doing: &'static str,
        context: &Context,
        mut take: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<Option<String>> {
        let watching = Watching::new(doing, context.quiet)?;
        match self.source()? {
            Source::Trace(path) => {
                let reading = feed::decoded_here(path, &self.options(), &watching, &mut take)?;
                Ok(Some(described(&reading)))
            }
            Source::Pattern(pattern) => {
                Cost::default().allow(0, 0, pattern.memory(self.pages, self.references))?;
                let blocks = pattern.blocks(self.pages, self.references, self.seed, &mut |_| {});
                let mut blocks = blocks.map_err(unmade)?;
                let mut pages = Vec::with_capacity(BLOCK);
                while blocks.left() > 0 {
                    pages.clear();
                    pages.extend(blocks.next(BLOCK).map_err(unmade)?.iter().map(|&page| u64::from(page)));
                    take(&pages)?;
                    pagelab_simulation::Watch::at(
                        &watching,
                        1.0 - blocks.left() as f64 / self.references as f64,
                    );
                }
                Ok(None)
            }
        }
    }

    /// The bytes of a page, for sizes in bytes.
    pub fn page_size(&self) -> u64 {
        self.page_size
    }
}

/// Where a stream comes from.
enum Source<'a> {
    Trace(&'a Path),
    Pattern(Pattern),
}

/// References that are passed on at a time.
const BLOCK: usize = 1 << 13;

fn unmade(error: PatternError) -> anyhow::Error {
    match error {
        PatternError::Memory(_) => anyhow!(error),
        error => usage(error.to_string()),
    }
}

impl Loaded {
    /// How a recorded stream was read: the format always stands where it can be judged.
    pub fn described(&self) -> Option<String> {
        self.reading.as_ref().map(described)
    }
}

/// How a recorded stream was read.
pub fn described(reading: &Reading) -> String {
    let first: Vec<String> = reading.first.iter().map(u64::to_string).collect();
    let pages = reading.page_size.map_or_else(String::new, |size| format!(", pages of {size} bytes"));
    format!("format {} ({}){pages}; first pages {}", reading.format, reading.why, first.join(", "))
}

/// Sizes in pages, each at least 1, for a stream of `pages` pages.
pub fn frames(sizes: &[Memory], page_size: u64, pages: u32) -> Result<Vec<u32>> {
    pagelab_experiment::memory::frames(sizes, page_size, pages)
        .map_err(|wrong| usage(format!("--memory {wrong}")))
}
