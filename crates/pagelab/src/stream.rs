//! The STREAM argument of `replay`, `mrc` and `wss`: a recorded trace or a generated pattern.

use std::num::NonZeroU32;
use std::path::Path;

use anyhow::{Result, anyhow};
use pagelab_experiment::declaration::Refusal;
pub use pagelab_experiment::memory::Memory;
use pagelab_reference::trace::csv::Columns;
use pagelab_reference::trace::{self, Format, Options, Reading};
use pagelab_reference::{Pattern, Stream};
use pagelab_simulation::{Cost, Sizes, Source};

use crate::context::Context;
use crate::failure::usage;
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
        Refusal::new(format!(
            "'{text}': no column is address or page\nhint: write for example time,address,rw"
        ))
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
}

/// A stream and, of a recorded one, how it was read.
pub struct Loaded {
    pub stream: Stream,
    pub described: Option<String>,
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
            reduced: false,
            window: false,
            process: self.process,
        }
    }

    /// Reads or generates the stream, for a computation that takes `work` beside it.
    ///
    /// # Errors
    /// When it cannot be had, or the computation would take too much of this machine's memory.
    pub fn load(&self, work: &Cost, context: &Context) -> Result<Loaded> {
        let loaded = self.source()?.load(work, &Watching::new("reading the trace", context.quiet)?)?;
        let stream = Stream::new(loaded.pages, loaded.references.into_owned());
        Ok(Loaded { stream, described: loaded.reading.as_ref().map(described) })
    }

    /// The trace.
    ///
    /// # Errors
    /// When it is a pattern, for which the option means nothing.
    pub fn recorded(&self, option: &str) -> Result<(&Path, Options)> {
        let source = self.source()?;
        let (path, options) = source.recorded(option)?;
        Ok((path, *options))
    }

    /// A recorded trace, or a pattern.
    ///
    /// # Errors
    /// When it is neither.
    pub fn source(&self) -> Result<Source<'_>> {
        if let Some(path) = self.trace() {
            return Ok(Source::Trace { path, options: self.options() });
        }
        match self.stream.parse::<Pattern>() {
            Ok(_) if self.process.is_some() => Err(usage(format!(
                "--process: the pattern {} has no processes\nhint: take a recording",
                self.stream
            ))),
            Ok(pattern) => {
                let (pages, references, seed) = (self.pages, self.references, self.seed);
                Ok(Source::Pattern { pattern, pages, references, seed })
            }
            Err(_) if self.stream.contains(['/', '.']) => Err(anyhow!(
                "there is no trace {}\nhint: 'pagelab trace -o FILE -- PROGRAM' records one",
                self.stream
            )),
            Err(error) => Err(usage(format!("'{}' is not a file, and {error}", self.stream))),
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
        take: impl FnMut(&[u64]) -> Result<()>,
    ) -> Result<Option<String>> {
        let reading = self.source()?.pass(&Watching::new(doing, context.quiet)?, take)?;
        Ok(reading.as_ref().map(described))
    }

    /// The bytes of a page, for sizes in bytes.
    pub fn page_size(&self) -> u64 {
        self.page_size
    }
}

/// How a recorded stream was read.
pub fn described(reading: &Reading) -> String {
    let first: Vec<String> = reading.first.iter().map(u64::to_string).collect();
    let pages = reading.page_size.map_or_else(String::new, |size| format!(", pages of {size} bytes"));
    format!("format {} ({}){pages}; first pages {}", reading.format, reading.why, first.join(", "))
}

/// Sizes in pages, each at least 1, for a stream of `pages` pages.
///
/// # Errors
/// When one is less than a page, or too many.
pub fn frames(sizes: &[Memory], page_size: u64, pages: u32) -> Result<Vec<u32>> {
    pagelab_experiment::memory::frames(sizes, page_size, pages)
        .map_err(|wrong| usage(format!("--memory {wrong}")))
}

/// The sizes of a simulation: those asked for, else `usual` of them.
///
/// # Errors
/// When one is less than a page, or too many.
pub fn sizes(memory: &[Memory], page_size: u64, usual: usize) -> Result<Sizes<'_>> {
    let given = frames(memory, page_size, 1)?;
    if memory.is_empty() {
        return Ok(Sizes::Usual(usual));
    }
    if !memory.iter().any(|memory| matches!(memory, Memory::Percent(_))) {
        return Ok(Sizes::Given(given));
    }
    let of = move |pages| frames(memory, page_size, pages).expect("everything was checked except the pages");
    Ok(Sizes::OfPages(Box::new(of)))
}
